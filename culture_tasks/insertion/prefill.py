"""Features of the first forward pass of a generation, which can end there.

Hidden states are averaged over the tokens of the question and over those that stand for the image. Both are found in
the encoded request itself: no model is known by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.errors import CultureTasksError, DataError
from culture_tasks.insertion.encoding import Spans

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Features:
    """Means of the last layer's hidden states (section 4.1), as float32.

    The last layer's states are those after the final norm, which transformers calls ``last_hidden_state``.

    Attributes:
        question: Over the question's tokens, shape (hidden size,).
        visual: Over the image's tokens, shape (hidden size,).
    """

    question: torch.Tensor
    visual: torch.Tensor


@dataclass(frozen=True, slots=True)
class Masks:
    """Which tokens of a request are pooled.

    Attributes:
        question: The question's, shape (L,).
        visual: The image's, shape (L,).
    """

    question: torch.Tensor
    visual: torch.Tensor


Gate = Callable[[Features], bool]
"""Decides whether generation stops after the prefill of a request."""


class StopIf:
    """A stopping criterion that decides once, after the first token."""

    def __init__(self, decide: Callable[[], bool]) -> None:
        self._decide = decide
        self._decided: torch.Tensor | None = None

    @property
    def stopped(self) -> bool:
        """Whether it ended the generation."""
        return self._decided is not None and bool(self._decided.any())

    def __call__(self, input_ids: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        """Says for each sequence whether to stop, shape (sequences,)."""
        if self._decided is None:
            stops = self._decide()
            self._decided = torch.full((input_ids.shape[0],), stops, dtype=torch.bool, device=input_ids.device)
        return self._decided


@contextmanager
def captured_states(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """Collects the last layer's hidden states of the first forward pass, shape (requests, L, hidden size)."""
    states: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: Any) -> None:
        if not states:
            states.append(output.last_hidden_state)

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield states
    finally:
        handle.remove()


def pooled(states: Sequence[torch.Tensor], masks: Sequence[Masks]) -> list[Features]:
    """Returns the means of captured states over the tokens of each request's question and image.

    Args:
        states: What :func:`captured_states` collected.
        masks: The masks of each request.

    Raises:
        CultureTasksError: If there are more or fewer states than tokens.
    """
    length = masks[0].question.shape[0]
    if states[0].shape[1] != length:
        raise CultureTasksError(
            f"insertion: the model turned {length} input tokens into {states[0].shape[1]} hidden states. "
            "Needed is a processor that puts one token for each image patch into input_ids: update the checkpoint's."
        )
    return [
        Features(*(row[mask.to(row.device)].float().mean(0) for mask in (each.question, each.visual)))
        for row, each in zip(states[0], masks, strict=True)
    ]


def visual_mask(input_ids: torch.Tensor, image_token_ids: Sequence[int]) -> torch.Tensor:
    """Returns which tokens stand for image patches.

    Args:
        input_ids: Token ids, shape (L,).
        image_token_ids: Ids that stand for a patch.

    Returns:
        Booleans, shape (L,).
    """
    ids = torch.tensor(list(image_token_ids), dtype=input_ids.dtype, device=input_ids.device)
    return torch.isin(input_ids, ids)


def question_mask(spans: Spans, visual: torch.Tensor, prompt: str, prompt_end: int, question: str) -> torch.Tensor:
    """Returns which tokens overlap the question's last occurrence in the prompt.

    A processor replaces each image placeholder of the prompt by as many tokens as the image needs before it counts
    characters. So the question is found by its distance from the end if no image comes after it, else by its distance
    from the start if none comes before it.

    Args:
        spans: Characters of each token in the text that the processor made, length L.
        visual: Which tokens stand for the image, shape (L,).
        prompt: The text before placeholders were replaced.
        prompt_end: End of the last token of ``prompt``; tokenizers that drop trailing blanks drop them in both texts.
        question: What to look for.

    Returns:
        Booleans, shape (L,).

    Raises:
        DataError: If the question isn't in the prompt, or is between two images.
    """
    start = prompt.rfind(question.strip())
    if start < 0 or not question.strip():
        raise DataError(
            f"insertion: the question {question!r:.80} isn't in the prompt that the chat template made. Needed "
            "is a template that keeps the user's text as it is."
        )
    growth = max(end for _, end in spans) - prompt_end
    for shift, after_images in ((growth, True), (0, False)):
        mask = _overlapping(spans, start + shift, start + shift + len(question.strip()))
        if mask.any() and _one_sided(mask, visual, after_images=after_images):
            return mask
    raise DataError(f"insertion: {question!r:.80} is between two images. Needed is a question after all images.")


def _overlapping(spans: Spans, start: int, end: int) -> torch.Tensor:
    return torch.tensor([first < end and last > start for first, last in spans])


def _one_sided(mask: torch.Tensor, visual: torch.Tensor, *, after_images: bool) -> bool:
    """Whether the masked tokens come after all visual ones, or else before all of them."""
    places, seen = mask.nonzero().flatten(), visual.nonzero().flatten().cpu()
    if len(seen) == 0:
        return True
    return bool(seen.max() < places.min()) if after_images else bool(seen.min() > places.max())
