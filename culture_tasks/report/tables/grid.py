"""Filling a table: cells in rows and columns, places in each column, and the papers' rows below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Cell, Column, Entrant, Row, Table
from culture_tasks.report.tables.published_rows import keys_of, paper_notes, published_rows
from culture_tasks.results.runs import Run

ALL = "all"
"""All cultures, in a column of them, or all benchmarks."""

COUNT = Scale("count", 0.0, None, better=None, digits=0)
OWN_SCALE = Scale("the score's own")


def cell_with(value: float | None, scale: Scale) -> Cell | None:
    """Returns a cell with a number and nothing more, or None without one."""
    return None if value is None else Cell(float(value), scale)


@dataclass(frozen=True, slots=True)
class Context:
    """The rows, the runs and the options of every table.

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
    """A column with its cells, by row, and the keys of the published column that it corresponds to."""

    column: Column
    cells: Mapping[str, Cell]
    printed: Mapping[str, str] = field(default_factory=dict)


def grid(
    context: Context,
    table: Table,
    places: Sequence[Place],
    rows: Iterable[str],
    labels: Callable[[str], tuple[str, ...]],
    *,
    owner: Callable[[str], str] | None = None,
    papers: Sequence[str] = (),
) -> Table:
    """Fills a table with the cells of its rows and, where they are wanted, with papers' rows; empty rows are left out.

    Args:
        context: The rows, the runs and the options.
        table: The table without columns and rows.
        places: Its columns.
        rows: Its rows: entrants, or any other names that the places' cells have.
        labels: Gives a row's texts for the table's row headers.
        owner: Gives the entrant of a row, where rows aren't entrants; their cells have no ranks then.
        papers: Published tables whose rows may stand below.
    """
    keys = list(rows)
    columns = [{key: place.cells[key] for key in keys if key in place.cells} for place in places]
    if owner is not None:  # a place among models would be misread as one among other rows
        columns = [{key: replace(cell, rank=None, best=False) for key, cell in some.items()} for some in columns]
    filled = [
        Row(labels(key), tuple(column.get(key) for column in columns), owner(key) if owner else key)
        for key in keys
        if any(key in column for column in columns)
    ]
    wanted = papers if context.published else ()
    printed = [(keys_of(place.printed), place.column.scale) for place in places]
    return replace(
        table,
        columns=tuple(place.column for place in places),
        rows=(*filled, *(row for paper in wanted for row in published_rows(paper, printed, len(table.row_headers)))),
        notes=(*table.notes, *(note for paper in wanted for note in paper_notes(paper))),
    )
