"""A judge's mean score corrected by people, with an interval that allows for bias and for rare gross errors.

A judge has scored all N responses; people have rated n of them, drawn at random within strata such as cultures. Scores
are numbers on one scale; NaN marks a response that the judge has no score for, or that no person has rated. The
interval is for the people who rated: it says nothing of how others would have rated the same responses.
Nothing here raises for data that are too few or too much alike: values are NaN, and the reason says why.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from culture_tasks.metrics.means import check_confidence, cluster_numbers, two_lists

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.metrics.means import Clusters, Floats, Numbers

LARGEST_WEIGHT = 1.5
"""Upper end of the weight; the lower one is 0, where the judge says nothing."""

_FEW_DIFFERING = 5
"""Differing pairs of scores below which no interval is narrower than that of people alone."""

_PRIOR = 5.0
"""Ratings that the spread over all strata counts for in the spread of one."""


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
    _fit: _Fit | None = None

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
        if self._fit is None or any(math.isnan(one.value) for one in inside.values()):
            return _waiting(inside)
        rated = [label for label, one in self.strata.items() if not math.isnan(one.value)]
        return self._fit.at(np.array([shares.get(label, 0.0) for label in rated]))

    def more_ratings(self, width: float) -> int | None:
        """How many more ratings make the overall interval for questions like these as narrow as this, end to end.

        They are spread over the strata as the present ones are, and people are taken to differ from the judge as much
        as they have so far.

        Returns:
            The number, 0 where the interval is narrow enough already; None where ratings of all responses wouldn't be
            enough, or where there is no interval.

        Raises:
            ValueError: If the width isn't positive.

        Examples:
            >>> judge = [1.0, 2.0, 3.0, 4.0] * 25
            >>> people = [1.0, 3.0, 3.0, 4.0] * 5 + [float("nan")] * 80
            >>> corrected_mean(judge, people).more_ratings(width=0.5)
            37
        """
        if not width > 0.0:
            raise ValueError(f"more_ratings: width={width}; expected a positive number.")
        if self._fit is None or self.overall.reason or self._fit.width(self.overall.size) > width:
            return None
        few, enough = self.overall.rated, self.overall.size
        if self._fit.width(few) <= width:
            return 0
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (few, middle) if self._fit.width(middle) <= width else (middle, enough)
        return enough - self.overall.rated


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
    * half width: the root of t^2 * variance + u^2, where u is what the ratings may have missed. By the rule of three,
      3 / n of the responses may have an error that none of n ratings shows (3 is -log of 1 - 0.95):
      u^2 = 3^2 m^2 / n * sum of w_h^2 / n_h, and with 1 / n_h - 1 / N_h in place of 1 / n_h for these very responses;
    * m^2, the square of that error: the larger of sum r^4 / sum r^2, for another one like those that make up the spread
      of the residuals r of Y - lambda f from their stratum's mean, and D^2 - sum r^2, for one like none of them. D^2 is
      the mean square, over all responses, of the distance from the score predicted of people, value_h + lambda times
      the judge's departure from its stratum's mean, to the farther end of the scale.

    Where fewer than five rated scores differ between judge and people, both half widths are at least those of people
    alone, whose weight of the judge is 0: so few differences don't tell how large one may be.

    s_h^2 is a weighted mean of the stratum's own variance and that over all strata, which counts as five ratings. t has
    as many degrees of freedom as ratings less strata less one, or clusters less one if these are fewer. For a mean over
    some strata, n and the degrees of freedom are those of their ratings and five more, up to the number of all.

    The value is unbiased up to the estimation of lambda (of order 1 / n) whatever the judge's scores are, if the
    responses to rate were drawn at random within each stratum from the very responses that were judged. A judge without
    a score of a response is taken to give the mean of its stratum. A stratum with fewer than two ratings has no mean,
    and there is no overall one then; the others have theirs. Simulated coverage is in ``docs/spotcheck.md``.

    Args:
        judge: The judge's score of each response; NaN where there is none.
        people: People's score of the same responses; NaN where not rated.
        strata: The stratum of each response; None means one.
        shares: The weight of each stratum in the overall mean; None for their sizes.
        clusters: The cluster of each response, such as its image; None means that each stands alone.
        ends: Lowest and highest score of the scale; None for those of the scores.
        confidence: Share of intervals meant to hold the true mean, between 0 and 1.

    Returns:
        The corrected means, in the unit and range of the scores (ends aren't cut at the scale's). No response, none
        rated, or fewer than two ratings in a stratum: NaN, with the reason.

    Raises:
        ValueError: If lengths differ, a score is infinite, or an option is out of range.

    Source: Angelopoulos et al. (2023), "Prediction-powered inference"; Angelopoulos, Duchi and Zrnic (2023), "PPI++",
    for the tuned weight; Särndal, Swensson and Wretman (1992), chapters 6 and 9, for the same in surveys; Hanley and
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
    of_each = ["all"] * f.size if strata is None else list(strata)
    labels, codes = list(dict.fromkeys(of_each)), cluster_numbers(of_each, np.ones(f.size, dtype=np.bool_))
    rated = ~np.isnan(y)
    counts, sizes = np.bincount(codes[rated], minlength=len(labels)), np.bincount(codes)
    by_stratum = {
        label: _waiting({label: Corrected(rated=n, size=size)})
        for label, n, size in zip(labels, counts.tolist(), sizes.tolist(), strict=True)
    }
    usable = counts >= np.minimum(2, sizes)
    if counts[usable].sum() < np.count_nonzero(usable) + 2:
        return CorrectedMean(_waiting(by_stratum), by_stratum)
    inside = usable[codes]
    weights = _shares(labels, codes, shares)[usable]
    numbers = (np.cumsum(usable) - 1)[codes[inside]]
    fit_of = partial(
        _Fit,
        people=y[rated & inside],
        rated=rated[inside],
        codes=numbers,
        shares=weights,
        clusters=None if clusters is None else cluster_numbers(clusters, inside),
        ends=ends,
        confidence=confidence,
    )
    differing = np.count_nonzero(np.abs(f - y)[inside] > 0.0)
    people_alone = fit_of(np.full(numbers.size, np.nan)) if differing < _FEW_DIFFERING else None
    fit = fit_of(f[inside], at_least=people_alone)
    scored = [label for label, is_usable in zip(labels, usable, strict=True) if is_usable]
    by_stratum |= {label: fit.at(alone) for label, alone in zip(scored, np.eye(weights.size), strict=True)}
    return CorrectedMean(fit.at(weights) if usable.all() else _waiting(by_stratum), by_stratum, fit)


def _shares(labels: Sequence[Hashable], codes: Numbers, shares: Mapping[Any, float] | None) -> Floats:
    if shares is None:
        return np.bincount(codes, minlength=len(labels)).astype(np.float64)
    if any(label not in shares or not 0.0 <= shares[label] < math.inf for label in labels):
        raise ValueError(f"corrected_mean: shares {dict(shares)}; expected one of at least 0 for each of {labels}.")
    weights = np.array([shares[label] for label in labels], dtype=np.float64)
    if not weights.sum() > 0.0:
        raise ValueError("corrected_mean: all shares are 0; expected a positive one.")
    return weights


def _waiting(strata: Mapping[Any, Corrected]) -> Corrected:
    """Returns numbers of responses alone for strata that have too few ratings, with the reason."""
    reasons = []
    for few, lack in ((0, "no ratings yet"), (1, "only one rating")):
        names = list(dict.fromkeys(str(label) for label, one in strata.items() if one.rated == few < min(2, one.size)))
        if names and len(strata) == 1:
            reasons.append(lack)
        elif names:
            listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            reasons.append(f"{listed} {'has' if len(names) == 1 else 'have'} {lack}")
    return Corrected(
        rated=sum(one.rated for one in strata.values()),
        size=sum(one.size for one in strata.values()),
        reason="; ".join(reasons) or "too few ratings for the spread to be known",
    )


class _Fit:
    """The strata with their weight, values and variances; the overall mean and that of each differ in shares alone."""

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
        confidence: float,
        at_least: _Fit | None = None,
    ) -> None:
        """Takes the judge's scores of all responses, people's of the rated ones alone, and strata as numbers."""
        self._at_least = at_least  # no interval is narrower than its
        self._shares = shares / shares.sum() if shares.any() else shares
        self._codes, self._clusters, self._confidence = codes, clusters, confidence
        known = ~np.isnan(judge)
        sums = np.bincount(codes[known], weights=judge[known], minlength=shares.size)
        means = sums / np.maximum(np.bincount(codes[known], minlength=shares.size), 1)
        judge = np.where(known, judge, means[codes])
        members, f = codes[rated], judge[rated]
        self._sizes, self._counts = np.bincount(codes), np.bincount(members)
        self._weight = self._tuned(f, people, members)
        residuals = people - self._weight * f
        of_judge, of_rated = _means(judge, codes), _means(residuals, members)
        self._values = self._weight * of_judge + of_rated
        off = residuals - of_rated[members]
        squares = np.bincount(members, weights=off**2)
        total = float(squares.sum())
        similar = float((off**4).sum()) / total if total else 0.0
        predicted = self._weight * judge + of_rated[codes]  # of people, for every response
        low, high = ends or (min(predicted.min(), people.min()), max(predicted.max(), people.max()))
        farthest = np.maximum(predicted - low, high - predicted)
        square = max(similar, float((farthest**2).mean()) - total)
        self._unseen = math.log(1.0 - confidence) ** 2 * square  # what the ratings may have missed, squared, times n
        freedom, of_each = members.size - self._counts.size - 1.0, self._counts * (1.0 - 1.0 / members.size) - 1.0
        # The variance over all strata stands in for as many ratings as _PRIOR says; of one stratum alone it is its own.
        self._spreads = (squares + _PRIOR * total / freedom) / (of_each + _PRIOR)
        self._departures = self._weight * (judge - of_judge[codes])  # of each response from the mean of its stratum
        of_scores = np.bincount(codes, weights=self._departures**2) / np.maximum(self._sizes - 1, 1)
        together = np.bincount(members, weights=2.0 * self._departures[rated] * off) / self._counts
        self._variances = np.maximum(of_scores + together + self._spreads, 0.0)
        self._departures[rated] += (self._sizes / self._counts)[members] * off

    def _tuned(self, f: Floats, y: Floats, members: Numbers) -> float:
        """Returns the weight of the judge's scores, of the rated responses."""
        of_f, of_y = f - _means(f, members)[members], y - _means(y, members)[members]
        influence = self._shares**2 * (1.0 / self._counts - 1.0 / self._sizes) / np.maximum(self._counts - 1, 1)
        above = float(influence @ np.bincount(members, weights=of_f * of_y))
        below = float(influence @ np.bincount(members, weights=of_f**2))
        return min(max(above / below, 0.0), LARGEST_WEIGHT) if below > 0.0 else 0.0

    def at(self, shares: Floats) -> Corrected:
        """Returns the corrected mean over the strata with these shares."""
        shares = shares / shares.sum()
        inside = shares > 0.0
        value = float(shares @ self._values)
        rated, size = int(self._counts[inside].sum()), int(self._sizes[inside].sum())
        point = Corrected(value, rated=rated, size=size, weight=self._weight)
        reach, in_set = self._half_widths(self._counts, shares)
        if not reach > 0.0:
            return point._replace(reason="the ratings show no spread")
        point = point._replace(low=value - reach, high=value + reach)
        return point._replace(set_low=value - in_set, set_high=value + in_set)

    def width(self, rated: int) -> float:
        """Returns the width of the overall interval with so many ratings, spread as the present ones are."""
        counts = np.minimum(self._sizes, self._counts * (rated / self._counts.sum()))
        return 2.0 * self._half_widths(counts, self._shares)[0]

    def _half_widths(self, counts: Floats | Numbers, shares: Floats) -> tuple[float, float]:
        """Returns half the width for questions like these, and for these very responses, with so many ratings."""
        inside, all_rated = shares > 0.0, float(counts.sum())
        rated = min(all_rated, float(counts[inside].sum()) + _PRIOR)
        freedom = max(1.0, min(rated - np.count_nonzero(inside), all_rated - inside.size) - 1.0)
        sampling = shares**2 * (1.0 / counts - 1.0 / self._sizes)
        variance, unseen = float(sampling @ self._spreads), self._unseen / rated
        fewer = freedom if self._clusters is None else max(1.0, min(freedom, self._clusters_of(shares) - 1.0))
        lasting = self._reach(variance + self._lasting(shares), fewer, unseen * float((shares**2 / counts).sum()))
        in_set = self._reach(variance, freedom, unseen * float(sampling.sum()))
        if self._at_least is None:
            return lasting, in_set
        least, least_in_set = self._at_least._half_widths(counts, shares)
        return max(lasting, least), max(in_set, least_in_set)

    def _lasting(self, shares: Floats) -> float:
        """Returns the variance that is there even where all responses are rated: that of the questions."""
        found = float((shares**2 * self._variances / self._sizes).sum())
        if self._clusters is None:
            return found
        influence = self._departures * (shares / self._sizes)[self._codes]
        sums = np.bincount(self._clusters, weights=influence)
        many = self._clusters_of(shares)
        products = many / max(many - 1, 1) * float(sums @ sums) - float(influence @ influence)
        return found + max(products, 0.0)

    def _clusters_of(self, shares: Floats) -> int:
        return 0 if self._clusters is None else np.unique(self._clusters[shares[self._codes] > 0.0]).size

    def _reach(self, variance: float, freedom: float, unseen: float) -> float:
        return math.sqrt(float(special.stdtrit(freedom, (1.0 + self._confidence) / 2.0)) ** 2 * variance + unseen)


def _means(values: Floats, codes: Numbers) -> Floats:
    means: Floats = np.bincount(codes, weights=values) / np.bincount(codes)
    return means
