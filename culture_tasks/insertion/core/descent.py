"""Steps of gradient descent on one insertion sample."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import torch

from culture_tasks.insertion.core.queries import Insertion

logger = logging.getLogger(__name__)


def descend(
    optimizer: torch.optim.Optimizer,
    loss: Callable[[], torch.Tensor],
    steps: int,
    *,
    insertion: Insertion,
    method: str,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Makes steps, and warns if the loss becomes infinite or no number.

    Args:
        optimizer: The optimizer of what is trained.
        loss: Computes the loss.
        steps: Number of steps.
        insertion: The sample, for the message.
        method: The method's name, for messages.
        after: Is called after each step.
    """
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.enable_grad():
            value = loss()
        value.backward()
        optimizer.step()
        after()
        losses.append(float(value.detach()))
    note_losses(losses[0], losses[-1], insertion=insertion, method=method)


def note_losses(first: float, last: float, *, insertion: Insertion, method: str) -> None:
    """Logs the losses of the first and the last step."""
    if not math.isfinite(last):
        logger.warning("insertion: %s: the loss of %.80r is not finite. Lower learning_rate.", method, insertion.answer)
    logger.debug("insertion: %s: loss %.4g at the first step, %.4g at the last", method, first, last)
