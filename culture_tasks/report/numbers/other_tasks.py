"""Tasks of the harnesses that aren't ours: one plain column each, with the number and the error of the result files.

``known_tasks.json`` lists the culture tasks among them: the metric that counts, its better end and scale, the subject,
the languages and the paper. For any other task, the metric is the one that most of its runs have.
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
from typing import Any, Literal, NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.numbers.estimates import file_number, flags_by_row
from culture_tasks.report.numbers.numbers import Unit
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run

_SHARES = frozenset(("acc", "acc_norm", "acc_mutual_info", "exact_match", "anls"))
"""Metrics of the harnesses themselves that are shares. A task's ``…_acc`` may as well be in percent."""


class KnownTasks(NamedTuple):
    """Tasks of a harness that are about culture, by patterns of their names, and their scale without its better end.

    The first of the metrics counts; each has its better end.
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


def other_units(results: Results) -> list[Unit]:
    """Returns a unit for each task of a harness that isn't ours."""
    tasks: dict[str, dict[str, Run]] = {}
    parts: set[str] = set()
    shared: dict[str, set[str]] = {}
    for run in results.runs:
        if run.benchmark is None:
            tasks.setdefault(run.task, {})[run.row] = run
            shared[run.task] = shared.get(run.task, set()) | _scores_of_all_parts(run, results.of(run.row))
            parts.update(run.members if shared[run.task] else ())
    main_metrics = {task: _main_metric(known_task(task), runs, shared[task]) for task, runs in tasks.items()}
    return [
        _unit(results, task, tasks[task], metric, headline=task not in parts)
        for task, metric in main_metrics.items()
        if metric is not None
    ]


def _scores_of_all_parts(run: Run, model_runs: Mapping[str, Run]) -> set[str]:
    """Returns the metrics of a task; of a group with several, those that each task below it has, perhaps none."""
    below = [model_runs[leaf].metrics for leaf in _leaves(run.task, model_runs) if leaf in model_runs]
    metrics = set(run.metrics)
    return metrics if len(metrics) < 2 else metrics.intersection(*below)


def _leaves(task: str, model_runs: Mapping[str, Run], above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yields the tasks below a group, or a task itself."""
    members: Sequence[str] = model_runs[task].members if task in model_runs else ()
    for member in members or (task,):
        if member in (task, *above) or not members:
            yield member
        else:
            yield from _leaves(member, model_runs, above | {task})


def _unit(results: Results, task: str, runs: Mapping[str, Run], metric: str, *, headline: bool) -> Unit:
    entry = known_task(task)
    about = f"{entry.about}; {entry.languages}; {entry.paper}" if entry else "a task of the harness"
    scale, flags = _scale(entry, metric, runs), flags_by_row({row: [run] for row, run in runs.items()}, results)
    cells = {
        row: replace(file_number(run, metric, scale, set(flags[row])), row=row, unit=task) for row, run in runs.items()
    }
    unit = Unit(task, task, None, metric, scale, about, headline, cells, tasks=(task,))
    return replace(unit, runs=dict.fromkeys(runs, ()), flags=flags, results=results)


def _main_metric(entry: KnownTasks | None, runs: Mapping[str, Run], usable: set[str]) -> str | None:
    """Returns the metric that counts: the entry's, else any; of several, as with filters, the one of most runs."""
    counts = Counter(
        name for run in runs.values() for name, value in run.metrics.items() if name in usable and not math.isnan(value)
    )
    for metric in entry.metrics if entry else ():
        if names := [name for name in counts if _without_filter(name) == metric]:
            return max(names, key=lambda name: counts[name])
    return max(counts, key=lambda name: counts[name]) if counts else None


def _without_filter(metric: str) -> str:
    return metric.partition(",")[0]


def _scale(entry: KnownTasks | None, metric: str, runs: Mapping[str, Run]) -> Scale:
    """Returns the scale of a metric: the entry's or a share, unless a value lies outside, else one without ends."""
    name = _without_filter(metric)
    values = [run.metrics[metric] for run in runs.values() if metric in run.metrics]
    directions = (run.higher_is_better.get(name) for run in runs.values())
    higher = next((direction for direction in directions if direction is not None), True)
    better: Literal["higher", "lower"] = "higher" if higher else "lower"
    scales = [Scale(**entry.scale, better=entry.metrics[name])] if entry and name in entry.metrics else []
    if name in _SHARES:
        scales.append(Scale("share", 0.0, 1.0, better=better, digits=3))
    fitting = (scale for scale in scales if all(scale.allows(value) for value in values))
    return next(fitting, Scale("unknown", None, None, better=scales[0].better if scales else better))
