"""Random draws that tests and intervals share: whole clusters with replacement, and flips of signs.

Everything works on sums of clusters, so that the cost depends on the number of clusters rather than of items, and in
batches, so that memory is bounded. A seed gives the same draws every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.intp]

_BATCH_CELLS = 4_000_000
"""Most numbers in one array of a batch: bounds memory at some dozens of megabytes."""

_MOST_BLOCKS = 200
"""Most jackknife values: enough for a skewness."""

_FEW_KINDS = 4
"""Clusters are drawn by their kind where each kind has at least this many members on average."""


def cluster_numbers(clusters: Sequence[Hashable] | NDArray[np.generic] | None, kept: NDArray[np.bool_]) -> Numbers:
    """Numbers the clusters of the kept items from 0 on without gaps.

    Args:
        clusters: What each item belongs to, such as its image; None means that each stands alone.
        kept: Which items count.

    Returns:
        The cluster's number of each kept item.

    Raises:
        ValueError: If there is not one cluster for each item.
    """
    if clusters is None:
        return np.arange(np.count_nonzero(kept), dtype=np.intp)
    if len(clusters) != kept.size:
        raise ValueError(f"clusters: {len(clusters)} for {kept.size} items; one for each is needed.")
    if isinstance(clusters, np.ndarray) and clusters.dtype != np.object_:
        return np.asarray(np.unique(clusters[kept], return_inverse=True)[1], dtype=np.intp)
    numbers: dict[Hashable, int] = {}
    of_kept = (cluster for cluster, wanted in zip(clusters, kept, strict=True) if wanted)
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in of_kept], dtype=np.intp)


def cluster_sums(columns: Floats, numbers: Numbers) -> Floats:
    """Sums the columns within clusters.

    Args:
        columns: One row an item, one column a quantity.
        numbers: The cluster's number of each item, from :func:`cluster_numbers`.

    Returns:
        One row a cluster, one column a quantity.
    """
    many = int(numbers.max()) + 1 if numbers.size else 0
    sums = [np.bincount(numbers, weights=column, minlength=many) for column in columns.T]
    return np.stack(sums, axis=1) if sums else np.empty((many, 0))


def cluster_picks(many: int, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """Draws clusters with replacement, as many as there are.

    Args:
        many: Number of clusters.
        resamples: How many resamples to draw.
        rng: Source of randomness.

    Yields:
        Batches of cluster numbers, one row a resample, ``resamples`` rows in all.
    """
    batch = max(1, _BATCH_CELLS // max(many, 1))
    for start in range(0, resamples, batch):
        yield rng.integers(many, size=(min(batch, resamples - start), many), dtype=np.intp)


def resampled_sums(sums: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Draws whole clusters with replacement, as many as there are, and adds up each resample.

    Clusters with equal sums are drawn together: how often each kind comes is multinomial. Scores on a scale of few
    values therefore cost next to nothing.

    Args:
        sums: One row a cluster, one column a quantity, not empty.
        resamples: How many resamples to draw.
        rng: Source of randomness.

    Returns:
        One row a resample, one column a quantity.
    """
    kinds, counts = np.unique(sums, axis=0, return_counts=True)
    few = kinds.shape[0] * _FEW_KINDS <= sums.shape[0]
    draws = _kinds_drawn(counts, resamples, rng) if few else _clusters_drawn(sums.shape[0], resamples, rng)
    drawn_from = kinds if few else np.repeat(kinds, counts, axis=0)  # in sorted order: that of the items is no matter
    drawn = [times @ drawn_from for times in draws]
    return np.concatenate(drawn) if drawn else np.empty((0, sums.shape[1]))


def _kinds_drawn(counts: Numbers, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """How often each resample has each kind of cluster, in batches."""
    many, batch = int(counts.sum()), max(1, _BATCH_CELLS // counts.size)
    for start in range(0, resamples, batch):
        yield rng.multinomial(many, counts / many, size=min(batch, resamples - start))


def _clusters_drawn(many: int, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """How often each resample has each cluster, in batches."""
    for picks in cluster_picks(many, resamples, rng):
        rows = picks.shape[0]
        flat = (picks + many * np.arange(rows)[:, None]).ravel()
        yield np.bincount(flat, minlength=rows * many).reshape(rows, many)


def resampled_rows(numbers: Numbers, resamples: int, rng: np.random.Generator) -> Iterator[Numbers]:
    """Draws whole clusters with replacement, as many as there are, and gives the items of each resample.

    Args:
        numbers: The cluster's number of each item, from :func:`cluster_numbers`.
        resamples: How many resamples to draw.
        rng: Source of randomness.

    Yields:
        The items of one resample.
    """
    sizes = np.bincount(numbers)
    order, starts = np.argsort(numbers, kind="stable"), np.cumsum(sizes) - sizes
    for picks in cluster_picks(sizes.size, resamples, rng):
        for pick in picks:
            lengths = sizes[pick]
            offsets = np.repeat(starts[pick] - (np.cumsum(lengths) - lengths), lengths)
            yield order[offsets + np.arange(lengths.sum())]


def rows_without_blocks(numbers: Numbers, rng: np.random.Generator) -> Iterator[Numbers]:
    """Leaves out one block of clusters after the other, as a jackknife does.

    A block is one cluster, or a random lot of them where there are more than :data:`_MOST_BLOCKS`.

    Yields:
        The items that are left.
    """
    many = int(numbers.max()) + 1
    blocks = rng.permutation(many) % min(many, _MOST_BLOCKS)
    for block in range(min(many, _MOST_BLOCKS)):
        yield np.flatnonzero(blocks[numbers] != block)


def all_sign_flips(values: Floats) -> Floats:
    """The sum of the values under each of the 2 ** n choices of their signs; for few values."""
    totals = np.zeros(1)
    for value in values:
        totals = np.concatenate([totals + value, totals - value])
    return totals


def random_sign_flips(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of the values under random signs.

    Values of one magnitude are drawn together: their sum is that magnitude times a binomial number of pluses less
    minuses. Scores on a scale of few values therefore cost next to nothing.

    Args:
        values: The values whose signs are flipped.
        resamples: How many sums to draw.
        rng: Source of randomness.

    Returns:
        The sums, one a resample.
    """
    magnitudes, counts = np.unique(np.abs(values), return_counts=True)
    repeated = counts > 1
    pluses = rng.binomial(counts[repeated], 0.5, size=(resamples, np.count_nonzero(repeated)))
    totals: Floats = (2.0 * pluses - counts[repeated]) @ magnitudes[repeated]
    return totals + _random_signs(magnitudes[~repeated], resamples, rng)


def _random_signs(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """The sum of the values under random signs, eight at a time: a random byte picks one of their 256 signed sums."""
    totals, bytes_each = np.zeros(resamples), (values.size + 7) // 8
    if not bytes_each:
        return totals
    eights = np.pad(values, (0, 8 * bytes_each - values.size)).reshape(-1, 8)
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1.0
    signed_sums, batch = (eights @ signs.T).ravel(), max(1, _BATCH_CELLS // bytes_each)
    for start in range(0, resamples, batch):
        picks = rng.integers(256, size=(min(batch, resamples - start), bytes_each), dtype=np.uint8)
        places = picks + 256 * np.arange(bytes_each)
        totals[start : start + batch] = signed_sums[places].sum(axis=1)
    return totals
