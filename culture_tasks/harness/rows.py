"""From the records of a task to the numbers of its row, and from the records of several to a group's.

A judged metric ``x`` comes with ``x_coverage``, ``x_unscored`` and, over repeats, ``x_run_sd``. With the lexical judge
its name is ``x_lexical``, so that text overlap never passes for a judge's score. A metric has a number for each group
of the data that it names, ``x_<group>``. A row has the numbers that concern any of its records.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import ComputedScore, JudgedScore, MeanScore, Metric, Run
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.harness.session import current_session
from culture_tasks.metrics.means import (
    cluster_numbers,
    cluster_scores,
    contributions,
    mean_and_error,
    ratio_contributions,
)
from culture_tasks.metrics.resampling import bootstrapped, replicates

Record = Mapping[str, Any]
Number = float | Literal["N/A"]
"""A number of a harness's result table, or the text in place of one that isn't defined."""

LEXICAL = "_lexical"

_log = logging.getLogger(__name__)


class Part(NamedTuple):
    """A part of the data that has its own number: a group, the field that it belongs to, and the number's name."""

    field: str
    group: str
    metric: str


def parts_of(metric: Metric) -> list[Part]:
    """Returns the parts of the data that have their own number."""
    return [Part(field, name, f"{metric.name}_{name}") for field, names in metric.groups.items() for name in names]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number of a row.

    Attributes:
        name: Its name in the row.
        better: Whether higher is better; None where a value in between is neutral.
        metric: The metric that it belongs to.
        is_main: Whether that is the task's main metric.
        part: The part of the data that it is about, whose records alone it is given; None for all of them.
        is_score: Whether the mean of several tasks' values means something. Counts and shares of verdicts have none: of
            a group they are taken over all records.
    """

    name: str
    better: bool | None
    metric: Metric
    is_main: bool
    part: Part | None = None
    is_score: bool = True

    def value(self, records: Sequence[Record]) -> float:
        """Returns the value; NaN where there is none."""
        raise NotImplementedError

    def error(self, records: Sequence[Record]) -> float:
        """Returns the standard error of the value; NaN where it has none or too few records."""
        raise NotImplementedError

    def concerned(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yields the records that the number is worked out from."""
        return filter(self._has, records)

    def _has(self, record: Record) -> bool:
        if self.is_main:
            is_graded = "record" in record
            return is_graded and (self.part is None or "judge" in record or record.get("score") is not None)
        return any((record.get(field) or {}).get(self.metric.name) is not None for field in ("values", "inputs"))

    def group_value(self, tasks: Sequence[Sequence[Record]], *, by_size: bool, sizes: Sequence[int] | None) -> Measured:
        """Returns the value and standard error of a group of tasks, of each of which the records are given.

        With ``by_size`` every record weighs the same: the value is that of all records together. Else every task does,
        and the standard error is that of a mean of independent means, sqrt(Σ se²) / k over k tasks. Where the records
        are of subsets, ``sizes`` has the number of each task's documents, which then weigh the same.
        """
        if not self.is_score or (by_size and sizes is None):
            return self.measured(list(chain.from_iterable(tasks)))
        shares = sizes if by_size and sizes is not None else [1] * len(tasks)
        parts = [self.measured(records) for records in tasks]
        value = sum(share * part.value for share, part in zip(shares, parts, strict=True)) / sum(shares)
        terms = [share * part.error for share, part in zip(shares, parts, strict=True) if part.error != "N/A"]
        return Measured(value, math.hypot(*terms) / sum(shares) if len(terms) == len(tasks) else "N/A")

    def measured(self, records: Sequence[Record]) -> Measured:
        """Returns the value and its standard error."""
        return Measured(self.value(records), _number(self.error(records)))


class Measured(NamedTuple):
    """A value with its standard error, as result files have them."""

    value: float
    error: Number


def _number(value: float) -> Number:
    return "N/A" if math.isnan(value) else value


class Coverage(Statistic):
    """Share of verdicts that were scored, of all that were asked for: 0 to 1, NaN without any."""

    __slots__ = ()

    def value(self, records: Sequence[Record]) -> float:
        """Returns the share."""
        scored, requests = _counts(self.concerned(records))
        return scored / requests if requests else math.nan

    def error(self, records: Sequence[Record]) -> float:
        """Returns sqrt(p (1 - p) / n) over n verdicts; where documents share clusters, that of a mean with clusters."""
        records = list(self.concerned(records))
        (scored, requests), clusters = _counts(records), list(map(cluster_of, records))
        if not requests or len(set(clusters)) == len(clusters):
            return math.sqrt(scored / requests * (1.0 - scored / requests) / requests) if requests else math.nan
        counts = np.array([_counts([record]) for record in records], dtype=np.float64)
        return mean_and_error(ratio_contributions(counts[:, 0], counts[:, 1]), clusters).error


class Unscored(Statistic):
    """How many verdicts were asked for and not scored: unparsable, refused, failed, or left to a later judge."""

    __slots__ = ()

    def value(self, records: Sequence[Record]) -> float:
        """Returns the number."""
        scored, requests = _counts(self.concerned(records))
        return requests - scored

    def error(self, records: Sequence[Record]) -> float:  # noqa: ARG002
        """Returns NaN: a count has none."""
        return math.nan


class SpreadOverRuns(Statistic):
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """

    __slots__ = ()

    def value(self, records: Sequence[Record]) -> float:
        """Returns the deviation."""
        table = np.array([record["run_scores"] for record in self.concerned(records)], dtype=np.float64)
        if table.ndim < 2:
            return math.nan
        table = table[:, ~np.all(np.isnan(table), axis=0)]
        return float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan

    def error(self, records: Sequence[Record]) -> float:  # noqa: ARG002
        """Returns NaN: it has none."""
        return math.nan

    def _has(self, record: Record) -> bool:
        return "run_scores" in record


class Mean(Statistic):
    """The mean of the scores of documents, or of clusters of documents.

    A document without a score that needs no verdict is left out. So is a verdict that failed: it is never counted as a
    zero, and a cluster with one has no score. With a coverage under ``CULTURE_JUDGE_MIN_COVERAGE``, or without any
    score, the mean is NaN: the missing documents may be the hard ones.
    """

    __slots__ = ()

    def value(self, records: Sequence[Record]) -> float:
        """Returns the mean."""
        records = list(self.concerned(records))
        return self._mean_of(self._scores(records)[0], records)

    def error(self, records: Sequence[Record]) -> float:
        """Returns the cluster-robust standard error; NaN where the mean is, and for scores of a single cluster."""
        records = list(self.concerned(records))
        return mean_and_error(*self._scores(records)).error if self._is_covered(records) else math.nan

    def measured(self, records: Sequence[Record]) -> Measured:
        """Returns the value and its standard error; the mean of the groups' means where these weigh the same."""
        assert isinstance(self.metric, MeanScore)
        if self.part is not None or not self.metric.equal_groups:
            return super().measured(records)
        groups = by_group(self.concerned(records), self.metric.equal_groups)
        of_group = replace(self, part=Part(self.metric.equal_groups, "", self.name))
        if not groups:
            return Measured(math.nan, "N/A")
        return of_group.group_value(list(groups.values()), by_size=False, sizes=None)

    def group_value(self, tasks: Sequence[Sequence[Record]], *, by_size: bool, sizes: Sequence[int] | None) -> Measured:
        """Returns the value and standard error of a group of tasks, where a cluster may have documents of several.

        Clusters of one benchmark with equal names are one. Where tasks share none, the standard error is that of
        :meth:`Statistic.group_value`.
        """
        measured = super().group_value(tasks, by_size=by_size, sizes=sizes)
        parts = [self._scores(list(self.concerned(records))) for records in tasks]
        clusters = [cluster for _, of_part in parts for cluster in of_part]
        shares_clusters = len(set(clusters)) < sum(len(set(of_part)) for _, of_part in parts)
        if (by_size and sizes is None) or not shares_clusters or math.isnan(measured.value):
            return measured
        strata = np.repeat(np.arange(len(parts)), [scores.size for scores, _ in parts])
        shares = np.array(sizes, dtype=np.float64) if by_size and sizes is not None else None
        influence = contributions(np.concatenate([scores for scores, _ in parts]), strata, shares)
        return Measured(measured.value, _number(mean_and_error(influence, clusters).error))

    def _mean_of(self, scores: Floats, records: Sequence[Record]) -> float:
        if self._is_covered(records):
            return float(scores.mean()) if scores.size else math.nan
        session = current_session()
        scored, requests = _counts(records)
        # Once for each evaluation, since many numbers are over the same verdicts; without a judge, its end says so.
        if requests > unjudged(records) and not session.has_explained_nan:
            session.has_explained_nan = True
            _log.warning(
                "judged scores are NaN: of the first, %d of %d verdicts were scored; CULTURE_JUDGE_MIN_COVERAGE "
                "asks for %g. Run again, which asks only for what is missing, or grade the logged samples with "
                "`culture-tasks rejudge`.",
                *(scored, requests, session.settings.judge_min_coverage),
            )
        return math.nan

    def _is_covered(self, records: Sequence[Record]) -> bool:
        """Whether some verdict is scored, and the share that the user asks for; true where no verdict is needed."""
        scored, requests = _counts(records) if isinstance(self.metric, JudgedScore) else (0, 0)
        least = current_session().settings.judge_min_coverage if requests else 0.0
        return not requests or (scored > 0 and scored / requests >= least)

    def _scores(self, records: Iterable[Record]) -> tuple[Floats, list[Hashable]]:
        """Returns the scores that the mean is of, with the cluster of each."""
        assert isinstance(self.metric, MeanScore)
        scores: list[float] = []
        clusters: list[Hashable] = []
        for record in records:
            score = record.get("score") if self.is_main else record["values"][self.metric.name]
            is_missing = isinstance(self.metric, JudgedScore) or (self.is_main and "failed" in record["outcomes"])
            if score is not None or (is_missing and self.metric.per_cluster is not None):
                scores.append(math.nan if score is None else score)
                clusters.append(cluster_of(record))
        values = np.array(scores, dtype=np.float64)
        if self.metric.per_cluster is not None:
            numbers = cluster_numbers(clusters, np.ones(values.size, dtype=np.bool_))
            values = cluster_scores(values, numbers, self.metric.per_cluster)
            clusters = list(dict.fromkeys(clusters))
        mask = ~np.isnan(values)
        return values[mask], [cluster for cluster, is_scored in zip(clusters, mask, strict=True) if is_scored]


class Computed(Statistic):
    """A number that the benchmark works out: from the records that have a score, or from the documents' inputs."""

    __slots__ = ()

    def value(self, records: Sequence[Record]) -> float:
        """Returns the number."""
        assert isinstance(self.metric, ComputedScore)
        return self.metric.value(self.inputs(records)[0])

    def error(self, records: Sequence[Record]) -> float:
        """Returns the metric's standard error, for a main metric that of a bootstrap over clusters, else NaN."""
        assert isinstance(self.metric, ComputedScore)
        value_of = self.metric.value
        inputs, clusters = self.inputs(records)
        if self.metric.stderr is not None:
            return self.metric.stderr(inputs, clusters)
        if not self.is_main:
            return math.nan
        again = replicates(lambda places: value_of([inputs[place] for place in places]), clusters)
        return bootstrapped(value_of(inputs), again, n=len(inputs), clusters=len(set(clusters))).error

    def inputs(self, records: Sequence[Record]) -> tuple[list[Any], list[Hashable]]:
        """Returns what it is worked out from, and the cluster of each."""
        used = [record for record in self.concerned(records) if not self.is_main or "score" in record]
        if self.is_main:
            return used, list(map(cluster_of, used))
        return [record["inputs"][self.metric.name] for record in used], list(map(cluster_of, used))

    def finish(self, records: Sequence[Record], task: str, run: Run) -> None:
        """Does what is left to do once a harness has its results, such as writing a file."""
        assert isinstance(self.metric, ComputedScore)
        if self.metric.finish is not None:
            self.metric.finish(self.inputs(records)[0], task, run)


def statistics_of(metrics: Iterable[Metric], main: str, records: Sequence[Record]) -> list[Statistic]:
    """Returns the numbers that the row of a task with these metrics can have, in the order of the row."""
    found: list[Statistic] = []
    for metric in metrics:
        is_main, better = metric.name == main, None if metric.scale.better is None else metric.scale.better == "higher"
        if isinstance(metric, ComputedScore):
            for part in (None, *parts_of(metric)):
                name = part.metric if part else metric.name
                found.append(Computed(name, better, metric, is_main, part, is_score=metric.is_score))
            continue
        is_lexical = isinstance(metric, JudgedScore) and any(
            (record.get("judge") or {}).get("backend") == "lexical" for record in records
        )
        name = f"{metric.name}{LEXICAL}" if is_lexical else metric.name
        found.append(Mean(name, better, metric, is_main))
        found += [Mean(f"{name}_{part.group}", better, metric, is_main, part) for part in parts_of(metric)]
        if isinstance(metric, JudgedScore):
            found += [
                SpreadOverRuns(f"{name}_run_sd", False, metric, is_main, is_score=False),
                Coverage(f"{metric.name}_coverage", True, metric, is_main, is_score=False),
                Unscored(f"{metric.name}_unscored", False, metric, is_main, is_score=False),
            ]
    return found


def by_group(records: Iterable[Record], field_name: str) -> dict[str | None, list[Record]]:
    """Returns records by their group of a field."""
    groups: dict[str | None, list[Record]] = {}
    for record in records:
        groups.setdefault(record["groups"].get(field_name), []).append(record)
    return groups


def cluster_of(record: Record) -> Hashable:
    """Returns the benchmark and the cluster of a record."""
    return record["benchmark"], record["cluster"]


def _counts(records: Iterable[Record]) -> tuple[int, int]:
    """Returns how many verdicts of records were scored, and how many were asked for."""
    outcomes = [record["outcomes"] for record in records]
    return sum(counts.get("scored", 0) for counts in outcomes), sum(sum(counts.values()) for counts in outcomes)


def unjudged(records: Iterable[Record]) -> int:
    """How many responses were recorded for a judge and not graded, as with ``CULTURE_JUDGE=none``."""
    return sum(int(record["outcomes"].get("unjudged", 0)) for record in records)


Row = dict[str, Any]


@dataclass(frozen=True)
class TaskRecords:
    """A task's records by one filter, and the numbers that they can have; of a subset, the number of all documents."""

    statistics: Sequence[Statistic]
    records: Sequence[Record]
    size: int | None = None
    _by_field: dict[str, dict[str | None, list[Record]]] = field(default_factory=dict)

    def of(self, statistic: Statistic) -> Sequence[Record]:
        """Returns the records that a number is about: a question about Brazil says nothing about India."""
        if (part := statistic.part) is None:
            return self.records
        if part.field not in self._by_field:
            self._by_field[part.field] = by_group(self.records, part.field)
        return self._by_field[part.field].get(part.group, [])

    def named(self, name: str) -> Statistic | None:
        """Returns the number of that name; None where the task can't have it."""
        return next((statistic for statistic in self.statistics if statistic.name == name), None)


def write_row(row: Row, task: TaskRecords, filter_name: str) -> list[Statistic]:
    """Writes the numbers that concern any of a task's records into its row, and returns them."""
    written = []
    for statistic in task.statistics:
        records = task.of(statistic)
        if any(True for _ in statistic.concerned(records)):
            _write(row, statistic.name, filter_name, statistic.measured(records))
            written.append(statistic)
    return written


def write_group_row(
    row: Row, tasks: Sequence[TaskRecords], weight_by_size: Mapping[str, bool], filter_name: str
) -> None:
    """Corrects the numbers of a group's row, over tasks of ours alone.

    ``weight_by_size`` says of the names of numbers in the row whether the items weigh the same, rather than the tasks.
    """
    sizes = [len(task.records) if task.size is None else task.size for task in tasks]
    has_subset = any(task.size is not None for task in tasks)
    for name, by_size in weight_by_size.items():
        statistics = [statistic for task in tasks if (statistic := task.named(name))]
        if not tasks or len(statistics) < len(tasks) or len({type(statistic) for statistic in statistics}) > 1:
            continue
        records = [task.of(statistic) for task, statistic in zip(tasks, statistics, strict=True)]
        if any(True for _ in statistics[0].concerned(chain.from_iterable(records))):
            measured = statistics[0].group_value(records, by_size=by_size, sizes=sizes if has_subset else None)
            _write(row, name, filter_name, measured)
        else:
            for ending in ("", "_stderr"):
                row.pop(f"{name}{ending},{filter_name}", None)


def _write(row: Row, name: str, filter_name: str, measured: Measured) -> None:
    row[f"{name},{filter_name}"], row[f"{name}_stderr,{filter_name}"] = measured
