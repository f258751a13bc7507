"""Gives out the sheets of a step: every row goes to as many people as it needs, evenly, and nobody gets it twice.

A person who is taken out of the configuration gives back what they haven't filled in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from culture_tasks.benchmarks.culture_forms import SheetRow, State, Step
from culture_tasks.cultures.gold import read_gold, with_gold
from culture_tasks.cultures.labels import labels_of, read_labels, write_labels
from culture_tasks.cultures.project import Project
from culture_tasks.cultures.sheet_files import SIDE, write_sheet
from culture_tasks.cultures.sheets import Sheet, digest, make_sheet, read_sheets, record
from culture_tasks.errors import SettingsError, nearest
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
    lacking = write_labels(project.folder, labels, (*labels_of([step]), *row_labels))
    folder.mkdir(parents=True, exist_ok=True)
    images = Thumbnails(project.folder / "images", side=SIDE)
    for sheet, rows in sheets_with_rows:
        write_sheet(project, step, sheet, rows, folder, labels, images)
    sheets = [sheet for sheet, _ in sheets_with_rows]
    record(project, sheets)
    return Handout(sheets, assignment.out, assignment.later, assignment.short, lacking * labels.translated)


class Assignment(NamedTuple):
    """Who gets which rows.

    Attributes:
        units: The rows of each person in their order, those of a group together.
        out: Number of places in rows that are on earlier sheets and not back yet.
        later: Number of places in rows that are left for a later call, since the sheets are full or their people
            weren't named.
        short: Rows for which there aren't enough people, with the number that is missing.
    """

    units: Mapping[str, Sequence[Sequence[SheetRow]]]
    out: int
    later: int
    short: Mapping[str, int]


def assign(
    step: Step,
    state: State,
    sheets: Sequence[Sheet] = (),
    *,
    people: Sequence[str] = (),
    most: int | None = None,
    again: bool = False,
) -> Assignment:
    """Assigns the open rows of a step to the people who do it.

    A row is open as long as fewer people have filled it in, or have it on a sheet, than it needs. The person with the
    fewest rows gets it; of several, the one that a hash of the seed puts first. All rows of a group go to the same
    people, and the order of rows is another one for each person. Of several ``people`` who get a sheet now, the others'
    shares are left for them; no sheet has more than the ``most`` rows, unless a group has; ``again`` gives people once
    more what they have on an earlier sheet. Raises SettingsError for a person who isn't known or does another step.
    """
    doers = state.config.doers(step.name)
    _check_people(step, doers, people)
    rows, now = list(step.rows(state)), set(people or doers)
    places = _Places(step, state, rows, sheets, set(doers), now if again else set())
    units: dict[str, list[SheetRow]] = {}
    for row in rows:
        units.setdefault(f"group {row.group}" if row.group else f"row {row.name}", []).append(row)
    seed = f"{state.config.seed}\n{step.name}"
    turns = {key: f"{turn:09}" for turn, key in enumerate(units)}

    def scarcity(key: str) -> tuple[int, int, str]:
        free = min(len(places.allowed(row)) - places.open[row.name] for row in units[key])
        return free, -len(units[key]), turns[key] if units[key][0].writer else digest(f"{seed}\n{key}")

    load = Counter(person for row in rows for person in places.involved(row))
    portions: dict[str, list[tuple[str, list[SheetRow]]]] = defaultdict(list)
    shares = Counter[str]()
    later = 0
    for key in sorted(units, key=scarcity):
        involved = Counter(person for row in units[key] for person in places.involved(row))
        returned = Counter(person for row in units[key] for person in places.back[row.name])
        turn = {person: digest(f"{seed}\n{key}\n{person}") for person in doers}
        for person in sorted(doers, key=lambda doer: (-returned[doer], -involved[doer], load[doer], turn[doer])):
            portion = places.take(units[key], person)
            load[person] += sum(person not in places.back[row.name] for row in portion)
            full = most is not None and shares[person] and shares[person] + len(portion) > most
            if person not in now or full:
                later += len(portion)
            elif portion:
                shares[person] += len(portion)
                portions[person].append((key, portion))
    ordered = {person: _order(portions[person], f"{seed}\n{person}", turns) for person in doers if portions[person]}
    return Assignment(ordered, sum(map(len, places.out.values())), later, places.short(rows))


class _Places:
    """How far the rows of a step are, by their names: who had, has or gets back each, and how many more it needs."""

    def __init__(
        self,
        step: Step,
        state: State,
        rows: Iterable[SheetRow],
        sheets: Iterable[Sheet],
        doers: set[str],
        again: set[str],
    ) -> None:
        entries = state.entries.get(step.name, {})
        self.doers = doers
        self.had = {
            row.name: {entry.person for entry in entries.get(row.name, ()) if not entry.is_by_model} for row in rows
        }
        holders = {name: set[str]() for name in self.had}
        for sheet in sheets:
            for sent_row in sheet.rows.values():
                if sheet.person in doers and sent_row.step == step.name and sent_row.row in self.had:
                    holders[sent_row.row] |= {sheet.person} - self.had[sent_row.row]
        self.out = {name: people - again for name, people in holders.items()}
        self.back = {name: people & again for name, people in holders.items()}
        done = {row.name: len(state.entries_of(step.name, row.name)) + len(self.out[row.name]) for row in rows}
        self.open = {row.name: row.people - done[row.name] for row in rows}

    def involved(self, row: SheetRow) -> set[str]:
        """Returns everybody who has or had a row."""
        return self.had[row.name] | self.out[row.name] | self.back[row.name]

    def allowed(self, row: SheetRow) -> set[str]:
        """Returns everybody who may get a row now."""
        people = {row.writer} & self.doers if row.writer else self.doers
        return people - row.not_for - self.had[row.name] - self.out[row.name]

    def take(self, unit: Iterable[SheetRow], person: str) -> list[SheetRow]:
        """Gives a person the rows of a unit that they may get and that need somebody."""
        rows = [row for row in unit if self.open[row.name] > 0 and person in self.allowed(row)]
        for row in rows:
            self.open[row.name] -= 1
        return rows

    def short(self, rows: Iterable[SheetRow]) -> dict[str, int]:
        """Returns the rows that lack people; a blank that its writer skipped lacks nobody."""
        lacking = (row for row in rows if self.open[row.name] > 0 and row.writer not in self.had[row.name])
        return {row.name: self.open[row.name] for row in lacking}


def _check_people(step: Step, doers: Sequence[str], people: Sequence[str]) -> None:
    if not doers:
        raise SettingsError(
            f"culture: nobody does the step {step.name!r}. Enter codes of people under [people] in culture.toml, such "
            "as p1 = []."
        )
    for person in people:
        if person not in doers:
            raise SettingsError(
                f"culture: --people {person!r}: doesn't do the step {step.name!r}.{nearest(person, doers)} Those who "
                f"do: {', '.join(doers)}."
            )


def _order(units: Iterable[tuple[str, list[SheetRow]]], seed: str, turns: Mapping[str, str]) -> list[list[SheetRow]]:
    """Orders the rows of a person by a hash; blanks of their own, and groups for one person, as the form has them."""

    def place(unit: tuple[str, list[SheetRow]]) -> str:
        key, rows = unit
        return turns[key] if rows[0].writer else digest(f"{seed}\n{key}")

    return [
        sorted(rows, key=lambda row: "" if row.writer or row.people == 1 else digest(f"{seed}\n{row.name}"))
        for _, rows in sorted(units, key=place)
    ]
