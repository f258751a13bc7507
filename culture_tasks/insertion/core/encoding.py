"""How conversations become the inputs of a model: one way for every family.

A conversation is rendered by the chat template, then tokenized together with its images. A template that writes the
begin-of-text token itself must not get a second one from the tokenizer, and one that doesn't write it needs the
tokenizer's: the rule is that of transformers' own ``apply_chat_template``.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.insertion.core.requests import Message, loaded, pictures_of, text_part

if TYPE_CHECKING:
    from transformers import PreTrainedModel, ProcessorMixin

_LIMITS = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}
"""Options of image processors, with the entry of ``size`` that holds one in processors that have it there."""

IGNORED = -100
"""The label that transformers' losses leave out."""


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch of conversations as a model's inputs, on the CPU, padded on the left.

    ``prompts`` are the texts before image placeholders were replaced. On demand there are the spans of each
    conversation's tokens (the characters from and to; (0, 0) for special tokens and padding), and the end of the last
    token of each text: some tokenizers drop trailing blanks.
    """

    inputs: dict[str, Any]
    prompts: list[str]
    spans: Sequence[Sequence[Sequence[int]]] = ()
    prompt_ends: Sequence[int] = ()


class Encoding:
    """The processor of a model with the user's options."""

    def __init__(
        self, processor: ProcessorMixin, template: Mapping[str, Any], images: Mapping[str, int] | None = None
    ) -> None:
        self.processor = processor
        self._template = dict(template)
        self._images = dict(images or {})
        # A fast tokenizer keeps its padding as state, so threads do not share one.
        self._copies = threading.local()
        self._copies.processor = processor
        image_processor = processor.image_processor
        declared = getattr(getattr(image_processor, "valid_kwargs", None), "__annotations__", {})
        for name in self._images:
            if name not in declared and not hasattr(image_processor, name):
                bounds = sorted(key for key in declared if key.startswith(("min_", "max_")))
                raise SettingsError(
                    f"insertion: {type(image_processor).__name__} has no option {name!r}.{nearest(name, bounds)} "
                    f"Expected {', '.join(bounds) or 'none'}."
                )

    @property
    def settings(self) -> Mapping[str, Any]:
        """The user's options, for fingerprints."""
        return {"template": self._template, "images": self._images}

    def encode(self, conversations: Sequence[Sequence[Message]], *, with_spans: bool = False) -> EncodedBatch:
        """Encodes conversations together; either all of them have images, or none."""
        prompts = [self._render(messages) for messages in conversations]
        images = [list(map(loaded, pictures_of(messages))) for messages in conversations]
        options: dict[str, Any] = {"images": images} if any(images) else {}
        if options and self._images:
            options["images_kwargs"] = self._image_options()
        if with_spans:
            options["return_offsets_mapping"] = True
        begin = {"add_special_tokens": self._lacks_begin(prompts[0])}
        processor = self._thread_processor()
        options = {"return_tensors": "pt", "padding": True, "padding_side": "left", **begin, **options}
        inputs = dict(processor(text=prompts, **options))
        if not with_spans:
            return EncodedBatch(inputs, prompts)
        plain = processor.tokenizer(prompts, return_offsets_mapping=True, **begin)["offset_mapping"]
        spans = inputs.pop("offset_mapping").tolist()
        return EncodedBatch(inputs, prompts, spans, [max(last for _, last in row) for row in plain])

    def encode_answered(
        self, conversations: Sequence[Sequence[Message]], answers: Sequence[str], ends: Sequence[int]
    ) -> EncodedBatch:
        """Encodes conversations with answers and one of the ``ends`` of a generation; ``labels`` are of these alone."""
        batch, end = self.encode(conversations), self._end_of_answer(ends)
        rows = [torch.tensor([*self.tokens(answer), *([] if end is None else [end])]) for answer in answers]
        pad = torch.nn.utils.rnn.pad_sequence
        ids = pad(rows, batch_first=True, padding_value=padding_token(self.processor.tokenizer))
        mask = pad([torch.ones_like(row) for row in rows], batch_first=True)
        prompt = batch.inputs["input_ids"]
        added = {"input_ids": ids, "attention_mask": mask}
        # Other inputs with a value for each token (types of tokens) take the answer for text, which is 0 everywhere.
        inputs = {
            name: torch.cat([value, added.get(name, torch.zeros_like(ids)).to(value.dtype)], dim=1)
            if isinstance(value, torch.Tensor) and value.shape == prompt.shape
            else value
            for name, value in batch.inputs.items()
        }
        unanswered = torch.full_like(prompt, IGNORED)
        inputs["labels"] = torch.cat([unanswered, ids.masked_fill(mask == 0, IGNORED)], dim=1)
        return EncodedBatch(inputs, batch.prompts)

    def _end_of_answer(self, ends: Sequence[int]) -> int | None:
        """Returns the token that ends an answer in a conversation: the first after it that also ends a generation."""
        answer = "culture"
        request: list[Message] = [{"role": "user", "content": [text_part("?")]}]
        answered = [*request, {"role": "assistant", "content": [text_part(answer)]}]
        try:
            rendered = self._render(answered, asks=False)
        except Exception:  # noqa: BLE001 - templates are programs; one that can't show an answer says nothing about it
            rendered = ""
        ending = rendered.rpartition(answer)[2]
        return next((token for token in self.tokens(ending) if token in ends), next(iter(ends), None))

    def _image_options(self) -> dict[str, Any]:
        """Returns the image options as a call of the processor takes them: limits that ``size`` holds are set there."""
        size = dict(getattr(self.processor.image_processor, "size", None) or {})
        limits = {_LIMITS[name]: value for name, value in self._images.items() if _LIMITS.get(name) in size}
        arguments = {name: value for name, value in self._images.items() if _LIMITS.get(name) not in size}
        return {**arguments, "size": {**size, **limits}} if limits else arguments

    def tokens(self, text: str) -> list[int]:
        """Returns the tokens of a text, without those that begin and end one."""
        tokens: list[int] = self._thread_processor().tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokens

    def _thread_processor(self) -> Any:
        """Returns the processor of this thread."""
        if not hasattr(self._copies, "processor"):
            self._copies.processor = copy.deepcopy(self.processor)
        return self._copies.processor

    def _lacks_begin(self, prompt: str) -> bool:
        """Returns whether the tokenizer still has to write the token that begins a text."""
        begin = self.processor.tokenizer.bos_token
        return begin is None or not prompt.startswith(begin)

    def _render(self, messages: Sequence[Message], *, asks: bool = True) -> str:
        # The processor takes a variable that the template doesn't have for one of the processor's arguments.
        variables = {name: value for name, value in self._template.items() if name in str(self.processor.chat_template)}
        options = {"tokenize": False, "add_generation_prompt": asks, **variables}
        prompt: str = self.processor.apply_chat_template(list(messages), **options)
        return prompt


def question_and_image(
    batch: EncodedBatch, questions: Sequence[str], image_tokens: Sequence[int]
) -> list[torch.Tensor]:
    """Returns for each row which tokens are the last occurrence of its question, and which are the image's, (2, L)."""
    return [_question_and_image(batch, row, question.strip(), image_tokens) for row, question in enumerate(questions)]


def _question_and_image(batch: EncodedBatch, row: int, question: str, image_tokens: Sequence[int]) -> torch.Tensor:
    """Finds the question by its distance from the end, which no image may separate from it.

    A processor replaces each image placeholder of the prompt by as many tokens as the image needs before it counts
    characters.
    """
    ids = batch.inputs["input_ids"][row]
    visual = torch.isin(ids, torch.tensor(list(image_tokens), dtype=ids.dtype))
    if not visual.any():
        raise DataError(f"insertion: the request {question!r:.80} has no image. Expected one.")
    spans, prompt = batch.spans[row], batch.prompts[row]
    start = prompt.rfind(question)
    if start < 0 or not question:
        raise DataError(
            f"insertion: the question {question!r:.80} isn't in the prompt that the chat template made. Expected a "
            "template that keeps the user's text as it is."
        )
    start += max(end for _, end in spans) - batch.prompt_ends[row]
    mask = torch.tensor([first < start + len(question) and last > start for first, last in spans])
    if not mask.any() or visual.nonzero().max() > mask.nonzero().min():
        raise DataError(f"insertion: an image comes after {question!r:.80}. Expected the question after all images.")
    return torch.stack([mask, visual])


def image_token_ids(model: PreTrainedModel, processor: ProcessorMixin) -> list[int]:
    """Returns the ids of tokens that are image patches: the model's, or the processor's if it names none."""
    for holder in (model.config, processor):
        ids = (getattr(holder, name, None) for name in ("image_token_id", "image_token_index"))
        tokens = sorted({int(token) for token in ids if token is not None})
        if tokens:
            return tokens
    return []


def ends_of_generation(model: PreTrainedModel) -> tuple[int, ...]:
    """Returns the tokens that end a generation, the checkpoint's first; none if generation never ends early."""
    configured = model.generation_config.eos_token_id if model.generation_config is not None else None
    if configured is None:
        return ()
    return tuple(int(token) for token in (configured if isinstance(configured, list | tuple) else [configured]))


def padding_token(tokenizer: Any) -> int:
    """Returns the token that pads, or the one that ends a text if there is none."""
    return int(tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
