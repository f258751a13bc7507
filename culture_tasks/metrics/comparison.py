"""Is one model better than another? Paired tests on the items that both answered.

Every test takes the two models' scores item by item, NaN where there is no score; items that lack either are left out.
The difference is always the first's mean minus the second's. Nothing here raises for data that are too few or too
much alike: numbers are NaN, and :attr:`Difference.reason` says why.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy import stats

from culture_tasks.metrics.intervals import check_confidence, mean_interval
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

Method = Literal[
    "paired t", "clustered paired t", "sign flips", "all sign flips", "bootstrap", "McNemar exact", "McNemar mid-p"
]
"""How a difference was tested."""

EXACT_BELOW = 25
"""McNemar's test is exact with fewer discordant pairs than this, and mid-p from there on."""


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
        sd: Standard deviation of a difference, as :func:`items_needed` wants it: the standard error times the square
            root of ``n``, so that clusters count.
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
    differences = _differences(a, b)
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
    sums = _sums(_differences(a, b), clusters)[:, 0]
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
    drawn = resampled_sums(_sums(_differences(a, b), clusters), resamples, np.random.default_rng(seed))
    means = drawn[:, 0] / drawn[:, 1]
    low, high = np.quantile(means, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    beyond = int(min(np.count_nonzero(means <= 0.0), np.count_nonzero(means >= 0.0)))
    p = min(1.0, 2.0 * (1.0 + beyond) / (1.0 + resamples))
    return by_t._replace(low=float(low), high=float(high), p=p, method="bootstrap")


def mcnemar(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Difference:
    """McNemar's test of two models' right/wrong answers to independent items.

    Only discordant items count: with k of m in favour of the first, p is the two-sided binomial probability of a count
    as far from m / 2. With fewer than :data:`EXACT_BELOW` it is exact, which errs on the safe side; from there on it
    is mid-p, which counts half of the observed count's own probability and is nearer to its nominal rate. The interval
    of the difference of shares is Wald's after adding one half to each of the four counts, so it has a width where the
    models agree on all. For items that share a cluster use :func:`paired_permutation`.

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
    differences = _differences(a, b)
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


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
    ours, theirs = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(
            f"comparison: two lists of one length are needed; came shapes {ours.shape} and {theirs.shape}."
        )
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("comparison: a score is infinite; write NaN for a missing one.")
    return ours - theirs


def _right_or_wrong(scores: ArrayLike) -> bool:
    values = np.asarray(scores, dtype=np.float64)
    return bool((np.isnan(values) | (values == 0.0) | (values == 1.0)).all())


def _sums(differences: Floats, clusters: Clusters | None) -> Floats:
    """The sum of the differences of each cluster, and how many there are."""
    kept = ~np.isnan(differences)
    columns = np.stack([differences[kept], np.ones(np.count_nonzero(kept))], axis=1)
    return cluster_sums(columns, cluster_numbers(clusters, kept))


def _p_without_spread(difference: float, clusters: int) -> float:
    if clusters < 2:
        return math.nan
    return 1.0 if difference == 0.0 else 2.0 ** (1 - clusters)


def _binomial_p(fewer: int, of: int, *, mid: bool) -> float:
    tail = float(stats.binom.cdf(fewer, of, 0.5))
    if mid:
        tail -= 0.5 * float(stats.binom.pmf(fewer, of, 0.5))
    return min(1.0, 2.0 * tail)


def _agresti_min(ours: int, theirs: int, n: int, confidence: float) -> tuple[float, float]:
    discordant, surplus, size = ours + theirs + 1.0, float(ours - theirs), n + 2.0
    reach = float(stats.norm.ppf((1.0 + confidence) / 2.0)) * math.sqrt(discordant - surplus**2 / size) / size
    return max(-1.0, surplus / size - reach), min(1.0, surplus / size + reach)


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise ValueError(f"comparison: resamples={resamples}; at least 1 is needed.")
