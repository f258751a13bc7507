"""What a paired test of two models gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from culture_tasks.metrics.resampling import Floats

Method = Literal[
    "paired t", "clustered paired t", "sign flips", "all sign flips", "bootstrap", "McNemar exact", "McNemar mid-p"
]
"""How a difference was tested."""


class Difference(NamedTuple):
    """A paired difference of two models, in the unit of the scores.

    Attributes:
        difference: Mean of first minus second; positive where the first is higher.
        low: Lower end of its interval, or NaN.
        high: Upper end, or NaN.
        p: Two-sided p value of the hypothesis that there is no difference, or NaN.
        n: Number of items that both have a score for.
        method: How ``p`` was computed.
        clusters: Number of clusters that the items belong to.
        sd: Standard deviation of a difference, as :func:`~culture_tasks.metrics.significance.items_needed` wants it:
            the standard error times the square root of ``n``, so that clusters count.
        reason: Why a number is NaN or not what the method gives; None where all is well.
    """

    difference: float
    low: float
    high: float
    p: float
    n: int
    method: Method
    clusters: int = 0
    sd: float = math.nan
    reason: str | None = None


def differences_of(a: ArrayLike, b: ArrayLike) -> Floats:
    """Returns the first's scores less the second's, NaN where either is.

    Raises:
        ValueError: If lengths differ or a score is infinite.
    """
    ours, theirs = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(
            f"comparison: two lists of one length are needed; came shapes {ours.shape} and {theirs.shape}."
        )
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("comparison: a score is infinite; write NaN for a missing one.")
    return ours - theirs
