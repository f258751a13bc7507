"""One adapter for every model that transformers loads as ``AutoModelForImageTextToText``; no branches on model names.

It assumes that the processor has a chat template and a fast tokenizer, image patches are tokens of one id
in ``input_ids``, and ``model.base_model`` returns ``last_hidden_state``. A model that breaks one of these gets an error
that names it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import torch
from pydantic import BaseModel, ConfigDict

from culture_tasks.errors import CultureTasksError, SettingsError
from culture_tasks.insertion.core.devices import read_ahead
from culture_tasks.insertion.core.encoding import (
    IGNORED,
    EncodedBatch,
    Encoding,
    ends_of_generation,
    image_token_ids,
    padding_token,
    question_and_image,
)
from culture_tasks.insertion.core.requests import AnswerDecoding, Insertion, Request, size_of
from culture_tasks.insertion.core.state import identify
from culture_tasks.insertion.core.weight_edits import Weights, with_weights_by_row

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

Result = TypeVar("Result")
Batch = list[tuple[int, Result]]
"""Places of requests that were computed together, each with its result."""

ANSWERS_VERSION = 2
"""Raise it whenever a change of code changes what a model is shown, how its answer is decoded, or its features.

Stored answers and features of older versions are not used then. For a change in one method, raise that method's own.
"""

OF_LOADING = (OSError, ValueError, KeyError, ImportError, AttributeError)
_PIXELS_PER_TOKEN = 28 * 28  # a rough guess, which only orders requests by length


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to one request; tokens are counted with those of images and special ones.

    ``activated`` is the index of the insertion that was used, from 0, ``similarity`` the highest router score,
    ``seconds`` the time of an answer on its own; each None if there is none.
    """

    text: str
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    activated: int | None = None
    similarity: float | None = None
    threshold: float | None = None
    seconds: float | None = None


class AnswerLogits(NamedTuple):
    """A model's predictions of given answers, token by token (teacher forcing).

    Logits have the shape (pairs, T, vocabulary); the tokens, the end of the turn among them, and the mask of those that
    are an answer's and not padding (pairs, T).
    """

    logits: torch.Tensor
    tokens: torch.Tensor
    mask: torch.Tensor

    def losses(self) -> torch.Tensor:
        """Returns the mean negative log-likelihood of each answer's tokens, shape (pairs,), float32."""
        scores = torch.log_softmax(self.logits.float(), dim=-1)
        nll = -scores.gather(-1, self.tokens[..., None])[..., 0]
        return (nll * self.mask).sum(-1) / self.mask.sum(-1).clamp(min=1)


class ModelOptions(BaseModel):
    """How a model is loaded; by default on a GPU if there is one, and without reasoning: answers have 64 tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    revision: str | None = None
    dtype: str = "auto"
    device: str | None = None
    device_map: str | None = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    enable_thinking: bool = False
    min_patches: int | None = None
    max_patches: int | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None

    @property
    def template(self) -> dict[str, Any]:
        """Variables of the chat template."""
        return {"enable_thinking": self.enable_thinking}

    @property
    def images(self) -> dict[str, int]:
        """The limits of the image processor that are set."""
        limits = {"min_patches", "max_patches", "min_pixels", "max_pixels"}
        return self.model_dump(include=limits, exclude_none=True)


class MultimodalModel:
    """A model with its processor, frozen and in evaluation mode; ``source`` is the name or folder that users gave."""

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
        self._image_tokens = image_token_ids(model, processor)
        needs = {
            "a chat template": getattr(processor, "chat_template", None),
            "a fast tokenizer": getattr(getattr(processor, "tokenizer", None), "is_fast", False),
            "an image token that its processor or configuration names": self._image_tokens,
            "an inner model with hidden states": model.base_model is not model,
        }
        if missing := [need for need, is_there in needs.items() if not is_there]:
            raise SettingsError(f"insertion: {type(model).__name__} lacks {', '.join(missing)}. Name another model.")
        self.encoding = Encoding(processor, ModelOptions().template if template is None else template, images)
        settings = self.encoding.settings
        self.identity = identify(model, processor, source=source, options=settings, version=ANSWERS_VERSION)

    @classmethod
    def load(cls, pretrained: str, options: ModelOptions | None = None) -> MultimodalModel:
        """Loads a checkpoint."""
        from transformers import AutoModelForImageTextToText, AutoProcessor

        options = options or ModelOptions()
        place = options.device_map or options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        source = {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}
        kernels = {"attn_implementation": options.attn_implementation} if options.attn_implementation else {}
        if options.device_map is None:
            advice = "Name one that PyTorch has, such as cpu or cuda:0, or none, which takes a GPU if there is one."
            with explained(f"insertion: device={place!r} can't be used", advice, (RuntimeError, AssertionError)):
                torch.empty(0, device=place)
        problem = f"insertion: pretrained={pretrained!r} can't be loaded as a model of images and text"
        advice = "Name a checkpoint of AutoModelForImageTextToText. One that is too large needs device_map=auto."
        with explained(problem, advice, (*OF_LOADING, torch.OutOfMemoryError)):
            processor = AutoProcessor.from_pretrained(pretrained, **source)
            Encoding(processor, options.template, options.images)  # refuses options before the weights are loaded
            model = AutoModelForImageTextToText.from_pretrained(
                pretrained, dtype=options.dtype, device_map=place, **source, **kernels
            )
        return cls(model, processor, pretrained, options.template, options.images)

    @property
    def device(self) -> torch.device:
        """Where the model takes its inputs."""
        return torch.device(self.model.device)

    def generate(self, request: Request, decoding: AnswerDecoding) -> Answer:
        """Answers a request."""
        return self._answers(self.encoding.encode([request.messages]), decoding)[0]

    def answers(
        self,
        requests: Sequence[Request],
        decoding: AnswerDecoding,
        batch_size: int = 1,
        weights: Callable[[Sequence[int]], Sequence[Weights]] | None = None,
    ) -> Iterator[Batch[Answer]]:
        """Yields batches of places of requests, each with its answer, the longest requests first.

        If ``weights`` returns those of the requests at some places, when their batch begins, the order is the given
        one. A batch's images are loaded while the one before it is answered, and not kept.
        """

        def answer(batch: EncodedBatch, places: Sequence[int]) -> list[Answer]:
            if weights is None:
                return self._answers(batch, decoding)
            return with_weights_by_row(self.model, weights(places), lambda: self._answers(batch, decoding))

        order = self._longest_first(requests) if weights is None else range(len(requests))
        return self._batches(requests, order, batch_size, answer)

    def features_of(self, requests: Sequence[Request], batch_size: int = 1) -> Iterator[Batch[torch.Tensor]]:
        """Yields batches of places of requests, each with its features, the longest first; only a prefill is computed.

        Features are means of the last layer's hidden states over the question's tokens and over the image's, shape
        (2, hidden size), float32. ``DataError`` if a request has no image, or its question isn't found in the prompt.
        """

        def prefill(batch: EncodedBatch, places: Sequence[int]) -> list[torch.Tensor]:
            masks = question_and_image(batch, [requests[place].question for place in places], self._image_tokens)
            with captured_states(self.model) as states:
                self._answers(batch, AnswerDecoding(max_new_tokens=1))
            return pooled(states, masks)

        return self._batches(requests, self._longest_first(requests), batch_size, prefill, with_spans=True)

    def encode_answered(self, samples: Sequence[Insertion]) -> EncodedBatch:
        """Reads and encodes requests, each with its answer, to which the end of the turn is added."""
        conversations, answers = [item.request.messages for item in samples], [item.answer for item in samples]
        return self.encoding.encode_answered(conversations, answers, ends_of_generation(self.model))

    def encode_in_batches(self, samples: Sequence[Insertion], size: int) -> list[EncodedBatch]:
        """Does the same in batches of a size."""
        return [self.encode_answered(samples[start : start + size]) for start in range(0, len(samples), size)]

    def answer_scorer(self, samples: Sequence[Insertion] | EncodedBatch) -> Callable[[], AnswerLogits]:
        """Returns a function that predicts the samples' answers in one forward pass, with the weights of the moment.

        Gradients flow to all parameters that require them.
        """
        batch = samples if isinstance(samples, EncodedBatch) else self.encode_answered(samples)
        inputs = self._on_device(batch.inputs)
        labels = inputs.pop("labels")
        width = int((labels != IGNORED).any(0).sum())

        def score() -> AnswerLogits:
            output = self.model(**inputs, logits_to_keep=width + 1, use_cache=False)
            logits = output.logits[:, -width - 1 : -1]
            tokens = labels[:, -width:].to(logits.device)
            return AnswerLogits(logits, tokens.clamp(min=0), tokens != IGNORED)

        return score

    def _answers(self, batch: EncodedBatch, decoding: AnswerDecoding) -> list[Answer]:
        tokenizer, inputs = self.processor.tokenizer, self._on_device(batch.inputs)
        ids = self.model.generate(**inputs, **decoding.options(), pad_token_id=padding_token(tokenizer))
        ends, prompt_lengths = ends_of_generation(self.model), inputs["attention_mask"].sum(1).tolist()
        answers = []
        for row, prompt_tokens in zip(ids[:, inputs["input_ids"].shape[1] :].tolist(), prompt_lengths, strict=True):
            length = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))  # then padding
            text = tokenizer.decode(row[:length], skip_special_tokens=True).strip()
            answers.append(Answer(text, prompt_tokens, length))
        return answers

    def _on_device(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns inputs on the model's device; floating-point numbers get its data type."""
        return {
            name: value.to(self.device, self.model.dtype if value.is_floating_point() else value.dtype)
            if isinstance(value, torch.Tensor)
            else value
            for name, value in inputs.items()
        }

    def _longest_first(self, requests: Sequence[Request]) -> list[int]:
        """Returns the places of requests, those with images first, and of either kind the longest."""

        def length(place: int) -> tuple[bool, int]:
            sizes = [size_of(picture) for picture in requests[place].pictures()]
            tokens = self.encoding.tokens("\n".join(requests[place].texts()))
            return bool(sizes), len(tokens) + sum(map(math.prod, sizes)) // _PIXELS_PER_TOKEN

        return sorted(range(len(requests)), key=length, reverse=True)

    def _batches(
        self,
        requests: Sequence[Request],
        order: Sequence[int],
        size: int,
        work: Callable[[EncodedBatch, Sequence[int]], list[Result]],
        *,
        with_spans: bool = False,
    ) -> Iterator[Batch[Result]]:
        """Batches neighbours in the order, those with images apart, and encodes ahead in another thread."""

        def batches() -> Iterator[list[int]]:
            for _, run in itertools.groupby(order, lambda place: bool(requests[place].pictures())):
                while batch := list(itertools.islice(run, size)):
                    yield batch

        def encode(places: Sequence[int]) -> tuple[Sequence[int], EncodedBatch]:
            messages = [requests[place].messages for place in places]
            return places, self.encoding.encode(messages, with_spans=with_spans)

        advice = (
            "Use a smaller batch_size, make images smaller (max_patches=…, max_pixels=…), or spread the model over "
            "GPUs (device_map=auto). What is in the store isn't computed again."
        )
        for places, batch in read_ahead(batches(), encode):
            problem = f"insertion: {len(places)} requests at once don't fit into the memory of the device"
            with explained(problem, advice, (torch.OutOfMemoryError,)):
                results = work(batch, places)
            yield list(zip(places, results, strict=True))


@contextmanager
def explained(problem: str, advice: str, errors: tuple[type[Exception], ...] = OF_LOADING) -> Iterator[None]:
    """Turns errors of a library into one that says what fails, why, and what to do."""
    try:
        yield
    except errors as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise SettingsError(f"{problem} ({reason:.300}). {advice}") from error


@contextmanager
def captured_states(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """Collects the states after the final norm of the first forward pass, shape (requests, L, hidden size)."""
    states: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: Any) -> None:
        if not states:
            states.append(output.last_hidden_state)

    with model.base_model.register_forward_hook(keep):
        yield states


def pooled(states: Sequence[torch.Tensor], masks: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the features of each request, means over the question's tokens and over the image's: (2, hidden size)."""
    length = masks[0].shape[1]
    if states[0].shape[1] != length:
        raise CultureTasksError(
            f"insertion: the model turned {length} input tokens into {states[0].shape[1]} states. Expected one token "
            "for each image patch in input_ids: update the checkpoint's processor."
        )
    return [
        torch.stack([row[mask].float().mean(0) for mask in row_masks.to(row.device)])
        for row, row_masks in zip(states[0], masks, strict=True)
    ]
