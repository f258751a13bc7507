"""A judge's mean score, or the difference of two models' means, corrected by people; the intervals allow for bias.

A judge has scored all N responses; people have rated n of them, drawn at random within strata such as cultures. Scores
are numbers on one scale; NaN marks a response that the judge has no score for, or that no person has rated. The
interval is for the people who rated: it says nothing of how others would have rated the same responses. A better judge
may take the place of the people.
Nothing here raises for data that are too few or too much alike: values are NaN, and the reason says why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.means import (
    Clusters,
    Floats,
    Numbers,
    centred,
    check_confidence,
    cluster_numbers,
    filled,
    stratum_means,
    two_lists,
)

LARGEST_WEIGHT = 1.5
"""Upper end of the weight; the lower one is 0, where the judge says nothing."""

FEW_DIFFERING = 5
"""Differing pairs of scores below which no interval is narrower than that of people alone."""

_PRIOR = 5.0
"""Ratings that the spread over all strata counts for in the spread of one."""

_PAIRED = 0.9
"""Share of each model's rated items that people rated of both models, from which on the differences are corrected."""

_LEAST_P = 1e-100
"""The least p value that is worked out."""


class Corrected(NamedTuple):
    """A corrected score with its intervals, in the unit of the scores; NaN where there is none.

    Attributes:
        value: The score.
        low: Lower end of its interval for questions like these.
        high: Upper end.
        set_low: Lower end of its interval for these very responses alone.
        set_high: Upper end.
        rated: Number of responses that people rated.
        size: Number of responses in all.
        weight: How much of the judge's score counts, from 0 to :data:`LARGEST_WEIGHT`.
        reason: Why the value or an end is NaN; None where none is.
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    set_low: float = math.nan
    set_high: float = math.nan
    rated: int = 0
    size: int = 0
    weight: float = math.nan
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CorrectedMean:
    """The corrected mean over all strata, each with its share, and that of each, in the order of first responses."""

    overall: Corrected
    strata: Mapping[Hashable, Corrected]
    _fits: tuple[_Fit, ...] = ()

    def over(self, shares: Mapping[Any, float]) -> Corrected:
        """The corrected mean over the strata with these shares, such as those of one culture.

        NaN with a reason where one of these strata has too few ratings.

        Raises:
            ValueError: If a stratum is unknown, or no share is positive.

        Examples:
            >>> judge, people = [1, 1, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0]
            >>> corrected_mean(judge, people, strata=["ar"] * 4 + ["ja"] * 4).over({"ja": 1.0}).value
            0.5
        """
        unknown = [label for label in shares if label not in self.strata]
        if unknown or not any(share > 0.0 for share in shares.values()):
            raise ValueError(f"over: {dict(shares)}; expected positive shares of some of {list(self.strata)}.")
        inside = {label: self.strata[label] for label, share in shares.items() if share > 0.0}
        if not self._fits or any(math.isnan(mean.value) for mean in inside.values()):
            return _missing(inside)
        return _corrected(self._fits, self._rated_shares(shares))

    @property
    def _rated_strata(self) -> list[Hashable]:
        return [label for label, mean in self.strata.items() if not math.isnan(mean.value)]

    def _rated_shares(self, shares: Mapping[Any, float]) -> Floats:
        """Returns the shares of the strata that have a mean, which add up to 1."""
        parts = np.array([shares.get(label, 0.0) for label in self._rated_strata], dtype=np.float64)
        weights: Floats = parts / parts.sum()
        return weights


def corrected_mean(
    judge: ArrayLike,
    people: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    shares: Mapping[Any, float] | None = None,
    clusters: Clusters | None = None,
    ends: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> CorrectedMean:
    """The mean that people would give to all responses, from a judge's scores of all and people's of a random part.

    Formula, for stratum h with N_h responses of which n_h are rated, f the judge's scores and Y the people's:

    * lambda = sum of a_h cov_h(Y, f) / sum of a_h var_h(f) over the rated ones, with a_h = w_h^2 (1 / n_h - 1 / N_h),
      kept within 0 and 1.5: the one weight that makes the overall interval narrowest, the same in all strata;
    * value_h = lambda * mean(f over all N_h) + mean(Y - lambda f over the rated);
    * value = sum of w_h value_h, with w_h the stratum's share: N_h / N unless others are given;
    * variance for these very responses: sum of w_h^2 (1 / n_h - 1 / N_h) s_h^2, s_h^2 being the variance of
      Y - lambda f;
    * variance for questions like these: the same plus sum of w_h^2 v_h / N_h, with v_h = lambda^2 var(f) +
      2 lambda cov(f, Y - lambda f) + s_h^2, which is var(Y); and, where responses share a cluster, plus the products of
      their deviations from the mean within it, if these add up to more than 0;
    * half width: the root of t^2 * variance + u^2, where u allows for errors that the ratings may have missed. By the
      rule of three, 3 / n of the responses may have an error that none of n ratings shows (3 is -log of 1 - 0.95):
      u^2 = 3^2 m^2 / n * sum of w_h^2 / n_h, and with 1 / n_h - 1 / N_h in place of 1 / n_h for these very responses;
    * m^2, the square of that error: the larger of sum r^4 / sum r^2, for another one like those that make up the spread
      of the residuals r of Y - lambda f from their stratum's mean, and D^2 - sum r^2, for one like none of them. D^2 is
      the mean square, over all responses, of the distance from the score predicted of people, value_h + lambda times
      the judge's departure from its stratum's mean, to the farther end of the scale.

    Where fewer than five rated scores differ between judge and people, both half widths are at least those of people
    alone, whose weight of the judge is 0: so few differences don't tell how large one may be.

    s_h^2 is a weighted mean of the stratum's own variance and that over all strata, which counts as five ratings. t has
    as many degrees of freedom as ratings less strata less one, or those of the clusters (CR2, Satterthwaite) if these
    are fewer. For a mean over some strata, n and the degrees of freedom are those of their ratings and five more, up to
    the number of all.

    The value is unbiased up to the estimation of lambda (of order 1 / n) whatever the judge's scores are, if the
    responses to rate were drawn at random within each stratum from the very responses that were judged. A judge without
    a score of a response is taken to give the mean of its stratum. A stratum with fewer than two ratings has no mean,
    and there is no overall one then; the others have theirs. Simulated coverage is in ``docs/spotcheck.md``.

    Args:
        judge: The judge's score of each response; NaN where there is none.
        people: People's score of the same responses; NaN where not rated.
        strata: The stratum of each response; None means one.
        shares: The weight of each stratum in the overall mean; None for their sizes.
        clusters: The cluster of each response, such as its image; None makes each a cluster.
        ends: Lowest and highest score of the scale; None for those of the scores.
        confidence: Share of intervals meant to hold the true mean, between 0 and 1.

    Returns:
        The corrected means, in the unit and range of the scores (ends aren't cut at the scale's). No response, none
        rated, or fewer than two ratings in a stratum: NaN, with the reason.

    Raises:
        ValueError: If lengths differ, a score is infinite, or an option is out of range.

    Source: Angelopoulos et al. (2023), "Prediction-powered inference"; Angelopoulos, Duchi and Zrnic (2023), "PPI++",
    for the tuned weight; Särndal, Swensson and Wretman (1992), chapter 6, for the same in surveys; Hanley and
    Lippman-Hand (1983), "If nothing goes wrong, is everything all right?", for the rule of three. How the two are put
    together is this project's.

    Examples:
        >>> nan = float("nan")
        >>> judge = [1, 1, 1, 1, 0, 1, 1, 0, 1, 1]  # the judge's verdicts on all ten responses
        >>> people = [1, 0, 1, 1, 0, nan, nan, nan, nan, nan]  # people rated five of them
        >>> score = corrected_mean(judge, people, ends=(0, 1)).overall
        >>> round(score.value, 3), score.rated, score.size, round(score.weight, 3)
        (0.6, 5, 10, 0.75)
    """
    check_confidence(confidence)
    f, y = two_lists("corrected_mean", judge, people)
    if f.size == 0:
        return CorrectedMean(Corrected(reason="there is no response"), {})
    if strata is not None and len(strata) != f.size:
        raise ValueError(f"corrected_mean: {len(strata)} strata for {f.size} responses; expected one for each.")
    stratum_labels = ["all"] * f.size if strata is None else list(strata)
    labels = list(dict.fromkeys(stratum_labels))
    codes = cluster_numbers(stratum_labels, np.ones(f.size, dtype=np.bool_))
    rated = ~np.isnan(y)
    counts, sizes = np.bincount(codes[rated], minlength=len(labels)), np.bincount(codes)
    by_stratum = {
        label: _missing({label: Corrected(rated=n, size=size)})
        for label, n, size in zip(labels, counts.tolist(), sizes.tolist(), strict=True)
    }
    usable = counts >= np.minimum(2, sizes)
    if counts[usable].sum() < np.count_nonzero(usable) + 2:
        return CorrectedMean(_missing(by_stratum), by_stratum)
    inside = usable[codes]
    weights = _shares(labels, codes, shares)[usable]
    numbers = (np.cumsum(usable) - 1)[codes[inside]]
    fit_of = partial(
        _Fit,
        people=y[rated & inside],
        rated=rated[inside],
        codes=numbers,
        shares=weights / weights.sum() if weights.any() else weights,
        clusters=None if clusters is None else cluster_numbers(clusters, inside),
        ends=ends,
        alpha=1.0 - confidence,
    )

    fits: tuple[_Fit, ...] = (fit_of(f[inside]),)
    if np.count_nonzero(np.abs(f[inside] - y[inside]) > 0.0) < FEW_DIFFERING:
        fits = (*fits, fit_of(np.full(numbers.size, np.nan)))
    scored = [label for label, is_usable in zip(labels, usable, strict=True) if is_usable]
    by_stratum |= {label: _corrected(fits, row) for label, row in zip(scored, np.eye(weights.size), strict=True)}
    return CorrectedMean(_corrected(fits, fits[0].shares) if usable.all() else _missing(by_stratum), by_stratum, fits)


def for_other_raters(
    mean: Corrected,
    ratings: Floats,
    judge: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Returns the ends of a corrected mean's interval for raters like these, of whom each rates a little otherwise.

    Formula: with m_j the mean of Y - lambda f of rater j, less its stratum's mean, over responses of strata that
    several raters rated, half^2 = half^2 of the interval for these raters + (t s / sqrt(k))^2, where s is the standard
    deviation of k raters' m_j and t has k - 1 degrees of freedom. NaN with fewer than two raters of a common stratum.

    Args:
        mean: The corrected mean.
        ratings: Ratings, a row per rater and a column per response; NaN without one.
        judge: The judge's scores of the responses; NaN where there is none.
        strata: The stratum of each response; None means one.
        confidence: Share of intervals meant to hold the mean over all raters, between 0 and 1.

    Source: Searle, Casella and McCulloch (1992), "Variance Components".

    Examples:
        >>> ratings = np.array([[6.0, 7.0, 5.0, 6.0], [6.5, 7.6, 5.5, 6.4]])  # the second is 0.5 more generous
        >>> mean = Corrected(6.2, 5.2, 7.2, weight=0.0)
        >>> [round(end, 2) for end in for_other_raters(mean, ratings, [6.0, 7.0, 5.0, 6.0])]
        [2.87, 9.53]
    """
    scores = np.asarray(judge, dtype=np.float64)
    errors = ratings - mean.weight * np.where(np.isnan(scores), np.nanmean(scores), scores)
    codes = cluster_numbers(["all"] * scores.size if strata is None else strata, np.ones(scores.size, dtype=np.bool_))
    rated = ~np.isnan(errors)
    members = np.stack([np.bincount(codes[row], minlength=codes.max() + 1) for row in rated])
    rated &= ((members > 0).sum(axis=0) > 1)[codes]
    places, numbers = np.nonzero(rated)[0], np.broadcast_to(codes, errors.shape)[rated]
    departures = centred(errors[rated], np.unique(numbers, return_inverse=True)[1])
    means = stratum_means(departures, np.unique(places, return_inverse=True)[1])
    if means.size < 2:
        return math.nan, math.nan
    t = float(special.stdtrit(means.size - 1, (1.0 + confidence) / 2.0))
    between = t * float(means.std(ddof=1)) / math.sqrt(means.size)
    below, above = (math.hypot(end - mean.value, between) for end in (mean.low, mean.high))
    return mean.value - below, mean.value + above


@dataclass(frozen=True, slots=True)
class CorrectedDifference:
    """The first model's mean less the second's, corrected; :meth:`over` gives it for all strata or some of them.

    Attributes:
        paired: Whether the differences of items were corrected, rather than each model's mean by itself.
        rated: Number of items that people rated: of both models where it is paired, of either where not.
    """

    paired: bool
    rated: int
    _means: tuple[CorrectedMean, ...]
    _shares: Mapping[Any, float]

    def over(self, shares: Mapping[Any, float] | None = None, confidence: float = 0.95) -> Difference:
        """The corrected difference over the strata with these shares, such as those of one culture; None means all.

        Args:
            shares: The weight of each stratum; None for those that :func:`corrected_difference` was given.
            confidence: Share of intervals meant to hold the true difference, between 0 and 1.

        Returns:
            The difference, first less second, with the interval for questions like these. p is the probability at
            which the interval's end is 0, and n the number of items, rated or not. NaN with a reason where one of the
            strata has too few ratings.

        Raises:
            ValueError: If a stratum is unknown, no share is positive, or the confidence is out of range.

        Examples:
            >>> judge = [4, 5, 3, 5, 4, 5, 4, 5] * 5, [3, 3, 3, 4, 2, 4, 3, 3] * 5
            >>> people = [4, 4, 3, 5, 4, 5, 4, 4] * 5, [3, 4, 2, 4, 2, 4, 2, 3] * 5
            >>> result = corrected_difference(judge, people, strata=["ar"] * 20 + ["ja"] * 20).over({"ja": 1.0})
            >>> round(result.difference, 2), result.low > 0.0, result.p < 0.05
            (1.2, True, True)
        """
        check_confidence(confidence)
        shares = self._shares if shares is None else shares
        if not self._means[0].strata:
            return Difference(reason="there is no response")
        means = [mean.over(shares) for mean in self._means]
        difference = Difference(
            method="corrected, paired" if self.paired else "corrected, unpaired",
            n=means[0].size,
            clusters=means[0].size,
        )
        if any(math.isnan(mean.value) for mean in means):
            first = self._means[0]
            few = [str(label) for label in shares if shares[label] > 0.0 and math.isnan(first.strata[label].value)]
            names = "" if len(first.strata) == 1 else f" for {', '.join(dict.fromkeys(few))}"
            return difference._replace(reason=f"too few responses of both are rated{names}")
        value = means[0].value - sum(mean.value for mean in means[1:])
        weights = [mean._rated_shares(shares) for mean in self._means]
        if self.paired:
            spreads = [fit.spread(weights[0]) for fit in self._means[0]._fits]
        else:
            first_fits, second_fits = (mean._fits for mean in self._means)
            spreads = [
                fit.spread(weights[0]).difference(other.spread(weights[1]), fit.shared_variance(other, weights[0]))
                for fit, other in {(first_fits[index], second_fits[index]) for index in (0, -1)}
            ]

        def reach(alpha: float) -> float:
            return max(spread.reach(alpha) for spread in spreads)

        half = reach(1.0 - confidence)
        if not half > 0.0:
            p = 1.0 if value == 0.0 else math.nan
            return difference._replace(difference=value, p=p, reason="the ratings show no spread")
        if value == 0.0 or reach(_LEAST_P) <= abs(value):
            p = 1.0 if value == 0.0 else _LEAST_P
        else:
            logarithm = scipy.optimize.brentq(lambda log: reach(math.exp(log)) - abs(value), math.log(_LEAST_P), 0.0)
            p = math.exp(logarithm)
        return difference._replace(difference=value, low=value - half, high=value + half, p=p)


def corrected_difference(
    judge: tuple[ArrayLike, ArrayLike],
    people: tuple[ArrayLike, ArrayLike],
    strata: Sequence[Hashable] | None = None,
    *,
    shares: Mapping[Any, float] | None = None,
    clusters: Clusters | None = None,
    ends: tuple[float, float] | None = None,
) -> CorrectedDifference:
    """The difference of the means that people would give to two models, from a judge's scores and people's of a part.

    Formula, where people rated the same items of both: :func:`corrected_mean` of the items' differences, on a scale of
    twice the width. That is lambda * mean(f_1 - f_2 over all) + mean(y_1 - y_2 - lambda (f_1 - f_2) over the rated),
    with the lambda that makes the interval of the difference narrowest. A bias that the judge has for both cancels out,
    and so does an item's difficulty for both.

    Where they rated different items: the corrected mean of the first less that of the second, each with its own lambda.
    The variance is the sum of the two variances less twice their covariance, which is the sum over clusters of the
    product of the two means' influences, and u^2 is the sum of both. Degrees of freedom are the fewer.

    It is paired where at least nine tenths of each model's rated items are rated of both, and no stratum has too few of
    these; an item that is rated of one alone then counts as not rated. The same items of both models are given in one
    order.

    Args:
        judge: The judge's score of each item, of the first and of the second model; NaN where there is none.
        people: People's scores of the same; NaN where not rated.
        strata: The stratum of each item, such as its culture; None means one.
        shares: The weight of each stratum; None for their sizes.
        clusters: The cluster of each item, such as its image; None makes each a cluster.
        ends: Lowest and highest score of the scale; None for those of the scores.

    Returns:
        The difference, by :meth:`CorrectedDifference.over`.

    Raises:
        ValueError: If lengths differ, a score is infinite, or an option is out of range.

    Source: as :func:`corrected_mean`; for differences of two models also Boyeau et al. (2024), "AutoEval Done Right".
    The covariance where items differ is that of two-phase estimators (Särndal, Swensson and Wretman, 1992).

    Examples:
        >>> nan = float("nan")
        >>> judge = [1, 1, 1, 0, 1, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0, 0]
        >>> people = [1, 0, 1, 0, nan, nan, nan, nan], [0, 1, 1, 0, nan, nan, nan, nan]
        >>> result = corrected_difference(judge, people, ends=(0, 1))
        >>> result.paired, result.rated, result.over().difference, round(result.over().p, 2)
        (True, 4, 0.0, 1.0)
    """
    f = np.stack(two_lists("corrected_difference", *judge))
    y = np.stack(two_lists("corrected_difference", *people))
    if f.shape != y.shape:
        raise ValueError(f"corrected_difference: {y.shape[1]} ratings for {f.shape[1]} items; expected one for each.")
    stratum_labels = ["all"] * f.shape[1] if strata is None else list(strata)
    weights: Mapping[Any, float] = Counter(stratum_labels) if shares is None else shares
    rated = ~np.isnan(y)
    codes = cluster_numbers(stratum_labels, np.ones(f.shape[1], dtype=np.bool_))
    rated_in_both: NDArray[np.bool_] = np.logical_and.reduce(rated)
    sizes = np.bincount(codes)
    counts = np.stack([np.bincount(codes[model_rated], minlength=sizes.size) for model_rated in rated])
    usable = counts.min(axis=0) >= np.minimum(2, sizes)
    enough = bool((np.bincount(codes[rated_in_both], minlength=sizes.size) >= np.minimum(2, sizes))[usable].all())
    paired = enough and int(rated_in_both.sum()) >= _PAIRED * int(counts.sum(axis=1).max(initial=0))
    mean_of = partial(corrected_mean, strata=stratum_labels, shares=weights, clusters=clusters)
    if paired:
        width = None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])
        mean = mean_of(f[0] - f[1], y[0] - y[1], ends=width)
        return CorrectedDifference(paired, int(rated_in_both.sum()), (mean,), weights)
    y[:, ~usable[codes]] = np.nan  # ratings of one model alone are of no use
    means = tuple(mean_of(scores, ratings, ends=ends) for scores, ratings in zip(f, y, strict=True))
    return CorrectedDifference(paired, int(rated.any(axis=0).sum()), means, weights)


def _shares(labels: Sequence[Hashable], codes: Numbers, shares: Mapping[Any, float] | None) -> Floats:
    if shares is None:
        return np.bincount(codes, minlength=len(labels)).astype(np.float64)
    if any(label not in shares or not 0.0 <= shares[label] < math.inf for label in labels):
        raise ValueError(f"corrected_mean: shares {dict(shares)}; expected one of at least 0 for each of {labels}.")
    weights = np.array([shares[label] for label in labels], dtype=np.float64)
    if not weights.sum() > 0.0:
        raise ValueError("corrected_mean: all shares are 0; expected a positive one.")
    return weights


def _missing(strata: Mapping[Any, Corrected]) -> Corrected:
    """Returns numbers of responses alone for strata that have too few ratings, with the reason."""
    reasons = []
    for few, lack in ((0, "no ratings yet"), (1, "only one rating")):
        lacking = (str(label) for label, mean in strata.items() if mean.rated == few < min(2, mean.size))
        names = list(dict.fromkeys(lacking))
        if names and len(strata) == 1:
            reasons.append(lack)
        elif names:
            listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            reasons.append(f"{listed} {'has' if len(names) == 1 else 'have'} {lack}")
    return Corrected(
        rated=sum(mean.rated for mean in strata.values()),
        size=sum(mean.size for mean in strata.values()),
        reason="; ".join(reasons) or "too few ratings for the spread to be known",
    )


def _corrected(fits: Sequence[_Fit], shares: Floats) -> Corrected:
    """Returns the corrected mean over the strata with these shares; no interval is narrower than that of any fit."""
    fit, inside = fits[0], shares > 0.0
    value = float(shares @ fit.values)
    rated, size = int(fit.counts[inside].sum()), int(fit.sizes[inside].sum())
    point = Corrected(value, rated=rated, size=size, weight=fit.weight)
    reach, in_set = (
        max(each.spread(shares, in_set=in_set).reach(each.alpha) for each in fits) for in_set in (False, True)
    )
    if not reach > 0.0:
        return point._replace(reason="the ratings show no spread")
    return point._replace(low=value - reach, high=value + reach, set_low=value - in_set, set_high=value + in_set)


class _Fit:
    """Strata with their values and variances; the overall mean and that of each differ in shares alone.

    Attributes:
        weight: How much of the judge's score counts.
        values: The corrected mean of each stratum.
        spreads: The variance of the residuals of people's scores from the judge's, by stratum.
        unseen: The square of an error that the ratings may have missed.
    """

    def __init__(
        self,
        judge: Floats,
        *,
        people: Floats,
        rated: NDArray[np.bool_],
        codes: Numbers,
        shares: Floats,
        clusters: Numbers | None,
        ends: tuple[float, float] | None,
        alpha: float,
    ) -> None:
        """Takes the judge's scores of all responses, people's of the rated ones alone, and strata as numbers."""
        self.shares, self.alpha = shares, alpha
        self._codes, self._clusters = codes, clusters
        members = codes[rated]
        self.sizes, self.counts = np.bincount(codes), np.bincount(members)
        f = filled(judge, codes, shares.size)
        self.weight = self._tuned(f[rated], people, members)
        scores = self.weight * f
        of_scores = stratum_means(scores, codes)
        residuals = people - scores[rated]
        means = stratum_means(residuals, members)
        off = residuals - means[members]
        self.values = of_scores + means
        squares = np.bincount(members, weights=off**2)
        total = float(squares.sum())
        freedom, of_each = members.size - self.counts.size - 1.0, self.counts * (1.0 - 1.0 / members.size) - 1.0
        # The variance over all strata stands in for as many ratings as _PRIOR says; of one stratum alone it is its own.
        self.spreads = (squares + _PRIOR * total / freedom) / (of_each + _PRIOR)
        predicted = scores + means[codes]
        low, high = ends or (min(predicted.min(), people.min()), max(predicted.max(), people.max()))
        farthest = np.maximum(predicted - low, high - predicted)
        similar = float((off**4).sum()) / total if total else 0.0
        self.unseen = max(similar, float((farthest**2).mean()) - total)
        departures = scores - of_scores[codes]
        of_judge = np.bincount(codes, weights=departures**2) / np.maximum(self.sizes - 1, 1)
        covariances = stratum_means(2.0 * departures[rated] * off, members)
        self._variances = np.maximum(of_judge + covariances + self.spreads, 0.0)
        self._influence = departures / self.sizes[codes]  # of each response on the mean of its stratum
        self._influence[rated] += off / self.counts[members]

    def _tuned(self, f: Floats, y: Floats, members: Numbers) -> float:
        """Returns the weight of the judge's scores of the rated responses."""
        of_f, of_y = centred(f, members), centred(y, members)
        sampling = 1.0 / self.counts - 1.0 / self.sizes
        influence = self.shares**2 * sampling / np.maximum(self.counts - 1, 1)
        above = float(influence @ np.bincount(members, weights=of_f * of_y))
        below = float(influence @ np.bincount(members, weights=of_f**2))
        return min(max(above / below, 0.0), LARGEST_WEIGHT) if below > 0.0 else 0.0

    def spread(self, shares: Floats, *, in_set: bool = False) -> _Spread:
        """Returns how uncertain the mean is for questions like these, or for these very responses."""
        inside, all_rated = shares > 0.0, float(self.counts.sum())
        rated = min(all_rated, float(self.counts[inside].sum()) + _PRIOR)
        freedom = max(1.0, min(rated - np.count_nonzero(inside), all_rated - inside.size) - 1.0)
        sampling = shares**2 * (1.0 / self.counts - 1.0 / self.sizes)
        variance = float(sampling @ self.spreads)
        unseen = self.unseen / rated * float(sampling.sum())
        if in_set:
            return _Spread(variance, freedom, unseen)
        # The variance of the questions, which remains where all responses are rated.
        variance += float((shares**2 * self._variances / self.sizes).sum())
        if self._clusters is not None:
            freedom = max(1.0, min(freedom, self._clustered(shares)[1]))
            influence = self._influence * shares[self._codes]
            variance += max(self.shared_variance(self, shares) - float(influence @ influence), 0.0)
        return _Spread(variance, freedom, unseen + self.unseen / rated * float((shares**2 / self.sizes).sum()))

    def shared_variance(self, second: _Fit, shares: Floats) -> float:
        """Returns the covariance with the mean of another model's responses to the same items."""
        first_influence, second_influence = (fit._influence * shares[fit._codes] for fit in (self, second))
        if self._clusters is None:
            return float(first_influence @ second_influence)
        sums = [np.bincount(self._clusters, weights=part) for part in (first_influence, second_influence)]
        return float(sums[0] @ (self._clustered(shares)[0] * sums[1]))

    def _clustered(self, shares: Floats) -> tuple[Floats, float]:
        """Returns by how much each cluster's squared influence is too small, and the degrees of freedom (CR2).

        As :func:`~culture_tasks.metrics.means.mean_and_error` has them, but for departures from the means of strata: a
        cluster's leverage is its share of a stratum, averaged over strata as it weighs in them.
        """
        assert self._clusters is not None
        inside = shares > 0.0
        sizes, weights = self.sizes[inside], shares[inside, None]
        members, width = inside[self._codes], int(self._clusters.max()) + 1
        places = (np.cumsum(inside) - 1)[self._codes[members]] * width + self._clusters[members]
        parts = np.bincount(places, minlength=sizes.size * width).reshape(sizes.size, width) / sizes[:, None]
        weighted = weights * parts
        total = weighted.sum(axis=0)
        leverage = np.divide((weighted * parts).sum(axis=0), total, out=np.zeros_like(total), where=total > 0.0)
        factor: Floats = 1.0 / np.where(leverage < 1.0 - 1e-9, 1.0 - leverage, 1.0)
        diagonal = factor * (weights / sizes[:, None] * weighted).sum(axis=0)
        projected = weighted * np.sqrt(factor / sizes[:, None])
        lengths = (projected**2).sum(axis=0)
        trace = float(diagonal.sum() - lengths.sum())
        squares = float(diagonal @ diagonal - 2.0 * (diagonal @ lengths) + ((projected @ projected.T) ** 2).sum())
        return factor, trace**2 / squares if squares > 0.0 else 1.0


class _Spread(NamedTuple):
    """How uncertain a mean is: its variance with degrees of freedom, and the errors that ratings may have missed."""

    variance: float
    freedom: float
    unseen: float  # squared, and divided by the squared logarithm of the level

    def difference(self, second: _Spread, shared: float) -> _Spread:
        """Returns that of a difference of two means with this covariance."""
        variance = max(self.variance + second.variance - 2.0 * shared, 0.0)
        return _Spread(variance, min(self.freedom, second.freedom), self.unseen + second.unseen)

    def reach(self, alpha: float) -> float:
        """Returns half the width of an interval that misses with this probability."""
        t = float(special.stdtrit(self.freedom, alpha / 2.0))
        return math.sqrt(t**2 * self.variance + math.log(alpha) ** 2 * self.unseen)
