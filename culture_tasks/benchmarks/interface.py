"""What a benchmark is: an object that declares its data, its tasks, how an answer is scored, and its report.

A benchmark is a folder with a ``benchmark.py`` whose ``BENCHMARK`` is a :class:`Benchmark`, below
:mod:`culture_tasks.benchmarks` or in another package that names it in the entry-point group
``culture_tasks.benchmarks``. It declares, and neither loads a model nor asks a judge: harnesses and reports follow it,
and know nothing of it beyond this interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, get_args

from culture_tasks import prompt_files
from culture_tasks.benchmarks.reporting import (
    MODEL,
    WITH_JUDGE,
    BenchmarkReport,
    FurtherScore,
    Groups,
    ScoreUnit,
    groups_of,
)
from culture_tasks.benchmarks.tables import Figure, series_of
from culture_tasks.data.reading import DataReading
from culture_tasks.text import NO_RESPONSE, storable

if TYPE_CHECKING:
    import datasets

    from culture_tasks.benchmarks.tables import BenchmarkNumbers, Column
    from culture_tasks.benchmarks.tables import Table as ReportTable
    from culture_tasks.data.checking import DataReport
    from culture_tasks.data.tables import Table
    from culture_tasks.judges.rubric.rubrics import Rubric
    from culture_tasks.prompt_files import PromptFile
    from culture_tasks.settings import Settings

Harness = Literal["lm_eval", "lmms_eval"]
HARNESSES: tuple[Harness, ...] = get_args(Harness)

Doc = Mapping[str, Any]
"""One document of a task: a row of its data set."""


# What a model is asked


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that a prompt shows.

    Attributes:
        row: Row of the data set that has the image; None means the document's own.
    """

    row: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is shown of a document.

    Attributes:
        parts: Texts and images of the user's message, in order.
        system: The system message, for models that have one; other models read it before the first text.
    """

    parts: tuple[str | Picture, ...]
    system: str = ""


def filled(package: str, name: str, *before: Picture) -> Callable[[Doc], Prompt]:
    """Returns what fills a prompt file with a document's fields, and its slots ``{a}``, ``{b}`` … with the options."""

    def prompt(doc: Doc) -> Prompt:
        options = {chr(ord("a") + number): option for number, option in enumerate(doc.get("options", ()))}
        return Prompt((*before, prompt_files.load(package, name).fill({**doc, **options})))

    return prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a model generates.

    Attributes:
        max_tokens: Most tokens of an answer.
        temperature: Temperature of sampling; 0 is greedy decoding.
        top_p: Nucleus of sampling; None leaves it to the model.
    """

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None


# What a task is about


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a task, checked.

    Attributes:
        rows: One mapping a document, all with the same fields.
        images: Image columns of the same documents, in the same order, not decoded yet; None where there are none.
        reading: What they were read from.
    """

    rows: Sequence[Doc]
    images: datasets.Dataset | None = None
    reading: DataReading = field(default_factory=DataReading)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Where the documents of a task come from.

    Attributes:
        sources: The tables that are needed.
        load: Reads and checks them, by the user's settings; raises DataError if they can't be used.
    """

    sources: tuple[Table[Any], ...]
    load: Callable[[Settings], Documents]


# What is made of an answer


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale that a number is on.

    Attributes:
        unit: How the number is meant, such as ``share``, ``percent``, ``rating``, ``ratio``.
        low: Lowest value that is possible; None where there is none.
        high: Highest value that is possible; None where there is none.
        better: Which end is better; None where a value in between is neutral.
        neutral: The value that means "no bias", where there is one.
        digits: Digits after the point that are worth showing.
        times: What 1 of a harness's number is on the scale: 100 where harnesses have fractions and the paper percent.
    """

    unit: str
    low: float | None = None
    high: float | None = None
    better: Literal["higher", "lower"] | None = "higher"
    neutral: float | None = None
    digits: int = 2
    times: float = 1.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends; None where one is missing."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    def allows(self, value: float) -> bool:
        """Whether a value is on the scale; NaN, which means none, is."""
        below = self.low is not None and value < self.low - 1e-9
        return not (below or (self.high is not None and value > self.high + 1e-9))


@dataclass(frozen=True, slots=True)
class Run:
    """What a harness is running, for metrics that write files.

    Attributes:
        model: Name of the evaluated model.
        output: Folder that the harness writes to, where it says so.
        settings: The user's settings.
    """

    model: str
    output: Path | None
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number of a task, and the scale that it is on.

    Attributes:
        name: Its name in result files.
        title: Its name in reports, without a unit, such as ``exact match``; empty for the name itself.
        groups: Groups of documents with a number each, ``<name>_<group>``, by field of :attr:`Score.groups`.
    """

    name: str
    scale: Scale
    title: str = ""
    groups: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def in_words(self) -> str:
        """Its title with its unit, such as ``accuracy (percent)`` or ``rating (1 to 10)``."""
        ends = "" if self.scale.ends is None else "({:g} to {:g})".format(*self.scale.ends)
        return f"{self.title or self.name} {'(percent)' if self.scale.unit == 'percent' else ends}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanScore(Metric):
    """The mean of a score that is known at once.

    Attributes:
        equal_groups: The field whose groups weigh the same in the mean of all documents; empty where documents do.
        per_cluster: Makes one score of the scores of each cluster's documents (:attr:`Score.cluster`): ``min`` where
            a question counts only if all of its rows are right. The mean is over clusters then; one with a document
            that has no verdict is left out. None: every document has a score by itself.
    """

    equal_groups: str = ""
    per_cluster: Callable[[Sequence[float]], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedScore(MeanScore):
    """The mean of a judge's scores: the judge's ratings, mapped from the rubric's range to the scale's, end to end.

    It comes with ``<name>_coverage`` and ``<name>_unscored`` and, over repeats, ``<name>_run_sd``. Where text overlap
    replaces a judge, its name is ``<name>_lexical``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedScore(Metric):
    """A number that is worked out from the values that the documents have for it, documents without one left out.

    For a task's main metric the values are the records of the documents that have a score. Its interval and tests in
    the report are those of a bootstrap over clusters, for which it is worked out of a thousand resamples of records.

    Attributes:
        value: Works it out, from any number of values, in any order.
        stderr: Works out its standard error, in the same unit, from the values and the cluster of each; None where
            there is none, and for a main metric that of the bootstrap.
        is_score: Whether the mean of several tasks' numbers means something.
        finish: Called once with the values, the task's name and the run, when a harness has its results.
    """

    value: Callable[[Sequence[Any]], float]
    stderr: Callable[[Sequence[Any], Sequence[Hashable]], float] | None = None
    is_score: bool = True
    finish: Callable[[Sequence[Any], str, Run], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One document with the answers to it: all that its record will say, but for the judge's verdicts.

    Attributes:
        item: The question, the same for every model and harness.
        responses: The answers, one a run; several where the harness repeats a request.
        question: What was asked, as a judge or reader is shown it.
        references: Answers that count as right.
        groups: The groups that the document belongs to, by field, such as ``{"country": "brazil"}``.
        cluster: The image, scene, scenario or question that it shares with other documents of the benchmark's tasks;
            empty without one.
        image: Identifier of its image, the same wherever the image is the same; empty without one.
        data: Fingerprints of the data, by name.
        prompt: The prompt file, where a benchmark has several.
        facts: Further facts of the document for its record.
        rubric: How a judge grades the answers; None where no judge is needed.
        judge_language: Name of the language, where the rubric's prompt tells the judge.
        labels: The label read from each answer where no judge is needed; None where nothing could be read.
        score: The score of the task's metric where no judge is needed; None where the document doesn't count.
        values: Its values for the task's other metrics, by name. A metric that no document has a value for is no part
            of the results.
    """

    item: str
    responses: Sequence[str]
    question: str = ""
    references: Sequence[str] = ()
    groups: Mapping[str, str | None] = field(default_factory=dict)
    cluster: str = ""
    image: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    prompt: PromptFile | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    rubric: Rubric | None = None
    judge_language: str = ""
    labels: Sequence[str | None] = ()
    score: float | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, doc: Doc, responses: Sequence[str], groups: Mapping[str, Groups], **fields: Any) -> Score:
        """Returns a document with the answers to it, and its groups; it has an ``id`` and the fingerprint ``data``."""
        shared = {"item": doc["id"], "groups": groups_of(doc, groups), "data": {"data": doc["data"]}}
        return cls(responses=responses, **shared, **fields)


class KeepAll:
    """Response filter that keeps every response of a request, so that repeated runs are scored together.

    Both harnesses keep only the first by default. A text that is alone stays without a list around it, since Python's
    garbage collector visits every list of a run.
    """

    def __init__(self, **_: object) -> None:
        """Takes what the harnesses pass, and needs none of it."""

    def apply(self, resps: Sequence[Sequence[Any]], docs: Any) -> list[Any]:  # noqa: ARG002
        """Returns the responses as they are."""
        return [
            responses[0] if len(responses) == 1 and isinstance(responses[0], str) else list(responses)
            for responses in resps
        ]


# Names that can be passed to --tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a harness.

    Attributes:
        name: Its name; the stem of its YAML file.
        about: The quantity that it and the tasks like it measure, in a few words.
        title: Its name in reports, such as ``CARE, asked in English``; empty for the name itself.
        languages: Codes of the languages in which the model is asked: those of two letters (ISO 639-1), or of three
            (ISO 639-3) where there is none of two. Registers and dialects are groups.
        metrics: Its metrics, the main one included.
        metric: Name of its main metric, under which its records are logged; empty for the first.
        data: Its documents.
        prompt: Gives the prompt for a document.
        score: Scores the answers to a document, one a run.
        decoding: How the model generates, if it does.
        shows_images: Whether its documents have images.
        target: Gives the right answers of a document, for the harness's log.
        choices: Gives the replies that a document allows, where the model writes none: ``score`` is given the one that
            it finds the most likely. None means that the model writes its reply.
        responses: Filter that the responses go through before they are scored.
        harnesses: The harnesses that have it.
        tag: A name for several tasks without a mean; may be empty.
        version: Version in its metadata.
    """

    name: str
    about: str
    languages: tuple[str, ...]
    metrics: Callable[[], Sequence[Metric]]
    data: DataSet
    prompt: Callable[[Any], Prompt]
    score: Callable[[Any, Sequence[str]], Score]
    decoding: Decoding
    shows_images: bool = False
    target: Callable[[Any], str | list[str]] = lambda _: ""
    choices: Callable[[Any], Sequence[str]] | None = None
    responses: type = KeepAll
    harnesses: tuple[Harness, ...] = HARNESSES
    title: str = ""
    tag: str = ""
    version: float = 1.0
    metric: str = ""

    def __post_init__(self) -> None:
        if not self.metric:
            object.__setattr__(self, "metric", self.metrics()[0].name)


class Variant:
    """One of the ways in which a benchmark asks its questions.

    Attributes:
        suffix: The end of its tasks' names.
        title: The way in a few words, for the titles of its tasks.
        prompt: The prompt file.
        decoding: How the model generates.
        about: The quantity that its tasks measure; the title by default.
        facts: What else differs, by name.
    """

    def __init__(
        self, suffix: str, title: str, prompt: str, decoding: Decoding, *, about: str = "", **facts: Any
    ) -> None:
        self.suffix, self.title, self.prompt, self.decoding = suffix, title, prompt, decoding
        self.about, self.facts = about or title, facts

    def titled(self, title: str) -> str:
        """Returns a title with the variant's own behind it."""
        return f"{title}, {self.title}" if self.title else title

    def task(self, name: str, title: str, **fields: Any) -> Task:
        """Returns the task that asks in this way, by the benchmark's name and title and fields of :class:`Task`."""
        shared = {"name": f"{name}{self.suffix}", "title": self.titled(title), "decoding": self.decoding}
        return Task(**{"about": self.about, **shared, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Several tasks under one name, with a row in the results where their mean means something.

    Attributes:
        name: Its name; the stem of its YAML file.
        about: The quantity that it measures, in a few words.
        title: Its name in reports; empty for the name itself.
        members: Names of its tasks or groups.
        means: Metrics whose mean over the members means something.
        weight_by_size: Whether every document weighs the same in these means, rather than every member.
        harnesses: The harnesses that have it.
    """

    name: str
    about: str
    members: tuple[str, ...]
    means: tuple[str, ...] = ()
    title: str = ""
    weight_by_size: bool = True
    harnesses: tuple[Harness, ...] = HARNESSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for several tasks, its members, that belong together and have no mean."""

    name: str
    about: str
    members: tuple[str, ...]


Entry = Task | Group | Tag
"""A name that can be passed to ``--tasks``."""


class Benchmark(ABC):
    """One benchmark.

    Attributes:
        name: Its name: that of its folder and of the folder of its task files.
        title: Name as in its paper.
        paper: Citation.
        judge: Who grades by default, in words; None where no judge is needed.
        data: Where its data come from, in words.
        made_from: Data sets that its questions or images were made from, by name, a benchmark by its title. A report
            says which of them its benchmarks share.
        not_for_training: Why its data may not be trained on; None where its authors don't forbid it.
        task_files: Folder with a folder of task files for each harness; None means this package's own.
        groups: The groups of its records, by field.
        culture_field: The field whose groups are cultures; empty where there is none.
    """

    name: str
    title: str
    paper: str
    judge: str | None = None
    data: str
    made_from: Sequence[str] = ()
    not_for_training: str | None = None
    task_files: Path | None = None
    groups: Mapping[str, Groups] = MappingProxyType({})
    culture_field: str = ""

    @abstractmethod
    def entries(self) -> Sequence[Entry]:
        """Returns its tasks, groups and tags, in the order of the task table."""

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics that its judges grade by."""
        return ()

    def check(self, settings: Settings) -> DataReport:
        """Checks its data as a whole: counts beside the paper's, and all that is wrong with single rows.

        Raises:
            DataError: If there is nothing that can be read.
        """
        from culture_tasks.data.checking import check_tables

        tasks = (entry for entry in self.entries() if isinstance(entry, Task))
        return check_tables(
            self.name, settings, list(dict.fromkeys(table for task in tasks for table in task.data.sources))
        )

    def report(self) -> BenchmarkReport:
        """Returns how it is reported: what follows from its groups and metrics, and its tables.

        Every score is split by each field of its groups; without any, by every field of its records.
        """
        return _report_of(self)

    def tables(self, numbers: BenchmarkNumbers) -> Iterable[ReportTable]:
        """Yields the tables of the units that were run: by default one for each field of its groups.

        Of several tasks it has no column for all groups: their score may be a mean over tasks.
        """
        for unit in numbers.units.values():
            metric = self.metrics_of(unit)["score"]
            for name, groups in self.groups.items():
                if groups.shown and groups:
                    columns = numbers.by(name, unit.key, printed={}, total="All" if len(unit.tasks) == 1 else "")
                    yield numbers.table(f"{unit.key}_by_{name}", f"{unit.title}: {metric.in_words}, by {name}", columns)

    def figures(self, numbers: BenchmarkNumbers) -> Iterable[Figure]:
        """Yields its figures: by default one for each field of its groups and each metric, with a panel per unit."""
        units: dict[str, list[ScoreUnit]] = {}
        for unit in numbers.units.values():
            units.setdefault(self.metrics_of(unit)["score"].name, []).append(unit)
        first = next(entry.metric for entry in self.entries() if isinstance(entry, Task))
        for name, groups in self.groups.items():
            for key, members in units.items() if groups.shown and groups else ():
                metric = self.metrics_of(members[0])["score"]
                yield Figure(
                    key=f"{self.name}_{f'{key}_' if key != first else ''}{name}",
                    title=f"{self.title}{f', {metric.title},' if key != first else ''} by {name}",
                    panels={unit.title: series_of(numbers.by(name, unit.key)) for unit in members},
                    value=metric.in_words[:1].upper() + metric.in_words[1:],
                    groups=groups.axis or name,
                    source=numbers.source,
                )

    def metrics_of(self, unit: ScoreUnit) -> Mapping[str, Metric]:
        """Returns the metrics of a unit's first task by statistic, the main one as ``score``, also of a user's task."""
        tasks = {entry.name: entry for entry in self.entries() if isinstance(entry, Task)}
        task = next((tasks[name] for name in unit.tasks if name in tasks), next(iter(tasks.values())))
        return {"score" if metric.name == task.metric else metric.name: metric for metric in task.metrics()}

    def columns(
        self, numbers: BenchmarkNumbers, labels: Mapping[str, str], printed: Mapping[str, Mapping[str, str]]
    ) -> list[Column]:
        """Returns a column for each metric of each unit that has a label.

        Args:
            numbers: The numbers.
            labels: Labels of the statistics, in the order of the columns.
            printed: Keys of the column of published tables, by unit and statistic as in ``cvqa_en_acc_macro``.
        """
        return [
            numbers.column(
                key := f"{unit.key}_{name}", labels[name], unit.key, name, over=unit.title, printed=printed.get(key, {})
            )
            for unit in numbers.units.values()
            for name in labels
            if name in self.metrics_of(unit)
        ]


@cache
def _report_of(benchmark: Benchmark) -> BenchmarkReport:
    tasks = [entry for entry in benchmark.entries() if isinstance(entry, Task)]
    further = {
        metric.name: FurtherScore(metric.name, metric.scale)
        for task in tasks
        for metric in task.metrics()
        if metric.name != task.metric and isinstance(metric, MeanScore)
    }
    return BenchmarkReport(
        groups=benchmark.groups,
        splits=tuple((name,) for name in benchmark.groups) or None,
        culture=benchmark.culture_field,
        further=tuple(further.values()),
        tables=benchmark.tables,
        figures=benchmark.figures,
        headers=WITH_JUDGE if benchmark.judge else MODEL,
        source=f"{benchmark.title} ({benchmark.paper})",
    )


def responses_of(results: Sequence[Any]) -> list[str]:
    """Returns the responses to one document, whichever way a harness nests them; None, or none at all, has failed."""
    flat = results[0] if len(results) == 1 and isinstance(results[0], (list, tuple)) else results
    return [NO_RESPONSE if response is None else storable(str(response)) for response in flat] or [NO_RESPONSE]
