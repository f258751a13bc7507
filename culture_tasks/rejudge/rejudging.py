"""Grading a run again, from its files to new files beside them, in the layout of its harness."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from culture_tasks.benchmarks.interface import JudgedScore
from culture_tasks.benchmarks.registry import benchmarks, metrics_of
from culture_tasks.costs.prices import Prices
from culture_tasks.errors import DataError
from culture_tasks.harness.judge_costs import KEY as COSTS
from culture_tasks.harness.judge_costs import judge_costs
from culture_tasks.harness.records import PROBABILITY, RECORD, JudgedDocument, Records
from culture_tasks.harness.rows import TaskRecords, statistics_of
from culture_tasks.harness.session import Session
from culture_tasks.harness.subsets import Subset, structure_from
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.results.finding import UnusedFile, find
from culture_tasks.results.logged_samples import JudgedSample, check_same_judge, judged_samples
from culture_tasks.results.rows import FILTER, Regraded, keep_tasks, renew_groups, task_row
from culture_tasks.results.run_files import (
    GRADED_FROM,
    SAMPLED,
    RunFiles,
    new_run,
    read_run,
    write_result_file,
    write_samples,
)
from culture_tasks.results.samples import damage
from culture_tasks.secret_texts import shown_value

_log = logging.getLogger(__name__)

Progress = Callable[[Sequence[JudgedDocument]], Iterable[JudgedDocument]]


class _Rewritten(BaseModel):
    """The parts of a result file that a new grading changes."""

    config: dict[str, Any] = {}
    configs: dict[str, dict[str, Any]] = {}
    results: dict[str, dict[str, Any]]
    groups: dict[str, dict[str, Any]] = {}
    group_subtasks: dict[str, list[str]] = {}
    higher_is_better: dict[str, dict[str, Any]] = {}


@dataclass
class TaskToGrade:
    """One task of a run."""

    name: str
    samples: list[JudgedSample]  # its samples, in the order of the file
    subset: Subset | None = None  # what the samples are, if they were drawn from more
    documents: list[JudgedDocument] = field(default_factory=list)  # the same, submitted to the judge; empty before
    records: list[Mapping[str, Any]] = field(default_factory=list)  # their new ones; empty before the verdicts

    @property
    def metric(self) -> str:
        """The metric that is the mean of the judge's scores."""
        return self.samples[0].record.metric

    @property
    def regraded(self) -> Regraded:
        """Its judged metric with the new records."""
        first = self.samples[0].record
        metric = metrics_of(self.name, first.benchmark, self.metric).get(self.metric)
        metric = metric or JudgedScore(name=self.metric, scale=first.scale)
        return Regraded(self.metric, TaskRecords(statistics_of([metric], self.metric, self.records), self.records))


class RunToGrade(NamedTuple):
    """A run that was found."""

    files: RunFiles
    # The result file of the run of the harness that its responses come from; its own where the user named it.
    origin: Path


def find_runs(paths: Sequence[Path]) -> list[RunToGrade]:
    """Finds the runs that files, folders or patterns name, by date; of a regraded run, a folder means its gradings."""
    runs: dict[Path, RunFiles] = {}
    for path in paths:
        search = find([path])
        if not search.results:
            problem = search.problems[0]
            reason = "holds no result file" if path.is_dir() else problem.detail
            raise DataError(
                f"{path if path.is_dir() else problem.path}: {reason}. Expected results_<date>.json (lm-eval) or "
                "<date>_results.json (lmms-eval), written with --output_path, or a folder with result files."
            )
        if search.only:
            raise DataError(f"{path}: a sample file. Name its result file, {search.results[0].name}.")
        runs |= {file: _read(file) for file in search.results if file not in runs}
    # A grading of a sample has less than its run: it takes no run's place, and is graded again only if it is named.
    runs = {
        file: run for file, run in runs.items() if file in paths or SAMPLED not in (run.content.get("config") or {})
    }
    superseded = {run.graded_from for run in runs.values()}
    selection = [
        RunToGrade(run, file if file in paths else _origin(file, runs))
        for file, run in runs.items()
        if file in paths or file not in superseded
    ]
    return sorted(selection, key=lambda run: run.files.result_file.name)


def _origin(file: Path, runs: Mapping[Path, RunFiles]) -> Path:
    """Follows a grading to the run that it started from, through gradings of gradings."""
    visited = {file}
    while file in runs and (source := runs[file].graded_from) is not None and source not in visited:
        file = source
        visited.add(file)
    return file


def _read(path: Path) -> RunFiles:
    run = read_run(path)
    if isinstance(run, UnusedFile):
        raise DataError(f"{run.path}: {run.detail}. Leave the file out, or run it again where the run was cut off.")
    try:
        _Rewritten.model_validate(run.content)
    except ValidationError as error:
        raise DataError(f"{path}, {damage(error)}. The file isn't laid out as a harness does: leave it out.") from None
    return run


def judged_tasks(run: RunFiles) -> list[TaskToGrade]:
    """Reads the tasks of a run that a judge grades."""
    samples_by_name = ((name, judged_samples(run.samples(name))) for name in run.logged_tasks())
    return [TaskToGrade(name, samples) for name, samples in samples_by_name if samples]


def sample_of(run: RunFiles, task: TaskToGrade, number: int) -> TaskToGrade:
    """Draws a number of a task's samples, evenly from cultures and clusters; all of them where there are no more.

    Raises:
        DataError: If the run itself is of a subset.
    """
    if Subset.read((run.content.get("configs") or {}).get(task.name, {}).get("metadata")) is not None:
        raise DataError(
            f"{run.result_file}: {task.name} is of a subset of its documents already, so a sample of it would "
            "say nothing of the others. Leave out --sample."
        )
    if number >= len(task.samples):
        return task
    records = [sample.record for sample in task.samples]
    benchmark = benchmarks().get(records[0].benchmark)
    culture = benchmark.report().culture if benchmark else ""
    structure = structure_from(
        [record.item for record in records],
        [record.cluster for record in records],
        [record.groups.get(culture) for record in records],
    )
    places = structure.draw(number)
    return TaskToGrade(
        task.name, [task.samples[place] for place in sorted(places)], Subset.from_items(structure, places, seed=0)
    )


def runs_for_judge(
    runs: Sequence[tuple[RunToGrade, Sequence[TaskToGrade]]], session: Session, *, failed_only: bool
) -> list[tuple[RunFiles, list[TaskToGrade]]]:
    """Returns the runs that one judge is to grade, the oldest first: of several gradings of a run, the newest.

    Where scored verdicts are kept, it is the newest whose verdicts are this judge's.
    """
    gradings: dict[Path, tuple[RunFiles, Sequence[TaskToGrade]]] = {}
    by_this_judge: set[Path] = set()
    for run, tasks in runs:
        with suppress(DataError):
            if failed_only:
                _check_scored(session, [sample for task in tasks for sample in task.samples], models_to_ask=())
                by_this_judge.add(run.origin)
                gradings[run.origin] = (run.files, tasks)
        if run.origin not in by_this_judge:
            gradings[run.origin] = (run.files, tasks)
    return [
        (files, [TaskToGrade(task.name, task.samples, task.subset) for task in tasks])
        for files, tasks in gradings.values()
    ]


def check_judges(session: Session, tasks: Iterable[TaskToGrade], *, failed_only: bool) -> None:
    """Makes sure that every judge that will be asked can be used, and is the judge of the verdicts that are kept."""
    samples = [sample for task in tasks for sample in task.samples]
    by_model: dict[str, list[tuple[Rubric, JudgeItem]]] = {}
    for sample in samples:
        if expected := sample.expected(failed_only=failed_only):
            by_model.setdefault(sample.rubric.model, []).extend(expected)
    for model, items in by_model.items():
        session.judge(model).check(items, responses_known=True)
    if failed_only:
        _check_scored(session, samples, models_to_ask=by_model)


def _check_scored(session: Session, samples: Iterable[JudgedSample], models_to_ask: Collection[str]) -> None:
    for sample in samples:
        rubric = sample.rubric
        if sample.scored:
            judge = session.judge(rubric.model).identity(rubric)
            check_same_judge(sample.as_logged["judge"], judge.json, asking=rubric.model in models_to_ask)


def submit(tasks: Sequence[TaskToGrade], *, failed_only: bool) -> None:
    """Submits all samples, so that the verdicts of all tasks are on their way together.

    Those whose prompts begin alike follow each other, so that an endpoint's prompt cache has their beginning.
    """
    samples = [(sample, task.subset) for task in tasks for sample in task.samples]
    documents = {
        id(sample): sample.submit(failed_only=failed_only, more={PROBABILITY: subset.chance} if subset else {})
        for sample, subset in sorted(samples, key=lambda pair: pair[0].prompt_order)
    }
    for task in tasks:
        task.documents = [documents[id(sample)] for sample in task.samples]


def finish(
    run: RunFiles, tasks: Sequence[TaskToGrade], *, progress: Progress, prices: Prices, now: datetime
) -> RunFiles:
    """Waits for the verdicts and writes the new run, whose files ``now`` names, beside the old one.

    It has the tasks that were graded, and the groups all of whose tasks were; the others stay with the old run.
    """
    results = copy.deepcopy(run.content)
    new = new_run(run, results, now)
    for document in progress([document for task in tasks for document in task.documents]):
        document.wait()
    for task in tasks:
        task.records = [document.record() for document in task.documents]
        pairs = zip(task.samples, task.records, strict=True)
        write_samples(new.samples_file(task.name), (sample.regraded(record) for sample, record in pairs))
        _update(results, task)
    groups = renew_groups(results, {task.name: task.regraded for task in tasks})
    keep_tasks(results, {*groups, *(task.name for task in tasks)})
    results.pop(COSTS, None)
    if costs := judge_costs({task.name: task.records for task in tasks}, prices):
        results[COSTS] = costs
    results["config"] = shown_value("", results.get("config") or {})
    results["config"][GRADED_FROM] = run.result_file.name
    if size := max((task.subset.documents for task in tasks if task.subset), default=0):
        results["config"][SAMPLED] = size
    write_result_file(new)
    _log.info("wrote %s", new.result_file)
    return new


def _update(results: dict[str, Any], task: TaskToGrade) -> None:
    """Puts a task's new values, and the metrics that it has now, in place of the old ones."""
    regraded = task.regraded
    row = task_row(results["results"].get(task.name, {}), regraded)
    results["results"][task.name] = row
    better = results.setdefault("higher_is_better", {}).get(task.name, {})
    results["higher_is_better"][task.name] = {
        name: is_better for name, is_better in better.items() if not regraded.is_about(name)
    } | {number.name: number.better for number in regraded.records.statistics if f"{number.name},{FILTER}" in row}
    config = results["configs"][task.name]
    if task.subset is not None:
        config["metadata"] = {**(config.get("metadata") or {}), Subset.key: task.subset.model_dump()}
        row["alias"] = f"{row.get('alias', task.name)} ({task.subset})"
        counts = results.setdefault("n-samples", {}).get(task.name) or {}
        results["n-samples"][task.name] = {**counts, "effective": len(task.samples)}
    if isinstance(config.get("metric_list"), list):
        config["metric_list"] = [{"metric": RECORD, "aggregation": str(Records()), "higher_is_better": True}]
