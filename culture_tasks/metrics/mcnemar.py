"""McNemar's test of right and wrong answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from culture_tasks.metrics.differences import Difference, differences_of
from culture_tasks.metrics.means import check_confidence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from culture_tasks.metrics.differences import Method

EXACT_BELOW = 25
"""McNemar's test is exact with fewer discordant pairs than this, and mid-p from there on."""


def mcnemar(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Difference:
    """McNemar's test of two models' right/wrong answers to independent items.

    Only discordant items count: with k of m in favour of the first, p is the two-sided binomial probability of a count
    as far from m / 2. With fewer than :data:`EXACT_BELOW` it is exact, which errs on the safe side; from there on it
    is mid-p, which counts half of the observed count's own probability and is nearer to its nominal rate. The interval
    of the difference of shares is Wald's after adding one half to each of the four counts, so it has a width where the
    models agree on all. For items that share a cluster use
    :func:`~culture_tasks.metrics.comparison.paired_permutation`.

    Args:
        a: The first model's answers: 1 right, 0 wrong, NaN without a score.
        b: The second's, in the same order.
        confidence: Share of intervals meant to hold the true difference, between 0 and 1.

    Returns:
        The difference of the shares of right answers, as a fraction. No common item: all NaN. No discordant
        item: p is 1.

    Raises:
        ValueError: If lengths differ, a value is none of 0, 1 and NaN, or the confidence is out of range.

    Source: McNemar (1947); Fagerland, Lydersen and Laake (2013) for mid-p; Agresti and Min (2005) for the interval.
    """
    differences = differences_of(a, b)
    if not (_right_or_wrong(a) and _right_or_wrong(b)):
        raise ValueError("mcnemar: needs 1 for right, 0 for wrong and NaN for no score; came another number.")
    check_confidence(confidence)
    n = int(np.count_nonzero(~np.isnan(differences)))
    ours, theirs = int(np.count_nonzero(differences == 1.0)), int(np.count_nonzero(differences == -1.0))
    method: Method = "McNemar exact" if ours + theirs < EXACT_BELOW else "McNemar mid-p"
    if n == 0:
        return Difference(math.nan, math.nan, math.nan, math.nan, 0, method, reason="no item has both scores")
    low, high = _agresti_min(ours, theirs, n, confidence)
    p = _binomial_p(min(ours, theirs), ours + theirs, mid=method == "McNemar mid-p")
    sd = math.sqrt(max(ours + theirs - (ours - theirs) ** 2 / n, 0.0) / max(n - 1, 1))
    return Difference((ours - theirs) / n, low, high, p, n, method, n, sd)


def _right_or_wrong(scores: ArrayLike) -> bool:
    values = np.asarray(scores, dtype=np.float64)
    return bool((np.isnan(values) | (values == 0.0) | (values == 1.0)).all())


def _binomial_p(fewer: int, of: int, *, mid: bool) -> float:
    tail = float(stats.binom.cdf(fewer, of, 0.5))
    if mid:
        tail -= 0.5 * float(stats.binom.pmf(fewer, of, 0.5))
    return min(1.0, 2.0 * tail)


def _agresti_min(ours: int, theirs: int, n: int, confidence: float) -> tuple[float, float]:
    discordant, surplus, size = ours + theirs + 1.0, float(ours - theirs), n + 2.0
    reach = float(stats.norm.ppf((1.0 + confidence) / 2.0)) * math.sqrt(discordant - surplus**2 / size) / size
    return max(-1.0, surplus / size - reach), min(1.0, surplus / size + reach)
