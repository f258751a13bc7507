"""What all tables share: scales, columns on one scale, and a table of rows of any numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Column, ModelRow, Number, Numbers, Table
from culture_tasks.results.runs import Run

ALL = "all"
"""All cultures, in a column of them, or all benchmarks."""

COUNT = Scale("count", 0.0, None, better=None, digits=0)
ALPHA = Scale("agreement", None, 1.0, better=None, digits=3)
OWN_SCALE = Scale("the score's own")

Values = Mapping[str, Number | float | None]
"""The numbers of a row by the keys of their columns; one that isn't a cell is on the scale of its column."""


@dataclass(frozen=True, slots=True)
class Context:
    """The rows, the runs and the numbers of every table, and the options for all tables."""

    entrants: Mapping[str, ModelRow]
    runs: Mapping[str, Run]
    scores: Numbers
    published: bool
    rankable: Callable[[Number], bool]


def columns_of(scale: Scale, **labels: str) -> tuple[Column, ...]:
    """Returns columns on one scale, by their keys."""
    return tuple(Column(key, label, scale) for key, label in labels.items())


def filled(table: Table, rows: Iterable[tuple[Iterable[str], Values]]) -> Table:
    """Returns a table with rows, each of its texts and its numbers; columns without a number are left out."""
    texts_by_row: dict[str, tuple[str, ...]] = {}
    cells: dict[str, dict[str, Number]] = {column.key: {} for column in table.columns}
    scales = {column.key: column.scale for column in table.columns}
    for row, (texts, values) in enumerate(rows):
        texts_by_row[str(row)] = tuple(texts)
        for key, value in values.items():
            if value is not None:
                cells[key][str(row)] = value if isinstance(value, Number) else Number(float(value), scales[key])
    columns = tuple(replace(column, cells=cells[column.key]) for column in table.columns if cells[column.key])
    return replace(table, columns=columns, rows=texts_by_row)
