"""Tables on one scale: the summary over all benchmarks, and the profile of each culture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from culture_tasks.metrics.rankings import mean_rank
from culture_tasks.report.columns import Floats
from culture_tasks.report.layouts.grid import Context, Place, grid
from culture_tasks.report.model import Cell, Column, GroupValue, Scale, Table, Unit

COMMON = Scale("points of 100", 0.0, 100.0)
"""The scale of the summary: each benchmark's own range mapped to 0-100."""

_RANK = Scale("rank", 1.0, None, better="lower")
_COUNT = Scale("count", 0.0, None, better=None, digits=0)

CULTURES: Mapping[str, Mapping[str, str]] = {
    "Chinese": {"culturalvqa": "china", "care": "zh", "cedar": "zh", "crosscult": "zh"},
    "Arabic": {"care": "ar", "cedar": "ar", "crosscult": "ar"},
    "Japanese": {"care": "ja", "cedar": "ja"},
    "American": {"culturalvqa": "usa", "cedar": "en", "crosscult": "en"},
    "Indian": {"culturalvqa": "india", "cedar": "hi"},
}
"""Cultures that two benchmarks or more have a group for, and the group in each."""


def to_common(cell: Cell) -> Cell | None:
    """Maps a number from its own range to 0-100, or returns None where the range has no ends or there is no number."""
    scale = cell.scale
    if cell.value is None or scale.low is None or scale.high is None:
        return None
    low, width = scale.low, scale.high - scale.low

    def mapped(value: float | None) -> float | None:
        if value is None:
            return None
        place = 100.0 * (value - low) / width
        return 100.0 - place if scale.better == "lower" else place

    ends = (mapped(cell.low), mapped(cell.high))
    first, last = ends if scale.better != "lower" else (ends[1], ends[0])
    return Cell(
        mapped(cell.value),
        COMMON,
        first,
        last,
        cell.n,
        cell.coverage,
        cell.flags,
        cell.runs,
        cell.where,
        note=cell.note,
    )


def summary(context: Context, units: Sequence[Unit]) -> Table:
    """Every headline score on the common scale, with the mean, the mean rank, and what is missing."""
    headline = [unit for unit in units if unit.headline]
    placed = [unit for unit in headline if unit.scale.low is not None and unit.scale.high is not None]
    cells = {unit.key: {key: to_common(cell) for key, cell in unit.cells.items()} for unit in placed}
    places = [Place(Column(unit.key, unit.title, COMMON), cells[unit.key].get) for unit in placed]
    weights = _weights(placed)
    means = {key: _mean([cells[unit.key].get(key) for unit in placed], weights, context) for key in context.entrants}
    ranks = _mean_ranks(context, placed, cells)
    places += [
        Place(Column("mean", "Mean", COMMON), means.get),
        Place(Column("mean_rank", "Mean rank", _RANK), ranks.get),
        Place(Column("missing", "Missing or not comparable", _COUNT), lambda key: _missing(cells, key, context)),
    ]
    notes = [
        "Each score's own range is mapped to 0-100. In the mean every benchmark weighs the same, and so do the columns "
        "of one benchmark; it is marked incomplete, and not ranked, where a column is missing or can't be compared.",
        "The mean rank is over the columns in which every model with a score can be compared.",
        *_left_out(headline, placed),
    ]
    table = Table(
        "summary", "Summary over benchmarks, on a common scale of 0-100", ("Model",), (), (), "", None, tuple(notes)
    )
    return grid(context, table, places, context.entrants, lambda key: (context.entrants[key].label,))


def _left_out(headline: Sequence[Unit], placed: Sequence[Unit]) -> Iterator[str]:
    names = [unit.title for unit in headline if unit not in placed]
    if names:
        yield f"Not on the common scale, since the range of their metric isn't known: {', '.join(names)}."


def _weights(units: Sequence[Unit]) -> list[float]:
    """Returns what each column counts: every benchmark the same, and its columns the same among themselves."""
    benchmarks = [unit.benchmark or unit.key for unit in units]
    columns = Counter(benchmarks)
    return [1.0 / columns[benchmark] for benchmark in benchmarks]


def _mean(cells: Sequence[Cell | None], weights: Sequence[float], context: Context) -> Cell | None:
    """Weighted mean of columns, with an interval that adds up those of the columns as independent ones."""
    pairs = zip(cells, weights, strict=True)
    there = [(cell, weight) for cell, weight in pairs if cell is not None and cell.value is not None]
    if not there:
        return None
    used = [cell for cell, _ in there]
    shares = np.array([weight for _, weight in there]) / sum(weight for _, weight in there)
    complete = len(used) == len(cells) and all(context.rankable(cell) for cell in used)
    mean = float(shares @ np.array([cell.value for cell in used], dtype=np.float64))
    below = _reach(shares, [(cell.value, cell.low) for cell in used])
    above = _reach(shares, [(cell.value, cell.high) for cell in used])
    return Cell(
        mean,
        COMMON,
        low=None if below is None else mean - below,
        high=None if above is None else mean + above,
        n=sum(cell.n for cell in used),
        flags=() if complete else ("incomplete",),
        runs=tuple(run for cell in used for run in cell.runs),
        note="" if len(used) == len(cells) else f"over {len(used)} of {len(cells)} columns",
    )


def _reach(shares: Floats, ends: Sequence[tuple[float | None, float | None]]) -> float | None:
    """Root of the sum of squared half widths, each times its share; None where a column has no interval."""
    widths = [value - end for value, end in ends if value is not None and end is not None]
    return math.hypot(*(shares * np.array(widths))) if len(widths) == len(ends) else None


def _mean_ranks(
    context: Context, placed: Sequence[Unit], cells: Mapping[str, Mapping[str, Cell | None]]
) -> dict[str, Cell]:
    keys = list(context.entrants)
    if not placed:
        return {}
    rows = [[_rankable_value(cells[unit.key].get(key), context) for unit in placed] for key in keys]
    anywhere = [at for at, row in enumerate(rows) if not np.isnan(row).all()]
    if not anywhere:
        return {}
    found = mean_rank([rows[at] for at in anywhere])
    return {
        keys[at]: Cell(each.rank, _RANK, n=each.counted, note=f"over {each.counted} of {each.columns} columns")
        for at, each in zip(anywhere, found, strict=True)
        if not math.isnan(each.rank)
    }


def _rankable_value(cell: Cell | None, context: Context) -> float:
    return cell.value if cell is not None and cell.value is not None and context.rankable(cell) else math.nan


def _missing(cells: Mapping[str, Mapping[str, Cell | None]], key: str, context: Context) -> Cell:
    names = [unit for unit, column in cells.items() if (cell := column.get(key)) is None or not context.rankable(cell)]
    return Cell(float(len(names)), _COUNT, n=len(cells), note=", ".join(names))


def cultures(context: Context, units: Mapping[str, Unit], values: Iterable[GroupValue]) -> Table:
    """One profile per culture over the benchmarks that have it, on the common scale."""
    found = {
        (value.unit, value.entrant, value.group): value.cell
        for value in values
        if value.statistic == "score" and len(value.cell.where) == 1 and units[value.unit].headline
    }
    places: list[Place] = []
    for culture, groups in CULTURES.items():
        columns = _culture_places(culture, groups, units, found)
        if len({units[key].benchmark for key in columns}) > 1:
            weights = _weights([units[key] for key in columns])
            places += [*columns.values(), _culture_mean(culture, list(columns.values()), weights, context)]
    note = (
        "Only cultures that two of the benchmarks here share. In the mean every benchmark weighs the same, and so do "
        "the columns of one benchmark."
    )
    table = Table(
        "cultures", "Cultures over benchmarks, on a common scale of 0-100", ("Model",), (), (), "", None, (note,)
    )
    return grid(context, table, places, context.entrants, lambda key: (context.entrants[key].label,))


def _culture_places(
    culture: str,
    groups: Mapping[str, str],
    units: Mapping[str, Unit],
    found: Mapping[tuple[str, str, str], Cell],
) -> dict[str, Place]:
    """Returns the columns of a culture, by unit."""
    places: dict[str, Place] = {}
    for unit in units.values():
        group = groups.get(unit.benchmark or "")
        if group is None or not any(key[0] == unit.key and key[2] == group for key in found):
            continue
        cells = {
            entrant: to_common(found[unit.key, entrant, group])
            for entrant in unit.cells
            if (unit.key, entrant, group) in found
        }
        places[unit.key] = Place(Column(f"{culture} {unit.key}", unit.title, COMMON, culture), cells.get)
    return places


def _culture_mean(culture: str, columns: Sequence[Place], weights: Sequence[float], context: Context) -> Place:
    return Place(
        Column(f"{culture} mean", "Mean", COMMON, culture),
        lambda entrant: _mean([place.cell(entrant) for place in columns], weights, context),
    )
