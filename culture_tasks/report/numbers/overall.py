"""The mean over the columns that rows share, with paired tests between the rows' means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from typing import Any, TypeVar

import numpy as np
import scipy

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.reporting import Codes, Floats
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.means import numbered
from culture_tasks.report.model import ModelMeans, ModelRow, Number, Unit
from culture_tasks.report.numbers.comparisons import Pair, compare, rank_cells
from culture_tasks.report.numbers.corrections import (
    Checked,
    PairCorrection,
    corrections_of,
    graded_by_better_judges,
)
from culture_tasks.report.numbers.draws import weighted
from culture_tasks.report.numbers.numbers import from_interval
from culture_tasks.report.numbers.selection import Selection, in_order

_Numbers = TypeVar("_Numbers", float, Floats)

COMMON = Scale("points of 100", 0.0, 100.0)
"""The scale of the means: each metric's range is mapped to 0-100, where 100 is the better end."""

MEAN = "mean"
"""Key of the mean."""


def to_common(cell: Number) -> Number | None:
    """Maps a number from the range of its scale to 0-100; None without a range or a number."""
    scale = cell.scale
    if cell.value is None or scale.ends is None:
        return None
    value, low, high = (None if end is None else mapped(end, scale) for end in (cell.value, cell.low, cell.high))
    first, last = (high, low) if scale.better == "lower" else (low, high)
    return replace(cell, value=value, scale=COMMON, low=first, high=last)


def mapped(scores: _Numbers, scale: Scale) -> _Numbers:
    """Maps the range of a scale, which has both ends, to 0-100."""
    low, high = scale.ends or (0.0, 1.0)
    places = 100.0 * (scores - low) / (high - low)
    return 100.0 - places if scale.better == "lower" else places


def weights(units: Sequence[Unit]) -> list[float]:
    """Returns the weights of columns: all benchmarks weigh the same, and so do the columns of one benchmark."""
    benchmarks = [unit.benchmark or unit.key for unit in units]
    columns = Counter(benchmarks)
    return [1.0 / columns[benchmark] for benchmark in benchmarks]


OWN_CULTURE = "a culture whose data aren't published with the benchmark"


def shared_sources(units: Iterable[Unit]) -> str:
    """Names the sources that benchmarks of a joint number share; empty where they share none."""
    titles: dict[str, list[str]] = {}
    for name in dict.fromkeys(unit.benchmark for unit in units if unit.benchmark in benchmarks()):
        benchmark = benchmarks()[name or ""]
        for source in (benchmark.title, *benchmark.made_from):
            titles.setdefault(source, []).append(benchmark.title)
    shared = "; ".join(f"{source} ({', '.join(names)})" for source, names in titles.items() if len(names) > 1)
    return (
        f"Scores of benchmarks that share a source aren't independent: {shared}. culture-tasks data overlap lists "
        "questions that are the same or nearly so."
        if shared
        else ""
    )


def mean_cell(cells: Sequence[Number], weights: Sequence[float]) -> Number:
    """Returns the weighted mean of cells, mapped to 0-100, as if independent, with the flags of all of them."""
    common = [cell for cell in map(to_common, cells) if cell is not None]
    return from_interval(
        Interval(
            *weighted([(cell.value, cell.low, cell.high) for cell in common], np.array(weights) / sum(weights)),
            n=sum(cell.n for cell in common),
        ),
        COMMON,
        {flag for cell in common for flag in cell.flags},
        tuple(run for cell in common for run in cell.runs),
    )


def shared_columns(columns: Mapping[str, Collection[str]]) -> tuple[list[str], list[str]]:
    """Returns the columns to take the mean over, and the rows that have all of them; a mean has two columns or more.

    Of the columns that two rows share, or all rows, those count that maximise (pairs of rows that have all of them) x
    (columns). So a row with few columns takes none from the others.
    """
    order = list(dict.fromkeys(chain(*columns.values())))
    counts = Counter(frozenset(keys) for keys in columns.values() if keys)
    shared = dict.fromkeys(first & second for first in counts for second in counts)
    if counts:
        shared[frozenset.intersection(*counts)] = None

    def compared(keys: frozenset[str]) -> tuple[int, int]:
        rows = sum(count for other, count in counts.items() if keys <= other)
        return len(keys) * math.comb(rows, 2), rows

    best = max((keys for keys in shared if len(keys) > 1), key=compared, default=frozenset())
    if not best or (not compared(best)[0] and counts.total() > 1):
        return [], []
    return [key for key in order if key in best], [row for row, keys in columns.items() if best <= set(keys)]


def means(
    units: Mapping[str, Unit],
    rows: Mapping[str, ModelRow],
    people: Checked,
    *,
    rankable: Callable[[Number], bool],
) -> tuple[ModelMeans, ...]:
    """Works out the mean over the headline columns that rows share."""
    headline = [unit for unit in units.values() if unit.headline]
    beside = {unit.key: reason for unit in headline if (reason := _obstacle(unit))}
    usable = {
        row: [
            unit.key for unit in headline if unit.key not in beside and row in unit.cells and rankable(unit.cells[row])
        ]
        for row in rows
    }
    columns, members = shared_columns(usable)
    if not columns:
        return ()
    inside = [units[key] for key in columns]
    tests = compare(_pairs(inside, members, people), {key: row.label for key, row in rows.items()})
    lacking = {
        row: f"lacks {'; '.join(unit.title for unit in inside if unit.key not in keys)}"
        for row, keys in usable.items()
        if row not in members
    }
    cells = {row: mean_cell([unit.cells[row] for unit in inside], weights(inside)) for row in members}
    ranked, standing = rank_cells(cells, COMMON, tests=tests, left_out=lacking)
    total = len({rows[row].model for row in members})
    for key in dict.fromkeys(chain(*usable.values())):
        if models := {rows[row].model for row in members if key not in usable[row]}:
            beside[key] = f"missing or not comparable for {len(models)} of the {total} models"
    title = f"Mean of {len(columns)}"
    return (ModelMeans(MEAN, title, tuple(columns), beside, ranked, standing, tuple(tests)),)


def why_no_mean(headline: Sequence[Unit]) -> str:
    """Returns why no mean ranks the models."""
    if any(unit.benchmark is None for unit in headline):
        return "no two share two benchmarks of culture-tasks, and other tasks are in no mean"
    return "no two have comparable scores on the same two benchmarks"


def _obstacle(unit: Unit) -> str:
    if unit.scale.ends is None:
        return "the range of its metric isn't known"
    if unit.scale.better is None:
        return "neither end of its metric is better"
    if unit.benchmark in cultures():
        return OWN_CULTURE
    return "a task of the harness" if unit.benchmark is None else ""


def _pairs(columns: Sequence[Unit], rows: Sequence[str], people: Checked) -> list[Pair]:
    """Returns the pairs of rows to test on the mean over columns; none where a row lacks samples."""
    if not all(column.runs[row] for column in columns for row in rows):
        return []
    parts = {row: [in_order(column.select(row)) for column in columns] for row in rows}
    stacked = {row: in_order(_stacked(columns, parts[row])) for row in rows}
    sources = (people, graded_by_better_judges(columns))
    pairs: list[Pair] = []
    for first, second in combinations(rows, 2):
        by_column = [
            Pair(
                family=MEAN,
                unit=column.key,
                first=first,
                second=second,
                samples=(parts[first][number], parts[second][number]),
                scale=column.scale,
                correction=corrections_of(column, first, second, sources)[0],
            )
            for number, column in enumerate(columns)
        ]
        both = stacked[first], stacked[second]
        pairs.append(Pair(MEAN, MEAN, first, second, both, COMMON, correction=_correction(columns, by_column)))
    return pairs


def _correction(columns: Sequence[Unit], pairs: Sequence[Pair]) -> PairCorrection | None:
    """Returns the corrected difference of two means, with columns as independent; None where no column has one."""
    used = [pair.correction for pair in pairs if pair.correction is not None and not pair.correction.missing]
    if not used:
        return None
    shares = np.array(weights(columns))
    units = np.array([mapped(1.0, pair.scale) - mapped(0.0, pair.scale) for pair in pairs])
    first, second = (in_order(_stacked(columns, side)) for side in zip(*(pair.judged for pair in pairs), strict=True))
    return PairCorrection(
        rated=sum(correction.rated for correction in used),
        by=" and ".join(dict.fromkeys(correction.by for correction in used)),
        difference=partial(_difference_of_means, pairs, (shares / shares.sum() * units).tolist()),
        judged=(first, second),
    )


def _difference_of_means(pairs: Sequence[Pair], factors: Sequence[float], confidence: float) -> Difference:
    """Returns the weighted sum of the columns' differences; p is the level at which its interval ends at 0."""

    def ends(alpha: float) -> tuple[float, float, float]:
        numbers = np.array([pair.test(alpha, 0)[:3] for pair in pairs])
        certain = np.where(np.isnan(numbers), numbers[:, :1], numbers)
        return weighted(certain.tolist(), factors)

    def above_0(logarithm: float) -> float:
        value, low, high = ends(math.exp(logarithm))
        return low if value > 0.0 else -high

    value, low, high = ends(1.0 - confidence)
    if math.isnan(value):
        return Difference(method="corrected columns", reason="a column has no item that both have a score for")
    least, most = math.log(1e-12), math.log1p(-1e-9)
    if above_0(most) <= 0.0:
        p = 1.0
    else:
        p = 1e-12 if above_0(least) > 0.0 else math.exp(float(scipy.optimize.brentq(above_0, least, most, xtol=1e-6)))
    return Difference(value, low, high, p, method="corrected columns")


def _stacked(columns: Sequence[Unit], parts: Sequence[Selection]) -> Selection:
    """Returns a row's samples of several columns as those of their mean, with the benchmarks' clusters."""
    benchmarks = [column.benchmark or column.key for column in columns]
    strata: list[Codes] = []
    shares: list[float] = []
    owners: list[tuple[Selection, Scale, int]] = []
    for column, part, weight in zip(columns, parts, weights(columns), strict=True):
        numbers, codes = numbered(np.zeros(part.items.size, dtype=np.int32) if part.strata is None else part.strata)
        strata.append(codes.astype(np.int32) + np.int32(len(shares)))
        inside = np.ones(numbers.size) if part.shares is None else part.shares[numbers.astype(np.intp)]
        shares += [weight * float(share) for share in inside / inside.sum()]
        owners += [(part, column.scale, number) for number in numbers.tolist()]

    def compute(index: int, values: Sequence[Any]) -> float:
        part, scale, number = owners[index]
        return mapped(float(np.mean(values)) if part.compute is None else part.compute(number, values), scale)

    values = [part.scores.astype(np.object_) if part.values is None else part.values for part in parts]
    is_mean = all(part.compute is None for part in parts)
    offsets = [np.int64(benchmarks.index(benchmark)) for benchmark in benchmarks]
    return Selection(
        runs=tuple(run for part in parts for run in part.runs),
        items=np.concatenate([part.items + (np.int64(index) << 48) for index, part in enumerate(parts)]),
        scores=np.concatenate([mapped(part.scores, column.scale) for part, column in zip(parts, columns, strict=True)]),
        clusters=np.concatenate([part.clusters + (offset << 32) for part, offset in zip(parts, offsets, strict=True)]),
        strata=np.concatenate(strata),
        coverage=None,
        shares=np.array(shares),
        values=None if is_mean else np.concatenate(values),
        compute=None if is_mean else compute,
        draws={(at << 16) + number: seed for at, part in enumerate(parts) for number, seed in part.draws.items()},
    )
