"""``culture-tasks plan``: how many questions of each task are enough, and what they cost, before anything is run."""

from __future__ import annotations

import argparse
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import special

from culture_tasks.benchmarks.interface import MeanScore, Scale, Task
from culture_tasks.benchmarks.registry import reading_data
from culture_tasks.cli.cost import estimator_of, judge_and_prices
from culture_tasks.cli.options import (
    AddParser,
    add_json,
    add_judge_and_prices,
    add_tasks,
    between_0_and_1,
    matching_tasks,
    positive,
    print_json,
)
from culture_tasks.costs.prices import Prices
from culture_tasks.errors import SettingsError
from culture_tasks.harness.subsets import structure_of
from culture_tasks.judges.selection import parse_spec
from culture_tasks.metrics.subsets import Components, components, half_width, population
from culture_tasks.rejudge.estimates import (
    Bounds,
    duration,
    money_text,
    seconds_by_document,
    sum_of_money,
    total_by_judge,
)
from culture_tasks.report.wording import counted
from culture_tasks.results.loaded_runs import LoadedRun, Names, load
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown

_DESCRIPTION = """\
Says how many questions of each task, drawn by CULTURE_SUBSET, give an interval of a half width or show a difference of
two models, and what a judge costs for them. The variance of scores and the time of a run are taken from earlier results
of any models; without results, scores are assumed to vary as much as they can.
For example: culture-tasks plan --tasks culturalbench_easy --width 3 --results results/
"""
_CORRELATION = 0.5
"""That of two models' scores, where no results tell."""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    add_tasks(parser, "tasks, groups or tags, as for a run", required=True)
    width = "half the width of the 95 %% interval of a score, on the metric's scale"
    parser.add_argument("--width", type=positive, metavar="POINTS", help=width)
    difference = "difference of two models that a test is to find, on the metric's scale"
    parser.add_argument("--difference", type=positive, metavar="POINTS", help=difference)
    power = "how often the test is to find it (default: %(default)s)"
    parser.add_argument("--power", type=between_0_and_1, default=0.8, metavar="SHARE", help=power)
    results = "earlier runs with logged samples: result files, folders with result files, or patterns"
    parser.add_argument("--results", nargs="+", default=[], metavar="PATH", help=results)
    add_judge_and_prices(parser)
    add_json(parser)
    parser.set_defaults(handler=_run)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many documents of a task are enough: None where all of them aren't, and where no goal was set.

    ``models`` is the number of earlier runs that the variance was taken from, ``pairs`` that of two models with
    the same judge whose differences vary. ``seconds`` is the time of one run, by the fastest and by the slowest of the
    earlier runs; None where none says so.
    """

    task: str
    documents: int
    clusters: int
    models: int
    pairs: int
    for_width: int | None
    for_difference: int | None
    money: Bounds | None = None
    seconds: Bounds | None = None


def _run(options: argparse.Namespace) -> int:
    if options.width is None and options.difference is None:
        raise SettingsError("plan: neither --width nor --difference is given. Give one, such as --width 3.")
    settings, prices = judge_and_prices(options)
    settings = settings.model_copy(update={"subset": None})
    all_runs = load(options.results, Names()).runs if options.results else []
    seconds = seconds_by_document(all_runs)
    plans: list[Plan] = []
    for task in matching_tasks(options.tasks, "plan"):
        runs = [run for run in all_runs if run.columns is not None and run.run.task == task.name]
        plan = _plan(task, runs, settings, options)
        goals = ((options.width, plan.for_width), (options.difference, plan.for_difference))
        size = max(number or plan.documents for goal, number in goals if goal is not None)
        money, time = _money(task, settings, prices), seconds.get(task.name)
        plans.append(
            replace(
                plan,
                money=None if money is None else money.times(size / plan.documents),
                seconds=None if time is None else time.times(size),
            )
        )
    if options.json:
        print_json(plans)
        return 0
    columns: dict[str, Callable[[Plan], str]] = {
        "task": lambda plan: plan.task,
        "variance from": lambda plan: counted(plan.models, "run") if plan.models else "assumed",
        "questions": lambda plan: f"{plan.documents:,}",
        "clusters": lambda plan: f"{plan.clusters:,}",
    }
    if options.width is not None:
        columns[f"for ±{options.width:g}"] = lambda plan: _number(plan.for_width, plan.documents)
    if options.difference is not None:
        columns[f"to find {options.difference:g}"] = lambda plan: _number(plan.for_difference, plan.documents)
    columns[prices.currency] = lambda plan: money_text(plan.money)
    if seconds:
        columns["time"] = lambda plan: "unknown" if plan.seconds is None else plan.seconds.text(duration)
    rows = [[text(plan) for text in columns.values()] for plan in plans]
    print(as_markdown(columns, rows, numbers=len(columns) - 2))
    print("Set CULTURE_SUBSET to a number, for all models alike. Money is the judge's, for the larger of the numbers.")
    if seconds:
        print(
            "Time is that of one run, for the larger of the numbers, at the pace of the fastest and of the slowest "
            "earlier run, with the loading of the model and the grading."
        )
    if not all(plan.models for plan in plans):
        print(
            "Assumed: scores vary as much as right and wrong can (ratings: a quarter of their scale), half of that "
            "between clusters. --results takes it from earlier runs."
        )
    if options.difference is not None and not all(plan.pairs for plan in plans):
        print(
            f"Two models' scores are taken to correlate by {_CORRELATION} where the earlier runs have no two models "
            "with the same judge."
        )
    return 0


def _plan(task: Task, runs: Sequence[LoadedRun], settings: Settings, options: argparse.Namespace) -> Plan:
    metric = next(metric for metric in task.metrics() if metric.name == task.metric)
    scale = metric.scale
    if not isinstance(metric, MeanScore) or scale.low is None or scale.high is None:
        raise SettingsError(f"plan: the score of {task.name} is no mean on a scale with two ends. Leave the task out.")
    with reading_data(settings):
        rows = task.data.load(settings).rows
    structure = structure_of(task.name, rows)
    order = structure.draw(len(structure.items))
    per_run: list[Components] = []
    per_pair: list[Components] = []
    if metric.per_cluster is None:
        per_run = _varying(map(_components_of, runs))
        per_pair = _varying(
            _components_of(first, second)
            for first, second in combinations(runs, 2)
            if first.run.model != second.run.model and first.run.settings.judged_by == second.run.settings.judged_by
        )
    has_clusters = len(set(structure.clusters)) < len(structure.clusters)
    score_components = _mean(per_run or [_assumed_components(scale, shared_clusters=has_clusters)])
    difference_components = _mean(
        per_pair or [Components(*(2.0 * (1.0 - _CORRELATION) * part for part in score_components))]
    )
    numbers, per_item = np.unique(structure.clusters, return_inverse=True)[1][order], len(rows) / len(structure.items)

    def is_narrow(n: int) -> bool:
        width: float = options.width
        return half_width(score_components, population(order[:n], structure.clusters), n) <= width

    def shows_difference(n: int) -> bool:
        counts = np.bincount(numbers[:n]) / n
        variance = difference_components.clusters * float(counts @ counts) + difference_components.items / n
        reach = float(special.ndtri(0.975) + special.ndtri(options.power))
        difference: float = options.difference
        return reach * math.sqrt(variance) <= difference

    def documents(is_enough: Callable[[int], bool]) -> int | None:
        """Returns the smallest number that is enough; every larger one is assumed to be enough too."""
        if not is_enough(len(order)):
            return None
        least = min(2, len(order))
        return round((least + bisect_left(range(least, len(order)), True, key=is_enough)) * per_item)

    for_width = None if options.width is None else documents(is_narrow)
    for_difference = None if options.difference is None else documents(shows_difference)
    return Plan(
        task.name,
        documents=len(rows),
        clusters=len(set(structure.clusters)),
        models=len(per_run),
        pairs=len(per_pair),
        for_width=for_width,
        for_difference=for_difference,
    )


def _assumed_components(scale: Scale, *, shared_clusters: bool) -> Components:
    """Returns the variance components of a score on a scale with two ends where no run is known.

    Right and wrong vary as much as they can, ratings by a quarter of their scale; half of it is between clusters.
    """
    width = (scale.high or 0.0) - (scale.low or 0.0)
    total = (width / 2.0) ** 2 if scale.unit in ("share", "percent") else (width / 4.0) ** 2
    between_clusters = total / 2.0 if shared_clusters else 0.0
    return Components(between_clusters, total - between_clusters)


def _components_of(run: LoadedRun, baseline: LoadedRun | None = None) -> Components:
    """Returns the variance components of a run's scores, or of their difference from another's on common items."""
    assert run.columns is not None
    if baseline is None or baseline.columns is None:
        return components(run.columns.scores, run.columns.clusters)
    _, first, second = np.intersect1d(run.columns.items, baseline.columns.items, return_indices=True)
    return components(run.columns.scores[first] - baseline.columns.scores[second], run.columns.clusters[first])


def _varying(parts: Iterable[Components]) -> list[Components]:
    """Returns the components of scores that vary: others tell nothing."""
    return [part for part in parts if sum(part) > 0.0]


def _mean(parts: Sequence[Components]) -> Components:
    return Components(*np.mean(parts, axis=0).tolist())


def _money(task: Task, settings: Settings, prices: Prices) -> Bounds | None:
    """Returns what the judge costs for all questions of a task; None without a price."""
    spec = parse_spec(settings.judge) if settings.judge else None
    if spec is not None and spec.backend != "openai":
        return Bounds()
    estimator = estimator_of(settings, spec.model if spec else "gpt-4o")
    totals = total_by_judge(estimator.estimate_run(task, lambda model: spec.model if spec else model))
    return sum_of_money(total.money(prices.price_of(total.judge)) for total in totals.values())


def _number(number: int | None, documents: int) -> str:
    return f"more than {documents:,}" if number is None else f"{number:,}"
