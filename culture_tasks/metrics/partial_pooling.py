"""One score per place, such as a country, over several benchmarks: a hierarchical model with partial pooling.

Benchmarks differ in difficulty and ask about different places, some of them with very few questions. A plain mean
would put a place ahead that only an easy benchmark asks about, and one that got lucky in eighteen questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from culture_tasks.metrics.means import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from culture_tasks.metrics.means import Floats, Numbers

_TOP = 100.0
"""The upper end of the scale; the lower end is 0."""

_SPREADS = (15.0, 8.0, 8.0)
"""Scale, in points, of the half-normal prior of the spreads: places, their abilities, their benchmarks."""

_STEPS = (8, 4, 6)
"""Number of values of each spread on the grid; all of them have the same prior probability."""

_PRIOR = 10.0
"""Clusters of the benchmark that a cell's variance is averaged with, and items that its mean is."""


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """The scored items of one model in all benchmarks, on one common scale.

    Attributes:
        scores: The score of each item, shape (n,), from 0 to 100, without NaN.
        places: The place that each item asks about, shape (n,), numbered from 0.
        units: The unit (task or group) of each item, shape (n,), numbered from 0.
        clusters: The cluster of each item, shape (n,), such as its image or the question that is asked about every
            place. A cluster may have items of several places and of several units of one benchmark, never of two
            benchmarks.
        benchmarks: The benchmark of each unit, numbered from 0.
        abilities: The ability that each unit tests, numbered from 0.
    """

    scores: Floats
    places: Numbers
    units: Numbers
    clusters: Numbers
    benchmarks: Sequence[int]
    abilities: Sequence[int]


class PlaceScore(NamedTuple):
    """The score of a place on the scale of 0 to 100.

    Attributes:
        value: The score: the posterior mean.
        low: Lower end of its 95 % interval.
        high: Upper end.
        n: Number of items that ask about the place.
        raw: The mean without pooling: each benchmark weighs the same, and so do a benchmark's units.
    """

    value: float
    low: float
    high: float
    n: int
    raw: float


def pooled(items: ScoredItems, places: int) -> list[PlaceScore | None]:
    """Scores of places with partial pooling; None for a place without items.

    A cell is a place in a benchmark; its mean weighs the benchmark's units alike. Model: cell mean = mu of the
    benchmark + theta of the place + phi of the place's abilities + gamma of the cell + sampling error.

    The score of a place is its mean over all benchmarks (each weighs the same), had each of them asked about it: the
    mean of the true cell means, so phi and gamma are part of it.

    Examples:
        >>> easy, hard = [100.0, 100.0, 0.0, 100.0], [0.0, 100.0, 0.0, 0.0]  # one place is in the easy benchmark alone
        >>> items = ScoredItems(
        ...     scores=np.array(easy + easy + hard),
        ...     places=np.repeat([0, 1, 1], 4),
        ...     units=np.repeat([0, 0, 1], 4),
        ...     clusters=np.arange(12),
        ...     benchmarks=[0, 1],
        ...     abilities=[0, 0],
        ... )
        >>> [(place.raw, round(place.value)) for place in pooled(items, places=2)]
        [(75.0, 50), (50.0, 50)]
    """
    if not items.scores.size:
        return [None] * places
    cells = _cells(items)
    value, low, high = (np.clip(numbers, 0.0, _TOP).tolist() for numbers in _fit(cells))
    scores: list[PlaceScore | None] = [None] * places
    for row, place in enumerate(cells.places.tolist()):
        scores[place] = PlaceScore(value[row], low[row], high[row], int(cells.counts[row]), float(cells.raw[row]))
    return scores


class _Cells(NamedTuple):
    """What is known of each cell, a place (row) in a benchmark (column); 0 where no item is.

    Attributes:
        places: Number of the place of each row.
        counts: Items of each row.
        raw: Mean of each row's cells.
        means: Mean of each cell.
        variances: Its sampling variance.
        shared: The share of that which a benchmark's cells have in common.
        abilities: Weights of the abilities in each cell (rows, columns, abilities).
        whole: Weights of the abilities in the mean of all benchmarks.
    """

    places: Numbers
    counts: Numbers
    raw: Floats
    means: Floats
    variances: Floats
    shared: Floats
    abilities: Floats
    whole: Floats


def _cells(items: ScoredItems) -> _Cells:
    order = np.lexsort((items.scores, items.clusters, items.units, items.places))  # for sums that are always the same
    scores = np.asarray(items.scores, dtype=np.float64)[order]
    (names, place), (units, unit) = numbered(items.places[order]), numbered(items.units[order])
    of_unit = numbered(np.asarray(items.benchmarks)[units])[1]
    ability_of_unit = numbered(np.asarray(items.abilities)[units])[1]
    rows, columns = names.size, int(of_unit.max()) + 1
    # Parts are the items of one unit about one place.
    codes, part = numbered(place * units.size + unit)
    part_unit = codes % units.size
    benchmark = of_unit[part_unit]
    cell = codes // units.size * columns + benchmark
    sizes, many = np.bincount(part), rows * columns
    parts = np.bincount(cell, minlength=many)
    means = np.bincount(part, scores) / sizes
    off = scores - means[part]
    squares = np.bincount(part, off**2)
    weights = (1.0 / parts[cell] / sizes)[part]
    at = cell[part]

    def by_cell(values: Floats) -> Floats:
        return np.bincount(at, values, minlength=many)

    cell_means = np.bincount(cell, means / parts[cell], minlength=many)
    ability = np.zeros((many, int(ability_of_unit.max()) + 1))
    np.add.at(ability, (cell, ability_of_unit[part_unit]), 1.0 / parts[cell])
    whole = np.bincount(ability_of_unit, 1.0 / np.bincount(of_unit)[of_unit]) / columns

    # Variance of one item: a share of the largest that a score with this mean may have, 1 for right and wrong.
    largest = means * (_TOP - means) + squares / sizes / np.maximum(sizes - 1, 1)
    one = (_TOP / 2) ** 2
    above = np.bincount(benchmark, squares) + one
    below = np.bincount(benchmark, (sizes - 1) * largest) + one
    dispersion = (above / below)[benchmark]
    totals = np.bincount(unit)
    middle = (np.bincount(unit, scores)[part_unit] - sizes * means + 2.0 * _TOP) / (totals[part_unit] - sizes + 4.0)
    near = (sizes * means + _PRIOR * middle) / (sizes + _PRIOR)
    owners, owner = numbered(at * (int(items.clusters.max()) + 1) + items.clusters[order])
    clusters = owners // (int(items.clusters.max()) + 1)
    groups = np.bincount(clusters, minlength=many)
    freedom = np.maximum(groups - 1, 0)

    def errors(each: Floats) -> tuple[Floats, Floats]:
        """Variance of a cell's mean if its items were independent, and what it gains if clusters were all alike."""
        influence = weights * np.sqrt(dispersion * each)[part]
        alone = by_cell(influence**2)
        return alone, np.bincount(clusters, np.bincount(owner, influence) ** 2, minlength=many) - alone

    column = np.tile(np.arange(columns), rows)
    alone, together = errors(near * (_TOP - near))
    sums = np.bincount(owner, weights * off) * np.sqrt(groups / np.maximum(freedom, 1))[clusters]
    robust = np.bincount(clusters, sums**2, minlength=many)
    plain = by_cell(weights**2 * off**2 * (sizes / np.maximum(sizes - 1, 1))[part])
    scale = freedom / np.where(alone > 0.0, alone, 1.0)
    alike = np.clip(_ratio(np.bincount(column, scale * (robust - plain)), np.bincount(column, scale * together)), 0, 1)
    predicted = alone + alike[column] * together
    raw_alone, raw_together = errors(largest)
    own = raw_alone + alike[column] * raw_together
    variances = predicted * np.where(own > 0.0, _ratio(freedom * robust + _PRIOR * own, (freedom + _PRIOR) * own), 1.0)
    # Clusters with items of several places: what a benchmark's cells have in common.
    across = np.bincount(numbered(owners % (int(items.clusters.max()) + 1))[1], sums)
    home = np.zeros(across.size, dtype=np.intp)
    home[numbered(owners % (int(items.clusters.max()) + 1))[1]] = column[clusters]
    products = np.bincount(home, across**2, minlength=columns) - np.bincount(column, robust)
    roots = np.bincount(column, np.sqrt(variances))
    shared = np.clip(_ratio(products, roots**2 - np.bincount(column, variances)), 0.0, 0.95)
    shape = (rows, columns)
    return _Cells(
        places=names.astype(np.intp),
        counts=np.bincount(place),
        raw=cell_means.reshape(shape).sum(axis=1) / (parts.reshape(shape) > 0).sum(axis=1),
        means=cell_means.reshape(shape),
        variances=variances.reshape(shape),
        shared=shared,
        abilities=ability.reshape(*shape, -1),
        whole=whole,
    )


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0.0)


def _grid() -> Floats:
    axes = [
        scale * special.ndtri(0.5 + (np.arange(steps) + 0.5) / steps / 2)
        for scale, steps in zip(_SPREADS, _STEPS, strict=True)
    ]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")]) ** 2


def _fit(cells: _Cells) -> tuple[Floats, Floats, Floats]:
    """Returns posterior mean and ends for each place."""
    columns = cells.means.shape[1]
    known = cells.variances > 0.0
    noise = (1.0 - cells.shared) * cells.variances
    weight = _ratio(np.ones_like(noise), noise)  # (P, B)
    y = np.where(known, cells.means - _TOP / 2, 0.0)
    common = np.sqrt(cells.shared * cells.variances)
    place, ability, benchmark = _grid()[:, :, None]  # (G, 1)
    alike = np.einsum("pba,pca->bcp", cells.abilities, cells.abilities)
    to_whole = (cells.abilities @ cells.whole).T  # (B, P)
    root = np.sqrt(weight).T  # (B, P)
    count = place.size
    cov = place + ability * alike[:, :, None] + np.eye(columns)[:, :, None, None] * benchmark  # (B, B, G, P)
    inverse = cov * root[:, None, None] * root[None, :, None] + np.eye(columns)[:, :, None, None]
    logdet = _invert(inverse).sum(axis=-1)
    inverse *= root[:, None, None] * root[None, :, None]
    hat = np.empty((count, 2 * columns, 2 * columns))
    hat[:, :columns, :columns] = np.einsum("bcgp->gbc", inverse)
    hat[:, :columns, columns:] = np.einsum("bcgp,pc->gbc", inverse, common)
    hat[:, columns:, :columns] = hat[:, :columns, columns:].transpose(0, 2, 1)
    hat[:, columns:, columns:] = np.einsum("bcgp,pb,pc->gbc", inverse, common, common) + np.eye(columns)
    ry = np.einsum("bcgp,pc->bgp", inverse, y)
    xry = np.concatenate([ry.sum(axis=-1), np.einsum("bgp,pb->bg", ry, common)]).T  # (G, 2B)
    covariance = np.linalg.inv(hat)
    beta = np.einsum("gij,gj->gi", covariance, xry)
    fit = np.einsum("bgp,pb->g", ry, y) - np.einsum("gi,gi->g", xry, beta)
    loglik = -0.5 * (logdet + np.linalg.slogdet(hat)[1] + fit)
    chance = np.exp(loglik - loglik.max())
    chance /= chance.sum()
    c = place + ability * to_whole[:, None] + benchmark / columns  # (B, G, P)
    rc = np.einsum("bcgp,cgp->bgp", inverse, c)
    load = np.concatenate([1.0 / columns - rc, -rc * common.T[:, None]])  # (2B, G, P)
    means = np.einsum("bgp,pb->gp", rc, y) + np.einsum("igp,gi->gp", load, beta)
    prior = place + ability * float(cells.whole @ cells.whole) + benchmark / columns
    variances = prior - np.einsum("bgp,bgp->gp", c, rc)
    variances += np.einsum("igp,gij,jgp->gp", load, covariance, load, optimize=True)
    keep = chance > 1e-6
    chance, means, deviations = chance[keep, None], means[keep], np.sqrt(variances[keep])
    low, high = (_quantile(chance, means, deviations, at) for at in (0.025, 0.975))
    middle = (chance * means).sum(axis=0)
    return _TOP / 2 + middle, _TOP / 2 + low, _TOP / 2 + high


def _quantile(chance: Floats, means: Floats, deviations: Floats, at: float) -> Floats:
    """Returns the quantile of a mixture of normals for each column, by halving."""
    reach = 3.0 * deviations
    low, high = (means - reach).min(axis=0), (means + reach).max(axis=0)
    for _ in range(30):
        half = (low + high) / 2
        below = (chance * special.ndtr((half - means) / deviations)).sum(axis=0) < at
        low, high = np.where(below, half, low), np.where(below, high, half)
    return (low + high) / 2


def _invert(matrices: NDArray[np.float64]) -> Floats:
    """Inverts positive definite matrices in place, the first two axes; returns the logarithms of their determinants."""
    log = np.zeros(matrices.shape[2:])
    for at in range(matrices.shape[0]):
        pivot = matrices[at, at].copy()
        log += np.log(pivot)
        column, row = matrices[:, at].copy(), matrices[at] / pivot
        matrices -= column[:, None] * row
        matrices[at], matrices[:, at] = row, -column / pivot
        matrices[at, at] = 1.0 / pivot
    return log
