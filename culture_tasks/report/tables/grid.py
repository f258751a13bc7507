"""The table that all others are made by: columns with their cells become rows, with the papers' rows below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Column, ModelRow, Number, Row, Table
from culture_tasks.report.numbers.numbers import Numbers
from culture_tasks.report.tables.published_rows import keys_of, with_papers
from culture_tasks.results.runs import Run

ALL = "all"
"""All cultures, in a column of them, or all benchmarks."""

COUNT = Scale("count", 0.0, None, better=None, digits=0)
OWN_SCALE = Scale("the score's own")


@dataclass(frozen=True, slots=True)
class Context:
    """The rows, the runs and the numbers of every table, and the options for all tables."""

    entrants: Mapping[str, ModelRow]
    runs: Mapping[str, Run]
    scores: Numbers
    published: bool
    rankable: Callable[[Number], bool]


@dataclass(frozen=True, slots=True)
class FilledColumn:
    """A column with its cells, by row, and the keys of the published column that it corresponds to."""

    column: Column
    cells: Mapping[str, Number]
    printed: Mapping[str, str] = field(default_factory=dict)


def columns_of(scale: Scale, **labels: str) -> list[Column]:
    """Returns columns on one scale, by their keys."""
    return [Column(key, label, scale) for key, label in labels.items()]


def row_of(
    texts: Iterable[str], values: Iterable[Number | float | None], columns: Sequence[Column], entrant: str | None = None
) -> Row:
    """Returns a row of any cells and numbers; a number has the scale of its column."""
    cells = (
        value if value is None or isinstance(value, Number) else Number(float(value), column.scale)
        for value, column in zip(values, columns, strict=True)
    )
    return Row(tuple(texts), tuple(cells), entrant)


def grid(
    context: Context,
    table: Table,
    columns: Sequence[FilledColumn],
    rows: Iterable[str] | None = None,
    labels: Callable[[str], tuple[str, ...]] | None = None,
    *,
    owner: Callable[[str], str] | None = None,
    papers: Sequence[str] = (),
) -> Table:
    """Fills a table with the cells of its rows and, on request, with papers' rows; empty rows are left out.

    ``rows`` are named as in the columns' cells, None being all entrants. ``labels`` gives the texts of a row, None
    being an entrant's label, and ``owner`` its entrant where rows aren't entrants: they have no ranks then. ``papers``
    are the published tables whose rows may be added below.
    """
    filled_rows: list[Row] = []
    for key in context.entrants if rows is None else rows:
        cells = tuple(column.cells.get(key) for column in columns)
        if owner is not None:  # a place among models would be misread as one among other rows
            cells = tuple(cell and replace(cell, rank=None, best=False) for cell in cells)
        texts = (context.entrants[key].label,) if labels is None else labels(key)
        if any(cell is not None for cell in cells):
            filled_rows.append(Row(texts, cells, owner(key) if owner else key))
    table = replace(table, columns=tuple(column.column for column in columns), rows=tuple(filled_rows))
    return with_papers(table, [keys_of(column.printed) for column in columns], papers if context.published else ())
