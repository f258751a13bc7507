"""What is measured as one number, and the score of every entrant on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from culture_tasks.benchmarks.interface import Entry, Group, Task
from culture_tasks.benchmarks.registry import benchmark_of, entries, tasks_below
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.metrics.intervals import Interval
from culture_tasks.report import comparability
from culture_tasks.report.benchmarks import LAYOUTS
from culture_tasks.report.entrants import Entered
from culture_tasks.report.loading import LoadedRun
from culture_tasks.report.model import Cell, Flag, Scale, Unit
from culture_tasks.report.numbers import Observations, Where, cell_of, from_interval, observe

_Z = 1.959963984540054
_PAIR = "_prompt_"
_RETENTION = "crosscult_retention"


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
    """

    unit: Unit
    tasks: tuple[str, ...]
    equal_parts: bool
    runs: Mapping[str, Sequence[LoadedRun]]
    flags: Mapping[str, frozenset[Flag]]
    min_coverage: float

    def observe(self, entrant: str, where: Where = (), *, extra: bool = False) -> Observations:
        """Gathers an entrant's samples in some groups."""
        return observe(self.runs[entrant], self.tasks, where, equal_parts=self.equal_parts, extra=extra)

    def cell(self, entrant: str, where: Where = (), tasks: Sequence[str] | None = None) -> Cell | None:
        """Returns an entrant's score in some groups and tasks, every item weighing the same; None without samples."""
        runs = [each for each in self.runs[entrant] if tasks is None or each.run.task in tasks]
        observed = observe(runs, self.tasks, where)
        if not observed.scores.size:
            return None
        flags = self.flags[entrant]
        return cell_of(observed, self.unit.scale, tuple(flags), where, min_coverage=self.min_coverage)


@dataclass(frozen=True, slots=True)
class _Plan:
    key: str
    benchmark: str
    metric: str
    about: str
    headline: bool
    tasks: tuple[str, ...]
    equal_parts: bool = False


def measure(
    entered: Sequence[Entered], min_coverage: float, rankable: Callable[[Cell], bool] | None = None
) -> list[Measured]:
    """Works out every unit of our benchmarks that some entrant has runs of.

    Args:
        entered: The entrants.
        min_coverage: Share of scored verdicts under which a number is flagged.
        rankable: Whether a cell may be ranked; None ranks those that can be compared.
    """
    measured = (_measured(plan, entered, min_coverage) for plan in _plans(entered))
    return [_ranked(each, rankable) for each in measured]


def _ranked(each: Measured, rankable: Callable[[Cell], bool] | None) -> Measured:
    cells = ranked(each.unit.cells, each.unit.scale, rankable)
    return replace(each, unit=replace(each.unit, cells=cells))


def _plans(entered: Sequence[Entered]) -> Iterator[_Plan]:
    ran = [{task for task, each in one.runs.items() if each.run.benchmark} for one in entered]
    anywhere = set().union(*ran) if ran else set()
    covered: set[str] = set()
    for entry in entries().values():
        plan = _group_plan(entry, anywhere, ran)
        if plan is not None:
            covered.update(plan.tasks if plan.headline else ())
            yield plan
    for entry in entries().values():
        if isinstance(entry, Task) and entry.name in anywhere and _stands_alone(entry, covered):
            headline = _is_headline(entry, anywhere)
            yield _Plan(entry.name, benchmark_of(entry.name).name, entry.metric, entry.about, headline, (entry.name,))
    for task in sorted(anywhere - entries().keys()):
        layout = next(LAYOUTS[one.runs[task].run.benchmark or ""] for one in entered if task in one.runs)
        yield _Plan(task, layout.benchmark, layout.metric, "a task of your own", True, (task,))


def _group_plan(entry: Entry, anywhere: set[str], ran: Sequence[set[str]]) -> _Plan | None:
    """Returns the plan of a group that an entrant has all of, or of a chain whose steps stand nowhere else."""
    if not isinstance(entry, Group) or not entry.means or _is_part(entry):
        return None
    below = tasks_below(entry.name)
    tasks = tuple(task.name for task in below)
    is_chain = entry.name.startswith(_RETENTION)
    if not anywhere.intersection(tasks) or not (is_chain or any(one.issuperset(tasks) for one in ran)):
        return None
    return _Plan(
        entry.name,
        benchmark_of(entry.name).name,
        below[0].metric,
        entry.about,
        not is_chain,
        tasks,
        equal_parts=not entry.weight_by_size,
    )


def _is_part(entry: Entry) -> bool:
    """Whether a group is a part of another one whose mean counts; the orders of retention stand for themselves."""
    above = [other for other in entries().values() if not isinstance(other, Task) and entry.name in other.members]
    return any(other.name != _RETENTION for other in above) or entry.name == _RETENTION


def _stands_alone(entry: Entry, covered: set[str]) -> bool:
    return entry.name not in covered and not entry.name.startswith(_RETENTION)


def _is_headline(entry: Entry, anywhere: set[str]) -> bool:
    """Whether a task stands in the summary: CEDAR's pairs never do, and its languages only without the pooled task."""
    if benchmark_of(entry.name).name != "cedar":
        return True
    pooled = "_".join(entry.name.split("_")[:2])
    return _PAIR not in entry.name and (entry.name == pooled or pooled not in anywhere)


def _measured(plan: _Plan, entered: Sequence[Entered], min_coverage: float) -> Measured:
    runs = {
        one.entrant.key: [one.runs[task] for task in plan.tasks if task in one.runs]
        for one in entered
        if any(task in one.runs for task in plan.tasks)
    }
    flags = _flags(runs)
    scale = LAYOUTS[plan.benchmark].scale
    unit = Unit(plan.key, plan.key, plan.benchmark, plan.metric, scale, plan.about, plan.headline, {})
    sampled = {key: [each for each in own if each.columns is not None] for key, own in runs.items()}
    measured = Measured(unit, plan.tasks, plan.equal_parts, sampled, flags, min_coverage)
    cells = {key: _score(measured, key, own) for key, own in runs.items()}
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
        found[key] = frozenset(flags | {flag for each in own for flag in _flags_of(each)})
    return found


def _flags_of(each: LoadedRun) -> Iterator[Flag]:
    if each.lexical:
        yield "lexical_judge"
    if each.columns is None:
        yield "from_result_file"
    elif each.result.expected and each.run.items < each.result.expected:
        yield "incomplete"
    if each.columns is not None and not each.run.scored:
        yield "unjudged"


def _score(measured: Measured, key: str, runs: Sequence[LoadedRun]) -> Cell:
    flags = set(measured.flags[key])
    missing = [task for task in measured.tasks if task not in {each.run.task for each in runs}]
    if missing:
        flags.add("incomplete")
    if "from_result_file" in flags:
        return _from_result_file(measured, runs, flags)
    observed = measured.observe(key)
    scale, coverage = measured.unit.scale, measured.min_coverage
    cell = cell_of(observed, scale, tuple(flags), min_coverage=coverage)
    return replace(cell, note=_joined(cell.note, f"without {', '.join(missing)}" if missing else ""))


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _from_result_file(measured: Measured, runs: Sequence[LoadedRun], flags: set[Flag]) -> Cell:
    """Returns the harness's own number of a single task; a group's can't be had without the samples of its tasks."""
    keys = tuple(each.run.key for each in runs)
    if len(measured.tasks) > 1:
        note = "needs the samples of all of its tasks"
        return Cell(None, measured.unit.scale, flags=tuple(sorted(flags)), runs=keys, note=note)
    [each] = runs
    metric = measured.unit.metric
    name = next((name for name in (metric, f"{metric}{LEXICAL}") if name in each.result.metrics), metric)
    return harness_cell(each, name, measured.unit.scale, flags, unit=LAYOUTS[measured.unit.benchmark or ""].unit)


def harness_cell(each: LoadedRun, metric: str, scale: Scale, flags: set[Flag], *, unit: float = 1.0) -> Cell:
    """Returns a number of a result file, with an interval by its standard error where there is one.

    Args:
        each: The run.
        metric: The metric.
        scale: The scale that the cell is on.
        flags: What a reader must know.
        unit: What 1 of the file is on the scale.
    """
    value = unit * each.result.metrics.get(metric, float("nan"))
    error = unit * each.result.errors.get(metric, float("nan"))
    items = each.result.expected or 0
    found = Interval(
        value, value - _Z * error, value + _Z * error, items, items, "no standard error in the result file"
    )
    coverage = each.result.metrics.get(f"{metric.removesuffix(LEXICAL)}_coverage")
    return from_interval(found, scale, flags, (each.run.key,), (), coverage)


def ranked(cells: Mapping[str, Cell], scale: Scale, allowed: Callable[[Cell], bool] | None = None) -> dict[str, Cell]:
    """Gives the cells of a column that may be compared their places; equal values share one."""
    may = allowed or (lambda cell: cell.comparable)
    if scale.better is None:
        return dict(cells)
    sign = -1.0 if scale.better == "higher" else 1.0
    values = sorted(sign * cell.value for cell in cells.values() if cell.value is not None and may(cell))
    return {
        key: replace(cell, rank=values.index(sign * cell.value) + 1) if cell.value is not None and may(cell) else cell
        for key, cell in cells.items()
    }
