"""How a benchmark is reported, as data: which numbers there are, and which of them its tables and figures show.

Every number of the report is found by an address: a unit (a task, or a group that counts as one), a model, a statistic,
and where: the groups that its samples belong to. A benchmark says which addresses there are (splits of the score,
further scores of the record, derived statistics), and its tables, figures and contrasts name addresses. The report
works the numbers out, ranks and tests them, and draws them; it knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

Where = tuple[tuple[str, str], ...]
"""Groups that samples belong to: (field, group) pairs that must all hold."""

NO_GROUP = "(none)"
"""Stands for a group that a record says it has none of, such as the label of a reply that couldn't be read."""

Question = Literal["best", "cultures", "biases", "changes", "judges", "papers", "runs"]
"""What a reader asks, in the order of the report: who is best, for which cultures it is worst, what biases there are,
what makes a difference, whether the judge can be trusted, what the papers print, and how it was run.
"""

CULTURES = ("Chinese", "Arabic", "Japanese", "American", "Indian")
"""Cultures that several benchmarks have groups of, in the order of their columns; others come after them."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field that samples are grouped by.

    Attributes:
        name: Its name in the records.
        order: Its groups in the order in which they are shown; others come after them.
        names: Groups as figures and sentences write them, where that isn't the group itself with a capital.
        cultures: Groups that are cultures which other benchmarks have too, and the name that all of them share.
    """

    name: str
    order: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    cultures: Mapping[str, str] = field(default_factory=dict)

    def name_of(self, group: str) -> str:
        """Returns a group as it is written: as its benchmark says, else words with capitals."""
        words = group.replace("_", " ")
        return self.names.get(group) or (words.title() if words.islower() else words)


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts of which few differ.

    Attributes:
        codes: One number a sample.
        names: The texts that the numbers stand for.
    """

    codes: Codes
    names: tuple[str, ...]

    def equals(self, name: str) -> Mask:
        """Returns which samples have this text."""
        if name not in self.names:
            return np.zeros(self.codes.size, dtype=np.bool_)
        found: Mask = self.codes == self.names.index(name)
        return found

    def present(self) -> list[str]:
        """Returns the texts that occur, in the order in which they first came."""
        counts = np.bincount(self.codes, minlength=len(self.names))
        return [name for name, count in zip(self.names, counts, strict=True) if count]

    def indicators(self, known: Sequence[str]) -> Floats:
        """Returns one row a sample, with a 1 at its text's place among the known ones."""
        table = np.array([[float(name == each) for each in known] for name in self.names]).reshape(-1, len(known))
        rows: Floats = table[self.codes]
        return rows

    def only(self, mask: Mask) -> Texts:
        """Returns the texts of some of the samples."""
        return Texts(self.codes[mask], self.names)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one model that have a score, as columns with one entry a sample.

    Attributes:
        scores: The score.
        clusters: What it shares with others, numbered.
        groups: The group, by field, of the fields that every answer has.
    """

    scores: Floats
    clusters: Codes
    groups: Mapping[str, Texts]

    def of_field(self, name: str) -> Texts:
        """Returns the groups of a field; :data:`NO_GROUP` where there is no such field."""
        return self.groups.get(name, Texts(np.zeros(self.scores.size, dtype=np.int32), (NO_GROUP,)))

    def only(self, mask: Mask) -> Answers:
        """Returns some of the answers."""
        groups = {field: texts.only(mask) for field, texts in self.groups.items()}
        return Answers(self.scores[mask], self.clusters[mask], groups)


@dataclass(frozen=True, slots=True)
class FurtherScore:
    """A second score of samples, split and averaged as the score is.

    Attributes:
        name: Its name.
        scale: Its scale.
        read: Gives it by a sample's record, or None where the sample has none; runs of which no sample has one show
            nothing. Without it, every record has it by its name among its ``values``.
        is_share: Whether every sample's is one end of the scale or the other, so that a mean of them is a share.
    """

    name: str
    scale: Scale
    read: Callable[[Mapping[str, Any]], float | None] | None = None
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class Derived:
    """A statistic that is no mean of a score.

    Attributes:
        name: Its name.
        scale: Its scale.
        compute: Gives, by group of its dimension, one value for each answer, so that their mean is the number and their
            spread its sampling error (:func:`culture_tasks.metrics.means.ratio_contributions`), or the number alone
            where its error isn't known. Nothing where there is nothing to compute.
        dimension: What those groups are; empty for one number alone, under the empty group.
        within: What is held fixed; each combination of groups of these fields has numbers of its own.
        units: Whether a unit, by its key, has it.
        of: What the answers have as their scores: the score itself, or a further score.
    """

    name: str
    scale: Scale
    compute: Callable[[Answers], Mapping[str, Floats | float]]
    dimension: str = ""
    within: tuple[str, ...] = ()
    units: Callable[[str], bool] = lambda _: True
    of: str = "score"


@dataclass(frozen=True, slots=True)
class Cost:
    """A number of a run as a whole, which a model of ours writes into the result file.

    Attributes:
        name: Its name there (:class:`culture_tasks.harness.model_costs.ModelCosts`).
        scale: Its scale.
        of_single_requests: Whether it is the paper's quantity only where requests were answered one at a time.
    """

    name: str
    scale: Scale
    of_single_requests: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """The address of numbers, one for each model.

    Attributes:
        unit: Key of the unit.
        statistic: ``score``, or the name of a further score, a derived statistic or a cost.
        where: Groups of the samples; the last one is the statistic's own group where it has a dimension.
    """

    unit: str
    statistic: str = "score"
    where: Where = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A column of a table.

    Attributes:
        key: Names it within its table.
        label: Its header.
        at: The numbers that it shows, where the rows are models; else the rows say.
        over: Header that it shares with its neighbours; may be empty.
        printed: Keys of the column of published tables that it corresponds to; empty where there is none.
        sums_up: Whether it sums up the columns before it: the last such one stays in sight where a table is wide.
    """

    key: str
    label: str
    at: At | None = None
    over: str = ""
    printed: Mapping[str, str] = field(default_factory=dict)
    sums_up: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One of several rows of a model.

    Attributes:
        label: Its text.
        at: The numbers that it shows, by column.
    """

    label: str
    at: Mapping[str, At]


Header = Literal["Model", "Judge", "Base model", "Method", "Measured"]
"""A text before a row's numbers: the model, who graded, the model without its method, that method, how it was timed."""


@dataclass(frozen=True, slots=True)
class MethodArgument:
    """The argument of a model that says which method was applied to it.

    Attributes:
        name: The argument.
        labels: How tables write its values, as the paper does; an absent argument is the empty text.
    """

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableOf:
    """A table of a benchmark: which numbers it shows, and where.

    Attributes:
        key: Names it within the report.
        title: What it shows.
        source: The paper's table or section in whose layout it is.
        columns: Its columns.
        headers: The texts of each row.
        lines: Rows that every model has; empty for one row a model.
        line_header: Header of the lines' texts.
        each_model: Whether every model has a table of its own, named by ``{model}`` in the title, with the lines alone.
        notes: What stands below it.
        papers: Published tables whose rows may stand below the user's.
        question: What it answers.
    """

    key: str
    title: str
    source: str
    columns: tuple[Shown, ...]
    headers: tuple[Header, ...] = ("Model", "Judge")
    lines: tuple[Line, ...] = ()
    line_header: str = ""
    each_model: bool = False
    notes: tuple[str, ...] = ()
    papers: tuple[str, ...] = ()
    question: Question = "cultures"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a number of a figure belongs to, as it is written there.

    Attributes:
        unit: Key of the unit; not written as it is.
        title: Title of the unit.
        model: Name of the model.
        dimension: What the groups are; not written as it is.
        group: The group.
        held: What else is held fixed, by field.
    """

    unit: str
    title: str
    model: str
    dimension: str
    group: str
    held: Mapping[str, str]


Naming = Callable[[Drawn], str]
"""Gives the title of a number's panel, the label of its series or the name of its group."""

Look = Literal["bars", "points", "radar", "heat", "lines"]


def unit_and_held(at: Drawn) -> str:
    """Returns the unit's title, with what is held fixed."""
    return " · ".join((at.title, *at.held.values()))


@dataclass(frozen=True, slots=True)
class FigureOf:
    """A figure of a benchmark: which of its numbers are drawn, and how.

    Attributes:
        key: Names the figure and its files.
        title: What it shows.
        source: The paper's figure.
        kind: How it is drawn.
        dimensions: What the numbers' groups are.
        groups: What stands along the axis, in words.
        statistic: Which numbers.
        units: Whether the numbers of a unit, by its key, are drawn.
        whole: Gives the groups that the whole score of a unit stands for, or None: such scores are drawn in place of
            those of groups.
        fixed: What must be held fixed beside the group.
        free: Fields that may be held fixed beside the group, at any value.
        series: What the series are, in words.
        panel: Gives the title of a number's panel.
        line: Gives the label of its series.
        group: Gives the name of its group.
        along: Fields whose order the groups have; empty for the dimensions.
        value: What the numbers are, with their unit; empty for the name of the statistic.
        question: What it answers.
    """

    key: str
    title: str
    source: str
    kind: Look
    dimensions: tuple[str, ...]
    groups: str
    statistic: str = "score"
    units: Callable[[str], bool] = lambda _: True
    whole: Callable[[str], Where | None] | None = None
    fixed: Where = ()
    free: tuple[str, ...] = ()
    series: str = "model"
    panel: Naming = unit_and_held
    line: Naming = lambda at: at.model
    group: Naming = lambda at: at.group
    along: tuple[str, ...] = ()
    value: str = ""
    question: Question = "cultures"


@dataclass(frozen=True, slots=True)
class OtherTask:
    """The first number is of the same model on another task.

    Attributes:
        of: Gives the task of the first number by that of the second; None where there is none.
    """

    of: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class OtherArgument:
    """The first number is of the same model and task, without one of the model's arguments.

    Attributes:
        name: The argument.
        without: Values that leave the model as it is; an absent argument is the empty text.
    """

    name: str
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContrastTable:
    """A table of contrasts: the first number, the second and their difference in each group.

    Attributes:
        key: Names it within the report.
        title: What it shows.
        statistic: Which numbers.
        groups: The groups with their labels; a group is what is held beside the fixed groups and the rows' field, and
            the empty one is all of them together.
        parts: Labels of the first and the second number.
        headers: The texts of each row.
        note: What stands below it.
        rows: Field whose groups are rows of their own, its header, and the labels of the groups; None for one row a
            model.
    """

    key: str
    title: str
    groups: Mapping[Where, str]
    parts: tuple[str, str]
    headers: tuple[Header, ...]
    note: str
    statistic: str = "score"
    rows: tuple[str, str, Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True)
class ContrastFigure:
    """A figure of contrasts: two bars in each group, and their difference.

    Attributes:
        key: Names the figure and its files.
        title: What it shows.
        dimensions: What the groups are.
        groups: The same, in words.
        series: What the two numbers differ in.
        parts: Labels of the first and the second number.
        statistic: Which numbers.
        panel: Gives the title of a number's panel.
        value: What the numbers are, with their unit; empty for the name of the statistic.
    """

    key: str
    title: str
    dimensions: tuple[str, ...]
    groups: str
    series: str
    parts: tuple[str, str]
    statistic: str = "score"
    panel: Naming = lambda at: at.model
    value: str = ""


@dataclass(frozen=True, slots=True)
class ContrastOf:
    """Two numbers of one model that a paper sets side by side, and their paired difference on common items.

    Attributes:
        kind: Names the contrast.
        source: The paper's figure.
        first: Where the first number is found.
        splits: Fields of the groups that are set side by side, each as the splits of the score have them.
        words: What a sentence calls the first and the second number, such as ``asked in English``.
        fixed: What must be held fixed.
        units: Whether the second number may be of a unit, by its key.
        tables: Its tables.
        figures: Its figures.
    """

    kind: str
    source: str
    first: OtherTask | OtherArgument
    splits: tuple[tuple[str, ...], ...]
    words: tuple[str, str]
    fixed: Where = ()
    units: Callable[[str], bool] = lambda _: True
    tables: tuple[ContrastTable, ...] = ()
    figures: tuple[ContrastFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitOf:
    """What is measured as one number.

    Attributes:
        key: The task or group.
        tasks: Its tasks, in order.
        headline: Whether it stands in the summary, and not only in the benchmark's own tables.
    """

    key: str
    tasks: tuple[str, ...]
    headline: bool = True


@dataclass(frozen=True, slots=True)
class Ran:
    """What of a benchmark was run.

    Attributes:
        tasks: The benchmark's tasks, in order.
        groups: Its groups, in order, each with the tasks below it.
        parts: Groups that are parts of other groups.
        models: The tasks that each row of the report has results of.
    """

    tasks: tuple[str, ...]
    groups: Mapping[str, tuple[str, ...]]
    parts: Collection[str]
    models: Sequence[Collection[str]]

    @property
    def anywhere(self) -> set[str]:
        """Tasks that some model has results of."""
        return {task for tasks in self.models for task in tasks}


def whole_groups_then_tasks(ran: Ran) -> Iterator[UnitOf]:
    """Yields the groups that a model has all tasks of, but no parts of other groups, and the tasks outside of them."""
    covered: set[str] = set()
    for group, tasks in ran.groups.items():
        if group not in ran.parts and any(set(tasks) <= set(own) for own in ran.models):
            covered.update(tasks)
            yield UnitOf(group, tasks)
    for task in ran.tasks:
        if task in ran.anywhere and task not in covered:
            yield UnitOf(task, (task,))


@dataclass(frozen=True, slots=True)
class BenchmarkReport:
    """How a benchmark is reported. What is left out has a default that fits any benchmark.

    Attributes:
        fields: What is known of the fields that samples are grouped by.
        splits: What the score is split by: the last field is the dimension, those before it are held fixed. None splits
            it by each field of the records.
        culture: The field whose groups are cultures; empty where there is none.
        further: Further scores of each sample.
        derived: Statistics that are no means of a score.
        costs: Numbers of runs as a whole.
        method: What says which method was applied to a model; None where there is nothing of the kind.
        units: Gives what is measured as one number.
        tables: Gives the benchmark's own tables, by the units that were run.
        figures: Its figures.
        contrasts: What its paper sets side by side.
        as_published: Tasks that measure what the published tables do: only below units of such tasks may published rows
            stand. None where all do.
        published: Published tables whose rows figures show, by statistic and dimension.
        printed: Keys that a unit's numbers have in published tables beside those of their groups, by unit.
    """

    fields: tuple[Field, ...] = ()
    splits: tuple[tuple[str, ...], ...] | None = None
    culture: str = ""
    further: tuple[FurtherScore, ...] = ()
    derived: tuple[Derived, ...] = ()
    costs: tuple[Cost, ...] = ()
    method: MethodArgument | None = None
    units: Callable[[Ran], Iterable[UnitOf]] = whole_groups_then_tasks
    tables: Callable[[Sequence[UnitOf]], Iterable[TableOf]] = lambda _: ()
    figures: tuple[FigureOf, ...] = ()
    contrasts: tuple[ContrastOf, ...] = ()
    as_published: tuple[str, ...] | None = None
    published: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    printed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def field_named(self, name: str) -> Field:
        """Returns what is known of a field."""
        return next((each for each in self.fields if each.name == name), Field(name))

    def is_as_published(self, tasks: Collection[str]) -> bool:
        """Whether published rows may stand below a unit of these tasks."""
        return self.as_published is None or set(tasks) <= set(self.as_published)
