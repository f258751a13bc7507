"""Confidence intervals of one model's score.

Scores are numbers; NaN is an item without a score, which is left out. Items that share an image, a scenario or
a source question are not independent: give their clusters. Nothing here raises for data that are too few or too much
alike: the ends are NaN, and :attr:`Interval.reason` says why.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from culture_tasks.metrics.means import Clusters, Mean, check_confidence, mean_and_error


class Interval(NamedTuple):
    """A score with its confidence interval, in the unit of the values; NaN where there is none.

    Attributes:
        value: The score.
        low: Lower end.
        high: Upper end.
        n: Number of items with a score.
        clusters: Number of clusters that these belong to; ``n`` where each item is one.
        reason: Why the value or an end is NaN; None where none is.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    clusters: int = 0
    reason: str | None = None

    @property
    def text(self) -> str:
        """The score with its interval, such as ``0.924 (0.918, 0.930)``, or ``n/a``."""
        if math.isnan(self.value):
            return "n/a"
        return f"{self.value:.3f}" if math.isnan(self.low) else f"{self.value:.3f} ({self.low:.3f}, {self.high:.3f})"


def mean_interval(values: ArrayLike, clusters: Clusters | None = None, confidence: float = 0.95) -> Interval:
    """Interval of a mean score, by Student's t.

    Formula: mean +- t * se with G - 1 degrees of freedom for G clusters, and the cluster-robust se (CR1) of
    :func:`~culture_tasks.metrics.means.mean_and_error`. Without clusters this is the textbook interval of a mean. It is
    symmetric and not cut at the ends of a scale. Assumes independent clusters, enough of them for their sums to be
    near normal: some thirty, more if sizes or scores are very uneven (in simulations of ten clusters of uneven size,
    95 % intervals held the mean in 93 % of cases). For right/wrong scores :func:`share_interval` is
    better near 0 and 1.

    Args:
        values: One score per item; NaN where there is none.
        clusters: The cluster of each item, such as its image; None makes each a cluster.
        confidence: Share of intervals meant to hold the true mean, between 0 and 1.

    Returns:
        The interval. Nothing scored: all NaN. One cluster, or clusters with no spread at all: the value with NaN ends,
        for a width of zero would claim certainty.

    Raises:
        ValueError: If a value is infinite, clusters don't fit, or the confidence is out of range.

    Source: Student (1908); Liang and Zeger (1986) for clusters; Miller (2024), "Adding Error Bars to Evals".

    Examples:
        >>> interval = mean_interval([3.0, 5.0, 4.0, 4.0])
        >>> interval.value, round(interval.low, 2), round(interval.high, 2)
        (4.0, 2.7, 5.3)
        >>> mean_interval([3.0, 5.0], clusters=["one image", "one image"]).reason
        "one cluster: its spread can't be known"
    """
    return interval_of(mean_and_error(values, clusters), confidence)


def interval_of(mean: Mean, confidence: float = 0.95) -> Interval:
    """Interval of a score with a standard error, by Student's t: see :func:`mean_interval`.

    Examples:
        >>> from culture_tasks.metrics.resampling import bootstrapped
        >>> interval = interval_of(bootstrapped(0.5, np.array([0.25, 0.75, 0.5]), n=60, clusters=30))
        >>> round(interval.low, 2), round(interval.high, 2)
        (-0.02, 1.02)
    """
    check_confidence(confidence)
    point = Interval(mean.value, n=mean.n, clusters=mean.clusters, reason=mean.reason)
    if mean.reason:
        return point
    reach = t_quantile(confidence, mean.clusters) * mean.error
    return point._replace(low=mean.value - reach, high=mean.value + reach)


def proportion_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share of independent right/wrong items, as a fraction; all NaN if ``n`` is 0.

    Formula: (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n). Always within 0 to 1, and of
    positive width for 0 and n successes too.

    Raises:
        ValueError: If not 0 <= successes <= n, or the confidence is not between 0 and 1.

    Source: Wilson (1927); recommended by Brown, Cai and DasGupta (2001).

    Examples:
        >>> interval = proportion_interval(8, 10)
        >>> interval.value, round(interval.low, 3), round(interval.high, 3)
        (0.8, 0.49, 0.943)
    """
    check_confidence(confidence)
    if not 0 <= successes <= n:
        raise ValueError(f"proportion_interval: {successes} successes of {n}; expected 0 <= successes <= n.")
    if n == 0:
        return Interval(reason="no item has a score")
    low, high = wilson(successes / n, n, float(special.ndtri((1.0 + confidence) / 2.0)))
    return Interval(successes / n, low, high, n=n, clusters=n)


def share_interval(values: ArrayLike, clusters: Clusters | None = None, confidence: float = 0.95) -> Interval:
    """Interval of the share of right items where items may share a cluster, as a fraction.

    Formula: Wilson's, with the number of items divided by the design effect (variance of the mean with clusters over
    that without, and at least 1), and t with G - 1 degrees of freedom in place of z. Where all items are right or all
    are wrong no design effect can be had, and each cluster counts as one item. Without clusters this is
    :func:`proportion_interval`. Still too narrow where the few wrong items lie in very few clusters: in simulations of
    50 clusters of 5, 95 % intervals held a share of 0.9 in 95 % of cases and one of 0.97 in 89 % (93 % and 85 % for
    :func:`mean_interval`).

    Args and errors are those of :func:`mean_interval`; values are 1 for a right item, 0 for a wrong one, NaN without
    a score. Nothing scored: all NaN. One cluster: the value with NaN ends.

    Source: Korn and Graubard (1998) for the effective number of items; Wilson (1927).

    Examples:
        >>> interval = share_interval([1, 1, 0, 0, 1, 1], clusters=["a", "a", "b", "b", "c", "c"])
        >>> round(interval.value, 3), round(interval.low, 3), round(interval.high, 3)
        (0.667, 0.052, 0.987)
    """
    scores = np.asarray(values, dtype=np.float64)
    if not np.isin(scores[~np.isnan(scores)], (0.0, 1.0)).all():
        raise ValueError(
            "share_interval: expected 1 for right, 0 for wrong and NaN for no score; found another number."
        )
    if clusters is None:
        return proportion_interval(int(np.nansum(scores)), int(np.count_nonzero(~np.isnan(scores))), confidence)
    check_confidence(confidence)
    mean = mean_and_error(scores, clusters)
    if mean.clusters < 2:
        return Interval(mean.value, n=mean.n, clusters=mean.clusters, reason=mean.reason)
    item_variance = mean.value * (1.0 - mean.value) / max(mean.n - 1, 1)
    effective = mean.n / max(mean.error**2 / item_variance, 1.0) if item_variance > 0.0 else float(mean.clusters)
    low, high = wilson(mean.value, effective, t_quantile(confidence, mean.clusters))
    return Interval(mean.value, low, high, n=mean.n, clusters=mean.clusters)


def t_quantile(confidence: float, clusters: float) -> float:
    """Two-sided quantile of Student's t with one degree of freedom less than there are clusters.

    Examples:
        >>> round(t_quantile(0.95, clusters=10), 3)
        2.262
    """
    return float(special.stdtrit(clusters - 1, (1.0 + confidence) / 2.0))


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Returns the ends of Wilson's interval of a share of n independent items, which may be a fraction.

    Examples:
        >>> low, high = wilson(0.8, 10, 1.96)
        >>> round(low, 3), round(high, 3)
        (0.49, 0.943)
    """
    square = quantile**2 / n
    middle = (share + square / 2.0) / (1.0 + square)
    reach = math.sqrt(square * (share * (1.0 - share) + square / 4.0)) / (1.0 + square)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
