"""What a paper sets side by side for one model: with and without an insertion, asked natively and in English.

Both numbers are of the same items, so that their difference is a paired one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np

from culture_tasks.metrics.comparison import paired_difference
from culture_tasks.report import comparability
from culture_tasks.report.loading import LoadedRun
from culture_tasks.report.model import NOT_COMPARABLE, Cell, Contrast, Flag, GroupValue, Scale
from culture_tasks.report.numbers import Observations, common_items, in_order, known, observe, ordered
from culture_tasks.report.pairs import OF_ITS_OWN
from culture_tasks.report.units import Measured

_OF_JUDGES: frozenset[Flag] = frozenset(
    ("lexical_judge", "other_judge", "other_judge_prompt", "unjudged", "low_coverage")
)
_NOTHING_INSERTED = ("", "base")
"""Methods of CrossCult-KIBench that leave the model as it is; an ordinary model has none."""

_Cells = Mapping[tuple[str, str, str, tuple[tuple[str, str], ...]], Cell]
"""Numbers by unit, entrant, statistic and groups."""


class _Side(NamedTuple):
    """One of two numbers.

    Attributes:
        cell: The number.
        run: The run with the samples behind it; all of them are of one task.
    """

    cell: Cell
    run: LoadedRun

    def observe(self, *, extra: bool) -> Observations:
        """Returns the samples behind the number, with the first or the second score."""
        return observe([self.run], [self.run.run.task], self.cell.where, extra=extra)


def contrasts(measured: Sequence[Measured], values: Sequence[GroupValue], *, anyway: bool = False) -> list[Contrast]:
    """Returns every contrast that there are both numbers of.

    Args:
        measured: The units.
        values: The numbers by group.
        anyway: Give differences also of what can't be compared; their flags say why they shouldn't have been.
    """
    cells = {(each.unit, each.entrant, each.statistic, each.cell.where): each.cell for each in values}
    found = [*_insertions(measured, values, cells), *_languages(measured, values, cells)]
    return found if anyway else [_careful(each) for each in found]


def _careful(each: Contrast) -> Contrast:
    """Leaves the difference out where the two numbers can't be compared; its flags say why."""
    if not NOT_COMPARABLE.intersection(each.difference.flags):
        return each
    return replace(each, difference=replace(each.difference, value=None, low=None, high=None, n=0))


def _insertions(measured: Iterable[Measured], values: Iterable[GroupValue], cells: _Cells) -> Iterator[Contrast]:
    """Yields single-insert reliability, by topic and by partition, with that of the same model as it was (Figure 5)."""
    units = {each.unit.key: each for each in measured if each.unit.key.startswith("crosscult_single")}
    bases = {key: _bases(each) for key, each in units.items()}
    for value in values:
        where = value.cell.where
        own = bases.get(value.unit, {}).get(value.entrant, [])
        if not own or not value.cell.runs or where[0] != ("role", "reliability") or len(where) > 2:
            continue
        found = {base: cells.get((value.unit, base, value.statistic, where)) for base in own}
        sides = [_side(units[value.unit], base, cell) for base, cell in found.items() if cell is not None and cell.runs]
        if sides:
            second = _side(units[value.unit], value.entrant, value.cell)
            first = min(sides, key=lambda side, second=second: len(_flags(side, second)))  # type: ignore[misc]
            yield _contrast("insertion", value, first, second, _flags(first, second))


def _bases(measured: Measured) -> dict[str, list[str]]:
    """Returns, for each entrant with an insertion, the entrants with the same model as it was."""
    names = {key: _model_and_method(runs[0]) for key, runs in measured.runs.items() if runs}
    plain = [key for key, (_, method) in names.items() if method in _NOTHING_INSERTED]
    return {
        key: [base for base in plain if names[base][0] == model]
        for key, (model, method) in names.items()
        if method not in _NOTHING_INSERTED
    }


def _side(measured: Measured, entrant: str, cell: Cell) -> _Side:
    return _Side(cell, next(run for run in measured.runs[entrant] if run.run.key in cell.runs))


def _flags(one: _Side, two: _Side) -> set[Flag]:
    """Returns why two numbers can't be compared; nothing where they can."""
    found = {flag for side in (one, two) for flag in side.cell.flags if flag in OF_ITS_OWN}
    return found | comparability.differences(one.run.run.settings, two.run.run.settings)


def _model_and_method(run: LoadedRun) -> tuple[str, str]:
    return run.result.model, dict(run.result.model_args).get("method", "")


def _languages(measured: Iterable[Measured], values: Iterable[GroupValue], cells: _Cells) -> Iterator[Contrast]:
    """Yields CARE asked in the culture's own language beside CARE asked in English (Figure 6a)."""
    ran = {
        (entrant, run.run.task): (each, run)
        for each in measured
        if each.unit.benchmark == "care"
        for entrant, runs in each.runs.items()
        for run in runs
    }
    for value in values:
        language = dict(value.cell.where).get("language")
        native, english = (ran.get((value.entrant, f"{task}_{language}")) for task in ("care", "care_en"))
        if native is None or english is None or native[0].unit.key != value.unit or value.dimension == "scope":
            continue
        first = cells.get((english[0].unit.key, value.entrant, value.statistic, value.cell.where))
        if first is not None:
            one, two = _Side(first, english[1]), _Side(value.cell, native[1])
            yield _contrast("language", value, one, two, _flags(one, two) - {"other_task_version"})


def _contrast(
    kind: Literal["insertion", "language"], value: GroupValue, first: _Side, second: _Side, flags: set[Flag]
) -> Contrast:
    overlap = value.statistic == "rouge_l"
    difference = _difference(first, second, flags - _OF_JUDGES if overlap else flags, extra=overlap)
    place = (value.unit, value.entrant, value.statistic, value.dimension, value.group)
    return Contrast(kind, *place, first.cell, second.cell, difference)


def _difference(first: _Side, second: _Side, flags: set[Flag], *, extra: bool) -> Cell:
    """Returns the second number less the first, on the items that both have a score for."""
    scale = second.cell.scale
    own = Scale(scale.unit, None, None, better=None, neutral=0.0, digits=scale.digits)
    one, two = first.observe(extra=extra), second.observe(extra=extra)
    items = common_items(one, two)
    one, two = in_order(one, items), in_order(two, items)
    clusters = two.clusters if np.unique(two.clusters).size < items.size else None
    found = paired_difference(two.scores, one.scores, clusters)
    runs = (*first.cell.runs, *second.cell.runs)
    note = "" if found.n else "no items in common"
    ends = (known(found.low), known(found.high))
    return Cell(known(found.difference), own, *ends, found.n, None, ordered(flags), runs, second.cell.where, note=note)
