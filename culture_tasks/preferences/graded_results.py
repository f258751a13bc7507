"""Rated responses from result folders: what several models answered on a task, with a judge's verdicts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, entries, tasks_below
from culture_tasks.errors import DataError, nearest
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.people.rated_responses import language_of
from culture_tasks.preferences.rated_questions import Gathering, RatedAnswer, RatingScale, kind_of_culture
from culture_tasks.rejudge.rejudging import find_runs
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.logged_samples import JudgedSample, is_judged, judged_sample
from culture_tasks.results.run_files import RunFiles
from culture_tasks.results.samples import LoggedJudge, LoggedSample, samples_of
from culture_tasks.results.task_results import task_results
from culture_tasks.results.training_manifest import RatedBy, TrainingSource
from culture_tasks.text import answer_in


class Taken(NamedTuple):
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
    """Reads the judged samples of result files and folders.

    Raises:
        DataError: If a file or a record can't be used, may not be trained on, or none was graded.
    """
    wanted: set[str] = set()
    for name in taken.tasks:
        if name in entries():
            _check_allowed(benchmark_of(name).name, name)
        wanted.update([task.name for task in tasks_below(name)] if name in entries() else [name])
    reader = _Reader(taken, gathering)
    before = len(gathering.sources)
    for run in find_runs(paths):
        known = task_results(run.files)
        if isinstance(known, UnusedFile):
            raise DataError(f"preferences: {known.path}: {known.detail}. Leave the file out.")
        models = {
            result.task: f"{result.model} + {Path(result.adapter).name}" if result.adapter else result.model
            for result in known
        }
        for task in run.files.logged_tasks():
            if not wanted or task in wanted:
                reader.read(run.files, task, models.get(task, ""))
    if len(gathering.sources) == before:
        raise DataError(f"preferences: {', '.join(map(str, paths))}: {reader.why_nothing()}")


def _check_allowed(benchmark: str, where: str) -> None:
    declared = benchmarks().get(benchmark)
    if declared is not None and declared.not_for_training:
        raise DataError(
            f"preferences: {where} is of {declared.title} ({declared.paper}), which may not be trained on: "
            f"{declared.not_for_training}."
        )


class _Reader:
    """Reads the sample files of all runs, and notes what it passes over."""

    def __init__(self, taken: Taken, gathering: Gathering) -> None:
        self._taken = taken
        self._gathering = gathering
        self._others: set[str] = set()
        self._unscored: Counter[str] = Counter()
        self._unjudged: dict[str, str] = {}
        self._judges: list[LoggedJudge] = []

    def read(self, run: RunFiles, task: str, model: str) -> None:
        """Takes the verdicts of a task in; a task without any is passed over."""
        digest, count, entry = hashlib.sha256(), 0, entries().get(task)
        one_language = entry.languages[0] if isinstance(entry, Task) and len(entry.languages) == 1 else None
        for sample in samples_of(run.samples_file(task)):
            for judged, text, rating in self._scored(sample, task):
                record = judged.record
                stated = record.groups.get("prompt_language") or record.groups.get("language")
                digest.update(json.dumps([record.item, record.question, text, rating]).encode())
                count += 1
                fingerprint = self._gathering.add(
                    record.question,
                    judged.judge.rubric,
                    RatedAnswer(text, rating, model),
                    references=record.references,
                    language=one_language or language_of(record.question, language=stated),
                    category=record.groups.get("category") or "",
                    culture=kind_of_culture(record.groups.get("culture")),
                )
                if fingerprint is not None:
                    self._gathering.test_items[fingerprint].add((task, record.item))
        if count:
            facts: dict[str, Any] = {
                "name": run.result_file.name,
                "fingerprint": digest.hexdigest()[:16],
                "responses": count,
            }
            self._gathering.sources.append(TrainingSource(kind="results", **facts, model=model, task=task))

    def _scored(self, sample: LoggedSample, task: str) -> Iterator[tuple[JudgedSample, str, float]]:
        """Yields the responses with a scored verdict that counts, without their reasoning, which no judge sees."""
        metric, logged = sample.logged
        if not is_judged(sample):
            self._unjudged[task] = str(logged.get("benchmark", ""))
            return
        judged = judged_sample(sample)
        judge, taken = judged.judge, self._taken
        if metric.endswith(LEXICAL) != taken.text_overlap or taken.judge not in (None, judge.name):
            self._others.add(judge.name)
            return
        self._check_usable(judged, task)
        unscored = [run.outcome for run in judged.record.runs if run.outcome != "scored"]
        self._unscored.update(unscored)
        self._gathering.left_out["unscored_verdicts"] += len(unscored)
        if judged.scored and judge not in self._judges:
            rubric, where = judged.rubric, sample.where
            self._judges.append(judge)
            self._gathering.note_rater(RatedBy(kind="judge", name=judge.name, judges=(judge.model_dump(),)), where)
            self._gathering.note_scale(RatingScale(rubric.lowest, rubric.highest, f"{where}, rubric {rubric.name}"))
        for run in judged.scored.values():
            if run.rating is not None:
                yield judged, answer_in(run.response), run.rating

    def _check_usable(self, judged: JudgedSample, task: str) -> None:
        where = f"{judged.logged.where}: {task}"
        _check_allowed(judged.record.benchmark, where)
        entry = entries().get(task)
        if judged.record.image or (isinstance(entry, Task) and entry.shows_images):
            raise DataError(
                f"preferences: {where} shows images, and the data and recipes written here are of text alone. Choose "
                "tasks of text with --task."
            )
        if not self._taken.test_questions:
            raise DataError(
                f"preferences: {where} is a test. A model that is trained on its questions can't be tested by them any "
                "more. If that is what you want, say so with --train-on-test: the manifest then names the items, and "
                "the report marks the model."
            )

    def why_nothing(self) -> str:
        """Says why there is no response, and what to do."""
        if self._unscored:
            outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._unscored.items()))
            return f"no verdict is scored ({outcomes}). Grade the responses with `culture-tasks rejudge`."
        if self._others:
            others, judge = ", ".join(sorted(self._others)), self._taken.judge
            if judge is not None:
                return f"no verdict of {judge}.{nearest(judge, self._others)} There are: {others}."
            if self._taken.text_overlap:
                return f"nothing was graded by text overlap. Leave out --text-overlap for the verdicts of {others}."
            return (
                f"graded by text overlap alone ({others}), which says little of quality. Grade the responses with "
                "`culture-tasks rejudge`, or use it all the same with --text-overlap."
            )
        for task, benchmark in self._unjudged.items():
            _check_allowed(benchmark, task)
        if self._unjudged:
            return f"no judge grades {', '.join(self._unjudged)}. Choose tasks with a judge's verdicts."
        if self._taken.tasks:
            return "no samples of the tasks. Run them with --log_samples, and look for misspelt names after --task."
        return "no samples. Run the tasks with --log_samples."
