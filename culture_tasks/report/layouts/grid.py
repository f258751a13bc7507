"""What all layouts share: columns that know their cells, rows of entrants, and the papers' rows below them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from culture_tasks import published
from culture_tasks.report.benchmarks import LAYOUTS
from culture_tasks.report.model import Cell, Column, Entrant, Row, Run, Scale, Table
from culture_tasks.report.numbers import Where
from culture_tasks.report.units import Measured, ranked

SHORT: Mapping[str, str] = {"ar": "Arabic", "en": "English", "es": "Spanish", "hi": "Hindi", "ja": "Japanese"} | {
    "sw": "Swahili",
    "zh": "Chinese",
}
"""Languages in English, by code."""


CellOf = Callable[[str], Cell | None]
"""Gives the cell of a row."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every layout needs.

    Attributes:
        entrants: The rows, by key.
        runs: The runs, by key.
        rankable: Whether a cell may be ranked.
        published: Whether the papers' own rows are wanted.
    """

    entrants: Mapping[str, Entrant]
    runs: Mapping[str, Run]
    rankable: Callable[[Cell], bool]
    published: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A column of a layout.

    Attributes:
        column: What the table has there.
        cell: Gives a row's cell.
        printed: Keys of the published column that it corresponds to; empty where there is none.
        papers: Names of the published tables that have it.
    """

    column: Column
    cell: CellOf
    printed: Mapping[str, str] = field(default_factory=dict)
    papers: tuple[str, ...] = ()


def grid(
    context: Context,
    table: Table,
    places: Sequence[Place],
    entrants: Iterable[str],
    labels: Callable[[str], tuple[str, ...]],
    owner: Callable[[str], str] | None = None,
) -> Table:
    """Fills a table with the cells of its rows and, where they are wanted, with the paper's rows.

    Args:
        context: What every layout needs.
        table: The table without columns and rows.
        places: Its columns.
        entrants: Its rows: entrants, or whatever the places' cells and ``owner`` understand.
        labels: Gives a row's texts for the table's row headers.
        owner: Gives the entrant of a row, where rows aren't entrants; their cells are not ranked then.
    """
    keys = list(entrants)
    columns = [_column(place, keys, context if owner is None else None) for place in places]
    rows = [
        Row(labels(key), tuple(column.get(key) for column in columns), owner(key) if owner else key)
        for key in keys
        if any(key in column for column in columns)
    ]
    papers = dict.fromkeys(paper for place in places for paper in place.papers) if context.published else {}
    notes = [*table.notes, *(note for paper in papers for note in paper_notes(paper))]
    paper_rows = [row for paper in papers for row in _published_rows(paper, places, len(table.row_headers))]
    return replace(
        table,
        columns=tuple(place.column for place in places),
        rows=(*rows, *paper_rows),
        notes=tuple(notes),
    )


def _column(place: Place, keys: Iterable[str], context: Context | None) -> dict[str, Cell]:
    cells = {key: cell for key in keys if (cell := place.cell(key)) is not None}
    if context is None:  # a place among models would be misread as one among these rows
        return {key: replace(cell, rank=None) for key, cell in cells.items()}
    return ranked(cells, place.column.scale, context.rankable)


def _published_rows(paper: str, places: Sequence[Place], headers: int) -> Iterator[Row]:
    table = published.load(paper)
    for row in table.rows:
        found = {_as_set(column.keys): at for at, column in enumerate(table.columns)}
        cells = tuple(
            _published_cell(table, row, found[_as_set(place.printed)], place.column.scale)
            if paper in place.papers and _as_set(place.printed) in found
            else None
            for place in places
        )
        if any(cell is not None for cell in cells):
            yield Row(_published_labels(table, row, headers), cells, None, published=True)


def _as_set(keys: Mapping[Any, str]) -> frozenset[tuple[str, str]]:
    return frozenset((str(name), value) for name, value in keys.items())


def _published_labels(table: published.PublishedTable, row: published.Row, headers: int) -> tuple[str, ...]:
    judge = f"published ({table.judge})" if table.judge else "published"
    if headers == 1:
        return (f"{row.name}, {judge}",)
    if headers == 2:
        return (row.name, judge)
    first = next(iter(row.keys.values()))
    return (first, row.name.removeprefix(first).strip(), judge)


def _published_cell(table: published.PublishedTable, row: published.Row, column: int, scale: Scale) -> Cell | None:
    printed = row.cells[column]
    if printed is None:
        return None
    number = next(cell.number for cell in table.cells() if cell.keys == {**row.keys, **table.columns[column].keys})
    if number is None:
        return None
    off_scale = row.measure is not None
    unit = Scale(table.measures[row.measure].unit, digits=number.digits) if off_scale and row.measure else scale
    note = table.measures[row.measure].name if off_scale and row.measure else ""
    return Cell(number.value, replace(unit, digits=number.digits), flags=("published",), note=note)


def paper_notes(paper: str) -> Iterator[str]:
    """Yields what must stand below a published table: its source, its notes, and averages that don't add up."""
    table = published.load(paper)
    yield f"Published rows: {table.source}. They were not judged by your judge."
    yield from table.notes
    if table.missing is not None:
        yield f"{table.missing.mark} in a published row: {table.missing.meaning}"
    wrong = published.flags(table)
    if wrong:
        yield "Printed aggregates that don't follow from the printed cells: " + "; ".join(each.text for each in wrong)


def judge_of(context: Context, measured: Measured, entrant: str) -> str:
    """Returns who graded an entrant's runs of a unit."""
    judges = dict.fromkeys(
        judge.label for key in measured.unit.cells[entrant].runs for judge in context.runs[key].settings.judges
    )
    return " + ".join(judges) or "unknown"


def with_judge(context: Context, measured: Measured) -> Callable[[str], tuple[str, ...]]:
    """Returns labels of two texts: the entrant, and who graded it."""
    return lambda entrant: (context.entrants[entrant].label, judge_of(context, measured, entrant))


def scale_of(benchmark: str) -> Scale:
    """Returns the scale of a benchmark's score."""
    return LAYOUTS[benchmark].scale


def cell_in(measured: Measured, where: Where, tasks: Sequence[str] | None = None) -> CellOf:
    """Returns what gives an entrant's score in some groups and tasks of a unit."""
    return lambda entrant: measured.cell(entrant, where, tasks) if entrant in measured.runs else None
