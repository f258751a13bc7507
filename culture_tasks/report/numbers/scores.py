"""What is measured as one number, and every number of the report by its address.

An address is a unit, a row, a statistic and groups of samples (:mod:`culture_tasks.benchmarks.reporting`). Benchmarks
say which addresses there are; here they get their numbers, with what a reader must know of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from culture_tasks.benchmarks.interface import Benchmark, Group, MeanScore, Scale, Task
from culture_tasks.benchmarks.registry import benchmarks, entries, tasks_below, title_of
from culture_tasks.benchmarks.reporting import At, BenchmarkReport, Derived, Ran, Where
from culture_tasks.harness.model_costs import total_costs
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.metrics.intervals import Interval, mean_interval
from culture_tasks.report.model import Cell, Flag, GroupValue, Unit
from culture_tasks.report.numbers.observations import (
    SCORE,
    Observations,
    answers_of,
    cell_of,
    columns_of,
    from_interval,
    observe,
    ordered,
    runs_of,
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
    equal_parts: bool = False
    runs: Mapping[str, Sequence[LoadedRun]] = field(default_factory=dict)
    flags: Mapping[str, frozenset[Flag]] = field(default_factory=dict)
    min_coverage: float = 0.0
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
        """Gathers an entrant's samples in some groups; in the score of groups all items weigh the same."""
        equal_parts = self.equal_parts and not (where and statistic == SCORE)
        return observe(self.runs[entrant], self.tasks, where, statistic=statistic, equal_parts=equal_parts)

    def groups(self, entrant: str, name: str) -> list[str]:
        """Returns the groups of a field that an entrant has samples of, in order; unnamed ones are left out."""
        columns = (columns_of(each).groups.get(name) for each in self.runs[entrant])
        present = dict.fromkeys(group for texts in columns if texts is not None for group in texts.present())
        order = self.reported.field_named(name).order
        return [*(one for one in order if one in present), *sorted(one for one in present if one and one not in order)]

    def combinations(self, entrant: str, fields: Sequence[str]) -> list[Where]:
        """Returns the combinations of groups that an entrant has samples of, in order."""
        found: list[Where] = [()]
        for name in fields:
            found = [(*where, (name, group)) for where in found for group in self.groups(entrant, name)]
        return found


# Units


def measure(entered: Sequence[Entered], min_coverage: float) -> list[Measured]:
    """Works out every unit of our benchmarks that some entrant has runs of: groups, then tasks, then a user's own."""
    ours = [pair for benchmark in benchmarks().values() for pair in _units(benchmark, entered)]
    groups_first = [one for wanted in (True, False) for is_group, one in ours if is_group == wanted]
    return [_measured(one, entered, min_coverage) for one in (*groups_first, *_own_tasks(entered))]


def _units(benchmark: Benchmark, entered: Sequence[Entered]) -> Iterator[tuple[bool, Measured]]:
    """Yields the units of a benchmark's own tasks and groups, not yet measured; first whether it is a group."""
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
        metric = next(metric for metric in task.metrics() if metric.name == task.metric)
        one = Unit(
            key=unit.key,
            title=title_of(unit.key),
            benchmark=benchmark.name,
            metric=metric.name,
            quantity=metric.title,
            scale=metric.scale,
            about=task.about if group is None else group.about,
            headline=unit.headline,
            cells={},
        )
        yield group is not None, Measured(one, unit.tasks, group is not None and not group.weight_by_size)


def _own_tasks(entered: Sequence[Entered]) -> Iterator[Measured]:
    """Yields a unit for each task that isn't in the registry, but has records as ours have."""
    found = {
        task: each.kind
        for one in entered
        for task, each in one.runs.items()
        if each.kind is not None and task not in entries()
    }
    for task, kind in sorted(found.items()):
        about = "a task of your own"
        unit = Unit(task, task, kind.benchmark, kind.metric, kind.scale, about, headline=True, cells={})
        yield Measured(unit, (task,))


def _measured(one: Measured, entered: Sequence[Entered], min_coverage: float) -> Measured:
    runs = {entry.entrant.key: [entry.runs[task] for task in one.tasks if task in entry.runs] for entry in entered}
    runs = {key: own for key, own in runs.items() if own}
    measured = replace(
        one,
        runs={key: [each for each in own if each.columns is not None] for key, own in runs.items()},
        flags=flags_by_row(runs, lambda each: (each.whole or each).run.scored),
        min_coverage=min_coverage,
        own_data=frozenset(each.run.key for own in runs.values() for each in own if each.run.own_data),
    )
    cells = {key: measured.marked(_score(measured, key, own)) for key, own in runs.items()}
    return replace(measured, unit=replace(one.unit, cells=cells))


def flags_by_row(
    runs: Mapping[str, Sequence[LoadedRun]], items: Callable[[LoadedRun], int]
) -> dict[str, frozenset[Flag]]:
    """Returns what holds for all numbers of an entrant: how it differs from the usual settings, and what it lacks.

    Of settings that are shared by equally many, those of most items are the usual ones.
    """
    settings = {key: {each.run.task: each.run.settings for each in own} for key, own in runs.items()}
    weight = {key: (sum(map(items, own)), max(each.run.date for each in own)) for key, own in runs.items()}
    usual = settings[comparability.reference(settings, weight)]
    flags: dict[str, frozenset[Flag]] = {}
    for key, own in runs.items():
        apart = comparability.between(settings[key], usual) | comparability.within(settings[key])
        flags[key] = frozenset(apart.union(*map(flags_of, own)))
    return flags


def flags_of(each: LoadedRun) -> set[Flag]:
    """Returns what a reader must know of the numbers of a run by itself."""
    has_samples = each.columns is not None
    flags: dict[Flag, bool] = {
        "lexical_judge": each.lexical,
        "from_result_file": not has_samples,
        "incomplete": has_samples and each.run.items < (each.result.expected or 0),
        "unjudged": has_samples and not each.run.scored,
        "other_harness": each.again,
        "trained_on_test": bool(each.run.trained_on),
        "unlike_its_file": bool(unlike_its_file(each)),
        "subset": each.result.subset is not None,
    }
    return {flag for flag, is_so in flags.items() if is_so}


def _score(measured: Measured, key: str, runs: Sequence[LoadedRun]) -> Cell:
    flags, scale, metric = set(measured.flags[key]), measured.unit.scale, measured.unit.metric
    missing = [task for task in measured.tasks if task not in {each.run.task for each in runs}]
    if missing:
        flags.add("incomplete")
    if "from_result_file" in flags and len(measured.tasks) > 1:
        keys = tuple(each.run.key for each in runs)
        return Cell(None, scale, flags=ordered(flags), runs=keys, note="needs the samples of all of its tasks")
    if "from_result_file" in flags:
        name = metric if metric in runs[0].result.metrics else f"{metric}{LEXICAL}"
        return harness_cell(runs[0], name, scale, flags)
    cell = cell_of(measured.observe(key), scale, tuple(flags), min_coverage=measured.min_coverage)
    subsets = [
        f"{title_of(each.run.task)}: {each.result.subset} documents"
        + ("" if each.whole is None else f", with the verdicts of {each.whole.run.settings.judged_by} on all")
        + (f", with the scores of {len(each.others)} other models on all" if each.others else "")
        for each in runs
        if each.result.subset is not None
    ]
    notes = (cell.note, f"without {' and '.join(map(title_of, missing))}" if missing else "", *subsets)
    return replace(cell, note="; ".join(filter(None, notes)))


def harness_cell(each: LoadedRun, metric: str, scale: Scale, flags: set[Flag]) -> Cell:
    """Returns a number of a result file, with an interval by its standard error where there is one."""
    value = scale.times * each.result.metrics.get(metric, math.nan)
    reach = _Z * (scale.times * each.result.errors.get(metric, math.nan))
    n, reason = each.result.expected or 0, "no standard error in the result file"
    interval = Interval(value, value - reach, value + reach, n=n, clusters=n, reason=reason)
    coverage = each.result.metrics.get(f"{metric.removesuffix(LEXICAL)}_coverage")
    return from_interval(interval, scale, flags, (each.run.key,), coverage=coverage)


# Numbers by address


@dataclass(frozen=True, slots=True)
class Scores:
    """Every number of our benchmarks: the units, numbers by address and entrant, and those of groups in long form."""

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

    def put(self, entrant: str, address: At, cell: Cell, *, is_of_group: bool = False) -> None:
        """Adds a number, which may be one of a group: the last one of its address."""
        cell = self.cells.setdefault(address, {})[entrant] = self.units[address.unit].marked(cell)
        if is_of_group:
            self.groups.append(GroupValue(address.unit, entrant, address.statistic, *address.where[-1], cell))

    def further(self) -> Iterator[GroupValue]:
        """Yields the numbers that are neither a unit's own score nor that of a group of its statistic."""
        of_groups = {id(value.cell) for value in self.groups}
        for address, cells in self.cells.items():
            for entrant, cell in cells.items():
                if address != At(address.unit) and id(cell) not in of_groups:
                    yield GroupValue(address.unit, entrant, address.statistic, "", "", cell)


def all_scores(measured: Sequence[Measured]) -> Scores:
    """Works out every number: whole scores, then groups, then what is derived."""
    scores = Scores({each.unit.key: each for each in measured})
    for each in measured:
        _add_scores(scores, each)
        _add_costs(scores, each)
    for each in measured:
        for derived in each.reported.derived:
            if derived.units(each.unit.key):
                _add_derived(scores, each, derived)
    return scores


def _add_scores(scores: Scores, measured: Measured) -> None:
    """Adds the whole scores, then those of groups, each with the further scores of the same samples."""
    key = measured.unit.key
    for fields in ((), *_splits(measured)):
        for entrant, flags in measured.flags.items():
            for where in measured.combinations(entrant, fields):
                cell = measured.unit.cells[entrant]
                if where:
                    observed = measured.observe(entrant, where)
                    if not observed.scores.size:
                        continue
                    scale, least = measured.unit.scale, measured.min_coverage
                    cell = cell_of(observed, scale, tuple(flags), where, min_coverage=least)
                scores.put(entrant, At(key, where=where), cell, is_of_group=bool(where))
                of_all: set[Flag] = {*flags, *(flag for flag in cell.flags if flag == "incomplete")}
                for name, further in _further(measured, entrant, where, of_all):
                    scores.put(entrant, At(key, name, where), further, is_of_group=bool(where))


def _add_costs(scores: Scores, measured: Measured) -> None:
    """Adds what the runs of each entrant cost, each result file once; a new grading repeats the old file's costs."""
    for entrant, runs in measured.runs.items():
        files = {each.result.graded_from or each.result.path: each.result.costs for each in runs}
        known = [costs for costs in files.values() if costs is not None]
        if not known:
            continue
        costs, keys = total_costs(known), tuple(each.run.key for each in runs)
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
    columns = [columns_of(each) for own in measured.runs.values() for each in own]
    fields = dict.fromkeys(name for each in columns for name in each.groups)
    most = {name: max(len(each.groups[name].names) for each in columns if name in each.groups) for name in fields}
    return [(name,) for name in fields if most[name] <= _GROUPS]


def _further(measured: Measured, entrant: str, where: Where, flags: set[Flag]) -> Iterator[tuple[str, Cell]]:
    """Yields the further scores, which no judge gives, by name; but those that no sample has and none has to have."""
    runs, tasks = measured.runs[entrant], measured.tasks
    for further in measured.reported.further if runs else ():
        # A share of a group counts each of its items once.
        equal_parts = measured.equal_parts and not (further.is_share and where)
        observed = observe(runs, tasks, where, statistic=further.name, equal_parts=equal_parts)
        if observed.n or further.read is None:
            own = _without_judge(flags, runs_of(runs, further.name))
            yield further.name, cell_of(observed, further.scale, tuple(own), where)


def _without_judge(flags: set[Flag], runs: Sequence[LoadedRun]) -> set[Flag]:
    """Returns the flags of a score that needs no judge, from those of a row and the runs that the score is of."""
    is_sampled = any(each.result.subset is not None for each in runs)
    return flags - OF_JUDGES - (set() if is_sampled else {"subset"})


def _add_derived(scores: Scores, measured: Measured, derived: Derived) -> None:
    for entrant, runs in measured.runs.items():
        answers = answers_of(runs, derived.of)
        if answers is None:
            continue
        behind, flags = runs_of(runs, derived.of), set(measured.flags[entrant])
        flags = flags if derived.of == SCORE else _without_judge(flags, behind)
        keys = tuple(each.run.key for each in behind)
        for where in measured.combinations(entrant, derived.within):
            own = answers
            for name, group in where:
                own = own.only(own.groups[name].equals(group))
            n = own.scores.size
            for group, value in derived.compute(own).items() if n else ():
                if isinstance(value, float):
                    cell = Cell(value, derived.scale, n=n, flags=ordered(flags), runs=keys, where=where)
                else:
                    cell = from_interval(mean_interval(value, own.clusters), derived.scale, flags, keys, where)
                place = ((derived.dimension, group),) if derived.dimension else ()
                address = At(measured.unit.key, derived.name, (*where, *place))
                scores.put(entrant, address, cell, is_of_group=bool(place))
