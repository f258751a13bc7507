"""Gains from training: trained models beside their bases, with paired tests on the items that both answered.

Several runs of a model, such as three seeds, are averaged item by item before the test: the variation from run to run
is then in the items' differences, and an item counts once, however often it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At
from culture_tasks.report.model import NOT_COMPARABLE, Comparison, Flag, Gain, ModelRow, Number, Trial
from culture_tasks.report.numbers.comparisons import (
    ALPHA,
    TEST_BARRIERS,
    Pair,
    adjusted,
    reasons_against,
    scale_of_differences,
)
from culture_tasks.report.numbers.estimates import JUDGE_FLAGS
from culture_tasks.report.numbers.numbers import Numbers, Unit, nan_to_none, number_of, ordered
from culture_tasks.report.numbers.selection import SCORE, Selection, averaged, in_order, repeat_means
from culture_tasks.report.wording import PERCENT_SIGN
from culture_tasks.results.runs import Run
from culture_tasks.results.trained_on import Lineage, TrainingStage

OVER_ALL = "before_after"
"""Key of the table over all benchmarks."""

PERCENT = Scale(PERCENT_SIGN, None, None, neutral=0.0, digits=1)
"""The scale of gains."""

_ADAPTER = ("peft=", "lora_local_path=")
"""Beginnings of the arguments that may differ between a model's runs: each training run has another adapter."""


@dataclass(frozen=True, slots=True)
class Training:
    """Works out the gains from training. Lineages say which models were trained from which; the mappings are by key."""

    lineages: Sequence[Lineage]
    measured: Mapping[str, Unit]
    scores: Numbers
    runs: Mapping[str, Run]
    entrants: Mapping[str, ModelRow]
    anyway: bool = False

    def gains(self, table: str, addresses: Sequence[At]) -> list[Gain]:
        """Returns the gains in a table's numbers by lineage and address; a lineage's tests are adjusted (Holm)."""
        places = [
            _Place(self, address, self.measured[address.unit]) for address in addresses if address.unit in self.measured
        ]
        gains: list[Gain] = []
        for lineage in self.lineages:
            changes = [pair for place in places for pair in place.side_by_side(lineage, table)]
            trials = [trial for gain, _ in changes for trial in (gain.base, gain.trained)]
            labels = {key: trial.label for trial in trials for key in trial.entrants}
            tests = iter(adjusted([pair for _, pair in changes if pair is not None], labels))
            gains += [gain if pair is None else _tested(gain, next(tests)) for gain, pair in changes]
        return gains


def _tested(gain: Gain, test: Comparison) -> Gain:
    best = test.p_holm is not None and test.p_holm <= ALPHA and test.difference != 0
    value, note = (nan_to_none(test.difference), "") if test.n else (None, "no items in common")
    change = replace(gain.difference, value=value, low=test.low, high=test.high, n=test.n, best=best, note=note)
    return replace(gain, difference=change, test=test)


class _Place:
    """An address: the numbers of all entrants there, and their samples."""

    def __init__(self, training: Training, address: At, measured: Unit) -> None:
        is_whole = address.statistic == SCORE and not address.where
        self._training, self._address, self._measured = training, address, measured
        self._cells = (
            measured.cells if is_whole else training.scores.cells(address.unit, address.statistic, address.where)
        )
        self._is_further = any(further.name == address.statistic for further in measured.reported.further)

    def side_by_side(self, lineage: Lineage, table: str) -> Iterator[tuple[Gain, Pair | None]]:
        """Yields a gain without its test, and the pair to test, for each group of runs of the trained model."""
        base, trained = (
            self._groups([key for key in side.entrants if key in self._cells])
            for side in (lineage.base, lineage.trained)
        )
        for after in trained if base else ():

            def distance(key: str, entrant: str = after[0]) -> tuple[int, int]:
                return len(self._barriers(key, entrant)), len(self._arguments(key) ^ self._arguments(entrant))

            nearest = min((key for key in lineage.base.entrants if key in self._cells), key=distance)
            before = next(group for group in base if nearest in group)
            base_samples, samples = self._observed(before), self._observed(after)
            flags = ordered(self._barriers(nearest, after[0]))
            trials = self._trial(before, base_samples, lineage.base), self._trial(after, samples, lineage.trained)
            pair = None
            if base_samples is not None and samples is not None and (self._training.anyway or not flags):
                unit, scale = self._address.unit, self._cells[after[0]].scale
                pair = Pair(unit, before[0], after[0], in_order(base_samples), in_order(samples), scale, flags)
            yield self._untested(table, *trials, flags), pair

    def _untested(self, table: str, base: Trial, trained: Trial, flags: Sequence[Flag]) -> Gain:
        before, after = base.cell, trained.cell
        all_flags = ordered(({*before.flags, *after.flags} - NOT_COMPARABLE).union(flags))
        percent, runs = Number(None, PERCENT, flags=all_flags), (*before.runs, *after.runs)
        difference = Number(None, scale_of_differences(after.scale), flags=all_flags, runs=runs, where=after.where)
        if before.value is not None and after.value is not None and (self._training.anyway or not flags):
            change, better = after.value - before.value, before.scale.better
            difference = replace(difference, value=change, note="there are no samples to test")
            if better is None:
                percent = replace(percent, note="neither end of the scale is better")
            elif before.value <= 0:
                percent = replace(percent, note="the base's number isn't above 0")
            else:
                percent = replace(percent, value=(-100.0 if better == "lower" else 100.0) * change / before.value)
        address = self._address
        return Gain(
            table, address.unit, address.statistic, address.where, base, trained, percent, difference, test=None
        )

    def _groups(self, keys: Sequence[str]) -> list[list[str]]:
        """Returns the entrants in groups: runs of one model under the same settings and arguments are together."""
        groups: list[list[str]] = []
        for key in keys:
            for group in groups:
                flags = [TEST_BARRIERS.intersection(self._cells[entrant].flags) for entrant in (group[0], key)]
                is_same = flags[0] == flags[1] and self._arguments(group[0]) == self._arguments(key)
                if is_same and not reasons_against((), self._runs(group[0]), self._runs(key)):
                    group.append(key)
                    break
            else:
                groups.append([key])
        return groups

    def _barriers(self, first: str, second: str) -> set[Flag]:
        """Returns why two entrants can't be compared; the judge is no reason where no judge gave the numbers."""
        flags = reasons_against([self._cells[first], self._cells[second]], self._runs(first), self._runs(second))
        return flags - (JUDGE_FLAGS if self._is_further else set())

    def _runs(self, entrant: str) -> list[Run]:
        samples = self._measured.runs[entrant]
        return list(samples) or [self._training.runs[key] for key in self._cells[entrant].runs]

    def _arguments(self, entrant: str) -> frozenset[str]:
        parts = (part for run in self._runs(entrant) for part in run.model_args.split(", "))
        return frozenset(part for part in parts if not part.startswith(_ADAPTER))

    def _observed(self, entrants: Sequence[str]) -> Selection | None:
        """Returns the samples of runs, averaged over them; None where a run has none, or where scores are no means."""
        statistic, where = self._address.statistic, self._address.where
        has_samples = statistic == SCORE or self._is_further
        if not has_samples or not all(self._measured.runs[key] for key in entrants):
            return None
        observed = [self._measured.select(key, where, statistic) for key in entrants]
        return None if len(observed) > 1 and observed[0].compute is not None else averaged(observed)

    def _trial(self, entrants: Sequence[str], observed: Selection | None, side: TrainingStage) -> Trial:
        cells, unit, where = [self._cells[key] for key in entrants], self._measured, self._address.where
        cell, values = cells[0], [cell.value for cell in cells if cell.value is not None]
        if len(cells) == 1 and self._address.statistic == SCORE:
            equal_parts = unit.equal_parts and not where
            values = repeat_means(unit.results, unit.runs[entrants[0]], unit.tasks, where, equal_parts=equal_parts)
        if len(cells) > 1:
            flags = ordered({flag for cell in cells for flag in cell.flags})
            mean = float(np.mean(values)) if len(values) == len(cells) else None
            cell = replace(cell, value=mean, low=None, high=None, flags=flags, rank=None, best=False)
            if observed is not None:
                cell = number_of(observed, cell.scale, flags, cell.where, min_coverage=unit.min_coverage)
        scale = replace(cell.scale, low=0.0, high=None, better=None, neutral=None)
        deviation = Number(float(np.std(values, ddof=1)), scale, n=len(values)) if len(values) > 1 else None
        return Trial(self._label(entrants, side), tuple(entrants), cell, deviation)

    def _label(self, entrants: Sequence[str], side: TrainingStage) -> str:
        """Returns the name of some runs: their model's, the user's name for all of the models, or the names of each."""
        rows = self._training.entrants
        first, models = rows[entrants[0]], {rows[key].model for key in entrants}
        if len(models) == 1:
            return first.label
        if models == {rows[key].model for key in side.entrants}:
            return f"{side.name} [{first.variation}]" if first.variation else side.name
        return ", ".join(rows[key].label for key in entrants)
