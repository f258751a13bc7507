"""What the text formats share: how a number looks, and which mark stands for which flag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from culture_tasks.report.model import FLAG_TEXT, Cell, Flag, Table

MARKS: Mapping[Flag, str] = dict(zip(FLAG_TEXT, "abcdefghijklmnopqrstuvwxyz", strict=False))
"""The letter that stands for each flag, the same in all tables."""

NOTHING = "—"
"""Stands where there is no number."""


def number(value: float, cell: Cell) -> str:
    """Returns a number with the digits that its scale shows; a minus sign is a hyphen, and there is no minus zero."""
    text = f"{value:.{cell.scale.digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def value_of(cell: Cell) -> str:
    """Returns a cell's number, or the sign for none."""
    return NOTHING if cell.value is None else number(cell.value, cell)


def interval_of(cell: Cell) -> str:
    """Returns a cell's interval, or an empty text."""
    if cell.low is None or cell.high is None:
        return ""
    return f"{number(cell.low, cell)}, {number(cell.high, cell)}"


def marks_of(cell: Cell) -> str:
    """Returns the letters of a cell's flags, in the order of the legend; a published number's row says it already."""
    return "".join(MARKS[flag] for flag in FLAG_TEXT if flag in cell.flags and flag != "published")


def is_best(cell: Cell, table: Table, at: int) -> bool:
    """Whether a cell is the best of its column, among two or more that are ranked."""
    if cell.rank != 1:
        return False
    ranked = [row.cells[at] for row in table.rows]
    return sum(each is not None and each.rank is not None for each in ranked) > 1


def legend(tables: Iterable[Table]) -> Iterator[tuple[str, str]]:
    """Yields the mark and the meaning of every flag that occurs in tables."""
    used = {flag for table in tables for row in table.rows for cell in row.cells if cell for flag in cell.flags}
    for flag, mark in MARKS.items():
        if flag in used and flag != "published":
            yield mark, FLAG_TEXT[flag]


def headers(table: Table) -> list[str]:
    """Returns the headers of a table in one line, those that columns share before their own."""
    own = [f"{column.over}: {column.label}" if column.over else column.label for column in table.columns]
    return [*table.row_headers, *own]
