"""One adapter for every model that transformers loads as ``AutoModelForImageTextToText``; no branches on model names.

It assumes that the processor has a chat template and a fast tokenizer, image patches are tokens of one id
in ``input_ids``, and ``model.base_model`` returns ``last_hidden_state``. A model that breaks one of these gets an error
that names it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from culture_tasks.errors import CultureTasksError, DataError, SettingsError
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.encoding import IGNORED, Encoded, Encoding, ends_of_generation, image_token_ids
from culture_tasks.insertion.identity import ModelIdentity, identify
from culture_tasks.insertion.prefill import (
    Features,
    Gate,
    Masks,
    StopIf,
    captured_states,
    pooled,
    question_mask,
    visual_mask,
)
from culture_tasks.insertion.queries import Query

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_log = logging.getLogger(__name__)

Found = TypeVar("Found")

ANSWERS_VERSION = 2
"""Raise it whenever a change of code changes what a model is shown, how its answer is decoded, or its features.

It is part of :attr:`~culture_tasks.insertion.identity.ModelIdentity.run`, so that stored answers and features of
older versions are not used then. For a change in one method, raise that method's own version.
"""

_PIXELS_A_TOKEN = 28 * 28  # a rough guess, which only orders requests by length
_AHEAD = 2  # batches whose images are read while the model works


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said.

    Attributes:
        text: The answer without special tokens.
        tokens: Its token ids, special ones too.
        prompt_tokens: Number of tokens that the model was shown, those of images among them.
        activated: Index of the insertion that was used, from 0; None if none was, or if a method uses all.
        similarity: Highest router score of the request; None if nothing was compared.
        threshold: What the score was compared with.
    """

    text: str
    tokens: tuple[int, ...]
    prompt_tokens: int = 0
    activated: int | None = None
    similarity: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class AnswerLogits:
    """What a model says about given answers, token by token (teacher forcing).

    Attributes:
        logits: Logits that predict each token of the answers, shape (pairs, T, vocabulary).
        tokens: The tokens of the answers, the end of the turn among them, shape (pairs, T).
        mask: Which tokens are an answer's and not padding, shape (pairs, T).
    """

    logits: torch.Tensor
    tokens: torch.Tensor
    mask: torch.Tensor

    def losses(self) -> torch.Tensor:
        """Returns the mean negative log-likelihood of each answer's tokens, shape (pairs,), float32."""
        scores = torch.log_softmax(self.logits.float(), dim=-1)
        nll = -scores.gather(-1, self.tokens[..., None])[..., 0]
        return (nll * self.mask).sum(-1) / self.mask.sum(-1).clamp(min=1)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is loaded.

    Attributes:
        revision: Branch, tag or commit on the Hub.
        dtype: ``auto`` takes the checkpoint's.
        device: The device; None means a GPU if there is one.
        device_map: Spreads the model over devices; takes precedence over ``device``.
        max_memory: What ``device_map`` may use of each device, in bytes, by its number; None means all.
        attn_implementation: Attention kernels; None means transformers' choice.
        trust_remote_code: Whether code of the checkpoint is run.
        template: Variables of the chat template. Reasoning is off unless asked for, since answers have 64 tokens.
        images: Options of the image processor, such as ``max_patches`` or ``max_pixels``; without, its own.
    """

    revision: str | None = None
    dtype: str = "auto"
    device: str | None = None
    device_map: str | None = None
    max_memory: Mapping[int, int] | None = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    template: Mapping[str, Any] = field(default_factory=lambda: {"enable_thinking": False})
    images: Mapping[str, int] = field(default_factory=dict)


class MultimodalModel:
    """A model with its processor.

    Args:
        model: The model, which is left frozen and in evaluation mode.
        processor: Its processor.
        source: What the user calls it.
        template: Variables of the chat template.
        images: Options of the image processor.

    Attributes:
        identity: Fingerprints of the model, of its weights as they were when this object was made.

    Raises:
        SettingsError: If the model can't be used.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin,
        source: str = "",
        template: Mapping[str, Any] | None = None,
        images: Mapping[str, int] | None = None,
    ) -> None:
        self.model = model.eval().requires_grad_(requires_grad=False)
        self.processor = processor
        _check(model, processor)
        self._encoding = Encoding(processor, ModelOptions().template if template is None else template, images)
        self._encoding.check()
        self.identity: ModelIdentity = identify(
            model, processor, source=source, options=self._encoding.settings, version=ANSWERS_VERSION
        )

    @classmethod
    def load(cls, pretrained: str, options: ModelOptions | None = None) -> MultimodalModel:
        """Loads a checkpoint.

        Raises:
            SettingsError: If there is no such checkpoint or device, it is not a model of images and text, or the GPU is
                too small for its weights.
        """
        from transformers import AutoConfig, AutoModelForImageTextToText

        options = options or ModelOptions()
        shared = _source(options)
        place = options.device_map or options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        chosen = {"attn_implementation": options.attn_implementation, "max_memory": options.max_memory}
        given = {name: value for name, value in chosen.items() if value is not None}
        if options.device_map is None:
            check_device(place)
        with _explained(pretrained):
            config = AutoConfig.from_pretrained(pretrained, **shared)
            if options.device_map is None and torch.device(place).type == "cuda":
                check_room(pretrained, weights_size(config, options.dtype), torch.cuda.mem_get_info(place)[0])
            processor = _processor(pretrained, options)
            model = AutoModelForImageTextToText.from_pretrained(
                pretrained, dtype=options.dtype, device_map=place, **shared, **given
            )
        return cls(model, processor, pretrained, options.template, options.images)

    @property
    def encoding_options(self) -> Mapping[str, Any]:
        """What the user chose about the chat template and about images, under the names of :class:`ModelOptions`."""
        return self._encoding.settings

    @property
    def device(self) -> torch.device:
        """Where the model takes its inputs."""
        return torch.device(self.model.device)

    @property
    def hidden_size(self) -> int:
        """Width of the last layer's hidden states."""
        return int(self.model.config.get_text_config().hidden_size)

    def generate(self, query: Query, decoding: Decoding) -> Answer:
        """Answers a request."""
        return self._answers(self._encoded([query]), decoding)[0]

    def answers(
        self, queries: Sequence[Query], decoding: Decoding, batch_size: int = 1
    ) -> Iterator[tuple[int, Answer]]:
        """Answers requests in batches, the longest first.

        A batch's images are loaded while the one before it is answered, and not kept.

        Args:
            queries: The requests.
            decoding: How to decode.
            batch_size: Requests that are answered together; a batch that doesn't fit into the memory is halved.

        Yields:
            The place of a request in ``queries``, with its answer.

        Raises:
            CultureTasksError: If a single request doesn't fit into the memory.
        """
        return self._batched(queries, batch_size, lambda encoded, _: self._answers(encoded, decoding))

    def generate_unless(self, query: Query, decoding: Decoding, gate: Gate) -> Answer | None:
        """Answers a request unless the gate, given the features of its prefill, says stop.

        The gate is asked between the first step of decoding and the second. If it lets the answer pass, decoding
        simply continues with the state that it has: one prefill, whatever kind of cache the model keeps, and the same
        computation as :meth:`generate`.

        Returns:
            The answer, or None if the gate stopped it.
        """
        encoded = self._encoded([query], with_spans=True)
        masks = self._masks(encoded, [query])
        with captured_states(self.model) as states:
            stop = StopIf(lambda: gate(pooled(states, masks)[0]))
            answer = self._answers(encoded, decoding, stopping_criteria=[stop])[0]
        return None if stop.stopped else answer

    def features(self, query: Query) -> Features:
        """Computes the features of a request, with the same prefill as :meth:`generate_unless`.

        Raises:
            DataError: If the request has no image, or the question isn't found in the prompt.
        """
        return next(self.features_of([query]))[1]

    def features_of(self, queries: Sequence[Query], batch_size: int = 1) -> Iterator[tuple[int, Features]]:
        """Computes the features of requests in batches, the longest first; nothing but the prefill is computed.

        Yields:
            The place of a request in ``queries``, with its features.

        Raises:
            DataError: If a request has no image, or its question isn't found in the prompt.
            CultureTasksError: If a single request doesn't fit into the memory.
        """

        def prefill(encoded: Encoded, asked: Sequence[Query]) -> list[Features]:
            masks = self._masks(encoded, asked)
            with captured_states(self.model) as states:
                self._answers(encoded, Decoding(max_new_tokens=1))
            return pooled(states, masks)

        return self._batched(queries, batch_size, prefill, with_spans=True)

    def answer_logits(self, pairs: Sequence[tuple[Query, str]]) -> AnswerLogits:
        """Computes what the model says about given answers, in one forward pass.

        Gradients flow to whatever parameters want them.

        Args:
            pairs: Requests, each with an answer; the end of the turn is added to it.
        """
        return self.answer_scorer(pairs)()

    def answer_scorer(self, pairs: Sequence[tuple[Query, str]]) -> Callable[[], AnswerLogits]:
        """Returns :meth:`answer_logits` of these answers, for models whose weights change between two calls.

        Images are read and encoded once.
        """
        end = self._encoding.end_of_answer(ends_of_generation(self.model))
        encoded = self._encoding.encode_answered(
            [query.messages() for query, _ in pairs], [answer for _, answer in pairs], end
        )
        inputs = self._placed(encoded.inputs)
        labels = inputs.pop("labels")
        width = int((labels != IGNORED).any(0).sum())

        def score() -> AnswerLogits:
            output = self.model(**inputs, logits_to_keep=width + 1, use_cache=False)
            logits = output.logits[:, -width - 1 : -1]
            tokens = labels[:, -width:].to(logits.device)
            return AnswerLogits(logits, tokens.clamp(min=0), tokens != IGNORED)

        return score

    def answer_loss(self, pairs: Sequence[tuple[Query, str]]) -> torch.Tensor:
        """Returns the mean over pairs of the mean negative log-likelihood of the answer's tokens, a scalar."""
        return self.answer_logits(pairs).losses().mean()

    def release(self) -> None:
        """Gives the memory of the weights back; the model can't answer after that, and keeps its identity."""
        from accelerate.hooks import remove_hook_from_submodules

        remove_hook_from_submodules(self.model)
        self.model.to("meta")
        torch.cuda.empty_cache()

    def _answers(self, encoded: Encoded, decoding: Decoding, **options: Any) -> list[Answer]:
        tokenizer = self.processor.tokenizer
        padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        inputs = self._placed(encoded.inputs)
        ids = self.model.generate(**inputs, **decoding.options(), pad_token_id=padding, **options)
        ends = ends_of_generation(self.model)
        shown = inputs["attention_mask"].sum(1).tolist()
        rows = [_until(row, ends) for row in ids[:, inputs["input_ids"].shape[1] :].tolist()]
        return [
            Answer(tokenizer.decode(row, skip_special_tokens=True).strip(), tuple(row), prompt_tokens)
            for row, prompt_tokens in zip(rows, shown, strict=True)
        ]

    def _encoded(self, queries: Sequence[Query], *, with_spans: bool = False) -> Encoded:
        return self._encoding.encode([query.messages() for query in queries], with_spans=with_spans)

    def _placed(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns inputs on the model's device; numbers that aren't whole get its data type."""
        placed: dict[str, Any] = {}
        for name, value in inputs.items():
            if isinstance(value, torch.Tensor):
                kind = self.model.dtype if value.is_floating_point() else value.dtype
                placed[name] = value.to(self.device, kind)
            else:
                placed[name] = value
        return placed

    def _masks(self, encoded: Encoded, queries: Sequence[Query]) -> list[Masks]:
        """Returns which tokens are a question's and which an image's, for each request."""
        assert encoded.spans is not None
        assert encoded.prompt_ends is not None
        patches = image_token_ids(self.model, self.processor)
        masks = []
        for row, query in enumerate(queries):
            visual = visual_mask(encoded.inputs["input_ids"][row], patches)
            if not visual.any():
                raise DataError(f"insertion: the request {query.question!r:.80} has no image. Needed is one.")
            spans, prompt, end = encoded.spans[row], encoded.prompts[row], encoded.prompt_ends[row]
            masks.append(Masks(question_mask(spans, visual, prompt, end, query.question), visual))
        return masks

    def _batched(
        self,
        queries: Sequence[Query],
        batch_size: int,
        work: Callable[[Encoded, Sequence[Query]], list[Found]],
        *,
        with_spans: bool = False,
    ) -> Iterator[tuple[int, Found]]:
        """Encodes batches in a thread of their own while the model works on the ones before."""

        def encoded(places: Sequence[int]) -> Encoded:
            return self._encoded([queries[place] for place in places], with_spans=with_spans)

        with ThreadPoolExecutor(1) as pool:
            waiting: deque[tuple[list[int], Future[Encoded]]] = deque()
            left = deque(_batches(self._encoding, queries, batch_size))
            while left or waiting:
                while left and len(waiting) < _AHEAD:
                    places = left.popleft()
                    waiting.append((places, pool.submit(encoded, places)))
                places, made = waiting.popleft()
                try:
                    found = work(made.result(), [queries[place] for place in places])
                except torch.OutOfMemoryError as error:
                    if len(places) == 1:
                        raise CultureTasksError(
                            "insertion: a single request doesn't fit into the memory of the device "
                            f"({str(error).splitlines()[0]:.200}). Make images smaller (max_patches=…, max_pixels=…), "
                            "or spread the model over several GPUs (device_map=auto)."
                        ) from None
                    _log.warning("insertion: %d requests at once don't fit into the memory; halved", len(places))
                    torch.cuda.empty_cache()
                    half = len(places) // 2
                    left.extendleft([places[half:], places[:half]])
                    continue
                yield from zip(places, found, strict=True)


def load_encoding(pretrained: str, options: ModelOptions) -> Encoding:
    """Loads how a checkpoint's conversations are encoded, without its weights.

    Raises:
        SettingsError: If there is no such checkpoint, it is not a model of images and text, or its image processor
            lacks an option.
    """
    with _explained(pretrained):
        return Encoding(_processor(pretrained, options), options.template, options.images)


def _processor(pretrained: str, options: ModelOptions) -> ProcessorMixin:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(pretrained, **_source(options))


def _source(options: ModelOptions) -> dict[str, Any]:
    return {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}


@contextmanager
def _explained(pretrained: str) -> Iterator[None]:
    """Says of a checkpoint that can't be loaded what is needed."""
    try:
        yield
    except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
        raise SettingsError(
            f"insertion: pretrained={pretrained!r} can't be loaded as a model of images and text "
            f"({str(error).strip().splitlines()[0]:.300}). Name a checkpoint of AutoModelForImageTextToText."
        ) from error


def check_device(name: str) -> None:
    """Makes sure that a device can be used.

    Raises:
        SettingsError: If PyTorch has no such device, or no driver for it.
    """
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise SettingsError(
            f"insertion: device={name!r} can't be used ({str(error).strip().splitlines()[0]:.200}). Name one that "
            "PyTorch has, such as cpu or cuda:0, or none, which takes a GPU if there is one."
        ) from None


def weights_size(config: Any, dtype: str) -> int:
    """Returns the size of a checkpoint's weights in bytes, as they are loaded; nothing is loaded for it.

    Args:
        config: The checkpoint's configuration.
        dtype: The data type; ``auto`` means the checkpoint's.
    """
    from transformers import AutoModelForImageTextToText

    kind = getattr(config, "dtype", None) if dtype == "auto" else getattr(torch, dtype.removeprefix("torch."))
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    size: int = (kind or torch.float32).itemsize
    return int(model.num_parameters()) * size


def check_room(pretrained: str, needed: int, free: int) -> None:
    """Makes sure that weights fit into the memory of a GPU.

    Args:
        pretrained: The checkpoint, for the message.
        needed: Size of its weights, in bytes.
        free: Free memory of the GPU, in bytes.

    Raises:
        SettingsError: If they don't.
    """
    if needed > free:
        raise SettingsError(
            f"insertion: the weights of {pretrained!r} need {needed / 2**30:.1f} GiB, and the GPU has "
            f"{free / 2**30:.1f} GiB free. Spread the model over several GPUs with device_map=auto, choose "
            "dtype=bfloat16, or take a smaller model."
        )


def _until(row: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Returns the tokens up to the first that ends a generation, with it; what follows is padding."""
    place = next((index for index, token in enumerate(row) if token in ends), len(row) - 1)
    return list(row[: place + 1])


def _batches(encoding: Encoding, queries: Sequence[Query], size: int) -> list[list[int]]:
    """Returns the places of requests in batches, the longest first; only those with images go together with such."""
    if len(queries) == 1:
        return [[0]]
    lengths = [
        encoding.length(query.texts())
        + sum(picture.size[0] * picture.size[1] for picture in query.pictures()) // _PIXELS_A_TOKEN
        for query in queries
    ]
    kinds: dict[bool, list[int]] = {}
    for place in sorted(range(len(queries)), key=lambda place: -lengths[place]):
        kinds.setdefault(bool(queries[place].pictures()), []).append(place)
    return [kind[start : start + size] for kind in kinds.values() for start in range(0, len(kind), size)]


def _check(model: PreTrainedModel, processor: ProcessorMixin) -> None:
    problems = {
        "its processor has no chat template": getattr(processor, "chat_template", None) is None,
        "its tokenizer is not a fast one": not getattr(getattr(processor, "tokenizer", None), "is_fast", False),
        "no image token is named by its processor or configuration": not image_token_ids(model, processor),
        "it has no inner model with hidden states": model.base_model is model,
    }
    for problem, found in problems.items():
        if found:
            raise SettingsError(f"insertion: {type(model).__name__} can't be used: {problem}. Name another model.")
