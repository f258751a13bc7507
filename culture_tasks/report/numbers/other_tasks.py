"""Tasks of the harnesses that aren't ours: one plain column each, from the result files.

``known_tasks.json`` lists the culture tasks among them: the metric that counts, its better end and scale, the subject,
the languages and the paper. For any other task, the metric is the one that most of its runs have.

A harness logs a task's metrics with each sample, and doesn't say whether they are scores whose mean is the result, or
parts of another statistic. So a sample file counts only where the mean over its samples is the harness's number.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.errors import DataError, SettingsError, hint
from culture_tasks.report.model import Unit
from culture_tasks.report.numbers.observations import is_same_number
from culture_tasks.report.numbers.scores import Measured, flags_by_row, harness_cell
from culture_tasks.results.columns import Codebook, Columns
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun
from culture_tasks.results.samples import samples_of

_SHARES = frozenset(("acc", "acc_norm", "acc_mutual_info", "exact_match", "anls"))
"""Metrics of the harnesses themselves that are shares. A task's ``…_acc`` may as well be in percent."""


class KnownTasks(NamedTuple):
    """Tasks of a harness that are about culture, by patterns of their names.

    Attributes:
        metrics: Their metrics, each with its better end; the first one counts.
        scale: The scale of these metrics, without its better end.
    """

    tasks: Sequence[str]
    about: str
    languages: str
    metrics: Mapping[str, Literal["higher", "lower"]]
    scale: Mapping[str, Any]
    paper: str


@cache
def known_tasks() -> tuple[KnownTasks, ...]:
    """Returns the entries on the harnesses' culture tasks; the first entry with a fitting pattern counts."""
    file = resources.files("culture_tasks.report").joinpath("known_tasks.json")
    entries = json.loads(file.read_text(encoding="utf-8"))
    return tuple(KnownTasks(**entry) for entry in entries)


def known_task(task: str) -> KnownTasks | None:
    """Returns the entry on a task, or None."""
    return next((entry for entry in known_tasks() if any(fnmatchcase(task, name) for name in entry.tasks)), None)


def other_measured(entered: Sequence[EntrantRuns], further: Sequence[str] = ()) -> list[Measured]:
    """Returns a unit for each task of a harness that isn't ours, with the samples that its score is the mean of.

    Patterns such as ``acc_norm`` or ``mmlu:acc*``, each of which must fit a metric, add further columns.
    """
    tasks: dict[str, dict[str, LoadedRun]] = {}
    parts: set[str] = set()
    shared: dict[str, set[str]] = {}
    for row in entered:
        for task, run in row.runs.items():
            if run.run.benchmark is None:
                tasks.setdefault(task, {})[row.entrant.key] = run
                shared[task] = shared.get(task, set()) | _scores_of_all_parts(run, row.runs)
                parts.update(run.result.members if shared[task] else ())
    metrics = {(task, metric) for task, runs in tasks.items() for metric in _metrics(runs)}
    for pattern in further:
        if not any(_fits(task, metric, pattern) for task, metric in metrics):
            names = sorted({_without_filter(metric) for _, metric in metrics})
            suggestion = hint(pattern, names) or " There is no task of the harnesses."
            raise SettingsError(f"report: --other-metrics {pattern} fits no metric.{suggestion}")
    rows = {row.entrant.key: row.runs for row in entered}
    samples = _Samples()
    units: list[Measured] = []
    for task, task_runs in tasks.items():
        main = _main_metric(known_task(task), task_runs, shared[task])
        for metric in _metrics(task_runs):
            if metric == main or any(_fits(task, metric, pattern) for pattern in further):
                unit = _unit(task, task_runs, metric=metric, headline=task not in parts, further=metric != main)
                kinds = {}
                if unit.headline and len(task_runs) > 1:
                    kinds = {key: samples.behind(run, unit, rows[key]) for key, run in task_runs.items()}
                units.append(_with_samples(unit, kinds))
    return units


def _scores_of_all_parts(run: LoadedRun, model_runs: Mapping[str, LoadedRun]) -> set[str]:
    """Returns the metrics of a task; of a group with several, those that each task below it has, perhaps none."""
    below = [model_runs[leaf].result.metrics for leaf in _leaves(run.run.task, model_runs) if leaf in model_runs]
    metrics = set(run.result.metrics)
    return metrics if len(metrics) < 2 else metrics.intersection(*below)


def _fits(task: str, metric: str, pattern: str) -> bool:
    names = (metric, _without_filter(metric))
    return any(fnmatchcase(name, pattern) for name in (*names, *(f"{task}:{name}" for name in names)))


def _with_samples(unit: Unit, means: Mapping[str, tuple[_Kind, tuple[LoadedRun, ...]]]) -> Measured:
    """Adds the samples behind the scores; all scores must be the same kind of mean, over the same tasks."""
    kinds = Counter(kind for kind, behind in means.values() if behind)
    usual = kinds.most_common(1)[0][0] if kinds else ((unit.key,), False)
    runs = {key: behind for key, (kind, behind) in means.items() if kind == usual}
    flags = {key: frozenset(cell.flags) for key, cell in unit.cells.items()}
    return Measured(unit, *usual, runs={key: runs.get(key, ()) for key in unit.cells}, flags=flags)


def _unit(task: str, runs: Mapping[str, LoadedRun], metric: str, *, headline: bool, further: bool) -> Unit:
    entry = known_task(task)
    scale = _scale(entry, metric, runs)
    flags = flags_by_row({key: [run] for key, run in runs.items()}, lambda run: run.result.expected or 0)
    cells = {key: harness_cell(run, metric, scale, set(flags[key])) for key, run in runs.items()}
    about = f"{entry.about}; {entry.languages}; {entry.paper}" if entry else "a task of the harness"
    name = f"{task}:{metric}" if further else task
    return Unit(name, name, None, metric, scale, about, headline=headline, cells=cells, further=further)


def _metrics(runs: Mapping[str, LoadedRun]) -> Counter[str]:
    """Returns the metrics with a number, and how many runs have each, in the order of the files."""
    return Counter(name for run in runs.values() for name, value in run.result.metrics.items() if not math.isnan(value))


def _main_metric(entry: KnownTasks | None, runs: Mapping[str, LoadedRun], usable: set[str]) -> str | None:
    """Returns the metric that counts: the entry's, else any; of several, as with filters, the one of most runs."""
    counts = {metric: count for metric, count in _metrics(runs).items() if metric in usable}
    for metric in entry.metrics if entry else ():
        if names := [name for name in counts if _without_filter(name) == metric]:
            return max(names, key=lambda name: counts[name])
    return max(counts, key=lambda name: counts[name]) if counts else None


def _without_filter(metric: str) -> str:
    return metric.partition(",")[0]


def _scale(entry: KnownTasks | None, metric: str, runs: Mapping[str, LoadedRun]) -> Scale:
    """Returns the scale of a metric: the entry's or a share, unless a value lies outside, else one without ends."""
    name = _without_filter(metric)
    values = [run.result.metrics[metric] for run in runs.values() if metric in run.result.metrics]
    directions = (run.result.higher_is_better.get(name) for run in runs.values())
    higher = next((direction for direction in directions if direction is not None), True)
    better: Literal["higher", "lower"] = "higher" if higher else "lower"
    scales = [Scale(**entry.scale, better=entry.metrics[name])] if entry and name in entry.metrics else []
    if name in _SHARES:
        scales.append(Scale("share", 0.0, 1.0, better=better, digits=3))
    fitting = (scale for scale in scales if all(scale.allows(value) for value in values))
    return next(fitting, Scale("unknown", None, None, better=scales[0].better if scales else better))


# The samples behind the scores, for paired tests


_Kind = tuple[tuple[str, ...], bool]
"""The tasks of a mean, and whether each task has the same weight, rather than each item."""


class _Samples:
    """Reads the samples of tasks that aren't ours; items are numbered over all tasks and runs."""

    def __init__(self) -> None:
        self._codes: Codebook = {}
        self._files: dict[Path, Mapping[str, Columns]] = {}

    def behind(
        self, run: LoadedRun, unit: Unit, model_runs: Mapping[str, LoadedRun]
    ) -> tuple[_Kind, tuple[LoadedRun, ...]]:
        """Returns the kind of mean that a score is, and the runs with its samples, if any: of a group, its members."""
        tasks = tuple(dict.fromkeys(_leaves(run.run.task, model_runs)))
        runs = [model_runs[task] for task in tasks if task in model_runs]
        columns = [self._read(member).get(unit.metric) for member in runs]
        parts = [part for part in columns if part is not None]
        if not runs or len(parts) < len(tasks):
            return (tasks, False), ()
        score = run.result.metrics.get(unit.metric, math.nan)
        is_mean_of_items = is_same_number(score, float(np.mean(np.concatenate([part.scores for part in parts]))))
        if not is_mean_of_items and not is_same_number(score, float(np.mean([part.scores.mean() for part in parts]))):
            return (tasks, False), ()
        return (tasks, not is_mean_of_items), tuple(
            replace(member, columns=replace(part, scores=part.scores * unit.scale.times))
            for member, part in zip(runs, parts, strict=True)
        )

    def _read(self, run: LoadedRun) -> Mapping[str, Columns]:
        path = run.result.samples_file
        if path not in self._files:
            try:
                self._files[path] = dict(_columns(run, self._codes))
            except (OSError, DataError):
                self._files[path] = {}
        return self._files[path]


def _leaves(task: str, model_runs: Mapping[str, LoadedRun], above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yields the tasks below a group, or a task itself."""
    members: Sequence[str] = model_runs[task].result.members if task in model_runs else ()
    for member in members or (task,):
        if member in (task, *above) or not members:
            yield member
        else:
            yield from _leaves(member, model_runs, above | {task})


def _columns(run: LoadedRun, codes: Codebook) -> Iterator[tuple[str, Columns]]:
    """Yields the scores of each metric, but not where a sample lacks a number or an item occurs twice."""
    metrics = {metric: metric.partition(",")[::2] for metric in run.result.metrics}
    scores: dict[str, dict[int, float]] = {metric: {} for metric in metrics}
    for sample in (line.content for line in samples_of(run.result.samples_file, run.result.expected)):
        # An item is identified by its place in the data and its expected answer, so that other data have other items.
        name = f"{run.run.task} {sample.get('doc_id')} {sample.get('target_hash') or sample.get('target')}"
        item = codes.setdefault(name, len(codes))
        for metric, (key, filtered) in list(metrics.items()):
            # lmms-eval's samples name no filter: they are of the only one.
            if str(sample.get("filter", filtered or "none")) != (filtered or "none"):
                continue
            value = sample.get(key)
            value = value.get("score") if isinstance(value, dict) else value  # as lmms-eval logs some
            if isinstance(value, (bool, int, float)) and math.isfinite(value) and item not in scores[metric]:
                scores[metric][item] = float(value)
            else:
                del metrics[metric]
    for metric in metrics:
        item_scores = scores[metric]
        if item_scores and run.result.expected in (None, len(item_scores)):
            items, counts = np.array(list(item_scores), dtype=np.int32), np.ones(len(item_scores), dtype=np.int32)
            numbers, offsets = np.array(list(item_scores.values())), np.zeros(len(item_scores), dtype=np.int64)
            yield metric, Columns(items, numbers, counts, counts, items, offsets, groups={}, further={})
