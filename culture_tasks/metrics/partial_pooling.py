"""One score per place, such as a country, over several benchmarks: a hierarchical model with partial pooling.

Benchmarks differ in difficulty and ask about different places, some of them with very few questions. A plain mean
would put a place ahead that only an easy benchmark asks about, and one that got lucky in eighteen questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from culture_tasks.metrics.means import Floats, Numbers

_SPREAD = 0.6
"""Scale of the half-normal priors of theta and gamma, in log-odds: 15 points at a score of 50."""

_GRIDS = (5, 6, 8)
"""Number of values of either spread: first over the whole prior, then where the grid before has the probability."""

_PRIOR = 10.0
"""Number of clusters that the predicted variance of a cell counts for."""

_LEAST_OWN = 0.05
"""The least share of a cell's variance that is the cell's own, rather than its benchmark's."""

_LARGEST_VARIANCE = 0.25
"""The largest variance of a score; one score more with this variance keeps a benchmark's above 0."""


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """The scored items of one model in all benchmarks, from 0 to 100, without NaN; columns of shape (n,).

    Places, units (tasks or groups) and clusters are numbered from 0. A cluster, such as an image or a question that is
    asked about every place, may have items of several places and units, of one benchmark. ``benchmarks`` has the number
    of each unit's.
    """

    scores: Floats
    places: Numbers
    units: Numbers
    clusters: Numbers
    benchmarks: Sequence[int]


class PlaceScore(NamedTuple):
    """The score of a place on the scale of 0 to 100, with its 95 % interval, from ``n`` items.

    ``raw`` is the mean without pooling: each benchmark weighs the same, and so do a benchmark's units.
    """

    value: float
    low: float
    high: float
    n: int
    raw: float


def pooled(items: ScoredItems, places: int) -> list[PlaceScore | None]:
    """Scores of places over all benchmarks, with 95 % intervals, by partial pooling; None for a place without items.

    A cell is a place in a benchmark. Its true mean, in which the benchmark's units weigh the same, is modelled on
    log-odds, since near an end of the scale the same difference between places moves scores less:

        log-odds = mu(benchmark) + theta(place) + gamma(benchmark, place).

    mu is free; theta and gamma are normal around 0. The score of a place is the mean of its true cell means over all
    benchmarks with items, each weighing the same: the score had every benchmark asked about the place. So no place is
    ahead because an easy benchmark alone asks about it. A place in all benchmarks keeps near its plain mean; one in few
    has a wide interval, for the effects that nobody measured.

    Given the spreads of theta and gamma, the posterior of the log-odds is normal where a cell's mean is linearised
    around the one expected of it. It is averaged over a grid of spreads with half-normal priors, so that intervals hold
    with few places too; the expected means are those of the grid before. The value is the score at the posterior means,
    and the ends are the 2.5 % and 97.5 % quantiles of its log-odds, mixtures of normals.

    Sampling error: a score from 0 to 1 varies by D m (1 - m), with one D for each benchmark (1 for right and wrong). m
    is the mean of the place in the unit, drawn towards that of its other places and four scores of 1/2, so that neither
    one item nor a cell with all right has an error of 0. Items of a cluster correlate as they do on average in the
    benchmark. The cell's own cluster-robust variance (scaled to m) is averaged with this prediction; its weight is the
    number of its clusters less one, and the prediction's is 10. Clusters of several places, such as parallel questions,
    give all cells of a benchmark a common error, with the mean covariance of two cells as its variance. It widens all
    intervals.

    Units of a benchmark count as equally hard where a place is in some of them alone. Scores don't depend on the order
    of rows; numbering clusters, units or benchmarks otherwise moves them by rounding alone (below 1e-6 points).

    Source: Fay and Herriot (1979) for cells with known sampling variances; Breslow and Clayton (1993) for linearised
    means; Rubin (1981) and Gelman et al. (2013), chapter 5, for the grid; Gelman (2006) for the priors. The sampling
    variances are this project's.
    ``speed/partial_pooling.py`` measures coverage and error.

    Examples:
        >>> easy, hard = [100.0, 100.0, 0.0, 100.0], [0.0, 100.0, 0.0, 0.0]  # one place is in the easy benchmark alone
        >>> items = ScoredItems(
        ...     scores=np.array(easy + easy + hard),
        ...     places=np.repeat([0, 1, 1], 4),
        ...     units=np.repeat([0, 0, 1], 4),
        ...     clusters=np.arange(12),
        ...     benchmarks=[0, 1],
        ... )
        >>> [(place.raw, round(place.value)) for place in pooled(items, places=2)]
        [(75.0, 50), (50.0, 50)]
    """
    counts = np.bincount(items.places, minlength=places)
    if any(column.shape != items.scores.shape for column in (items.places, items.units, items.clusters)):
        raise ValueError(f"pooled: expected a place, a unit and a cluster for each of {items.scores.size} scores.")
    if counts.size > places or not ((items.scores >= 0.0) & (items.scores <= 100.0)).all():
        raise ValueError(f"pooled: expected scores from 0 to 100 and places from 0 to {places - 1}.")
    if not items.scores.size:
        return [None] * places
    low, high, between, log_odds = np.zeros(2), np.ones(2), 2.0 * _SPREAD**2, None
    for steps in _GRIDS:
        cells = _cells(items, places, between)
        widths = (high - low) / steps
        # Of each spread, the prior probability of a smaller one.
        axes = [start + width * (np.arange(steps) + 0.5) for start, width in zip(low, widths, strict=True)]
        probabilities = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")])
        squares = (_SPREAD * special.ndtri(0.5 + probabilities / 2)) ** 2
        log_odds = special.logit(cells.expected) if log_odds is None else log_odds
        posterior = _posterior(cells, squares[:, :, None], log_odds)
        chance = np.exp(posterior.logs - posterior.logs.max())
        chance /= chance.sum()
        between, middle = float(squares.sum(axis=0) @ chance), probabilities @ chance
        log_odds = np.einsum("g,bgp->bp", chance, posterior.log_odds)
        reach = 3.0 * np.sqrt((probabilities - middle[:, None]) ** 2 @ chance + widths**2 / 12)
        low, high = np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)
    raw = _ratio(cells.means.sum(axis=0), (cells.variances > 0.0).sum(axis=0).astype(np.float64))
    ends = (special.expit(_quantile(chance, posterior.middles, posterior.errors, share)) for share in (0.025, 0.975))
    columns = ((100.0 * numbers).tolist() for numbers in (chance @ special.expit(posterior.middles), *ends, raw))
    return [
        PlaceScore(value, min(start, value), max(end, value), n, mean) if n else None
        for value, start, end, mean, n in zip(*columns, counts.tolist(), strict=True)
    ]


class _Cells(NamedTuple):
    """The cells of benchmarks (rows) and places (columns), 0 without items: means and their sampling variances.

    Besides, all cells of a benchmark have the variance ``common`` together. ``expected`` are the means drawn towards
    those of other places, for cells without items, too.
    """

    means: Floats
    variances: Floats
    common: Floats
    expected: Floats


def _cells(items: ScoredItems, places: int, between: float) -> _Cells:
    """Returns the cells; ``between`` is how much true means of a benchmark's cells vary, in squared log-odds."""
    order = np.lexsort((items.scores, items.clusters, items.units, items.places))  # makes sums the same in any order
    scores, place = items.scores[order] / 100.0, items.places[order]
    units, unit = np.unique(items.units[order], return_inverse=True)
    _, benchmark = np.unique(np.asarray(items.benchmarks)[units], return_inverse=True)
    shape = int(benchmark.max()) + 1, places
    # A part holds the items of one unit about one place.
    codes, part = np.unique(unit * places + place, return_inverse=True)
    owner = codes // places
    row, cell = benchmark[owner], benchmark[owner] * places + codes % places
    weight = 1.0 / np.bincount(cell)[cell]
    size = np.bincount(part).astype(np.float64)
    mean = _sums(scores, part) / size
    deviations = scores - mean[part]
    squares = _sums(deviations**2, part)
    # Variance of a score, as a share of the largest that scores with this mean can have; then the mean expected of it.
    largest = mean * (1.0 - mean) + squares / size / np.maximum(size - 1.0, 1.0)
    found, most = _sums(squares, row) + _LARGEST_VARIANCE, _sums((size - 1.0) * largest, row) + _LARGEST_VARIANCE
    dispersion = (found / most)[row]
    other_mean = (_sums(scores, unit)[owner] - size * mean + 2.0) / (np.bincount(unit)[owner] - size + 4.0)
    worth = dispersion / (between * other_mean * (1.0 - other_mean))
    expected = (size * mean + worth * other_mean) / (size + worth)
    influence = (weight / size * np.sqrt(dispersion * expected * (1.0 - expected)))[part]
    variances, common = _sampling_variances(
        influence,
        residuals=influence * _ratio(deviations, np.sqrt(dispersion * largest)[part]),
        inflation=_ratio(size, np.where(largest > 0.0, size - 1.0, 0.0))[part],
        cell=cell[part],
        cluster=items.clusters[order],
        shape=shape,
    )
    of_cells = _sums(weight * expected, cell, variances.size).reshape(shape)
    level = _ratio(of_cells.sum(axis=1), (of_cells > 0.0).sum(axis=1).astype(np.float64))
    return _Cells(
        means=_sums(weight * mean, cell, variances.size).reshape(shape),
        variances=variances.reshape(shape),
        common=common,
        expected=np.where(of_cells > 0.0, of_cells, level[:, None]),
    )


def _sampling_variances(
    influence: Floats, *, residuals: Floats, inflation: Floats, cell: Numbers, cluster: Numbers, shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Returns the variance that each cell's mean has by itself, and the one that a benchmark's cells have in common.

    Of each score, ``influence`` is its standard deviation times its weight in the mean of its cell, ``residuals`` its
    deviation in place of its standard deviation, and ``inflation`` makes the squared one unbiased (0 where all scores
    are alike at an end of the scale). ``shape`` are the numbers of benchmarks and places.
    """
    cell_count, row, span = shape[0] * shape[1], np.repeat(np.arange(shape[0]), shape[1]), int(cluster.max()) + 1
    owners, owner = np.unique(cell * span + cluster, return_inverse=True)
    owner_cell = owners // span
    freedom = np.maximum(_sums(_sums(inflation > 0.0, owner) > 0.0, owner_cell, cell_count) - 1.0, 0.0)
    sums = _sums(residuals, owner) * np.sqrt(1.0 + 1.0 / np.maximum(freedom, 1.0))[owner_cell]
    robust, independent = _sums(sums**2, owner_cell, cell_count), _sums(influence**2, cell, cell_count)
    plain = _sums(inflation * residuals**2, cell, cell_count)
    covariance = _sums(_sums(influence, owner) ** 2, owner_cell, cell_count) - independent
    trust = _ratio(freedom, independent)
    correlation = _ratio(_sums(trust * (robust - plain), row), _sums(trust * covariance, row)).clip(0.0, 1.0)
    variances = (freedom * robust + _PRIOR * (independent + correlation[row] * covariance)) / (freedom + _PRIOR)
    # Clusters of several places: the mean covariance of two cells, weighted by their precision.
    precision = _ratio(np.ones(cell_count), variances)
    across, number = np.unique(owner_cell // shape[1] * span + owners % span, return_inverse=True)
    products = _sums(_sums(sums * precision[owner_cell], number) ** 2, across // span)
    products -= _sums(robust * precision**2, row)
    common = _ratio(products, _sums(precision, row) ** 2 - _sums(precision**2, row)).clip(0.0)
    return np.maximum(variances - common[row], _LEAST_OWN * variances), common


class _Posterior(NamedTuple):
    """By point of the grid: log likelihoods (grid), and posterior means of log-odds (benchmarks, grid, places).

    ``middles`` and ``errors`` are the log-odds of places' scores and their errors (grid, places).
    """

    logs: Floats
    log_odds: Floats
    middles: Floats
    errors: Floats


def _posterior(cells: _Cells, squares: Floats, log_odds: Floats) -> _Posterior:
    """Returns the posterior for pairs of squared spreads, with the cells' means linearised at these log-odds."""
    rows, (place, benchmark) = len(cells.means), squares
    identity = np.eye(rows)[:, :, None, None]
    means = special.expit(log_odds)
    slopes = means * (1.0 - means)
    observed = np.where(cells.variances > 0.0, log_odds + (cells.means - means) / slopes, 0.0)
    root = slopes * np.sqrt(_ratio(np.ones_like(cells.variances), cells.variances))
    scale = root[:, None, None] * root[:, None]
    effects = place + benchmark * identity
    # The inverse of the cells' covariance within a place; 0 for a cell without items.
    covariances = np.moveaxis(effects * scale + identity, (0, 1), (-2, -1))
    logs = np.linalg.slogdet(covariances)[1]
    inverse = np.moveaxis(np.linalg.inv(covariances), (-2, -1), (0, 1)) * scale
    total = inverse.sum(axis=-1).transpose(2, 0, 1)
    evidence = np.einsum("bcgp,cp->bgp", inverse, observed)
    covariance = np.linalg.inv(total)
    levels = np.einsum("gbc,cg->bg", covariance, evidence.sum(axis=-1))
    fit = np.einsum("bgp,bp->g", evidence, observed) - (levels * evidence.sum(axis=-1)).sum(axis=0)
    # Log-odds are the levels and a part, gain, of the cells' distances from them.
    gain = place * inverse.sum(axis=0) + benchmark * inverse
    remaining = identity - gain
    found = levels[:, :, None] + np.einsum("bcgp,cgp->bgp", gain, observed[:, None] - levels[:, :, None])
    spread = place * remaining.sum(axis=1)[:, None] + benchmark * remaining
    spread += np.einsum("bcgp,gcd,edgp->begp", remaining, covariance, remaining, optimize=True)
    middles = special.expit(found)
    weights = middles * (1.0 - middles) / rows
    variances = np.einsum("bgp,bcgp,cgp->gp", weights, spread, weights, optimize=True) + cells.common.sum() / rows**2
    middle = middles.mean(axis=0)
    return _Posterior(
        -0.5 * (logs.sum(axis=-1) + np.linalg.slogdet(total)[1] + fit),
        log_odds=found,
        middles=special.logit(middle),
        errors=np.sqrt(variances) / (middle * (1.0 - middle)),
    )


def _quantile(chance: Floats, means: Floats, errors: Floats, share: float) -> Floats:
    """Returns the quantile of each column's mixture of normals, by halving."""
    likely = chance > 1e-6
    chance, means, errors = chance[likely] / chance[likely].sum(), means[likely], errors[likely]
    ends = means + special.ndtri(share) * errors
    low: Floats = ends.min(axis=0)
    high: Floats = ends.max(axis=0)
    for _ in range(30):
        half = (low + high) / 2
        is_below = chance @ special.ndtr((half - means) / errors) < share
        low, high = np.where(is_below, half, low), np.where(is_below, high, half)
    return low


def _sums(values: ArrayLike, codes: Numbers, many: int = 0) -> Floats:
    return np.bincount(codes, weights=values, minlength=many).astype(np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """Returns the ratio; 0 where there is nothing to divide by."""
    ratio: Floats = np.divide(above, below, out=np.zeros_like(below), where=below > 0.0)
    return ratio
