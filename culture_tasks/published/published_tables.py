"""Published tables: one JSON file a table, validated when it is read.

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
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
"""What distinguishes cells."""

Keys = Annotated[Mapping[Dimension, str], Field(min_length=1)]


# A sign that may stand apart, a number, then a standard deviation or a per cent sign: "- 0.10", "6.4 ± 0.4", "50%".
_PRINTED = re.compile(r"(?P<sign>[+-]? ?)(?P<value>\d+(?:\.(?P<digits>\d+))?)(?: ± (?P<deviation>\d+\.\d+)|%)?")


class Number(NamedTuple):
    """A printed number.

    Attributes:
        value: Its value; the mean of a "mean ± deviation".
        digits: Digits after the point.
        deviation: The deviation, where one is printed.
    """

    value: float
    digits: int
    deviation: float | None = None

    @property
    def half_unit(self) -> float:
        """The largest distance between the printed number and the unrounded one."""
        return float(0.5 * 10.0**-self.digits)


def number(printed: str) -> Number:
    """Reads a cell: ``4.89``, ``50%``, ``+ 0.72``, ``- 0.10`` or ``6.440 ± 0.430``.

    Raises:
        ValueError: If it has another form.
    """
    found = _PRINTED.fullmatch(printed)
    if found is None:
        raise ValueError(f"published: {printed!r} is not a number in any form that the papers print.")
    value = float(found["value"]) * (-1.0 if found["sign"].startswith("-") else 1.0)
    deviation = float(found["deviation"]) if found["deviation"] else None
    return Number(value, len(found["digits"] or ""), deviation)


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
    date: Annotated[str, Field(pattern=r"^\d{4}(-\d\d-\d\d)?$")]


class Missing(_Strict):
    """What a cell without a number means.

    Attributes:
        mark: What the paper prints instead.
        meaning: Why there is no number.
    """

    mark: Annotated[str, Field(pattern="^[-–—]$")]
    meaning: str


class Measure(_Strict):
    """What a number measures.

    Attributes:
        name: In words.
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

    def allows(self, value: float) -> bool:
        """Whether a value is within the range."""
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)


class Column(_Strict):
    """A column.

    Attributes:
        label: The heading in the paper, spanning headings included.
        measure: Which of the table's measures its numbers are.
        keys: What distinguishes its cells from those of other columns.
        aggregate: Whether it is the mean or the variance of other columns.
        over: The dimension in which those columns differ.
    """

    label: str
    measure: str
    keys: Keys
    aggregate: Literal["mean", "variance"] | None = None
    over: Dimension | None = None

    @model_validator(mode="after")
    def _complete(self) -> Column:
        if (self.aggregate is None) != (self.over is None) or (self.over is not None and self.over not in self.keys):
            raise ValueError("an aggregate and the dimension that it is over, one of the column's keys, go together")
        return self


class Row(_Strict):
    """A row.

    Attributes:
        keys: What distinguishes its cells from those of other rows.
        cells: The numbers as printed, one per column; None if there is none.
        measure: The measure of the whole row, if it differs from the columns'.
    """

    keys: Keys
    cells: tuple[str | None, ...]
    measure: str | None = None

    @property
    def name(self) -> str:
        """Its name in one line, such as ``Gemma2-9B Aligned``; a model's size is left out."""
        return " ".join(text for name, text in self.keys.items() if name != "size")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with all that distinguishes it from others.

    Attributes:
        keys: Of its row and its column.
        measure: What it measures.
        printed: The number as printed; None if there is none.
        aggregate: Whether it is the mean or the variance of other cells of its row.
    """

    keys: Mapping[Dimension, str]
    measure: Measure
    printed: str | None
    aggregate: Literal["mean", "variance"] | None

    @property
    def number(self) -> Number | None:
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
        missing: What a cell without a number means; None if every cell has one.
        notes: What a reader should know.
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
    measures: Mapping[str, Measure]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def source(self) -> str:
        """Paper, table, judge and date in one line."""
        judge = f"judge {self.judge}" if self.judge else "no judge"
        return f"{self.paper.citation}, Table {self.table}; {judge}; {self.paper.date}"

    def cells(self) -> Iterator[Cell]:
        """Yields every cell, row by row."""
        for row in self.rows:
            for column, printed in zip(self.columns, row.cells, strict=True):
                measure = self.measures[row.measure or column.measure]
                yield Cell({**row.keys, **column.keys}, measure, printed, column.aggregate)

    def printed(self, **keys: str) -> str | None:
        """Returns the number as printed in the one cell that has these keys; None if it has no number.

        Raises:
            KeyError: If no cell, or more than one, has them.
        """
        found = [cell for cell in self.cells() if keys.items() <= cell.keys.items()]
        if len(found) != 1:
            raise KeyError(f"{self.name}: {len(found)} cells have {keys}; one is needed.")
        return found[0].printed

    @model_validator(mode="after")
    def _fits(self) -> PublishedTable:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(f"{self.name}: {dict(row.keys)} has {len(row.cells)} cells for {len(self.columns)}")
            if any(row.keys.keys() & column.keys.keys() for column in self.columns):
                raise ValueError(f"{self.name}: {dict(row.keys)} shares a dimension with a column")
        unknown = {row.measure or column.measure for row in self.rows for column in self.columns} - set(self.measures)
        if unknown:
            raise ValueError(f"{self.name}: unknown measures {sorted(unknown)}")
        self._check_cells()
        return self

    def _check_cells(self) -> None:
        seen = set()
        for cell in self.cells():
            if (cell.printed is None and self.missing is None) or frozenset(cell.keys.items()) in seen:
                raise ValueError(
                    f"{self.name}: {dict(cell.keys)} has no number and no reason for that, or occurs twice"
                )
            if cell.number and not cell.measure.allows(cell.number.value):
                raise ValueError(f"{self.name}: {dict(cell.keys)} is {cell.printed}, out of range")
            seen.add(frozenset(cell.keys.items()))


@cache
def names() -> tuple[str, ...]:
    """Returns the tables' names, by paper and number: ``care_table_3``, …, ``crosscult_table_4``."""

    def place(name: str) -> tuple[str, int]:
        paper, _, table = name.partition("_table_")
        return paper, int(table)

    files = (resources.files(__package__) / "tables").iterdir()
    return tuple(sorted((file.name.removesuffix(".json") for file in files if file.name.endswith(".json")), key=place))


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
