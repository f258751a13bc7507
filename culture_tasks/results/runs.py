"""One task of one result file: a run, with its settings, its numbers in the file, and what its samples add up to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Metric, Scale
from culture_tasks.benchmarks.reporting import FurtherScore
from culture_tasks.harness.model_costs import ModelCosts
from culture_tasks.harness.rows import LEXICAL
from culture_tasks.harness.subsets import Subset
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.results.finding import Harness, UnusedFile
from culture_tasks.text import FrequentMark


class PromptHash(NamedTuple):
    """All prompts of a number of items as a hash."""

    items: int
    sha: str


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Sums over the samples of a run; None where unknown. Of the judge's tokens, those of older verdicts are kept."""

    responses: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    judge: Usage | None = None
    judge_kept: Usage | None = None


@dataclass(frozen=True, slots=True)
class RunJudge:
    """A judge of a run: parameters are canonical JSON, prompts are sorted (rubric, prompt file, SHA-256) triples."""

    backend: str
    model: str
    delimiters: bool = True
    sampling: str = ""
    prompts: tuple[tuple[str, str, str], ...] = ()

    @property
    def label(self) -> str:
        """A short name for a table."""
        return "text overlap" if self.backend == "lexical" else self.model if self.backend != "none" else "no judge"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings that decide whether two runs of a task can be compared.

    Attributes:
        judges: Who graded; empty where no judge is needed, several where a file mixes them.
        prompt: Prompt variant: template names and hashes, shots, system instruction; empty where the task has one.
        data: Fingerprints of the data, sorted.
        commits: Data sets of the Hub that were read, each with its commit. They tell other data apart in words, and
            decide nothing: a commit that leaves the rows as they are changes nothing.
        decoding: Generation settings as canonical JSON.
        chat_template: ``none``, ``the endpoint's``, or the beginning of its hash; empty where the file doesn't say.
        asked: The prompts of all samples; None where they aren't known.
        limit: Limit on the items as the harness was given it; None without one.
        subset: How many documents were drawn of how many, such as ``400 of 11,600``, and the ``seed`` unless it is 0;
            empty for all. A run of a subset is compared with one of all, or of a larger draw, on their common items.
        partial: Whether judges, prompts and data aren't known, since the samples aren't there that say them.
        definition: Entries of the configuration of a task of a harness that decide what its number means, such as
            filters and metrics, as hashes, the name of the harness first; nothing for our tasks.
    """

    judges: tuple[RunJudge, ...] = ()
    task_version: str = ""
    prompt: str = ""
    data: tuple[str, ...] = ()
    commits: tuple[tuple[str, str], ...] = ()
    decoding: str = ""
    chat_template: str = ""
    asked: PromptHash | None = None
    limit: float | None = None
    subset: str = ""
    seed: int = 0
    partial: bool = False
    definition: tuple[tuple[str, str], ...] = ()

    @property
    def judged_by(self) -> str:
        """Who graded, in short; empty where no judge needs to."""
        return " + ".join(judge.label for judge in self.judges)


@dataclass(frozen=True, slots=True)
class RecordKind:
    """The records expected of a task; no metrics where the package that defines them isn't installed."""

    benchmark: str
    metric: str
    scale: Scale
    further: tuple[FurtherScore, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSamples:
    """What the samples of a run add up to.

    Attributes:
        rows: Their rows in the frame of samples.
        outcomes: How many replies ended how.
        failed: Number of responses that the harness's model failed to give.
        mark: The mark that isn't known with which many responses begin.
        records: Their whole records, where the metric is computed from records.
        problems: The lines that were left out.
    """

    rows: slice
    scored: int = 0
    judges: tuple[RunJudge, ...] = ()
    prompts: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    asked: PromptHash | None = None
    spent: RunUsage = RunUsage()
    outcomes: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    mark: FrequentMark | None = None
    is_lexical: bool = False
    records: Sequence[Mapping[str, Any]] = ()
    problems: tuple[UnusedFile, ...] = ()

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One task, or group, of one result file; ``key`` names it everywhere else.

    Attributes:
        model_name: The model, as the harness names it; ``model`` is its name in the report.
        arguments: The model's arguments without those that hold secrets, and those on where and how fast it ran.
        pretrained: The model whose weights were loaded, below any adapter, as the arguments name it.
        date: When, as ISO 8601 in UTC where the file says so.
        own_data: How the user's own data differ from the benchmark's release; empty for the release.
        expected: Number of items that were asked for, of all ``original`` ones; None where the file doesn't say.
        is_first: Whether those that were asked for are the first ones, where they are a part.
        metrics: Numbers by metric name, with any filter but ``none`` after a comma; ``errors``: standard errors.
        samples_file: Where its samples would be.
        together: The tasks that were run with it, itself included, in so many seconds, with loading and grading.
        kind: The records of its task; None for a task of a harness.
        samples: What its samples add up to; None without usable ones.
        trained_on: Number of its items that its model was trained on, as the manifest of the training data says.
        is_second: Whether it is a model's second run of the task, in the other harness.
        whole: Another judge's grading of all responses that this run's were drawn from.
    """

    harness: Harness
    path: Path
    task: str
    model: str
    model_name: str = ""
    arguments: tuple[tuple[str, str], ...] = ()
    pretrained: str = ""
    adapter: str = ""
    date: str = ""
    settings: RunSettings = RunSettings()
    own_data: str = ""
    expected: int | None = None
    original: int | None = None
    is_first: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    higher_is_better: Mapping[str, bool] = field(default_factory=dict)
    members: tuple[str, ...] = ()
    samples_file: Path = Path()
    graded_from: Path | None = None
    together: frozenset[str] = frozenset()
    seconds: float | None = None
    usage: RunUsage | None = None
    costs: ModelCosts | None = None
    subset: Subset | None = None
    key: str = ""
    kind: RecordKind | None = None
    samples: RunSamples | None = None
    trained_on: int = 0
    row: str = ""
    is_second: bool = False
    whole: Run | None = None

    @property
    def model_args(self) -> str:
        """The model's arguments in one text."""
        return ", ".join(f"{name}={value}" for name, value in self.arguments)

    @property
    def benchmark(self) -> str | None:
        """Our benchmark; None for a task of a harness."""
        return self.kind.benchmark if self.kind else None

    @property
    def metric(self) -> Metric | None:
        """The main metric; None for a task of a harness, and where no installed package defines it."""
        return self.kind.metrics.get(self.kind.metric) if self.kind else None

    @property
    def has_samples(self) -> bool:
        """Whether its samples give its numbers."""
        return self.samples is not None and self.metric is not None

    @property
    def items(self) -> int:
        """Number of its samples, else of the items that were asked for."""
        return self.samples.n if self.samples else self.expected or 0

    @property
    def scored(self) -> int:
        """Number of its samples that have a score."""
        return self.samples.scored if self.samples else 0

    @property
    def coverage(self) -> float | None:
        """Scored samples over samples; None without samples."""
        return self.scored / self.items if self.samples else None

    @property
    def unjudged(self) -> int:
        """Number of responses that were recorded for a judge and not graded."""
        return self.samples.outcomes.get("unjudged", 0) if self.samples else 0

    @property
    def unparsed(self) -> float | None:
        """Share of replies from which nothing could be read; None where a judge grades, or without samples."""
        replies = self.samples.outcomes if self.samples else {}
        total = sum(replies.values())
        return replies.get("unparsable", 0) / total if total and not self.settings.judges else None

    @property
    def spent(self) -> RunUsage | None:
        """Tokens and responses."""
        return self.samples.spent if self.samples else self.usage

    @property
    def measured(self) -> str:
        """Where and how its requests were timed; empty where that isn't known."""
        return self.costs.way if self.costs else ""

    @property
    def is_lexical(self) -> bool:
        """Whether text overlap graded it."""
        if self.samples:
            return self.samples.is_lexical
        return self.kind is not None and any(LEXICAL in name for name in self.metrics)

    @property
    def problems(self) -> tuple[str, ...]:
        """The faults of its samples, one line each."""
        if self.samples is None:
            return ()
        faults, responses = [problem.detail for problem in self.samples.problems], self.samples.spent.responses
        if self.samples.failed:
            faults.append(f"{self.samples.failed} of {responses} responses failed, and count in no score")
        if mark := self.samples.mark:
            faults.append(
                f"{mark.responses} of {responses} responses begin with {mark.mark!r}, which is no known mark: thinking "
                "that follows it was graded as the answer"
            )
        return tuple(faults)

    @property
    def age(self) -> tuple[str, str]:
        """Sorts runs by age."""
        return self.date, self.path.name


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One row of the report: a model under usual settings, or in a ``variation`` such as ``judge: text overlap``."""

    key: str
    model: str
    variation: str = ""

    @property
    def label(self) -> str:
        """Name for a table."""
        return f"{self.model} [{self.variation}]" if self.variation else self.model
