"""Two numbers of one model that a paper sets side by side, with their paired difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.benchmarks.reporting import ContrastSpec, RunFacts
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.metrics.comparison import paired_difference
from culture_tasks.report.model import NOT_COMPARABLE, Contrast, Flag, Number
from culture_tasks.report.numbers.comparisons import TEST_BARRIERS, scale_of_differences
from culture_tasks.report.numbers.estimates import JUDGE_FLAGS
from culture_tasks.report.numbers.numbers import Numbers, Unit, nan_to_none, ordered
from culture_tasks.report.numbers.selection import SCORE, aligned, in_order, select
from culture_tasks.results import comparability
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run


def run_facts(row: str, label: str, runs: Sequence[Run]) -> RunFacts:
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

    cell: Number
    run: Run
    facts: RunFacts


def contrasts(scores: Numbers, *, anyway: bool = False) -> Iterator[Contrast]:
    """Yields every contrast with both numbers; where these can't be compared, the user must insist on a difference."""
    benchmark_units: dict[str | None, list[Unit]] = {}
    for measured in (unit for unit in scores.units.values() if unit.benchmark):
        benchmark_units.setdefault(measured.benchmark, []).append(measured)
    for units in benchmark_units.values():
        for contrast in units[0].reported.contrasts:
            yield from _contrasts(scores, units, contrast, anyway=anyway)


def _contrasts(scores: Numbers, units: Sequence[Unit], contrast: ContrastSpec, *, anyway: bool) -> Iterator[Contrast]:
    keys = {measured.key for measured in units}
    statistics = {SCORE, *(further.name for further in units[0].reported.further)}
    rows_of_model: dict[tuple[str, str], dict[str, None]] = {}
    for measured in units:
        for entrant, runs in measured.runs.items():
            for run in runs:
                rows_of_model.setdefault((measured.key, run.model_name), {})[entrant] = None
    for value in scores:
        where = value.where
        is_second = tuple(field for field, _ in where) in contrast.splits and set(contrast.fixed) <= set(where)
        if value.unit not in keys or value.statistic not in statistics or not is_second:
            continue
        second = _side(scores.units[value.unit], value.row, value)
        if second is None:
            continue
        sides = (
            _side(measured, entrant, cells[entrant])
            for measured in units
            if (cells := scores.cells(measured.key, value.statistic, where))
            for entrant in rows_of_model.get((measured.key, second.run.model_name), {}) | {value.row: None}
            if entrant in cells
        )
        flagged = [
            (first, _barriers(first, second))
            for first in sides
            if first
            and (first.facts.row == second.facts.row or first.run.model_name == second.run.model_name)
            and contrast.beside(first.facts, second.facts)
        ]
        if flagged:
            first, flags = min(flagged, key=lambda pair: len(pair[1]))
            yield _contrast(contrast.kind, value, first, second, flags, scores.results, anyway=anyway)


def _side(measured: Unit, entrant: str, cell: Number) -> _Side | None:
    run = next((run for run in measured.runs[entrant] if run.key in cell.runs), None)
    return None if run is None else _Side(cell, run, run_facts(entrant, run.model, [run]))


def _barriers(first: _Side, second: _Side) -> set[Flag]:
    """Returns why two numbers can't be compared; the versions and prompts of two tasks are their contrast.

    One task may ask about more groups than the other: the data of these are no other data.
    """
    flags = comparability.differences(first.run.settings, second.run.settings)
    data, other_data = (set(side.run.settings.data) for side in (first, second))
    flags -= {"other_data"} if data <= other_data or other_data <= data else set()
    flags |= TEST_BARRIERS.intersection((*first.cell.flags, *second.cell.flags))
    return flags - ({"other_task_version", "other_prompt"} if first.facts.task != second.facts.task else set())


def _contrast(
    kind: str, value: Number, first: _Side, second: _Side, flags: set[Flag], results: Results, *, anyway: bool
) -> Contrast:
    """Returns a contrast with the second number less the first, on the items that both have a score for."""
    flags = flags if value.statistic == SCORE else flags - JUDGE_FLAGS - {"low_coverage"}
    before, after = (
        in_order(select(results, [side.run], [side.run.task], side.cell.where, statistic=value.statistic))
        for side in (first, second)
    )
    before, after = aligned(before, after)
    if before.compute is None:
        ends = second.cell.scale.ends
        test = paired_difference(after.scores, before.scores, after.shared_clusters, ends=ends)
    else:
        test = after.less(before)
    scale, runs = scale_of_differences(second.cell.scale), (*first.cell.runs, *second.cell.runs)
    note = "" if test.n else "no items in common"
    difference = Number(None, scale, flags=ordered(flags), runs=runs, where=second.cell.where, note=note)
    if anyway or not NOT_COMPARABLE.intersection(flags):
        low, high = nan_to_none(test.low), nan_to_none(test.high)
        difference = replace(difference, value=nan_to_none(test.difference), low=low, high=high, n=test.n)
    place = (value.unit, value.row, value.statistic, value.dimension, value.group)
    return Contrast(kind, *place, first=first.cell, second=second.cell, difference=difference)
