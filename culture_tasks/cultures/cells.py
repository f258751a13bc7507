"""Values in the cells of a CSV file: as they are sent, and as people and spreadsheets write them."""

from __future__ import annotations

import re
from collections.abc import Callable

from culture_tasks.benchmarks.culture_forms import SheetColumn

_TRUE, _FALSE = ("yes", "true", "1"), ("no", "false", "0")
# What a text begins like that a spreadsheet runs as a formula, or whose first apostrophe it drops.
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")


def guarded(text: str) -> str:
    """Returns a text as a cell that no spreadsheet runs: one that begins like a formula gets an apostrophe."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """Returns the text of a guarded cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell, 1) else cell


def as_cell(value: object) -> str:
    """Returns a value as text in a cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_value(column: SheetColumn, text: str, label: Callable[[str], str] = str) -> object:
    """Returns the value of a column that a cell holds; the text itself where it is none, and None where it is empty."""
    if not text:
        return None
    plain = folded(text)
    if column.kind == "texts":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if column.kind == "choice":
        names: dict[object, str] = {}
        for value, english in column.choices.items():
            for name in (label(english), english):  # a label may explain itself behind a colon
                names |= {folded(name.partition(":")[0]): value, folded(name): value}
        names |= {folded(value): value for value in column.choices}
        return text if text in column.choices else names.get(plain, text)
    if column.kind == "yes_no":
        if plain in (*_TRUE, folded(label("Yes"))):
            return True
        return False if plain in (*_FALSE, folded(label("No"))) else text
    if column.kind == "number":
        integer, _, decimals = text.replace(",", ".").partition(".")
        digits = integer.strip().removeprefix("-").isdecimal() and set(decimals.strip()) <= {"0"}
        return int(integer) if digits else text
    return text


def folded(value: object) -> object:
    """Returns a text regardless of case and white space, and any other value as it is."""
    return " ".join(value.casefold().split()) if isinstance(value, str) else value
