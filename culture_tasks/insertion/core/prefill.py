"""Features of the first forward pass of a generation, which can end there.

Hidden states are averaged over the tokens of the question and over those of the image (section 4.1). Both are found in
the encoded request itself: no model is known by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.errors import CultureTasksError, DataError
from culture_tasks.insertion.core.encoding import Encoded

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Gate = Callable[[torch.Tensor], bool]
"""Decides by the features of a request, shape (2, hidden size), whether generation stops after the prefill."""


@contextmanager
def captured_states(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """Collects the last layer's hidden states of the first forward pass, shape (requests, L, hidden size).

    These are the states after the final norm, which transformers calls ``last_hidden_state``.
    """
    states: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: Any) -> None:
        if not states:
            states.append(output.last_hidden_state)

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield states
    finally:
        handle.remove()


def pooled(states: Sequence[torch.Tensor], masks: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the features of each request: means over the question's tokens, then over the image's.

    They have the shape (2, hidden size), float32. The states are those of :func:`captured_states`, the masks those of
    :func:`question_and_image`.
    """
    length = masks[0].shape[1]
    if states[0].shape[1] != length:
        raise CultureTasksError(
            f"insertion: the model turned {length} input tokens into {states[0].shape[1]} hidden states. "
            "Expected a processor that puts one token for each image patch into input_ids: update the checkpoint's."
        )
    return [
        torch.stack([row[mask].float().mean(0) for mask in both.to(row.device)])
        for row, both in zip(states[0], masks, strict=True)
    ]


def question_and_image(encoded: Encoded, row: int, question: str, image_tokens: Sequence[int]) -> torch.Tensor:
    """Returns which tokens of a request are the last occurrence of the question, and which are the image's.

    A processor replaces each image placeholder of the prompt by as many tokens as the image needs before it counts
    characters. So the question is found by its distance from the end, which no image may separate from it.
    """
    ids = encoded.inputs["input_ids"][row]
    visual = torch.isin(ids, torch.tensor(list(image_tokens), dtype=ids.dtype))
    if not visual.any():
        raise DataError(f"insertion: the request {question!r:.80} has no image. Expected one.")
    spans, prompt, question = encoded.spans[row], encoded.prompts[row], question.strip()
    start = prompt.rfind(question)
    if start < 0 or not question:
        raise DataError(
            f"insertion: the question {question!r:.80} isn't in the prompt that the chat template made. Expected a "
            "template that keeps the user's text as it is."
        )
    start += max(end for _, end in spans) - encoded.prompt_ends[row]
    mask = torch.tensor([first < start + len(question) and last > start for first, last in spans])
    if not mask.any() or visual.nonzero().max() > mask.nonzero().min():
        raise DataError(f"insertion: an image comes after {question!r:.80}. Expected the question after all images.")
    return torch.stack([mask, visual])
