"""Looking into the first forward pass of a generation, and ending it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from culture_tasks.errors import CultureTasksError

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


Gate = Callable[[Features], bool]
"""Says of a request whether generation must stop after its prefill."""


class StopIf:
    """A stopping criterion that decides once, after the first token."""

    def __init__(self, decide: Callable[[], bool]) -> None:
        self._decide = decide
        self._decided: bool | None = None

    @property
    def stopped(self) -> bool:
        """Whether it ended the generation."""
        return bool(self._decided)

    def __call__(self, input_ids: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        """Says for each sequence whether to stop, shape (sequences,)."""
        if self._decided is None:
            self._decided = self._decide()
        return torch.full((input_ids.shape[0],), self._decided, dtype=torch.bool, device=input_ids.device)


@contextmanager
def captured_states(model: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """Collects the last layer's hidden states of the first forward pass, shape (L, hidden size)."""
    states: list[torch.Tensor] = []

    def keep(_module: object, _inputs: object, output: Any) -> None:
        if not states:
            states.append(output.last_hidden_state[0])

    handle = model.base_model.register_forward_hook(keep)
    try:
        yield states
    finally:
        handle.remove()


def pooled(states: Sequence[torch.Tensor], question: torch.Tensor, visual: torch.Tensor) -> Features:
    """Returns the means of captured states over the question's and the image's tokens.

    Args:
        states: What :func:`captured_states` collected.
        question: Which tokens are the question's, shape (L,).
        visual: Which tokens are the image's, shape (L,).

    Raises:
        CultureTasksError: If there are more or fewer states than tokens.
    """
    if states[0].shape[0] != question.shape[0]:
        raise CultureTasksError(
            f"insertion: the model turned {question.shape[0]} input tokens into {states[0].shape[0]} hidden states. "
            "Needed is a processor that puts one token for each image patch into input_ids: update the checkpoint's."
        )
    hidden = states[0].float()
    return Features(*(hidden[mask.to(hidden.device)].mean(0) for mask in (question, visual)))
