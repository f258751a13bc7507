"""Ways to grade the responses of finished runs, side by side: what each costs, and how wide the intervals will be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import MeanScore, Scale
from culture_tasks.harness.subsets import Subset
from culture_tasks.metrics.means import mean_and_error
from culture_tasks.metrics.subsets import Components, components, half_width
from culture_tasks.rejudge.estimates import Bounds
from culture_tasks.rejudge.rejudging import TaskToGrade
from culture_tasks.results.loaded_runs import LoadedRun

_FEWEST_PAIRS = 20
"""The fewest responses graded by two judges whose correlation counts."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to grade the responses of a task."""

    task: str
    by: str  # who grades, in words
    # What the judge costs for all runs together; None without a price, or where people alone are yet to grade.
    money: Bounds | None
    # Half the width of the 95 % interval of the score that the judge (or people) would give to all of a model's
    # responses; a range where the agreement of the judges isn't known.
    these: Bounds
    alike: Bounds  # the same for questions like these
    runs: int  # number of gradings that the widths were taken from; 0 where they are assumed
    is_by_people: bool = False  # whether people grade, whose cost isn't known


class Grading(NamedTuple):
    """How a judge's scores of a task vary, as means over runs, and how far another judge's scores explain it."""

    runs: int  # number of runs that this was taken from; 0 where it is assumed
    spread: Components  # the variance components of the scores
    error: float  # the squared standard error of the mean over all responses, for questions like these
    other_judge: str = ""  # who has graded all responses already; empty for nobody
    # The share of the variance that the other judge's scores explain: 0 to 1 where no results tell.
    explained: Bounds = Bounds(0.0, 1.0)


def assumed_components(scale: Scale, *, shared_clusters: bool) -> Components:
    """Returns the variance components of a score on a scale with two ends where no run is known.

    Right and wrong vary as much as they can, ratings by a quarter of their scale; half of it is between clusters.
    """
    width = (scale.high or 0.0) - (scale.low or 0.0)
    total = (width / 2.0) ** 2 if scale.unit in ("share", "percent") else (width / 4.0) ** 2
    between_clusters = total / 2.0 if shared_clusters else 0.0
    return Components(between_clusters, total - between_clusters)


def grading_of(runs: Sequence[LoadedRun], judge: str, *, fallback: Components, size: int) -> Grading:
    """Returns how the scores of a judge's model vary, by the results of one task.

    The judge's own verdicts count, or else another's on the same responses. Of several that graded all, a judge comes
    before text overlap, and then the newest. Scores that are all alike don't tell how scores vary.

    Args:
        runs: The runs of the task, with the gradings of each.
        judge: The judge's model.
        fallback: The variance components where nothing is graded.
        size: Number of responses of a run.
    """
    by_origin: dict[Path, list[LoadedRun]] = {}
    for run in sorted(runs, key=lambda run: (not run.lexical, run.order)):
        if run.columns is not None and run.run.scored > 1:
            by_origin.setdefault(run.result.graded_from or run.result.path, []).append(run)
    spreads, errors, explained, names = [], [], [], {}
    for gradings in by_origin.values():
        judge_runs = [run for run in gradings if run.run.settings.judged_by == judge]
        other_runs = [run for run in gradings if run.result.subset is None and run not in judge_runs]
        if other_runs:
            names[other_runs[-1].run.settings.judged_by] = True
            explained += [share for run in judge_runs if (share := _explained_share(run, other_runs[-1])) is not None]
        for run in reversed(judge_runs or other_runs or gradings):
            columns = run.columns
            assert columns is not None
            mean = mean_and_error(columns.scores, columns.clusters)
            if mean.reason is None:
                spreads.append(components(columns.scores, columns.clusters))
                errors.append(mean.error**2 * run.run.scored / size)
                break
    mean_share = float(np.mean(explained)) if explained else math.nan
    return Grading(
        len(spreads),
        Components(*np.mean(spreads, axis=0).tolist()) if spreads else fallback,
        float(np.mean(errors)) if errors else sum(fallback) / size,
        " or ".join(names),
        Bounds(mean_share, mean_share) if explained else Bounds(0.0, 1.0),
    )


def _explained_share(run: LoadedRun, other_run: LoadedRun) -> float | None:
    """Returns the share of the variance of a judge's scores that another's explain; None of few, or without any."""
    assert run.columns is not None
    assert other_run.columns is not None
    _, first, second = np.intersect1d(run.columns.items, other_run.columns.items, return_indices=True)
    pair = np.stack([run.columns.scores[first], other_run.columns.scores[second]])
    pair = pair[:, ~np.isnan(pair).any(axis=0)]
    if pair.shape[1] < _FEWEST_PAIRS:
        return None
    (variance, covariance), (_, other_variance) = np.cov(pair)
    if not variance or not other_variance:
        return None
    return max(0.0, float(covariance)) ** 2 / float(variance * other_variance)


def ways(
    task: TaskToGrade,
    runs: Sequence[LoadedRun],
    judge: str,
    *,
    money: Bounds | None,
    money_of_sample: Bounds | None,
    people: int | None = None,
) -> list[Way]:
    """Returns the ways to grade a task's responses, the judge on all of them first.

    There are none where all were drawn, or where the score is no mean of the responses' scores.

    Args:
        task: The responses that were drawn of a run.
        runs: The runs of the task, with the gradings of each.
        judge: The judge's model.
        money: What the judge costs for all responses of all runs; None without a price.
        money_of_sample: The same for the drawn ones.
        people: Number of responses of a run that people rate, or all where there are no more; None for none.
    """
    metric = next((run.kind.metrics.get(run.kind.metric) for run in runs if run.kind is not None), None)
    if task.subset is None or not isinstance(metric, MeanScore) or metric.per_cluster is not None:
        return []
    has_shared_clusters = len({sample.record.cluster for sample in task.samples}) < len(task.samples)
    fallback = assumed_components(metric.scale, shared_clusters=has_shared_clusters)
    grading = grading_of(runs, judge, fallback=fallback, size=task.subset.items)
    amounts = {"all": money, "sample": money_of_sample}
    people = None if people is None else min(people, task.subset.items)
    return list(ways_by(grading, task.name, judge, task.subset, money=amounts, people=people))


def ways_by(
    grading: Grading,
    task: str,
    judge: str,
    subset: Subset,
    *,
    money: Mapping[str, Bounds | None],
    people: int | None = None,
) -> Iterator[Way]:
    """Yields the ways by how the scores vary; ``money`` is that for all responses, and for the ``sample``."""
    size, sample = subset.items, subset.documents

    def way(grader: str, cost: Bounds | None, widths: Bounds, *, is_by_people: bool = False) -> Way:
        like_these = [1.96 * math.sqrt(grading.error + (width / 1.96) ** 2) for width in (widths.low, widths.high)]
        return Way(task, grader, cost, widths, Bounds(*like_these), grading.runs, is_by_people)

    def half_widths(n: int, explained: Bounds) -> Bounds:
        variance = sum(grading.spread) * max(1.0 / n - 1.0 / size, 0.0)
        return Bounds(*(1.96 * math.sqrt(variance * (1.0 - share)) for share in (explained.high, explained.low)))

    yield way(f"{judge} on all {size:,}", money["all"], Bounds())
    if grading.other_judge:
        widths = half_widths(sample, grading.explained)
        yield way(f"{judge} on {sample:,}, {grading.other_judge} on all", money["sample"], widths)
    width = half_width(grading.spread, subset.frame, sample)
    yield way(f"{judge} on {sample:,} alone", money["sample"], Bounds(width, width))
    if people is not None:
        cost = None if grading.other_judge else money["all"]
        widths = half_widths(people, Bounds(0.0, 1.0))
        yield way(f"people on {people:,}, {grading.other_judge or judge} on all", cost, widths, is_by_people=True)
