"""The folder of a project: the group's decisions (``culture.toml``) and what everybody filled in (``entries.jsonl``).

The file of entries only grows. Who has to do what, which rows fall out and what is built are computed from it and the
configuration, so nothing that came back from a person is ever lost or changed.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.culture_forms import Config, CultureForm, Entry, FormOption, SheetColumn, State, Step
from culture_tasks.benchmarks.cultures import NAME, Identity, OffersCultures, is_one_line
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.errors import DataError, nearest
from culture_tasks.vocabulary import language, place

CONFIG, ENTRIES = "culture.toml", "entries.jsonl"

_PERSON = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_TEXTS = tuple(field.name for field in fields(Identity))
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", list: "a list of texts"}


@dataclass(frozen=True)
class Project:
    """A project's folder, with its configuration checked.

    Attributes:
        form: How its data are made.
    """

    folder: Path
    config: Config
    form: CultureForm

    @classmethod
    def open(cls, folder: Path) -> Project:
        """Opens a project; raises DataError for a folder that is none, or a configuration that can't be used."""
        path = folder / CONFIG
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise DataError(
                f"{folder}: holds no {CONFIG}. Expected a project: `culture-tasks culture new` makes one."
            ) from None
        except (OSError, ValueError) as error:  # a TOMLDecodeError is a ValueError
            raise DataError(f"{path}: can't be read ({error}). Correct it there.") from None
        form = form_like(content.get("like"), f"{path}, field 'like'")
        return cls(folder, _config(content, form, path), form)

    @cached_property
    def steps(self) -> Mapping[str, Step]:
        """The steps of its form, by name, in order."""
        return {step.name: step for step in self.form.steps(self.config)}

    def step(self, name: str) -> Step:
        """Returns a step; raises DataError for a name that isn't one."""
        if name not in self.steps:
            raise DataError(
                f"{self.folder}: no step {name!r}.{nearest(name, self.steps)} Steps: {', '.join(self.steps)}."
            )
        return self.steps[name]

    def state(self, data_folder: Path | None = None, *, with_images: bool = True) -> State:
        """Returns all that is known now: the entries are read anew.

        Images of published data that the form needs are copied into the project where it lacks them, unless
        nobody looks at images.
        """
        newest: dict[str, dict[str, dict[str, Entry]]] = {}
        for entry in self.entries():
            newest.setdefault(entry.step, {}).setdefault(entry.row, {})[entry.person] = entry
        entries = {
            step: {row: list(by_person.values()) for row, by_person in rows.items()} for step, rows in newest.items()
        }
        state = State(config=self.config, folder=self.folder, entries=entries, data_folder=data_folder)
        for name, image in (self.form.images(state) if with_images else {}).items():
            target = self.folder / "images" / name
            if not target.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                unfinished = target.with_name(f".{target.name}")
                shutil.copyfile(image, unfinished)
                unfinished.replace(target)
        return state

    def entries(self) -> list[Entry]:
        """Returns all entries, the oldest first, those that were replaced included."""
        path, entries = self.folder / ENTRIES, []
        for number, content in read_objects(path):
            try:
                entries.append(Entry(**{field.name: content[field.name] for field in fields(Entry)}))
            except KeyError as error:
                raise DataError(f"{path}, line {number}: no field {error}. {_RESTORE}") from None
        return entries

    def add(self, entries: Iterable[Entry], origin: str) -> int:
        """Appends entries whose values were checked, each on disk when this returns, and returns their number.

        Their ``origin``, such as the name of a sheet, is for whoever looks into the file.
        """
        now = datetime.now(UTC).isoformat(timespec="seconds")
        contents = [{**asdict(entry), "time": now, "origin": origin} for entry in entries]
        append_objects(self.folder / ENTRIES, contents)
        return len(contents)


_RESTORE = "Restore the line from a copy of the file."


def read_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields the objects of a file that only grows, with the numbers of their lines; none without the file.

    A last line that a crash cut short is left out: it was never reported as saved.
    """
    if not path.is_file():
        return
    *lines, last = path.read_bytes().split(b"\n")
    for number, line in enumerate([*lines, last if _object(last) is not None else b""], start=1):
        if line.strip():
            if (content := _object(line)) is None:
                raise DataError(f"{path}, line {number}: not a JSON object. {_RESTORE}")
            yield number, content


def append_objects(path: Path, contents: Iterable[Mapping[str, Any]]) -> None:
    """Appends objects to a file that only grows, each a line, in place of a last line that a crash cut short."""
    with path.open("a+b") as file:
        if size := file.seek(0, 2):
            file.seek(-1, 2)
            if file.read(1) != b"\n":
                file.seek(0)
                last = file.read().rpartition(b"\n")[2]
                if _object(last) is not None:
                    file.write(b"\n")
                else:
                    file.truncate(size - len(last))
        file.write("".join(json.dumps(content, ensure_ascii=False) + "\n" for content in contents).encode("utf-8"))


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def form_like(name: object, where: str) -> CultureForm:
    """Returns the form of a benchmark; raises DataError, which begins with the place, for one that has none."""
    offers = {key: benchmark for key, benchmark in benchmarks().items() if isinstance(benchmark, OffersCultures)}
    if str(name) not in offers:
        hint = nearest(str(name), offers)
        raise DataError(f"{where}: found {name!r}. Expected one of {', '.join(offers)}.{hint}")
    return offers[str(name)].culture_form()


def _config(content: Mapping[str, Any], form: CultureForm, path: Path) -> Config:
    allowed = (*_TEXTS, "seed", "people", "options", "card")
    for name in content:
        if name not in allowed:
            raise DataError(
                f"{path}: unknown field {name!r}.{nearest(name, allowed)} Expected one of {', '.join(allowed)}."
            )
    for name in _TEXTS:
        value = content.get(name, "")
        if not isinstance(value, str) or (name != "way" and not value.strip()) or not is_one_line(value.strip()):
            raise DataError(f"{path}, field {name!r}: found {value!r}. Expected a text of one line.")
    for name, known_code, example in (("language", language, "ko or yue"), ("place", place, "KR or IN-AS")):
        try:
            known_code(content[name].strip())
        except KeyError:
            raise DataError(
                f"{path}, field {name!r}: found {content[name]!r}. Expected a code, such as {example}."
            ) from None
    name, way = content["name"], content.get("way", "")
    if not NAME.fullmatch(name):
        raise DataError(
            f"{path}, field 'name': found {name!r}. Expected small letters, digits and underscores, a letter first, "
            "such as 'korea'."
        )
    if way not in form.ways:
        ways = "; ".join(f"{key!r} ({sentence})" for key, sentence in form.ways.items())
        raise DataError(f"{path}, field 'way': found {way!r}. Expected one of {ways}.")
    seed = content.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 10**9:
        raise DataError(f"{path}, field 'seed': found {seed!r}. Expected a whole number from 0 on.")
    values = {field: content.get(field, "").strip() for field in _TEXTS}
    sections = {name: content.get(name, {}) for name in ("options", "card", "people")}
    for name, section in sections.items():
        if not isinstance(section, dict):
            raise DataError(f"{path}, field {name!r}: found {section!r:.80}. Expected a section [{name}].")
    for heading, text in sections["card"].items():
        if not isinstance(text, str):
            raise DataError(f"{path}, section [card], field {heading!r}: found {text!r}. Expected a text.")
    options = _options(sections["options"], form.options(way), path)
    config = Config(**values, seed=seed, options=options, card=sections["card"], people=sections["people"])
    _check_people(config.people, [step.name for step in form.steps(config)], path)
    return config


def _check_people(people: Mapping[str, Any], steps: Sequence[str], path: Path) -> None:
    for person, person_steps in people.items():
        place = f"{path}, section [people], field {person!r}"
        if not _PERSON.fullmatch(person):
            raise DataError(f"{place}: Expected a code of letters, digits, '.', '-' and '_', and no name of a person.")
        if not isinstance(person_steps, list):
            raise DataError(f"{place}: found {person_steps!r:.80}. Expected a list of steps, or an empty list for all.")
        for step in person_steps:
            if step not in steps:
                raise DataError(f"{place}: no step {step!r}.{nearest(str(step), steps)} Steps: {', '.join(steps)}.")


def _options(values: Mapping[str, Any], options: Sequence[FormOption], path: Path) -> dict[str, Any]:
    names = [option.name for option in options]
    for name in values:
        if name not in names:
            raise DataError(
                f"{path}, section [options]: unknown option {name!r}.{nearest(name, names)} Expected one of "
                f"{', '.join(names)}."
            )
    return {option.name: _option(option, values.get(option.name, option.default), path) for option in options}


def _option(option: FormOption, value: Any, path: Path) -> Any:
    if isinstance(option.default, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    values = value if isinstance(value, list) else [value]
    fits = type(value) is type(option.default) and (
        value is not values or all(isinstance(text, str) for text in values)
    )
    allowed = not option.choices or (fits and set(values) <= set(option.choices))
    if fits and allowed and not (isinstance(value, (int, float)) and value < option.lowest):
        return value
    expected = f"one of {', '.join(map(repr, option.choices))}" if option.choices else _KINDS[type(option.default)]
    if fits and allowed:
        expected = f"a number from {option.lowest} on"
    raise DataError(f"{path}, section [options], field {option.name!r}: found {value!r:.80}. Expected {expected}.")


def problems_with(step_columns: Iterable[SheetColumn], values: Mapping[str, Any]) -> list[str]:
    """Returns what is wrong with the values of a step's columns, each problem with its column first."""
    columns = {column.name: column for column in step_columns}
    problems = [
        f"column {name!r}: unknown.{nearest(name, columns)} Expected one of {', '.join(columns)}"
        for name in values
        if name not in columns
    ]
    for name, column in columns.items():
        value = values.get(name)
        concerns = column.only_if is None or values.get(column.only_if[0]) == column.only_if[1]
        if value is None or value in ("", []):
            if column.required and concerns:
                problems.append(f"column {name!r}: found nothing. Expected {expectation(column)}")
        elif not concerns:
            other_column, other_value = column.only_if or ("", "")
            words = ("yes" if other_value else "no") if isinstance(other_value, bool) else repr(other_value)
            problems.append(
                f"column {name!r}: found {value!r:.80}. Expected nothing where {other_column!r} isn't {words}"
            )
        elif not _fits(column, value):
            problems.append(f"column {name!r}: found {value!r:.80}. Expected {expectation(column)}")
    return problems


def _fits(column: SheetColumn, value: Any) -> bool:
    if column.kind in ("text", "long_text"):
        lines = column.kind == "long_text" or (isinstance(value, str) and "\n" not in value)
        return isinstance(value, str) and bool(value.strip()) and lines and len(value) <= (column.most or len(value))
    if column.kind == "texts":
        is_list = isinstance(value, list) and all(isinstance(text, str) and text.strip() for text in value)
        return is_list and len(value) <= (column.most or len(value))
    if column.kind == "choice":
        return isinstance(value, str) and value in column.choices
    if column.kind == "number":
        return isinstance(value, int) and not isinstance(value, bool) and column.lowest <= value <= column.highest
    return isinstance(value, bool)


def expectation(column: SheetColumn) -> str:
    """Returns what a column may hold, in words."""
    if column.kind == "choice":
        return f"one of {', '.join(column.choices)}"
    if column.kind == "number":
        return f"a whole number from {column.lowest} to {column.highest}"
    if column.kind == "yes_no":
        return "yes or no"
    if column.kind == "texts":
        return "texts, one a line" if column.most is None else f"at most {column.most} texts, one a line"
    lines = "a text" if column.kind == "long_text" else "a text of one line"
    return lines if column.most is None else f"{lines} of at most {column.most} characters"
