"""Published tables: one JSON file per table.

A cell is found by its keys: those of its row and those of its column together, such as ``{"model": "Gemma2-9B",
"method": "Vanilla", "language": "zh", "category": "norms"}``. Keys use this project's own names for languages,
categories, emotions and roles; labels are the paper's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from culture_tasks.errors import DataError, nearest

Dimension = Literal[
    "model",
    "size",
    "method",
    "prompting",
    "setting",
    "benchmark",
    "modality",
    "language",
    "category",
    "country",
    "facet",
    "scope",
    "emotion",
    "role",
    "score",
    "quantity",
]
"""Names of keys."""

# A sign, with or without a space, a number, then a standard deviation or a per cent sign: "- 0.10", "6.4 ± 0.4", "50%".
_PRINTED = re.compile(r"(?P<sign>[+-]? ?)(?P<value>\d+(?:\.(?P<digits>\d+))?)(?: ± (?P<deviation>\d+\.\d+)|%)?")


class PrintedNumber(NamedTuple):
    """A printed number.

    Attributes:
        value: Its value; the mean of a "mean ± deviation".
        digits: Digits after the point.
        deviation: The deviation, where one is printed.
    """

    value: float
    digits: int
    deviation: float | None = None


def number(printed: str) -> PrintedNumber:
    """Reads a cell: ``4.89``, ``50%``, ``+ 0.72``, ``- 0.10`` or ``6.440 ± 0.430``.

    Raises:
        ValueError: If it has another form.
    """
    found = _PRINTED.fullmatch(printed)
    if found is None:
        raise ValueError(f"published: {printed!r} is not a number in any form that the papers print.")
    value = float(found["value"]) * (-1.0 if found["sign"].startswith("-") else 1.0)
    deviation = float(found["deviation"]) if found["deviation"] else None
    return PrintedNumber(value, len(found["digits"] or ""), deviation)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(_Strict):
    """Where a table is from.

    Attributes:
        citation: Authors and year.
        title: The paper's title.
        date: Its year, or the day of the version that was read, in ISO form.
    """

    citation: str
    title: str
    date: str


class Missing(_Strict):
    """The meaning of a cell without a number.

    Attributes:
        mark: The mark that the paper prints instead.
        meaning: Why there is no number.
    """

    mark: str
    meaning: str


class Measure(_Strict):
    """A measure of a table.

    Attributes:
        name: Its name, in words.
        unit: Its unit.
        low: Lowest possible value; None if there is no bound.
        high: Highest possible value; None if there is no bound.
        higher_is_better: Whether a high value is good; None if a value in between is best.
    """

    name: str
    unit: str
    low: float | None
    high: float | None
    higher_is_better: bool | None


class PublishedColumn(_Strict):
    """A column.

    Attributes:
        label: The heading in the paper, spanning headings included.
        measure: Which of the table's measures its numbers are.
        keys: The keys of its cells.
        aggregate: Whether it is the mean or the variance of other columns.
        over: The dimension in which those columns differ.
    """

    label: str
    measure: str
    keys: Mapping[Dimension, str]
    aggregate: Literal["mean", "variance"] | None = None
    over: Dimension | None = None


class PublishedRow(_Strict):
    """A row.

    Attributes:
        keys: The keys of its cells.
        cells: The numbers as printed, one per column; None if there is none.
        measure: The measure of the whole row, if it differs from the columns'.
    """

    keys: Mapping[Dimension, str]
    cells: tuple[str | None, ...]
    measure: str | None = None

    @property
    def name(self) -> str:
        """Its name in one line, such as ``Gemma2-9B Aligned``; a model's size is left out."""
        return " ".join(text for name, text in self.keys.items() if name != "size")


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """A cell.

    Attributes:
        keys: The keys of its row and its column.
        measure: Its measure.
        printed: The number as printed; None if there is none.
    """

    keys: Mapping[Dimension, str]
    measure: Measure
    printed: str | None

    @property
    def number(self) -> PrintedNumber | None:
        """The number; None if there is none."""
        return None if self.printed is None else number(self.printed)


class PublishedTable(_Strict):
    """A table of results as a paper prints it.

    Attributes:
        name: The name for :func:`load`.
        benchmark: The benchmark that the results are of.
        paper: The paper.
        table: The table's number there.
        judge: The model that graded, as the paper names it; None if no model grades.
        missing: The meaning of a cell without a number; None if every cell has one.
        notes: Remarks for a reader.
        contradictions: Printed aggregates that no rounding of the printed cells can give, each with the recomputed one.
        measures: The measures by name.
        columns: The columns, from left to right.
        rows: The rows, from top to bottom.
    """

    name: str
    benchmark: str
    paper: Paper
    table: int
    judge: str | None
    missing: Missing | None
    notes: tuple[str, ...]
    contradictions: tuple[str, ...] = ()
    measures: Mapping[str, Measure]
    columns: tuple[PublishedColumn, ...]
    rows: tuple[PublishedRow, ...]

    @property
    def source(self) -> str:
        """Paper, table, judge and date in one line."""
        judge = f"judge {self.judge}" if self.judge else "no judge"
        return f"{self.paper.citation}, Table {self.table}; {judge}; {self.paper.date}"

    def cells(self) -> Iterator[PublishedCell]:
        """Yields every cell, row by row."""
        for row in self.rows:
            for column, printed in zip(self.columns, row.cells, strict=True):
                measure = self.measures[row.measure or column.measure]
                yield PublishedCell({**row.keys, **column.keys}, measure, printed)

    def printed(self, **keys: str) -> str | None:
        """Returns the number as printed in the one cell that has these keys; None if it has no number.

        Raises:
            KeyError: If no cell, or more than one, has them.
        """
        found = [cell for cell in self.cells() if keys.items() <= cell.keys.items()]
        if len(found) != 1:
            raise KeyError(f"{self.name}: expected one cell with {keys}, found {len(found)}.")
        return found[0].printed


@cache
def names() -> tuple[str, ...]:
    """Returns the tables' names, by paper and number: ``care_table_3``, …, ``crosscult_table_4``."""

    def place(name: str) -> tuple[str, int]:
        paper, _, table = name.partition("_table_")
        return paper, int(table)

    files = (resources.files(__package__) / "tables").iterdir()
    return tuple(sorted((file.name.removesuffix(".json") for file in files), key=place))


@cache
def load(name: str) -> PublishedTable:
    """Returns a published table.

    Args:
        name: Such as ``cedar_table_1``; :func:`names` has all.

    Raises:
        DataError: If there is no such table.
    """
    if name not in names():
        raise DataError(f"published: unknown table {name!r}.{nearest(name, names())} There are {', '.join(names())}.")
    file = resources.files(__package__) / "tables" / f"{name}.json"
    return PublishedTable.model_validate_json(file.read_text(encoding="utf-8"))


def all_tables() -> tuple[PublishedTable, ...]:
    """Returns every published table, by paper and number."""
    return tuple(load(name) for name in names())
