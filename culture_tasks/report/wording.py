"""The wording of numbers, intervals and flags: the same in every format, in figures and in the terminal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Question
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE, Flag, Number, Table
from culture_tasks.text import storable

MARKS: Mapping[Flag, str] = dict(zip(FLAG_TEXT, "abcdefghijklmnopqrstuvwxyz", strict=False))
"""The letter of each flag, the same in all tables."""
P_VALUE = Scale("probability", 0.0, 1.0, better=None, digits=4)
ITEMS_NEEDED = Scale("items needed", 2.0, None, better=None, digits=0)
"""The scale of rough numbers of items that would tell two models apart."""
_ITEMS_NEEDED_LIMIT = 1_000_000
"""More items needed than this are shown as more."""
PERCENT_SIGN = "%"
"""The unit of percents in a column of other numbers: they have a percent sign."""

QUESTIONS: Mapping[Question, str] = {
    "best": "Who is best?",
    "cultures": "For which cultures is it best and worst?",
    "judges": "Can the judge be trusted?",
    "biases": "What biases are there?",
    "changes": "What makes a difference?",
    "runs": "How was it run?",
}
"""A reader's questions, in the order of the report's answers."""
FIRST_FIGURES, FIRST_TABLE = ("overview", "countries"), "summary"
"""Keys of the figures, in order, and of the table before all questions."""
NOTHING = "—"
"""Shown where there is no number."""


def number(value: float | None, scale: Scale, *, signed: bool = False) -> str:
    """Returns a number with the digits that its scale shows, or a dash for none.

    A minus sign is a hyphen, and there is no minus zero. A p-value too small for its digits isn't written as zero.
    Numbers of items needed are rounded up to two digits. Signed numbers have a plus sign too.
    """
    if value is None:
        return NOTHING
    if scale == P_VALUE and value < 10.0**-scale.digits:
        return f"< {10.0**-scale.digits:.{scale.digits}f}"
    if scale == ITEMS_NEEDED:
        unit = 10 ** max(0, len(str(int(value))) - 2)  # rounded up to two digits
        return f"> {_ITEMS_NEEDED_LIMIT:,}" if value > _ITEMS_NEEDED_LIMIT else f"{-(-int(value) // unit) * unit:,}"
    text = f"{value:{'+' if signed else ''},.{scale.digits}f}"
    text = text.replace("-", "+" if signed else "", 1) if not text.strip("+-0.") else text
    return f"{text} %" if scale.unit == PERCENT_SIGN else text


def amount(value: float | None, scale: Scale, *, signed: bool = False) -> str:
    """Returns a number with its unit, where that is a sign or a word that follows a number."""
    unit = {"percent": " %", "points of 100": " of 100", "points": " points"}.get(scale.unit, "")
    return f"{number(value, scale, signed=signed)}{unit}"


def counted(count: int, noun: str) -> str:
    """Returns a number of things: ``1 model``, ``2 models``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def p_value(p: float) -> str:
    """Returns ``p = 0.0312``, or ``p < 0.0001`` where it is smaller."""
    text = number(p, P_VALUE)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def interval(cell: Number, between: str = ", ", *, signed: bool = False) -> str:
    """Returns both ends of a cell's interval; empty without one."""
    if cell.low is None or cell.high is None:
        return ""
    return between.join(number(end, cell.scale, signed=signed) for end in (cell.low, cell.high))


def why_no_interval(cell: Number) -> str:
    """Returns ``no interval: every score is 3``, or an empty text where there is an interval, or no reason."""
    return cell.note.partition("; ")[0] if cell.low is None and cell.note.startswith("no interval") else ""


def marks_of(cell: Number) -> str:
    """Returns the letters of a cell's flags, in the order of the legend."""
    return "".join(MARKS[flag] for flag in FLAG_TEXT if flag in cell.flags)


def flag_words(flags: Sequence[Flag]) -> list[str]:
    """Returns the flags of a cell in words; the reasons not to compare it come first, in one text."""
    reasons = [short_name(flag) for flag in flags if flag in NOT_COMPARABLE]
    further = [short_name(flag) for flag in flags if flag not in NOT_COMPARABLE]
    return [f"not comparable: {', '.join(reasons)}", *further] if reasons else further


def short_name(name: str) -> str:
    """Returns a flag, a kind of problem or an option in two or three words."""
    return name.replace("_", " ")


def flags_in(tables: Iterable[Table]) -> list[Flag]:
    """Returns the flags that occur in tables, in the order of the legend."""
    columns = (column for table in tables for column in table.columns)
    used = {flag for column in columns for cell in column.cells.values() for flag in cell.flags}
    return [flag for flag in FLAG_TEXT if flag in used]


def legend(tables: Iterable[Table]) -> Iterator[tuple[str, str]]:
    """Yields the mark and the meaning of every flag that occurs in tables."""
    yield from ((MARKS[flag], FLAG_TEXT[flag]) for flag in flags_in(tables))


def headers(table: Table) -> list[str]:
    """Returns the headers of a table in one line; a shared header comes before the column's."""
    labels = [f"{column.over}: {column.label}" if column.over else column.label for column in table.columns]
    return [*table.row_headers, *labels]


class Span(NamedTuple):
    """A header of neighbouring columns, which may be empty, with the first of them, from 0, and their number."""

    title: str
    first: int
    width: int


def spans(table: Table) -> list[Span]:
    """Returns the headers that columns share, from left to right."""
    header_spans: list[Span] = []
    for title, columns in groupby(table.columns, key=lambda column: column.over):
        header_spans.append(Span(title, sum(span.width for span in header_spans), len(list(columns))))
    return header_spans


def file_name(key: str) -> str:
    """Returns a key as a name of a file: letters, digits, ``_`` and ``-`` alone, and no two keys as one name."""
    plainer = re.sub(r"[^A-Za-z0-9_-]+", "-", key)[:80]
    return plainer if plainer == key else f"{plainer}-{hashlib.sha256(storable(key).encode()).hexdigest()[:8]}"
