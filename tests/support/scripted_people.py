"""People of a test who fill in the CSV files of sheets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

SKIP, DONE = {"[skip]": "x"}, {"[done]": "x"}
"""What a person answers who skips a row, or leaves a draft as it is."""


def fill_in(
    path: Path, answer: Callable[[Mapping[str, str]], Mapping[str, str] | None], copy: Path | None = None
) -> Path:
    """Fills in a CSV file of a sheet, or a copy of it, and returns the path.

    Args:
        path: The file.
        answer: Gives the cells of a row by their columns' names, or None for a row that is left as it is. It gets the
            row's texts: those that are shown by their labels, and those of the columns by their names.
        copy: Where the filled-in file is written; None means in place.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *lines = csv.reader(file)
    names = [_name(column) for column in header]
    for line in lines:
        for name, cell in (answer(dict(zip(names, line, strict=True))) or {}).items():
            line[names.index(name)] = cell
    target = copy or path
    with target.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *lines])
    return target


def _name(column: str) -> str:
    """Returns what a column is called in this module: ``[skip]``, the label of a shown text, or the column's name."""
    bracket, closed, label = column.partition("]")
    if not closed:
        return column.partition(":")[0]
    return label.strip() if bracket[1:].isdigit() else f"{bracket}]"
