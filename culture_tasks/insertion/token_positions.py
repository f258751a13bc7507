"""Which tokens of an encoded request are the question's, and which stand for the image. No model names."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from culture_tasks.errors import DataError

Spans = Sequence[tuple[int, int]]
"""For each token the range of characters that it covers; (0, 0) for tokens without any."""


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
        DataError: If the question doesn't stand in the prompt, or stands between two images.
    """
    start = prompt.rfind(question.strip())
    if start < 0 or not question.strip():
        raise DataError(
            f"insertion: the question {question!r:.80} doesn't stand in the prompt that the chat template made. Needed "
            "is a template that keeps the user's text as it is."
        )
    growth = max(end for _, end in spans) - prompt_end
    for shift, after_images in ((growth, True), (0, False)):
        mask = _overlapping(spans, start + shift, start + shift + len(question.strip()))
        if mask.any() and _one_sided(mask, visual, after_images=after_images):
            return mask
    raise DataError(f"insertion: {question!r:.80} stands between two images. Needed is a question after all images.")


def _overlapping(spans: Spans, start: int, end: int) -> torch.Tensor:
    return torch.tensor([first < end and last > start for first, last in spans])


def _one_sided(mask: torch.Tensor, visual: torch.Tensor, *, after_images: bool) -> bool:
    """Whether the masked tokens come after all visual ones, or else before all of them."""
    places, seen = mask.nonzero().flatten(), visual.nonzero().flatten().cpu()
    if len(seen) == 0:
        return True
    return bool(seen.max() < places.min()) if after_images else bool(seen.min() > places.max())
