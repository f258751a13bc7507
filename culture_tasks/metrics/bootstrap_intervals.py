"""Bootstrap intervals of any statistic, and of statistics of sums, which are far faster.

The ends are those of BCa. In simulations 95 % of the 95 % intervals held a ratio of means or a variance (100 items),
and 92 % the variance between seven languages (200 items each), which percentile intervals held in 84 % only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.metrics.bca import bca_ends
from culture_tasks.metrics.means import Interval, check_confidence
from culture_tasks.metrics.resampling import (
    cluster_numbers,
    cluster_sums,
    resampled_rows,
    resampled_sums,
    rows_without_blocks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from culture_tasks.metrics.means import Clusters
    from culture_tasks.metrics.resampling import Floats, Numbers

LEAST_DEFINED = 0.9
"""A bootstrap interval needs at least this share of resamples in which its statistic is defined."""


def bootstrap_interval(
    statistic: Callable[..., float],
    columns: Sequence[ArrayLike],
    clusters: Clusters | None = None,
    resamples: int = 1_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of any statistic, by a bootstrap of whole clusters with bias correction and acceleration (BCa).

    Clusters are drawn with replacement, as many as there are. The ends are the quantiles of the resampled values that
    BCa picks: symmetric ones for an unbiased statistic of even spread, shifted ones for a ratio or a variance. Assumes
    independent clusters, say thirty or more. A statistic of sums is done far faster by :func:`bootstrap_of_sums`.

    Args:
        statistic: Takes as many arrays as there are columns, one value an item, and gives a number; NaN where it is
            undefined.
        columns: The data, arrays of one length. Items with a NaN in any are left out.
        clusters: What each item belongs to; None means that each stands alone.
        resamples: How many resamples to draw.
        confidence: Share of intervals meant to hold the true value, between 0 and 1.
        seed: Seed of the draws.

    Returns:
        The interval. Nothing complete: all NaN. One cluster, a statistic that is undefined in more than a tenth of the
        resamples, or has the same value in all: NaN ends.

    Raises:
        ValueError: If columns differ in length, clusters don't fit, or an option is out of range.

    Source: Efron (1987); Davison and Hinkley (1997), section 3.8, for clusters.
    """
    data, numbers = _complete(columns, clusters, resamples, confidence)
    if not data.size:
        return Interval(math.nan, math.nan, math.nan, 0, 0, "no item is complete")
    value, many = float(statistic(*data)), int(numbers.max()) + 1
    if many < 2:
        return Interval(value, math.nan, math.nan, numbers.size, many, "one cluster: its spread can't be known")
    rng = np.random.default_rng(seed)
    draws = np.array([statistic(*data[:, rows]) for rows in resampled_rows(numbers, resamples, rng)], dtype=np.float64)
    left = np.array([statistic(*data[:, rows]) for rows in rows_without_blocks(numbers, rng)], dtype=np.float64)
    return _bca(value, draws, left, confidence, numbers.size, many)


def bootstrap_of_sums(
    statistic: Callable[[Floats], Floats],
    columns: Sequence[ArrayLike],
    clusters: Clusters | None = None,
    resamples: int = 1_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval of a statistic of the columns' sums, such as a ratio of two or a variance of several groups' means.

    The same as :func:`bootstrap_interval`, but the statistic sees the sums of all resamples at once, so that the cost
    no longer depends on the number of items in a cluster, nor on calls.

    A variance of groups' means contains what the groups differ by chance, so that its interval sits too high where the
    groups are nearly alike: put :attr:`Spread.by_chance <culture_tasks.metrics.rankings.Spread>` beside it.

    Args:
        statistic: Takes an array with one row a resample and one column a sum, and gives one number a row; NaN where it
            is undefined.
        columns: The data to be summed, arrays of one length. Items with a NaN in any are left out.
        clusters: As in :func:`bootstrap_interval`, and so are the rest, what comes back, and errors.
        resamples: How many resamples to draw.
        confidence: Share of intervals meant to hold the true value.
        seed: Seed of the draws.
    """
    data, numbers = _complete(columns, clusters, resamples, confidence)
    if not data.size:
        return Interval(math.nan, math.nan, math.nan, 0, 0, "no item is complete")
    sums = cluster_sums(data.T, numbers)
    total, many = sums.sum(axis=0), sums.shape[0]
    value = float(statistic(total[None])[0])
    if many < 2:
        return Interval(value, math.nan, math.nan, numbers.size, many, "one cluster: its spread can't be known")
    draws = statistic(resampled_sums(sums, resamples, np.random.default_rng(seed)))
    return _bca(value, draws, statistic(total - sums), confidence, numbers.size, many)


def _complete(
    columns: Sequence[ArrayLike], clusters: Clusters | None, resamples: int, confidence: float
) -> tuple[Floats, Numbers]:
    check_confidence(confidence)
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    if resamples < 1 or not arrays or any(array.shape != (arrays[0].size,) for array in arrays):
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(
            f"bootstrap: needs columns of one length and a resample; came {shapes}, resamples={resamples}."
        )
    data = np.stack(arrays)
    kept = np.asarray(~np.isnan(data).any(axis=0))
    return data[:, kept], cluster_numbers(clusters, kept)


def _bca(value: float, draws: Floats, left: Floats, confidence: float, n: int, clusters: int) -> Interval:
    defined = draws[np.isfinite(draws)]
    if not math.isfinite(value) or defined.size < LEAST_DEFINED * draws.size:
        why = f"defined in {defined.size} of {draws.size} resamples only" if math.isfinite(value) else "undefined"
        return Interval(value if math.isfinite(value) else math.nan, math.nan, math.nan, n, clusters, why)
    if np.ptp(defined) == 0.0:
        return Interval(value, math.nan, math.nan, n, clusters, "the same in every resample")
    low, high = bca_ends(value, defined, left[np.isfinite(left)], confidence)
    return Interval(value, low, high, n, clusters)
