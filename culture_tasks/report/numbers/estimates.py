"""Works out every number of our benchmarks: units, their scores by row and by group, and what a reader must know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import Benchmark, Group, MeanScore, Metric, Scale, Task
from culture_tasks.benchmarks.registry import benchmarks, entries, tasks_below, title_of
from culture_tasks.benchmarks.reporting import Answers, Derived, TasksRun, Texts, Where
from culture_tasks.harness.model_costs import total_costs
from culture_tasks.harness.rows import LEXICAL, parts_of
from culture_tasks.metrics.intervals import Interval, mean_interval, proportion_interval
from culture_tasks.report.numbers.numbers import Number, Numbers, Unit, from_interval, number_of, of_own_data, ordered
from culture_tasks.report.numbers.selection import SCORE, runs_of, select
from culture_tasks.report.wording import counted
from culture_tasks.results import comparability
from culture_tasks.results.comparability import Flag
from culture_tasks.results.loading import Results
from culture_tasks.results.reading import Samples
from culture_tasks.results.runs import Run

_Z = 1.959963984540054
JUDGE_FLAGS: frozenset[Flag] = frozenset(("lexical_judge", "other_judge", "unjudged", "self_judged"))
"""Flags that don't concern a score without a judge."""

_GROUP_LIMIT = 100
"""A field with more groups, which no benchmark declares, is taken for a name of items, and not split by."""


# Units


def measure(results: Results, min_coverage: float) -> list[Unit]:
    """Works out every unit of our benchmarks that some row has run: groups, then tasks, then the user's tasks."""
    rows = {row: results.of(row) for row in results.rows}
    units = [unit for benchmark in benchmarks().values() for unit in _units(benchmark, list(rows.values()))]
    units.sort(key=lambda unit: not isinstance(entries()[unit.key], Group))
    own_tasks = {run.task: run for run in results.runs if run.kind is not None and run.task not in entries()}
    for task, run in sorted(own_tasks.items()):
        if (kind := run.kind) is not None:
            own = Unit(task, task, kind.benchmark, kind.metric, kind.scale, "a task of your own", headline=True)
            units.append(replace(own, tasks=(task,), equal_parts=_has_equal_groups(run.metric)))
    for unit in units:
        runs = {row: [by_task[task] for task in unit.tasks if task in by_task] for row, by_task in rows.items()}
        runs = {row: row_runs for row, row_runs in runs.items() if row_runs}
        unit.results, unit.min_coverage = results, min_coverage
        unit.flags = flags_by_row(runs, results)
        unit.runs = {row: [run for run in row_runs if run.has_samples] for row, row_runs in runs.items()}
        for row, row_runs in runs.items():
            unit.cells[row] = of_own_data(replace(_score(unit, row, row_runs), row=row, unit=unit.key), results)
    return units


def _units(benchmark: Benchmark, by_row: Sequence[Mapping[str, Run]]) -> Iterator[Unit]:
    """Yields the units of a benchmark's tasks and groups, not yet measured."""
    tasks = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Task)}
    groups = {entry.name: entry for entry in benchmark.entries() if isinstance(entry, Group) and entry.means}
    facts = TasksRun(
        tasks=tuple(tasks),
        groups={name: tuple(task.name for task in tasks_below(name)) for name in groups},
        parts={member for group in groups.values() for member in group.members},
        models=[runs.keys() & tasks.keys() for runs in by_row],
    )
    for declared in benchmark.report().units(facts):
        task, group = tasks[declared.tasks[0]], groups.get(declared.key)
        metric = next(metric for metric in task.metrics() if metric.name == task.metric)
        yield Unit(
            declared.key,
            title_of(declared.key),
            benchmark.name,
            metric.name,
            metric.scale,
            task.about if group is None else group.about,
            headline=declared.headline,
            quantity=metric.title,
            tasks=declared.tasks,
            equal_parts=not group.weight_by_size if group else _has_equal_groups(metric),
        )


def _has_equal_groups(metric: Metric | None) -> bool:
    return isinstance(metric, MeanScore) and bool(metric.equal_groups)


def _score(unit: Unit, row: str, runs: Sequence[Run]) -> Number:
    flags, scale = set(unit.flags[row]), unit.scale
    missing = [task for task in unit.tasks if task not in {run.task for run in runs}]
    if missing:
        flags.add("incomplete")
    if "from_result_file" in flags and len(unit.tasks) > 1:
        keys, note = tuple(run.key for run in runs), "needs the samples of all of its tasks"
        return Number(None, scale, flags=ordered(flags), runs=keys, note=note, remarks=remarks_on(runs))
    if "from_result_file" in flags:
        name = unit.metric if unit.metric in runs[0].metrics else f"{unit.metric}{LEXICAL}"
        return file_number(runs[0], name, scale, flags)
    number = number_of(unit.select(row), scale, flags, min_coverage=unit.min_coverage)
    subsets = [
        f"{title_of(run.task)}: {run.subset} documents"
        + ("" if run.whole is None else f", with the verdicts of {run.whole.settings.judged_by} on all")
        for run in runs
        if run.subset is not None
    ]
    notes = (number.note, f"without {' and '.join(map(title_of, missing))}" if missing else "", *subsets)
    return replace(number, note="; ".join(filter(None, notes)), remarks=remarks_on(runs))


def file_number(run: Run, metric: str, scale: Scale, flags: set[Flag]) -> Number:
    """Returns a number of a result file, with an interval by its standard error where there is one."""
    value, error = (scale.times * numbers.get(metric, math.nan) for numbers in (run.metrics, run.errors))
    n, reason = run.expected or 0, "no standard error in the result file"
    reach = _Z * error if error > 0.0 else math.nan
    interval = Interval(value, value - reach, value + reach, n=n, clusters=n, reason=reason)
    if error == 0.0:  # of equal scores, which is no certainty
        interval = interval._replace(reason="the standard error in the result file is 0")
        if n and scale.ends and value in scale.ends and scale.unit in ("share", "percent"):
            low, high = scale.ends
            share = proportion_interval(round((value - low) / (high - low)) * n, n)
            interval = interval._replace(low=low + (high - low) * share.low, high=low + (high - low) * share.high)
    coverage = run.metrics.get(f"{metric.removesuffix(LEXICAL)}_coverage")
    return replace(from_interval(interval, scale, flags, (run.key,), coverage=coverage), remarks=remarks_on([run]))


# All numbers


def all_numbers(units: Sequence[Unit], results: Results) -> Numbers:
    """Works out every number: the units' scores by group, further scores, derived statistics and costs."""
    numbers = Numbers(units, results)
    ours = [unit for unit in units if unit.benchmark]
    for unit in ours:
        for fields in ((), *_splits(unit)):
            for row in unit.flags:
                for where in unit.combinations(row, fields):
                    for number in _of_samples(unit, row, where):
                        numbers.put(replace(number, row=row, unit=unit.key))
        for number in _costs(unit):
            numbers.put(number)
    for unit in ours:
        for derived in unit.reported.derived:
            for row, runs in unit.runs.items() if derived.units(unit.key) else ():
                for number in _derived(unit, row, runs, derived):
                    numbers.put(replace(number, row=row, unit=unit.key, statistic=derived.name))
    return numbers


def _splits(unit: Unit) -> Sequence[tuple[str, ...]]:
    """Returns the splits of a unit's score: its benchmark's, else every field with few groups."""
    if unit.reported.splits is not None:
        return unit.reported.splits
    samples, runs = unit.results.samples, [run for row_runs in unit.runs.values() for run in row_runs]
    counts = {name: len(samples.present(name, runs)) for name in samples.groups}
    return [(name,) for name, groups in counts.items() if 0 < groups <= _GROUP_LIMIT]


def _of_samples(unit: Unit, row: str, where: Where) -> Iterator[Number]:
    """Yields the score of a group, and the further scores of the whole or of a group, which no judge gives."""
    number, flags, runs = unit.cells[row], unit.flags[row], unit.runs[row]
    if where:
        selection = unit.select(row, where)
        if not selection.scores.size:
            return
        number = number_of(selection, unit.scale, flags, where, min_coverage=unit.min_coverage)
        yield number
    flags = flags | {flag for flag in number.flags if flag == "incomplete"}
    metrics = {name for run in runs if run.kind for name in run.kind.metrics.keys() - {run.kind.metric}}
    for further in unit.reported.further if runs else ():
        if further.read is None and further.name not in metrics:
            continue  # of the benchmark's other tasks
        equal_parts = unit.equal_parts
        selection = select(unit.results, runs, unit.tasks, where, statistic=further.name, equal_parts=equal_parts)
        if selection.n or further.read is None:
            is_sampled = any(run.subset is not None for run in runs_of(runs, further.name))
            without = flags - JUDGE_FLAGS - (set() if is_sampled else {"subset"})
            yield replace(number_of(selection, further.scale, without, where), statistic=further.name)


def _costs(unit: Unit) -> Iterator[Number]:
    """Yields the costs of each row's runs, once for each result file; a new grading repeats the old file's costs."""
    for row, runs in unit.runs.items():
        files = {run.graded_from or run.path: run.costs for run in runs}
        known = [costs for costs in files.values() if costs is not None]
        for cost in unit.reported.costs if known else ():
            costs = total_costs(known)
            value = getattr(costs, cost.name)
            flags: tuple[Flag, ...] = ("other_settings",) if cost.of_single_requests and not costs.one_at_a_time else ()
            if value is not None:
                number = Number(float(value), cost.scale, flags=flags, runs=tuple(run.key for run in runs))
                yield replace(number, row=row, unit=unit.key, statistic=cost.name)


def _derived(unit: Unit, row: str, runs: Sequence[Run], derived: Derived) -> Iterator[Number]:
    samples, runs = unit.results.samples, runs_of(runs, SCORE)
    keys = tuple(run.key for run in runs)
    for where in unit.combinations(row, derived.within):
        parts = [samples.where(run.samples.rows, where) for run in runs if run.samples]
        rows = np.concatenate(parts) if parts else np.zeros(0, np.intp)
        rows = rows[~np.isnan(samples.score[rows])]
        for group, value in derived.compute(_answers(samples, rows)).items() if rows.size else ():
            place = (*where, *(((derived.dimension, group),) if derived.dimension else ()))
            if isinstance(value, float):
                number = Number(value, derived.scale, n=rows.size, flags=ordered(unit.flags[row]), runs=keys)
            else:
                interval = mean_interval(value, samples.cluster[rows])
                number = from_interval(interval, derived.scale, unit.flags[row], keys)
            yield replace(number, where=place, samples=where if place != where else None)


def _answers(samples: Samples, rows: NDArray[np.intp]) -> Answers:
    groups = {name: Texts(texts.codes[rows], texts.names) for name, texts in samples.groups.items()}
    groups = {name: texts for name, texts in groups.items() if (texts.codes >= 0).all()}
    return Answers(samples.score[rows], samples.cluster[rows], groups)


# What a reader must know


def flags_by_row(runs: Mapping[str, Sequence[Run]], results: Results) -> dict[str, frozenset[Flag]]:
    """Returns the flags of all numbers of a row: differences from the usual settings, and what is missing.

    Among settings that equally many rows share, those of most items are the usual ones.
    """
    settings = {row: {run.task: run.settings for run in row_runs} for row, row_runs in runs.items()}
    sizes = {row: sum(_size(run.whole or run) for run in row_runs) for row, row_runs in runs.items()}
    weight = {row: (sizes[row], max(run.date for run in row_runs)) for row, row_runs in runs.items()}
    usual = settings[comparability.reference(settings, weight)]
    flags: dict[str, frozenset[Flag]] = {}
    for row, row_runs in runs.items():
        differences = comparability.between(settings[row], usual) | comparability.within(settings[row])
        flags[row] = frozenset(differences.union(*(flags_of(run, results) for run in row_runs)))
    return flags


def _size(run: Run) -> int:
    return run.scored if run.kind else run.expected or 0


def flags_of(run: Run, results: Results) -> set[Flag]:
    """Returns the flags of a run by itself."""
    flags: dict[Flag, bool] = {
        "lexical_judge": run.is_lexical,
        "from_result_file": not run.has_samples,
        "incomplete": run.has_samples and run.items < (run.expected or 0),
        "unjudged": run.has_samples and not run.scored,
        "other_harness": run.is_second,
        "trained_on_test": bool(run.trained_on),
        "mixed": bool(unlike_its_file(run, results)),
        "subset": run.subset is not None and not (run.has_samples and run.items < run.subset.documents),
        "limited": run.settings.limit is not None,
        "self_judged": comparability.judged_by_itself(run.settings.judges, (run.model_name, run.pretrained)),
    }
    return {flag for flag, is_so in flags.items() if is_so}


def unlike_its_file(run: Run, results: Results) -> str:
    """Names a number of a run's result file that its samples contradict; empty where they agree.

    The main metric's means of all samples and of parts of the data are compared, but not where samples are missing or
    were left out, which the report says elsewhere.
    """
    if not run.has_samples or run.kind is None or run.metric is None or run.problems:
        return ""
    name = run.kind.metric
    parts: list[tuple[str, Where]] = [(part.metric, ((part.field, part.group),)) for part in parts_of(run.metric)]
    for label, where in ((name, ()), *parts):
        lexical = label.replace(name, f"{name}{LEXICAL}", 1)
        names = (lexical, label) if run.is_lexical else (label, lexical)
        in_file = next((run.metrics[key] for key in names if key in run.metrics), math.nan)
        if math.isnan(in_file):
            continue
        score = select(results, [run], [run.task], where, equal_parts=not where).score / run.metric.scale.times
        if not math.isnan(score) and not math.isclose(in_file, score, rel_tol=1e-6, abs_tol=1e-6):
            return f"{label} is {in_file:.6g} in the result file and {score:.6g} by its samples"
    return ""


def remarks_on(runs: Sequence[Run]) -> tuple[str, ...]:
    """Returns of which part of the items a number is, and how many of its responses failed, wait or may be misread."""
    limited = [run for run in runs if run.settings.limit is not None]
    original = sum(run.original or run.items for run in runs)
    items = sum(int(run.settings.limit or run.original or run.items) for run in runs)
    extent = f"{'first ' * all(run.is_first for run in limited)}{items:,} of {counted(original, 'item')}"
    waiting, summaries = sum(run.unjudged for run in runs), [run.samples for run in runs if run.samples]
    failed = sum(samples.failed for samples in summaries)
    marks = dict.fromkeys(samples.mark.mark for samples in summaries if samples.mark)
    return (
        *[extent][: len(limited)],
        *[f"{counted(waiting, 'response')} not graded"][:waiting],
        *[f"{counted(failed, 'response')} failed"][:failed],
        *(f"many responses begin with {mark!r:.30}, which is no known mark" for mark in marks),
    )
