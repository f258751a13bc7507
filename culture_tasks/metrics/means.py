"""The mean with its standard error, which knows of clusters, and scores that are other than a plain mean.

Scores are numbers; NaN is an item without a score, which is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

Clusters: TypeAlias = Sequence[Hashable] | NDArray[np.generic]
"""The cluster of each item, such as its image, its scenario or its source question."""

_TINY = 1e-12
"""A standard error below this part of the largest score is a rounding error."""

ONE_CLUSTER = "one cluster: its spread can't be known"


class Mean(NamedTuple):
    """A mean with its standard error.

    Attributes:
        reason: Why there is no t interval; None where there is one.
        freedom: Degrees of freedom of the error, by Satterthwaite: clusters less one where all have the same size.
        effective: Number of clusters of one size that would weigh as these do, 1 / sum of p^2.
        largest: The share of the largest cluster, from 0 to 1.
    """

    value: float = math.nan
    error: float = math.nan
    n: int = 0
    clusters: int = 0
    reason: str | None = None
    freedom: float = math.nan
    effective: float = math.nan
    largest: float = math.nan


def mean_and_error(values: ArrayLike, clusters: Clusters | None = None) -> Mean:
    """A mean with its cluster-robust standard error.

    Formula: se^2 = sum over clusters of (sum of its residuals)^2 / (1 - p) / n^2, for n items of which a cluster has
    the share p: the CR2 estimator of a regression on a constant alone. With one item per cluster it is s^2 / n. The
    degrees of freedom are Satterthwaite's: 1 / (sum d^2 - 2 sum d v + (sum v)^2), with d = p / (1 - p) and v = p d of
    each cluster. They are few where one cluster is large: 1.7 for one of 60 items and 20 of one. With fewer than two
    clusters, or where no cluster departs from the mean, ``reason`` says so.

    Raises:
        ValueError: If a value is infinite or there is not one cluster for each item.

    Source: Bell and McCaffrey (2002); Cameron and Miller (2015), section VI. ``speed/coverage.py`` measures both.

    Examples:
        >>> mean = mean_and_error([1.0, 0.0, 1.0, 1.0])
        >>> mean.value, mean.error, mean.n
        (0.75, 0.25, 4)
        >>> mean_and_error([1.0, 1.0, 0.0, 0.0], clusters=["a", "a", "b", "b"]).error
        0.5
    """
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or np.isinf(scores).any():
        raise ValueError(
            f"mean: expected a list of finite scores, NaN where there is none; found shape {scores.shape}."
        )
    scored = ~np.isnan(scores)
    scores, numbers = scores[scored], cluster_numbers(clusters, scored)
    if scores.size == 0:
        return Mean(reason="no item has a score")
    middle, n = float(scores[0] + (scores - scores[0]).mean()), scores.size  # exact where all scores are equal
    count = int(numbers.max()) + 1
    if count < 2:
        return Mean(middle, n=n, clusters=count, reason=ONE_CLUSTER)
    if count == n:
        residuals, shares = scores - middle, np.full(1, 1.0 / n)
        freedom, effective = n - 1.0, float(n)
    else:
        residuals, shares = cluster_sums((scores - middle)[:, None], numbers)[:, 0], np.bincount(numbers) / n
        diagonal = shares / (1.0 - shares)
        freedom = satterthwaite(diagonal, np.sqrt(shares * diagonal)[None])
        effective = 1.0 / float(shares @ shares)
    error = math.sqrt(float(residuals @ (residuals / (1.0 - shares)))) / n
    mean = Mean(middle, error, n, count, freedom=freedom, effective=effective, largest=float(shares.max()))
    if error <= _TINY * float(np.abs(scores).max()):
        why = f"every score is {scores[0]:g}" if np.ptp(scores) == 0.0 else "every cluster has the same mean"
        return mean._replace(error=0.0, reason=why)
    return mean


def satterthwaite(diagonal: Floats, projected: Floats) -> float:
    """Degrees of freedom of a CR2 variance: (tr M)^2 / tr(M M), with M = diag(diagonal) - projected' projected.

    M is the covariance of the clusters' parts in the variance, for independent scores of one variance; ``projected``
    has a column per cluster. 0 where it can't be told.
    """
    lengths, products = (projected**2).sum(axis=0), projected @ projected.T
    total = float(diagonal.sum() - lengths.sum())
    squared = float(diagonal @ diagonal - 2.0 * (diagonal @ lengths) + (products**2).sum())
    return total**2 / squared if squared > 0.0 else 0.0


def two_lists(caller: str, first: ArrayLike, second: ArrayLike, noun: str = "score") -> tuple[Floats, Floats]:
    """Returns two lists of the same items as arrays; refuses other lengths, and infinite numbers."""
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"{caller}: expected two lists of one length; found shapes {a.shape} and {b.shape}.")
    if np.isinf(a).any() or np.isinf(b).any():
        raise ValueError(f"{caller}: a {noun} is infinite; write NaN for a missing one.")
    return a, b


def check_confidence(confidence: float) -> None:
    """Raises a ValueError unless the confidence is between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"interval: confidence={confidence}; expected a number between 0 and 1.")


def cluster_numbers(clusters: Clusters | None, kept: NDArray[np.bool_]) -> Numbers:
    """Numbers the clusters of the kept items from 0 on without gaps; None makes each item a cluster."""
    if clusters is None:
        return np.arange(np.count_nonzero(kept), dtype=np.intp)
    if len(clusters) != kept.size:
        raise ValueError(f"clusters or strata: {len(clusters)} for {kept.size} items; expected one for each.")
    if isinstance(clusters, np.ndarray) and clusters.dtype != np.object_:
        return numbered(clusters[kept])[1]
    of_kept = list(compress(clusters, kept.tolist()))
    numbers = {cluster: number for number, cluster in enumerate(dict.fromkeys(of_kept))}
    return np.array([numbers[cluster] for cluster in of_kept], dtype=np.intp)


def numbered(codes: NDArray[np.generic]) -> tuple[NDArray[np.generic], Numbers]:
    """Returns the distinct codes in order, and the place among them of each."""
    if codes.dtype.kind != "i" or not codes.size or codes.min() < 0 or codes.max() > 10 * codes.size:
        return np.unique(codes, return_inverse=True)
    present = np.bincount(codes) > 0  # small numbers needn't be sorted, which takes three times as long
    return np.flatnonzero(present), (np.cumsum(present) - 1)[codes]


def cluster_sums(columns: Floats, numbers: Numbers) -> Floats:
    """Sums the columns, a row per item, within clusters: a row per cluster."""
    cluster_count = int(numbers.max()) + 1 if numbers.size else 0
    sums = [np.bincount(numbers, weights=column, minlength=cluster_count) for column in columns.T]
    return np.stack(sums, axis=1) if sums else np.empty((cluster_count, 0))


def cluster_scores(scores: Floats, numbers: Numbers, reduce: Callable[[Sequence[float]], float]) -> Floats:
    """Makes one score of the scores of each cluster's items, such as ``min`` of them; NaN where an item has none."""
    if not scores.size:
        return scores
    order = np.argsort(numbers, kind="stable")
    clusters = np.split(scores[order], np.flatnonzero(np.diff(numbers[order])) + 1)
    return np.array(
        [math.nan if np.isnan(cluster).any() else reduce(cluster.tolist()) for cluster in clusters], dtype=np.float64
    )


def contributions(scores: Floats, strata: NDArray[np.integer] | None, shares: Floats | None = None) -> Floats:
    """Returns one value per item, so that their mean is the score and their spread its sampling error.

    Without strata, which are numbered from 0, these are the scores. With strata, the score is the mean of the strata's
    means, each with its share or all alike; an item's value is that plus n times its influence on it (a linearisation,
    exact for the mean and to first order for the error).

    Examples:
        >>> float(contributions(np.array([1.0, 0.0, 1.0]), strata=np.array([0, 0, 1])).mean())
        0.75
    """
    if strata is None:
        return scores
    scored = ~np.isnan(scores)
    weights, codes = _weighted(strata[scored], shares)
    values = np.full(scores.size, np.nan)
    values[scored] = (weights * scores[scored]).sum() / max(codes.size, 1) + weights * centred(scores[scored], codes)
    return values


def counts(strata: NDArray[np.integer], shares: Floats | None = None) -> Floats:
    """Returns the weight of each item in a mean of strata, 1 on average; see :func:`contributions`."""
    return _weighted(strata, shares)[0]


def _weighted(strata: NDArray[np.integer], shares: Floats | None) -> tuple[Floats, Numbers]:
    """Returns the weight of each item, and the number of its stratum among those that have items."""
    numbers, codes = numbered(strata)
    parts = np.ones(numbers.size) if shares is None else shares[numbers.astype(np.intp)]
    weights = (strata.size / parts.sum() * parts / np.bincount(codes))[codes] if strata.size else np.zeros(0)
    return weights, codes


def stratum_means(values: Floats, strata: Numbers, many: int = 0) -> Floats:
    """Returns the mean of each stratum, numbered from 0; 0 in one without values."""
    sums, sizes = (np.bincount(strata, weights=weights, minlength=many) for weights in (values, None))
    means: Floats = sums / np.maximum(sizes, 1)
    return means


def centred(values: Floats, strata: Numbers) -> Floats:
    """Returns the departures from the means of strata."""
    departures: Floats = values - stratum_means(values, strata)[strata]
    return departures


def ratio_contributions(above: Floats, below: Floats) -> Floats:
    """Returns one value per item, as :func:`contributions` does, for the ratio of two totals."""
    total = below.sum()
    if not total:
        return np.full(below.size, np.nan)
    ratio = above.sum() / total
    values: Floats = ratio + below.size * (above - ratio * below) / total
    return values
