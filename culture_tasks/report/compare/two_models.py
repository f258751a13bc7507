"""Two models against each other, by benchmark and by culture, for ``culture-tasks compare``."""

from __future__ import annotations

from collections.abc import Sequence
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
from culture_tasks.report.numbers.comparisons import Pair, adjusted, why_not
from culture_tasks.report.numbers.corrections import Corrections
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


class ComparedModel(NamedTuple):
    """One of the two, with its result files in order, and the files that could not be used."""

    model: str
    files: tuple[str, ...]
    problems: tuple[UnusedFile, ...]


class ModelTest(NamedTuple):
    """A test of B less A on a task or group, or on the items of a culture, with each model's score on all its items.

    The title is the name for readers; :attr:`name` is that of options and files.
    """

    benchmark: str
    culture: str
    title: str
    cells: tuple[Number, Number]
    test: Comparison

    @property
    def name(self) -> str:
        """``culturalvqa`` for all items, ``culturalvqa:nigeria`` for those of a culture."""
        return f"{self.benchmark}:{self.culture}" if self.culture else self.benchmark

    @property
    def remarks(self) -> str:
        """The remarks on both scores, such as ``A: first 14 of 42 items``; may be empty."""
        return _remarks(self.cells)

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        return self.cells[0].scale

    @property
    def drop(self) -> float:
        """How much worse B is, on the scale of the scores; negative where it is better."""
        return self.test.difference if self.scale.better == "lower" else -self.test.difference


def _remarks(cells: Sequence[Number]) -> str:
    return "; ".join(
        f"{side}: {', '.join(cell.remarks)}" for side, cell in zip("AB", cells, strict=True) if cell.remarks
    )


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
    reader = SampleReader()
    names, trained_on = Names(options.names), TrainingManifests(options.trained_on)
    loadings = [
        load([path], names, reader, prefix=prefix, trained_on=trained_on)
        for path, prefix in ((first, "a"), (second, "b"))
    ]
    names.refuse_unfitting()
    trained_on.refuse_unfitting()
    runs_a, runs_b = map(_runs_by_task, (first, second), loadings)
    files = [path for loading in loadings for path in dict.fromkeys(loaded.path for loaded in loading.runs)]
    if len(without_copies(files)[0]) < len(files):
        raise DataError(
            f"compare: {first} and {second} have the same result file, or a copy of it. "
            "Name the files of two different runs."
        )
    candidate = {task: runs[0] for task, runs in runs_b.items()}
    baseline: dict[str, Run] = {}
    for task, runs in runs_a.items():
        settings = candidate[task].settings if task in candidate else None
        comparable = (loaded for loaded in runs if settings and not differences(loaded.settings, settings))
        baseline[task] = next(comparable, runs[0])
    sides = {"a": baseline, "b": candidate}
    entrants = {key: ModelRow(key, next(iter(runs.values())).model) for key, runs in sides.items()}
    runs = [replace(run, row=key) for key, side in sides.items() for run in side.values()]
    results = Results(runs, reader, rows=entrants)
    units = (*measure(results, options.min_coverage), *other_units(results))
    checked = checked_units(options.rated, units, entrants, require_all=False)
    corrections = Corrections({(unit.measured.key, unit.key): unit.responses for unit in checked})
    compared: list[Unit] = []
    not_compared: list[NotCompared] = []
    for measured in units:
        unit = measured
        is_selected = any(fnmatchcase(unit.key, pattern) for pattern in only) if only else unit.headline
        if is_selected and (reason := _obstacle(measured, anyway=options.compare_anyway)):
            not_compared.append(NotCompared(unit.key, reason, bool(unit.benchmark) and "a" in unit.cells))
        elif is_selected:
            compared.append(measured)
    side_a, side_b = (
        ComparedModel(
            model=row.model,
            files=tuple(sorted({str(loaded.path) for loaded in sides[row.key].values()})),
            problems=tuple(loading.problems),
        )
        for row, loading in zip(entrants.values(), loadings, strict=True)
    )
    return TwoModels(
        (side_a, side_b),
        _tests([(measured, ()) for measured in compared], corrections),
        _tests([(measured, where) for measured in compared for where in _cultures(measured)], corrections),
        tuple(not_compared),
    )


def _runs_by_task(path: str, loading: Results) -> dict[str, list[Run]]:
    """Returns a model's runs of each task, the newest first."""
    runs = [loaded for loaded, problem in newest(loading.runs) if problem is None]
    models = sorted({loaded.model for loaded in runs}, key=str.casefold)
    if not runs:
        problems = "; ".join(f"{problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(f"compare: {path} has no run that can be used{f' ({problems})' if problems else ''}.")
    if len(models) > 1:
        folders = dict.fromkeys(str(loaded.path.parent) for loaded in runs if loaded.model == models[0])
        raise DataError(
            f"compare: {path} has runs of {len(models)} models: {', '.join(models)}. Name the folder of one, or its "
            f"files, such as {next(iter(folders))}."
        )
    by_task: dict[str, list[Run]] = {}
    for loaded in sorted(
        with_full_gradings(runs), key=lambda loaded: (not is_repeat(loaded), loaded.age), reverse=True
    ):
        by_task.setdefault(loaded.task, []).append(loaded)
    return by_task


def _obstacle(measured: Unit, *, anyway: bool) -> str:
    """Returns why the two can't be compared on a unit; empty where they can."""
    unit = measured
    if unit.benchmark is None:
        return "the harnesses' own tasks aren't tested"
    if missing := [key.upper() for key in "ab" if key not in unit.cells]:
        return f"{' and '.join(missing)} didn't run it"
    if unscored := [key.upper() for key in "ab" if unit.cells[key].value is None or not measured.runs[key]]:
        models = " and ".join(unscored)
        remarks = _remarks([unit.cells[key] for key in "ab"])
        return f"there are no scored samples of {models}{f' ({remarks})' if remarks else ''}"
    if anyway:
        return ""
    flags = why_not(measured, "a", "b")
    settings = [{loaded.task: loaded.settings for loaded in measured.runs[key]} for key in "ab"]
    changes = dict.fromkeys(
        part
        for task in settings[0].keys() & settings[1].keys()
        for part in what_differs(settings[1][task], settings[0][task])
    )
    reasons = [explain(ordered(flags)) + (f" (B: {', '.join(changes)})" if changes else "")] if flags else []
    reasons += [f"{key.upper()}: {note}" for key in "ab" if "incomplete" in flags and (note := unit.cells[key].note)]
    if trained := [key.upper() for key in "ab" if "trained_on_test" in unit.cells[key].flags]:
        reasons.append(f"trained on the test: {' and '.join(trained)}")
    reasons += [
        f"{key.upper()}, {title_of(loaded.task)}: {mismatch}"
        for key in "ab"
        for loaded in measured.runs[key]
        if (mismatch := unlike_its_file(loaded, measured.results))
    ]
    subsets = [measured.tasks.index(loaded.task) for loaded in measured.runs["b"] if loaded.subset is not None]
    items = measured.select("a").items
    items = items[~np.isin(items >> 32, subsets)]  # a subset lacks items by design
    if lost := np.setdiff1d(items, measured.select("b").items).size:
        reasons.append(f"B lacks {lost} of A's {counted(items.size, 'item')}")
    return "; ".join(reasons)


def _cultures(measured: Unit) -> list[Where]:
    """Returns the cultures of a unit that both have samples of; none where there is only one."""
    field = measured.reported.culture
    cultures = [culture for culture in measured.groups("a", field) if culture in measured.groups("b", field)]
    return [((field, culture),) for culture in cultures] if len(cultures) > 1 else []


def _tests(places: Sequence[tuple[Unit, Where]], corrections: Corrections) -> tuple[ModelTest, ...]:
    """Tests B against A on units, or on their cultures; p is adjusted over all of them."""
    pairs: list[Pair] = []
    scores: list[tuple[Number, Number]] = []
    for measured, where in places:
        unit = measured
        first, second = (measured.select(key, where) for key in "ab")
        cell_a, cell_b = (
            number_of(observed, unit.scale, tuple(measured.flags[key]), where, min_coverage=measured.min_coverage)
            if where
            else unit.cells[key]
            for key, observed in (("a", first), ("b", second))
        )
        scores.append((cell_a, cell_b))
        flags = ordered(why_not(measured, "a", "b"))
        correction = corrections.correction(measured, "a", "b", where[0][1] if where else None)
        pairs.append(Pair(unit.key, "a", "b", in_order(first), in_order(second), unit.scale, flags, correction))
    verdicts = {"A is better": B_IS_WORSE, "A is higher": "B is lower"}
    tests: list[ModelTest] = []
    for (measured, where), cells, test in zip(places, scores, adjusted(pairs, {"a": "A", "b": "B"}), strict=True):
        verdict = verdicts.get(test.verdict, test.verdict)
        groups = [group for _, group in where]
        names = [measured.title, *(measured.reported.field_named(field).name_of(group) for field, group in where)]
        title = ": ".join(names)
        tests.append(ModelTest(test.unit, ":".join(groups), title, cells, replace(test, verdict=verdict)))
    return tuple(tests)
