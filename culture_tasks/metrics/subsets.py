"""A designed draw of some items of a benchmark, and the interval of its whole score that the draw gives.

Items are put in order by stratum, then by cluster, both shuffled within; the draw visits that order in steps of the
golden ratio from a random start. So every item has the same chance, n of N; strata and clusters are drawn from evenly,
and a cluster twice only when most have been drawn from; a draw of 400 contains that of 200. Every fifteenth item is a
second one of a cluster that was drawn from shortly before: it tells how alike the items of a cluster are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from culture_tasks.metrics.intervals import Interval, mean_interval, share_interval, t_quantile, wilson
from culture_tasks.metrics.means import Clusters, Floats, Numbers, cluster_numbers, stratum_means

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SECOND = 15
"""Every so many draws one is a second item of a cluster."""


class SamplingFrame(NamedTuple):
    """The items that a subset was drawn from, as far as its interval depends on them.

    Attributes:
        items: Number of all items, N.
        spread: The sum over all clusters of (k / n - K / N) squared, for a cluster with k of the n drawn items and K of
            all N. It is 0 where the draw has the same share of each cluster.
    """

    items: int
    spread: float


def draw(n: int, items: Sequence[str], clusters: Sequence[str], strata: Sequence[str], seed: int = 0) -> list[int]:
    """Returns the places of a subset's items, in the order in which they were drawn; all of them where n is as large.

    It doesn't depend on the order of the items, whose names all differ. All items of a cluster are of one stratum.

    Examples:
        >>> all_six = draw(6, "abcdef", clusters=["x", "x", "y", "y", "z", "z"], strata=[""] * 6)
        >>> sorted(all_six), draw(3, "abcdef", ["x", "x", "y", "y", "z", "z"], [""] * 6) == all_six[:3]
        ([0, 1, 2, 3, 4, 5], True)
    """
    members: dict[str, list[int]] = {}
    for index, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(index)
    numbers = {cluster: _number(seed, cluster) for cluster in members}
    keys = [
        (stratum, numbers[cluster], cluster, _number(seed, cluster, item))
        for item, cluster, stratum in zip(items, clusters, strata, strict=True)
    ]
    size, start = len(keys), _number(seed)
    order = sorted(range(size), key=keys.__getitem__)
    steps = (order[int((start + step * _GOLDEN) % 1.0 * size)] for step in range(size * 4))
    visits = chain(steps, order)  # items that the steps don't meet in so many rounds come last
    remaining = set(range(size))
    places: list[int] = []
    while remaining and len(places) < n:
        place: int | None = None
        if len(places) % _SECOND == _SECOND - 1:
            candidates = remaining.intersection(members[clusters[places[-(_SECOND // 2)]]])
            place = min(candidates, key=keys.__getitem__, default=None)
        if place is None:
            place = next(visit for visit in visits if visit in remaining)
        remaining.remove(place)
        places.append(place)
    return places


def _number(*parts: object) -> float:
    """Returns a number from 0 to 1 that is as good as random, and the same on every machine."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def population(drawn: Sequence[int], clusters: Sequence[Hashable]) -> SamplingFrame:
    """Returns the facts about all items that the interval of a draw depends on.

    Examples:
        >>> population([0, 2], clusters=["a", "a", "b", "b"])
        SamplingFrame(items=4, spread=0.0)
    """
    numbers = cluster_numbers(clusters, np.ones(len(clusters), dtype=np.bool_))
    shares = np.bincount(numbers[list(drawn)], minlength=int(numbers.max()) + 1) / len(drawn)
    return SamplingFrame(len(clusters), float(np.sum((shares - np.bincount(numbers) / len(clusters)) ** 2)))


def subset_interval(
    values: ArrayLike,
    clusters: Clusters | None,
    drawn_from: SamplingFrame,
    confidence: float = 0.95,
    *,
    shares: bool = False,
) -> Interval:
    """Interval of the score that all items of a benchmark would have, from those of a subset of :func:`draw`.

    A score is taken as a mean plus an effect of its cluster, of variance B, plus an effect of its item, of variance W.
    The mean of the subset then departs from that of all items with the variance

        B * spread + W * (1 / n - 1 / N)

    which is 0 once all items are drawn. B and W are those of a one-way analysis of variance of the drawn items; the
    degrees of freedom are Satterthwaite's. Where no cluster was drawn from twice, W can't be told from B, and the
    larger factor is taken for both. It holds for these items alone: the interval for questions like these is that of
    :func:`~culture_tasks.metrics.intervals.mean_interval`, which also stands in where there is no spread to learn from.
    With ``shares``, every score is 1 or 0, and the interval is Wilson's, with the number of independent items that
    would have that variance.

    Source: Searle, Casella and McCulloch (1992), "Variance Components"; Satterthwaite (1946); Valliant, Dorfman and
    Royall (2000), "Finite Population Sampling and Inference", for the prediction of the mean of all items.

    Examples:
        >>> interval = subset_interval([1, 0, 1, 1, 0, 1], None, SamplingFrame(items=12, spread=1 / 12), shares=True)
        >>> round(interval.low, 2), round(interval.high, 2)
        (0.3, 0.91)
    """
    scores = np.asarray(values, dtype=np.float64)
    scored = ~np.isnan(scores)
    plain = (share_interval if shares else mean_interval)(scores, clusters, confidence)
    scores = scores[scored]
    if plain.n < 2 or plain.clusters < 2 or np.ptp(scores) == 0.0:
        return plain
    variance, freedom = _error_of_mean(scores, cluster_numbers(clusters, scored), drawn_from)
    return _with_ends(plain, variance, t_quantile(confidence, freedom + 1.0), shares=shares)


def _error_of_mean(scores: Floats, numbers: Numbers, drawn_from: SamplingFrame) -> tuple[float, float]:
    """Returns the variance of an estimate of the mean of all items, and its degrees of freedom."""
    n, cluster_count = scores.size, int(numbers.max()) + 1
    of_items = max(1.0 / n - 1.0 / drawn_from.items, 0.0)
    between, within, per_cluster = _mean_squares(scores, numbers)
    if n == cluster_count:
        return between * max(drawn_from.spread, of_items), cluster_count - 1.0
    if between <= within:  # no effect of clusters to be seen
        return float(np.var(scores, ddof=1)) * of_items, n - 1.0
    factor = drawn_from.spread / per_cluster
    parts = factor * between, (of_items - factor) * within
    variance = max(sum(parts), 0.0)
    spread = parts[0] ** 2 / (cluster_count - 1) + parts[1] ** 2 / (n - cluster_count)
    return variance, max(variance**2 / spread, 1.0) if spread else cluster_count - 1.0


def _with_ends(interval: Interval, variance: float, quantile: float, *, shares: bool) -> Interval:
    value = interval.value
    if shares and variance > 0.0 and 0.0 < value < 1.0:
        low, high = wilson(value, value * (1.0 - value) / variance, quantile)
    else:
        reach = quantile * math.sqrt(variance)
        low, high = value - reach, value + reach
    return interval._replace(low=low, high=high, reason=None)


class Components(NamedTuple):
    """Variance of the effects of clusters, and of items within them, in squared units of the scores; NaN if unknown."""

    clusters: float = math.nan
    items: float = math.nan


def components(values: ArrayLike, clusters: Clusters | None = None) -> Components:
    """Variance components of scores by a one-way analysis of variance, with no negative one.

    Source: Searle, Casella and McCulloch (1992), "Variance Components", for clusters of unequal sizes.

    Examples:
        >>> components([1.0, 1.0, 0.0, 0.0], clusters=["a", "a", "b", "b"])
        Components(clusters=0.5, items=0.0)
    """
    scores = np.asarray(values, dtype=np.float64)
    scored = ~np.isnan(scores)
    scores, numbers = scores[scored], cluster_numbers(clusters, scored)
    cluster_count = int(numbers.max()) + 1 if numbers.size else 0
    if scores.size < 2 or cluster_count < 2:
        return Components()
    if cluster_count == scores.size:
        return Components(0.0, float(np.var(scores, ddof=1)))
    between, within, per_cluster = _mean_squares(scores, numbers)
    of_clusters = max(0.0, (between - within) / per_cluster)
    return Components(of_clusters, within if of_clusters else float(np.var(scores, ddof=1)))


def _mean_squares(scores: Floats, numbers: Numbers) -> tuple[float, float, float]:
    """Returns mean squares between and within clusters, and the former's items of a cluster of mean size."""
    counts = np.bincount(numbers).astype(np.float64)
    means = stratum_means(scores, numbers)
    n, cluster_count = scores.size, counts.size
    between = float(np.sum(counts * (means - scores.mean()) ** 2)) / (cluster_count - 1)
    within = float(np.sum((scores - means[numbers]) ** 2)) / (n - cluster_count) if n > cluster_count else math.nan
    return between, within, (n - float(np.sum(counts**2)) / n) / (cluster_count - 1)


def half_width(of: Components, drawn_from: SamplingFrame, n: int) -> float:
    """Half the width of the 95 % interval of a subset of ``n`` items: 1.96 times the root of the variance above.

    Examples:
        >>> round(half_width(Components(0.0, 0.25), SamplingFrame(items=10_000, spread=0.0), 400), 4)
        0.048
    """
    return 1.96 * math.sqrt(of.clusters * drawn_from.spread + of.items * (1.0 / n - 1.0 / drawn_from.items))
