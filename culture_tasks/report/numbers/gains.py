"""Gains from training: each trained model beside its base, with paired tests on the items that both answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import NOT_COMPARABLE, Flag, Gain, ModelRow, Number
from culture_tasks.report.numbers.comparisons import ALPHA, Pair, compare, reasons_against, scale_of_differences
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
    found: list[Gain] = []
    pairs: dict[int, Pair] = {}
    for lineage in lineages:
        for unit in (unit for unit in units if unit.headline):
            bases = [row for row in lineage.base if row in unit.cells]
            for trained in lineage.trained if bases else ():
                if trained not in unit.cells:
                    continue
                base = _nearest(unit, bases, trained, runs)
                flags = ordered(reasons_against(*_sides(unit, base, trained, runs)))
                gain = _untested(unit, base, trained, flags, is_shown=anyway or not flags)
                if unit.runs[base] and unit.runs[trained] and (anyway or not flags):
                    samples = in_order(unit.select(base)), in_order(unit.select(trained))
                    pairs[len(found)] = Pair(trained, unit.key, base, trained, samples, unit.scale, flags)
                found.append(gain)
    tests = compare(list(pairs.values()), {key: entrant.label for key, entrant in entrants.items()})
    for index, test in zip(pairs, tests, strict=True):
        change = replace(
            found[index].difference,
            value=test.difference if test.n else None,
            low=test.low,
            high=test.high,
            n=test.n,
            best=test.p_holm is not None and test.p_holm <= ALPHA and test.difference != 0,
            note="" if test.n else "no items in common",
        )
        found[index] = replace(found[index], difference=change, test=test)
    return found


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


def _untested(unit: Unit, base: str, trained: str, flags: Sequence[Flag], *, is_shown: bool) -> Gain:
    before, after = unit.cells[base], unit.cells[trained]
    all_flags = ordered(({*before.flags, *after.flags} - NOT_COMPARABLE).union(flags))
    percent, runs = Number(None, PERCENT, flags=all_flags), (*before.runs, *after.runs)
    difference = Number(None, scale_of_differences(after.scale), flags=all_flags, runs=runs)
    if is_shown and before.value is not None and after.value is not None:
        change, better = after.value - before.value, before.scale.better
        difference = replace(difference, value=change, note="there are no samples to test")
        if better is None:
            percent = replace(percent, note="neither end of the scale is better")
        elif before.value <= 0:
            percent = replace(percent, note="the base's number isn't above 0")
        else:
            percent = replace(percent, value=(-100.0 if better == "lower" else 100.0) * change / before.value)
    return Gain(unit.key, base, trained, percent, difference)
