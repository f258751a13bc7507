"""Two numbers of one model that a paper sets side by side, with their paired difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.reporting import At, ContrastOf, OtherArgument, OtherTask
from culture_tasks.metrics.comparison import paired_difference
from culture_tasks.report import comparability
from culture_tasks.report.comparisons import OF_ITS_OWN, scale_of_differences
from culture_tasks.report.loaded_runs import LoadedRun
from culture_tasks.report.model import NOT_COMPARABLE, Cell, Contrast, Flag, GroupValue
from culture_tasks.report.observations import (
    SCORE,
    Observations,
    aligned,
    bootstrap_difference,
    in_order,
    known,
    observe,
    ordered,
)
from culture_tasks.report.scores import OF_JUDGES, Measured, Scores


class _Side(NamedTuple):
    """One of two numbers, and the run with the samples behind it: all of them are of one task."""

    cell: Cell
    run: LoadedRun

    def observe(self, statistic: str) -> Observations:
        return observe([self.run], [self.run.run.task], self.cell.where, statistic=statistic)


def contrasts(scores: Scores, *, anyway: bool = False) -> list[Contrast]:
    """Returns every contrast that there are both numbers of.

    Args:
        scores: The numbers.
        anyway: Give differences also of what can't be compared; their flags say why they shouldn't have been.
    """
    benchmarks = {each.unit.benchmark: each.reported for each in scores.units.values()}
    found = [
        each
        for benchmark, reported in benchmarks.items()
        for contrast in reported.contrasts
        for each in _contrasts(scores, benchmark, contrast)
    ]
    return found if anyway else [_careful(each) for each in found]


def _careful(each: Contrast) -> Contrast:
    """Leaves the difference out where the two numbers can't be compared; its flags say why."""
    if not NOT_COMPARABLE.intersection(each.difference.flags):
        return each
    return replace(each, difference=replace(each.difference, value=None, low=None, high=None, n=0))


def _contrasts(scores: Scores, benchmark: str | None, contrast: ContrastOf) -> Iterator[Contrast]:
    units = {key: each for key, each in scores.units.items() if each.unit.benchmark == benchmark}
    for value in scores.groups:
        if value.unit not in units or not _is_second(contrast, units[value.unit], value):
            continue
        second = _side(units[value.unit], value.entrant, value.cell)
        if second is None:
            continue
        sides = _first_sides(scores, units, contrast=contrast, value=value, second=second)
        flagged = [(side, _why_not_beside(contrast, side, second)) for side in sides]
        if flagged:
            first, flags = min(flagged, key=lambda pair: len(pair[1]))
            yield _contrast(contrast.kind, value, first=first, second=second, flags=flags)


def _is_second(contrast: ContrastOf, measured: Measured, value: GroupValue) -> bool:
    """Whether a number may be the second one of a contrast."""
    fields = tuple(field for field, _ in value.cell.where)
    statistics = (SCORE, *(each.name for each in measured.reported.further))
    fixed = set(contrast.fixed) <= set(value.cell.where)
    return contrast.units(value.unit) and fixed and fields in contrast.splits and value.statistic in statistics


def _first_sides(
    scores: Scores, units: Mapping[str, Measured], contrast: ContrastOf, value: GroupValue, second: _Side
) -> Iterator[_Side]:
    """Yields the numbers that a number can be set beside."""
    own = units[value.unit]
    places = [(own, base) for base in _bases(own, value.entrant, contrast.first)]
    if isinstance(contrast.first, OtherTask):
        task = contrast.first.of(second.run.run.task)
        places = [(each, value.entrant) for each in units.values() if task in each.tasks]
    for measured, entrant in places:
        cell = scores.at(At(measured.unit.key, value.statistic, value.cell.where)).get(entrant)
        side = None if cell is None else _side(measured, entrant, cell)
        if side is not None:
            yield side


def _bases(measured: Measured, entrant: str, first: OtherTask | OtherArgument) -> list[str]:
    """Returns the entrants that have the same model as an entrant, but without its argument."""
    if isinstance(first, OtherTask) or not measured.runs[entrant]:
        return []

    def model_and_argument(runs: Sequence[LoadedRun]) -> tuple[str, bool]:
        value = dict(runs[0].result.model_args).get(first.name, "")
        return runs[0].result.model, value not in first.without

    model, has_argument = model_and_argument(measured.runs[entrant])
    wanted = (model, False)
    others = (key for key, runs in measured.runs.items() if runs and model_and_argument(runs) == wanted)
    return list(others) if has_argument else []


def _side(measured: Measured, entrant: str, cell: Cell) -> _Side | None:
    run = next((run for run in measured.runs[entrant] if run.run.key in cell.runs), None)
    return None if run is None else _Side(cell, run)


def _why_not_beside(contrast: ContrastOf, one: _Side, two: _Side) -> set[Flag]:
    """Returns why two numbers can't be compared; nothing where they can.

    Two tasks have versions and prompts of their own, which is what sets them apart.
    """
    found = {flag for side in (one, two) for flag in side.cell.flags if flag in OF_ITS_OWN}
    found |= comparability.differences(one.run.run.settings, two.run.run.settings)
    return found - {"other_task_version", "other_prompt"} if isinstance(contrast.first, OtherTask) else found


def _contrast(kind: str, value: GroupValue, first: _Side, second: _Side, flags: set[Flag]) -> Contrast:
    without_judge = flags if value.statistic == SCORE else flags - OF_JUDGES - {"low_coverage"}
    return Contrast(
        kind=kind,
        unit=value.unit,
        entrant=value.entrant,
        statistic=value.statistic,
        dimension=value.dimension,
        group=value.group,
        first=first.cell,
        second=second.cell,
        difference=_difference(first, second, statistic=value.statistic, flags=without_judge),
    )


def _difference(first: _Side, second: _Side, statistic: str, flags: set[Flag]) -> Cell:
    """Returns the second number less the first, on the items that both have a score for."""
    one, two = aligned(in_order(first.observe(statistic)), in_order(second.observe(statistic)))
    clusters = two.clusters if np.unique(two.clusters).size < two.items.size else None
    is_mean = one.compute is None
    found = paired_difference(two.scores, one.scores, clusters) if is_mean else bootstrap_difference(two, one)
    return Cell(
        known(found.difference),
        scale_of_differences(second.cell.scale),
        low=known(found.low),
        high=known(found.high),
        n=found.n,
        flags=ordered(flags),
        runs=(*first.cell.runs, *second.cell.runs),
        where=second.cell.where,
        note="" if found.n else "no items in common",
    )
