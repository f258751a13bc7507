"""The sampling error of a score that is no mean, by the bootstrap over clusters."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from culture_tasks.metrics.means import ONE_CLUSTER, Clusters, Floats, Mean, Numbers, cluster_numbers

Score = Callable[[Numbers], float]
"""A score of some items, by their places; an item may be there several times."""

RESAMPLES = 1_000

LEAST_DEFINED = 0.9
"""An error or an interval needs at least this share of resamples in which the score is defined."""


def replicates(score: Score, clusters: Clusters, resamples: int = RESAMPLES) -> Floats:
    """Computes a score of resamples: as many whole clusters as there are, drawn with replacement.

    Equal clusters give equal draws, so that the replicates of two models can be subtracted.

    Returns:
        One score per resample; NaN where it is undefined.

    Examples:
        >>> replicates(lambda places: float(places.size), ["a", "b", "c"], resamples=2).tolist()
        [3.0, 3.0]
    """
    numbers = cluster_numbers(clusters, np.ones(len(clusters), dtype=np.bool_))
    count = int(numbers.max(initial=-1)) + 1
    places, rng = np.arange(numbers.size), np.random.default_rng(0)
    draws = (np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(resamples if count else 0))
    return np.array([score(np.repeat(places, times[numbers])) for times in draws], dtype=np.float64)


def bootstrapped(value: float, replicates: Floats, *, n: int, clusters: int) -> Mean:
    """Returns a score, or a difference of two, with its bootstrap standard error.

    Formula: the standard deviation of the replicates times sqrt(G / (G - 1)) over G clusters, which makes it that of
    :func:`~culture_tasks.metrics.means.mean_and_error` where the score is a mean. For an interval or a test it is used
    with Student's t of G - 1 degrees of freedom: in simulations of macro F1 with 20 to 200 clusters, these 95 %
    intervals held the truth in 92 to 95 %, and the percentiles of the replicates in 90 to 95 %.

    Source: Efron and Tibshirani (1993), chapter 6; Cameron, Gelbach and Miller (2008) for whole clusters.

    Examples:
        >>> score = bootstrapped(0.5, np.array([0.25, 0.75, 0.5]), n=4, clusters=2)
        >>> score.value, round(score.error, 3)
        (0.5, 0.354)
    """
    defined = replicates[np.isfinite(replicates)]
    if not math.isfinite(value):
        return Mean(reason="no item has a score" if not n else "the score is undefined")
    if clusters < 2:
        return Mean(value, n=n, clusters=clusters, reason=ONE_CLUSTER)
    if defined.size < LEAST_DEFINED * replicates.size:
        reason = f"defined in {defined.size} of {replicates.size} resamples only"
        return Mean(value, n=n, clusters=clusters, reason=reason)
    error = math.sqrt(clusters / (clusters - 1)) * float(defined.std(ddof=1))
    if error <= 1e-12 * float(abs(defined).max()):
        return Mean(value, 0.0, n=n, clusters=clusters, reason="every resample has the same score")
    return Mean(value, error, n=n, clusters=clusters, freedom=clusters - 1.0)
