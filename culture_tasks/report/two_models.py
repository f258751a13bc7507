"""Two models against each other, by benchmark and by culture: what ``culture-tasks compare`` shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.errors import DataError
from culture_tasks.report.building import Options
from culture_tasks.report.comparability import differences, explain, what_differs
from culture_tasks.report.comparisons import Pair, adjusted, pair, why_not
from culture_tasks.report.loaded_runs import Entered, LoadedRun, Loading, Names, load, newest
from culture_tasks.report.model import Cell, Comparison, Entrant, Unit
from culture_tasks.report.observations import cell_of, observe, ordered, unlike_its_file
from culture_tasks.report.other_tasks import other_measured
from culture_tasks.report.scores import Measured, measure
from culture_tasks.report.text.wording import counted
from culture_tasks.report.trained_on import TrainedOn
from culture_tasks.results.columns import SampleReader
from culture_tasks.results.finding import Problem, without_copies

B_IS_BETTER, B_IS_WORSE = "B is better", "B is worse"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two.

    Attributes:
        model: Its name.
        files: The result files that were compared, in order.
        problems: Files of it that could not be used.
    """

    model: str
    files: tuple[str, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Tested:
    """A test of B against A.

    Attributes:
        benchmark: The task or group.
        culture: The culture whose items these are; empty for all items.
        cells: The scores of A and B, each on all of its own items.
        test: B less A, on the items that both have a score for.
    """

    benchmark: str
    culture: str
    cells: tuple[Cell, Cell]
    test: Comparison

    @property
    def name(self) -> str:
        """``culturalvqa`` for all items, ``culturalvqa:nigeria`` for those of a culture."""
        return f"{self.benchmark}:{self.culture}" if self.culture else self.benchmark

    @property
    def scale(self) -> Scale:
        """The scale of the scores."""
        return self.cells[0].scale

    @property
    def drop(self) -> float:
        """How much worse B is, on the scale of the scores; negative where it is better."""
        return self.test.difference if self.scale.better == "lower" else -self.test.difference


class NotCompared(NamedTuple):
    """A benchmark that was not compared.

    Attributes:
        benchmark: The task or group.
        reason: Why not.
        needed: Whether A has a score on it: what only B ran is no loss.
    """

    benchmark: str
    reason: str
    needed: bool


@dataclass(frozen=True, slots=True)
class TwoModels:
    """The result of comparing B with A.

    Attributes:
        sides: A and B.
        tests: One for each benchmark that could be compared; p is adjusted over all of them.
        cultures: One for each culture of these; p is adjusted over all of them.
        not_compared: The others.
    """

    sides: tuple[Side, Side]
    tests: tuple[Tested, ...]
    cultures: tuple[Tested, ...]
    not_compared: tuple[NotCompared, ...]


def compare_models(first: str, second: str, options: Options, only: Sequence[str] = ()) -> TwoModels:
    """Compares the results of two models.

    Of several runs of a task, B's newest counts, and A's newest that can be compared with it.

    Args:
        first: File, folder or pattern with A's results.
        second: The same for B.
        options: What the user asked for.
        only: Names, or patterns of names, of the tasks and groups to look at; none means every benchmark.

    Raises:
        DataError: If one of them has no run that can be used, or runs of several models; if both are the same files.
        SettingsError: If one of the pairs isn't one, or fits nothing.
    """
    reader = SampleReader()
    names, trained_on = Names(options.names), TrainedOn(options.trained_on)
    loadings = [
        load([path], names, reader, prefix=prefix, trained_on=trained_on)
        for path, prefix in ((first, "a"), (second, "b"))
    ]
    names.refuse_unfitting()
    trained_on.refuse_unfitting()
    runs_a, runs_b = (_of_one_model(path, loading) for path, loading in zip((first, second), loadings, strict=True))
    _refuse_same_files((first, second), loadings)
    candidate = {task: runs[0] for task, runs in runs_b.items()}
    baseline = {task: _comparable(runs, candidate.get(task)) for task, runs in runs_a.items()}
    chosen = (baseline, candidate)
    entered = [Entered(Entrant(key, _model(runs)), runs) for key, runs in zip("ab", chosen, strict=True)]
    tests: list[_Untested] = []
    cultures: list[_Untested] = []
    not_compared: list[NotCompared] = []
    for measured in (*measure(entered, options.min_coverage), *other_measured(entered)):
        if _is_wanted(measured.unit, only):
            reason = _why_not(measured, anyway=options.compare_anyway)
            if reason:
                not_compared.append(NotCompared(measured.unit.key, reason, "a" in measured.unit.cells))
            else:
                tests.append(_whole(measured))
                cultures += _of_cultures(measured)
    sides = [
        Side(
            model=one.entrant.model,
            files=tuple(sorted({each.run.results_file for each in one.runs.values()})),
            problems=tuple(loading.problems),
        )
        for one, loading in zip(entered, loadings, strict=True)
    ]
    return TwoModels((sides[0], sides[1]), _with_verdicts(tests), _with_verdicts(cultures), tuple(not_compared))


def _refuse_same_files(paths: tuple[str, str], loadings: Sequence[Loading]) -> None:
    files = [list(dict.fromkeys(each.result.path for each in loading.runs)) for loading in loadings]
    copies = len(files[0]) + len(files[1]) - len(without_copies([*files[0], *files[1]])[0])
    if files[0] and files[1] and copies:
        raise DataError(
            f"compare: {paths[0]} and {paths[1]} have the same result file, or a copy of it. "
            "Name the files of two different runs."
        )


def _of_one_model(path: str, loading: Loading) -> dict[str, list[LoadedRun]]:
    """Returns the runs of each task, the newest first."""
    runs = [each for each, problem in newest(loading.runs) if problem is None]
    models = list(dict.fromkeys(each.run.model for each in sorted(runs, key=lambda each: each.run.model.casefold())))
    if not runs:
        said = "; ".join(f"{problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(f"compare: {path} has no run that can be used{f' ({said})' if said else ''}.")
    if len(models) > 1:
        raise DataError(
            f"compare: {path} has runs of {len(models)} models: {', '.join(models)}. Name the files of one."
        )
    found: dict[str, list[LoadedRun]] = {}
    for each in sorted(runs, key=lambda each: each.order, reverse=True):
        found.setdefault(each.run.task, []).append(each)
    return found


def _comparable(runs: Sequence[LoadedRun], other: LoadedRun | None) -> LoadedRun:
    """Returns the first run that can be compared with another, or else the first of all."""
    alike = (each for each in runs if other and not differences(each.run.settings, other.run.settings))
    return next(alike, runs[0])


def _model(runs: Mapping[str, LoadedRun]) -> str:
    return next(iter(runs.values())).run.model


def _is_wanted(unit: Unit, only: Sequence[str]) -> bool:
    return any(fnmatchcase(unit.key, pattern) for pattern in only) if only else unit.headline


def _missing(unit: Unit) -> str:
    missing = [key.upper() for key in "ab" if key not in unit.cells]
    return f"{' and '.join(missing)} didn't run it" if missing else ""


def _why_not(measured: Measured, *, anyway: bool) -> str:
    """Returns why the two can't be compared on a unit; empty where they can."""
    unit = measured.unit
    if reason := _missing(unit):
        return reason
    unscored = [key.upper() for key in "ab" if unit.cells[key].value is None or not measured.runs[key]]
    if unscored and unit.benchmark is None:
        return f"there are no samples of {' and '.join(unscored)} whose mean is its score"
    if unscored:
        return f"there are no scored samples of {' and '.join(unscored)}"
    if anyway:
        return ""
    flags = why_not(measured, "a", "b")
    settings = [{each.run.task: each.run.settings for each in measured.runs[key]} for key in "ab"]
    apart = dict.fromkeys(
        part
        for task in settings[0].keys() & settings[1].keys()
        for part in what_differs(settings[1][task], settings[0][task])
    )
    reasons = [explain(ordered(flags)) + (f" (B: {', '.join(apart)})" if apart else "")] if flags else []
    reasons += [f"{key.upper()}: {note}" for key in "ab" if "incomplete" in flags and (note := unit.cells[key].note)]
    if seen := [key.upper() for key in "ab" if "trained_on_test" in unit.cells[key].flags]:
        reasons.append(f"trained on the test: {' and '.join(seen)}")
    reasons += [
        f"{key.upper()}, {each.run.task}: {unlike}"
        for key in "ab"
        for each in measured.runs[key]
        if (unlike := unlike_its_file(each))
    ]
    asked, answered = measured.observe("a").items, measured.observe("b").items
    if lost := np.setdiff1d(asked, answered).size:
        reasons.append(f"B lacks {lost} of A's {counted(asked.size, 'item')}")
    return "; ".join(reasons)


class _Untested(NamedTuple):
    """What a test will be made of."""

    benchmark: str
    culture: str
    cells: tuple[Cell, Cell]
    pair: Pair


def _whole(measured: Measured) -> _Untested:
    one, two = measured.observe("a"), measured.observe("b")
    tested = pair(measured, "a", "b", one=one, two=two, flags=why_not(measured, "a", "b"))
    cells = measured.unit.cells
    return _Untested(measured.unit.key, "", (cells["a"], cells["b"]), tested)


def _of_cultures(measured: Measured) -> Iterator[_Untested]:
    """Yields a test for each culture of a unit that has several."""
    field = measured.reported.culture
    cultures = [culture for culture in measured.groups("a", field) if culture in measured.groups("b", field)]
    for culture in cultures if len(cultures) > 1 else ():
        where = ((field, culture),)
        one, two = (observe(measured.runs[key], measured.tasks, where) for key in "ab")
        tested = pair(measured, "a", "b", one=one, two=two, flags=why_not(measured, "a", "b"))
        cells = [
            cell_of(seen, measured.unit.scale, tuple(measured.flags[key]), where, min_coverage=measured.min_coverage)
            for key, seen in (("a", one), ("b", two))
        ]
        yield _Untested(measured.unit.key, culture, (cells[0], cells[1]), tested)


def _with_verdicts(found: Sequence[_Untested]) -> tuple[Tested, ...]:
    tests = adjusted([each.pair for each in found], lambda key, word: _ABOUT_B[key, word])
    return tuple(
        Tested(each.benchmark, each.culture, each.cells, test) for each, test in zip(found, tests, strict=True)
    )


_ABOUT_B = {
    ("a", "better"): B_IS_WORSE,
    ("b", "better"): B_IS_BETTER,
    ("a", "higher"): "B is lower",
    ("b", "higher"): "B is higher",
}
"""What is said of B where one of the two, by its key, is better or higher."""
