"""How a benchmark is reported: which numbers there are, and the tables and figures that show them.

Every number of the report has an address: a unit (a task, or a group that counts as one), a statistic, and the groups
that its samples belong to. Which numbers there are follows from a benchmark's groups and metrics: splits of the score,
further scores of the records; it may add derived statistics. The report works the numbers out, ranks and tests them. A
benchmark's tables and figures are functions of these :class:`~culture_tasks.benchmarks.tables.BenchmarkNumbers`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.benchmarks.tables import BenchmarkNumbers, Figure, Table

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

Where = tuple[tuple[str, str], ...]
"""Groups that samples belong to: (field, group) pairs that must all hold."""

NO_GROUP = "(none)"
"""The group of a record that has none, such as the label of a reply that couldn't be read."""

Question = Literal["best", "cultures", "biases", "changes", "judges", "runs"]
"""A reader's questions: who is best, for which cultures it is worst, which biases there are, what makes a difference,
whether the judge can be trusted, and how it was run.
"""


@dataclass(frozen=True, eq=False)
class Groups(Collection[str]):
    """The groups of a field of the records, such as countries: a collection of their names, in the order shown."""

    names: Mapping[str, str] | Sequence[str] = ()
    """The groups, each with its label where that isn't the group itself with a capital. Others come after them."""
    places: Mapping[str, str] | Callable[[Iterable[str]], Mapping[str, str]] = field(default_factory=dict)
    """Groups that are places, with their codes (:mod:`culture_tasks.vocabulary`), or a function that gives these by the
    groups' names: the same place of several benchmarks has one row in the table of countries."""
    of: Callable[[Mapping[str, Any]], str | None] | None = None
    """Gives the group of a document; None where that is in the document under the field's name."""
    axis: str = ""  # what the groups are along the axis of a figure; empty for the field's name
    shown: bool = True  # whether the standard table and figure of the field are in the report

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, group: object) -> bool:
        return group in self.names

    @cached_property
    def codes(self) -> Mapping[str, str]:
        """The codes of the groups that are places."""
        return self.places(self) if callable(self.places) else self.places

    def name_of(self, group: str) -> str:
        """Returns a group as it is written: its label, else words with capitals."""
        label, words = self.names.get(group) if isinstance(self.names, Mapping) else None, group.replace("_", " ")
        return label or (words.title() if words.islower() else words)


def names_in(package: str, file: str) -> dict[str, str]:
    """Returns the names in a text file of a package, one a line, with what stands behind a colon there."""
    lines = (resources.files(package) / file).read_text(encoding="utf-8").splitlines()
    return {name: label.strip() for name, _, label in (line.partition(":") for line in lines)}


def groups_of(doc: Mapping[str, Any], groups: Mapping[str, Groups]) -> dict[str, str | None]:
    """Returns the groups that a document belongs to, by field."""
    return {name: doc[name] if field.of is None else field.of(doc) for name, field in groups.items()}


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts of which few differ: a number per sample, and the text of each number."""

    codes: Codes
    names: tuple[str, ...]

    def indicators(self, texts: Sequence[str]) -> Floats:
        """Returns one row per sample and one column per text, with a 1 where the sample has it."""
        table = np.array([[float(name == text) for text in texts] for name in self.names]).reshape(-1, len(texts))
        rows: Floats = table[self.codes]
        return rows


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one model that have a score, as columns with one entry per sample."""

    scores: Floats
    clusters: Codes  # numbers of the clusters that they belong to
    groups: Mapping[str, Texts]  # by field, of the fields that every answer has

    def groups_of(self, name: str) -> Texts:
        """Returns the groups of a field; :data:`NO_GROUP` where there is no such field."""
        return self.groups.get(name, Texts(np.zeros(self.scores.size, dtype=np.int32), (NO_GROUP,)))


# Which numbers there are


@dataclass(frozen=True, slots=True)
class FurtherScore:
    """A second score of samples, split and averaged as the score is."""

    name: str
    scale: Scale
    read: Callable[[Mapping[str, Any]], float | None] | None = None
    """Gives it by a sample's record, or None where the sample has none; runs of which no sample has one show nothing.
    Without it, every record has it by its name among its ``values``."""


@dataclass(frozen=True, slots=True)
class Derived:
    """A statistic that is no mean of a score."""

    name: str
    scale: Scale
    compute: Callable[[Answers], Mapping[str, Floats | float]]
    """Gives, by group of its dimension, one value for each answer, so that their mean is the number and their spread
    its sampling error (:func:`culture_tasks.metrics.means.ratio_contributions`), or the number alone where its error
    isn't known. Nothing where there is nothing to compute."""
    dimension: str = ""  # the field of those groups; empty for one number alone, under the empty group
    within: tuple[str, ...] = ()  # fields that are held fixed: each combination of their groups has its numbers
    units: Callable[[str], bool] = lambda _: True  # whether a unit, by its key, has it


@dataclass(frozen=True, slots=True)
class Cost:
    """A number of a run as a whole, which a model of ours writes into the result file under this name."""

    name: str
    scale: Scale
    of_single_requests: bool = False
    """Whether it is the paper's quantity only where requests were answered one at a time."""


@dataclass(frozen=True, slots=True)
class ScoreUnit:
    """A task or group that is measured as one number."""

    key: str
    tasks: tuple[str, ...]  # in order
    headline: bool = True  # whether it is in the summary, and not only in the benchmark's tables
    title: str = ""  # its name for readers, which the report knows


@dataclass(frozen=True, slots=True)
class TasksRun:
    """The tasks and groups of a benchmark, in order, and which of them were run."""

    tasks: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]  # each with the tasks below it
    parts: Collection[str]  # groups that are parts of other groups
    models: Sequence[Collection[str]]  # the tasks that each row of the report has results of

    @property
    def anywhere(self) -> set[str]:
        """Tasks that some model has results of."""
        return {task for tasks in self.models for task in tasks}


def groups_and_tasks(tasks_run: TasksRun) -> Iterator[ScoreUnit]:
    """Yields the groups that a model has all tasks of, but no parts of other groups, and the tasks outside of them."""
    covered: set[str] = set()
    for group, tasks in tasks_run.groups.items():
        if group not in tasks_run.parts and any(set(tasks) <= set(model_tasks) for model_tasks in tasks_run.models):
            covered.update(tasks)
            yield ScoreUnit(group, tasks)
    for task in tasks_run.tasks:
        if task in tasks_run.anywhere and task not in covered:
            yield ScoreUnit(task, (task,))


# The texts beside a row's numbers, and two numbers side by side


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The facts of a model's run that the texts of its row and its contrasts depend on."""

    row: str  # key of the model's row in the report
    label: str  # the model's name in the report
    task: str
    arguments: Mapping[str, str]  # that the harness gave to the model
    judges: str = ""  # who graded
    method: str = ""  # the insertion method as papers write it; empty for a model that inserts nothing
    timing: str = ""  # how the run was timed


Headers = Mapping[str, Callable[[RunFacts], str]]
"""The texts before a row's numbers, by header."""

MODEL: Headers = {"Model": attrgetter("label")}
WITH_JUDGE: Headers = {**MODEL, "Judge": attrgetter("judges")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastSpec:
    """Two numbers of one model that a paper sets side by side, with their paired difference on common items."""

    kind: str  # names the contrast
    key: str  # names its table and its figure
    title: str
    beside: Callable[[RunFacts, RunFacts], bool]  # whether two runs of a model give the first and the second number
    splits: tuple[tuple[str, ...], ...]
    """Fields of the groups that are set side by side, each as the splits of the score have them."""
    fixed: Where = ()  # groups that must be held fixed
    words: tuple[str, str]  # names of the two numbers in sentences, such as `asked in English`
    parts: tuple[str, str]  # labels of the two numbers
    values: Mapping[str, str]  # the quantity with its unit, by statistic
    groups: str  # in words
    rows: tuple[str, str] | None = None
    """Field whose groups have a row each, and the header of these; None for one row per model."""
    source: str = ""  # the paper's figure; empty for the benchmark

    def key_of(self, statistic: str) -> str:
        """Returns the key of the table and the figure of a statistic."""
        return self.key if statistic == "score" else f"{self.key}_{statistic}"

    @property
    def outside(self) -> set[str]:
        """Fields that are the same in all groups of a row."""
        return {*(field for field, _ in self.fixed), *([self.rows[0]] if self.rows else [])}


def in_two_languages(*, native: str, **fields: Any) -> ContrastSpec:
    """Returns the contrast of tasks that ask in English, with ``en`` in their names, and those that ask natively."""

    def beside(first: RunFacts, second: RunFacts) -> bool:
        return first.row == second.row and first.task.replace("_en", "", 1) == second.task != first.task

    words, parts = ("asked in English", f"asked in {native}"), ("English", "Native")
    return ContrastSpec(kind="language", beside=beside, words=words, parts=parts, **fields)


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """How a benchmark is reported; the defaults fit any benchmark."""

    groups: Mapping[str, Groups] = field(default_factory=dict)  # of samples, by field, as far as they are known
    splits: tuple[tuple[str, ...], ...] | None = None
    """The splits of the score: the last field is the dimension, those before it are held fixed. None splits it by each
    field of the records."""
    culture: str = ""  # the field whose groups are cultures
    further: tuple[FurtherScore, ...] = ()
    derived: tuple[Derived, ...] = ()
    costs: tuple[Cost, ...] = ()
    units: Callable[[TasksRun], Iterable[ScoreUnit]] = groups_and_tasks
    tables: Callable[[BenchmarkNumbers], Iterable[Table]] = lambda _: ()
    figures: Callable[[BenchmarkNumbers], Iterable[Figure]] = lambda _: ()
    contrasts: tuple[ContrastSpec, ...] = ()
    headers: Headers = field(default_factory=lambda: WITH_JUDGE)
    source: str = ""  # the benchmark and its paper

    def field_named(self, name: str) -> Groups:
        """Returns the groups of a field, as far as they are known."""
        return self.groups.get(name, Groups())
