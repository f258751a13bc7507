"""Grading runs again, from their files to new files beside them, in the layout of their harness."""

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
from culture_tasks.harness.rows import FILTER, TaskRecords
from culture_tasks.harness.session import Session, hold_session
from culture_tasks.harness.subsets import Subset, structure_from
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.results.finding import UnusedFile, find
from culture_tasks.results.logged_samples import JudgedSample, check_same_judge, judged_samples
from culture_tasks.results.rows import Regraded, keep_tasks, renew_groups, task_row
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


class TaskToGrade(NamedTuple):
    """One task of a run, with its samples in the order of the file."""

    name: str
    samples: Sequence[JudgedSample]
    subset: Subset | None = None  # what the samples are, if they were drawn from more

    @property
    def metric(self) -> str:
        """The metric that is the mean of the judge's scores."""
        return self.samples[0].record.metric

    def regraded(self, records: Sequence[Mapping[str, Any]]) -> Regraded:
        """Returns its judged metric with new records."""
        first = self.samples[0].record
        metric = metrics_of(self.name, first.benchmark, self.metric).get(self.metric)
        metric = metric or JudgedScore(name=self.metric, scale=first.scale)
        return Regraded(self.metric, TaskRecords.of([metric], self.metric, records))


class RunToGrade(NamedTuple):
    """A run that was found, and those of its tasks that a judge grades, once they are read."""

    files: RunFiles
    # The result file of the run of the harness that its responses come from; its own where the user named it.
    origin: Path
    tasks: Sequence[TaskToGrade] = ()


def find_runs(paths: Sequence[Path]) -> list[RunToGrade]:
    """Finds the runs that files, folders or patterns name, by date; of a regraded run, a folder means its gradings.

    A grading of a sample has less than its run: it takes no run's place, and is graded again only if it is named.
    """
    runs: dict[Path, RunFiles] = {}
    for path in paths:
        search = find([path])
        if not search.results:
            problem = search.problems[0]
            raise DataError(
                f"{problem.path}: {problem.detail}. Expected results_<date>.json (lm-eval) or <date>_results.json "
                "(lmms-eval), written with --output_path, or a folder with result files."
            )
        if search.only:
            raise DataError(f"{path}: a sample file. Name its result file, {search.results[0].name}.")
        for file in search.results:
            run = runs.get(file) or _read(file)
            if file in paths or SAMPLED not in (run.content.get("config") or {}):
                runs[file] = run
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


def judged_runs(paths: Sequence[Path], *, sample: int | None = None) -> list[RunToGrade]:
    """Finds the runs that have tasks which a judge grades, with these, or a sample of each."""
    runs = []
    for run in find_runs(paths):
        tasks = judged_tasks(run.files)
        if sample is not None:
            tasks = [sample_of(run.files, task, sample) for task in tasks]
        runs += [run._replace(tasks=tasks)] if tasks else []
    if not runs:
        raise DataError(
            "rejudge: none of these runs has logged samples that a judge grades. Expected runs of a judged benchmark "
            "with --log_samples and --output_path."
        )
    return runs


def judged_tasks(run: RunFiles) -> list[TaskToGrade]:
    """Reads the tasks of a run that a judge grades."""
    samples_by_name = ((name, judged_samples(run.samples(name))) for name in run.logged_tasks())
    return [TaskToGrade(name, samples) for name, samples in samples_by_name if samples]


def sample_of(run: RunFiles, task: TaskToGrade, number: int) -> TaskToGrade:
    """Draws a number of a task's samples, evenly from cultures and clusters; all of them where there are no more."""
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


@dataclass
class Rejudging:
    """The runs that one judge grades again; ``failed_only`` keeps the verdicts that were scored."""

    session: Session
    failed_only: bool
    runs: list[RunToGrade]
    _documents: dict[int, JudgedDocument] = field(default_factory=dict)  # by the samples' identities

    @classmethod
    def of(cls, runs: Iterable[RunToGrade], session: Session, *, failed_only: bool) -> Rejudging:
        """Chooses from runs, the oldest first: of several gradings of a run, the newest.

        Where scored verdicts are kept, it is the newest whose verdicts are this judge's.
        """
        gradings: dict[Path, RunToGrade] = {}
        by_this_judge: set[Path] = set()
        for run in runs:
            with suppress(DataError):
                if failed_only:
                    _check_scored(session, [sample for task in run.tasks for sample in task.samples], models_to_ask=())
                    by_this_judge.add(run.origin)
                    gradings[run.origin] = run
            if run.origin not in by_this_judge:
                gradings[run.origin] = run
        return cls(session, failed_only, list(gradings.values()))

    @property
    def _tasks(self) -> list[TaskToGrade]:
        return [task for run in self.runs for task in run.tasks]

    def check(self) -> None:
        """Makes sure that each judge that will be asked can be used, and is the judge of the verdicts that are kept."""
        samples = [sample for task in self._tasks for sample in task.samples]
        by_model: dict[str, list[tuple[Rubric, JudgeItem]]] = {}
        for sample in samples:
            if expected := sample.expected(failed_only=self.failed_only):
                by_model.setdefault(sample.rubric.model, []).extend(expected)
        for model, items in by_model.items():
            self.session.judge(model).check(items, responses_known=True)
        if self.failed_only:
            _check_scored(self.session, samples, models_to_ask=by_model)

    def submit(self) -> None:
        """Submits all samples, so that the verdicts of all tasks are on their way together.

        Those whose prompts begin alike follow each other, so that an endpoint's prompt cache has their beginning.
        """
        hold_session(self.session)
        pairs = [(sample, task.subset) for task in self._tasks for sample in task.samples]
        for sample, subset in sorted(pairs, key=lambda pair: pair[0].prompt_order):
            more = {PROBABILITY: subset.chance} if subset else {}
            self._documents[id(sample)] = sample.submit(failed_only=self.failed_only, more=more)

    def write(self, run: RunToGrade, *, progress: Progress, prices: Prices) -> RunFiles:
        """Waits for the verdicts of a run, and writes it anew beside the old one.

        The new run has the tasks that were graded, and the groups all of whose tasks were.
        """
        content = copy.deepcopy(run.files.content)
        new = new_run(run.files, content, datetime.now())
        for document in progress([self._documents[id(sample)] for task in run.tasks for sample in task.samples]):
            document.wait()
        records: dict[str, list[dict[str, Any]]] = {}
        for task in run.tasks:
            records[task.name] = [self._documents[id(sample)].record() for sample in task.samples]
            pairs = zip(task.samples, records[task.name], strict=True)
            write_samples(new.samples_file(task.name), (sample.regraded(record) for sample, record in pairs))
        _update(content, run.tasks, records)
        content.pop(COSTS, None)
        if costs := judge_costs(records, prices):
            content[COSTS] = costs
        content["config"][GRADED_FROM] = run.files.result_file.name
        write_result_file(new)
        _log.info("wrote %s", new.result_file)
        return new


def _check_scored(session: Session, samples: Iterable[JudgedSample], models_to_ask: Collection[str]) -> None:
    for sample in samples:
        rubric = sample.rubric
        if sample.scored:
            judge = session.judge(rubric.model).identity(rubric)
            check_same_judge(sample.as_logged["judge"], judge.json, asking=rubric.model in models_to_ask)


def _update(content: dict[str, Any], tasks: Sequence[TaskToGrade], records: Mapping[str, Sequence[Any]]) -> None:
    """Puts the tasks' new values, and the metrics that they have now, in place of the old ones."""
    content["config"] = shown_value("", content.get("config") or {})
    regraded = {task.name: task.regraded(records[task.name]) for task in tasks}
    for task in tasks:
        new, config = regraded[task.name], content["configs"][task.name]
        row = content["results"][task.name] = task_row(content["results"].get(task.name, {}), new)
        better = content.setdefault("higher_is_better", {}).get(task.name, {})
        content["higher_is_better"][task.name] = {
            name: is_better for name, is_better in better.items() if not new.is_about(name)
        } | {name: number.better for name, number in new.records.numbers.items() if f"{name},{FILTER}" in row}
        if isinstance(config.get("metric_list"), list):
            config["metric_list"] = [{"metric": RECORD, "aggregation": str(Records()), "higher_is_better": True}]
        if task.subset is not None:
            config["metadata"] = {**(config.get("metadata") or {}), Subset.key: task.subset.model_dump()}
            row["alias"] = f"{row.get('alias', task.name)} ({task.subset})"
            counts = content.setdefault("n-samples", {}).get(task.name) or {}
            content["n-samples"][task.name] = {**counts, "effective": len(task.samples)}
            content["config"][SAMPLED] = max(task.subset.documents, content["config"].get(SAMPLED, 0))
    groups = renew_groups(content, regraded)
    keep_tasks(content, {*groups, *regraded})
