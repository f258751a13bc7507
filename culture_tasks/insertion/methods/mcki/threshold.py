"""The threshold of equation 16, with one rule for the many values that are equally good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold with what it achieves.

    Attributes:
        threshold: tau, in [-1, 1].
        accuracy: Share of the scores that it puts on their side, 0 to 1.
    """

    threshold: float
    accuracy: float


def calibrate(positive: Sequence[float], negative: Sequence[float]) -> Calibration:
    """Chooses the t in [-1, 1] that maximises #(positive scores >= t) + #(negative scores < t).

    The count is the same for all t between two neighbouring scores, so the maximum is reached on whole intervals. The
    rule: of the best intervals the widest, of equally wide ones the highest (which activates less and so preserves
    more), and of that interval the middle.

    Args:
        positive: Router scores of requests that should activate, in [-1, 1].
        negative: Router scores of requests that should not.

    Raises:
        ValueError: If there are no scores at all.
    """
    if not len(positive) + len(negative):
        raise ValueError("calibrate: no scores. Needed is at least one.")
    up = np.sort(np.clip(np.asarray(positive, dtype=np.float64), -1.0, 1.0))
    down = np.sort(np.clip(np.asarray(negative, dtype=np.float64), -1.0, 1.0))
    inner = np.unique(np.concatenate([up, down]))
    lower, upper = np.append(-1.0, inner), np.append(inner, 1.0)  # intervals (lower, upper]; the first holds -1 too
    activated = len(up) - np.searchsorted(up, upper, side="left")
    activated[-1] = 0  # above all scores: t in (highest score, 1]
    abstained = np.searchsorted(down, lower, side="right")
    abstained[0] = 0
    correct = activated + abstained
    allowed = upper > lower
    allowed[0] = True  # t = -1 is allowed even where the lowest score is -1
    best = [index for index in np.flatnonzero(allowed) if correct[index] == correct[allowed].max()]
    chosen = max(best, key=lambda index: (upper[index] - lower[index], index))
    return Calibration(
        float((lower[chosen] + upper[chosen]) / 2), float(correct[chosen] / (len(positive) + len(negative)))
    )
