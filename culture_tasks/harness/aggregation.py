"""From the records of one metric to its value and standard error.

The record of a judged metric is a dictionary with ``outcomes`` (how many of its verdicts ended how) and, if any was
scored, ``score``. That of any other is the value that the benchmark gave, or the document's whole record for a task's
main metric. It is None where the metric does not concern the document: a question about Brazil says nothing about
India. Every function takes the records of one metric, in any order, and is registered with both harnesses.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import ComputedScore, Run
from culture_tasks.harness.records import PartRecord
from culture_tasks.harness.session import current_session

Record = Mapping[str, Any]
Number = float | Literal["N/A"]
"""A number of a harness's result table, or what the table shows in place of one that isn't defined."""

_log = logging.getLogger(__name__)


class Aggregation:
    """From the records of one metric to its value, and to its standard error where it has one.

    A harness calls it as it calls any aggregation.

    Attributes:
        name: What it is called in the settings that a harness logs.
        is_score: Whether the mean of several tasks' values means something. Counts and shares of verdicts have none: of
            a group they are taken over all records.
    """

    __slots__ = ("_finish", "_stderr", "_value", "is_score", "name")

    def __init__(
        self,
        name: str,
        value: Callable[[Sequence[Any]], float],
        stderr: Callable[[Sequence[Any]], float] | None = None,
        *,
        is_score: bool = True,
        finish: Callable[[Sequence[Any], str, Run], None] | None = None,
    ) -> None:
        """Makes an aggregation.

        Args:
            name: What it is called.
            value: Works out the value.
            stderr: Works out the standard error, in the same unit; None where there is none.
            is_score: Whether the mean of several tasks' values means something.
            finish: What is left to do with a task's records when a harness has its results, such as writing a file.
        """
        self.name = name
        self.is_score = is_score
        self._finish = finish
        self._value = value
        self._stderr = stderr

    def __call__(self, records: Sequence[Any]) -> float:
        """Returns the value."""
        return self._value(records)

    def __repr__(self) -> str:
        return f"culture_tasks: {self.name}"

    def stderr(self, records: Sequence[Any]) -> Number:
        """Returns the standard error of the value, or "N/A" where it has none or too few records."""
        return "N/A" if self._stderr is None else _shown(self._stderr(records))

    def finish(self, records: Sequence[Any], task: str, run: Run) -> None:
        """Does what is left to do with a task's records. It is called once, when a harness has its results."""
        if self._finish is not None:
            self._finish(records, task, run)

    def of_group(self, tasks: Sequence[Sequence[Any]], *, weight_by_size: bool) -> tuple[float, Number]:
        """Returns the value and standard error of a group of tasks.

        Args:
            tasks: The records of each task.
            weight_by_size: Whether every record weighs the same, as the group's file says: then the value is that of
                all records together. Else every task weighs the same, and the standard error is that of a mean of
                independent means, sqrt(Σ se²) / k over k tasks.
        """
        if weight_by_size or not self.is_score:
            together = list(chain.from_iterable(tasks))
            return self(together), self.stderr(together)
        errors = [self.stderr(records) for records in tasks]
        known = [error for error in errors if error != "N/A"]
        value = sum(self(records) for records in tasks) / len(tasks)
        return value, math.hypot(*known) / len(tasks) if len(known) == len(tasks) else "N/A"


def _shown(value: float) -> Number:
    return "N/A" if math.isnan(value) else value


class _Tally(NamedTuple):
    """The records of a metric, counted.

    Attributes:
        scores: Scores of the documents with a scored verdict.
        scored: Number of scored verdicts.
        asked: Number of verdicts asked for.
    """

    scores: np.ndarray[Any, np.dtype[np.float64]]
    scored: int
    asked: int

    @property
    def coverage(self) -> float:
        return self.scored / self.asked if self.asked else math.nan

    @property
    def enough(self) -> bool:
        """Whether a mean may be shown: some verdict is scored, and the coverage is what the user asks for."""
        return self.scored > 0 and self.coverage >= current_session().settings.judge_min_coverage


def _concerned(records: Iterable[Record | None]) -> Iterator[Record]:
    """Yields the documents that the metric concerns, without the detour over a view."""
    return (record.record if isinstance(record, PartRecord) else record for record in records if record is not None)


def _tally(records: Iterable[Record | None]) -> _Tally:
    scores: list[float] = []
    scored = asked = 0
    for record in _concerned(records):
        outcomes = record["outcomes"]
        asked += sum(outcomes.values())
        if "score" in record:
            scores.append(record["score"])
            scored += outcomes["scored"]
    return _Tally(np.array(scores, dtype=np.float64), scored, asked)


def coverage(records: Iterable[Record | None]) -> float:
    """Share of verdicts that were scored, of all that were asked for.

    Range 0-1; 1 is best. Without any verdict asked for, NaN.
    """
    asked = scored = 0
    for record in _concerned(records):
        asked += sum(record["outcomes"].values())
        scored += record["outcomes"].get("scored", 0)
    return scored / asked if asked else math.nan


def coverage_stderr(records: Sequence[Record | None]) -> float:
    """Standard error of :func:`coverage`: the square root of p (1 - p) / n over n verdicts; NaN without any."""
    share = coverage(records)
    asked = sum(sum(record["outcomes"].values()) for record in _concerned(records))
    return math.sqrt(share * (1.0 - share) / asked) if asked else math.nan


def unscored(records: Iterable[Record | None]) -> int:
    """How many verdicts were asked for and not scored: unparsable, refused, failed, or left to a later judge.

    Range 0 and up; 0 is best. How many of them ended how stands in the records, under ``outcomes``.
    """
    return sum(
        number
        for record in _concerned(records)
        for outcome, number in record["outcomes"].items()
        if outcome != "scored"
    )


def mean_of_scored(records: Iterable[Record | None]) -> float:
    """Mean score over the documents with a scored verdict.

    A verdict that failed is left out, never counted as a zero. With a coverage under
    ``CULTURE_JUDGE_MIN_COVERAGE``, or without any scored verdict, the mean is NaN: what is missing may be what is hard.
    """
    tally = _tally(records)
    if tally.asked and not tally.enough:
        _explain(tally)
    return float(tally.scores.mean()) if tally.enough else math.nan


def stderr_of_scored(records: Iterable[Record | None]) -> float:
    """Standard error of :func:`mean_of_scored`: the sample standard deviation over the square root of n.

    NaN where the mean is NaN, or with a single document.
    """
    tally = _tally(records)
    count = len(tally.scores)
    return float(tally.scores.std(ddof=1) / math.sqrt(count)) if tally.enough and count > 1 else math.nan


def spread_over_runs(records: Iterable[Record | None]) -> float:
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """
    runs = [record["run_scores"] for record in _concerned(records) if "run_scores" in record]
    if not runs:
        return math.nan
    table = np.array(runs, dtype=np.float64)
    table = table[:, ~np.all(np.isnan(table), axis=0)]
    return float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan


def _explain(tally: _Tally) -> None:
    """Says once for each evaluation why scores are NaN: many metrics are over the same verdicts."""
    session = current_session()
    if session.said_why_nan:
        return
    session.said_why_nan = True
    _log.warning(
        "judged scores are NaN: of the first, %d of %d verdicts were scored; CULTURE_JUDGE_MIN_COVERAGE asks for %g. "
        "Run again, which asks only for what is missing, or grade the logged samples with `culture-tasks rejudge`.",
        tally.scored,
        tally.asked,
        session.settings.judge_min_coverage,
    )


def mean_of_values(records: Iterable[Any]) -> float:
    """Mean over the documents that the metric concerns; NaN without any."""
    values = _values(records)
    return float(values.mean()) if len(values) else math.nan


def stderr_of_values(records: Iterable[Any]) -> float:
    """Standard error of :func:`mean_of_values`: the sample standard deviation over the square root of n.

    NaN with fewer than two documents.
    """
    values = _values(records)
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _values(records: Iterable[Any]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = (record.get("score") if isinstance(record, Mapping) else record for record in records)
    return np.array([value for value in found if value is not None], dtype=np.float64)


def aggregation_of(metric: ComputedScore, *, is_main: bool) -> Aggregation:
    """Returns the aggregation of a benchmark's own metric.

    Args:
        metric: The metric.
        is_main: Whether it is its task's main metric, whose records are whole.
    """

    def given(function: Callable[[Sequence[Any]], Any], records: Sequence[Any]) -> Any:
        return function([record for record in records if record is not None and (not is_main or "score" in record)])

    def finish(records: Sequence[Any], task: str, run: Run) -> None:
        finish_values = metric.finish
        if finish_values is not None:
            given(lambda values: finish_values(values, task, run), records)

    return Aggregation(
        metric.name,
        partial(given, metric.value),
        None if metric.stderr is None else partial(given, metric.stderr),
        is_score=metric.is_score,
        finish=finish,
    )


MEAN = Aggregation("mean", mean_of_values, stderr_of_values)
MEAN_OF_SCORED = Aggregation("mean of the scored", mean_of_scored, stderr_of_scored)
COVERAGE = Aggregation("share of verdicts that were scored", coverage, coverage_stderr, is_score=False)
UNSCORED = Aggregation("number of verdicts that were not scored", unscored, is_score=False)
SPREAD_OVER_RUNS = Aggregation("deviation of the mean over runs", spread_over_runs, is_score=False)
