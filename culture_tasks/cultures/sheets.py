"""The sheets that are out: the rows of each person, with their names on the sheet.

``sheets.jsonl`` records them, so that a later call gives out only what nobody has, and that what comes back finds its
row.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from culture_tasks.benchmarks.culture_forms import SheetRow, Step
from culture_tasks.cultures.project import Project, append_objects, read_objects
from culture_tasks.errors import DataError
from culture_tasks.text import storable

SHEETS = "sheets.jsonl"

GOLD = "gold:"
"""How the step of an entry begins that is of a gold row, before the name of the row's own step."""


@dataclass(frozen=True)
class SentRow:
    """A row of a sheet, which has another name there, since its own may say who wrote it."""

    step: str
    row: str
    check: str  # hash of its name on the sheet and of the shown texts
    values: Mapping[str, Any]  # what its columns held before anybody filled them in


@dataclass(frozen=True)
class Sheet:
    """The rows that one person got at one time, by their names on the sheet, in their order."""

    name: str  # that of its files, too: step, person, and a number
    step: str
    person: str
    rows: Mapping[str, SentRow]


def read_sheets(project: Project) -> list[Sheet]:
    """Returns the sheets that a project has given out, the oldest first."""
    path, sheets = project.folder / SHEETS, []
    for number, content in read_objects(path):
        try:
            rows = {name: SentRow(**row) for name, row in content.pop("rows").items()}
            sheets.append(Sheet(**content, rows=rows))
        except (KeyError, TypeError, AttributeError):
            raise DataError(f"{path}, line {number}: not a sheet. Restore the line from a copy of the file.") from None
    return sheets


def record(project: Project, sheets: Iterable[Sheet]) -> None:
    """Adds sheets to the project's record."""
    append_objects(project.folder / SHEETS, map(asdict, sheets))


def normal(text: str) -> str:
    """Returns a text as entries hold it: composed (NFC), with one kind of line break, and no white space around it."""
    return unicodedata.normalize("NFC", storable(text)).replace("\r\n", "\n").replace("\r", "\n").strip()


def digest(text: str) -> str:
    """Returns the SHA-256 of a text, by which draws are made."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def texts_of(row: SheetRow) -> list[str]:
    """Returns the texts that a sheet shows of a row, its image's name included."""
    return [*row.facts.values(), row.image]


def check_of(name: str, texts: Iterable[str]) -> str:
    """Returns a hash of a row's name on a sheet and of the shown texts, in any order; white space doesn't count."""
    parts = sorted(digest("".join(text.split()).lstrip("'")) for text in map(normal, texts) if text)
    return f"c{digest(' '.join([name, *parts]))[:10]}"


def make_sheet(
    project: Project, step: Step, person: str, units: Iterable[Sequence[SheetRow]], before: Sequence[Sheet]
) -> tuple[Sheet, dict[str, SheetRow]]:
    """Returns the sheet of a person, and its rows by their names on it."""
    config = project.config
    # No other project has the names, no spreadsheet takes them for numbers, and they don't say where a row is from.
    seed = f"{config.like} {config.name} {config.seed} {step.name}"
    sheet_rows = {f"r{digest(f'{seed} {row.name}')[:10]}": row for unit in units for row in unit}
    rows = {
        name: SentRow(
            step=f"{GOLD}{step.name}" if row.name.startswith(GOLD) else step.name,
            row=row.name,
            check=check_of(name, texts_of(row)),
            values=dict(row.values),
        )
        for name, row in sheet_rows.items()
    }
    number = 1 + sum(sheet.step == step.name and sheet.person == person for sheet in before)
    return Sheet(f"{step.name}-{person}-{number}", step.name, person, rows), sheet_rows
