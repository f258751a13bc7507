"""Tasks of the harnesses that aren't ours: one plain column each, from the result files.

``known_tasks.json`` lists the culture tasks among them: which metric counts, which end of it is better, the scale, what
is measured in which languages, and the paper. Of any other task the metric is the one that most of its runs have.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any, Literal

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.report import comparability
from culture_tasks.report.loaded_runs import Entered, LoadedRun
from culture_tasks.report.model import Unit
from culture_tasks.report.other_samples import OtherSamples
from culture_tasks.report.scores import Measured, flags_of, harness_cell

_SHARES = frozenset(("acc", "acc_norm", "acc_mutual_info", "exact_match", "anls"))
"""Metrics of the harnesses themselves that are shares. A task's own ``…_acc`` may as well be in percent."""


@dataclass(frozen=True, slots=True)
class KnownTasks:
    """Tasks of a harness that are about culture.

    Attributes:
        tasks: Patterns of their names.
        about: What they measure, in a few words.
        languages: Languages, in words.
        metrics: Their metrics, the one that counts first, each with the end that is better.
        scale: The scale of these metrics, but for its better end.
        paper: Where they come from.
    """

    tasks: tuple[str, ...]
    about: str
    languages: str
    metrics: Mapping[str, Literal["higher", "lower"]]
    scale: Mapping[str, Any]
    paper: str

    def scale_of(self, metric: str) -> Scale:
        """Returns the scale of one of the metrics."""
        return Scale(**self.scale, better=self.metrics[metric])


@cache
def known_tasks() -> tuple[KnownTasks, ...]:
    """Returns what is known of the harnesses' culture tasks; the first entry with a pattern that fits counts."""
    file = resources.files("culture_tasks.report").joinpath("known_tasks.json")
    entries = json.loads(file.read_text(encoding="utf-8"))
    return tuple(KnownTasks(**{**entry, "tasks": tuple(entry["tasks"])}) for entry in entries)


def known_task(task: str) -> KnownTasks | None:
    """Returns what is known of a task, or None."""
    return next((each for each in known_tasks() if any(fnmatchcase(task, name) for name in each.tasks)), None)


def other_measured(entered: Sequence[Entered], further: Sequence[str] = ()) -> list[Measured]:
    """Returns a unit for each task of a harness that isn't ours, with the samples that its score is the mean of.

    Args:
        entered: The entrants.
        further: Patterns of names of metrics, as ``acc_norm`` or ``mmlu:acc*``, that have a column of their own beside
            that of the metric that counts.

    Raises:
        SettingsError: If one of the patterns fits nothing.
    """
    tasks: dict[str, dict[str, LoadedRun]] = {}
    parts: set[str] = set()
    for one in entered:
        for task, each in one.runs.items():
            if each.run.benchmark is None:
                tasks.setdefault(task, {})[one.entrant.key] = each
                parts.update(each.result.members if each.result.metrics else ())
    rows = {one.entrant.key: one.runs for one in entered}
    samples = OtherSamples()
    found: list[Measured] = []
    for task, runs in tasks.items():
        known = known_task(task)
        main = _known_metric(known, runs) or _usual_metric(runs)
        for metric in _metrics(runs):
            if metric == main or _fits(task, metric, further):
                unit = _unit(task, runs, metric=metric, headline=task not in parts, further=metric != main)
                found.append(_with_samples(unit, runs, rows, samples))
    _refuse_unfitting(further, tasks)
    return found


def _fits(task: str, metric: str, patterns: Sequence[str]) -> bool:
    names = (metric, _without_filter(metric), f"{task}:{metric}", f"{task}:{_without_filter(metric)}")
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _refuse_unfitting(patterns: Sequence[str], tasks: Mapping[str, Mapping[str, LoadedRun]]) -> None:
    metrics = {(task, metric) for task, runs in tasks.items() for metric in _metrics(runs)}
    for pattern in patterns:
        if not any(_fits(task, metric, [pattern]) for task, metric in metrics):
            names = sorted({_without_filter(metric) for _, metric in metrics})
            there = f"There are {', '.join(names[:20])}." if names else "There is no task of the harnesses."
            raise SettingsError(f"report: --other-metrics {pattern} fits no metric.{nearest(pattern, names)} {there}")


def _with_samples(
    unit: Unit,
    runs: Mapping[str, LoadedRun],
    rows: Mapping[str, Mapping[str, LoadedRun]],
    samples: OtherSamples,
) -> Measured:
    """Adds the samples behind the scores; all scores must be the same kind of mean, over the same tasks."""
    behind = (
        {key: samples.behind(each, unit.metric, rows[key], unit.scale.times) for key, each in runs.items()}
        if unit.headline and len(runs) > 1
        else {}
    )
    kinds = Counter(
        (tuple(each.run.task for each in found.runs), found.equal_parts) for found in behind.values() if found
    )
    tasks, equal_parts = kinds.most_common(1)[0][0] if kinds else ((unit.key,), False)
    alike = {
        key: found.runs
        for key, found in behind.items()
        if found and (tuple(each.run.task for each in found.runs), found.equal_parts) == (tasks, equal_parts)
    }
    return Measured(
        unit=unit,
        tasks=tasks,
        equal_parts=equal_parts,
        runs={key: alike.get(key, ()) for key in runs},
        flags={key: frozenset(cell.flags) for key, cell in unit.cells.items()},
        min_coverage=0.0,
    )


def _unit(task: str, runs: Mapping[str, LoadedRun], metric: str, *, headline: bool, further: bool) -> Unit:
    known = known_task(task)
    scale = _scale(known, metric, runs)
    settings = {key: {task: each.run.settings} for key, each in runs.items()}
    weight = {key: (each.result.expected or 0, each.run.date) for key, each in runs.items()}
    usual = settings[comparability.reference(settings, weight)]
    cells = {
        key: harness_cell(
            each, metric, scale=scale, flags=comparability.between(settings[key], usual) | set(flags_of(each))
        )
        for key, each in runs.items()
    }
    name = f"{task}:{metric}" if further else task
    return Unit(
        key=name,
        title=name,
        benchmark=None,
        metric=metric,
        scale=scale,
        about=f"{known.about}; {known.languages}; {known.paper}" if known else "a task of the harness",
        headline=headline,
        cells=cells,
        further=further,
    )


def _metrics(runs: Mapping[str, LoadedRun]) -> Counter[str]:
    """Returns the metrics that have a number, each with how many runs have it, in the order of the files."""
    return Counter(
        name for each in runs.values() for name, value in each.result.metrics.items() if not math.isnan(value)
    )


def _known_metric(known: KnownTasks | None, runs: Mapping[str, LoadedRun]) -> str | None:
    """Returns the metric that counts; where it comes with several filters, the one that most runs have."""
    counts = _metrics(runs)
    for wanted in known.metrics if known else ():
        found = [name for name in counts if _without_filter(name) == wanted]
        if found:
            return max(found, key=lambda name: counts[name])
    return None


def _usual_metric(runs: Mapping[str, LoadedRun]) -> str | None:
    """Returns the metric that most runs have, the first of equals in the order of the files."""
    counts = _metrics(runs)
    return max(counts, key=lambda name: counts[name]) if counts else None


def _without_filter(metric: str) -> str:
    return metric.partition(",")[0]


def _scale(known: KnownTasks | None, metric: str, runs: Mapping[str, LoadedRun]) -> Scale:
    """Returns the scale of a metric: the known one, else a share where it is the harnesses' own, else one without ends.

    No range is concluded from the values; one that they don't keep to isn't the right one.
    """
    name = _without_filter(metric)
    values = [each.result.metrics[metric] for each in runs.values() if metric in each.result.metrics]
    directions = (each.result.higher_is_better.get(name) for each in runs.values())
    higher = next((direction for direction in directions if direction is not None), True)
    better: Literal["higher", "lower"] = "higher" if higher else "lower"
    scales = [known.scale_of(name)] if known and name in known.metrics else []
    if name in _SHARES:
        scales.append(Scale("share", 0.0, 1.0, better=better, digits=3))
    fitting = (scale for scale in scales if all(scale.allows(value) for value in values))
    return next(fitting, Scale("unknown", None, None, better=scales[0].better if scales else better))
