"""Is one model better than another? Paired tests on the items that both answered.

Every test takes the two models' scores item by item, NaN where there is no score; items that lack either are left out.
The difference is always the first's mean minus the second's. Its interval is the test turned around: it leaves 0
out exactly where p is at most 1 - confidence. Nothing here raises for data that are too few or too much alike: numbers
are NaN, and :attr:`Difference.reason` says why. A seed gives the same draws every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from culture_tasks.metrics.intervals import interval_of, proportion_interval, t_quantile
from culture_tasks.metrics.means import (
    Clusters,
    Floats,
    Mean,
    check_confidence,
    cluster_numbers,
    cluster_sums,
    mean_and_error,
    two_lists,
)
from culture_tasks.metrics.resampling import bootstrapped

_BATCH_CELLS = 4_000_000
"""Most numbers in one array of a batch: bounds memory at some dozens of megabytes."""

_MANY_EQUAL = 32
"""Equal rows beyond which one binomial number is drawn faster than a byte for every eight of them."""

EXACT_BELOW = 25
"""McNemar's test is exact with fewer discordant pairs than this, and mid-p from there on."""

_ByT = Literal["paired t", "clustered paired t", "cluster bootstrap"]
_Corrected = Literal["corrected, paired", "corrected, unpaired", "corrected columns"]
Method = _ByT | Literal["sign flips", "all sign flips", "McNemar exact", "McNemar mid-p"] | _Corrected
"""How a difference was tested."""


class Difference(NamedTuple):
    """A paired difference of two models, in the unit of the scores; NaN where there is no number.

    Attributes:
        difference: Mean of first minus second; positive where the first is higher.
        low: Lower end of its interval.
        high: Upper end.
        p: Two-sided p value of the hypothesis that there is no difference.
        n: Number of items that both have a score for.
        method: The test that gave ``p``.
        clusters: Number of clusters that the items belong to.
        differing: Number of clusters in which the two models' scores differ: the others tell nothing.
        sd: Standard deviation of a difference, as :func:`~culture_tasks.metrics.significance.items_needed` wants it:
            the standard error times the square root of ``n``, so that clusters count.
        reason: Why a number is NaN or not that of the method; None where all is well.
    """

    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    n: int = 0
    method: Method = "paired t"
    clusters: int = 0
    differing: int = 0
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
        clusters: The cluster of each item, such as its image; None makes each a cluster.
        confidence: Share of intervals meant to hold the true difference, between 0 and 1.

    Returns:
        The difference. No common item: all NaN. One cluster: the difference alone. Where every cluster differs by the
        same, t is undefined: the ends are NaN, and p is that of flipping all clusters' signs, 2 ** (1 - G), or 1
        where the scores are equal.

    Raises:
        ValueError: If lengths differ, a score is infinite, clusters don't fit, or the confidence is out of range.

    Source: Student (1908); Liang and Zeger (1986); Miller (2024), "Adding Error Bars to Evals", section 4.

    Examples:
        >>> result = paired_difference([4.0, 5.0, 3.0, 5.0], [3.0, 3.0, 3.0, 4.0])
        >>> result.difference, round(result.low, 2), round(result.high, 2), round(result.p, 3)
        (1.0, -0.3, 2.3, 0.092)
    """
    ours, theirs = two_lists("comparison", a, b)
    differences = ours - theirs
    common = ~np.isnan(differences)
    sums = cluster_sums(differences[common][:, None], cluster_numbers(clusters, common))
    method: _ByT = "paired t" if clusters is None else "clustered paired t"
    result = _t_test(mean_and_error(differences, clusters), method, confidence)
    return result._replace(differing=int(np.count_nonzero(_without_noise(sums))))


def paired_bootstrap(
    value: float, replicates: Floats, *, n: int, clusters: int, confidence: float = 0.95
) -> Difference:
    """Tests a difference of two scores that are no means, by its bootstrap standard error over clusters.

    Formula: t = difference / se with G - 1 degrees of freedom for G clusters; se is that of
    :func:`~culture_tasks.metrics.resampling.bootstrapped`. Assumes enough clusters for the difference to be near
    normal: in simulations of macro F1 with 20 to 200 clusters, 4 to 7 % of equal models were called different.

    The value is the first model's score less the second's, on the ``n`` items that both have a score for; replicates
    are the same of each resample, which has the same items of both
    (:func:`~culture_tasks.metrics.resampling.replicates`). Where all of them are equal, the ends are NaN, and p is that
    of :func:`paired_difference`.

    Examples:
        >>> result = paired_bootstrap(0.2, np.array([0.1, 0.2, 0.3, 0.2]), n=40, clusters=20)
        >>> round(result.low, 2), round(result.high, 2), round(result.p, 3)
        (0.02, 0.38, 0.028)
    """
    return _t_test(bootstrapped(value, replicates, n=n, clusters=clusters), "cluster bootstrap", confidence)


def _t_test(mean: Mean, method: _ByT, confidence: float) -> Difference:
    interval = interval_of(mean, confidence)
    if mean.error > 0.0:
        p = 2.0 * float(special.stdtr(mean.clusters - 1, -abs(mean.value) / mean.error))
    else:
        p = math.nan if math.isnan(mean.error) else 1.0 if mean.value == 0.0 else 2.0 ** (1 - mean.clusters)
    result = Difference(mean.value, interval.low, interval.high, p, mean.n, method, mean.clusters)
    reason = mean.reason.replace("score", "difference") if mean.reason else None
    return result._replace(sd=mean.error * math.sqrt(mean.n), reason=reason)


def paired_permutation(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Clusters | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    *,
    confidence: float = 0.95,
    weights: Floats | None = None,
) -> Difference:
    """Tests the mean difference by swapping the two models' scores within whole clusters, at random.

    Formula: p = share of swaps whose absolute total difference is at least the one observed. All 2 ** G swaps of G
    clusters that differ are gone through where they are no more than ``resamples`` ("all sign flips"); else that many
    are drawn, and p = (1 + as extreme) / (1 + drawn), which is never 0 and never too small on average. Assumes only
    that without a difference the two models' scores could be swapped.

    The interval holds the differences that the same swaps don't reject. A swap leaves one part of the clusters and
    takes the other; supposing a difference, it is at least as extreme as the observed one exactly where the supposed
    difference lies between the means of the two parts. So the ends are quantiles of the lower and of the higher of
    these means. That supposes that a difference shifts all clusters alike, which isn't plausible where most don't
    differ at all. Where so few differ that all swaps are gone through, and more than half don't, the ends are those of
    the share of clusters in favour of the first, which the same swaps give at shares other than 1/2, times an interval
    of the mean size.

    Args and errors are those of :func:`paired_difference`; ``resamples`` is at least 1, and ``weights`` are the weights
    of the items in the means, above 0; None means all the same.

    Returns:
        The difference. No common item: all NaN. Equal scores: p is 1. Where every cluster differs by the same, the
        ends are NaN. They are infinite where the swaps are too few for the confidence.

    Source: Fisher (1935); Phipson and Smyth (2010) for the correction of drawn swaps; Hartigan (1969) for the ends.

    Examples:
        >>> result = paired_permutation([5.0, 4.0, 3.0, 5.0, 4.0], [4.0, 2.0, 2.5, 2.0, 1.0])
        >>> result.difference, result.p, result.method
        (1.9, 0.0625, 'all sign flips')
    """
    if resamples < 1:
        raise ValueError(f"comparison: resamples={resamples}; expected at least 1.")
    check_confidence(confidence)
    ours, theirs = two_lists("comparison", a, b)
    differences = ours - theirs
    common = ~np.isnan(differences)
    if weights is None or not common.any():
        item_weights = np.ones(differences.size)
    else:
        item_weights = weights * (common.sum() / weights[common].sum())
    middle = float((item_weights * differences)[common].mean()) if common.any() else math.nan
    t_test = paired_difference(middle + item_weights * (differences - middle), np.zeros(differences.size), clusters)
    columns = np.stack([(item_weights * differences)[common], item_weights[common]], axis=1)
    by_cluster = cluster_sums(columns, cluster_numbers(clusters, common))
    sums = by_cluster[:, 0] = _without_noise(by_cluster[:, 0])
    differing = int(np.count_nonzero(sums))
    result = t_test._replace(low=math.nan, high=math.nan, method="sign flips", differing=differing)
    if not differing:
        return result._replace(p=1.0 if t_test.n else math.nan, method="all sign flips" if t_test.n else "sign flips")
    if sums.sum() < 0.0:  # the same draws for both orders of the models
        back = paired_permutation(
            b, a, clusters, resamples=resamples, seed=seed, confidence=confidence, weights=weights
        )
        return back._replace(difference=result.difference, low=-back.high, high=-back.low)
    exact = differing <= math.log2(resamples)
    lower, higher = _parted(by_cluster, resamples, np.random.default_rng(seed))
    extreme, swaps = int(np.count_nonzero((lower <= 0.0) & (higher >= 0.0))), lower.size
    if exact:
        p = extreme / swaps
        passed = math.floor((1.0 - confidence) * swaps) + 1
    else:
        p = (1.0 + extreme) / (1.0 + swaps)
        passed = math.floor((1.0 - confidence) * (1.0 + swaps))
    if t_test.reason:
        low, high = math.nan, math.nan
    elif exact and 2 * differing < sums.size:
        low, high = _tilted(by_cluster, confidence)
    else:
        low = float(np.partition(lower, passed - 1)[passed - 1]) if passed else -math.inf
        high = float(np.partition(higher, swaps - passed)[swaps - passed]) if passed else math.inf
    return result._replace(p=p, low=low, high=high, method="all sign flips" if exact else "sign flips")


def _without_noise(sums: Floats) -> Floats:
    """Returns sums with 0 in place of rounding errors."""
    return np.where(np.abs(sums) > 1e-9 * np.abs(sums).max(initial=0.0), sums, 0.0)


def _parted(by_cluster: Floats, resamples: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Returns the lower and the higher mean of the two parts that each swap of clusters leaves and takes.

    A part without clusters has no mean: its swap leaves every shift possible. Each cluster has the sum of its
    differences and that of its weights.
    """
    differs = by_cluster[:, 0] != 0.0
    if len(by_cluster) <= math.log2(resamples):
        signed = _all_signed(by_cluster)
    elif np.count_nonzero(differs) <= math.log2(resamples):
        swapped = _all_signed(by_cluster[differs])
        times = max(1, resamples // len(swapped))
        signed = np.tile(swapped, (times, 1)) + _randomly_signed(by_cluster[~differs], times * len(swapped), rng)
    else:
        signed = _randomly_signed(by_cluster, resamples, rng)
    total, size = by_cluster.sum(axis=0), np.abs(by_cluster).sum(axis=0)
    means: list[Floats] = []
    for sign in (1.0, -1.0):
        part = total + sign * signed
        part[np.abs(part) <= 1e-9 * size] = 0.0
        means.append(np.divide(part[:, 0], part[:, 1], out=np.full(len(part), np.nan), where=part[:, 1] > 0.0))
    lower, higher = np.minimum(*means), np.maximum(*means)
    return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(higher), np.inf, higher)


def _all_signed(rows: Floats) -> Floats:
    """The sum of the rows under each of the 2 ** n choices of their signs; for few rows."""
    totals = np.zeros((1, rows.shape[1]))
    for row in rows:
        totals = np.concatenate([totals + row, totals - row])
    return totals


def _randomly_signed(rows: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of the rows under random signs, one sum per resample.

    Many equal rows are drawn together: their sum is one of them times a binomial number of pluses less minuses. Of the
    others a random byte picks one of the 256 signed sums of eight.
    """
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    repeated = counts > _MANY_EQUAL
    pluses = rng.binomial(counts[repeated], 0.5, size=(resamples, np.count_nonzero(repeated)))
    totals: Floats = (2.0 * pluses - counts[repeated]) @ distinct[repeated]
    singles = np.repeat(distinct[~repeated], counts[~repeated], axis=0)
    bytes_each = (len(singles) + 7) // 8
    if not bytes_each:
        return totals
    eights = np.pad(singles, ((0, 8 * bytes_each - len(singles)), (0, 0))).reshape(bytes_each, 8, -1)
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0
    signed_sums, batch = np.einsum("sk,bkc->bsc", signs, eights), max(1, _BATCH_CELLS // (2 * bytes_each))
    for start in range(0, resamples, batch):
        picks = rng.integers(256, size=(min(batch, resamples - start), bytes_each), dtype=np.uint8)
        totals[start : start + batch] += signed_sums[np.arange(bytes_each), picks].sum(axis=1)
    return totals


def _tilted(by_cluster: Floats, confidence: float) -> tuple[float, float]:
    """Ends of a difference in which few clusters differ: their share in favour of the first, times their mean size."""
    sums, sizes = by_cluster[by_cluster[:, 0] != 0.0, 0], np.abs(by_cluster[:, 0])
    signed = _all_signed(np.stack([np.abs(sums), np.ones(sums.size)], axis=1))
    pluses = np.rint((signed[:, 1] + sums.size) / 2.0).astype(np.intp)
    noise = 1e-9 * sizes.sum()
    as_high = np.bincount(pluses[signed[:, 0] >= sums.sum() - noise], minlength=sums.size + 1)
    as_low = np.bincount(pluses[signed[:, 0] <= sums.sum() + noise], minlength=sums.size + 1)
    numbers = np.arange(sums.size + 1)

    def chance(counts: NDArray[np.intp]) -> Callable[[float], float]:
        return lambda share: float(counts @ (share**numbers * (1.0 - share) ** (sums.size - numbers)))

    size, count = sizes.sum() / by_cluster[:, 1].sum(), len(by_cluster)
    residuals = sizes - size * by_cluster[:, 1]
    error = math.sqrt(count / (count - 1) * float(residuals @ residuals)) / float(by_cluster[:, 1].sum())
    spread = math.exp(t_quantile(confidence, count) * error / size)
    return _share_times_size(chance(as_high), chance(as_low), (size / spread, size * spread), confidence)


def _share_times_size(
    as_high: Callable[[float], float], as_low: Callable[[float], float], sizes: tuple[float, float], confidence: float
) -> tuple[float, float]:
    """Ends of (2 * share - 1) * size, for the shares in favour of the first that neither tail of a test rejects.

    By the share, the chance of a result at least as high as the one observed rises, that of one as low falls. The size
    is above 0, so that the share alone decides on 0.
    """
    tail = (1.0 - confidence) / 2.0
    root = partial(scipy.optimize.brentq, a=0.0, b=1.0, xtol=1e-12)
    least = 0.0 if as_high(0.0) > tail else root(lambda share: as_high(share) - tail)
    most = 1.0 if as_low(1.0) > tail else root(lambda share: as_low(share) - tail)
    low, high = 2.0 * float(least) - 1.0, 2.0 * float(most) - 1.0
    return low * sizes[0 if low > 0.0 else 1], high * sizes[1 if high > 0.0 else 0]


def mcnemar(a: ArrayLike, b: ArrayLike, confidence: float = 0.95) -> Difference:
    """McNemar's test of two models' right/wrong answers to independent items.

    Only discordant items count: with k of m in favour of the first, p is the two-sided binomial probability of a count
    as far from m / 2. With fewer than :data:`EXACT_BELOW` it is exact, which errs on the safe side; from there on it
    is mid-p, which counts half of the observed count's own probability and is nearer to its nominal rate. The interval
    is the same test's of the share k / m (Clopper-Pearson's, or mid-p), times Wilson's interval of the share m / n of
    discordant items: it has a width where the models agree on all. For items that share a cluster use
    :func:`paired_permutation`.

    Args and errors are those of :func:`paired_difference`; answers are 1 (right), 0 (wrong) or NaN (no score).

    Returns:
        The difference of the shares of right answers, as a fraction. No common item: all NaN. No discordant
        item: p is 1.

    Source: McNemar (1947); Fagerland, Lydersen and Laake (2013) for mid-p; Newcombe (1998), methods 5 and 6, for the
    interval of the share, which he multiplies by m / n as if that were known.

    Examples:
        >>> result = mcnemar([1, 1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 0, 1])
        >>> result.difference, result.p, result.method
        (0.75, 0.03125, 'McNemar exact')
    """
    check_confidence(confidence)
    first, second = two_lists("comparison", a, b)
    if any((answers * answers != answers).any(where=~np.isnan(answers)) for answers in (first, second)):
        raise ValueError("mcnemar: expected 1 for right, 0 for wrong and NaN for no score; found another number.")
    differences = first - second
    n = int(np.count_nonzero(~np.isnan(differences)))
    ours, theirs = int(np.count_nonzero(differences == 1.0)), int(np.count_nonzero(differences == -1.0))
    if n == 0:
        return Difference(method="McNemar exact", reason="no item has both scores")
    return _mcnemar_of(ours, theirs, n, confidence)


@lru_cache(maxsize=100_000)  # among many models, many pairs have the same counts
def _mcnemar_of(ours: int, theirs: int, n: int, confidence: float) -> Difference:
    method: Method = "McNemar exact" if ours + theirs < EXACT_BELOW else "McNemar mid-p"
    discordant, part = ours + theirs, 1.0 if method == "McNemar exact" else 0.5  # of the observed count's probability

    def upper_tail(count: int, share: float) -> float:
        if not 0 < count <= discordant:
            return float(count <= 0)
        return float(special.betainc(count, discordant - count + 1, share))

    def as_high(share: float) -> float:
        return part * upper_tail(ours, share) + (1.0 - part) * upper_tail(ours + 1, share)

    def as_low(share: float) -> float:
        return 1.0 - (1.0 - part) * upper_tail(ours, share) - part * upper_tail(ours + 1, share)

    discordant_share = proportion_interval(discordant, n, confidence)
    low, high = _share_times_size(as_high, as_low, (discordant_share.low, discordant_share.high), confidence)
    sd = math.sqrt(max(discordant - (ours - theirs) ** 2 / n, 0.0) / max(n - 1, 1))
    p = min(1.0, 2.0 * min(as_high(0.5), as_low(0.5)))
    return Difference((ours - theirs) / n, low, high, p, n, method, clusters=n, differing=discordant, sd=sd)
