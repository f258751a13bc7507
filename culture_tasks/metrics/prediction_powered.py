"""A judge's mean score, or the difference of two models' means, corrected by people; the intervals allow for bias.

A judge has scored all N responses; people have rated n of them, drawn at random within strata such as cultures. Scores
are numbers on one scale; NaN marks a response that the judge has no score for, or that no person has rated. The
interval is for the people who rated, and says nothing of how others would have rated the same responses. A better judge
may take the place of the people. Values are NaN, with the reason, for data that are too few or too much alike.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy import special

from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.corrected_strata import Fit, reach
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

FEW_DIFFERING = 5
"""Differing pairs of scores below which no interval is narrower than that of people alone."""

_LEAST_P = 1e-100
"""The least p value that is worked out."""


class Corrected(NamedTuple):
    """A corrected score, in the unit of the scores; NaN where there is none.

    ``low`` and ``high`` are for questions like these, ``set_low`` and ``set_high`` for these very responses alone.
    ``weight`` is how much of the judge's score counts, from 0 to 1.5.
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
    _fits: Sequence[Fit]

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
            reach([fit.spread(parts, in_set=in_set) for fit in self._fits], 1.0 - confidence)
            for in_set in (False, True)
        )
        if not half > 0.0:
            return mean._replace(reason="the ratings show no spread")
        low, high = mean.value - half, mean.value + half
        return mean._replace(low=low, high=high, set_low=mean.value - half_here, set_high=mean.value + half_here)

    def test(self, shares: Mapping[Any, float] | None = None, confidence: float = 0.95) -> Difference:
        """The mean as :meth:`over` has it, tested against 0: p is the level at which its interval ends there.

        Examples:
            >>> judge = [4, 5, 3, 5, 4, 5, 4, 5] * 5, [3, 3, 3, 4, 2, 4, 3, 3] * 5
            >>> people = [4, 4, 3, 5, 4, 5, 4, 4] * 5, [3, 4, 2, 4, 2, 4, 2, 3] * 5
            >>> result = corrected_difference(judge, people, strata=["ar"] * 20 + ["ja"] * 20).test({"ja": 1.0})
            >>> round(result.difference, 2), result.low > 0.0, result.p < 0.05
            (1.2, True, True)
        """
        mean, (_, parts) = self.over(shares, confidence), self._value(shares)
        p = 1.0 if mean.value == 0.0 else math.nan
        if mean.value != 0.0 and not mean.reason:
            p, distance, spreads = _LEAST_P, abs(mean.value), [fit.spread(parts) for fit in self._fits]
            if reach(spreads, p) > distance:
                root = scipy.optimize.brentq(lambda log: reach(spreads, math.exp(log)) - distance, math.log(p), 0.0)
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
    fits: list[Fit] = []
    if counts[usable].sum() >= np.count_nonzero(usable) + 2:
        inside = usable[codes]
        fit_of = partial(
            Fit,
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
    deviation of k raters' m_j and t has k - 1 degrees of freedom. ``ratings`` have a row per rater and a column per
    response. NaN with fewer than two raters of a common stratum.

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


def corrected_difference(
    judge: tuple[ArrayLike, ArrayLike],
    people: tuple[ArrayLike, ArrayLike],
    strata: Sequence[Hashable] | None = None,
    *,
    shares: Mapping[Any, float] | None = None,
    clusters: Clusters | None = None,
    ends: tuple[float, float] | None = None,
) -> CorrectedMean:
    """The first model's mean less the second's, as people would give them to all items.

    It is :func:`corrected_mean` of the items' differences, on a scale of twice the width. A bias that the judge has for
    both cancels out, and so does an item's difficulty for both. An item that people rated of one model alone counts as
    not rated. :meth:`CorrectedMean.test` tests it.

    Source: as :func:`corrected_mean`; for differences of two models also Boyeau et al. (2024), "AutoEval Done Right".

    Examples:
        >>> nan = float("nan")
        >>> judge = [1, 1, 1, 0, 1, 1, 1, 1], [0, 0, 1, 0, 0, 1, 0, 0]
        >>> people = [1, 0, 1, 0, nan, nan, nan, nan], [0, 1, 1, 0, nan, nan, nan, nan]
        >>> result = corrected_difference(judge, people, ends=(0, 1))
        >>> result.overall.rated, result.test().difference, round(result.test().p, 2)
        (4, 0.0, 1.0)
    """
    (f, other_f), (y, other_y) = (two_lists("corrected_difference", *scores) for scores in (judge, people))
    width = None if ends is None else (ends[0] - ends[1], ends[1] - ends[0])
    return corrected_mean(f - other_f, y - other_y, strata, shares=shares, clusters=clusters, ends=width)
