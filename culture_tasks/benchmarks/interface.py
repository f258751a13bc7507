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

from culture_tasks.benchmarks.reporting import MODEL, WITH_JUDGE, BenchmarkReport, FurtherScore, Groups, groups_of
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Figure, standard_figures, standard_tables
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.reading import DataReading
from culture_tasks.text import NO_RESPONSE, storable

if TYPE_CHECKING:
    import datasets

    from culture_tasks.benchmarks.reporting import ScoreUnit
    from culture_tasks.data.checking import DataReport
    from culture_tasks.data.tables import Table
    from culture_tasks.judges.rubric.rubrics import Rubric
    from culture_tasks.prompt_files import PromptFile
    from culture_tasks.settings import Settings

Harness = Literal["lm_eval", "lmms_eval"]
HARNESSES: tuple[Harness, ...] = get_args(Harness)

Doc = Mapping[str, Any]  # one document of a task: a row of its data set


# What a model is asked


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that a prompt shows: that of a row of the data set, by default the document's own."""

    row: int | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is shown of a document: texts and images of the user's message, in order, and a system message.

    Models that have no system message read it before the first text.
    """

    parts: tuple[str | Picture, ...]
    system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a model generates; temperature 0 is greedy decoding, and without ``top_p`` the model's own is used."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None


# What a task is about


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a task, checked: mappings with the same fields, and what they were read from."""

    rows: Sequence[Doc]
    images: datasets.Dataset | None = None  # image columns of the same documents, not decoded yet
    reading: DataReading = field(default_factory=DataReading)


@dataclass(frozen=True, slots=True)
class DataSet:
    """Where the documents of a task come from; ``load`` reads and checks them, and raises DataError."""

    sources: tuple[Table[Any], ...]
    load: Callable[[Settings], Documents]


# What is made of an answer


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale that a number is on."""

    unit: str  # how the number is meant, such as `share`, `percent`, `rating`, `ratio`
    low: float | None = None  # lowest value that is possible; None where there is none
    high: float | None = None
    better: Literal["higher", "lower"] | None = "higher"  # None where a value in between is neutral
    neutral: float | None = None  # the value that means "no bias", where there is one
    digits: int = 2  # after the point, as many as are worth showing
    times: float = 1.0  # what 1 of a harness's number is on the scale: 100 where the paper has percent

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
    """What a harness is running."""

    model: str
    output: Path | None  # folder that the harness writes to, where it says so
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number of a task, by its name in result files."""

    name: str
    scale: Scale
    title: str = ""  # its name in reports, without a unit, such as `exact match`; empty for the name itself
    groups: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Groups of documents with a number each, ``<name>_<group>``, by field of :attr:`Score.groups`."""

    @property
    def in_words(self) -> str:
        """Its title with its unit, such as ``accuracy (percent)`` or ``rating (1 to 10)``."""
        ends = "" if self.scale.ends is None else "({:g} to {:g})".format(*self.scale.ends)
        return f"{self.title or self.name} {'(percent)' if self.scale.unit == 'percent' else ends}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanScore(Metric):
    """The mean of a score that is known at once."""

    equal_groups: str = ""
    """The field whose groups weigh the same in the mean of all documents; empty where documents do."""
    per_cluster: Callable[[Sequence[float]], float] | None = None
    """Makes one score of the scores of each cluster's documents: ``min`` where a question counts only if all of its
    rows are right. The mean is over clusters then; one with a document that has no verdict is left out."""


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
    """

    value: Callable[[Sequence[Any]], float]  # from any number of values, in any order
    stderr: Callable[[Sequence[Any], Sequence[Hashable]], float] | None = None
    """The standard error, in the same unit, from the values and the cluster of each. None: there is none, and for a
    main metric it is the bootstrap's."""
    is_score: bool = True  # whether the mean of several tasks' numbers means something
    finish: Callable[[Sequence[Any], str, Run], None] | None = None
    """Called once with the values, the task's name and the run, when a harness has its results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One document with the answers to it: all that its record will say, but for the judge's verdicts."""

    item: str  # the question, the same for every model and harness
    responses: Sequence[str]  # one a run; several where the harness repeats a request
    question: str = ""  # as a judge or reader is shown it
    references: Sequence[str] = ()
    groups: Mapping[str, str | None] = field(default_factory=dict)  # by field, such as {"country": "brazil"}
    cluster: str = ""  # the image, scene, scenario or question that it shares with other documents
    image: str = ""  # identifier of its image, the same wherever the image is the same
    data: Mapping[str, str] = field(default_factory=dict)  # fingerprints of the data, by name
    prompt: PromptFile | None = None  # where a benchmark has several
    facts: Mapping[str, Any] = field(default_factory=dict)  # further ones for the record
    rubric: Rubric | None = None  # how a judge grades the answers, where one is needed
    judge_language: str = ""  # its name, where the rubric's prompt tells the judge
    labels: Sequence[str | None] = ()  # read from each answer where no judge is needed; None where nothing could be
    score: float | None = None  # that of the task's metric where no judge is needed; None: it doesn't count
    values: Mapping[str, Any] = field(default_factory=dict)
    """Its values for the task's other metrics. One that no document has a value for is no part of the results."""

    @classmethod
    def of(cls, doc: Doc, responses: Sequence[str], groups: Mapping[str, Groups], **fields: Any) -> Score:
        """Returns a document with the answers to it, and its groups; it has an ``id`` and the fingerprint ``data``."""
        shared = {"item": doc["id"], "groups": groups_of(doc, groups), "data": {"data": doc["data"]}}
        return cls(responses=responses, **shared, **fields)


class KeepAll:
    """Response filter that keeps every response of a request; both harnesses keep only the first by default.

    A text that is alone stays without a list around it, since Python's garbage collector visits every list of a run.
    """

    def __init__(self, **_: object) -> None:
        """Takes what the harnesses pass, and needs none of it."""

    def apply(self, resps: Sequence[Sequence[Any]], docs: Any) -> list[Any]:  # noqa: ARG002
        """Returns the responses as they are."""
        return [
            responses[0] if len(responses) == 1 and isinstance(responses[0], str) else list(responses)
            for responses in resps
        ]


def responses_of(results: Sequence[Any]) -> list[str]:
    """Returns the responses to one document, whichever way a harness nests them; None, or none at all, has failed."""
    flat = results[0] if len(results) == 1 and isinstance(results[0], (list, tuple)) else results
    return [NO_RESPONSE if response is None else storable(str(response)) for response in flat] or [NO_RESPONSE]


# Names that can be passed to --tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of a harness; its name is the stem of its YAML file."""

    name: str
    about: str  # the quantity that it and the tasks like it measure, in a few words
    languages: tuple[str, ...]
    """Codes of the languages in which the model is asked: of two letters (ISO 639-1), or of three (ISO 639-3) where
    there is none of two. Registers and dialects are groups."""
    metrics: Callable[[], Sequence[Metric]]  # the main one included
    data: DataSet
    prompt: Callable[[Any], Prompt]
    score: Callable[[Any, Sequence[str]], Score]  # of a document with the answers to it, one a run
    decoding: Decoding
    shows_images: bool = False
    target: Callable[[Any], str | list[str]] = lambda _: ""  # the right answers, for the harness's log
    choices: Callable[[Any], Sequence[str]] | None = None
    """Gives the replies that a document allows, where the model writes none: ``score`` is given the most likely."""
    responses: type = KeepAll  # filter that the responses go through before they are scored
    harnesses: tuple[Harness, ...] = HARNESSES
    title: str = ""  # its name in reports, such as `CARE, asked in English`; empty for the name itself
    tag: str = ""  # a name for several tasks without a mean
    version: float = 1.0
    metric: str = ""  # its main metric, under which its records are logged; the first by default

    def __post_init__(self) -> None:
        if not self.metric:
            object.__setattr__(self, "metric", self.metrics()[0].name)


class Variant:
    """One of the ways in which a benchmark asks its questions; ``facts`` are what else differs, by name.

    Its tasks' names end with the suffix, and their titles with its title; ``about`` is the title by default.
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
    """Several tasks or groups under one name, with a row in the results where their mean means something."""

    name: str
    about: str
    members: tuple[str, ...]
    means: tuple[str, ...] = ()  # metrics whose mean over the members means something
    title: str = ""
    weight_by_size: bool = True  # whether every document weighs the same in these means, rather than every member
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
    task_files: Path | None = None
    groups: Mapping[str, Groups] = MappingProxyType({})
    culture_field: str = ""

    @abstractmethod
    def entries(self) -> Sequence[Entry]:
        """Returns its tasks, groups and tags, in the order of the task table."""

    def tasks(self) -> Sequence[Task]:
        """Returns its tasks alone."""
        return [entry for entry in self.entries() if isinstance(entry, Task)]

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics that its judges grade by."""
        return ()

    def check(self, settings: Settings) -> DataReport:
        """Checks its data as a whole: counts beside the paper's, and all that is wrong with single rows.

        Raises:
            DataError: If there is nothing that can be read.
        """
        from culture_tasks.data.checking import check_tables

        sources = dict.fromkeys(table for task in self.tasks() for table in task.data.sources)
        return check_tables(self.name, settings, list(sources))

    def metrics_of(self, unit: ScoreUnit) -> Mapping[str, Metric]:
        """Returns the metrics of a unit's first task by statistic, the main one as ``score``, also of a user's task."""
        tasks = self.tasks()
        task = next((task for task in tasks if task.name in unit.tasks), tasks[0])
        return {"score" if metric.name == task.metric else metric.name: metric for metric in task.metrics()}

    def report(self) -> BenchmarkReport:
        """Returns how it is reported: what follows from its groups and metrics, and its tables.

        Every score is split by each field of its groups; without any, by every field of its records.
        """
        return _report_of(self)

    def tables(self, numbers: BenchmarkNumbers) -> Iterable[ReportTable]:
        """Yields the tables of the units that were run: by default one for each field of its groups."""
        return standard_tables(self, numbers)

    def figures(self, numbers: BenchmarkNumbers) -> Iterable[Figure]:
        """Yields its figures: by default one for each field of its groups and each metric, with a panel per unit."""
        return standard_figures(self, numbers)


@cache
def _report_of(benchmark: Benchmark) -> BenchmarkReport:
    further = {
        metric.name: FurtherScore(metric.name, metric.scale)
        for task in benchmark.tasks()
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
