"""What a published table is made of, validated when it is read.

A cell is found by its keys: those of its row and those of its column together, such as ``{"model": "Gemma2-9B",
"method": "Vanilla", "language": "zh", "category": "norms"}``. Keys use this project's own names for languages,
categories, emotions and roles; labels are the paper's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culture_tasks.published.printed import Number, number

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
    "scope",
    "emotion",
    "role",
    "score",
    "quantity",
]
"""What cells are told apart by."""

Keys = Annotated[Mapping[Dimension, str], Field(min_length=1)]


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
        mark: What the paper prints there.
        meaning: Why there is no number.
    """

    mark: Annotated[str, Field(pattern="^[-–—]$")]
    meaning: str


class Measure(_Strict):
    """What a number measures.

    Attributes:
        name: In words.
        unit: Its unit.
        low: Lowest value that is possible; None where there is none.
        high: Highest value that is possible; None where there is none.
        higher_is_better: Whether a high value is good; None where a value in between is best.
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
        label: What the paper writes above it, spans included.
        measure: Which of the table's measures its numbers are.
        keys: What tells its cells from other columns'.
        aggregate: What it sums up, where it does: the mean or the variance of other columns.
        over: The dimension that those differ in.
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
        keys: What tells its cells from other rows'.
        cells: The numbers as printed, one a column; None where there is none.
        measure: The measure of the whole row, where it is not the columns'.
    """

    keys: Keys
    cells: tuple[str | None, ...]
    measure: str | None = None

    @property
    def name(self) -> str:
        """What it is called in one line, such as ``Gemma2-9B Aligned``; a model's size says nothing more."""
        return " ".join(text for name, text in self.keys.items() if name != "size")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with all that tells it from others.

    Attributes:
        keys: Of its row and its column.
        measure: What it measures.
        printed: The number as printed; None where there is none.
        aggregate: Whether it sums up other cells of its row.
    """

    keys: Mapping[Dimension, str]
    measure: Measure
    printed: str | None
    aggregate: Literal["mean", "variance"] | None

    @property
    def number(self) -> Number | None:
        """The number; None where there is none."""
        return None if self.printed is None else number(self.printed)


class PublishedTable(_Strict):
    """A table of results as a paper prints it.

    Attributes:
        name: What it is loaded by.
        benchmark: The benchmark that the results are of.
        paper: The paper.
        table: The table's number there.
        judge: The model that graded, as the paper names it; None where nothing is graded by a model.
        missing: What a cell without a number means; None where there is none.
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
        """Returns the number as printed in the one cell that has these keys among its own; None where there is none.

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
                raise ValueError(f"{self.name}: {dict(cell.keys)} is missing without a meaning, or there twice")
            if cell.number and not cell.measure.allows(cell.number.value):
                raise ValueError(f"{self.name}: {dict(cell.keys)} is {cell.printed}, out of range")
            seen.add(frozenset(cell.keys.items()))
