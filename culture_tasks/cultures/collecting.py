"""Collects returned sheets: each row is new, known, empty, skipped, in conflict or refused with a reason.

Files may come twice, partly, renamed, merged, or changed by a spreadsheet. Nothing is overwritten unless a group says
so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from culture_tasks.benchmarks.culture_forms import Entry
from culture_tasks.cultures.project import Project
from culture_tasks.cultures.returned_sheets import ReturnedRow, SheetReader

Outcome = Literal["new", "skipped", "replaced", "same", "empty", "conflict", "refused"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


class Line(NamedTuple):
    """The outcome of one row of a file, or of a file that can't be read."""

    file: str
    place: str  # the row's in the file; empty for a whole file
    step: str
    row: str
    person: str
    outcome: Outcome
    reason: str = ""
    content: str = ""


class Collection(NamedTuple):
    """The outcomes of all rows of all files, and notes on what was read differently from the file, by file."""

    lines: Sequence[Line]
    notes: Sequence[tuple[str, str]]

    def counts(self) -> dict[str, Counter[Outcome]]:
        """Returns the number of rows of each outcome, by file."""
        counts: dict[str, Counter[Outcome]] = {}
        for line in self.lines:
            counts.setdefault(line.file, Counter())[line.outcome] += 1
        return counts


def collect(
    project: Project, files: Sequence[Path], data_folder: Path | None = None, *, overwrite: bool = False
) -> Collection:
    """Reads files that came back and adds what is new to the project's entries.

    Where it may ``overwrite``, another value of the same person for the same row replaces the earlier one; of several
    in these files, the last one does.
    """
    reader = SheetReader(project, data_folder)
    returned = [row for path in files for row in reader.read(path)]
    there = {(entry.step, entry.row, entry.person): entry for entry in project.entries()}
    rivals = {} if overwrite else _rivals(returned)
    lines: list[Line] = []
    added: dict[str, list[Entry]] = {}
    for row in returned:
        before = there.get(row.key)
        outcome, reason = _outcome(row, before, rivals.get(row.key, ""), overwrite=overwrite)
        lines.append(Line(row.file, row.place, *row.key, outcome, reason, row.content))
        if outcome in ("new", "skipped", "replaced"):
            there[row.key] = row.entry
            added.setdefault(row.file, []).append(row.entry)
    for file, entries in added.items():
        project.add(entries, Path(file).name)
    return Collection(lines, list(dict.fromkeys(reader.notes)))


def _outcome(row: ReturnedRow, before: Entry | None, rival: str, *, overwrite: bool) -> tuple[Outcome, str]:
    """Returns the outcome of a row, and why."""
    if row.problem or row.empty or row.entry == before:
        return "refused" if row.problem else "empty" if row.empty else "same", row.problem
    if rival:
        return "conflict", rival
    if before is not None and not overwrite:
        content = "a skip" if before.skipped is not None else json.dumps(dict(before.values), ensure_ascii=False)
        return "conflict", f"{content:.200} is there already. --replace takes this one instead."
    return ("replaced" if before else "new" if row.skipped is None else "skipped"), ""


def _rivals(returned: Iterable[ReturnedRow]) -> dict[tuple[str, str, str], str]:
    """Returns a message for each row that is in these files with different values, by its key."""
    places: dict[tuple[str, str, str], dict[str, str]] = {}
    for row in returned:
        if not row.problem and not row.empty:
            content = json.dumps([row.values, row.skipped], sort_keys=True)
            places.setdefault(row.key, {}).setdefault(content, f"{row.file}, {row.place}")
    return {
        key: f"{' and '.join(versions.values())} differ. Remove the wrong one, or take the last one with --replace."
        for key, versions in places.items()
        if len(versions) > 1
    }
