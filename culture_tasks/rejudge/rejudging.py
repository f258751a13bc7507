"""Grading a run again, from its files to new files beside them."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Group
from culture_tasks.benchmarks.registry import entries
from culture_tasks.errors import DataError
from culture_tasks.harness.scoring import JudgedDocument
from culture_tasks.harness.session import Session
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.rejudge.grading import JudgedSample, check_same_judge, grade, judged_samples
from culture_tasks.rejudge.tables import group_values, task_values, without_metrics
from culture_tasks.results.finding import Problem, find
from culture_tasks.results.run_files import (
    GRADED_FROM,
    RunFiles,
    new_run,
    read_run,
    read_samples,
    write_result_file,
    write_samples,
)

_log = logging.getLogger(__name__)

Progress = Callable[[Sequence[JudgedDocument]], Iterable[JudgedDocument]]


@dataclass
class TaskToGrade:
    """One task of a run.

    Attributes:
        name: Its name.
        samples: Its samples, in the order of the file.
        documents: The same, submitted to the judge; empty before.
    """

    name: str
    samples: list[JudgedSample]
    documents: list[JudgedDocument] = field(default_factory=list)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The judged metrics of the task."""
        return self.samples[0].metrics


def find_runs(paths: Sequence[Path]) -> list[RunFiles]:
    """Finds the runs that result files, folders or patterns name.

    Of a run that was graded again, a folder stands for the newest grading alone.

    Raises:
        DataError: If a path does not exist, holds no result file, or a result file can't be read.
    """
    runs: dict[Path, RunFiles] = {}
    for path in paths:
        found = find([path])
        if not found.results:
            problem = found.problems[0]
            said = "holds no result file" if path.is_dir() else problem.detail
            raise DataError(
                f"{path if path.is_dir() else problem.path}: {said}. Needed is results_<date>.json (lm-eval) or "
                "<date>_results.json (lmms-eval), written with --output_path, or a folder that holds such files."
            )
        if found.only:
            raise DataError(f"{path}: a sample file. Needed is its result file, {found.results[0].name}.")
        runs |= {file: _read(file) for file in found.results if file not in runs}
    superseded = {run.graded_from for run in runs.values()}
    return [run for file, run in runs.items() if file in paths or file not in superseded]


def _read(path: Path) -> RunFiles:
    run = read_run(path)
    if isinstance(run, Problem):
        raise DataError(f"{run.path}: {run.detail}. Leave the file out, or run it again where the run was cut off.")
    return run


def judged_tasks(run: RunFiles) -> list[TaskToGrade]:
    """Reads the tasks of a run that a judge grades.

    Raises:
        DataError: If a sample file can't be read, or its records aren't ours.
    """
    tasks = []
    for name in run.logged_tasks():
        path = run.samples_file(name)
        samples = judged_samples(read_samples(path), path)
        if samples:
            tasks.append(TaskToGrade(name, samples))
    return tasks


def check_judges(session: Session, tasks: Iterable[TaskToGrade], *, failed_only: bool) -> None:
    """Makes sure that every judge that will be asked can be used, and may stand beside the verdicts that are kept.

    Raises:
        JudgeError: If one can't be used.
        DataError: If another judge gave the verdicts to keep.
    """
    samples = [sample for task in tasks for sample in task.samples]
    by_model: dict[str, list[tuple[Rubric, JudgeItem]]] = {}
    for sample in samples:
        if expected := sample.expected(failed_only=failed_only):
            by_model.setdefault(sample.rubric.model, []).extend(expected)
    for model, items in by_model.items():
        session.judge(model).check(items, responses_known=True)
    for sample in samples if failed_only else []:
        rubric = sample.rubric
        if sample.kept():
            judge = session.judge(rubric.model).identity(rubric)
            check_same_judge(sample.record["judge"], judge.json, asking=rubric.model in by_model)


def submit(tasks: Iterable[TaskToGrade], *, failed_only: bool) -> None:
    """Submits all samples, so that the verdicts of all tasks are on their way together."""
    for task in tasks:
        task.documents = grade(task.samples, failed_only=failed_only)


def finish(run: RunFiles, tasks: Sequence[TaskToGrade], progress: Progress, now: datetime) -> RunFiles:
    """Waits for the verdicts and writes the new run beside the old one.

    Args:
        run: The old run.
        tasks: Its tasks, submitted.
        progress: Wraps the documents that are waited for.
        now: Time that names the new files.
    """
    results = copy.deepcopy(run.content)
    new = new_run(run, results, now)
    for document in progress([document for task in tasks for document in task.documents]):
        document.wait()
    records: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        pairs = [sample.regraded(document) for sample, document in zip(task.samples, task.documents, strict=True)]
        write_samples(new.samples_file(task.name), (sample for sample, _ in pairs))
        records[task.name] = [of_document for _, of_document in pairs]
        _update(results, run, task, records[task.name])
    _update_groups(results, tasks, records)
    results.setdefault("config", {})[GRADED_FROM] = run.result_file.name
    write_result_file(new)
    _log.info("wrote %s", new.result_file)
    return new


def _update(results: dict[str, Any], run: RunFiles, task: TaskToGrade, records: Sequence[Mapping[str, Any]]) -> None:
    values = task_values(run.harness, task.metrics, records)
    results["results"][task.name] = without_metrics(results["results"].get(task.name, {}), task.metrics) | values
    reported = {key.partition(",")[0] for key in values}
    listed = [{**metric, "aggregation": str(metric["aggregation"])} for metric in task.metrics]
    names = {metric["metric"] for metric in listed}
    kept = [metric for metric in listed if metric["metric"] in reported]
    better = results.setdefault("higher_is_better", {}).get(task.name, {})
    results["higher_is_better"][task.name] = {name: better[name] for name in better if name not in names} | {
        metric["metric"]: metric["higher_is_better"] for metric in kept
    }
    config = results["configs"][task.name]
    if isinstance(config.get("metric_list"), list):
        config["metric_list"] = [*(each for each in config["metric_list"] if each["metric"] not in names), *kept]


def _update_groups(
    results: dict[str, Any], tasks: Sequence[TaskToGrade], records: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    graded = {task.name: task for task in tasks}
    for group, members in results.get("group_subtasks", {}).items():
        inside = [graded[name] for name in members if name in graded]
        if not inside or len(inside) < len(members):
            continue
        metrics = [metric for task in inside for metric in task.metrics]
        known = entries().get(group)
        by_size = known.weight_by_size if isinstance(known, Group) else True
        for part in ("results", "groups"):
            if group in results.get(part, {}):
                of_tasks = [records[task.name] for task in inside]
                results[part][group] = group_values(results[part][group], metrics, of_tasks, weight_by_size=by_size)
