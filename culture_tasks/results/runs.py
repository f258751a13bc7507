"""Runs of tasks: settings, judges, tokens, and samples as a reader sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.results.finding import Harness


class PromptHash(NamedTuple):
    """All prompts of a number of items as a hash. Hashes of two makers can't be compared."""

    items: int
    sha: str
    maker: Literal["harness", "report"]


@dataclass(frozen=True, slots=True)
class RunUsage:
    """Sums over the samples of a run; None where a number isn't known of every sample.

    Attributes:
        tokens_in: Tokens of the prompts, as the model's backend counts them.
        judge: Tokens of all the judge's replies; None where no judge says so.
        judge_kept: Of these, the tokens of verdicts for which nothing was asked in the run.
    """

    responses: int | None = None
    characters: int | None = None
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
        subset: How many documents were drawn of how many, such as ``400 of 11,600``; empty for all. Runs of different
            subsets are compared on their common items.
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
    partial: bool = False
    definition: tuple[tuple[str, str], ...] = ()

    @property
    def judged_by(self) -> str:
        """Who graded, in short; empty where no judge needs to."""
        return " + ".join(judge.label for judge in self.judges)


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One task of one result file.

    Attributes:
        model_args: The model's arguments, without those on where and how fast it ran.
        benchmark: Our benchmark that it belongs to; None for any other task of a harness.
        date: When, as ISO 8601 in UTC where the file says so.
        samples_file: Path of the sample file; None without a usable one.
        scored: Number of its samples that have a score.
        outcomes: How many replies ended how, by outcome.
        problems: The faults of its files, one line each.
        measured: Where and how its requests were timed; empty where that isn't known.
        own_data: How the user's own data differ from the benchmark's release; empty for the release.
        trained_on: Number of its items that its model was trained on, as the manifest of the training data says.
    """

    key: str
    model: str
    model_args: str
    harness: Harness
    task: str
    benchmark: str | None
    settings: RunSettings
    date: str
    results_file: str
    samples_file: str | None
    items: int
    scored: int
    outcomes: tuple[tuple[str, int], ...] = ()
    problems: tuple[str, ...] = ()
    spent: RunUsage | None = None
    measured: str = ""
    own_data: str = ""
    trained_on: int = 0

    @property
    def coverage(self) -> float | None:
        """Scored samples over samples; None without samples."""
        return self.scored / self.items if self.items and self.samples_file else None

    @property
    def unjudged(self) -> int:
        """Number of responses that were recorded for a judge and not graded."""
        return dict(self.outcomes).get("unjudged", 0)

    @property
    def unparsed(self) -> float | None:
        """Share of replies from which nothing could be read; None where a judge grades, or without samples."""
        replies = dict(self.outcomes)
        total = sum(replies.values())
        return replies.get("unparsable", 0) / total if total and not self.settings.judges else None


@dataclass(frozen=True, slots=True)
class Entrant:
    """One row of the report: a model under usual settings, or in a ``variation`` such as ``judge: text overlap``."""

    key: str
    model: str
    variation: str = ""

    @property
    def label(self) -> str:
        """Name for a table."""
        return f"{self.model} [{self.variation}]" if self.variation else self.model


@dataclass(frozen=True, slots=True)
class Sample:
    """One logged sample, for a reader's eyes.

    Attributes:
        run: Key of its run.
        place: Its place among the run's samples, from 0.
        response: The model's first response.
        outcome: How grading ended; without a judge ``unparsable`` is a wrong answer.
        score: On the unit's scale; None unless scored.
        rationale: The judge's reasons; without a judge the label that was read from the response.
        image: Id of its image.
        doubt: Why the judge's verdict is doubtful; empty where it isn't, or where no judge graded.
    """

    run: str
    place: int
    item: str
    question: str
    references: tuple[str, ...]
    response: str
    outcome: str
    score: float | None
    rationale: str | None
    groups: Mapping[str, str]
    image: str | None = None
    prompt: str | None = None
    doubt: str = ""


class RunRows(NamedTuple):
    """Samples of one run as columns, without their texts: places, items numbered alike in all runs, scores or NaN."""

    places: NDArray[np.int64]
    items: NDArray[np.int32]
    scores: NDArray[np.float64]
