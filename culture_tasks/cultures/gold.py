"""Gold questions: rows whose right values are known, by which a group sees who reads with care."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from culture_tasks.benchmarks.culture_forms import SheetColumn, SheetRow, State, Step
from culture_tasks.cultures.cells import folded, read_value
from culture_tasks.cultures.project import Project, expectation, problems_with
from culture_tasks.cultures.sheets import GOLD, Sheet, digest, normal
from culture_tasks.data.tables import read_file
from culture_tasks.errors import DataError


class Gold(NamedTuple):
    """A row, and the right values of some of its columns."""

    row: SheetRow
    right: Mapping[str, Sequence[object]]


class GoldShare(NamedTuple):
    """How many gold rows a person filled in as they should be."""

    step: str
    person: str
    right: int
    n: int


def read_gold(project: Project, step: Step) -> list[Gold]:
    """Reads the gold rows of a step, ``inputs/gold_<step>.csv``; there are none without the file.

    Columns by the names of the step's columns hold the right values, several with ``|`` between them; an empty one
    isn't checked. ``image`` and ``group`` are those of the row, and all other columns are shown, by their labels.

    Raises:
        DataError: If the file can't be read, or a value isn't one that the column may hold.
    """
    path = project.folder / "inputs" / f"gold_{step.name}.csv"
    if not path.is_file():
        return []
    table, columns, gold = read_file(path), {column.name: column for column in step.columns}, {}
    for index, line in enumerate(table.rows):
        right = {
            name: [_right_value(table.where(index), columns[name], part) for part in text.split("|")]
            for name, text in line.items()
            if name in columns and text.strip()
        }
        if not right:
            raise DataError(
                f"{table.where(index)}: no right value. Expected one in a column of the step: {', '.join(columns)}."
            )
        facts = {name: text for name, text in line.items() if name not in {*columns, "image", "group"}}
        image = line.get("image", "")
        name = f"{GOLD}{digest(json.dumps([facts, image]))[:10]}"
        gold[name] = Gold(SheetRow(name=name, facts=facts, image=image, group=line.get("group", "")), right)
    return list(gold.values())


def _right_value(where: str, column: SheetColumn, text: str) -> object:
    value = read_value(column, normal(text))
    if column.only_if is None and problems_with([column], {column.name: value}):
        raise DataError(f"{where}, column {column.name!r}: found {text!r:.60}. Expected {expectation(column)}.")
    return value


def with_gold(
    units: Sequence[Sequence[SheetRow]],
    gold: Iterable[Gold],
    step: Step,
    person: str,
    state: State,
    out: Sequence[Sheet],
) -> list[list[SheetRow]]:
    """Mixes the gold rows that a person hasn't had into their rows."""
    filled = state.entries.get(f"{GOLD}{step.name}", {})
    had = {name for name, entries in filled.items() if any(entry.person == person for entry in entries)}
    had |= {sent_row.row for sheet in out if sheet.person == person for sent_row in sheet.rows.values()}
    groups: dict[str, list[SheetRow]] = {}
    for question in gold:
        if question.row.name not in had:
            groups.setdefault(question.row.group or question.row.name, []).append(question.row)
    mixed = [list(unit) for unit in units]
    for name, rows in groups.items():
        turn = int(digest(f"{state.config.seed}\n{step.name}\n{person}\n{name}"), 16)
        mixed.insert(turn % (len(mixed) + 1), rows)
    return mixed


def gold_shares(project: Project, state: State) -> list[GoldShare]:
    """Returns how many gold rows each person filled in rightly, by step; skipped ones don't count."""
    shares = []
    for step in project.steps.values():
        right, totals = Counter[str](), Counter[str]()
        for gold in read_gold(project, step):
            for entry in state.entries_of(f"{GOLD}{step.name}", gold.row.name):
                totals[entry.person] += 1
                right[entry.person] += all(
                    any(folded(entry.values.get(name)) == folded(value) for value in values)
                    for name, values in gold.right.items()
                )
        shares += [GoldShare(step.name, person, right[person], totals[person]) for person in sorted(totals)]
    return shares
