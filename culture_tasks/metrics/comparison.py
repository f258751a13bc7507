"""Is one model better than another? Paired tests on the items that both answered.

Every test takes the two models' scores item by item, NaN where there is no score; items that lack either are left out.
The difference is always the first's mean minus the second's. Nothing here raises for data that are too few or too
much alike: numbers are NaN, and :attr:`Difference.reason` says why. A seed gives the same draws every time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy import stats

from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.means import check_confidence, cluster_numbers, cluster_sums, mean_and_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from culture_tasks.metrics.means import Clusters, Floats

_BATCH_CELLS = 4_000_000
"""Most numbers in one array of a batch: bounds memory at some dozens of megabytes."""

EXACT_BELOW = 25
"""McNemar's test is exact with fewer discordant pairs than this, and mid-p from there on."""

Method = Literal["paired t", "clustered paired t", "sign flips", "all sign flips", "McNemar exact", "McNemar mid-p"]
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

    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    n: int = 0
    method: Method = "paired t"
    clusters: int = 0
    sd: float = math.nan
    reason: str | None = None


def _differences(a: ArrayLike, b: ArrayLike) -> Floats:
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
    return Difference(
        difference=mean.value,
        low=interval.low,
        high=interval.high,
        p=p,
        n=mean.n,
        method=method,
        clusters=mean.clusters,
        sd=sd,
        reason=reason,
    )


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
    if resamples < 1:
        raise ValueError(f"comparison: resamples={resamples}; at least 1 is needed.")
    by_t = paired_difference(a, b, clusters)
    differences = _differences(a, b)
    kept = ~np.isnan(differences)
    sums = cluster_sums(differences[kept][:, None], cluster_numbers(clusters, kept))[:, 0]
    sums = sums[np.abs(sums) > 1e-9 * np.abs(sums).max(initial=0.0)]
    if by_t.n == 0:
        return by_t._replace(method="sign flips")
    least = abs(sums.sum()) * (1.0 - 1e-9)
    if sums.size <= math.log2(resamples):
        p = float(np.mean(np.abs(_all_sign_flips(sums)) >= least))
        return by_t._replace(p=p, method="all sign flips")
    totals = _random_sign_flips(sums, resamples, np.random.default_rng(seed))
    p = (1.0 + int(np.count_nonzero(np.abs(totals) >= least))) / (1.0 + resamples)
    return by_t._replace(p=p, method="sign flips")


def _p_without_spread(difference: float, clusters: int) -> float:
    if clusters < 2:
        return math.nan
    return 1.0 if difference == 0.0 else 2.0 ** (1 - clusters)


def _all_sign_flips(values: Floats) -> Floats:
    """The sum of the values under each of the 2 ** n choices of their signs; for few values."""
    totals = np.zeros(1)
    for value in values:
        totals = np.concatenate([totals + value, totals - value])
    return totals


def _random_sign_flips(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of the values under random signs.

    Values of one magnitude are drawn together: their sum is that magnitude times a binomial number of pluses less
    minuses. Scores on a scale of few values therefore cost next to nothing.

    Args:
        values: The values whose signs are flipped.
        resamples: How many sums to draw.
        rng: Source of randomness.

    Returns:
        The sums, one a resample.
    """
    magnitudes, counts = np.unique(np.abs(values), return_counts=True)
    repeated = counts > 1
    pluses = rng.binomial(counts[repeated], 0.5, size=(resamples, np.count_nonzero(repeated)))
    totals: Floats = (2.0 * pluses - counts[repeated]) @ magnitudes[repeated]
    return totals + _random_signs(magnitudes[~repeated], resamples, rng)


def _random_signs(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of the values under random signs, eight at a time: a random byte picks one of their 256 signed sums."""
    totals, bytes_each = np.zeros(resamples), (values.size + 7) // 8
    if not bytes_each:
        return totals
    eights = np.pad(values, (0, 8 * bytes_each - values.size)).reshape(-1, 8)
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0
    signed_sums, batch = (eights @ signs.T).ravel(), max(1, _BATCH_CELLS // bytes_each)
    for start in range(0, resamples, batch):
        picks = rng.integers(256, size=(min(batch, resamples - start), bytes_each), dtype=np.uint8)
        places = picks + 256 * np.arange(bytes_each)
        totals[start : start + batch] = signed_sums[places].sum(axis=1)
    return totals


def mcnemar(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Difference:
    """McNemar's test of two models' right/wrong answers to independent items.

    Only discordant items count: with k of m in favour of the first, p is the two-sided binomial probability of a count
    as far from m / 2. With fewer than :data:`EXACT_BELOW` it is exact, which errs on the safe side; from there on it
    is mid-p, which counts half of the observed count's own probability and is nearer to its nominal rate. The interval
    of the difference of shares is Wald's after adding one half to each of the four counts, so it has a width where the
    models agree on all. For items that share a cluster use
    :func:`paired_permutation`.

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
        return Difference(method=method, reason="no item has both scores")
    low, high = _agresti_min(ours, theirs, n=n, confidence=confidence)
    p = _binomial_p(min(ours, theirs), ours + theirs, mid=method == "McNemar mid-p")
    sd = math.sqrt(max(ours + theirs - (ours - theirs) ** 2 / n, 0.0) / max(n - 1, 1))
    return Difference((ours - theirs) / n, low, high, p=p, n=n, method=method, clusters=n, sd=sd)


def _right_or_wrong(scores: ArrayLike) -> bool:
    values = np.asarray(scores, dtype=np.float64)
    return bool((np.isnan(values) | (values == 0.0) | (values == 1.0)).all())


def _binomial_p(fewer: int, of: int, *, mid: bool) -> float:
    tail = float(stats.binom.cdf(fewer, of, 0.5))
    if mid:
        tail -= 0.5 * float(stats.binom.pmf(fewer, of, 0.5))
    return min(1.0, 2.0 * tail)


def _agresti_min(ours: int, theirs: int, *, n: int, confidence: float) -> tuple[float, float]:
    discordant, surplus, size = ours + theirs + 1.0, float(ours - theirs), n + 2.0
    reach = float(stats.norm.ppf((1.0 + confidence) / 2.0)) * math.sqrt(discordant - surplus**2 / size) / size
    return max(-1.0, surplus / size - reach), min(1.0, surplus / size + reach)
