"""The forms by which people make the data of a further culture of a benchmark: the steps of its paper.

A project folder records who did what (:class:`Entry`). A form is a function of these entries and of the group's
configuration alone.
"""

from __future__ import annotations

import math
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from culture_tasks.benchmarks.cultures import Identity
from culture_tasks.benchmarks.interface import Decoding, Prompt
from culture_tasks.errors import DataError

if TYPE_CHECKING:
    from culture_tasks.metrics.intervals import Interval

MODEL = "model:"
"""How the code of a model begins that filled in a step, such as ``model:gpt-4o``; those of people have no colon."""


# Steps, their columns and rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetColumn:
    """A field that is filled in.

    Attributes:
        name: Its name in entries and in sheets: small letters, digits and underscores.
        title: Its label on a page, in English; a group may translate it.
        kind: ``text`` is one line, ``long_text`` several; ``texts`` is a list, one a line; ``choice`` is one of
            :attr:`choices`; ``number`` is a whole one from :attr:`lowest` to :attr:`highest`; ``yes_no`` is True or
            False.
        about: What a person has to know to fill it in.
        choices: The values of a ``choice``, each with its label in English; behind a colon, the label explains itself.
        lowest: Lowest number.
        highest: Highest number.
        required: Whether it may not be left empty.
        only_if: Another column of the step and its value (as in an entry) without which this one is left empty.
        most: Most characters of a text, or entries of a list; None for any.
    """

    name: str
    title: str
    kind: Literal["text", "long_text", "texts", "choice", "number", "yes_no"] = "text"
    about: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    lowest: int = 1
    highest: int = 10
    required: bool = True
    only_if: tuple[str, object] | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetRow:
    """A unit of a step, which each of some people fills in once.

    Attributes:
        name: Its name, unique and the same for ever within the step: letters, digits, ``-``, ``_`` and ``.``.
        facts: What a person sees, as text by its label in English, in order. Never a model's name or another person's
            judgment, where these aren't what the step is about.
        image: The image that a person sees, below the project's ``images``; empty without one.
        values: What columns hold when a person opens the row, such as a draft to be rewritten.
        group: Rows of one group are shown together and assigned to the same people; empty for none.
        writer: The person whose row this is, where nobody else may fill it in; empty for anyone.
        not_for: People who may not fill it in, such as the author of what is checked.
        people: How many people have to fill it in, those who did included. More than a plan foresaw where their entries
            call for it, as for five labels without a majority.
    """

    name: str
    facts: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    writer: str = ""
    not_for: frozenset[str] = frozenset()
    people: int = 1


class Ask(NamedTuple):
    """How a model fills in a step.

    Attributes:
        prompt: Gives what the model is shown for a row. A :class:`~culture_tasks.benchmarks.interface.Picture` is the
            row's image.
        read: Gives the values of the columns that a reply states; raises ValueError, with what was expected, for a
            reply that can't be read.
        decoding: How the model generates.
        version: Name of the prompt file, with its version.
    """

    prompt: Callable[[SheetRow], Prompt]
    read: Callable[[str], Mapping[str, Any]]
    decoding: Decoding
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a form.

    Attributes:
        name: Its name on the command line: small letters and underscores.
        title: Its name for a reader.
        about: The instructions to whoever does it, in paragraphs.
        who: Who may do it, such as ``native speakers who have lived in the culture for more than 5 years``.
        source: Where the paper describes it, or that it doesn't.
        columns: What is filled in.
        rows: Gives the rows on which it is done, by the entries that there are.
        ask: How a model does it; None where only people may. A step may be for both: a model's entries are drafts.
        by_people: Whether people do it.
        labels: Gives translations of its labels that people made at another step, such as words for emotions, by the
            English label; sheets show these whatever ``labels.json`` says.
    """

    name: str
    title: str
    about: str
    who: str
    source: str
    columns: Sequence[SheetColumn]
    rows: Callable[[State], Sequence[SheetRow]]
    ask: Ask | None = None
    by_people: bool = True
    labels: Callable[[State], Mapping[str, str]] = lambda _: {}


@dataclass(frozen=True, slots=True, kw_only=True)
class FormOption:
    """A decision of the group before it begins: the paper leaves it open, or another culture needs another value.

    Attributes:
        name: Its name in the configuration.
        default: Its value where the group says nothing; its type is the type of the option (bool, int, float, str, or a
            list of str).
        about: The question that it answers, what the paper says of it, and why the default.
        choices: The values that are allowed; empty for any.
        lowest: Lowest number.
        way: The one way in which it is decided; empty for all.
    """

    name: str
    default: bool | float | str | Sequence[str]
    about: str
    choices: Sequence[str] = ()
    lowest: int = 0
    way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config(Identity):
    """The group's decisions: the file ``culture.toml`` of a project, checked.

    Attributes:
        seed: Seed of all draws.
        people: Codes of the people, each with the steps that they do; an empty list means all. No names.
        options: The values of the form's options, defaults filled in.
        card: What the group says of its data, such as licence, consent and pay, by the heading in the data card.
    """

    seed: int = 0
    people: Mapping[str, Sequence[str]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    card: Mapping[str, str] = field(default_factory=dict)

    def doers(self, step: str) -> list[str]:
        """Returns the codes of the people who do a step, in order."""
        return [person for person, steps in self.people.items() if not steps or step in steps]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The values that one person, or a model, gave to one row of a step.

    Attributes:
        person: Their code; that of a model begins with :data:`MODEL`.
        values: The values of the columns, by name; empty where the row was skipped.
        skipped: Why it was skipped; None where it wasn't. May be empty: nobody has to give a reason.
    """

    step: str
    row: str
    person: str
    values: Mapping[str, Any] = field(default_factory=dict)
    skipped: str | None = None

    @property
    def is_by_model(self) -> bool:
        """Whether a model filled it in."""
        return self.person.startswith(MODEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that a form knows of a project.

    Attributes:
        folder: The project's folder; its images lie in ``images``, tables that the group brings in ``inputs``.
        entries: The newest entry of each person for each row, by step and row, in the order in which they came in.
        data_folder: The user's data folder, where a form needs the published data; None without one.
    """

    config: Config
    folder: Path
    entries: Mapping[str, Mapping[str, Sequence[Entry]]] = field(default_factory=dict)
    data_folder: Path | None = None

    def entries_of(self, step: str, row: str) -> Sequence[Entry]:
        """Returns the entries of people for a row that they didn't skip."""
        return [entry for entry in self._all(step, row) if entry.skipped is None and not entry.is_by_model]

    def model_entries(self, step: str, row: str) -> Sequence[Entry]:
        """Returns the entries of models for a row."""
        return [entry for entry in self._all(step, row) if entry.skipped is None and entry.is_by_model]

    def skips(self, step: str, row: str) -> Sequence[Entry]:
        """Returns the entries of people who skipped a row."""
        return [entry for entry in self._all(step, row) if entry.skipped is not None and not entry.is_by_model]

    def _all(self, step: str, row: str) -> Sequence[Entry]:
        return self.entries.get(step, {}).get(row, ())

    @property
    def images(self) -> Sequence[str]:
        """The names of the project's images below ``images``, sorted."""
        folder = self.folder / "images"
        files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        return sorted(name for name in files if not name.rpartition("/")[2].startswith("."))


# The result


class DroppedRow(NamedTuple):
    """A row that isn't part of what is built, and why."""

    step: str
    row: str
    reason: str


class Figure(NamedTuple):
    """One number of a project's quality.

    Attributes:
        name: What it measures, such as ``alpha, second raters``.
        group: What it is of: ``all``, a category, a step.
        number: The number of so many rows, with its 95 % interval; where there is none, with the reason.
        printed: The paper's value, shown beside it; empty without one.
        floor: Value that it should reach; None where there is none.
    """

    name: str
    group: str
    number: Interval
    printed: str = ""
    floor: float | None = None

    @property
    def missing(self) -> str:
        """Why there is no number; empty where there is one."""
        return self.number.reason or "" if math.isnan(self.number.value) else ""

    @property
    def passes(self) -> bool | None:
        """Whether it reaches its floor; None where it has none, or no value."""
        return None if self.floor is None or math.isnan(self.number.value) else self.number.value >= self.floor


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltTables:
    """The data that a form builds of a project.

    Attributes:
        tables: The rows of each table, by its file name below ``data``, which ends in ``.json``.
        images: The files below the project's ``images`` that become ``data/images/<name>``, by that name.
        dropped: Every row that was written, drafted or brought in and isn't part of the tables, with its reason.
        counts: Numbers for the data card, in order.
        marks: Warnings for readers of every score, such as of drafts that nobody rewrote; one sentence each.
        facts: Values that the benchmark of the culture needs beside its tables; JSON.
    """

    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    images: Mapping[str, str] = field(default_factory=dict)
    dropped: Sequence[DroppedRow] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    marks: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


class NothingBuiltError(DataError):
    """The entries make no culture yet.

    Attributes:
        dropped: The rows that fall out, as far as they are known.
    """

    def __init__(self, message: str, dropped: Sequence[DroppedRow]) -> None:
        super().__init__(message)
        self.dropped = dropped


class CultureWork(ABC):
    """The usable entries of a project, and why the others aren't used.

    Attributes:
        dropped: The rows that aren't used, as far as the others have been asked for.
    """

    def __init__(self, state: State) -> None:
        self.state, self.config, self.options = state, state.config, state.config.options
        self.dropped: list[DroppedRow] = []

    def drop(self, step: str, row: str, reason: str) -> None:
        """Notes why a row isn't used."""
        self.dropped.append(DroppedRow(step, row, reason))

    def problems(self) -> Iterable[str]:
        """Returns what is wrong with what the group brought in."""
        return ()

    @abstractmethod
    def agreement(self) -> Iterable[Figure]:
        """Returns how well people agree."""

    @abstractmethod
    def tables(self) -> BuiltTables:
        """Returns the data that the entries make; raises DataError where they make none."""

    def check_drafts(self, unchanged: int, rows: int) -> None:
        """Raises DataError where too many rows are a model's drafts that nobody changed."""
        most = self.options["most_unchanged_drafts"]
        if rows and unchanged / rows > most:
            raise DataError(
                f"culture: {unchanged} of {rows} rows are drafts of a model that nobody changed, more than the share "
                f"of {most:g} that the option most_unchanged_drafts allows. Have people rewrite them, or raise the "
                "option."
            )


class CultureForm(ABC):
    """The construction of a further culture of a benchmark.

    Its texts are data: ``culture_texts.toml`` beside the module of its class. It has the paper's
    construction (``paper``), the ``ways``, the ``options`` and the ``steps`` with their columns; ``columns`` holds what
    columns of one name share. A text may name options, and the language, as slots: ``{checkers}``, ``{language}``.

    Attributes:
        work: The class of the usable entries of a project.
    """

    work: type[CultureWork]

    @cached_property
    def texts(self) -> Mapping[str, Any]:
        """The content of its file of texts."""
        package = type(self).__module__.rpartition(".")[0]
        return tomllib.loads((resources.files(package) / "culture_texts.toml").read_text("utf-8"))

    @property
    def paper(self) -> str:
        """The paper's construction, for the project's README."""
        return str(self.texts["paper"])

    @property
    def ways(self) -> Mapping[str, str]:
        """The ways that there are, each in a sentence; one with an empty name where there is only one."""
        return dict(self.texts["ways"])

    def options(self, way: str) -> Sequence[FormOption]:
        """Returns the decisions of a group before it begins."""
        options = (FormOption(**fields) for fields in self.texts["options"])
        return [option for option in options if option.way in ("", way)]

    @abstractmethod
    def steps(self, config: Config) -> Iterable[Step]:
        """Returns the steps, in order."""

    def step(
        self,
        config: Config,
        name: str,
        rows: Callable[[Any], Sequence[SheetRow]],
        *,
        text: str = "",
        ask: Ask | None = None,
        slots: Mapping[str, str] = MappingProxyType({}),
        choices: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        **fields: Any,
    ) -> Step:
        """Returns a step as the texts describe it; where a model is asked, people don't do it.

        ``rows`` gives its rows by the usable entries (:attr:`work`). Its texts are under its name, or another in
        ``text``; ``slots`` are values beside the language and the options, and ``choices`` those of columns, by name,
        that other code needs, too. ``fields`` are further ones of :class:`Step`.
        """
        texts = self.texts["steps"][text or name]
        columns = self.columns(config, texts["columns"], slots, choices)
        words = {key: self._fill(texts[key], config, slots) for key in ("title", "about", "who", "source")}
        fields = {"ask": ask, "by_people": ask is None, **words, **fields}
        return Step(name=name, columns=columns, rows=lambda state: rows(self.work(state)), **fields)

    def columns(
        self,
        config: Config,
        described: Iterable[Mapping[str, Any]],
        slots: Mapping[str, str] = MappingProxyType({}),
        choices: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> tuple[SheetColumn, ...]:
        """Returns columns as the texts describe them, with slots and choices as in :meth:`step`.

        A description may have the ``way``, or an option or slot (``needs``), without which there is no such column; its
        ``most`` may be an option; a condition on a column that isn't there is none.
        """
        columns: dict[str, SheetColumn] = {}
        slot_values = {**config.options, **slots}
        for description in described:
            fields = {**self.texts.get("columns", {}).get(description["name"], {}), **description}
            condition = fields.pop("only_if", None)
            if fields.pop("way", config.way) == config.way and slot_values.get(fields.pop("needs", ""), True):
                if condition and condition[0] in columns:
                    fields["only_if"] = tuple(condition)
                if "most" in fields:
                    fields["most"] = slot_values.get(fields["most"], fields["most"])
                fields = {"choices": choices.get(description["name"], {}), **fields}
                texts = {key: self._fill(fields.get(key, ""), config, slots) for key in ("name", "title", "about")}
                columns[description["name"]] = SheetColumn(**{**fields, **texts})
        return tuple(columns.values())

    def _fill(self, text: str, config: Config, slots: Mapping[str, str]) -> str:
        from culture_tasks.vocabulary import language

        values = {"language": language(config.language).name, **config.options, **slots}
        return re.sub(r"\{(\w+)\}", lambda slot: str(values.get(slot[1], slot[0])), text)

    def images(self, state: State) -> Mapping[str, Path]:  # noqa: ARG002 - most take none
        """Returns the images of published data on which people work, by their names below the project's ``images``."""
        return {}

    def check(self, state: State) -> Sequence[str]:
        """Returns what is wrong with what the group brought in (images, tables), each with what to do about it."""
        return list(self.work(state).problems())

    def agreement(self, state: State) -> Sequence[Figure]:
        """Returns how well people agree, beside the paper's numbers."""
        return list(self.work(state).agreement())

    def build(self, state: State) -> BuiltTables:
        """Returns the data that the entries make.

        Raises:
            NothingBuiltError: If they make none, or a threshold of the configuration isn't reached.
        """
        work = self.work(state)
        try:
            return work.tables()
        except DataError as error:
            raise NothingBuiltError(str(error), work.dropped) from None
