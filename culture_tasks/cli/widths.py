"""``culture-tasks cost --width``: how many questions of a task an interval of a given width needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from culture_tasks.benchmarks.interface import MeanScore, Task
from culture_tasks.benchmarks.registry import check_revisions, entries
from culture_tasks.errors import DataError
from culture_tasks.harness.subsets import structure_of
from culture_tasks.metrics.subsets import Components, components, half_width, population
from culture_tasks.rejudge.estimates import Bounds
from culture_tasks.report.numbers.selection import Selection, select
from culture_tasks.results.loading import Names, load, newest
from culture_tasks.results.runs import Run
from culture_tasks.settings import Settings


@dataclass(frozen=True, slots=True)
class WidthEstimate:
    """The questions of a task that an interval needs, beside those of earlier runs, from the fewest to the most."""

    task: str
    questions: Bounds
    interval: Bounds  # half its width in points of 100 of the score's scale
    needed: int
    documents: int  # of the task


def width_estimates(
    paths: Iterable[str], tasks: Sequence[Task], width: float, settings: Settings
) -> tuple[list[tuple[Task, WidthEstimate]], list[str]]:
    """Returns the estimates of the tasks of runs (of some, or all), and the names of those that have none.

    Gradings of samples don't count, as their runs do already, nor does the lexical judge, since text overlap varies in
    other ways than verdicts.
    """
    by_task: dict[str, list[tuple[Run, Selection]]] = {}
    results = load(list(paths), Names())
    for run, superseded in newest(results.runs):
        is_sample = run.subset is not None and run.graded_from is not None
        if superseded is None and run.has_samples and not is_sample and not run.is_lexical:
            by_task.setdefault(run.task, []).append((run, select(results, [run], [run.task])))
    estimates: list[tuple[Task, WidthEstimate]] = []
    left_out: list[str] = []
    for name, runs in by_task.items():
        task = entries().get(name)
        if isinstance(task, Task) and (not tasks or task in tasks):
            estimate = _width_estimate(task, runs, width, settings)
            if estimate is None:
                left_out.append(name)
            else:
                estimates.append((task, estimate))
    if not estimates:
        raise DataError(
            "cost: no task of these runs has logged samples, scores that vary (the lexical judge's don't count), and "
            "their mean as its score."
        )
    return estimates, left_out


def _width_estimate(
    task: Task, runs: Sequence[tuple[Run, Selection]], width: float, settings: Settings
) -> WidthEstimate | None:
    """Returns how many questions, drawn by ``CULTURE_SUBSET``, are enough for a width in points of 100 of the scale.

    The variance components, between clusters and within, are means over the runs whose scores vary; every larger number
    is assumed to be enough, too. None without such a run, or where the score is no mean on a scale with two ends.
    """
    metric = next(metric for metric in task.metrics() if metric.name == task.metric)
    parts_of_runs = [(run, samples, components(samples.scores, samples.clusters)) for run, samples in runs]
    varying = [(run, samples, parts) for run, samples, parts in parts_of_runs if sum(parts) > 0.0]
    if not varying or not isinstance(metric, MeanScore) or metric.scale.ends is None:
        return None
    point = (metric.scale.ends[1] - metric.scale.ends[0]) / 100.0
    sizes = [run.items for run, _, _ in varying]
    intervals = [samples.interval(metric.scale) for _, samples, _ in varying]
    widths = [(each.high - each.low) / 2.0 / point for each in intervals]
    spread = Components(*np.mean([parts for _, _, parts in varying], axis=0).tolist())
    check_revisions(settings)
    rows = task.data.load(settings).rows
    structure = structure_of(task.name, rows)
    order = structure.draw(len(structure.items))

    def is_narrow(n: int) -> bool:
        return half_width(spread, population(order[:n], structure.clusters), n) <= width * point

    items = bisect_left(range(len(order)), True, lo=min(2, len(order)), key=is_narrow)
    return WidthEstimate(
        task.name,
        questions=Bounds(min(sizes), max(sizes)),
        interval=Bounds(min(widths), max(widths)),
        needed=round(items * len(rows) / len(order)),
        documents=len(rows),
    )
