"""Every number of the report, by its address: a unit, a statistic, groups of the samples, and a row.

A *unit* is a task, or a group of tasks whose results make one score; a *statistic* is that score (``score``), a further
score of the same samples, or one that the benchmark works out. Benchmarks say which there are
(:mod:`culture_tasks.benchmarks.reporting`), and :mod:`~culture_tasks.report.numbers.estimates` works them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from culture_tasks.benchmarks.interface import MeanScore, Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import BenchmarkReport, Cost, Derived, FurtherScore, Where
from culture_tasks.metrics.intervals import LARGE_CLUSTER, Interval
from culture_tasks.metrics.rankings import Rank as Rank
from culture_tasks.report.numbers.selection import SCORE, Selection, select
from culture_tasks.results.comparability import NOT_COMPARABLE, Flag
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run


@dataclass(frozen=True, slots=True)
class Number:
    """One number; None where there is none, and the flags or the note say why.

    Attributes:
        coverage: Scored items over items; None where that isn't known.
        where: (field, group) pairs that hold for its samples, such as ``(("country", "brazil"),)``. A statistic
            that is computed by group, such as one for each emotion, has its own group as the last pair.
        best: Whether no other of its column is significantly better, and some are worse: it is then bold.
        note: More about it, in one line; may be empty.
        remarks: What is shown behind it, such as ``first 14 of 42 items``.
        samples: The pairs of ``where`` that choose its samples; None where all of them do.
    """

    value: float | None
    scale: Scale
    low: float | None = None
    high: float | None = None
    n: int = 0
    coverage: float | None = None
    flags: tuple[Flag, ...] = ()
    runs: tuple[str, ...] = ()
    where: Where = ()
    rank: Rank | None = None
    best: bool = False
    note: str = ""
    remarks: tuple[str, ...] = ()
    row: str = ""
    unit: str = ""
    statistic: str = SCORE
    clusters: int = 0
    samples: Where | None = None

    @property
    def comparable(self) -> bool:
        """Whether it may be ranked and tested against others of its column."""
        return self.value is not None and not NOT_COMPARABLE.intersection(self.flags)

    @property
    def dimension(self) -> str:
        """The kind of its group: a field of the records, or the subject of the statistic; empty for the whole."""
        return self.where[-1][0] if self.where else ""

    @property
    def group(self) -> str:
        """Its group; empty for the whole."""
        return self.where[-1][1] if self.where else ""


def nan_to_none(value: float) -> float | None:
    """Returns a number, or None for NaN."""
    return None if math.isnan(value) else float(value)


def ordered(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Returns flags in a fixed order."""
    return tuple(sorted(flags))


def from_interval(
    estimate: Interval,
    scale: Scale,
    flags: Iterable[Flag] = (),
    runs: Sequence[str] = (),
    where: Where = (),
    coverage: float | None = None,
) -> Number:
    """Returns the number of an interval, cut at the ends of the scale, with None for NaN and its reason as the note."""
    number = Number(None, scale, flags=ordered(flags), runs=tuple(runs), where=where, coverage=coverage)
    if math.isnan(estimate.value):
        return number
    low = nan_to_none(estimate.low if scale.low is None else max(estimate.low, scale.low))
    high = nan_to_none(estimate.high if scale.high is None else min(estimate.high, scale.high))
    note = f"no interval: {estimate.reason}" if estimate.reason and math.isnan(estimate.low) else ""
    if not note and estimate.clusters < estimate.n and estimate.largest > LARGE_CLUSTER:
        note = f"one cluster has {estimate.largest:.0%} of the items"
    sized = replace(number, n=estimate.n, clusters=estimate.clusters)
    return replace(sized, value=estimate.value, low=low, high=high, note=note)


def number_of(
    selection: Selection, scale: Scale, flags: Iterable[Flag] = (), where: Where = (), *, min_coverage: float = 0.0
) -> Number:
    """Returns the number of some samples; low coverage adds a flag."""
    coverage, all_flags = selection.coverage, {*flags} - {"low_coverage"}
    low: set[Flag] = {"low_coverage"} if coverage is not None and coverage < min_coverage else set()
    return from_interval(selection.interval(scale), scale, all_flags | low, selection.runs, where, coverage)


def of_own_data(number: Number, results: Results) -> Number:
    """Returns the number, flagged where one of its runs is on other data than the benchmark's release."""
    runs = {run.key for run in results.runs if run.own_data}
    return number if runs.isdisjoint(number.runs) else replace(number, flags=ordered({*number.flags, "own_data"}))


@dataclass(frozen=True, slots=True)
class Standing:
    """Who is best in a column, and how certain that is. The ranks are in the numbers.

    Attributes:
        ranked: Keys of the rows that are ranked, the best score first.
        best: Those of them that no other is significantly better than: the best is among them with 95 % confidence.
        left_out: Keys of the rows that aren't ranked, each with the reason in words.
    """

    ranked: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Unit:
    """A task or group with one score for each row. Its key is the task's name, its title the name for readers.

    Attributes:
        benchmark: Our benchmark; None for a task of a harness.
        headline: Whether it is in the summary, and not only in a table of its benchmark.
        quantity: Its metric in words, without a unit.
        tasks: Its tasks, in the order in which all rows number them.
        equal_parts: Whether each task, or each group that its metric names, has the same weight, rather than each item.
        flags: Flags of the whole score, by row, without low coverage and missing tasks.
    """

    key: str
    title: str
    benchmark: str | None
    metric: str
    scale: Scale
    about: str
    headline: bool
    cells: dict[str, Number] = field(default_factory=dict, repr=False)
    standing: Standing = Standing()
    quantity: str = ""
    tasks: tuple[str, ...] = ()
    equal_parts: bool = field(default=False, repr=False)
    runs: Mapping[str, Sequence[Run]] = field(default_factory=dict, repr=False)
    flags: Mapping[str, frozenset[Flag]] = field(default_factory=dict, repr=False)
    min_coverage: float = field(default=0.0, repr=False)
    results: Results = field(default_factory=Results, repr=False)

    @property
    def measure(self) -> str:
        """Its metric in words, with a sign for percent: ``exact match, %``."""
        return f"{self.quantity or self.metric}{', %' if self.scale.unit == 'percent' else ''}"

    @property
    def reported(self) -> BenchmarkReport:
        """The report of its benchmark."""
        return report_of(self.benchmark)

    @property
    def is_mean_of_samples(self) -> bool:
        """Whether its score is the mean of its samples' scores."""
        metrics = [run.metric for runs in self.runs.values() for run in runs]
        return all(isinstance(metric, MeanScore) and metric.per_cluster is None for metric in metrics)

    def select(self, row: str, where: Where = (), statistic: str = SCORE) -> Selection:
        """Returns a row's samples in some groups; in the score of groups all items weigh the same."""
        equal_parts = self.equal_parts and not (where and statistic == SCORE)
        return select(self.results, self.runs[row], self.tasks, where, statistic=statistic, equal_parts=equal_parts)

    def groups(self, row: str, name: str) -> list[str]:
        """Returns the groups of a field that a row has samples of, in the field's order."""
        present, order = self.results.samples.present(name, self.runs[row]), self.reported.field_named(name)
        return [*(group for group in order if group in present), *sorted(present.difference(order))]

    def combinations(self, row: str, fields: Sequence[str]) -> list[Where]:
        """Returns the combinations of groups that a row may have samples of, in order."""
        return list(product(*([(name, group) for group in self.groups(row, name)] for name in fields)))


def report_of(name: str | None) -> BenchmarkReport:
    """Returns the report of a benchmark; the default one where its package isn't installed."""
    benchmark = benchmarks().get(name or "")
    return BenchmarkReport() if benchmark is None else benchmark.report()


class Numbers:
    """Every number by its address; units come as our groups, our tasks, tasks by the user, those of the harnesses."""

    def __init__(self, units: Iterable[Unit], results: Results) -> None:
        self.units, self.results = {unit.key: unit for unit in units}, results
        self._cells: dict[tuple[str, str, Where], dict[str, Number]] = {
            (key, SCORE, ()): unit.cells for key, unit in self.units.items()
        }
        self._order: dict[tuple[str, str, Where, str], None] = {}

    def __iter__(self) -> Iterator[Number]:
        """Yields the units' scores, then the other numbers."""
        yield from (number for unit in self.units.values() for number in unit.cells.values())
        yield from (self._cells[unit, statistic, where][row] for unit, statistic, where, row in self._order)

    def cells(self, unit: str, statistic: str = SCORE, where: Where = ()) -> Mapping[str, Number]:
        """Returns the numbers at an address, by row."""
        return self._cells.get((unit, statistic, where), {})

    def groups(self, unit: str, name: str) -> list[str]:
        """Returns the groups of a field that some row has samples of, in the field's order."""
        rows = self.units[unit].runs if unit in self.units else ()
        present = dict.fromkeys(group for row in rows for group in self.units[unit].groups(row, name))
        order = [*self.units[unit].reported.field_named(name)] if unit in self.units else []
        return sorted(present, key=lambda group: (order.index(group) if group in order else len(order), group))

    def scale(self, unit: str, statistic: str = SCORE) -> Scale | None:
        """Returns the scale of a statistic; None where its unit wasn't run."""
        if unit not in self.units:
            return None
        reported = self.units[unit].reported
        statistics: tuple[FurtherScore | Derived | Cost, ...] = (*reported.further, *reported.derived, *reported.costs)
        return {each.name: each.scale for each in statistics}.get(statistic, self.units[unit].scale)

    def put(self, number: Number) -> None:
        """Adds a number."""
        unit, number = self.units[number.unit], of_own_data(number, self.results)
        address = (number.unit, number.statistic, number.where)
        self._cells.setdefault(address, {})[number.row] = number
        if self._cells[address] is not unit.cells:
            self._order[*address, number.row] = None
