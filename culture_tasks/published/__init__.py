"""Results that the benchmarks' papers print, or their authors release, as data: for comparison with a user's own.

The papers' judges measured them on the papers' data. Cells are kept exactly as printed, in one JSON file per table. A
cell is found by its keys: those of its row and those of its column together, such as ``{"model": "Gemma2-9B",
"method": "Vanilla", "language": "zh", "category": "norms"}``. Keys use this project's own names for languages,
categories, emotions and roles; labels are the paper's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from culture_tasks.errors import DataError, nearest

_FOLDER = resources.files(__package__) / "tables"

# A sign, with or without a space, a number, then a standard deviation or a per cent sign: "- 0.10", "6.4 ± 0.4", "50%".
_PRINTED = re.compile(r"(?P<sign>[+-]? ?)(?P<value>\d+(?:\.(?P<digits>\d+))?)(?: ± (?P<deviation>\d+\.\d+)|%)?")


class PrintedNumber(NamedTuple):
    """A printed number: its value, or the mean of a "mean ± deviation", its digits after the point, its deviation."""

    value: float
    digits: int
    deviation: float | None = None


def number(printed: str) -> PrintedNumber:
    """Reads a cell: ``4.89``, ``50%``, ``+ 0.72``, ``- 0.10`` or ``6.440 ± 0.430``; another form is a ValueError."""
    match = _PRINTED.fullmatch(printed)
    if match is None:
        raise ValueError(f"published: {printed!r} is not a number in any form that the papers print.")
    value = float(match["value"]) * (-1.0 if match["sign"].startswith("-") else 1.0)
    deviation = float(match["deviation"]) if match["deviation"] else None
    return PrintedNumber(value, len(match["digits"] or ""), deviation)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(_Strict):
    """Where a table is from: authors and year, title, and the year or the day of the version that was read."""

    citation: str
    title: str
    date: str


class Missing(_Strict):
    """The mark that a paper prints instead of a number, and its meaning."""

    mark: str
    meaning: str


class Measure(_Strict):
    """A measure of a table."""

    name: str
    unit: str


class PublishedColumn(_Strict):
    """A column; an aggregate is of the columns that differ from it in the dimension ``over`` alone."""

    label: str  # the heading in the paper, spanning headings included
    measure: str  # which of the table's measures its numbers are
    keys: Mapping[str, str]  # of its cells
    aggregate: Literal["mean", "variance"] | None = None
    over: str | None = None


class PublishedRow(_Strict):
    """A row: its keys, its numbers as printed (None for none), and its measure if that differs from the columns'."""

    keys: Mapping[str, str]
    cells: tuple[str | None, ...]
    measure: str | None = None

    @property
    def name(self) -> str:
        """Its name in one line, such as ``Gemma2-9B Aligned``; a model's size is left out."""
        return " ".join(text for name, text in self.keys.items() if name != "size")


class PublishedTable(_Strict):
    """A table of results as a paper prints it."""

    name: str  # for :func:`load`
    benchmark: str
    paper: Paper
    table: int | str  # its number there, or a place in words where the numbers are in no table
    judge: str | None  # the model that graded, as the paper names it; None if no model grades
    missing: Missing | None  # the meaning of a cell without a number
    notes: tuple[str, ...]  # for a reader
    contradictions: tuple[str, ...] = ()  # printed aggregates that no rounding of cells can give, each recomputed
    measures: Mapping[str, Measure]  # by name
    columns: tuple[PublishedColumn, ...]  # from left to right
    rows: tuple[PublishedRow, ...]  # from top to bottom

    @property
    def place(self) -> str:
        """Where the paper or its authors have the numbers."""
        return f"Table {self.table}" if isinstance(self.table, int) else self.table

    @property
    def source(self) -> str:
        """Paper, place, judge and date in one line."""
        judge = f"judge {self.judge}" if self.judge else "no judge"
        return f"{self.paper.citation}, {self.place}; {judge}; {self.paper.date}"

    def printed(self, **keys: str) -> str | None:
        """Returns the number as printed in the one cell that has these keys (else a KeyError); None if it has none."""
        cells = [
            printed
            for row in self.rows
            for column, printed in zip(self.columns, row.cells, strict=True)
            if keys.items() <= {**row.keys, **column.keys}.items()
        ]
        if len(cells) != 1:
            raise KeyError(f"{self.name}: expected one cell with {keys}, found {len(cells)}.")
        return cells[0]


@cache
def names() -> tuple[str, ...]:
    """Returns the tables' names, by paper and number: ``care_table_3``, …, ``worldcuisines_scores``."""
    stems = (file.name.removesuffix(".json").rpartition("_") for file in _FOLDER.iterdir())
    ordered = sorted((start, int(end) if end.isdecimal() else 0, end) for start, _, end in stems)
    return tuple(f"{start}_{end}" for start, _, end in ordered)


@cache
def load(name: str) -> PublishedTable:
    """Returns a published table, such as ``cedar_table_1``; :func:`names` has all."""
    if name not in names():
        raise DataError(f"published: unknown table {name!r}.{nearest(name, names())} There are {', '.join(names())}.")
    return PublishedTable.model_validate_json((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
