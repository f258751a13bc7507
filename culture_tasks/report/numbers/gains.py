"""Gains from training: each trained model beside its base, with paired tests on the items that both answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import NOT_COMPARABLE, Comparison, Flag, Gain, ModelRow, Number
from culture_tasks.report.numbers.comparisons import ALPHA, Pair, change, compare, reasons_against
from culture_tasks.report.numbers.numbers import Unit, ordered
from culture_tasks.report.numbers.selection import in_order
from culture_tasks.report.wording import PERCENT_SIGN
from culture_tasks.results.runs import Run
from culture_tasks.results.trained_on import Lineage

PERCENT = Scale(PERCENT_SIGN, None, None, neutral=0.0, digits=1)
"""The scale of gains."""

_ADAPTER = ("peft=", "lora_local_path=")
"""Beginnings of the arguments that differ between a model and its base."""


def gains(
    lineages: Sequence[Lineage],
    units: Sequence[Unit],
    runs: Mapping[str, Run],
    entrants: Mapping[str, ModelRow],
    *,
    anyway: bool = False,
) -> list[Gain]:
    """Returns the gain of each trained model on each headline unit; a model's tests are adjusted together (Holm)."""
    gains: list[tuple[Unit, str, str, tuple[Flag, ...]]] = []
    pairs: dict[int, Pair] = {}
    for lineage, unit in product(lineages, [unit for unit in units if unit.headline]):
        bases = [row for row in lineage.base if row in unit.cells]
        for trained in lineage.trained if bases else ():
            if trained in unit.cells:
                base = _nearest(unit, bases, trained, runs)
                flags = ordered(reasons_against(*_sides(unit, base, trained, runs)))
                if unit.runs[base] and unit.runs[trained] and (anyway or not flags):
                    samples = in_order(unit.select(base)), in_order(unit.select(trained))
                    pairs[len(gains)] = Pair(trained, unit.key, base, trained, samples, unit.scale, flags)
                gains.append((unit, base, trained, flags))
    tests = compare(list(pairs.values()), {key: entrant.label for key, entrant in entrants.items()})
    by_gain = dict(zip(pairs, tests, strict=True))
    return [_gain(*gain, is_shown=anyway or not gain[-1], test=by_gain.get(index)) for index, gain in enumerate(gains)]


def _nearest(unit: Unit, bases: Sequence[str], trained: str, runs: Mapping[str, Run]) -> str:
    """Returns the base whose settings, and then whose arguments, differ least from the trained model's."""

    def arguments(row: str) -> set[str]:
        parts = {part for key in unit.cells[row].runs for part in runs[key].model_args.split(", ")}
        return {part for part in parts if not part.startswith(_ADAPTER)}

    def distance(base: str) -> tuple[int, int]:
        return len(reasons_against(*_sides(unit, base, trained, runs))), len(arguments(base) ^ arguments(trained))

    return min(bases, key=distance)


def _sides(unit: Unit, base: str, trained: str, runs: Mapping[str, Run]) -> tuple[list[Number], list[Run], list[Run]]:
    before, after = (unit.cells[row] for row in (base, trained))
    return [before, after], [runs[key] for key in before.runs], [runs[key] for key in after.runs]


def _gain(
    unit: Unit, base: str, trained: str, flags: Sequence[Flag], *, is_shown: bool, test: Comparison | None
) -> Gain:
    before, after, better = unit.cells[base], unit.cells[trained], unit.scale.better
    all_flags = ordered(({*before.flags, *after.flags} - NOT_COMPARABLE).union(flags))
    difference = change(after, all_flags, (*before.runs, *after.runs), test)
    percent = Number(None, PERCENT, flags=all_flags)
    if is_shown and before.value is not None and after.value is not None:
        gain = after.value - before.value
        if better is None:
            percent = replace(percent, note="neither end of the scale is better")
        elif before.value <= 0:
            percent = replace(percent, note="the base's number isn't above 0")
        else:
            percent = replace(percent, value=(-100.0 if better == "lower" else 100.0) * gain / before.value)
        if test is None:
            difference = replace(difference, value=gain, note="there are no samples to test")
    if test is not None:
        is_told_apart = test.p_holm is not None and test.p_holm <= ALPHA and test.difference != 0
        difference = replace(difference, best=is_told_apart)
    return Gain(unit.key, base, trained, percent, difference, test)
