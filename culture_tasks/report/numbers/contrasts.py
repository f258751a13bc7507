"""Two numbers side by side with their paired difference: of one model, as papers do, or before and after training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import RunFacts, Where
from culture_tasks.insertion.methods import labels, paper_rows
from culture_tasks.report.model import NOT_COMPARABLE, Comparison, Contrast, Flag, Gain, ModelRow, Number
from culture_tasks.report.numbers.comparisons import ALPHA, TEST_BARRIERS, Pair, change, compare, reasons_against
from culture_tasks.report.numbers.estimates import JUDGE_FLAGS
from culture_tasks.report.numbers.numbers import Numbers, Unit, ordered
from culture_tasks.report.numbers.selection import SCORE, in_order, select
from culture_tasks.report.wording import PERCENT_SIGN
from culture_tasks.results import comparability
from culture_tasks.results.runs import Run
from culture_tasks.results.trained_on import Lineage

PERCENT = Scale(PERCENT_SIGN, None, None, neutral=0.0, digits=1)
"""The scale of gains."""

_ADAPTER = ("peft=", "lora_local_path=")
"""Beginnings of the arguments that differ between a model and its base."""


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

    number: Number
    run: Run
    facts: RunFacts


def contrasts(numbers: Numbers, *, anyway: bool = False) -> list[Contrast]:
    """Returns every contrast with both numbers; where these can't be compared, the user must insist on a difference."""
    sides = list(_side_by_side(numbers))
    pairs: dict[int, Pair] = {}
    for index, (_, first, second) in enumerate(sides):
        number = second.number
        if anyway or not NOT_COMPARABLE.intersection(_barriers(first, second)):
            before, after = (
                in_order(select(numbers.results, [side.run], [side.run.task], number.where, statistic=number.statistic))
                for side in (first, second)
            )
            pairs[index] = Pair(str(index), number.unit, first.number.row, number.row, (before, after), number.scale)
    labels = {number.row: number.row for number in numbers}
    tests = dict(zip(pairs, compare(list(pairs.values()), labels), strict=True))
    return [_contrast(kind, first, second, tests.get(index)) for index, (kind, first, second) in enumerate(sides)]


def _contrast(kind: str, first: _Side, second: _Side, test: Comparison | None) -> Contrast:
    before, after = first.number, second.number
    difference = change(after, ordered(_barriers(first, second)), (*before.runs, *after.runs), test)
    address = (after.unit, after.row, after.statistic, after.dimension, after.group)
    return Contrast(kind, *address, first=before, second=after, difference=difference)


def _side_by_side(numbers: Numbers) -> Iterator[tuple[str, _Side, _Side]]:
    """Yields both sides of each contrast; of several first ones, the one that differs least from the second."""
    by_address: dict[tuple[str | None, str, Where], list[_Side]] = {}
    for number in numbers:
        unit = numbers.units[number.unit]
        is_of_samples = number.statistic in (SCORE, *(further.name for further in unit.reported.further))
        if unit.reported.contrasts and number.where and is_of_samples:
            for run in [run for run in unit.runs[number.row] if run.key in number.runs][:1]:
                side = _Side(number, run, run_facts(number.row, run.model, [run]))
                by_address.setdefault((unit.benchmark, number.statistic, number.where), []).append(side)
    for (_, _, where), sides in by_address.items():
        for spec in numbers.units[sides[0].number.unit].reported.contrasts:
            is_declared = tuple(field for field, _ in where) in spec.splits and set(spec.fixed) <= set(where)
            for second in sides if is_declared else ():
                firsts = [
                    first
                    for first in sides
                    if (first.facts.row == second.facts.row or first.run.model_name == second.run.model_name)
                    and spec.beside(first.facts, second.facts)
                ]
                if firsts:
                    flags = [len(_barriers(first, second)) for first in firsts]
                    yield spec.kind, firsts[flags.index(min(flags))], second


def _barriers(first: _Side, second: _Side) -> set[Flag]:
    """Returns why two numbers can't be compared; the versions and prompts of two tasks are their contrast.

    One task may ask about more groups than the other: the data of these are no other data. A further score needs no
    judge.
    """
    data, other_data = (set(side.run.settings.data) for side in (first, second))
    but = {"version", "prompt"} if first.facts.task != second.facts.task else set[str]()
    but |= {"data"} if data <= other_data or other_data <= data else set()
    flags = comparability.differences(first.run.settings, second.run.settings, but=but)
    flags |= TEST_BARRIERS.intersection((*first.number.flags, *second.number.flags))
    return flags if second.number.statistic == SCORE else flags - JUDGE_FLAGS - {"low_coverage"}


# Gains from training


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
                flags = ordered(_reasons(unit, base, trained, runs))
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
        return len(_reasons(unit, base, trained, runs)), len(arguments(base) ^ arguments(trained))

    return min(bases, key=distance)


def _reasons(unit: Unit, base: str, trained: str, runs: Mapping[str, Run]) -> set[Flag]:
    before, after = (unit.cells[row] for row in (base, trained))
    sides = ([runs[key] for key in cell.runs] for cell in (before, after))
    return reasons_against([before, after], *sides)


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
