"""Bootstrap intervals of agreement that respect that several responses share a question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.metrics.agreement import KERNELS, STATISTICS, Statistic, Value, complete_pairs, statistic
from culture_tasks.metrics.rating_tables import resampled_tables

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.metrics.rating_tables import Floats

_LEAST_DEFINED = 0.9


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
    low: float
    high: float
    reason: str | None = None


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
        estimates = {name: Estimate(value, math.nan, math.nan, no or why) for name, (value, no) in points.items()}
        return Agreement(ours.size, many, estimates)
    draws = _bootstrap(ours, theirs, owners, resamples, rng or np.random.default_rng(0))
    return Agreement(ours.size, many, {name: _estimate(points[name], draws[name], confidence) for name in STATISTICS})


def _numbered(clusters: Sequence[Hashable], size: int) -> NDArray[np.intp]:
    if len(clusters) != size:
        raise ValueError(f"agreement: {len(clusters)} clusters for {size} ratings; one for each is needed.")
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)


def _bootstrap(
    first: Floats, second: Floats, owners: NDArray[np.intp], resamples: int, rng: np.random.Generator
) -> Mapping[Statistic, Floats]:
    batches = resampled_tables(first, second, owners, resamples, rng)
    with np.errstate(all="ignore"):
        parts = [{name: KERNELS[name](tables) for name in STATISTICS} for tables in batches]
    return {name: np.concatenate([part[name] for part in parts]) for name in STATISTICS}


def _estimate(point: Value, draws: Floats, confidence: float) -> Estimate:
    defined = draws[np.isfinite(draws)]
    if point.reason or defined.size < _LEAST_DEFINED * draws.size:
        why = point.reason or f"defined in {defined.size} of {draws.size} resamples only"
        return Estimate(point.value, math.nan, math.nan, why)
    low, high = np.quantile(defined, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    return Estimate(point.value, float(low), float(high))
