"""Checks whether the averages and variances that a paper prints follow from the cells that it prints.

All printed numbers are rounded, so a recomputed one is known only within an interval. An aggregate that no rounding of
the cells can give is flagged; the table keeps what is printed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from culture_tasks.published.published_tables import Number, number

if TYPE_CHECKING:
    from culture_tasks.published.published_tables import Column, Dimension, PublishedTable, Row

_SLACK = 1e-9
"""More than floating-point sums are off by, and far less than any rounding."""


class Option(NamedTuple):
    """A way to compute the aggregate.

    Attributes:
        formula: ``mean``, ``sample variance`` (over n - 1) or ``population variance`` (over n).
        value: The aggregate of the cells as printed.
        low: Its lowest value before rounding.
        high: Its highest value before rounding.
    """

    formula: Literal["mean", "sample variance", "population variance"]
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Recomputed:
    """A printed aggregate beside those recomputed from its cells.

    Attributes:
        table: The table's name.
        keys: The keys of the aggregate's cell.
        printed: What the paper prints.
        options: The recomputed ones; two for a variance, since the papers don't say which kind it is.
    """

    table: str
    keys: Mapping[Dimension, str]
    printed: str
    options: tuple[Option, ...]

    @property
    def agrees(self) -> bool:
        """Whether one of the options, before rounding, can give the printed aggregate."""
        printed = number(self.printed)
        reach = printed.half_unit + _SLACK
        return any(low - reach <= printed.value <= high + reach for _, _, low, high in self.options)

    @property
    def text(self) -> str:
        """The printed aggregate and the recomputed ones, in one line."""
        digits = number(self.printed).digits + 1
        ways = " or ".join(
            f"{value:.{digits}f} ({formula}; {low:.{digits}f} to {high:.{digits}f})"
            for formula, value, low, high in self.options
        )
        return f"{', '.join(self.keys.values())}: printed {self.printed}, recomputed {ways}"


def recomputed(table: PublishedTable) -> tuple[Recomputed, ...]:
    """Recomputes every aggregate of a table from the cells of its row that have a number."""
    return tuple(
        Recomputed(table.name, {**row.keys, **column.keys}, printed, _options(column, parts))
        for row in table.rows
        for column, printed in zip(table.columns, row.cells, strict=True)
        if column.aggregate and printed and (parts := _parts(table, row, column))
    )


def flags(table: PublishedTable) -> tuple[Recomputed, ...]:
    """Returns the aggregates of a table that no rounding of its cells can give."""
    return tuple(aggregate for aggregate in recomputed(table) if not aggregate.agrees)


def _parts(table: PublishedTable, row: Row, aggregate: Column) -> tuple[Number, ...]:
    """The numbers of the columns that differ from the aggregate's only in the dimension that it is over."""
    own = _others(aggregate, aggregate)
    return tuple(
        number(printed)
        for column, printed in zip(table.columns, row.cells, strict=True)
        if not column.aggregate and printed and _others(column, aggregate) == own
    )


def _others(column: Column, aggregate: Column) -> dict[Dimension, str]:
    return {name: value for name, value in column.keys.items() if name != aggregate.over}


def _options(column: Column, parts: Sequence[Number]) -> tuple[Option, ...]:
    values, reach = [part.value for part in parts], max(part.half_unit for part in parts)
    if column.aggregate == "mean":
        mean = statistics.fmean(values)
        return (Option("mean", mean, mean - reach, mean + reach),)
    population = _variance(values, reach, len(values))
    return (_variance(values, reach, len(values) - 1), population) if len(values) > 1 else (population,)


def _variance(values: Sequence[float], reach: float, divisor: int) -> Option:
    """Variance with bounds: moving n values by ``reach`` at most moves the root of their squares by reach * sqrt(n)."""
    mean = statistics.fmean(values)
    length, shift = math.hypot(*(value - mean for value in values)), reach * math.sqrt(len(values))
    low, value, high = (max(0.0, length + by) ** 2 / divisor for by in (-shift, 0.0, shift))
    formula: Literal["sample variance", "population variance"] = (
        "population variance" if divisor == len(values) else "sample variance"
    )
    return Option(formula, value, low, high)
