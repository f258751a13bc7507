"""Agreement of raters on one ordered scale.

Ratings are numbers; NaN stands for a rating that is missing. Nothing here raises for data that are too few or too much
alike: the value is NaN and says why. Values are computed from tables of joint counts
(:mod:`culture_tasks.metrics.rating_tables`), so scales are to have at most :data:`MOST_VALUES` distinct values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from culture_tasks.metrics import rating_tables
from culture_tasks.metrics.rating_tables import Level, RatingTables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.metrics.rating_tables import Floats

Statistic = Literal["pearson", "spearman", "kendall_tau_b", "krippendorff_alpha", "mean_error", "mean_absolute_error"]
"""A statistic of two raters' agreement."""

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)

MOST_VALUES = 250
"""Most distinct ratings that are told apart; a rating scale has far fewer."""


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
    """
    return statistic("pearson", first, second)


def spearman(first: ArrayLike, second: ArrayLike) -> Value:
    """Spearman's rho: how nearly the raters order the responses alike.

    Formula: Pearson's r of the mid-ranks. Range -1 to 1: +1 the same order and ties, 0 no monotonic relation (what
    unrelated raters give), negative reversed.

    Args, returns and errors are those of :func:`pearson`.

    Source: Spearman (1904). Reported by CARE (Guo et al., 2025), Appendix C.2.
    """
    return statistic("spearman", first, second)


def kendall_tau_b(first: ArrayLike, second: ArrayLike) -> Value:
    """Kendall's tau-b: surplus of response pairs ordered alike over those ordered oppositely, corrected for ties.

    Formula: (C - D) / sqrt((N - T1) * (N - T2)), with N pairs of responses, C ordered alike, D ordered oppositely, T1
    and T2 tied by the first and second rater. Range -1 to 1: +1 the same order and ties, 0 as many alike as
    opposite (what unrelated raters give), negative more often opposite.

    Args, returns and errors are those of :func:`pearson`.

    Source: Kendall (1945). CARE (Guo et al., 2025), Appendix C.2, reports "Kendall's Tau" without naming the variant.
    """
    return statistic("kendall_tau_b", first, second)


def mean_error(first: ArrayLike, second: ArrayLike) -> Value:
    """Mean signed error: how much higher the second rater rates, in points of the scale.

    Formula: mean(second - first). Positive: the second is more generous; 0: no bias; negative: stricter. Range: the
    width of the scale, either sign.

    Args, returns and errors are those of :func:`pearson`, but one pair is enough and ratings may all be equal.
    """
    return statistic("mean_error", first, second)


def mean_absolute_error(first: ArrayLike, second: ArrayLike) -> Value:
    """Mean absolute error: how far apart the two ratings of a response are, in points of the scale.

    Formula: mean(abs(second - first)). From 0, identical ratings, to the width of the scale. What unrelated
    raters give depends on how they use the scale, so it is no measure of agreement beyond chance.

    Args, returns and errors are those of :func:`pearson`, but one pair is enough and ratings may all be equal.
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
