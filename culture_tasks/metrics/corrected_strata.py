"""The strata of a mean that people's ratings of a part correct: their values, and how uncertain a mean of them is.

The formulas are those of :func:`~culture_tasks.metrics.prediction_powered.corrected_mean`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from culture_tasks.metrics.means import Floats, Numbers, centred, satterthwaite, stratum_means

LARGEST_WEIGHT = 1.5
"""Upper end of the weight; the lower one is 0, where the judge says nothing."""

_PRIOR = 5.0
"""Ratings that the spread over all strata counts for in the spread of one."""


class Spread(NamedTuple):
    """How uncertain a mean is: its variance with degrees of freedom, and the errors that ratings may have missed."""

    variance: float
    freedom: float
    unseen: float  # squared, and divided by the squared logarithm of the level


def reach(spreads: Sequence[Spread], alpha: float) -> float:
    """Returns half the width of the widest interval that misses with this probability."""
    quantiles = [float(special.stdtrit(spread.freedom, alpha / 2.0)) for spread in spreads]
    return max(
        math.sqrt(quantile**2 * spread.variance + math.log(alpha) ** 2 * spread.unseen)
        for quantile, spread in zip(quantiles, spreads, strict=True)
    )


class Fit:
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

    def spread(self, shares: Floats, *, in_set: bool = False) -> Spread:
        """Returns how uncertain the mean is for questions like these, or for these very responses."""
        inside, all_rated = shares > 0.0, float(self.counts.sum())
        rated = min(all_rated, float(self.counts[inside].sum()) + _PRIOR)
        freedom = max(1.0, min(rated - np.count_nonzero(inside), all_rated - inside.size) - 1.0)
        sampling = shares**2 * (1.0 / self.counts - 1.0 / self.sizes)
        variance = float(sampling @ self.spreads)
        unseen = self.unseen / rated * float(sampling.sum())
        if in_set:
            return Spread(variance, freedom, unseen)
        # The variance of the questions, which remains where all responses are rated.
        variance += float((shares**2 * self._variances / self.sizes).sum())
        if self._clusters is not None:
            factor, clustered_freedom = self._clustered(shares)
            freedom = max(1.0, min(freedom, clustered_freedom))
            influence = self._influence * shares[self._codes]
            shared = float(np.bincount(self._clusters, weights=influence) ** 2 @ factor)
            variance += max(shared - float(influence @ influence), 0.0)
        return Spread(variance, freedom, unseen + self.unseen / rated * float((shares**2 / self.sizes).sum()))

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
        return factor, satterthwaite(diagonal, projected)
