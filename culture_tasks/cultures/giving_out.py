"""Gives out the sheets of a step: assigns the open rows, writes the files, and records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culture_forms import State
from culture_tasks.cultures.assignment import assign
from culture_tasks.cultures.gold import read_gold, with_gold
from culture_tasks.cultures.labels import labels_of_page, labels_of_step, read_labels, write_labels
from culture_tasks.cultures.project import Project
from culture_tasks.cultures.sheet_files import SIDE, write_sheet
from culture_tasks.cultures.sheets import Sheet, make_sheet, read_sheets, record
from culture_tasks.errors import SettingsError
from culture_tasks.pages.thumbnails import Thumbnails


class Handout(NamedTuple):
    """The sheets whose files were written; ``out``, ``later`` and ``short`` are those of the assignment."""

    sheets: Sequence[Sheet]
    out: int
    later: int
    short: Mapping[str, int]
    labels: int  # how many a translated ``labels.json`` lacked; they are in it now


def give_out(
    project: Project,
    state: State,
    step_name: str,
    folder: Path,
    *,
    people: Sequence[str] = (),
    most: int | None = None,
    again: bool = False,
) -> Handout:
    """Writes the sheets of a step for everybody who has something to do; the arguments are those of ``assign``.

    Raises:
        DataError: If the step isn't one, or an image or a file of the group can't be read.
        SettingsError: If people don't do the step.
    """
    step = project.step(step_name)
    if not step.by_people:
        raise SettingsError(f"culture: the step {step_name!r} is done by a model: `culture-tasks culture draft`.")
    before = read_sheets(project)
    assignment = assign(step, state, before, people=people, most=most, again=again)
    gold = read_gold(project, step)
    sheets_with_rows = []
    for person, units in assignment.units.items():
        mixed = with_gold(units, gold, step, person, state, () if again else before)
        sheets_with_rows.append(make_sheet(project, step, person, mixed, before))
    labels = replace(read_labels(project.folder, project.config.language), overrides=step.labels(state))
    row_labels = dict.fromkeys(label for _, rows in sheets_with_rows for row in rows.values() for label in row.facts)
    lacking = write_labels(project.folder, labels, (*labels_of_page(), *labels_of_step(step), *row_labels))
    folder.mkdir(parents=True, exist_ok=True)
    images = Thumbnails(project.folder / "images", side=SIDE)
    for sheet, rows in sheets_with_rows:
        write_sheet(project, step, sheet, rows, folder, labels, images)
    sheets = [sheet for sheet, _ in sheets_with_rows]
    record(project, sheets)
    return Handout(sheets, assignment.out, assignment.later, assignment.short, lacking * labels.translated)
