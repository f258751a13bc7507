"""Tasks of the harnesses that aren't ours: one plain column each, from the result files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report import comparability
from culture_tasks.report.loading import Entered, LoadedRun
from culture_tasks.report.model import Cell, Unit
from culture_tasks.report.scores import harness_cell, ranked

_SHARES = re.compile(r"(^|_)(acc|accuracy|acc_norm|exact_match|em|f1|anls|match|recall|precision)($|_|,)")


def other_units(entered: Sequence[Entered], rankable: Callable[[Cell], bool] | None = None) -> list[Unit]:
    """Returns a unit for each task of a harness that isn't ours, with the metric that most of its runs have.

    Args:
        entered: The entrants.
        rankable: Whether a cell may be ranked; None ranks those that can be compared.
    """
    tasks: dict[str, dict[str, LoadedRun]] = {}
    parts: set[str] = set()
    for one in entered:
        for task, each in one.runs.items():
            if each.run.benchmark is None:
                tasks.setdefault(task, {})[one.entrant.key] = each
                parts.update(each.result.members if each.result.metrics else ())
    units = (_unit(task, runs, task not in parts) for task, runs in tasks.items())
    return [replace(unit, cells=ranked(unit.cells, unit.scale, rankable)) for unit in units if unit is not None]


def _unit(task: str, runs: Mapping[str, LoadedRun], headline: bool) -> Unit | None:
    metric = _metric(runs)
    if metric is None:
        return None
    scale = _scale(metric, runs)
    settings = {key: {task: each.run.settings} for key, each in runs.items()}
    usual = settings[
        comparability.reference(
            settings, {key: (each.result.expected or 0, each.run.date) for key, each in runs.items()}
        )
    ]
    cells = {
        key: harness_cell(each, metric, scale, comparability.between(settings[key], usual) | {"from_result_file"})
        for key, each in runs.items()
    }
    return Unit(task, task, None, metric, scale, "a task of the harness", headline, cells)


def _metric(runs: Mapping[str, LoadedRun]) -> str | None:
    """Returns the metric that most runs have, the first of equals in the order of the files."""
    counts = Counter(
        name
        for each in runs.values()
        for name, value in each.result.metrics.items()
        if value == value  # not NaN
    )
    return max(counts, key=lambda name: counts[name]) if counts else None


def _scale(metric: str, runs: Mapping[str, LoadedRun]) -> Scale:
    """Returns the scale of a metric: a share where its name says so and every value is one, else one without ends."""
    name = metric.split(",")[0]
    higher = next(
        (each.result.higher_is_better[name] for each in runs.values() if name in each.result.higher_is_better), True
    )
    better = "higher" if higher else "lower"
    values = [each.result.metrics[metric] for each in runs.values() if metric in each.result.metrics]
    if _SHARES.search(metric) and all(0.0 <= value <= 1.0 for value in values if value == value):  # not NaN
        return Scale("share", 0.0, 1.0, better=better, digits=3)  # type: ignore[arg-type]
    return Scale("unknown", None, None, better=better)  # type: ignore[arg-type]
