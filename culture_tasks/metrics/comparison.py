"""Is one model better than another? Paired tests on the items that both answered.

Every test takes the two models' scores item by item, NaN where there is no score; items that lack either are left out.
The difference is always the first's mean minus the second's. Nothing here raises for data that are too few or too
much alike: numbers are NaN, and :attr:`Difference.reason` says why.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from culture_tasks.metrics.differences import Difference, Method, differences_of
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.mcnemar import EXACT_BELOW, mcnemar
from culture_tasks.metrics.means import mean_and_error
from culture_tasks.metrics.rankings import MeanRank, Spread, mean_rank, spread
from culture_tasks.metrics.resampling import (
    all_sign_flips,
    cluster_numbers,
    cluster_sums,
    random_sign_flips,
    resampled_sums,
)
from culture_tasks.metrics.significance import Verdict, holm, items_needed, verdict

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from culture_tasks.metrics.means import Clusters
    from culture_tasks.metrics.resampling import Floats

__all__ = [
    "EXACT_BELOW",
    "Difference",
    "MeanRank",
    "Method",
    "Spread",
    "Verdict",
    "holm",
    "items_needed",
    "mcnemar",
    "mean_rank",
    "paired_bootstrap",
    "paired_difference",
    "paired_permutation",
    "spread",
    "verdict",
]


def paired_difference(
    a: ArrayLike, b: ArrayLike, clusters: Clusters | None = None, confidence: float = 0.95
) -> Difference:
    """Tests the mean difference by Student's t, cluster-robust where items share a cluster.

    Formula: t = mean(a - b) / se with G - 1 degrees of freedom for G clusters; se and interval are those of
    :func:`~culture_tasks.metrics.intervals.mean_interval` of the differences. Assumes independent clusters, enough of
    them for their sums to be near normal.

    Args:
        a: The first model's scores; NaN where there is none.
        b: The second's, in the same order.
        clusters: What each item belongs to, such as its image; None means that each stands alone.
        confidence: Share of intervals meant to hold the true difference, between 0 and 1.

    Returns:
        The difference. No common item: all NaN. One cluster: the difference alone. Where every cluster differs by the
        same, t is undefined: the ends are NaN, and p is that of flipping all clusters' signs, 2 ** (1 - G), or 1
        where the scores are equal.

    Raises:
        ValueError: If lengths differ, a score is infinite, clusters don't fit, or the confidence is out of range.

    Source: Student (1908); Liang and Zeger (1986); Miller (2024), "Adding Error Bars to Evals", section 4.
    """
    method: Method = "paired t" if clusters is None else "clustered paired t"
    differences = differences_of(a, b)
    interval = mean_interval(differences, clusters, confidence)
    mean = mean_and_error(differences, clusters)
    sd = mean.error * math.sqrt(mean.n)
    if mean.clusters < 2 or mean.reason:
        p = _p_without_spread(mean.value, mean.clusters)
    else:
        p = 2.0 * float(stats.t.sf(abs(mean.value) / mean.error, mean.clusters - 1))
    reason = mean.reason.replace("score", "difference") if mean.reason else None
    return Difference(mean.value, interval.low, interval.high, p, mean.n, method, mean.clusters, sd, reason)


def paired_permutation(
    a: ArrayLike, b: ArrayLike, clusters: Clusters | None = None, resamples: int = 10_000, seed: int = 0
) -> Difference:
    """Tests the mean difference by swapping the two models' scores within whole clusters, at random.

    Formula: p = share of swaps whose absolute total difference is at least the one observed. All 2 ** G swaps of G
    clusters that differ are gone through where they are no more than ``resamples`` ("all sign flips"); else that many
    are drawn, and p = (1 + as extreme) / (1 + drawn), which is never 0 and never too small on average. Assumes only
    that without a difference the two models' scores could be swapped. Interval and sd are those of
    :func:`paired_difference`.

    Args:
        a: The first model's scores; NaN where there is none.
        b: The second's, in the same order.
        clusters: What each item belongs to; None means that each stands alone.
        resamples: How many swaps to draw at most.
        seed: Seed of the draws.

    Returns:
        The difference. No common item: all NaN. Equal scores: p is 1.

    Raises:
        ValueError: If lengths differ, a score is infinite, clusters don't fit, or ``resamples`` is below 1.

    Source: Fisher (1935); Phipson and Smyth (2010) for the correction of drawn swaps.
    """
    _check_resamples(resamples)
    by_t = paired_difference(a, b, clusters)
    sums = _sums(differences_of(a, b), clusters)[:, 0]
    sums = sums[np.abs(sums) > 1e-9 * np.abs(sums).max(initial=0.0)]
    if by_t.n == 0:
        return by_t._replace(method="sign flips")
    least = abs(sums.sum()) * (1.0 - 1e-9)
    if sums.size <= math.log2(resamples):
        p = float(np.mean(np.abs(all_sign_flips(sums)) >= least))
        return by_t._replace(p=p, method="all sign flips")
    totals = random_sign_flips(sums, resamples, np.random.default_rng(seed))
    p = (1.0 + int(np.count_nonzero(np.abs(totals) >= least))) / (1.0 + resamples)
    return by_t._replace(p=p, method="sign flips")


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Clusters | None = None,
    resamples: int = 10_000,
    confidence: float = 0.95,
    seed: int = 0,
) -> Difference:
    """Tests the mean difference by drawing whole clusters with replacement.

    The interval runs between the (1 - confidence) / 2 quantiles at both ends. Formula: p = 2 * min(share of resamples
    at or below 0, share at or above 0), with one added above and below the fraction line, at most 1: the
    smallest 1 - confidence whose interval shuts 0 out. Interval and p agree, and both are too sure of themselves with
    few clusters, say less than 30.

    Args:
        a: The first model's scores; NaN where there is none.
        b: The second's, in the same order.
        clusters: What each item belongs to; None means that each stands alone.
        resamples: How many resamples to draw.
        confidence: Share of intervals meant to hold the true difference, between 0 and 1.
        seed: Seed of the draws.

    Returns:
        The difference. No common item: all NaN. One cluster, or all clusters differ by the same: as
        :func:`paired_difference`, for no resample would differ.

    Raises:
        ValueError: If lengths differ, a score is infinite, clusters don't fit, or an option is out of range.

    Source: Efron and Tibshirani (1993), chapters 13 and 16; Davison and Hinkley (1997), section 3.8, for clusters.
    """
    _check_resamples(resamples)
    by_t = paired_difference(a, b, clusters, confidence)
    if by_t.reason:
        return by_t._replace(method="bootstrap")
    drawn = resampled_sums(_sums(differences_of(a, b), clusters), resamples, np.random.default_rng(seed))
    means = drawn[:, 0] / drawn[:, 1]
    low, high = np.quantile(means, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    beyond = int(min(np.count_nonzero(means <= 0.0), np.count_nonzero(means >= 0.0)))
    p = min(1.0, 2.0 * (1.0 + beyond) / (1.0 + resamples))
    return by_t._replace(low=float(low), high=float(high), p=p, method="bootstrap")


def _sums(differences: Floats, clusters: Clusters | None) -> Floats:
    """The sum of the differences of each cluster, and how many there are."""
    kept = ~np.isnan(differences)
    columns = np.stack([differences[kept], np.ones(np.count_nonzero(kept))], axis=1)
    return cluster_sums(columns, cluster_numbers(clusters, kept))


def _p_without_spread(difference: float, clusters: int) -> float:
    if clusters < 2:
        return math.nan
    return 1.0 if difference == 0.0 else 2.0 ** (1 - clusters)


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise ValueError(f"comparison: resamples={resamples}; at least 1 is needed.")
