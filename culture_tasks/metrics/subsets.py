"""A designed draw of some items of a benchmark, and the interval of its whole score that the draw gives.

Items are put in order by stratum, then by cluster, both shuffled within; the draw visits that order in steps of the
golden ratio from a random start. So every item has the same chance, n of N; strata and clusters are drawn from evenly,
and a cluster twice only when most have been drawn from; a draw of 400 contains that of 200. Every fifteenth item is a
second one of a cluster that was drawn from shortly before: it tells how alike the items of a cluster are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from culture_tasks.metrics.intervals import Interval, mean_interval, share_interval, t_quantile, wilson
from culture_tasks.metrics.means import cluster_numbers, cluster_sums

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from culture_tasks.metrics.means import Clusters

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_SECOND = 15
"""Every so many draws one is a second item of a cluster."""


class Population(NamedTuple):
    """What a subset was drawn from, as far as its interval depends on it.

    Attributes:
        items: Number of all items, N.
        spread: The sum over all clusters of (k / n - K / N) squared, for a cluster with k of the n drawn items and K of
            all N. It is 0 where the draw has the same share of each cluster.
    """

    items: int
    spread: float


def draw(n: int, items: Sequence[str], clusters: Sequence[str], strata: Sequence[str], seed: int = 0) -> list[int]:
    """Returns the places of a subset's items, in the order in which they were drawn; all of them where n is as large.

    Args:
        n: Number of items to draw.
        items: The name of each item, all different: the draw doesn't depend on their order.
        clusters: The cluster of each item.
        strata: The stratum of each item, the same for all items of a cluster.
        seed: Of the order within strata and clusters, and of the start.

    Examples:
        >>> all_six = draw(6, "abcdef", clusters=["x", "x", "y", "y", "z", "z"], strata=[""] * 6)
        >>> sorted(all_six), draw(3, "abcdef", ["x", "x", "y", "y", "z", "z"], [""] * 6) == all_six[:3]
        ([0, 1, 2, 3, 4, 5], True)
    """
    return list(islice(_drawn(items, clusters, strata, seed), n))


def _drawn(items: Sequence[str], clusters: Sequence[str], strata: Sequence[str], seed: int) -> Iterator[int]:
    size = len(clusters)
    members: dict[str, list[int]] = {}
    for at, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(at)
    numbers = {cluster: _number(seed, cluster) for cluster in members}
    keys = [
        (stratum, numbers[cluster], cluster, _number(seed, cluster, item))
        for item, cluster, stratum in zip(items, clusters, strata, strict=True)
    ]
    order = sorted(range(size), key=keys.__getitem__)
    left = set(range(size))
    visits = (order[int((_number(seed) + step * _GOLDEN) % 1.0 * size)] for step in range(size * 4))
    recent: list[str] = []
    while left:
        place: int | None = None
        if len(recent) % _SECOND == _SECOND - 1:
            others = [one for one in members[recent[-(_SECOND // 2)]] if one in left]
            place = min(others, key=keys.__getitem__, default=None)
        while place is None:
            visited = next(visits, None)
            if visited is None:  # the steps have not met it after so many rounds
                visited = next(one for one in order if one in left)
            place = visited if visited in left else None
        left.remove(place)
        recent.append(clusters[place])
        yield place


def _number(*parts: object) -> float:
    """Returns a number from 0 to 1 that is as good as random, and the same on every machine."""
    digest = hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def population(drawn: Sequence[int], clusters: Sequence[Hashable]) -> Population:
    """Returns what the interval of a draw needs to know of all items.

    Examples:
        >>> population([0, 2], clusters=["a", "a", "b", "b"])
        Population(items=4, spread=0.0)
    """
    numbers = cluster_numbers(clusters, np.ones(len(clusters), dtype=np.bool_))
    shares = np.bincount(numbers[list(drawn)], minlength=int(numbers.max()) + 1) / len(drawn)
    return Population(len(clusters), float(np.sum((shares - np.bincount(numbers) / len(clusters)) ** 2)))


def subset_interval(
    values: ArrayLike, clusters: Clusters | None, drawn_from: Population, *, shares: bool = False
) -> Interval:
    """95 % interval of the score that all items of a benchmark would have, from those of a subset of :func:`draw`.

    A score is taken as a mean plus an effect of its cluster, of variance B, plus an effect of its item, of variance W.
    The mean of the subset then departs from that of all items with the variance

        B * spread + W * (1 / n - 1 / N)

    which is 0 once all items are drawn. B and W are those of a one-way analysis of variance of the drawn items; the
    degrees of freedom are Satterthwaite's. Where no cluster was drawn from twice, W can't be told from B, and the
    larger factor is taken for both. It holds for these items alone: the interval for questions like these is that of
    :func:`~culture_tasks.metrics.intervals.mean_interval`.

    Args:
        values: One score per drawn item; NaN where there is none, which is left out.
        clusters: The cluster of each; None means that each stands alone.
        drawn_from: What they were drawn from.
        shares: Whether every score is 1 or 0: the interval is Wilson's then, with the number of independent items that
            would have that variance.

    Returns:
        The interval; that of ``mean_interval`` or ``share_interval`` where there is no spread to learn from.

    Source: Searle, Casella and McCulloch (1992), "Variance Components"; Satterthwaite (1946); Valliant, Dorfman and
    Royall (2000), "Finite Population Sampling and Inference", for the prediction of the mean of all items.

    Examples:
        >>> found = subset_interval([1, 0, 1, 1, 0, 1], None, Population(items=12, spread=1 / 12), shares=True)
        >>> round(found.low, 2), round(found.high, 2)
        (0.3, 0.91)
    """
    scores = np.asarray(values, dtype=np.float64)
    kept = ~np.isnan(scores)
    plain = share_interval(scores, clusters) if shares else mean_interval(scores, clusters)
    scores, numbers = scores[kept], cluster_numbers(clusters, kept)
    n, many = plain.n, plain.clusters
    if n < 2 or many < 2 or np.ptp(scores) == 0.0:
        return plain
    of_items = 1.0 / n - 1.0 / drawn_from.items
    counts = np.bincount(numbers).astype(np.float64)
    sums = cluster_sums(scores[:, None], numbers)[:, 0]
    between = float(np.sum(counts * (sums / counts - scores.mean()) ** 2))
    within = float(np.sum((scores - (sums / counts)[numbers]) ** 2))
    of_clusters, freedom = between / (many - 1), float(many - 1)
    if n == many:
        variance = of_clusters * max(drawn_from.spread, of_items)
    elif of_clusters <= within / (n - many):  # no effect of clusters to be seen
        variance, freedom = (between + within) / (n - 1) * of_items, n - 1.0
    else:
        per_cluster = (n - float(np.sum(counts**2)) / n) / (many - 1)
        factor = drawn_from.spread / per_cluster
        parts = factor * of_clusters, (of_items - factor) * within / (n - many)
        variance = max(sum(parts), 0.0)
        squares = parts[0] ** 2 / (many - 1) + parts[1] ** 2 / (n - many)
        freedom = max(variance**2 / squares, 1.0) if squares else freedom
    quantile = t_quantile(0.95, freedom + 1.0)
    if shares and variance > 0.0:
        low, high = wilson(plain.value, plain.value * (1.0 - plain.value) / variance, quantile)
    else:
        reach = quantile * math.sqrt(variance)
        low, high = plain.value - reach, plain.value + reach
    return plain._replace(low=low, high=high, reason=None)
