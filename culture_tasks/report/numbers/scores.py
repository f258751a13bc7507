"""Units, which have one number for each row, and every number of the report by its address.

An address is a unit, a row, a statistic and groups of samples (:mod:`culture_tasks.benchmarks.reporting`). Benchmarks
declare the addresses; this module gives them their numbers and flags.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from culture_tasks.benchmarks.interface import Benchmark, Group, MeanScore, Metric, Scale, Task
from culture_tasks.benchmarks.registry import benchmarks, entries, tasks_below, title_of
from culture_tasks.benchmarks.reporting import At, BenchmarkReport, Cost, Derived, FurtherScore, TasksRun, Where
from culture_tasks.harness.model_costs import total_costs
from culture_tasks.harness.rows import LEXICAL
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval
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
from culture_tasks.report.wording import counted
from culture_tasks.results import comparability
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun

_Z = 1.959963984540054
JUDGED_BY_ITS_OWN: tuple[Flag, ...] = ("self_judged", "own_family_judged")
JUDGE_FLAGS: frozenset[Flag] = frozenset(
    ("lexical_judge", "other_judge", "other_judge_prompt", "unjudged", *JUDGED_BY_ITS_OWN)
)
"""Flags that don't concern a score without a judge."""

_GROUP_LIMIT = 100
"""A field with more groups, which no benchmark declares, is taken for a name of items, and not split by."""


def report_of(name: str | None) -> BenchmarkReport:
    """Returns the report of a benchmark; the default one where its package isn't installed."""
    benchmark = benchmarks().get(name or "")
    return BenchmarkReport() if benchmark is None else benchmark.report()


@dataclass(frozen=True, slots=True)
class Measured:
    """A unit with the runs and samples behind its number.

    Attributes:
        unit: The unit.
        tasks: Its tasks, in the order in which all entrants number them.
        equal_parts: Whether each task, or each group that its metric names, has the same weight, rather than each item.
        runs: Runs with samples, by entrant.
        flags: Flags of the whole score, by entrant, without low coverage and missing tasks.
        min_coverage: Share of scored verdicts under which a number is flagged.
        own_data: Keys of runs on data other than the benchmark's release.
    """

    unit: Unit
    tasks: tuple[str, ...]
    equal_parts: bool = False
    runs: Mapping[str, Sequence[LoadedRun]] = field(default_factory=dict)
    flags: Mapping[str, frozenset[Flag]] = field(default_factory=dict)
    min_coverage: float = 0.0
    own_data: frozenset[str] = frozenset()

    def flag_own_data(self, cell: Cell) -> Cell:
        """Returns a number with a flag where a run behind it is on other data than the release."""
        return cell if self.own_data.isdisjoint(cell.runs) else replace(cell, flags=ordered({*cell.flags, "own_data"}))

    @property
    def reported(self) -> BenchmarkReport:
        """The report of its benchmark."""
        return report_of(self.unit.benchmark)

    @property
    def is_mean_of_samples(self) -> bool:
        """Whether its score is the mean of its samples' scores."""
        metrics = [run.kind.metrics[run.kind.metric] for row_runs in self.runs.values() for run in row_runs if run.kind]
        return all(isinstance(metric, MeanScore) and metric.per_cluster is None for metric in metrics)

    def observe(self, entrant: str, where: Where = (), statistic: str = SCORE) -> Observations:
        """Gathers an entrant's samples in some groups; in the score of groups all items weigh the same."""
        equal_parts = self.equal_parts and not (where and statistic == SCORE)
        return observe(self.runs[entrant], self.tasks, where, statistic=statistic, equal_parts=equal_parts)

    def groups(self, entrant: str, name: str) -> list[str]:
        """Returns the groups of a field that an entrant has samples of, in order; unnamed ones are left out."""
        columns = (columns_of(run).groups.get(name) for run in self.runs[entrant])
        present = dict.fromkeys(group for texts in columns if texts is not None for group in texts.present())
        order = self.reported.field_named(name)
        return [*(group for group in order if group in present), *sorted(present.keys() - {"", *order})]

    def combinations(self, entrant: str, fields: Sequence[str]) -> list[Where]:
        """Returns the combinations of groups that an entrant has samples of, in order."""
        return list(product(*([(name, group) for group in self.groups(entrant, name)] for name in fields)))


# Units


def measure(entered: Sequence[EntrantRuns], min_coverage: float) -> list[Measured]:
    """Works out every unit of our benchmarks that some entrant has run: groups, then tasks, then the user's tasks."""
    units = [pair for benchmark in benchmarks().values() for pair in _units(benchmark, entered)]
    groups_first = [measured for _, measured in sorted(units, key=lambda unit: not unit[0])]
    return [_measured(measured, entered, min_coverage) for measured in (*groups_first, *_user_tasks(entered))]


def _units(benchmark: Benchmark, entered: Sequence[EntrantRuns]) -> Iterator[tuple[bool, Measured]]:
    """Yields the units of a benchmark's tasks and groups, not yet measured, and whether each is a group."""
    tasks = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Task)}
    groups = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Group) and entry.means}
    facts = TasksRun(
        tasks=tuple(tasks),
        groups={name: tuple(task.name for task in tasks_below(name)) for name in groups},
        parts={member for group in groups.values() for member in group.members},
        models=[row.runs.keys() & tasks.keys() for row in entered],
    )
    for declaration in benchmark.report().units(facts):
        task, group = tasks[declaration.tasks[0]], groups.get(declaration.key)
        metric = next(metric for metric in task.metrics() if metric.name == task.metric)
        unit = Unit(
            key=declaration.key,
            title=title_of(declaration.key),
            benchmark=benchmark.name,
            metric=metric.name,
            quantity=metric.title,
            scale=metric.scale,
            about=task.about if group is None else group.about,
            headline=declaration.headline,
            cells={},
        )
        equal_parts = not group.weight_by_size if group else _has_equal_groups(metric)
        yield group is not None, Measured(unit, declaration.tasks, equal_parts)


def _user_tasks(entered: Sequence[EntrantRuns]) -> Iterator[Measured]:
    """Yields a unit for each task that isn't in the registry but has records like ours."""
    kinds = {
        task: run.kind
        for row in entered
        for task, run in row.runs.items()
        if run.kind is not None and task not in entries()
    }
    for task, kind in sorted(kinds.items()):
        about = "a task of your own"
        unit = Unit(task, task, kind.benchmark, kind.metric, kind.scale, about, headline=True, cells={})
        yield Measured(unit, (task,), _has_equal_groups(kind.metrics.get(kind.metric)))


def _has_equal_groups(metric: Metric | None) -> bool:
    return isinstance(metric, MeanScore) and bool(metric.equal_groups)


def _measured(measured: Measured, entered: Sequence[EntrantRuns], min_coverage: float) -> Measured:
    runs = {row.entrant.key: [row.runs[task] for task in measured.tasks if task in row.runs] for row in entered}
    runs = {key: row_runs for key, row_runs in runs.items() if row_runs}
    measured = replace(
        measured,
        runs={key: [run for run in row_runs if run.columns is not None] for key, row_runs in runs.items()},
        flags=flags_by_row(runs, lambda run: (run.whole or run).run.scored),
        min_coverage=min_coverage,
        own_data=frozenset(run.run.key for row_runs in runs.values() for run in row_runs if run.run.own_data),
    )
    cells = {key: measured.flag_own_data(_score(measured, key, row_runs)) for key, row_runs in runs.items()}
    return replace(measured, unit=replace(measured.unit, cells=cells))


def flags_by_row(
    runs: Mapping[str, Sequence[LoadedRun]], items: Callable[[LoadedRun], int]
) -> dict[str, frozenset[Flag]]:
    """Returns the flags of all numbers of an entrant: differences from the usual settings, and what is missing.

    Among settings that equally many entrants share, those of most items are the usual ones.
    """
    settings = {key: {run.run.task: run.run.settings for run in row_runs} for key, row_runs in runs.items()}
    weight = {key: (sum(map(items, row_runs)), max(run.run.date for run in row_runs)) for key, row_runs in runs.items()}
    usual = settings[comparability.reference(settings, weight)]
    flags: dict[str, frozenset[Flag]] = {}
    for key, row_runs in runs.items():
        differences = comparability.between(settings[key], usual) | comparability.within(settings[key])
        flags[key] = frozenset(differences.union(*map(flags_of, row_runs)))
    return flags


def flags_of(run: LoadedRun) -> set[Flag]:
    """Returns the flags of a run by itself."""
    has_samples, subset = run.columns is not None, run.result.subset
    flags: dict[Flag, bool] = {
        "lexical_judge": run.lexical,
        "from_result_file": not has_samples,
        "incomplete": has_samples and run.run.items < (run.result.expected or 0),
        "unjudged": has_samples and not run.run.scored,
        "other_harness": run.again,
        "trained_on_test": bool(run.run.trained_on),
        "unlike_its_file": bool(unlike_its_file(run)),
        "subset": subset is not None and not (has_samples and run.run.items < subset.documents),
        "limited": run.run.settings.limit is not None,
    }
    itself = comparability.judged_by_itself(run.run.settings.judges, (run.result.model, run.result.pretrained))
    return {flag for flag, is_so in flags.items() if is_so} | ({itself} if itself else set())


def remarks_on(runs: Sequence[LoadedRun]) -> tuple[str, ...]:
    """Returns of which part of the items a number is, and how many of its responses failed, wait or may be misread."""
    limited = [run for run in runs if run.run.settings.limit is not None]
    original = sum(run.result.original or run.run.items for run in runs)
    items = sum(int(run.run.settings.limit or run.result.original or run.run.items) for run in runs)
    extent = f"{'first ' * all(run.result.is_first for run in limited)}{items:,} of {counted(original, 'item')}"
    waiting = sum(run.run.unjudged for run in runs)
    failed, marks = sum(run.failed for run in runs), dict.fromkeys(run.unknown.mark for run in runs if run.unknown)
    return (
        *[extent][: len(limited)],
        *[f"{counted(waiting, 'response')} not graded"][:waiting],
        *[f"{counted(failed, 'response')} failed"][:failed],
        *(f"many responses begin with {mark!r:.30}, which is no known mark" for mark in marks),
    )


def _score(measured: Measured, key: str, runs: Sequence[LoadedRun]) -> Cell:
    flags, scale, metric = set(measured.flags[key]), measured.unit.scale, measured.unit.metric
    missing = [task for task in measured.tasks if task not in {run.run.task for run in runs}]
    if missing:
        flags.add("incomplete")
    if "from_result_file" in flags and len(measured.tasks) > 1:
        keys = tuple(run.run.key for run in runs)
        note = "needs the samples of all of its tasks"
        return Cell(None, scale, flags=ordered(flags), runs=keys, note=note, remarks=remarks_on(runs))
    if "from_result_file" in flags:
        name = metric if metric in runs[0].result.metrics else f"{metric}{LEXICAL}"
        return harness_cell(runs[0], name, scale, flags)
    cell = cell_of(measured.observe(key), scale, tuple(flags), min_coverage=measured.min_coverage)
    subsets = [
        f"{title_of(run.run.task)}: {run.result.subset} documents"
        + ("" if run.whole is None else f", with the verdicts of {run.whole.run.settings.judged_by} on all")
        for run in runs
        if run.result.subset is not None
    ]
    notes = (cell.note, f"without {' and '.join(map(title_of, missing))}" if missing else "", *subsets)
    return replace(cell, note="; ".join(filter(None, notes)), remarks=remarks_on(runs))


def harness_cell(run: LoadedRun, metric: str, scale: Scale, flags: set[Flag]) -> Cell:
    """Returns a number of a result file, with an interval by its standard error where there is one."""
    value = scale.times * run.result.metrics.get(metric, math.nan)
    error = scale.times * run.result.errors.get(metric, math.nan)
    n, reason = run.result.expected or 0, "no standard error in the result file"
    reach = _Z * error if error > 0.0 else math.nan
    interval = Interval(value, value - reach, value + reach, n=n, clusters=n, reason=reason)
    if error == 0.0:  # of equal scores, which is no certainty
        interval = interval._replace(reason="the standard error in the result file is 0")
        if n and scale.ends and value in scale.ends and scale.unit in ("share", "percent"):
            low, high = scale.ends
            share = proportion_interval(round((value - low) / (high - low)) * n, n)
            interval = interval._replace(low=low + (high - low) * share.low, high=low + (high - low) * share.high)
    coverage = run.result.metrics.get(f"{metric.removesuffix(LEXICAL)}_coverage")
    return replace(from_interval(interval, scale, flags, (run.run.key,), coverage=coverage), remarks=remarks_on([run]))


# Numbers by address


@dataclass(frozen=True, slots=True)
class Scores:
    """Every number of our benchmarks: units, numbers by address and entrant, and numbers of groups in long form."""

    units: Mapping[str, Measured]
    cells: dict[At, dict[str, Cell]] = field(default_factory=dict)
    groups: list[GroupValue] = field(default_factory=list)

    def cells_at(self, address: At) -> Mapping[str, Cell]:
        """Returns the numbers at an address, by entrant."""
        return self.cells.get(address, {})

    def scale(self, address: At) -> Scale | None:
        """Returns the scale of the numbers at an address; None where its unit wasn't run."""
        measured = self.units.get(address.unit)
        if measured is None:
            return None
        reported = measured.reported
        statistics: tuple[FurtherScore | Derived | Cost, ...] = (*reported.further, *reported.derived, *reported.costs)
        return {each.name: each.scale for each in statistics}.get(address.statistic, measured.unit.scale)

    def put(self, entrant: str, address: At, cell: Cell, *, is_of_group: bool = False) -> None:
        """Adds a number; one of a group is of the last group of its address."""
        cell = self.cells.setdefault(address, {})[entrant] = self.units[address.unit].flag_own_data(cell)
        if is_of_group:
            self.groups.append(GroupValue(address.unit, entrant, address.statistic, *address.where[-1], cell))

    def further(self) -> Iterator[GroupValue]:
        """Yields the numbers that are neither a unit's score nor a group's number."""
        group_cells = {id(value.cell) for value in self.groups}
        for address, cells in self.cells.items():
            for entrant, cell in cells.items():
                if address != At(address.unit) and id(cell) not in group_cells:
                    yield GroupValue(address.unit, entrant, address.statistic, "", "", cell)


def all_scores(units: Sequence[Measured]) -> Scores:
    """Works out every number: whole scores, then groups, then derived statistics."""
    scores = Scores({measured.unit.key: measured for measured in units})
    for measured in units:
        _add_scores(scores, measured)
        _add_costs(scores, measured)
    for measured in units:
        for derived in measured.reported.derived:
            if derived.units(measured.unit.key):
                _add_derived(scores, measured, derived)
    return scores


def _add_scores(scores: Scores, measured: Measured) -> None:
    """Adds the whole scores, then the scores of groups, each with the further scores of the same samples."""
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
                sample_flags: set[Flag] = {*flags, *(flag for flag in cell.flags if flag == "incomplete")}
                for name, further in _further(measured, entrant, where, sample_flags):
                    scores.put(entrant, At(key, name, where), further, is_of_group=bool(where))


def _add_costs(scores: Scores, measured: Measured) -> None:
    """Adds the costs of each entrant's runs, once for each result file; a new grading repeats the old file's costs."""
    for entrant, runs in measured.runs.items():
        files = {run.result.graded_from or run.result.path: run.result.costs for run in runs}
        known_costs = [costs for costs in files.values() if costs is not None]
        if not known_costs:
            continue
        costs, keys = total_costs(known_costs), tuple(run.run.key for run in runs)
        for cost in measured.reported.costs:
            value = getattr(costs, cost.name)
            flags: tuple[Flag, ...] = ("in_batches",) if cost.of_single_requests and not costs.one_at_a_time else ()
            if value is not None:
                cell = Cell(float(value), cost.scale, flags=flags, runs=keys)
                scores.put(entrant, At(measured.unit.key, cost.name), cell)


def _splits(measured: Measured) -> Sequence[tuple[str, ...]]:
    """Returns the splits of a unit's score: its benchmark's, else every field with few groups."""
    if measured.reported.splits is not None:
        return measured.reported.splits
    most: dict[str, int] = {}
    for columns in (columns_of(run) for row_runs in measured.runs.values() for run in row_runs):
        for name, texts in columns.groups.items():
            most[name] = max(most.get(name, 0), len(texts.names))
    return [(name,) for name, groups in most.items() if groups <= _GROUP_LIMIT]


def _further(measured: Measured, entrant: str, where: Where, flags: set[Flag]) -> Iterator[tuple[str, Cell]]:
    """Yields the further scores, which no judge gives, by name; optional ones only where a sample has them."""
    runs, tasks = measured.runs[entrant], measured.tasks
    metrics = {name for run in runs if run.kind for name in run.kind.metrics.keys() - {run.kind.metric}}
    for further in measured.reported.further if runs else ():
        if further.read is None and further.name not in metrics:
            continue  # of the benchmark's other tasks
        observed = observe(runs, tasks, where, statistic=further.name, equal_parts=measured.equal_parts)
        if observed.n or further.read is None:
            score_flags = _without_judge(flags, runs_of(runs, further.name))
            yield further.name, cell_of(observed, further.scale, tuple(score_flags), where)


def _without_judge(flags: set[Flag], runs: Sequence[LoadedRun]) -> set[Flag]:
    """Returns the flags of a score that needs no judge, from those of its row and the runs behind it."""
    is_sampled = any(run.result.subset is not None for run in runs)
    return flags - JUDGE_FLAGS - (set() if is_sampled else {"subset"})


def _add_derived(scores: Scores, measured: Measured, derived: Derived) -> None:
    for entrant, runs in measured.runs.items():
        answers = answers_of(runs)
        if answers is None:
            continue
        flags, keys = set(measured.flags[entrant]), tuple(run.run.key for run in runs_of(runs, SCORE))
        for where in measured.combinations(entrant, derived.within):
            selection = answers
            for name, group in where:
                selection = selection.only(selection.groups[name].equals(group))
            n = selection.scores.size
            for group, value in derived.compute(selection).items() if n else ():
                if isinstance(value, float):
                    cell = Cell(value, derived.scale, n=n, flags=ordered(flags), runs=keys, where=where)
                else:
                    cell = from_interval(mean_interval(value, selection.clusters), derived.scale, flags, keys, where)
                place = ((derived.dimension, group),) if derived.dimension else ()
                address = At(measured.unit.key, derived.name, (*where, *place))
                scores.put(entrant, address, cell, is_of_group=bool(place))
