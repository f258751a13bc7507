"""One adapter for every model that transformers loads as ``AutoModelForImageTextToText``; no branches on model names.

It assumes that the processor has a chat template and a fast tokenizer, image patches are tokens of one id
in ``input_ids``, and ``model.base_model`` returns ``last_hidden_state``. A model that breaks one of these gets an error
that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.errors import DataError, SettingsError
from culture_tasks.insertion.decoding import Decoding
from culture_tasks.insertion.identity import ModelIdentity, identify
from culture_tasks.insertion.prefill import (
    Features,
    Gate,
    Spans,
    StopIf,
    captured_states,
    pooled,
    question_mask,
    visual_mask,
)
from culture_tasks.insertion.queries import Message, Query, images_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin


ANSWERS_VERSION = 1
"""Raise it whenever a change of code changes what a model is shown, how its answer is decoded, or its features.

It is part of :attr:`~culture_tasks.insertion.identity.ModelIdentity.run`, so that stored answers and features of
older versions are not used then. For a change in one method, raise that method's own version.
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said.

    Attributes:
        text: The answer without special tokens.
        tokens: Its token ids, special ones too.
        activated: Index of the insertion that was used, from 0; None if none was, or if a method uses all.
        similarity: Highest router score of the request; None if nothing was compared.
    """

    text: str
    tokens: tuple[int, ...]
    activated: int | None = None
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is loaded.

    Attributes:
        revision: Branch, tag or commit on the Hub.
        dtype: ``auto`` takes the checkpoint's.
        device: The device; None means a GPU if there is one.
        device_map: Spreads the model over devices; takes precedence over ``device``.
        attn_implementation: Attention kernels; None means transformers' choice.
        trust_remote_code: Whether code of the checkpoint is run.
        template: Variables of the chat template. Reasoning is off unless asked for, since answers have 64 tokens.
    """

    revision: str | None = None
    dtype: str = "auto"
    device: str | None = None
    device_map: str | None = None
    attn_implementation: str | None = None
    trust_remote_code: bool = False
    template: Mapping[str, Any] = field(default_factory=lambda: {"enable_thinking": False})


class MultimodalModel:
    """A model with its processor, for one request at a time.

    Args:
        model: The model, which is left frozen and in evaluation mode.
        processor: Its processor.
        source: What the user calls it.
        template: Variables of the chat template.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        processor: ProcessorMixin,
        source: str = "",
        template: Mapping[str, Any] | None = None,
    ) -> None:
        self.model = model.eval().requires_grad_(requires_grad=False)
        self.processor = processor
        self._source = source
        self._template = dict(ModelOptions().template if template is None else template)
        self._identity: ModelIdentity | None = None
        _check(model, processor)

    @classmethod
    def load(cls, pretrained: str, options: ModelOptions | None = None) -> MultimodalModel:
        """Loads a checkpoint.

        Raises:
            SettingsError: If there is no such checkpoint, or it is not a model of images and text.
        """
        from transformers import AutoModelForImageTextToText, AutoProcessor

        options = options or ModelOptions()
        shared = {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}
        place = options.device_map or options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        kernels = {"attn_implementation": options.attn_implementation} if options.attn_implementation else {}
        try:
            processor = AutoProcessor.from_pretrained(pretrained, **shared)
            model = AutoModelForImageTextToText.from_pretrained(
                pretrained, dtype=options.dtype, device_map=place, **shared, **kernels
            )
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise SettingsError(
                f"insertion: pretrained={pretrained!r} can't be loaded as a model of images and text "
                f"({str(error).strip().splitlines()[0]:.300}). Name a checkpoint of AutoModelForImageTextToText."
            ) from error
        return cls(model, processor, pretrained, options.template)

    @property
    def identity(self) -> ModelIdentity:
        """Fingerprints of the model, computed once; of the weights as loaded, before any method changed them."""
        if self._identity is None:
            self._identity = identify(
                self.model,
                self.processor,
                source=self._source,
                template_options=self._template,
                version=ANSWERS_VERSION,
            )
        return self._identity

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
        inputs, _ = self._encoded(query.messages())
        return self._answer(inputs, decoding)

    def generate_unless(self, query: Query, decoding: Decoding, gate: Gate) -> Answer | None:
        """Answers a request unless the gate, given the features of its prefill, says stop.

        The gate is asked between the first step of decoding and the second. If it lets the answer pass, decoding
        simply continues with the state that it has: one prefill, whatever kind of cache the model keeps, and the same
        computation as :meth:`generate`.

        Returns:
            The answer, or None if the gate stopped it.
        """
        messages = query.messages()
        inputs, prompt = self._encoded(messages, with_spans=True)
        question, visual = self._masks(inputs, prompt, query.question)
        with captured_states(self.model) as states:
            stop = StopIf(lambda: gate(pooled(states, question, visual)))
            answer = self._answer(inputs, decoding, stopping_criteria=[stop])
        return None if stop.stopped else answer

    def features(self, query: Query) -> Features:
        """Computes the features of a request, with the same prefill as :meth:`generate_unless`.

        Raises:
            DataError: If the request has no image, or the question isn't found in the prompt.
        """
        found: list[Features] = []

        def keep(features: Features) -> bool:
            found.append(features)
            return True

        self.generate_unless(query, Decoding(max_new_tokens=1), keep)
        return found[0]

    def _answer(self, inputs: Mapping[str, Any], decoding: Decoding, **options: Any) -> Answer:
        tokenizer = self.processor.tokenizer
        padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        ids = self.model.generate(**inputs, **decoding.options(), pad_token_id=padding, **options)
        tokens = ids[0, inputs["input_ids"].shape[1] :].tolist()
        return Answer(tokenizer.decode(tokens, skip_special_tokens=True).strip(), tuple(tokens))

    def _encoded(self, messages: Sequence[Message], *, with_spans: bool = False) -> tuple[dict[str, Any], str]:
        """Returns the model's inputs, and the prompt before image placeholders were replaced."""
        # The processor would take a variable that the template doesn't have for an argument of its own.
        known = {name: value for name, value in self._template.items() if name in str(self.processor.chat_template)}
        prompt = self.processor.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True, **known)
        extra = {"return_offsets_mapping": True} if with_spans else {}
        inputs = self.processor(text=[prompt], images=images_of(messages) or None, return_tensors="pt", **extra)
        return dict(inputs.to(self.device, self.model.dtype)), prompt

    def _masks(self, inputs: dict[str, Any], prompt: str, question: str) -> tuple[torch.Tensor, torch.Tensor]:
        """Removes the spans from the inputs, and returns the masks of question and visual tokens, on the device."""
        spans: Spans = inputs.pop("offset_mapping")[0].tolist()
        visual = visual_mask(inputs["input_ids"][0], _image_token_ids(self.model, self.processor))
        if not visual.any():
            raise DataError(f"insertion: the request {question!r:.80} has no image. Needed is one.")
        plain = self.processor.tokenizer(prompt, return_offsets_mapping=True)["offset_mapping"]
        prompt_end = max(end for _, end in plain)
        return question_mask(spans, visual, prompt, prompt_end, question).to(self.device), visual


def _image_token_ids(model: PreTrainedModel, processor: ProcessorMixin) -> list[int]:
    holders = (processor, model.config)
    found = (getattr(holder, name, None) for holder in holders for name in ("image_token_id", "image_token_index"))
    return sorted({int(token) for token in found if token is not None})


def _check(model: PreTrainedModel, processor: ProcessorMixin) -> None:
    problems = {
        "its processor has no chat template": getattr(processor, "chat_template", None) is None,
        "its tokenizer is not a fast one": not getattr(getattr(processor, "tokenizer", None), "is_fast", False),
        "no image token is named by its processor or configuration": not _image_token_ids(model, processor),
        "it has no inner model with hidden states": model.base_model is model,
    }
    for problem, found in problems.items():
        if found:
            raise SettingsError(f"insertion: {type(model).__name__} can't be used: {problem}. Name another model.")
