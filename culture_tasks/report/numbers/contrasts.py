"""Two numbers of one model that a paper sets side by side, with their paired difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.benchmarks.reporting import ContrastSpec, RunFacts, Where
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.report.model import NOT_COMPARABLE, Cell, Contrast, Flag, GroupValue
from culture_tasks.report.numbers.comparisons import TEST_BARRIERS, Pair, compare, scale_of_differences
from culture_tasks.report.numbers.observations import SCORE, in_order, observe, ordered
from culture_tasks.report.numbers.scores import JUDGE_FLAGS, Scores
from culture_tasks.results import comparability
from culture_tasks.results.loaded_runs import LoadedRun
from culture_tasks.results.runs import TaskRun


def run_facts(row: str, label: str, runs: Sequence[TaskRun]) -> RunFacts:
    """Returns the facts of a model's runs of a unit; the first run gives task and arguments."""
    texts = runs[0].model_args.split(", ") if runs else []
    arguments = dict(text.split("=", 1) for text in texts if "=" in text)
    method = arguments.get("method", "")
    method_label = labels().get(method, method)
    return RunFacts(
        row=row,
        label=label,
        task=runs[0].task if runs else "",
        arguments=arguments,
        judges=" + ".join(dict.fromkeys(judge.label for run in runs for judge in run.settings.judges)) or "unknown",
        method=method_label if method in ("", *paper_rows()) else f"{method_label} (not in the paper)",
        timing=" + ".join(dict.fromkeys(run.measured for run in runs if run.measured)),
    )


class _Side(NamedTuple):
    """One of two numbers, and the run with its samples, which are all of one task."""

    number: GroupValue
    run: LoadedRun
    facts: RunFacts


def contrasts(scores: Scores, *, anyway: bool = False) -> list[Contrast]:
    """Returns every contrast with both numbers; where these can't be compared, the user must insist on a difference."""
    found: list[tuple[str, GroupValue, GroupValue, set[Flag]]] = []
    pairs: dict[int, Pair] = {}
    for spec, first, second in _side_by_side(scores):
        number, flags = second.number, _barriers(first, second)
        if anyway or not NOT_COMPARABLE.intersection(flags):
            samples = [
                in_order(observe([side.run], [side.run.run.task], number.cell.where, statistic=number.statistic))
                for side in (first, second)
            ]
            pairs[len(found)] = Pair(
                family=str(len(found)),
                unit=number.unit,
                first=first.number.entrant,
                second=number.entrant,
                samples=(samples[0], samples[1]),
                scale=number.cell.scale,
            )
        found.append((spec.kind, first.number, number, flags))
    names = {key: key for pair in pairs.values() for key in (pair.first, pair.second)}
    tests = dict(zip(pairs, compare(list(pairs.values()), names), strict=True))
    contrasts: list[Contrast] = []
    for index, (kind, before, after, flags) in enumerate(found):
        scale, runs = scale_of_differences(after.cell.scale), (*before.cell.runs, *after.cell.runs)
        difference = Cell(None, scale, flags=ordered(flags), runs=runs, where=after.cell.where)
        if (test := tests.get(index)) is not None and test.n:
            difference = replace(difference, value=test.difference, low=test.low, high=test.high, n=test.n)
        elif test is not None:
            difference = replace(difference, note="no items in common")
        place = (after.unit, after.entrant, after.statistic, after.dimension, after.group)
        contrasts.append(Contrast(kind, *place, first=before.cell, second=after.cell, difference=difference))
    return contrasts


def _side_by_side(scores: Scores) -> Iterator[tuple[ContrastSpec, _Side, _Side]]:
    """Yields both sides of each contrast; of several first ones, the one that differs least from the second."""
    by_address: dict[tuple[str | None, str, Where], list[_Side]] = {}
    for value in scores.groups:
        measured = scores.units[value.unit]
        if not measured.reported.contrasts or value.statistic not in (
            SCORE,
            *(f.name for f in measured.reported.further),
        ):
            continue
        run = next((run for run in measured.runs[value.entrant] if run.run.key in value.cell.runs), None)
        if run is not None:
            side = _Side(value, run, run_facts(value.entrant, run.run.model, [run.run]))
            by_address.setdefault((measured.unit.benchmark, value.statistic, value.cell.where), []).append(side)
    for (_, _, where), sides in by_address.items():
        for spec in scores.units[sides[0].number.unit].reported.contrasts:
            if tuple(field for field, _ in where) not in spec.splits or not set(spec.fixed) <= set(where):
                continue
            for second in sides:
                firsts = [
                    first
                    for first in sides
                    if (first.facts.row == second.facts.row or first.run.result.model == second.run.result.model)
                    and spec.beside(first.facts, second.facts)
                ]
                if firsts:
                    yield spec, min(firsts, key=lambda first: len(_barriers(first, second))), second


def _barriers(first: _Side, second: _Side) -> set[Flag]:
    """Returns why two numbers can't be compared; the versions and prompts of two tasks are their contrast.

    One task may ask about more groups than the other: the data of these are no other data. A further score needs no
    judge.
    """
    flags = comparability.differences(first.run.run.settings, second.run.run.settings)
    data, other_data = (set(side.run.run.settings.data) for side in (first, second))
    flags -= {"other_data"} if data <= other_data or other_data <= data else set()
    flags |= TEST_BARRIERS.intersection((*first.number.cell.flags, *second.number.cell.flags))
    flags -= {"other_task_version", "other_prompt"} if first.facts.task != second.facts.task else set()
    return flags if second.number.statistic == SCORE else flags - JUDGE_FLAGS - {"low_coverage"}
