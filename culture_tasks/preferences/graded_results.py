"""Rated responses from result folders: what several models answered on a task, with a judge's verdicts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from culture_tasks.agreement.rated_responses import language_of
from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, rubric_named, tasks_below
from culture_tasks.errors import DataError, JudgeError, nearest
from culture_tasks.harness.scoring import LEXICAL, RECORD_VERSION
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.preferences.manifest import RatedBy, TrainingSource
from culture_tasks.preferences.rated_questions import Gathering, RatingScale, Seen, kind_of_culture
from culture_tasks.rejudge.logged_samples import LoggedRun, damage
from culture_tasks.rejudge.rejudging import find_runs
from culture_tasks.results.finding import Problem
from culture_tasks.results.run_files import RunFiles, parse_json, sample_lines
from culture_tasks.results.task_results import TaskResult, task_results
from culture_tasks.text import answer_in


@dataclass(frozen=True, slots=True)
class Taken:
    """What is taken of result folders.

    Attributes:
        tasks: Names of tasks and groups; empty means every task that a judge has graded.
        judge: The judge whose verdicts count, as ``backend:model``; None where there is one alone.
        text_overlap: Whether text overlap is taken for a rating, and nothing else is.
        test_questions: Whether questions of tests may be taken.
    """

    tasks: tuple[str, ...] = ()
    judge: str | None = None
    text_overlap: bool = False
    test_questions: bool = False


def gather_results(paths: Sequence[Path], taken: Taken, gathering: Gathering) -> None:
    """Reads the judged samples of result folders.

    Args:
        paths: Result files, or folders that hold some.
        taken: What is taken of them.
        gathering: Where they go.

    Raises:
        DataError: If a file or a record can't be used, may not be trained on, or none was graded.
    """
    wanted = _wanted(taken.tasks)
    reader = _Reader(taken, gathering)
    for run in find_runs(paths):
        known = task_results(run.files)
        if isinstance(known, Problem):
            raise DataError(f"preferences: {known.path}: {known.detail}. Leave the file out.")
        models = {result.task: _name(result) for result in known}
        for task in run.files.logged_tasks():
            if not wanted or task in wanted:
                reader.read(run.files, task, models.get(task, ""))
    if not reader.taken:
        raise DataError(f"preferences: {', '.join(map(str, paths))}: {reader.why_nothing()}")


def _name(result: TaskResult) -> str:
    """Returns the model's name, with that of the adapter that was put on it."""
    return f"{result.model} + {Path(result.adapter).name}" if result.adapter else result.model


def _wanted(names: Sequence[str]) -> frozenset[str]:
    """Returns the tasks that are named or are of a group that is.

    Raises:
        DataError: If their data may not be trained on.
    """
    for name in names:
        if name in entries():
            _check_allowed(benchmark_of(name).name, name)
    return frozenset(
        task for name in names for task in ([each.name for each in tasks_below(name)] if name in entries() else [name])
    )


def _check_allowed(benchmark: str, where: str) -> None:
    declared = benchmarks().get(benchmark)
    if declared is not None and declared.not_for_training:
        raise DataError(
            f"preferences: {where} is of {declared.title} ({declared.paper}), which may not be trained on: "
            f"{declared.not_for_training}."
        )


class _Judge(BaseModel):
    backend: str
    model: str
    rubric: str
    prompt: str = ""
    prompt_sha256: str = ""
    delimiters: bool = False
    sampling: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return f"{self.backend}:{self.model}"


class _Record(BaseModel):
    record: int
    benchmark: str
    item: str
    question: str = Field(min_length=1)
    references: list[str]
    groups: dict[str, str | None] = {}
    image: str = ""
    judge: _Judge
    runs: list[LoggedRun]


class _Found(NamedTuple):
    """A judged record, and whether its score is text overlap."""

    record: _Record
    is_overlap: bool


class _Reader:
    """Reads the sample files of all runs."""

    def __init__(self, taken: Taken, gathering: Gathering) -> None:
        self.taken = 0
        self._choice = taken
        self._gathering = gathering
        self._others: Counter[str] = Counter()
        self._unscored: Counter[str] = Counter()
        self._unjudged: dict[str, str] = {}
        self._rubrics: dict[str, tuple[_Judge, Rubric]] = {}

    def read(self, run: RunFiles, task: str, model: str) -> None:
        """Takes the verdicts of a task in; a task without any is passed over."""
        path = run.samples_file(task)
        digest = hashlib.sha256()
        count = 0
        for number, _, line in sample_lines(path):
            where = f"{path}, line {number}"
            found = self._found(line, task, where)
            if found is None:
                continue
            if not self._counts(found):
                self._others[found.record.judge.name] += 1
                continue
            self._check_usable(found.record, task, where)
            for response in self._scored(found.record, where):
                digest.update(json.dumps([found.record.item, found.record.question, *response]).encode())
                self._take(found.record, task, response, model)
                count += 1
        if count:
            self.taken += count
            source = TrainingSource(
                kind="results",
                name=run.result_file.name,
                fingerprint=digest.hexdigest()[:16],
                responses=count,
                model=model,
                task=task,
            )
            self._gathering.note_source(source)

    def _found(self, line: bytes, task: str, where: str) -> _Found | None:
        """Returns the judged record of a sample, or None for one that no judge graded."""
        try:
            sample = parse_json(line)
        except ValueError:
            raise DataError(f"preferences: {where}: not JSON. The run may have been cut off: leave it out.") from None
        pairs = sample.items() if isinstance(sample, dict) else ()
        key, content = next(
            ((key, each) for key, each in pairs if isinstance(each, dict) and "record" in each), ("", {})
        )
        if "judge" not in content:
            self._unjudged[task] = str(content.get("benchmark", ""))
            return None
        if content["record"] != RECORD_VERSION:
            raise DataError(
                f"preferences: {where}: the record has layout {content['record']!r:.40}; this version reads "
                f"{RECORD_VERSION}. Use the version of culture-tasks that wrote it."
            )
        try:
            return _Found(_Record.model_validate(content), str(key).endswith(LEXICAL))
        except ValidationError as error:
            raise DataError(f"preferences: {where}, {damage(error)}. The record is damaged, or not ours.") from None

    def _counts(self, found: _Found) -> bool:
        if found.is_overlap != self._choice.text_overlap:
            return False
        return self._choice.judge in (None, found.record.judge.name)

    def _check_usable(self, record: _Record, task: str, where: str) -> None:
        _check_allowed(record.benchmark, f"{where}: {task}")
        entry = entries().get(task)
        if record.image or (isinstance(entry, Task) and entry.shows_images):
            raise DataError(
                f"preferences: {where}: {task} shows images, and the data and recipes written here are of text alone. "
                "Choose tasks of text with --task."
            )
        if not self._choice.test_questions:
            raise DataError(
                f"preferences: {where}: {task} is a test. A model that is trained on its questions can't be tested by "
                "them any more. If that is what you want, say so with --train-on-test: the manifest then names the "
                "items, and the report marks the model."
            )

    def _scored(self, record: _Record, where: str) -> list[tuple[str, float]]:
        """Returns the responses with a scored verdict, without their reasoning, which no judge sees."""
        unscored = [run.outcome for run in record.runs if run.outcome != "scored"]
        self._unscored.update(unscored)
        self._gathering.left_out["unscored_verdicts"] += len(unscored)
        if len(unscored) == len(record.runs):
            return []
        rubric = self._rubric(record.judge, where)
        scored: list[tuple[str, float]] = []
        for run in record.runs:
            if run.outcome != "scored":
                continue
            if run.rating is None or not rubric.lowest <= run.rating <= rubric.highest:
                raise DataError(
                    f"preferences: {where}: found the rating {run.rating}. Needed is one from {rubric.lowest} to "
                    f"{rubric.highest}. The record is damaged, or not ours."
                )
            scored.append((answer_in(run.response), run.rating))
        return scored

    def _rubric(self, judge: _Judge, where: str) -> Rubric:
        """Returns the rubric of a verdict, and notes judge and scale where they are met first."""
        known = self._rubrics.get(judge.rubric)
        if known is not None and known[0] == judge:
            return known[1]
        try:
            rubric = rubric_named(judge.rubric)
        except JudgeError as error:
            raise DataError(
                f"preferences: {where}: {error} Install the package that the benchmark comes from."
            ) from None
        self._gathering.note_rater(RatedBy(kind="judge", name=judge.name, judges=(judge.model_dump(),)), where)
        self._gathering.note_scale(RatingScale(rubric.lowest, rubric.highest, f"{where}, rubric {rubric.name}"))
        self._rubrics[judge.rubric] = (judge, rubric)
        return rubric

    def _take(self, record: _Record, task: str, response: tuple[str, float], model: str) -> None:
        text, rating = response
        fingerprint = self._gathering.add(
            Seen(
                question=record.question,
                references=tuple(record.references),
                language=_language(record, task),
                category=record.groups.get("category") or "",
                culture=kind_of_culture(record.groups.get("culture")),
                rubric=record.judge.rubric,
                response=text,
                rating=rating,
                by=model,
            )
        )
        if fingerprint is not None:
            self._gathering.note_test_item(fingerprint, task, record.item)

    def why_nothing(self) -> str:
        """Says why there is no response, and what to do."""
        if self._unscored:
            found = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._unscored.items()))
            return f"no verdict is scored ({found}). Grade the responses with `culture-tasks rejudge`."
        if self._others and self._choice.judge is not None:
            found = ", ".join(sorted(self._others))
            return f"no verdict of {self._choice.judge}.{nearest(self._choice.judge, self._others)} There are: {found}."
        if self._others:
            found = ", ".join(sorted(self._others))
            if self._choice.text_overlap:
                return f"nothing was graded by text overlap. Leave out --text-overlap for the verdicts of {found}."
            return (
                f"graded by text overlap alone ({found}), which says little of quality. Grade the responses with "
                "`culture-tasks rejudge`, or use it all the same with --text-overlap."
            )
        for task, benchmark in self._unjudged.items():
            _check_allowed(benchmark, task)
        if self._unjudged:
            return f"no judge grades {', '.join(self._unjudged)}. Needed are tasks with a judge's verdicts."
        return (
            "no samples of the tasks. Run them with --log_samples, and look for misspelt names after --task."
            if self._choice.tasks
            else "no samples. Run the tasks with --log_samples."
        )


def _language(record: _Record, task: str) -> str:
    entry = entries().get(task)
    if isinstance(entry, Task) and len(entry.languages) == 1:
        return entry.languages[0]
    said = record.groups.get("prompt_language") or record.groups.get("language")
    return language_of(record.question, language=said)
