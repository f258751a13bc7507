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
from culture_tasks.report.model import Comparison, ModelRow, Number
from culture_tasks.report.numbers.comparisons import Pair, compare, why_not
from culture_tasks.report.numbers.corrections import Checked, corrections_of, graded_by_better_judges
from culture_tasks.report.numbers.estimates import measure, unlike_its_file
from culture_tasks.report.numbers.numbers import Unit, number_of, ordered
from culture_tasks.report.numbers.other_tasks import other_units
from culture_tasks.report.numbers.selection import in_order
from culture_tasks.report.tables.people import checked_units
from culture_tasks.report.wording import counted
from culture_tasks.results.comparability import differences, explain, what_differs
from culture_tasks.results.finding import UnusedFile, without_copies
from culture_tasks.results.loading import Names, Results, is_repeat, load, newest, with_full_gradings
from culture_tasks.results.reading import SampleReader
from culture_tasks.results.runs import Run
from culture_tasks.results.trained_on import TrainingManifests

B_IS_BETTER, B_IS_WORSE = "B is better", "B is worse"
_VERDICTS = {"A is better": B_IS_WORSE, "A is higher": "B is lower"}


class ComparedModel(NamedTuple):
    """One of the two, with its result files, and the files that could not be used."""

    model: str
    files: tuple[str, ...]
    problems: tuple[UnusedFile, ...]


class ModelTest(NamedTuple):
    """A test of B less A on a task or group, or on the items of a culture, with each model's score on all its items."""

    benchmark: str
    culture: str
    title: str
    cells: tuple[Number, Number]
    test: Comparison

    @property
    def name(self) -> str:
        """Its name in options and files: ``culturalvqa``, or ``culturalvqa:nigeria``."""
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
    patterns of the tasks and groups to look at; none means every benchmark.

    Raises:
        DataError: If one of the two has no run that can be used, or runs of several models, if both are the same files,
            or if ratings are of responses of neither.
    """
    loadings, reader = _loaded(first, second, options)
    sides = _sides(*map(_runs_by_task, (first, second), loadings))
    _refuse_copies(first, second, loadings)
    rows = {key: ModelRow(key, runs[0].model) for key, runs in sides.items()}
    results = Results([replace(run, row=key) for key, runs in sides.items() for run in runs], reader, rows=rows)
    units = (*measure(results, options.min_coverage), *other_units(results))
    checked = checked_units(options.rated, units, rows, require_all=False)
    people = {(unit.measured.key, unit.key): unit.responses for unit in checked}
    selected = [
        unit for unit in units if (any(fnmatchcase(unit.key, pattern) for pattern in only) if only else unit.headline)
    ]
    obstacles = {unit.key: _obstacle(unit, anyway=options.compare_anyway) for unit in selected}
    tests = _tests([unit for unit in selected if not obstacles[unit.key]], people)
    return TwoModels(
        sides=(_compared("a", sides, loadings[0]), _compared("b", sides, loadings[1])),
        tests=tuple(test for test in tests if not test.culture),
        cultures=tuple(test for test in tests if test.culture),
        not_compared=tuple(
            NotCompared(unit.key, obstacles[unit.key], bool(unit.benchmark) and "a" in unit.cells)
            for unit in selected
            if obstacles[unit.key]
        ),
    )


def _compared(key: str, sides: Mapping[str, Sequence[Run]], loading: Results) -> ComparedModel:
    files = sorted({str(run.path) for run in sides[key]})
    return ComparedModel(sides[key][0].model, tuple(files), tuple(loading.problems))


# The runs of both


def _loaded(first: str, second: str, options: Options) -> tuple[list[Results], SampleReader]:
    names, trained_on = Names(options.names), TrainingManifests(options.trained_on)
    reader = SampleReader()  # one for both, so that an item has the same number in both
    loadings = [
        load([path], names, reader, prefix=prefix, trained_on=trained_on)
        for path, prefix in ((first, "a"), (second, "b"))
    ]
    names.refuse_unfitting()
    trained_on.refuse_unfitting()
    return loadings, reader


def _runs_by_task(path: str, loading: Results) -> dict[str, list[Run]]:
    """Returns a model's runs of each task, the newest first."""
    runs = [run for run, problem in newest(loading.runs) if problem is None]
    models = sorted({run.model for run in runs}, key=str.casefold)
    if not runs:
        problems = "; ".join(f"{problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(f"compare: {path} has no run that can be used{f' ({problems})' if problems else ''}.")
    if len(models) > 1:
        folder = next(run.path.parent for run in runs if run.model == models[0])
        raise DataError(
            f"compare: {path} has runs of {len(models)} models: {', '.join(models)}. Name the folder of one, or its "
            f"files, such as {folder}."
        )
    by_task: dict[str, list[Run]] = {}
    for run in sorted(with_full_gradings(runs), key=lambda run: (not is_repeat(run), run.age), reverse=True):
        by_task.setdefault(run.task, []).append(run)
    return by_task


def _sides(runs_a: Mapping[str, list[Run]], runs_b: Mapping[str, list[Run]]) -> dict[str, list[Run]]:
    """Returns the runs of both: B's newest run of each task, and A's newest that can be compared with it."""
    baseline: list[Run] = []
    for task, runs in runs_a.items():
        settings = runs_b[task][0].settings if task in runs_b else None
        comparable = (run for run in runs if settings and not differences(run.settings, settings))
        baseline.append(next(comparable, runs[0]))
    return {"a": baseline, "b": [runs[0] for runs in runs_b.values()]}


def _refuse_copies(first: str, second: str, loadings: Sequence[Results]) -> None:
    files = [path for loading in loadings for path in dict.fromkeys(run.path for run in loading.runs)]
    if len(without_copies(files)[0]) < len(files):
        raise DataError(
            f"compare: {first} and {second} have the same result file, or a copy of it. "
            "Name the files of two different runs."
        )


# What can be compared


def _obstacle(unit: Unit, *, anyway: bool) -> str:
    """Returns why the two can't be compared on a unit; empty where they can."""
    if missing := [key.upper() for key in "ab" if key not in unit.cells]:
        return f"{' and '.join(missing)} didn't run it"
    if unit.benchmark is None:
        return "the harnesses' own tasks aren't tested"
    if unscored := [key.upper() for key in "ab" if unit.cells[key].value is None or not unit.runs[key]]:
        remarks = remarks_of((unit.cells["a"], unit.cells["b"]))
        return f"there are no scored samples of {' and '.join(unscored)}{f' ({remarks})' if remarks else ''}"
    return "" if anyway else "; ".join(_reasons(unit))


def _reasons(unit: Unit) -> Iterator[str]:
    flags = why_not(unit, "a", "b")
    settings_a, settings_b = ({run.task: run.settings for run in unit.runs[key]} for key in "ab")
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
        for run in unit.runs[key]:
            if mismatch := unlike_its_file(run, unit.results):
                yield f"{key.upper()}, {title_of(run.task)}: {mismatch}"
    subsets = [unit.tasks.index(run.task) for run in unit.runs["b"] if run.subset is not None]
    items = unit.select("a").items
    items = items[~np.isin(items >> 32, subsets)]  # a subset lacks items by design
    if lost := np.setdiff1d(items, unit.select("b").items).size:
        yield f"B lacks {lost} of A's {counted(items.size, 'item')}"


def remarks_of(cells: Sequence[Number]) -> str:
    """Returns the remarks on both scores, such as ``A: first 14 of 42 items``; may be empty."""
    return "; ".join(
        f"{side}: {', '.join(cell.remarks)}" for side, cell in zip("AB", cells, strict=True) if cell.remarks
    )


# The tests


def _tests(units: Sequence[Unit], people: Checked) -> list[ModelTest]:
    """Tests B against A on units and on their cultures; p is adjusted over all units, and over all cultures."""
    sources = (people, graded_by_better_judges(units))
    pairs: list[Pair] = []
    tested: list[tuple[Unit, str | None, tuple[Number, Number]]] = []
    for unit in units:
        field = unit.reported.culture
        common = [culture for culture in unit.groups("a", field) if culture in unit.groups("b", field)]
        cultures = [None, *(common if len(common) > 1 else [])]
        flags = ordered(why_not(unit, "a", "b"))
        for culture, correction in zip(cultures, corrections_of(unit, "a", "b", sources, cultures), strict=True):
            where: Where = () if culture is None else ((field, culture),)
            family = "benchmarks" if culture is None else "cultures"
            samples = (in_order(unit.select("a", where)), in_order(unit.select("b", where)))
            pairs.append(Pair(family, unit.key, "a", "b", samples, unit.scale, flags, correction))
            tested.append((unit, culture, (_score(unit, "a", where), _score(unit, "b", where))))
    tests: list[ModelTest] = []
    for (unit, culture, cells), test in zip(tested, compare(pairs, {"a": "A", "b": "B"}), strict=True):
        name = "" if culture is None else f": {unit.reported.field_named(unit.reported.culture).name_of(culture)}"
        verdict = _VERDICTS.get(test.verdict, test.verdict)
        tests.append(ModelTest(test.unit, culture or "", unit.title + name, cells, replace(test, verdict=verdict)))
    return tests


def _score(unit: Unit, key: str, where: Where) -> Number:
    if not where:
        return unit.cells[key]
    return number_of(unit.select(key, where), unit.scale, unit.flags[key], where, min_coverage=unit.min_coverage)
