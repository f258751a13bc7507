"""Means over columns that entrants share, with paired tests between these means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.reporting import Codes, Floats
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.means import numbered
from culture_tasks.report.model import ModelMeans, ModelRow, Number, Unit
from culture_tasks.report.numbers.comparisons import Pair, adjusted, rank_cells
from culture_tasks.report.numbers.corrections import Corrections, PairCorrection
from culture_tasks.report.numbers.numbers import from_interval
from culture_tasks.report.numbers.selection import Selection, in_order, weighted
from culture_tasks.results.comparability import NOT_COMPARABLE

_Numbers = TypeVar("_Numbers", float, Floats)

COMMON = Scale("points of 100", 0.0, 100.0)
"""The scale of the means: each metric's range is mapped to 0-100, where 100 is the better end."""

_MEAN_LIMIT = 3
"""Most means of a report: one for each set of models that ran the same columns."""


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
    """Names the sources that benchmarks of a joint number share, and a command that looks into it; may be empty."""
    first_columns = {unit.benchmark: unit.key for unit in reversed([*units])}
    by_title = {benchmark.title: benchmark for name, benchmark in benchmarks().items() if name in first_columns}
    sources = dict.fromkeys(source for benchmark in by_title.values() for source in benchmark.made_from)
    shared: dict[tuple[str, ...], list[str]] = {}
    concerned: set[str] = set()
    for source in sources:
        drawing = tuple(title for title, benchmark in by_title.items() if source in benchmark.made_from)
        if len(named := {source, *drawing} & by_title.keys()) > 1:
            shared.setdefault(drawing, []).append(source)
            concerned |= named
    if not shared:
        return ""
    listed = "; ".join(
        f"{' and '.join(titles)} draw{'s' if len(titles) == 1 else ''} on {' and '.join(origins)}"
        for titles, origins in shared.items()
    )
    columns = " ".join(first_columns[benchmark.name] for title, benchmark in by_title.items() if title in concerned)
    return (
        f"{listed}: their scores aren't independent. culture-tasks data overlap {columns} lists questions "
        "that are the same or nearly so."
    )


def mean_cell(cells: Sequence[Number], weights: Sequence[float]) -> Number:
    """Returns the weighted mean of cells on the common scale, as if independent, with the flags of all of them."""
    return from_interval(
        Interval(
            *weighted([(cell.value, cell.low, cell.high) for cell in cells], np.array(weights) / sum(weights)),
            n=sum(cell.n for cell in cells),
        ),
        COMMON,
        {flag for cell in cells for flag in cell.flags},
        tuple(run for cell in cells for run in cell.runs),
    )


class Block(NamedTuple):
    """Columns, and the entrants that have all of them."""

    columns: tuple[str, ...]
    entrants: tuple[str, ...]


def blocks(columns: Mapping[str, Collection[str]]) -> list[Block]:
    """Returns the sets of columns to take means over, from each entrant's columns with a comparable number.

    A set is chosen so that the pairs of entrants that it compares, times its columns, are the most. An entrant with few
    columns thus takes none from the others, and columns of few entrants don't split the rest. The remaining entrants
    may share other columns: these make a further mean, for all entrants that have them. A mean has two columns or more.
    """
    order = list(dict.fromkeys(chain(*columns.values())))
    sets = {entrant: frozenset(keys) for entrant, keys in columns.items()}
    if sum(bool(keys) for keys in sets.values()) == 1:
        return [Block(tuple(keys), (entrant,)) for entrant, keys in columns.items() if len(keys) > 1]
    chosen_blocks: list[Block] = []
    remaining = list(sets)

    def compared(shared: frozenset[str]) -> tuple[int, int]:
        """Returns how many pairs of numbers a set of columns compares, and how many entrants have the set."""
        count = sum(shared <= sets[entrant] for entrant in remaining)
        return len(shared) * math.comb(count, 2), count

    while remaining and len(chosen_blocks) < _MEAN_LIMIT:
        best = max(_shared([sets[entrant] for entrant in remaining]), key=compared, default=None)
        if best is None or not compared(best)[0]:
            break
        entrants = tuple(entrant for entrant in sets if best <= sets[entrant])
        chosen_blocks.append(Block(tuple(column for column in order if column in best), entrants))
        remaining = [entrant for entrant in remaining if not best <= sets[entrant]]
    return sorted(chosen_blocks, key=lambda block: -len(block.entrants))


_SET_LIMIT = 2000
"""Sets of shared columns after which the search for more ends: with many models, there are too many."""


def _shared(sets: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Returns the sets of two columns or more that some entrants share: all intersections of their sets."""
    distinct = [columns for columns in dict.fromkeys(sets) if len(columns) > 1]
    shared = dict.fromkeys(distinct)
    new = distinct
    while new and len(shared) < _SET_LIMIT:
        intersections = dict.fromkeys(first & second for first in new for second in distinct if len(first & second) > 1)
        new = [columns for columns in intersections if columns not in shared]
        shared.update(dict.fromkeys(new))
    return list(shared)


def means(
    units: Mapping[str, Unit],
    entrants: Mapping[str, ModelRow],
    corrections: Corrections,
    *,
    rankable: Callable[[Number], bool],
    other_tasks: bool = False,
) -> tuple[ModelMeans, ...]:
    """Works out the means over the headline columns that entrants share, with the harnesses' own tasks on request."""
    headline = [unit for unit in units.values() if unit.headline]
    obstacles = {unit.key: reason for unit in headline if (reason := _obstacle(unit, other_tasks=other_tasks))}
    usable = [unit for unit in headline if unit.key not in obstacles]
    usable_columns = {
        key: [unit.key for unit in usable if (cell := unit.cells.get(key)) is not None and rankable(cell)]
        for key in entrants
    }
    labels = {key: entrant.label for key, entrant in entrants.items()}
    column_blocks = blocks(usable_columns)
    averages: list[ModelMeans] = []
    for number, (letter, block) in enumerate(zip("ABC", column_blocks, strict=False)):
        key, title = "mean" if number == 0 else f"mean_{number + 1}", f" {letter}" if len(column_blocks) > 1 else ""
        columns = [units[column] for column in block.columns]
        column_units = columns
        common = {
            entrant: [cell for unit in column_units if (cell := to_common(unit.cells[entrant])) is not None]
            for entrant in block.entrants
        }
        mean_tests = adjusted(_pairs(key, columns, block.entrants, corrections), labels)
        lacking = {
            entrant: f"lacks {'; '.join(unit.title for unit in column_units if unit.key not in keys)}"
            for entrant, keys in usable_columns.items()
            if entrant not in common
        }
        mean_cells = {entrant: mean_cell(cells, weights(column_units)) for entrant, cells in common.items()}
        cells, standing = rank_cells(mean_cells, COMMON, tests=mean_tests, left_out=lacking)
        model_count = len({entrants[entrant].model for entrant in common})
        beside: dict[str, str] = {}
        for column in dict.fromkeys(chain(*usable_columns.values())):
            if models := {entrants[entrant].model for entrant in common if column not in usable_columns[entrant]}:
                beside[column] = f"missing or not comparable for {len(models)} of the {model_count} models"
        mean = ModelMeans(
            key=key,
            title=f"Mean{title} of {len(columns)}",
            columns=block.columns,
            beside=beside | obstacles,
            cells=cells,
            standing=standing,
            comparisons=tuple(mean_tests),
        )
        averages.append(mean)
    return tuple(averages)


def why_no_mean(headline: Sequence[Unit], entrants: Mapping[str, ModelRow]) -> str:
    """Returns why no mean ranks the models."""
    run: dict[str, set[str]] = {}
    usable: dict[str, set[str]] = {}  # without marks, and with the harnesses' own tasks
    for unit in headline:
        for key, cell in unit.cells.items():
            run.setdefault(entrants[key].model, set()).add(unit.key)
            if cell.value is not None and not (_obstacle(unit, other_tasks=True) or NOT_COMPARABLE & set(cell.flags)):
                usable.setdefault(entrants[key].model, set()).add(unit.key)
    if not any(len(first & second) > 1 for first, second in combinations(run.values(), 2)):
        return "no two ran the same two benchmarks"
    if any(len(first & second) > 1 for first, second in combinations(usable.values(), 2)):
        return "the harnesses' own tasks are in a mean only with --other-tasks-in-mean"
    return "no two have comparable scores on the same two benchmarks that a mean can take in"


def _obstacle(unit: Unit, *, other_tasks: bool) -> str:
    if unit.scale.ends is None:
        return "the range of its metric isn't known"
    if unit.scale.better is None:
        return "neither end of its metric is better"
    if unit.further:
        return "a further metric of a task"
    if unit.benchmark in cultures():
        return OWN_CULTURE
    return "a task of the harness" if unit.benchmark is None and not other_tasks else ""


def _pairs(key: str, columns: Sequence[Unit], entrants: Sequence[str], corrections: Corrections) -> list[Pair]:
    """Returns the pairs of entrants to test on the mean over columns; none where an entrant lacks samples."""
    if not all(column.runs[entrant] for column in columns for entrant in entrants):
        return []
    stacked = {
        entrant: in_order(_stacked(columns, [column.select(entrant) for column in columns])) for entrant in entrants
    }
    return [
        Pair(
            unit=key,
            first=first,
            second=second,
            first_samples=stacked[first],
            second_samples=stacked[second],
            scale=COMMON,
            correction=_correction(columns, first, second, corrections),
        )
        for first, second in combinations(entrants, 2)
    ]


def _correction(columns: Sequence[Unit], first: str, second: str, corrections: Corrections) -> PairCorrection | None:
    """Returns the corrected difference of two means, with columns as independent; None where no column has one."""
    by_column = [corrections.correction(column, first, second) for column in columns]
    used = [correction for correction in by_column if correction is not None and not correction.missing]
    if not used:
        return None
    units, parts = columns, []
    shares = np.array(weights(units)) / sum(weights(units))
    for column, correction, share in zip(columns, by_column, shares.tolist(), strict=True):
        samples, scale = [in_order(column.select(key)) for key in (first, second)], column.scale
        pair = Pair(column.key, first, second, samples[0], samples[1], scale, correction=correction)
        parts.append((share * (mapped(1.0, scale) - mapped(0.0, scale)), pair))
    judged = [(pair.judged.first_samples, pair.judged.second_samples) for _, pair in parts]
    first_judged, second_judged = (in_order(_stacked(columns, samples)) for samples in zip(*judged, strict=True))
    difference = partial(_difference_of_means, parts)
    rated, sources = sum(correction.rated for correction in used), dict.fromkeys(correction.by for correction in used)
    return PairCorrection(difference, rated, "", " and ".join(sources), (first_judged, second_judged))


def _difference_of_means(parts: Sequence[tuple[float, Pair]], confidence: float) -> Difference:
    """Returns the weighted sum of the columns' differences; p is the level at which its interval ends at 0."""

    def ends(alpha: float) -> tuple[float, float, float]:
        numbers = np.array([pair.test(level=alpha, flipped_below=0)[:3] for _, pair in parts])
        certain = np.where(np.isnan(numbers), numbers[:, :1], numbers)
        return weighted(certain.tolist(), [factor for factor, _ in parts])

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
    """Returns an entrant's observations of several columns as those of their mean, with the benchmarks' clusters."""
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
    )
