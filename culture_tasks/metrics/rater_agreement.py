"""Agreement of raters on one ordered scale, with bootstrap intervals that respect what responses share.

Ratings are numbers; NaN stands for a rating that is missing. Nothing here raises for data that are too few or too much
alike: the value is NaN and says why. Values are computed from tables of joint counts
(:mod:`culture_tasks.metrics.rating_tables`), so a scale may have at most :data:`MOST_VALUES` distinct values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from culture_tasks.metrics import rating_tables
from culture_tasks.metrics.rating_tables import Level, RatingTables, resampled_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.metrics.rating_tables import Floats

Statistic = Literal["pearson", "spearman", "kendall_tau_b", "krippendorff_alpha", "mean_error", "mean_absolute_error"]
"""A statistic of two raters' agreement."""

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)

MOST_VALUES = 250
"""Most distinct ratings that are told apart; a rating scale has far fewer."""

_LEAST_DEFINED = 0.9
"""An interval needs at least this share of resamples in which the statistic is defined."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A statistic with its bootstrap percentile interval.

    Attributes:
        value: The value on all pairs, or NaN.
        low: Lower end of the interval, or NaN.
        high: Upper end of the interval, or NaN.
        reason: Why the value or the interval is NaN; None where neither is.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    reason: str | None = None

    @property
    def text(self) -> str:
        """The statistic with its interval, such as ``0.924 (0.918, 0.930)``, or ``n/a``."""
        if math.isnan(self.value):
            return "n/a"
        interval = "" if math.isnan(self.low) else f" ({self.low:.3f}, {self.high:.3f})"
        return f"{self.value:.3f}{interval}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two raters.

    Attributes:
        pairs: Number of responses that both rated.
        clusters: Number of clusters (questions) that these belong to.
        estimates: An estimate of each of :data:`STATISTICS`.
    """

    pairs: int
    clusters: int
    estimates: Mapping[Statistic, Estimate]


def agreement(
    first: ArrayLike,
    second: ArrayLike,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = 1_000,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
) -> Agreement:
    """All statistics of two raters with bootstrap percentile intervals.

    Whole clusters are drawn with replacement, as many as there are, and all statistics see the same resamples. The
    interval runs between the (1 - confidence) / 2 quantiles at both ends; resamples in which a statistic is undefined
    are left out, and more than a tenth of them make the interval NaN. Percentile intervals are too narrow
    with few clusters, say less than 30.

    Args:
        first: One rater's ratings, such as a human's; NaN where missing.
        second: The other's, such as a judge's, in the same order.
        clusters: What each response belongs to, such as its question; None means that each stands alone.
        resamples: How many resamples; 0 gives no intervals.
        confidence: Share of intervals meant to hold the true value, between 0 and 1.
        rng: Source of randomness; None means a generator with seed 0.

    Returns:
        The agreement over the responses that both rated.

    Raises:
        ValueError: If lengths differ, a rating is infinite, or an option is out of range.

    Source: Efron and Tibshirani (1993), chapter 13; Davison and Hinkley (1997), section 3.8, for whole clusters.

    Examples:
        >>> found = agreement([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
        >>> found.pairs, found.estimates["mean_error"].value
        (5, 0.0)
        >>> round(found.estimates["spearman"].value, 3)
        0.9
    """
    if resamples < 0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"agreement: resamples={resamples} and confidence={confidence}; needed are >= 0 and 0 to 1.")
    ours, theirs, rated = complete_pairs(first, second)
    members = np.arange(rated.size) if clusters is None else _numbered(clusters, rated.size)
    owners = np.unique(members[rated], return_inverse=True)[1]
    many = int(owners.max()) + 1 if owners.size else 0
    points = {name: statistic(name, ours, theirs) for name in STATISTICS}
    if resamples == 0 or many < 2 or points["mean_error"].reason:
        why = "no resamples were asked for" if resamples == 0 else f"{many} question(s): nothing to resample"
        estimates = {name: Estimate(value, reason=no or why) for name, (value, no) in points.items()}
        return Agreement(ours.size, many, estimates)
    tables = resampled_tables(ours, theirs, clusters=owners, resamples=resamples, rng=rng or np.random.default_rng(0))
    with np.errstate(all="ignore"):
        batches = [{name: KERNELS[name](batch) for name in STATISTICS} for batch in tables]
    draws = {name: np.concatenate([batch[name] for batch in batches]) for name in STATISTICS}
    return Agreement(ours.size, many, {name: _estimate(points[name], draws[name], confidence) for name in STATISTICS})


def _numbered(clusters: Sequence[Hashable], size: int) -> NDArray[np.intp]:
    if len(clusters) != size:
        raise ValueError(f"agreement: {len(clusters)} clusters for {size} ratings; one for each is needed.")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)


def _estimate(point: Value, draws: Floats, confidence: float) -> Estimate:
    defined = draws[np.isfinite(draws)]
    if point.reason or defined.size < _LEAST_DEFINED * draws.size:
        why = point.reason or f"defined in {defined.size} of {draws.size} resamples only"
        return Estimate(point.value, reason=why)
    low, high = np.quantile(defined, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return Estimate(point.value, float(low), float(high))


class Value(NamedTuple):
    """A statistic.

    Attributes:
        value: The value, or NaN.
        reason: Why the value is NaN; None where it isn't.
    """

    value: float
    reason: str | None


def pearson(first: ArrayLike, second: ArrayLike) -> Value:
    """Pearson's r: how nearly the second rater's ratings are a rising straight line of the first's.

    Formula: covariance / (sd of first * sd of second). Range -1 to 1: +1 a rising line, 0 no linear relation (what
    unrelated raters give), negative a falling one. Blind to a constant offset or another use of the scale's width.

    Args:
        first: One rater's ratings; NaN where missing.
        second: The other's, in the same order.

    Returns:
        The value; NaN where there are no pairs or a rater gave one value only.

    Raises:
        ValueError: If the lengths differ or a rating is infinite.

    Source: Pearson (1895). Reported by CARE (Guo et al., 2025), Appendix C.2.

    Examples:
        >>> round(pearson([1, 2, 3, 4], [2, 3, 4, 6]).value, 3)
        0.983
    """
    return statistic("pearson", first, second)


def spearman(first: ArrayLike, second: ArrayLike) -> Value:
    """Spearman's rho: how nearly the raters order the responses alike.

    Formula: Pearson's r of the mid-ranks. Range -1 to 1: +1 the same order and ties, 0 no monotonic relation (what
    unrelated raters give), negative reversed.

    Args, returns and errors are those of :func:`pearson`.

    Source: Spearman (1904). Reported by CARE (Guo et al., 2025), Appendix C.2.

    Examples:
        >>> round(spearman([1, 2, 3, 4], [2, 3, 4, 9]).value, 3)
        1.0
    """
    return statistic("spearman", first, second)


def kendall_tau_b(first: ArrayLike, second: ArrayLike) -> Value:
    """Kendall's tau-b: surplus of response pairs ordered alike over those ordered oppositely, corrected for ties.

    Formula: (C - D) / sqrt((N - T1) * (N - T2)), with N pairs of responses, C ordered alike, D ordered oppositely, T1
    and T2 tied by the first and second rater. Range -1 to 1: +1 the same order and ties, 0 as many alike as
    opposite (what unrelated raters give), negative more often opposite.

    Args, returns and errors are those of :func:`pearson`.

    Source: Kendall (1945). CARE (Guo et al., 2025), Appendix C.2, reports "Kendall's Tau" without naming the variant.

    Examples:
        >>> round(kendall_tau_b([1, 2, 3, 4], [1, 2, 4, 3]).value, 3)
        0.667
    """
    return statistic("kendall_tau_b", first, second)


def mean_error(first: ArrayLike, second: ArrayLike) -> Value:
    """Mean signed error: how much higher the second rater rates, in points of the scale.

    Formula: mean(second - first). Positive: the second is more generous; 0: no bias; negative: stricter. Range: the
    width of the scale, either sign.

    Args, returns and errors are those of :func:`pearson`, but one pair is enough and ratings may all be equal.

    Examples:
        >>> mean_error([1, 2, 3, 4], [2, 3, 4, 4]).value
        0.75
    """
    return statistic("mean_error", first, second)


def mean_absolute_error(first: ArrayLike, second: ArrayLike) -> Value:
    """Mean absolute error: how far apart the two ratings of a response are, in points of the scale.

    Formula: mean(abs(second - first)). From 0, identical ratings, to the width of the scale. What unrelated
    raters give depends on how they use the scale, so it is no measure of agreement beyond chance.

    Args, returns and errors are those of :func:`pearson`, but one pair is enough and ratings may all be equal.

    Examples:
        >>> mean_absolute_error([1, 2, 3, 4], [2, 1, 3, 4]).value
        0.5
    """
    return statistic("mean_absolute_error", first, second)


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> Value:
    """Krippendorff's alpha: agreement of any number of raters beyond chance, offsets counting as disagreement.

    Formula: 1 - (observed disagreement) / (disagreement expected if ratings were dealt out to responses at random).
    1 is perfect agreement; 0 is what chance gives; negative means systematic disagreement. The bottom
    depends on the data, and nears -1 for two raters who use one value each, not the same. Two ratings disagree by 1 if
    they differ (nominal), by the squared difference of their mid-ranks among all ratings (ordinal), or by the squared
    difference (interval).

    Args:
        ratings: One row a rater, one column a response; NaN where missing. Responses with one rating don't count.
        level: Level of measurement.

    Returns:
        The value; NaN where no response has two ratings, or all ratings are equal (no disagreement can be expected).

    Raises:
        ValueError: If the ratings have no two dimensions, one is infinite, or the level is unknown.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability". Reported by CARE (Guo et al., 2025),
    Table 2, for human annotators, without the level.

    Examples:
        >>> krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, 3]]).value
        1.0
        >>> round(krippendorff_alpha([[1, 1, 2, 2], [1, 2, 2, 1]], level="nominal").value, 3)
        0.125
    """
    if level not in get_args(Level):
        raise ValueError(f"krippendorff_alpha: unknown level {level!r}. Allowed are {', '.join(get_args(Level))}.")
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError(f"krippendorff_alpha: needs finite ratings, raters by responses; came shape {table.shape}.")
    table = table[:, np.count_nonzero(~np.isnan(table), axis=0) > 1]
    if table.size == 0:
        return Value(math.nan, "no response has two ratings")
    values = np.unique(table[~np.isnan(table)])
    if values.size == 1:
        return Value(math.nan, f"every rating is {values[0]:g}")
    if values.size > MOST_VALUES:
        return Value(math.nan, _too_many(values.size))
    with np.errstate(all="ignore"):
        alpha = rating_tables.alpha_of_coincidences(values, _coincidences(table, values)[None], level)
    return _with_reason(float(alpha[0]), "the ratings differ too little to be told apart")


def statistic(name: Statistic, first: ArrayLike, second: ArrayLike) -> Value:
    """Computes one of :data:`STATISTICS` of two raters; see the function of that name (alpha is ordinal).

    Args, returns and errors are those of :func:`pearson`.

    Examples:
        >>> statistic("mean_error", [1, 2], [2, 3]).value
        1.0
        >>> statistic("pearson", [1, 1], [2, 3])
        Value(value=nan, reason='the first rater gave no other rating than 1')
    """
    ours, theirs, _ = complete_pairs(first, second)
    if ours.size == 0:
        return Value(math.nan, "no response has both ratings")
    distinct = np.unique(np.concatenate([ours, theirs])).size
    if distinct > MOST_VALUES:
        return Value(math.nan, _too_many(distinct))
    tables = rating_tables.tabulate(ours, theirs)
    with np.errstate(all="ignore"):
        value = float(KERNELS[name](tables)[0])
    return _with_reason(value, _why_undefined(tables))


KERNELS: Mapping[Statistic, Callable[[RatingTables], Floats]] = {
    "pearson": rating_tables.pearson_of,
    "spearman": rating_tables.spearman_of,
    "kendall_tau_b": rating_tables.kendall_of,
    "krippendorff_alpha": rating_tables.alpha_of,
    "mean_error": rating_tables.mean_error_of,
    "mean_absolute_error": rating_tables.mean_absolute_error_of,
}
"""Each statistic as a function of tables of joint counts."""


def complete_pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Returns both raters' ratings where both are there, and which these are.

    Raises:
        ValueError: If the lengths differ or a rating is infinite.

    Examples:
        >>> ours, theirs, both = complete_pairs([1, float("nan"), 3], [2, 2, 4])
        >>> ours.tolist(), theirs.tolist(), both.tolist()
        ([1.0, 3.0], [2.0, 4.0], [True, False, True])
    """
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape:
        raise ValueError(f"agreement: two lists of one length are needed; came shapes {ours.shape} and {theirs.shape}.")
    if np.isinf(ours).any() or np.isinf(theirs).any():
        raise ValueError("agreement: a rating is infinite; write NaN for a missing one.")
    rated = ~(np.isnan(ours) | np.isnan(theirs))
    return ours[rated], theirs[rated], rated


def _why_undefined(tables: RatingTables) -> str:
    if tables.values.size == 1:
        return f"every rating is {tables.values[0]:g}"
    for rater, counts in (("first", tables.first), ("second", tables.second)):
        given = tables.values[counts[0] > 0]
        if given.size == 1:
            return f"the {rater} rater gave no other rating than {given[0]:g}"
    return "the ratings differ too little to be told apart"


def _with_reason(value: float, reason: str) -> Value:
    return Value(value, None) if math.isfinite(value) else Value(math.nan, reason)


def _too_many(distinct: int) -> str:
    return f"{distinct} distinct ratings, more than {MOST_VALUES}: not a rating scale"


def _coincidences(table: Floats, values: Floats) -> Floats:
    counts = np.stack([np.count_nonzero(table == value, axis=0) for value in values]).astype(np.float64)
    weighted = counts / (counts.sum(axis=0) - 1.0)
    coincidences: Floats = weighted @ counts.T - np.diag(weighted.sum(axis=1))
    return coincidences
