"""Who fills in what: every row goes to as many people as it needs, evenly, and nobody gets it twice.

``sheets.jsonl`` records which sheets are out, so that a later call gives out only what nobody has. A person who is
taken out of the configuration gives back what they haven't filled in.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from culture_tasks.benchmarks.cultures import Column, Config, Row, State, Step
from culture_tasks.cultures.project import Project, append_objects, expected, problems_with, read_objects
from culture_tasks.data.tables import read_file
from culture_tasks.errors import DataError, SettingsError, nearest
from culture_tasks.text import storable

SHEETS = "sheets.jsonl"

GOLD = "gold:"
"""How the step of an entry begins that is of a gold row, before the name of the row's own step."""


class SheetRow(NamedTuple):
    """A row of a sheet.

    Attributes:
        step: The step of its entry.
        row: Its name; sheets call it otherwise, since a name may say who wrote the row.
        check: Hash of its name on the sheet and of what is shown.
        values: What its columns held before anybody filled them in.
    """

    step: str
    row: str
    check: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Sheet:
    """The rows that one person got at one time.

    Attributes:
        name: Its name, and that of its files: step, person, and a number.
        rows: Its rows by their names on the sheet, in their order.
    """

    name: str
    step: str
    person: str
    rows: Mapping[str, SheetRow]


def read_sheets(project: Project) -> list[Sheet]:
    """Returns the sheets that a project has given out, the oldest first."""
    path, sheets = project.folder / SHEETS, []
    for number, content in read_objects(path):
        try:
            rows = {name: SheetRow(**row) for name, row in content.pop("rows").items()}
            sheets.append(Sheet(**content, rows=rows))
        except (KeyError, TypeError, AttributeError):
            raise DataError(f"{path}, line {number}: not a sheet. Restore the line from a copy of the file.") from None
    return sheets


def record(project: Project, sheets: Iterable[Sheet]) -> None:
    """Adds sheets to the project's record."""
    contents = [
        {
            "name": sheet.name,
            "step": sheet.step,
            "person": sheet.person,
            "rows": {name: row._asdict() for name, row in sheet.rows.items()},
        }
        for sheet in sheets
    ]
    append_objects(project.folder / SHEETS, contents)


def normal(text: str) -> str:
    """Returns a text as entries hold it: composed (NFC), with one kind of line break, and no white space around it."""
    return unicodedata.normalize("NFC", storable(text)).replace("\r\n", "\n").replace("\r", "\n").strip()


# Assignment


class Assignment(NamedTuple):
    """Who gets which rows.

    Attributes:
        units: The rows of each person in their order, those of a group together.
        out: Number of places in rows that are on earlier sheets and not back yet.
        later: Number of places in rows that are left for a later call, since the sheets are full or their people
            weren't named.
        short: Rows for which there aren't enough people, with the number that is missing.
    """

    units: Mapping[str, Sequence[Sequence[Row]]]
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
    people, and the order of rows is another one for each person.

    Args:
        step: The step.
        state: The project's state.
        sheets: The sheets that are out.
        people: Those who get a sheet now; all by default. The others' shares are left for them.
        most: Most rows on a sheet; a group is never split.
        again: Whether people get what they have on an earlier sheet and haven't returned once more.

    Raises:
        SettingsError: If a person isn't known, or does another step.
    """
    doers = [person for person, own in state.config.people.items() if not own or step.name in own]
    _check_people(step, doers, people)
    rows, now = list(step.rows(state)), set(people or doers)
    standing = _standing(step, state, rows, sheets, doers, now if again else set())
    units: dict[str, list[Row]] = {}
    for row in rows:
        units.setdefault(f"group {row.group}" if row.group else f"row {row.name}", []).append(row)
    seed = f"{state.config.seed}\n{step.name}"
    turns = {key: f"{turn:09}" for turn, key in enumerate(units)}

    def scarcity(key: str) -> tuple[int, int, str]:
        free = min(len(standing.allowed(row)) - standing.places[row.name] for row in units[key])
        return free, -len(units[key]), turns[key] if units[key][0].writer else _digest(f"{seed}\n{key}")

    load = Counter(person for row in rows for person in standing.involved(row))
    given: dict[str, list[tuple[str, list[Row]]]] = defaultdict(list)
    shares = Counter[str]()
    later = 0
    for key in sorted(units, key=scarcity):
        involved = Counter(person for row in units[key] for person in standing.involved(row))
        returned = Counter(person for row in units[key] for person in standing.back[row.name])
        turn = {person: _digest(f"{seed}\n{key}\n{person}") for person in doers}
        for person in sorted(doers, key=lambda one: (-returned[one], -involved[one], load[one], turn[one])):
            mine = standing.take(units[key], person)
            load[person] += sum(person not in standing.back[row.name] for row in mine)
            full = most is not None and shares[person] and shares[person] + len(mine) > most
            if person not in now or full:
                later += len(mine)
            elif mine:
                shares[person] += len(mine)
                given[person].append((key, mine))
    ordered = {person: _ordered(given[person], f"{seed}\n{person}", turns) for person in doers if given[person]}
    return Assignment(ordered, sum(map(len, standing.out.values())), later, standing.short(rows))


@dataclass(frozen=True)
class _Standing:
    """How far the rows of a step are, by their names.

    Attributes:
        had: People who filled a row in or skipped it.
        out: People who have it on a sheet.
        back: People who have it on a sheet, and are to get it once more.
        places: How many more people it needs.
    """

    doers: Sequence[str]
    had: Mapping[str, set[str]]
    out: Mapping[str, set[str]]
    back: Mapping[str, set[str]]
    places: dict[str, int]

    def involved(self, row: Row) -> set[str]:
        """Returns everybody who has or had a row."""
        return self.had[row.name] | self.out[row.name] | self.back[row.name]

    def allowed(self, row: Row) -> set[str]:
        """Returns everybody who may get a row now."""
        own = {row.writer}.intersection(self.doers) if row.writer else set(self.doers)
        return own - row.not_for - self.had[row.name] - self.out[row.name]

    def take(self, unit: Iterable[Row], person: str) -> list[Row]:
        """Gives a person the rows of a unit that they may get and that need somebody."""
        mine = [row for row in unit if self.places[row.name] > 0 and person in self.allowed(row)]
        for row in mine:
            self.places[row.name] -= 1
        return mine

    def short(self, rows: Iterable[Row]) -> dict[str, int]:
        """Returns the rows that lack people; a blank that its writer skipped lacks nobody."""
        lacking = (row for row in rows if self.places[row.name] > 0 and row.writer not in self.had[row.name])
        return {row.name: self.places[row.name] for row in lacking}


def _standing(
    step: Step, state: State, rows: Iterable[Row], sheets: Iterable[Sheet], doers: Sequence[str], again: set[str]
) -> _Standing:
    entries = state.entries.get(step.name, {})
    had = {row.name: {one.person for one in entries.get(row.name, ()) if not one.by_model} for row in rows}
    holders = {name: set[str]() for name in had}
    for sheet in sheets:
        for each in sheet.rows.values():
            if sheet.person in doers and each.step == step.name and each.row in had:
                holders[each.row] |= {sheet.person} - had[each.row]
    out = {name: people - again for name, people in holders.items()}
    back = {name: people & again for name, people in holders.items()}
    places = {row.name: row.people - len(state.of(step.name, row.name)) - len(out[row.name]) for row in rows}
    return _Standing(doers, had, out, back, places)


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


def _ordered(units: Iterable[tuple[str, list[Row]]], seed: str, turns: Mapping[str, str]) -> list[list[Row]]:
    """Orders the rows of a person by a hash; blanks of their own, and groups for one person, as the form has them."""

    def place(unit: tuple[str, list[Row]]) -> str:
        key, rows = unit
        return turns[key] if rows[0].writer else _digest(f"{seed}\n{key}")

    return [
        sorted(rows, key=lambda row: "" if row.writer or row.people == 1 else _digest(f"{seed}\n{row.name}"))
        for _, rows in sorted(units, key=place)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


# Sheets


def name_on_sheets(config: Config, step: str, row: str) -> str:
    """Returns what sheets of a project call a row.

    No other project has this name, no spreadsheet takes it for a number, and it doesn't say where the row is from.
    """
    return f"r{_digest(f'{config.like} {config.name} {config.seed} {step} {row}')[:10]}"


def texts_of(row: Row) -> list[str]:
    """Returns what a sheet shows of a row, its image's name included."""
    return [*row.shown.values(), row.image]


def check_of(name: str, texts: Iterable[str]) -> str:
    """Returns a hash of a row's name on a sheet and of what is shown, in any order; white space doesn't count."""
    parts = sorted(_digest("".join(text.split()).lstrip("'")) for text in map(normal, texts) if text)
    return f"c{_digest(' '.join([name, *parts]))[:10]}"


def make_sheet(
    project: Project, step: Step, person: str, units: Iterable[Sequence[Row]], before: Sequence[Sheet]
) -> tuple[Sheet, dict[str, Row]]:
    """Returns the sheet of a person, and its rows by their names on it."""
    rows, shown = {}, {}
    for unit in units:
        for row in unit:
            name = name_on_sheets(project.config, step.name, row.name)
            own = f"{GOLD}{step.name}" if row.name.startswith(GOLD) else step.name
            rows[name] = SheetRow(own, row.name, check_of(name, texts_of(row)), dict(row.values))
            shown[name] = row
    number = 1 + sum(sheet.step == step.name and sheet.person == person for sheet in before)
    return Sheet(f"{step.name}-{person}-{number}", step.name, person, rows), shown


# Gold questions


class Gold(NamedTuple):
    """A row whose right values are known, by which a group sees who reads with care.

    Attributes:
        right: The right values of some columns.
    """

    row: Row
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
            name: [_known(table.where(index), columns[name], part) for part in text.split("|")]
            for name, text in line.items()
            if name in columns and text.strip()
        }
        if not right:
            raise DataError(
                f"{table.where(index)}: no right value. Expected one in a column of the step: {', '.join(columns)}."
            )
        shown = {name: text for name, text in line.items() if name not in {*columns, "image", "group"}}
        image = line.get("image", "")
        name = f"{GOLD}{_digest(json.dumps([shown, image]))[:10]}"
        gold[name] = Gold(Row(name=name, shown=shown, image=image, group=line.get("group", "")), right)
    return list(gold.values())


def _known(where: str, column: Column, text: str) -> object:
    value = read_value(column, normal(text))
    alone = Step(name="", title="", about="", who="", source="", columns=[column], rows=lambda _: ())
    if column.only_if is None and problems_with(alone, {column.name: value}):
        raise DataError(f"{where}, column {column.name!r}: found {text!r:.60}. Expected {expected(column)}.")
    return value


def with_gold(
    units: Sequence[Sequence[Row]], gold: Iterable[Gold], step: Step, person: str, state: State, out: Sequence[Sheet]
) -> list[list[Row]]:
    """Mixes the gold rows that a person hasn't had into their rows."""
    had = {name for name, entries in state.entries.get(f"{GOLD}{step.name}", {}).items() if person in _people(entries)}
    had |= {each.row for sheet in out if sheet.person == person for each in sheet.rows.values()}
    groups: dict[str, list[Row]] = {}
    for each in gold:
        if each.row.name not in had:
            groups.setdefault(each.row.group or each.row.name, []).append(each.row)
    mixed = [list(unit) for unit in units]
    for name, rows in groups.items():
        turn = int(_digest(f"{state.config.seed}\n{step.name}\n{person}\n{name}"), 16)
        mixed.insert(turn % (len(mixed) + 1), rows)
    return mixed


def _people(entries: Iterable[Any]) -> set[str]:
    return {entry.person for entry in entries}


def gold_shares(project: Project, state: State) -> list[GoldShare]:
    """Returns how many gold rows each person filled in rightly, by step; skipped ones don't count."""
    shares = []
    for step in project.steps.values():
        right, asked = Counter[str](), Counter[str]()
        for gold in read_gold(project, step):
            for entry in state.of(f"{GOLD}{step.name}", gold.row.name):
                asked[entry.person] += 1
                right[entry.person] += all(
                    any(_folded(entry.values.get(name)) == _folded(value) for value in values)
                    for name, values in gold.right.items()
                )
        shares += [GoldShare(step.name, person, right[person], asked[person]) for person in sorted(asked)]
    return shares


def _folded(value: object) -> object:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value


# Values as people write them into cells

_TRUE, _FALSE = ("yes", "true", "1"), ("no", "false", "0")


def read_value(column: Column, text: str, label: Any = str) -> object:
    """Returns the value of a column that a cell holds; the text itself where it is none, and None where it is empty.

    Args:
        column: The column.
        text: The cell, as :func:`normal` returns it.
        label: Translates the labels of options.
    """
    if not text:
        return None
    folded = _folded(text)
    if column.kind == "texts":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if column.kind == "choice":
        names: dict[object, str] = {}
        for value, own in column.choices.items():
            for name in (label(own), own):  # a label may explain itself behind a colon
                names |= {_folded(name.partition(":")[0]): value, _folded(name): value}
        names |= {_folded(value): value for value in column.choices}
        return text if text in column.choices else names.get(folded, text)
    if column.kind == "yes_no":
        if folded in (*_TRUE, _folded(label("Yes"))):
            return True
        return False if folded in (*_FALSE, _folded(label("No"))) else text
    if column.kind == "number":
        whole, _, rest = text.replace(",", ".").partition(".")
        digits = whole.strip().removeprefix("-").isdecimal() and set(rest.strip()) <= {"0"}
        return int(whole) if digits else text
    return text
