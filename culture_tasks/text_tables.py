"""Tables as aligned text, Markdown and CSV, in which untrusted text can't act as markup or as a formula."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from culture_tasks.plain_files import written
from culture_tasks.text import inert

if TYPE_CHECKING:
    from pathlib import Path

# Characters that Markdown, or the HTML and mathematics in it, would take for markup.
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~&$])")
# A vertical bar without a backslash before it.
_BARE_BAR = re.compile(r"(?<!\\)\|")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def plain(text: str) -> str:
    """Returns the text on one line, without control characters and marks that change the direction of writing."""
    return " ".join(printable(text.replace("\r", " ")).split())


def printable(text: str) -> str:
    """Returns the text with its lines, but without characters that act on a terminal, such as those of file names."""
    return inert(text).replace("\t", " ").replace("\r", "")


def markdown_cell(text: str) -> str:
    """Returns the text so that Markdown shows it as it is: no link, markup or HTML, and no way out of the cell."""
    return _MARKDOWN.sub(r"\\\1", plain(text))


def csv_cell(value: str | float | None) -> str | float | None:
    """Returns the value so that a spreadsheet doesn't run it: a text that begins like a formula gets an apostrophe."""
    if not isinstance(value, str):
        return value
    clean = inert(value)
    return f"'{clean}" if clean.lstrip(" \n").startswith(_FORMULA) or clean.startswith(_FORMULA) else clean


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> None:
    """Writes a CSV file in UTF-8 with a byte order mark, so that spreadsheets decode it correctly."""
    with written(path, "utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow([csv_cell(name) for name in header])
        writer.writerows([csv_cell(value) for value in row] for row in rows)


def as_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns an aligned table; East Asian characters are two columns wide."""
    lines = [[plain(cell) for cell in row] for row in [header, *rows]]
    widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = (
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)) for row in lines
    )
    return "\n".join(line.rstrip() for line in padded)


def as_markdown(header: Iterable[str], rows: Iterable[Iterable[str]], *, numbers: int = 0) -> str:
    """Returns a Markdown table of cells that are Markdown already; :func:`markdown_cell` makes one of untrusted text.

    A vertical bar that isn't escaped yet is. The last columns are numbers, which are flush right.
    """
    head, *body = [[_BARE_BAR.sub(r"\|", cell) for cell in row] for row in (header, *rows)]
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def _width(text: str) -> int:
    return sum(
        0
        if unicodedata.combining(mark) or unicodedata.category(mark) == "Cf"
        else 2
        if unicodedata.east_asian_width(mark) in "WF"
        else 1
        for mark in text
    )
