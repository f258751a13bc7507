"""What is measured as one number, and every number of the report by its address.

An address is a unit, a row, a statistic and groups of samples (:mod:`culture_tasks.benchmarks.reporting`). Benchmarks
say which addresses there are; here they get their numbers, with what a reader must know of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from culture_tasks.benchmarks.interface import Benchmark, Group, MeanScore, Scale, Task
from culture_tasks.benchmarks.registry import benchmarks, entries, tasks_below
from culture_tasks.benchmarks.reporting import At, BenchmarkReport, Derived, FurtherScore, Ran, UnitOf, Where
from culture_tasks.harness.model_costs import combined
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.metrics.intervals import Interval, mean_interval
from culture_tasks.report.model import Cell, Flag, GroupValue, Unit
from culture_tasks.report.numbers.observations import (
    SCORE,
    Observations,
    answers_of,
    cell_of,
    from_interval,
    observe,
    ordered,
    unlike_its_file,
)
from culture_tasks.results import comparability
from culture_tasks.results.loaded_runs import Entered, LoadedRun

_Z = 1.959963984540054
OF_JUDGES: frozenset[Flag] = frozenset(("lexical_judge", "other_judge", "other_judge_prompt", "unjudged"))
"""Flags that say nothing of a score that needs no judge."""

_GROUPS = 100
"""Groups beyond which a field that no benchmark says anything of is taken for a name of items, and not split by."""


def report_of(benchmark: str | None) -> BenchmarkReport:
    """Returns how a benchmark is reported; one whose package isn't installed here as any benchmark is."""
    known = benchmarks().get(benchmark or "")
    return BenchmarkReport() if known is None else known.report()


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit with what is needed to look into it.

    Attributes:
        unit: The unit.
        tasks: Its tasks, in the order in which all entrants number them.
        equal_parts: Whether its tasks weigh the same, rather than its items.
        runs: Runs that have samples, by entrant.
        flags: Flags of the whole score, by entrant, without low coverage and missing tasks.
        min_coverage: Share of scored verdicts under which a number is flagged.
        own_data: Keys of the runs whose data aren't the benchmark's release.
    """

    unit: Unit
    tasks: tuple[str, ...]
    equal_parts: bool
    runs: Mapping[str, Sequence[LoadedRun]]
    flags: Mapping[str, frozenset[Flag]]
    min_coverage: float
    own_data: frozenset[str] = frozenset()

    def marked(self, cell: Cell) -> Cell:
        """Returns a number with a flag where a run behind it is on other data than the release."""
        return cell if self.own_data.isdisjoint(cell.runs) else replace(cell, flags=ordered({*cell.flags, "own_data"}))

    @property
    def reported(self) -> BenchmarkReport:
        """How its benchmark is reported."""
        return report_of(self.unit.benchmark)

    @property
    def is_mean_of_samples(self) -> bool:
        """Whether its score is the mean of its samples' scores."""
        metrics = [each.kind.metrics[each.kind.metric] for own in self.runs.values() for each in own if each.kind]
        return all(isinstance(metric, MeanScore) and metric.per_cluster is None for metric in metrics)

    def observe(self, entrant: str, where: Where = (), statistic: str = SCORE) -> Observations:
        """Gathers an entrant's samples in some groups."""
        return observe(self.runs[entrant], self.tasks, where, statistic=statistic, equal_parts=self.equal_parts)

    def observe_group(self, entrant: str, where: Where, statistic: str = SCORE) -> Observations:
        """Gathers an entrant's samples behind the number of a group: in its score all items weigh the same."""
        if statistic == SCORE:
            return observe(self.runs[entrant], self.tasks, where)
        return self.observe(entrant, where, statistic)

    def groups(self, entrant: str, name: str) -> list[str]:
        """Returns the groups of a field that an entrant has samples of, in order; unnamed ones are left out."""
        present: dict[str, None] = {}
        for each in self.runs[entrant]:
            if each.columns is not None and name in each.columns.groups:
                present.update(dict.fromkeys(each.columns.groups[name].present()))
        order = self.reported.field_named(name).order
        return [*(one for one in order if one in present), *sorted(one for one in present if one and one not in order)]

    def combinations(self, entrant: str, fields: Sequence[str]) -> list[Where]:
        """Returns the combinations of groups that an entrant has samples of, in order."""
        found: list[Where] = [()]
        for name in fields:
            found = [(*where, (name, group)) for where in found for group in self.groups(entrant, name)]
        return found


# Units


@dataclass(frozen=True, slots=True)
class _Plan:
    """A unit before it is measured."""

    unit: UnitOf
    benchmark: str
    metric: str
    scale: Scale
    about: str
    is_group: bool = False
    equal_parts: bool = False


def measure(entered: Sequence[Entered], min_coverage: float) -> list[Measured]:
    """Works out every unit of our benchmarks that some entrant has runs of: groups, then tasks, then a user's own.

    Args:
        entered: The entrants.
        min_coverage: Share of scored verdicts under which a number is flagged.
    """
    known = [plan for benchmark in benchmarks().values() for plan in _plans(benchmark, entered)]
    plans = [*(each for each in known if each.is_group), *(each for each in known if not each.is_group)]
    return [_measured(plan, entered, min_coverage) for plan in (*plans, *_own_plans(entered))]


def _plans(benchmark: Benchmark, entered: Sequence[Entered]) -> Iterator[_Plan]:
    """Yields the units of a benchmark's own tasks and groups."""
    tasks = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Task)}
    groups = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Group) and entry.means}
    ran = Ran(
        tasks=tuple(tasks),
        groups={name: tuple(task.name for task in tasks_below(name)) for name in groups},
        parts={member for group in groups.values() for member in group.members},
        models=[one.runs.keys() & tasks.keys() for one in entered],
    )
    for unit in benchmark.report().units(ran):
        task, group = tasks[unit.tasks[0]], groups.get(unit.key)
        yield _Plan(
            unit=unit,
            benchmark=benchmark.name,
            metric=task.metric,
            scale=next(metric.scale for metric in task.metrics() if metric.name == task.metric),
            about=task.about if group is None else group.about,
            is_group=group is not None,
            equal_parts=group is not None and not group.weight_by_size,
        )


def _own_plans(entered: Sequence[Entered]) -> Iterator[_Plan]:
    """Yields a unit for each task that isn't in the registry, but has records as ours have."""
    found = {
        task: each.kind
        for one in entered
        for task, each in one.runs.items()
        if each.kind is not None and task not in entries()
    }
    for task, kind in sorted(found.items()):
        yield _Plan(
            UnitOf(task, (task,)), kind.benchmark, metric=kind.metric, scale=kind.scale, about="a task of your own"
        )


def _measured(plan: _Plan, entered: Sequence[Entered], min_coverage: float) -> Measured:
    runs = {
        one.entrant.key: [one.runs[task] for task in plan.unit.tasks if task in one.runs]
        for one in entered
        if any(task in one.runs for task in plan.unit.tasks)
    }
    key = plan.unit.key
    unit = Unit(
        key=key,
        title=key,
        benchmark=plan.benchmark,
        metric=plan.metric,
        scale=plan.scale,
        about=plan.about,
        headline=plan.unit.headline,
        cells={},
    )
    measured = Measured(
        unit=unit,
        tasks=plan.unit.tasks,
        equal_parts=plan.equal_parts,
        runs={key: [each for each in own if each.columns is not None] for key, own in runs.items()},
        flags=_flags(runs),
        min_coverage=min_coverage,
        own_data=frozenset(each.run.key for own in runs.values() for each in own if each.run.own_data),
    )
    cells = {key: measured.marked(_score(measured, key, own)) for key, own in runs.items()}
    return replace(measured, unit=replace(unit, cells=cells))


def _flags(runs: Mapping[str, Sequence[LoadedRun]]) -> dict[str, frozenset[Flag]]:
    """Returns what holds for all numbers of an entrant: how it differs from the usual settings, and what it lacks."""
    settings = {key: {each.run.task: each.run.settings for each in own} for key, own in runs.items()}
    weight = {
        key: (sum(each.run.scored for each in own), max(each.run.date for each in own)) for key, own in runs.items()
    }
    usual = settings[comparability.reference(settings, weight)]
    found: dict[str, frozenset[Flag]] = {}
    for key, own in runs.items():
        flags = comparability.between(settings[key], usual) | comparability.within(settings[key])
        found[key] = frozenset(flags | {flag for each in own for flag in flags_of(each)})
    return found


def flags_of(each: LoadedRun) -> Iterator[Flag]:
    """Yields what a reader must know of the numbers of a run by itself."""
    if each.lexical:
        yield "lexical_judge"
    if each.columns is None:
        yield "from_result_file"
    elif each.result.expected and each.run.items < each.result.expected:
        yield "incomplete"
    if each.columns is not None and not each.run.scored:
        yield "unjudged"
    if each.again:
        yield "other_harness"
    if each.run.trained_on:
        yield "trained_on_test"
    if unlike_its_file(each):
        yield "unlike_its_file"


def _score(measured: Measured, key: str, runs: Sequence[LoadedRun]) -> Cell:
    flags = set(measured.flags[key])
    missing = [task for task in measured.tasks if task not in {each.run.task for each in runs}]
    if missing:
        flags.add("incomplete")
    if "from_result_file" in flags and len(measured.tasks) > 1:
        keys = tuple(each.run.key for each in runs)
        note = "needs the samples of all of its tasks"
        return Cell(None, measured.unit.scale, flags=ordered(flags), runs=keys, note=note)
    if "from_result_file" in flags:
        metric, metrics = measured.unit.metric, runs[0].result.metrics
        name = metric if metric in metrics else f"{metric}{LEXICAL}"
        return harness_cell(runs[0], name, scale=measured.unit.scale, flags=flags)
    cell = cell_of(measured.observe(key), measured.unit.scale, tuple(flags), min_coverage=measured.min_coverage)
    notes = (cell.note, f"without {', '.join(missing)}" if missing else "")
    return replace(cell, note="; ".join(note for note in notes if note))


def harness_cell(each: LoadedRun, metric: str, scale: Scale, flags: set[Flag]) -> Cell:
    """Returns a number of a result file, with an interval by its standard error where there is one."""
    value = scale.times * each.result.metrics.get(metric, float("nan"))
    error = scale.times * each.result.errors.get(metric, float("nan"))
    items = each.result.expected or 0
    found = Interval(
        value,
        value - _Z * error,
        high=value + _Z * error,
        n=items,
        clusters=items,
        reason="no standard error in the result file",
    )
    coverage = each.result.metrics.get(f"{metric.removesuffix(LEXICAL)}_coverage")
    return from_interval(found, scale, flags=flags, runs=(each.run.key,), where=(), coverage=coverage)


# Numbers by address


@dataclass(frozen=True, slots=True)
class Scores:
    """Every number of our benchmarks.

    Attributes:
        units: The units, by key.
        cells: The numbers of each entrant, by address.
        groups: Those that belong to a group, in long form.
    """

    units: Mapping[str, Measured]
    cells: dict[At, dict[str, Cell]] = field(default_factory=dict)
    groups: list[GroupValue] = field(default_factory=list)

    def at(self, address: At) -> Mapping[str, Cell]:
        """Returns the numbers at an address, by entrant."""
        return self.cells.get(address, {})

    def scale(self, address: At) -> Scale | None:
        """Returns the scale of the numbers at an address; None where its unit wasn't run."""
        measured = self.units.get(address.unit)
        if measured is None:
            return None
        others = {each.name: each.scale for each in measured.reported.further}
        others |= {each.name: each.scale for each in measured.reported.derived}
        others |= {each.name: each.scale for each in measured.reported.costs}
        return others.get(address.statistic, measured.unit.scale)

    def put(self, entrant: str, address: At, cell: Cell) -> None:
        """Adds a number."""
        self.cells.setdefault(address, {})[entrant] = self.units[address.unit].marked(cell)

    def put_group(self, entrant: str, address: At, cell: Cell) -> None:
        """Adds a number of a group: the last one of its address."""
        self.put(entrant, address, cell)
        cell = self.cells[address][entrant]
        self.groups.append(GroupValue(address.unit, entrant, address.statistic, *address.where[-1], cell))


def all_scores(measured: Sequence[Measured]) -> Scores:
    """Works out every number: whole scores, then groups, then what is derived."""
    scores = Scores({each.unit.key: each for each in measured})
    for each in measured:
        _add_whole(scores, each)
        _add_groups(scores, each)
        _add_costs(scores, each)
    for each in measured:
        for derived in each.reported.derived:
            if derived.units(each.unit.key):
                _add_derived(scores, each, derived)
    return scores


def _add_whole(scores: Scores, measured: Measured) -> None:
    for entrant, cell in measured.unit.cells.items():
        scores.put(entrant, At(measured.unit.key), cell)
        for further in measured.reported.further if measured.runs[entrant] else ():
            missing: set[Flag] = {flag for flag in cell.flags if flag == "incomplete"}
            own = _further(measured, entrant, where=(), further=further, more=missing)
            if own is not None:
                scores.put(entrant, At(measured.unit.key, further.name), own)


def _add_groups(scores: Scores, measured: Measured) -> None:
    key, reported = measured.unit.key, measured.reported
    for fields in _splits(measured):
        for entrant in measured.runs:
            for where in measured.combinations(entrant, fields):
                observed = measured.observe_group(entrant, where)
                if not observed.scores.size:
                    continue
                flags = tuple(measured.flags[entrant])
                cell = cell_of(
                    observed, measured.unit.scale, flags=flags, where=where, min_coverage=measured.min_coverage
                )
                scores.put_group(entrant, At(key, where=where), cell)
                for further in reported.further:
                    own = _further(measured, entrant, where=where, further=further)
                    if own is not None:
                        scores.put_group(entrant, At(key, further.name, where), own)


def _add_costs(scores: Scores, measured: Measured) -> None:
    """Adds what the runs of each entrant cost, each result file once; a new grading repeats the old file's costs."""
    for entrant, runs in measured.runs.items():
        files = {each.result.graded_from or each.result.path: each.result.costs for each in runs}
        known = [costs for costs in files.values() if costs is not None]
        if not known:
            continue
        costs, keys = combined(known), tuple(each.run.key for each in runs)
        for cost in measured.reported.costs:
            value = getattr(costs, cost.name)
            flags: tuple[Flag, ...] = ("in_batches",) if cost.of_single_requests and not costs.one_at_a_time else ()
            if value is not None:
                cell = Cell(float(value), cost.scale, flags=flags, runs=keys)
                scores.put(entrant, At(measured.unit.key, cost.name), cell)


def _splits(measured: Measured) -> Sequence[tuple[str, ...]]:
    """Returns what a unit's score is split by: what its benchmark says, else every field with few groups."""
    if measured.reported.splits is not None:
        return measured.reported.splits
    columns = [each.columns for own in measured.runs.values() for each in own if each.columns is not None]
    fields = dict.fromkeys(name for each in columns for name in each.groups)
    most = {name: max(len(each.groups[name].names) for each in columns if name in each.groups) for name in fields}
    return [(name,) for name in fields if most[name] <= _GROUPS]


def _further(
    measured: Measured, entrant: str, where: Where, further: FurtherScore, more: set[Flag] | None = None
) -> Cell | None:
    """Returns a further score, which no judge gives; None where no sample has one and none has to."""
    flags = (measured.flags[entrant] | (more or set())) - OF_JUDGES
    whole_items = further.is_share and bool(where)  # a share of a group counts each of its items once
    observed = observe(
        measured.runs[entrant],
        measured.tasks,
        where,
        statistic=further.name,
        equal_parts=measured.equal_parts and not whole_items,
    )
    if further.read is not None and not observed.n:
        return None
    return cell_of(observed, further.scale, flags=tuple(flags), where=where)


def _add_derived(scores: Scores, measured: Measured, derived: Derived) -> None:
    for entrant, runs in measured.runs.items():
        answers = answers_of(runs, derived.of)
        if answers is None:
            continue
        flags, keys = set(measured.flags[entrant]), tuple(each.run.key for each in runs)
        if derived.of != SCORE:
            flags -= OF_JUDGES
        for where in measured.combinations(entrant, derived.within):
            mask = np.ones(answers.scores.size, dtype=np.bool_)
            for name, group in where:
                mask &= answers.groups[name].equals(group)
            if not mask.any():
                continue
            own = answers.only(mask)
            for group, value in derived.compute(own).items():
                if isinstance(value, float):
                    cell = Cell(value, derived.scale, n=int(mask.sum()), flags=ordered(flags), runs=keys, where=where)
                else:
                    cell = from_interval(
                        mean_interval(value, own.clusters), derived.scale, flags=flags, runs=keys, where=where
                    )
                place = ((derived.dimension, group),) if derived.dimension else ()
                add = scores.put_group if derived.dimension else scores.put
                add(entrant, At(measured.unit.key, derived.name, (*where, *place)), cell)
