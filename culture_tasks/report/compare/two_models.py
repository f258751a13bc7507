"""Two models against each other, by benchmark and by culture, for ``culture-tasks compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import Where
from culture_tasks.errors import DataError
from culture_tasks.report.building import Options
from culture_tasks.report.model import Cell, Comparison, Entrant
from culture_tasks.report.numbers.comparisons import Pair, compare, why_not
from culture_tasks.report.numbers.corrections import Checked, corrections_of, graded_by_better_judges
from culture_tasks.report.numbers.observations import cell_of, in_order, ordered, unlike_its_file
from culture_tasks.report.numbers.other_tasks import other_measured
from culture_tasks.report.numbers.scores import Measured, measure
from culture_tasks.report.tables.people import checked_units
from culture_tasks.report.wording import counted
from culture_tasks.results.columns import SampleReader
from culture_tasks.results.comparability import differences, explain, what_differs
from culture_tasks.results.finding import UnusedFile, without_copies
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun, Loading, Names, load, newest, with_full_gradings
from culture_tasks.results.trained_on import TrainingManifests

B_IS_BETTER, B_IS_WORSE = "B is better", "B is worse"
_VERDICTS = {"A is better": B_IS_WORSE, "A is higher": "B is lower"}


class ComparedModel(NamedTuple):
    """One of the two, with its result files in order, and the files that could not be used."""

    model: str
    files: tuple[str, ...]
    problems: tuple[UnusedFile, ...]


class ModelTest(NamedTuple):
    """A test of B less A on a task or group, or on the items of a culture, with each model's score on all its items.

    The title is the name for readers; :attr:`name` is that of options and files: ``culturalvqa`` for all items,
    ``culturalvqa:nigeria`` for those of a culture.
    """

    benchmark: str
    culture: str
    title: str
    cells: tuple[Cell, Cell]
    test: Comparison

    @property
    def name(self) -> str:
        """Its name in options and files."""
        return f"{self.benchmark}:{self.culture}" if self.culture else self.benchmark

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        return self.cells[0].scale


class NotCompared(NamedTuple):
    """A task or group that was not compared; a loss where A has a score on it, and none where only B ran it."""

    benchmark: str
    reason: str
    is_loss: bool


class TwoModels(NamedTuple):
    """The result of comparing B with A: a test for each benchmark, and one for each of their cultures.

    p is adjusted over all benchmarks, and over all cultures. Where people, or a better judge, rated enough responses of
    both, the differences are corrected by their ratings.
    """

    sides: tuple[ComparedModel, ComparedModel]
    tests: tuple[ModelTest, ...]
    cultures: tuple[ModelTest, ...]
    not_compared: tuple[NotCompared, ...]


def compare_models(first: str, second: str, options: Options, only: Sequence[str] = ()) -> TwoModels:
    """Compares the results of two models: files, folders or patterns, A's first.

    Of several runs of a task, B's newest counts, and A's newest that can be compared with it. ``only`` has names or
    patterns of the tasks and groups to look at; none means every benchmark. It is a DataError if one of the two has no
    run that can be used, or runs of several models, if both are the same files, or if ratings are of responses of
    neither.
    """
    loadings = _loaded(first, second, options)
    entered = _entered(*map(_runs_by_task, (first, second), loadings))
    _refuse_copies(first, second, loadings)
    units = (*measure(entered, options.min_coverage), *other_measured(entered))
    checked = checked_units(options.rated, units, {row.entrant.key: row.entrant for row in entered}, require_all=False)
    people = {(unit.measured.unit.key, unit.key): unit.responses for unit in checked}
    selected = [
        measured
        for measured in units
        if (any(fnmatchcase(measured.unit.key, pattern) for pattern in only) if only else measured.unit.headline)
    ]
    obstacles = {measured.unit.key: _obstacle(measured, anyway=options.compare_anyway) for measured in selected}
    pairs = _tests([measured for measured in selected if not obstacles[measured.unit.key]], people)
    side_a, side_b = (
        ComparedModel(
            model=row.entrant.model,
            files=tuple(sorted({loaded.run.results_file for loaded in row.runs.values()})),
            problems=tuple(loading.problems),
        )
        for row, loading in zip(entered, loadings, strict=True)
    )
    return TwoModels(
        sides=(side_a, side_b),
        tests=tuple(test for test in pairs if not test.culture),
        cultures=tuple(test for test in pairs if test.culture),
        not_compared=tuple(
            NotCompared(unit.key, reason, "a" in unit.cells)
            for unit in (measured.unit for measured in selected)
            if (reason := obstacles[unit.key])
        ),
    )


# The runs of both


def _loaded(first: str, second: str, options: Options) -> list[Loading]:
    names, trained_on = Names(options.names), TrainingManifests(options.trained_on)
    reader = SampleReader()  # one for both, so that an item has the same number in both
    loadings = [
        load([path], names, reader, prefix=prefix, trained_on=trained_on)
        for path, prefix in ((first, "a"), (second, "b"))
    ]
    names.refuse_unfitting()
    trained_on.refuse_unfitting()
    return loadings


def _refuse_copies(first: str, second: str, loadings: Sequence[Loading]) -> None:
    files = [path for loading in loadings for path in dict.fromkeys(loaded.result.path for loaded in loading.runs)]
    if len(without_copies(files)[0]) < len(files):
        raise DataError(
            f"compare: {first} and {second} have the same result file, or a copy of it. "
            "Name the files of two different runs."
        )


def _runs_by_task(path: str, loading: Loading) -> dict[str, list[LoadedRun]]:
    """Returns a model's runs of each task, the newest first."""
    runs = [loaded for loaded, problem in newest(loading.runs) if problem is None]
    models = sorted({loaded.run.model for loaded in runs}, key=str.casefold)
    if not runs:
        problems = "; ".join(f"{problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(f"compare: {path} has no run that can be used{f' ({problems})' if problems else ''}.")
    if len(models) > 1:
        folder = next(loaded.result.path.parent for loaded in runs if loaded.run.model == models[0])
        raise DataError(
            f"compare: {path} has runs of {len(models)} models: {', '.join(models)}. Name the folder of one, or its "
            f"files, such as {folder}."
        )
    by_task: dict[str, list[LoadedRun]] = {}
    for loaded in sorted(with_full_gradings(runs), key=lambda loaded: (not loaded.is_repeat, loaded.order))[::-1]:
        by_task.setdefault(loaded.run.task, []).append(loaded)
    return by_task


def _entered(runs_a: Mapping[str, list[LoadedRun]], runs_b: Mapping[str, list[LoadedRun]]) -> list[EntrantRuns]:
    """Returns both rows: B's newest run of each task, and A's newest that can be compared with it."""
    candidate = {task: runs[0] for task, runs in runs_b.items()}
    baseline: dict[str, LoadedRun] = {}
    for task, runs in runs_a.items():
        settings = candidate[task].run.settings if task in candidate else None
        comparable = (loaded for loaded in runs if settings and not differences(loaded.run.settings, settings))
        baseline[task] = next(comparable, runs[0])
    return [
        EntrantRuns(Entrant(key, next(iter(runs.values())).run.model), runs)
        for key, runs in (("a", baseline), ("b", candidate))
    ]


# What can be compared


def _obstacle(measured: Measured, *, anyway: bool) -> str:
    """Returns why the two can't be compared on a unit; empty where they can."""
    unit = measured.unit
    if missing := [key.upper() for key in "ab" if key not in unit.cells]:
        return f"{' and '.join(missing)} didn't run it"
    if unscored := [key.upper() for key in "ab" if unit.cells[key].value is None or not measured.runs[key]]:
        remarks = remarks_of((unit.cells["a"], unit.cells["b"]))
        models = " and ".join(unscored)
        samples = f"scored samples of {models}" if unit.benchmark else f"samples of {models} whose mean is its score"
        return f"there are no {samples}{f' ({remarks})' if remarks else ''}"
    return "" if anyway else "; ".join(_reasons(measured))


def _reasons(measured: Measured) -> Iterator[str]:
    unit, flags = measured.unit, why_not(measured, "a", "b")
    settings_a, settings_b = ({loaded.run.task: loaded.run.settings for loaded in measured.runs[key]} for key in "ab")
    changes = dict.fromkeys(
        part
        for task in settings_a.keys() & settings_b.keys()
        for part in what_differs(settings_b[task], settings_a[task])
    )
    if flags:
        yield explain(ordered(flags)) + (f" (B: {', '.join(changes)})" if changes else "")
    for key in "ab":
        if "incomplete" in flags and unit.cells[key].note:
            yield f"{key.upper()}: {unit.cells[key].note}"
        if "trained_on_test" in unit.cells[key].flags:
            yield f"trained on the test: {key.upper()}"
        for loaded in measured.runs[key]:
            if mismatch := unlike_its_file(loaded):
                yield f"{key.upper()}, {title_of(loaded.run.task)}: {mismatch}"
    subsets = [
        measured.tasks.index(loaded.run.task) for loaded in measured.runs["b"] if loaded.result.subset is not None
    ]
    items = measured.observe("a").items
    items = items[~np.isin(items >> 32, subsets)]  # a subset lacks items by design
    if lost := np.setdiff1d(items, measured.observe("b").items).size:
        yield f"B lacks {lost} of A's {counted(items.size, 'item')}"


def remarks_of(cells: Sequence[Cell]) -> str:
    """Returns the remarks on both scores, such as ``A: first 14 of 42 items``; may be empty."""
    return "; ".join(
        f"{side}: {', '.join(cell.remarks)}" for side, cell in zip("AB", cells, strict=True) if cell.remarks
    )


# The tests


def _tests(units: Sequence[Measured], people: Checked) -> list[ModelTest]:
    """Tests B against A on units and on their cultures; p is adjusted over all units, and over all cultures."""
    sources = (people, graded_by_better_judges(units))
    pairs: list[Pair] = []
    untested: list[tuple[Measured, str | None, tuple[Cell, Cell]]] = []
    for measured in units:
        unit, field = measured.unit, measured.reported.culture
        common = [culture for culture in measured.groups("a", field) if culture in measured.groups("b", field)]
        cultures = [None, *(common if len(common) > 1 else [])]
        flags = ordered(why_not(measured, "a", "b"))
        corrections = corrections_of(measured, "a", "b", sources, cultures)
        for culture, correction in zip(cultures, corrections, strict=True):
            where: Where = () if culture is None else ((field, culture),)
            first, second = (measured.observe(key, where) for key in "ab")
            cell_a, cell_b = (
                cell_of(observed, unit.scale, tuple(measured.flags[key]), where, min_coverage=measured.min_coverage)
                if where
                else unit.cells[key]
                for key, observed in (("a", first), ("b", second))
            )
            family, samples = "cultures" if where else "benchmarks", (in_order(first), in_order(second))
            pairs.append(Pair(family, unit.key, "a", "b", samples, unit.scale, flags, correction))
            untested.append((measured, culture, (cell_a, cell_b)))
    tests: list[ModelTest] = []
    for (measured, culture, cells), test in zip(untested, compare(pairs, {"a": "A", "b": "B"}), strict=True):
        name = (
            "" if culture is None else f": {measured.reported.field_named(measured.reported.culture).name_of(culture)}"
        )
        title, verdict = f"{measured.unit.title}{name}", _VERDICTS.get(test.verdict, test.verdict)
        tests.append(ModelTest(test.unit, culture or "", title, cells, replace(test, verdict=verdict)))
    return tests
