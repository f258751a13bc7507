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

from culture_tasks.metrics.means import Clusters, Floats, Mean, check_confidence, mean_and_error

NEAR_AN_END = 0.2
"""Part of a scale at either end in which Student's t leaves out too many means."""

LARGE_CLUSTER = 0.25
"""Share of the items from which on one cluster decides how far an interval can be relied on."""


_TILTS = (-7.0, 14.0)
"""Between which the logarithm of a tilt is sought, for some hundred thousand scores and for a handful."""

_HALVINGS = 20
"""Halvings of that range: to 2e-5, which moves a bound by less than a thousandth of the interval's width."""


class Interval(NamedTuple):
    """A score with its confidence interval, in the unit of the values; NaN where there is none.

    Attributes:
        value: The score.
        low: Lower end.
        high: Upper end.
        n: Number of items with a score.
        clusters: Number of clusters that these belong to; ``n`` where each item is one.
        reason: Why the value or an end is NaN; None where none is.
        largest: The share of the items that are in the largest cluster; NaN where that isn't known.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    clusters: int = 0
    reason: str | None = None
    largest: float = math.nan

    @property
    def text(self) -> str:
        """The score with its interval, such as ``0.924 (0.918, 0.930)``, or ``n/a``."""
        if math.isnan(self.value):
            return "n/a"
        return f"{self.value:.3f}" if math.isnan(self.low) else f"{self.value:.3f} ({self.low:.3f}, {self.high:.3f})"


def mean_interval(
    values: ArrayLike,
    clusters: Clusters | None = None,
    confidence: float = 0.95,
    *,
    ends: tuple[float, float] | None = None,
) -> Interval:
    """Interval of a mean score, by Student's t, or by Gaffke's bound near the ends of a scale.

    Formula: mean +- t * se, with the cluster-robust se (CR2) and the degrees of freedom of
    :func:`~culture_tasks.metrics.means.mean_and_error`. Without clusters this is the textbook interval of a mean.
    It is symmetric and not cut at the ends of a scale.

    With the ``ends`` of a scale, a mean within a fifth of the scale from one of them, or scores without any spread,
    have Gaffke's bound on either side: the tail of a mean of all scores and one more at the end of the scale, with
    random weights (Dirichlet's, 1 each). Each end of all right answers is then Clopper and Pearson's. Where items share
    clusters, the scores weigh as many as there would be independent ones, as in :func:`share_interval`, which is for
    right and wrong.

    Args:
        values: One score per item; NaN where there is none.
        clusters: The cluster of each item, such as its image; None makes each a cluster.
        confidence: Share of intervals meant to hold the true mean, between 0 and 1.
        ends: Lowest and highest score of the scale; None for a scale without ends.

    Returns:
        The interval. Nothing scored: all NaN. One cluster, or no spread without ends: the value with NaN ends, for a
        width of zero would claim certainty.

    Raises:
        ValueError: If a value is infinite, clusters don't fit, or the confidence is out of range.

    Source: Student (1908); Bell and McCaffrey (2002) for clusters; Gaffke (2005), and Learned-Miller and Thomas (2019),
    for the bound; Lugannani and Rice (1980) for its tail. ``speed/coverage.py`` measures coverage.

    Examples:
        >>> interval = mean_interval([3.0, 5.0, 4.0, 4.0])
        >>> interval.value, round(interval.low, 2), round(interval.high, 2)
        (4.0, 2.7, 5.3)
        >>> interval = mean_interval([5.0] * 20, ends=(1, 5))
        >>> interval.value, round(interval.low, 2), interval.high
        (5.0, 4.32, 5.0)
        >>> mean_interval([3.0, 5.0], clusters=["one image", "one image"]).reason
        "one cluster: its spread can't be known"
    """
    mean = mean_and_error(values, clusters)
    if ends is None or mean.clusters < 2:
        return interval_of(mean, confidence)
    from_end = min(mean.value - ends[0], ends[1] - mean.value)
    if mean.reason or from_end < NEAR_AN_END * (ends[1] - ends[0]):
        return bounded_interval(values, clusters, confidence, ends=ends)
    return interval_of(mean, confidence)


def bounded_interval(
    values: ArrayLike, clusters: Clusters | None = None, confidence: float = 0.95, *, ends: tuple[float, float]
) -> Interval:
    """Interval of the mean of scores on a scale with ends, by Gaffke's bound: see :func:`mean_interval`."""
    mean = mean_and_error(values, clusters)
    interval = interval_of(mean, confidence)
    if mean.clusters < 2:
        return interval
    low, width = ends[0], ends[1] - ends[0]
    scaled = (mean.value - low) / width
    scores = np.asarray(values, dtype=np.float64)
    scores, counts = np.unique(((scores[~np.isnan(scores)] - low) / width).round(12).clip(0.0, 1.0), return_counts=True)
    variance = float(counts @ (scores - scaled) ** 2) / (mean.n - 1) / mean.n
    effect = max((mean.error / width) ** 2 / variance, 1.0) if variance > 0.0 else mean.n / mean.effective
    tail = (1.0 - confidence) / 2.0
    if clusters is not None:
        tail = float(special.ndtr(special.stdtrit(mean.freedom, tail)))
    below = low + width * _gaffke(scores, counts / effect, tail)
    above = low + width * (1.0 - _gaffke(1.0 - scores, counts / effect, tail))
    return interval._replace(low=min(below, mean.value), high=max(above, mean.value), reason=None)


def _gaffke(scores: Floats, counts: Floats, tail: float) -> float:
    """Returns the lower bound of the mean of scores from 0 to 1, which occur so often.

    By a tilt, scores weigh less the higher they are. For each tilt, the bound whose saddle point it is and its tail are
    known in closed form; the tilt is sought at which the tail is the one that is asked for.
    """
    x, k = np.append(scores, 0.0), np.append(counts, 1.0)
    if not x.any():
        return 0.0

    total = float(k.sum())

    def bound_and_tail(log_tilt: float) -> tuple[float, float]:
        tilt = math.exp(log_tilt)
        q = 1.0 + tilt * x
        weights = k / q
        bound = float(weights @ x) / float(weights.sum())
        scale = 1.0 + tilt * bound
        root = -math.sqrt(2.0 * max(float(k @ np.log(q)) - total * math.log(scale), 0.0))
        slope = -tilt * math.sqrt(float(k @ ((x - bound) / q) ** 2))
        density = math.exp(-(root**2) / 2.0) / math.sqrt(2.0 * math.pi)
        return bound, math.erfc(-root / math.sqrt(2.0)) / 2.0 + density * (1.0 / root - 1.0 / slope)

    low, high = _TILTS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if bound_and_tail(middle)[1] > tail else (low, middle)
    return bound_and_tail(low)[0]


def interval_of(mean: Mean, confidence: float = 0.95) -> Interval:
    """Interval of a score with a standard error, by Student's t: see :func:`mean_interval`."""
    check_confidence(confidence)
    point = Interval(mean.value, n=mean.n, clusters=mean.clusters, reason=mean.reason, largest=mean.largest)
    if mean.reason:
        return point
    reach = t_quantile(confidence, mean.freedom + 1.0) * mean.error
    return point._replace(low=mean.value - reach, high=mean.value + reach)


def proportion_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share of independent right/wrong items, as a fraction; all NaN if ``n`` is 0.

    Formula: (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n). Always within 0 to 1, and of
    positive width for 0 and n successes too.

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
    that without, and at least 1), and t in place of z, as in :func:`mean_interval`. Where all items are right or all
    are wrong no design effect can be had, and as many items count as there are clusters of one size that would weigh
    as these do. Without clusters this is :func:`proportion_interval`.

    Args and errors are those of :func:`mean_interval`; values are 1 for a right item, 0 for a wrong one, NaN without
    a score. Nothing scored: all NaN. One cluster: the value with NaN ends.

    Source: Korn and Graubard (1998) for the effective number of items; Wilson (1927). ``speed/coverage.py`` measures
    coverage.

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
    mean = mean_and_error(scores, clusters)
    interval = interval_of(mean, confidence)
    if mean.clusters < 2:
        return interval
    item_variance = mean.value * (1.0 - mean.value) / (mean.n - 1)
    effective = mean.n / max(mean.error**2 / item_variance, 1.0) if item_variance > 0.0 else mean.effective
    low, high = wilson(mean.value, effective, t_quantile(confidence, mean.freedom + 1.0))
    return interval._replace(low=low, high=high, reason=None)


def t_quantile(confidence: float, clusters: float) -> float:
    """Two-sided quantile of Student's t with one degree of freedom less than there are clusters."""
    return float(special.stdtrit(clusters - 1, (1.0 + confidence) / 2.0))


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Returns the ends of Wilson's interval of a share of n independent items, which may be a fraction."""
    square = quantile**2 / n
    middle = (share + square / 2.0) / (1.0 + square)
    reach = math.sqrt(square * (share * (1.0 - share) + square / 4.0)) / (1.0 + square)
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))
