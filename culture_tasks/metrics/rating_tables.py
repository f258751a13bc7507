"""Two raters' ratings as tables of joint counts, and the statistics that such tables give.

Every agreement statistic of two raters on a scale of few values is a function of how often each pair of values occurs.
A resample of questions is then a sum of the questions' tables, one matrix product for all resamples, and
the cost of a statistic no longer depends on the number of rows. All statistics here are batched over tables and are
NaN, without a warning, where they are undefined.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Level = Literal["nominal", "ordinal", "interval"]
"""Level of measurement: unordered categories, ordered ones, or numbers with equal distances."""

_BATCH_CELLS = 2_000_000
"""Most numbers in one array of a batch of resamples: bounds memory at some hundred megabytes."""


@dataclass(frozen=True, slots=True)
class RatingTables:
    """Joint counts of two raters' ratings, one table a resample.

    Attributes:
        values: The distinct ratings of both raters, ascending.
        counts: ``counts[b, i, j]`` pairs have ``values[i]`` from the first rater and ``values[j]`` from the second.
    """

    values: Floats
    counts: Floats

    @property
    def first(self) -> Floats:
        """How often the first rater gave each value, a row a table."""
        return np.asarray(self.counts.sum(axis=2))

    @property
    def second(self) -> Floats:
        """How often the second rater gave each value, a row a table."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def pairs(self) -> Floats:
        """Number of pairs in each table."""
        return np.asarray(self.counts.sum(axis=(1, 2)))


def tabulate(first: Floats, second: Floats) -> RatingTables:
    """Counts the pairs of two complete arrays in one table.

    Examples:
        >>> tables = tabulate(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 1.0]))
        >>> tables.values.tolist(), tables.counts.tolist()
        ([1.0, 2.0], [[[1.0, 0.0], [1.0, 1.0]]])
    """
    values, cells = _cells(first, second)
    counts = np.bincount(cells, minlength=values.size**2).astype(np.float64)
    return RatingTables(values, counts.reshape(1, values.size, values.size))


def resampled_tables(
    first: Floats, second: Floats, *, clusters: NDArray[np.intp], resamples: int, rng: np.random.Generator
) -> Iterator[RatingTables]:
    """Draws whole clusters with replacement, as many as there are, and counts the pairs of each resample.

    Args:
        first: The first rater's ratings, complete and not empty.
        second: The second rater's.
        clusters: Number of each pair's cluster, from 0 on without gaps.
        resamples: How many resamples to draw.
        rng: Source of randomness.

    Yields:
        Batches of tables, ``resamples`` tables in all.

    Examples:
        >>> one, two = np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 1.0])
        >>> drawn = resampled_tables(one, two, clusters=np.arange(3), resamples=5, rng=np.random.default_rng(0))
        >>> [batch.counts.shape for batch in drawn]
        [(5, 2, 2)]
    """
    values, cells = _cells(first, second)
    many, size = int(clusters.max()) + 1, values.size
    by_cluster = sparse.csr_array((np.ones(cells.size), (clusters, cells)), shape=(many, size**2))
    batch = max(1, _BATCH_CELLS // max(many, size**2))
    for start in range(0, resamples, batch):
        drawn = min(batch, resamples - start)
        picks = rng.integers(many, size=(drawn, many)) + many * np.arange(drawn)[:, None]
        weights = np.bincount(picks.ravel(), minlength=drawn * many).reshape(drawn, many).astype(np.float64)
        yield RatingTables(values, (weights @ by_cluster).reshape(drawn, size, size))


def _cells(first: Floats, second: Floats) -> tuple[Floats, NDArray[np.intp]]:
    values, codes = np.unique(np.concatenate([first, second]), return_inverse=True)
    return values, codes[: first.size] * values.size + codes[first.size :]


def pearson_of(tables: RatingTables) -> Floats:
    """Pearson's r of each table.

    Examples:
        >>> pearson_of(tabulate(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0]))).round(6).tolist()
        [1.0]
    """
    return _correlation(tables, tables.values, tables.values)


def spearman_of(tables: RatingTables) -> Floats:
    """Spearman's rho of each table: Pearson's r of mid-ranks.

    Examples:
        >>> spearman_of(tabulate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 9.0]))).round(6).tolist()
        [1.0]
    """
    return _correlation(tables, _midpoints(tables.first), _midpoints(tables.second))


def kendall_of(tables: RatingTables) -> Floats:
    """Kendall's tau-b of each table.

    Examples:
        >>> kendall_of(tabulate(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))).round(6).tolist()
        [-1.0]
    """
    surplus = (tables.counts * _below_minus_above(_below_minus_above(tables.counts, 1), 2)).sum(axis=(1, 2))
    return _ratio(surplus, np.sqrt(_untied(tables.first) * _untied(tables.second)))


def mean_error_of(tables: RatingTables) -> Floats:
    """Mean of second minus first of each table.

    Examples:
        >>> mean_error_of(tabulate(np.array([1.0, 2.0]), np.array([2.0, 3.0]))).tolist()
        [1.0]
    """
    return _ratio((tables.counts * _differences(tables.values)).sum(axis=(1, 2)), tables.pairs)


def mean_absolute_error_of(tables: RatingTables) -> Floats:
    """Mean distance of second and first of each table.

    Examples:
        >>> mean_absolute_error_of(tabulate(np.array([1.0, 2.0]), np.array([2.0, 1.0]))).tolist()
        [1.0]
    """
    return _ratio((tables.counts * np.abs(_differences(tables.values))).sum(axis=(1, 2)), tables.pairs)


def alpha_of(tables: RatingTables) -> Floats:
    """Krippendorff's alpha (ordinal) of each table.

    Examples:
        >>> alpha_of(tabulate(np.array([1.0, 2.0]), np.array([1.0, 2.0]))).tolist()
        [1.0]
    """
    return alpha_of_coincidences(tables.values, tables.counts + tables.counts.transpose(0, 2, 1), "ordinal")


def alpha_of_coincidences(values: Floats, coincidences: Floats, level: Level) -> Floats:
    """Krippendorff's alpha of each coincidence matrix.

    Args:
        values: The distinct ratings, ascending.
        coincidences: ``coincidences[b, c, k]``: ordered pairs of values c and k within units, each unit weighted by one
            over its number of ratings less one (Krippendorff 2011, step B).
        level: Level of measurement.

    Examples:
        >>> alpha_of_coincidences(np.array([1.0, 2.0]), np.array([[[2.0, 0.0], [0.0, 2.0]]]), "nominal").tolist()
        [1.0]
    """
    totals = coincidences.sum(axis=2)
    distances = _squared_distances(values, totals, level)
    observed = (coincidences * distances).sum(axis=(1, 2))
    expected = np.einsum("bc,bck,bk->b", totals, distances, totals)
    return 1.0 - _ratio(observed * (totals.sum(axis=1) - 1.0), expected)


def _squared_distances(values: Floats, totals: Floats, level: Level) -> Floats:
    if level == "nominal":
        return np.broadcast_to(1.0 - np.eye(values.size), (totals.shape[0], values.size, values.size))
    places = _midpoints(totals) if level == "ordinal" else np.broadcast_to(values, totals.shape)
    return np.asarray((places[:, :, None] - places[:, None, :]) ** 2)


def _correlation(tables: RatingTables, rows: Floats, columns: Floats) -> Floats:
    rows, row_variance = _centred(rows, tables.first)
    columns, column_variance = _centred(columns, tables.second)
    covariance = np.einsum("bi,bij,bj->b", rows, tables.counts, columns)
    return np.clip(_ratio(covariance, np.sqrt(row_variance) * np.sqrt(column_variance)), -1.0, 1.0)


def _centred(scores: Floats, counts: Floats) -> tuple[Floats, Floats]:
    mean = _ratio((scores * counts).sum(axis=1), counts.sum(axis=1))
    centred = np.where(np.count_nonzero(counts, axis=1)[:, None] > 1, scores - mean[:, None], 0.0)
    return centred, (counts * centred**2).sum(axis=1)


def _midpoints(counts: Floats) -> Floats:
    """Mid-rank of each value less one half: the pairs below it, and half of those at it."""
    return np.asarray(counts.cumsum(axis=1) - counts / 2.0)


def _below_minus_above(counts: Floats, axis: int) -> Floats:
    return np.asarray(2.0 * counts.cumsum(axis=axis) - counts - counts.sum(axis=axis, keepdims=True))


def _untied(counts: Floats) -> Floats:
    """Ordered pairs of ratings of one rater that differ."""
    return np.asarray(counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1))


def _differences(values: Floats) -> Floats:
    return np.asarray(values[None, :] - values[:, None])


def _ratio(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0.0)
    return ratio
