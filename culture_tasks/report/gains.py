"""What training changed: trained models beside their bases, with paired tests on the items that both answered.

Several runs of a model, such as those of three seeds, are averaged item by item before they are tested: what differs
from run to run is then in the items' differences, and an item counts once, however often it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At
from culture_tasks.report import comparability
from culture_tasks.report.comparisons import ALPHA, BY_ITSELF, Pair, adjusted, scale_of_differences
from culture_tasks.report.lineage import Lineage, Side
from culture_tasks.report.model import NOT_COMPARABLE, Cell, Comparison, Entrant, Flag, Gain, Trial
from culture_tasks.report.observations import (
    SCORE,
    Observations,
    averaged,
    cell_of,
    in_order,
    known,
    ordered,
    repeat_means,
)
from culture_tasks.report.runs import Run
from culture_tasks.report.scores import OF_JUDGES, Measured, Scores
from culture_tasks.report.text.wording import SAYS_PERCENT

OVER_ALL = "before_after"
"""Key of the table over all benchmarks."""

PERCENT = Scale(SAYS_PERCENT, None, None, neutral=0.0, digits=1)
"""The scale of gains."""

_ADAPTER = ("peft=", "lora_local_path=")
"""Beginnings of the arguments that may differ between a model's runs: each run of a training has its own adapter."""


class _Place(NamedTuple):
    """Where a number is: its address, the numbers of all entrants there, and what is behind them."""

    address: At
    cells: Mapping[str, Cell]
    measured: Measured


class _Untested(NamedTuple):
    """A gain before its test: both sides with their samples, and why they can't be compared."""

    place: _Place
    base: Trial
    trained: Trial
    pair: Pair | None
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class Training:
    """Works out what training changed.

    Attributes:
        lineages: Which models were trained from which.
        measured: Every unit, by key.
        scores: Every number of our benchmarks.
        runs: The runs, by key.
        entrants: The entrants, by key.
        anyway: Whether to set side by side also what can't be compared.
    """

    lineages: Sequence[Lineage]
    measured: Mapping[str, Measured]
    scores: Scores
    runs: Mapping[str, Run]
    entrants: Mapping[str, Entrant]
    anyway: bool = False

    def gains(self, table: str, addresses: Sequence[At]) -> list[Gain]:
        """Returns what training changed in the numbers of a table.

        The tests of each lineage are adjusted over all of them (Holm).

        Args:
            table: Key of the table.
            addresses: Where its numbers are, each once.
        """
        places = [place for address in addresses if (place := self._place(address)) is not None]
        found: list[Gain] = []
        for lineage in self.lineages:
            own = [each for place in places for each in self._side_by_side(place, lineage)]
            labels = {key: trial.label for each in own for trial in (each.base, each.trained) for key in trial.entrants}
            tested = [each.pair for each in own if each.pair is not None]
            tests = iter(adjusted(tested, partial(_said, labels)))
            found += [self._gain(table, each, None if each.pair is None else next(tests)) for each in own]
        return found

    def _place(self, address: At) -> _Place | None:
        measured = self.measured.get(address.unit)
        if measured is None:
            return None
        whole = address.statistic == SCORE and not address.where
        return _Place(address, measured.unit.cells if whole else self.scores.at(address), measured)

    def _side_by_side(self, place: _Place, lineage: Lineage) -> Iterator[_Untested]:
        """Yields the two sides, once for each way in which the trained model was run."""
        base = [key for key in lineage.base.entrants if key in place.cells]
        for trained in self._alike(place, [key for key in lineage.trained.entrants if key in place.cells]):
            if not base:
                return
            nearest = min(base, key=lambda key: self._apart(place, key, trained[0]))
            flags = self._why_not(place, nearest, trained[0])
            same = next(each for each in self._alike(place, base) if nearest in each)
            yield self._untested(place, lineage, base=same, trained=trained, flags=flags)

    def _alike(self, place: _Place, keys: Sequence[str]) -> list[list[str]]:
        """Returns the entrants that may stand for runs of one model: those with the same settings and arguments."""
        found: list[list[str]] = []
        for key in keys:
            home = next((own for own in found if self._is_another_run(place, own[0], key)), None)
            if home is None:
                found.append([key])
            else:
                home.append(key)
        return found

    def _is_another_run(self, place: _Place, one: str, two: str) -> bool:
        flags = [BY_ITSELF.intersection(place.cells[key].flags) for key in (one, two)]
        arguments = [self._arguments(place, key) for key in (one, two)]
        return flags[0] == flags[1] and arguments[0] == arguments[1] and not self._between(place, one, two)

    def _apart(self, place: _Place, one: str, two: str) -> tuple[int, int]:
        """Returns how far two entrants are from being comparable: the least of these are set side by side."""
        return (
            len(self._why_not(place, one, two)),
            len(self._arguments(place, one) ^ self._arguments(place, two)),
        )

    def _why_not(self, place: _Place, one: str, two: str) -> set[Flag]:
        """Returns why two entrants can't be compared; another judge is no reason where no judge gave the numbers."""
        own = {flag for key in (one, two) for flag in place.cells[key].flags} & BY_ITSELF
        needs_none = any(each.name == place.address.statistic for each in place.measured.reported.further)
        return (self._between(place, one, two) | own) - (OF_JUDGES if needs_none else set())

    def _between(self, place: _Place, one: str, two: str) -> set[Flag]:
        settings = [{run.task: run.settings for run in self._runs(place, key)} for key in (one, two)]
        return comparability.between(*settings)

    def _runs(self, place: _Place, entrant: str) -> list[Run]:
        samples = place.measured.runs[entrant]
        return [each.run for each in samples] or [self.runs[key] for key in place.cells[entrant].runs]

    def _arguments(self, place: _Place, entrant: str) -> frozenset[str]:
        parts = (part for run in self._runs(place, entrant) for part in run.model_args.split(", "))
        return frozenset(part for part in parts if not part.startswith(_ADAPTER))

    def _untested(
        self, place: _Place, lineage: Lineage, *, base: Sequence[str], trained: Sequence[str], flags: set[Flag]
    ) -> _Untested:
        one, two = self._observed(place, base), self._observed(place, trained)
        pair = None
        if one is not None and two is not None and (self.anyway or not flags):
            scale = place.cells[trained[0]].scale
            pair = Pair(
                place.address.unit,
                base[0],
                trained[0],
                one=in_order(one),
                two=in_order(two),
                scale=scale,
                flags=ordered(flags),
            )
        return _Untested(
            place,
            self._trial(place, base, one, lineage.base),
            self._trial(place, trained, two, lineage.trained),
            pair,
            ordered(flags),
        )

    def _observed(self, place: _Place, entrants: Sequence[str]) -> Observations | None:
        """Returns the samples behind a number, of several runs as one; None where one has none, or no item's mean."""
        measured, statistic, where = place.measured, place.address.statistic, place.address.where
        has_samples = statistic == SCORE or any(each.name == statistic for each in measured.reported.further)
        if not has_samples or not all(measured.runs[key] for key in entrants):
            return None
        observe = measured.observe_group if where else measured.observe
        found = [observe(key, where, statistic) for key in entrants]
        return None if len(found) > 1 and found[0].compute is not None else averaged(found)

    def _trial(self, place: _Place, entrants: Sequence[str], observed: Observations | None, side: Side) -> Trial:
        cells = [place.cells[key] for key in entrants]
        if len(entrants) == 1:
            label, cell, values = self.entrants[entrants[0]].label, cells[0], self._repeats(place, entrants[0])
        else:
            label, cell = self._label(entrants, side), self._mean(place, cells, observed)
            values = [each.value for each in cells if each.value is not None]
        scale = replace(cell.scale, low=0.0, high=None, better=None, neutral=None)
        deviation = Cell(float(np.std(values, ddof=1)), scale, n=len(values)) if len(values) > 1 else None
        return Trial(label, tuple(entrants), cell, deviation)

    def _repeats(self, place: _Place, entrant: str) -> list[float]:
        """Returns the score of each repeat of one run; nothing where there was one alone."""
        measured, where = place.measured, place.address.where
        if place.address.statistic != SCORE:
            return []
        equal_parts = measured.equal_parts and not where
        return repeat_means(measured.runs[entrant], measured.tasks, where, equal_parts=equal_parts)

    def _label(self, entrants: Sequence[str], side: Side) -> str:
        """Returns the name of several runs: their model's, what the user called several, or all of their names."""
        first, models = self.entrants[entrants[0]], self._models(entrants)
        if len(models) == 1:
            return first.label
        if models == self._models(side.entrants):
            return f"{side.name} [{first.variation}]" if first.variation else side.name
        return ", ".join(self.entrants[key].label for key in entrants)

    def _models(self, entrants: Sequence[str]) -> set[str]:
        return {self.entrants[key].model for key in entrants}

    def _mean(self, place: _Place, cells: Sequence[Cell], observed: Observations | None) -> Cell:
        flags = ordered({flag for cell in cells for flag in cell.flags})
        if observed is not None:
            where, coverage = cells[0].where, place.measured.min_coverage
            return cell_of(observed, cells[0].scale, flags=flags, where=where, min_coverage=coverage)
        values = [cell.value for cell in cells if cell.value is not None]
        value = float(np.mean(values)) if len(values) == len(cells) else None
        return replace(cells[0], value=value, low=None, high=None, flags=flags, rank=None, best=False)

    def _gain(self, table: str, each: _Untested, test: Comparison | None) -> Gain:
        compared = self.anyway or not each.flags
        said = {flag for trial in (each.base, each.trained) for flag in trial.cell.flags} - NOT_COMPARABLE
        flags = ordered(said.union(each.flags))
        return Gain(
            table=table,
            unit=each.place.address.unit,
            statistic=each.place.address.statistic,
            where=each.place.address.where,
            base=each.base,
            trained=each.trained,
            percent=replace(_percent(each.base.cell, each.trained.cell, compared=compared), flags=flags),
            difference=replace(_difference(each, test, compared=compared), flags=flags),
            test=test,
        )


def _said(labels: Mapping[str, str], key: str, word: str) -> str:
    return f"{labels[key]} is {word}"


def _percent(base: Cell, trained: Cell, *, compared: bool) -> Cell:
    before, after, better = base.value, trained.value, base.scale.better
    if not compared or before is None or after is None:
        return Cell(None, PERCENT)
    if better is None:
        return Cell(None, PERCENT, note="neither end of the scale is better")
    if before <= 0:
        return Cell(None, PERCENT, note="the base's number isn't above 0")
    return Cell((-100.0 if better == "lower" else 100.0) * (after - before) / before, PERCENT)


def _difference(each: _Untested, test: Comparison | None, *, compared: bool) -> Cell:
    base, trained = each.base.cell, each.trained.cell
    nothing = Cell(None, scale_of_differences(trained.scale), runs=(*base.runs, *trained.runs), where=trained.where)
    if not compared:
        return nothing
    if test is None:
        if base.value is None or trained.value is None:
            return nothing
        return replace(nothing, value=trained.value - base.value, note="there are no samples to test")
    if not test.n:
        return replace(nothing, note="no items in common")
    return replace(
        nothing,
        value=known(test.difference),
        low=test.low,
        high=test.high,
        n=test.n,
        best=test.p_holm is not None and test.p_holm <= ALPHA and test.difference != 0,
    )
