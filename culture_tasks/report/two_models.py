"""Two models against each other: what ``culture-tasks compare`` shows."""

from __future__ import annotations

from dataclasses import dataclass

from culture_tasks.errors import DataError
from culture_tasks.report.building import Options
from culture_tasks.report.comparability import explain
from culture_tasks.report.comparisons import adjusted, compare, why_not
from culture_tasks.report.loaded_runs import Entered, Loading, Names, enter, load, newest
from culture_tasks.report.model import Cell, Comparison, Entrant
from culture_tasks.report.observations import ordered
from culture_tasks.report.other_tasks import other_units
from culture_tasks.report.samples import SampleReader
from culture_tasks.report.scores import Measured, measure
from culture_tasks.results.finding import Problem

_VERDICTS = {"higher": "B is better", "lower": "B is worse"}


@dataclass(frozen=True, slots=True)
class TwoModels:
    """The result of comparing B with A.

    Attributes:
        labels: Names of A and B.
        tests: One for each benchmark that could be compared: B less A.
        cells: The scores of A and B on each of these.
        not_compared: Benchmarks that were not compared, each with the reason.
        problems: Files that were not used.
    """

    labels: tuple[str, str]
    tests: tuple[Comparison, ...]
    cells: tuple[tuple[Cell, Cell], ...]
    not_compared: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def regressions(self) -> list[str]:
        """Benchmarks on which B is significantly worse."""
        return [test.unit for test in self.tests if test.verdict == _VERDICTS["lower"]]


def compare_models(first: str, second: str, options: Options) -> TwoModels:
    """Compares the results of two models.

    Args:
        first: File, folder or pattern with A's results.
        second: The same for B.
        options: What the user asked for.

    Raises:
        DataError: If one of them has no run that can be used, or runs of several models.
    """
    reader = SampleReader()
    loadings = [
        load([path], Names(options.names), reader, prefix=prefix) for path, prefix in ((first, "a"), (second, "b"))
    ]
    entered = [_only(path, key, loading) for path, key, loading in zip((first, second), "ab", loadings, strict=True)]
    tests: list[tuple[Comparison, tuple[Cell, Cell]]] = []
    reasons: list[str] = []
    for measured in measure(entered, options.min_coverage):
        if measured.unit.headline:
            _meet(measured, options, tests=tests, reasons=reasons)
    reasons += [f"{unit.key}: only result files are read of tasks that aren't ours" for unit in other_units(entered)]
    found = adjusted([test for test, _ in tests], lambda _, word: _VERDICTS[word])
    problems = tuple(problem for loading in loadings for problem in loading.problems)
    labels = (entered[0].entrant.label, entered[1].entrant.label)
    return TwoModels(
        labels,
        tuple(found),
        cells=tuple(cells for _, cells in tests),
        not_compared=tuple(reasons),
        problems=problems,
    )


def _only(path: str, key: str, loading: Loading) -> Entered:
    """Returns the one model of a path, in its own row: without the rows for other settings."""
    runs = [each for each, problem in newest(loading.runs) if problem is None]
    rows = [each for each in enter(runs) if not each.entrant.variation]
    if len(rows) == 1:
        return Entered(Entrant(key, rows[0].entrant.model), rows[0].runs)
    if not rows:
        said = "; ".join(f"{problem.kind}, {problem.detail}" for problem in loading.problems[:3])
        raise DataError(f"compare: {path} has no run that can be used{f' ({said})' if said else ''}.")
    models = ", ".join(each.entrant.model for each in rows)
    raise DataError(f"compare: {path} has runs of {len(rows)} models: {models}. Name the files of one.")


def _meet(
    measured: Measured, options: Options, tests: list[tuple[Comparison, tuple[Cell, Cell]]], reasons: list[str]
) -> None:
    """Tests the two on a unit, or notes why not."""
    unit = measured.unit
    missing = [key.upper() for key in "ab" if key not in unit.cells]
    if missing:
        reasons.append(f"{unit.key}: {' and '.join(missing)} didn't run it")
        return
    if any(unit.cells[key].value is None or not measured.runs[key] for key in "ab"):
        reasons.append(f"{unit.key}: there are no scored samples of both")
        return
    flags = why_not(measured, "a", "b")
    if flags and not options.compare_anyway:
        reasons.append(f"{unit.key}: {explain(ordered(flags))}")
        return
    one, two = measured.observe("a"), measured.observe("b")
    tests.append(
        (compare(measured, "a", second="b", one=one, two=two, flags=flags), (unit.cells["a"], unit.cells["b"]))
    )
