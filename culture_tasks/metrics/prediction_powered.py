"""A judge's mean score, or the difference of two models' means, corrected by people; the intervals allow for bias.

A judge has scored all N responses; people have rated n of them, drawn at random within strata such as cultures. Scores
are numbers on one scale; NaN marks a response that the judge has no score for, or that no person has rated. The
interval is for the people who rated: it says nothing of how others would have rated the same responses. A better judge
may take the place of the people.
Nothing here raises for data that are too few or too much alike: values are NaN, and the reason says why.
"""

from __future__ import annotations

import math
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
    numbered,
    stratum_means,
    two_lists,
)

LARGEST_WEIGHT = 1.5
"""Upper end of the weight; the lower one is 0, where the judge says nothing."""

FEW_DIFFERING = 5
"""Differing pairs of scores below which no interval is narrower than that of people alone."""

_PRIOR = 5.0
"""Ratings that the spread over all strata counts for in the spread of one."""

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
    """The corrected mean over all strata, each with its share, or over some of them."""

    _labels: Sequence[Hashable]
    _sizes: Numbers
    _counts: Numbers
    _shares: Floats
    _fits: Sequence[_Fit]

    @property
    def overall(self) -> Corrected:
        """The mean over all strata, with the shares that :func:`corrected_mean` was given."""
        return self.over()

    def over(self, shares: Mapping[Any, float] | None = None, confidence: float = 0.95) -> Corrected:
        """The corrected mean over the strata with these shares, such as those of one culture; None means all.

        NaN with a reason where one of these strata has too few ratings.

        Raises:
            ValueError: If a stratum is unknown, no share is positive, or the confidence is out of range.

        Examples:
            >>> judge, people = [1, 1, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0]
            >>> corrected_mean(judge, people, strata=["ar"] * 4 + ["ja"] * 4).over({"ja": 1.0}).value
            0.5
        """
        check_confidence(confidence)
        mean, parts = self._value(shares)
        if mean.reason:
            return mean
        half, half_here = (
            _reach([fit.spread(parts, in_set=in_set) for fit in self._fits], 1.0 - confidence)
            for in_set in (False, True)
        )
        if not half > 0.0:
            return mean._replace(reason="the ratings show no spread")
        low, high = mean.value - half, mean.value + half
        return mean._replace(low=low, high=high, set_low=mean.value - half_here, set_high=mean.value + half_here)

    def _value(self, shares: Mapping[Any, float] | None) -> tuple[Corrected, Floats]:
        """Returns the mean without its ends, and the shares of the strata with enough ratings."""
        parts = self._shares if shares is None else _weights(self._labels, shares)
        inside, few = parts > 0.0, self._counts < np.minimum(2, self._sizes)
        mean = Corrected(rated=int(self._counts[inside].sum()), size=int(self._sizes[inside].sum()))
        lacking = [str(label) for label, is_few in zip(self._labels, inside & few, strict=True) if is_few]
        if lacking or not self._fits:
            names = f" for {', '.join(dict.fromkeys(lacking))}" if lacking and len(self._labels) > 1 else ""
            return mean._replace(reason=f"too few responses are rated{names}"), np.zeros(0)
        parts = parts[~few]
        return mean._replace(value=float(parts @ self._fits[0].values), weight=self._fits[0].weight), parts


def corrected_mean(
    judge: ArrayLike,
    people: ArrayLike,
    strata: Sequence[Hashable] | None = None,
    *,
    shares: Mapping[Any, float] | None = None,
    clusters: Clusters | None = None,
    ends: tuple[float, float] | None = None,
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
    f, y = two_lists("corrected_mean", judge, people)
    labels, codes = _codes(strata, f.size)
    rated = ~np.isnan(y)
    sizes = np.bincount(codes, minlength=len(labels))
    counts = np.bincount(codes[rated], minlength=len(labels))
    weights = _weights(labels, dict(zip(labels, sizes.tolist(), strict=True)) if shares is None else shares)
    usable = counts >= np.minimum(2, sizes)
    fits: list[_Fit] = []
    if counts[usable].sum() >= np.count_nonzero(usable) + 2:
        inside = usable[codes]
        fit_of = partial(
            _Fit,
            people=y[rated & inside],
            rated=rated[inside],
            codes=(np.cumsum(usable) - 1)[codes[inside]],
            shares=weights[usable] / (weights[usable].sum() or 1.0),
            clusters=None if clusters is None else cluster_numbers(clusters, inside),
            ends=ends,
        )
        fits.append(fit_of(f[inside]))
        if np.count_nonzero(np.abs(f[inside] - y[inside]) > 0.0) < FEW_DIFFERING:
            fits.append(fit_of(np.full(f[inside].size, np.nan)))
    return CorrectedMean(labels, sizes, counts, weights, fits)


def _codes(strata: Sequence[Hashable] | None, size: int) -> tuple[list[Hashable], Numbers]:
    """Returns the distinct strata, and the number of each response's."""
    of_responses: Sequence[Hashable] = ["all"] * size if strata is None else list(strata)
    return list(dict.fromkeys(of_responses)), cluster_numbers(of_responses, np.ones(size, dtype=np.bool_))


def _weights(labels: Sequence[Hashable], shares: Mapping[Any, float]) -> Floats:
    """Returns the share of each stratum, 0 where none is given; they add up to 1."""
    weights = np.array([shares.get(label, 0.0) for label in labels], dtype=np.float64)
    if not shares.keys() <= set(labels) or (labels and not (weights.min() >= 0.0 and 0.0 < weights.sum() < math.inf)):
        raise ValueError(f"corrected_mean: shares {dict(shares)}; expected positive ones of some of {labels}.")
    return weights / weights.sum() if labels else weights


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
    codes = _codes(strata, scores.size)[1]
    rated = ~np.isnan(errors)
    members = np.stack([np.bincount(codes[row], minlength=codes.max() + 1) for row in rated])
    rated &= ((members > 0).sum(axis=0) > 1)[codes]
    places, numbers = np.nonzero(rated)[0], np.broadcast_to(codes, errors.shape)[rated]
    departures = centred(errors[rated], numbered(numbers)[1])
    means = stratum_means(departures, numbered(places)[1])
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
        rated: Number of items that people rated of both models.
    """

    rated: int
    _mean: CorrectedMean

    def over(self, shares: Mapping[Any, float] | None = None, confidence: float = 0.95) -> Difference:
        """The corrected difference over the strata with these shares, as :meth:`CorrectedMean.over`.

        p is the probability at which the interval's end is 0, and n the number of items, rated or not.

        Examples:
            >>> judge = [4, 5, 3, 5, 4, 5, 4, 5] * 5, [3, 3, 3, 4, 2, 4, 3, 3] * 5
            >>> people = [4, 4, 3, 5, 4, 5, 4, 4] * 5, [3, 4, 2, 4, 2, 4, 2, 3] * 5
            >>> result = corrected_difference(judge, people, strata=["ar"] * 20 + ["ja"] * 20).over({"ja": 1.0})
            >>> round(result.difference, 2), result.low > 0.0, result.p < 0.05
            (1.2, True, True)
        """
        mean, (_, parts) = self._mean.over(shares, confidence), self._mean._value(shares)
        p = 1.0 if mean.value == 0.0 else math.nan
        if mean.value != 0.0 and not mean.reason:
            p, distance, spreads = _LEAST_P, abs(mean.value), [fit.spread(parts) for fit in self._mean._fits]
            if _reach(spreads, p) > distance:
                root = scipy.optimize.brentq(lambda log: _reach(spreads, math.exp(log)) - distance, math.log(p), 0.0)
                p = math.exp(root)
        return Difference(
            difference=mean.value,
            low=mean.low,
            high=mean.high,
            p=p,
            n=mean.size,
            method="corrected, paired",
            clusters=mean.size,
            reason=mean.reason,
        )


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

    Formula: :func:`corrected_mean` of the items' differences, on a scale of twice the width. That is lambda * mean(f_1
    - f_2 over all) + mean(y_1 - y_2 - lambda (f_1 - f_2) over the rated), with the lambda that makes the interval of
    the difference narrowest. A bias that the judge has for both cancels out, and so does an item's difficulty for both.
    An item that people rated of one model alone counts as not rated.

    Args:
        judge: The judge's score of each item, of the first and of the second model; NaN where there is none.
        people: People's scores of the same; NaN where not rated.
        strata: The stratum of each item, such as its culture; None means one.
        shares: The weight of each stratum; None for their sizes.
        clusters: The cluster of each item, such as its image; None makes each a cluster.
        ends: Lowest and highest score of the scale; None for those of the scores.

    Raises:
        ValueError: As :func:`corrected_mean`.

    Source: as :func:`corrected_mean`; for differences of two models also Boyeau et al. (2024), "AutoEval Done Right".

    Examples:
        >>> nan = float("nan")
        >>> judge = [1, 1, 1, 0, 1, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0, 0]
        >>> people = [1, 0, 1, 0, nan, nan, nan, nan], [0, 1, 1, 0, nan, nan, nan, nan]
        >>> result = corrected_difference(judge, people, ends=(0, 1))
        >>> result.rated, result.over().difference, round(result.over().p, 2)
        (4, 0.0, 1.0)
    """
    (f, other_f), (y, other_y) = (two_lists("corrected_difference", *scores) for scores in (judge, people))
    width = None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])
    mean = corrected_mean(f - other_f, y - other_y, strata, shares=shares, clusters=clusters, ends=width)
    return CorrectedDifference(int(np.count_nonzero(~np.isnan(y - other_y))), mean)


class _Spread(NamedTuple):
    """How uncertain a mean is: its variance with degrees of freedom, and the errors that ratings may have missed."""

    variance: float
    freedom: float
    unseen: float  # squared, and divided by the squared logarithm of the level


def _reach(spreads: Sequence[_Spread], alpha: float) -> float:
    """Returns half the width of the widest interval that misses with this probability."""
    t = [float(special.stdtrit(spread.freedom, alpha / 2.0)) for spread in spreads]
    return max(
        math.sqrt(quantile**2 * spread.variance + math.log(alpha) ** 2 * spread.unseen)
        for quantile, spread in zip(t, spreads, strict=True)
    )


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
    ) -> None:
        """Takes the judge's scores of all responses, people's of the rated ones alone, and strata as numbers."""
        self._codes, self._clusters = codes, clusters
        members = codes[rated]
        self.sizes, self.counts = np.bincount(codes), np.bincount(members)
        known = ~np.isnan(judge)
        f = np.where(known, judge, stratum_means(judge[known], codes[known], shares.size)[codes])
        self.weight = self._tuned(f[rated], people, members, shares)
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

    def _tuned(self, f: Floats, y: Floats, members: Numbers, shares: Floats) -> float:
        """Returns the weight of the judge's scores of the rated responses."""
        of_f, of_y = centred(f, members), centred(y, members)
        sampling = 1.0 / self.counts - 1.0 / self.sizes
        influence = shares**2 * sampling / np.maximum(self.counts - 1, 1)
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
            factor, clustered_freedom = self._clustered(shares)
            freedom = max(1.0, min(freedom, clustered_freedom))
            influence = self._influence * shares[self._codes]
            shared = float(np.bincount(self._clusters, weights=influence) ** 2 @ factor)
            variance += max(shared - float(influence @ influence), 0.0)
        return _Spread(variance, freedom, unseen + self.unseen / rated * float((shares**2 / self.sizes).sum()))

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
