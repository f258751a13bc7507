"""From the records of a task to the numbers of its row, and from the records of several to a group's.

A judged metric ``x`` comes with ``x_coverage``, ``x_unscored`` and, over repeats, ``x_run_sd``. With the lexical judge
its name is ``x_lexical``, so that text overlap never passes for a judge's score. A metric has a number for each group
of the data that it names, ``x_<group>``. A row has the numbers that concern any of its records.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import ComputedScore, JudgedScore, MeanScore, Metric
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


class Measured(NamedTuple):
    """A value with its standard error; NaN where there is none."""

    value: float
    error: float = math.nan


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number of a row, of the task's main metric or another."""

    name: str
    better: bool | None  # whether higher is better; None where a value in between is neutral
    metric: Any
    is_main: bool
    measure: Callable[[Statistic, Sequence[Record]], Measured]
    part: Part | None = None  # the part of the data whose records alone it is given
    is_score: bool = True  # counts and shares of verdicts are none: of a group they are taken over all records

    def concerns(self, record: Record) -> bool:
        """Whether the number is worked out from a record."""
        if self.measure is run_deviation:
            return "run_scores" in record
        if self.is_main:
            is_graded = record.get("record") is not None
            return is_graded and (self.part is None or "judge" in record or record.get("score") is not None)
        values = record.get("inputs" if isinstance(self.metric, ComputedScore) else "values")
        return values is not None and values.get(self.metric.name) is not None

    def measured(self, records: Iterable[Record]) -> Measured:
        """Returns the value and its standard error."""
        return self.measure(self, list(filter(self.concerns, records)))

    def of_group(self, tasks: Sequence[Sequence[Record]], *, by_size: bool, sizes: Sequence[int] | None) -> Measured:
        """Returns the value and standard error of a group of tasks, of each of which the records are given.

        With ``by_size`` every record weighs the same: the value is that of all records together. Else every task does,
        and the standard error is that of a mean of independent means, sqrt(Σ se²) / k over k tasks; where clusters
        have documents of several tasks, it is the cluster-robust one. Where the records are of subsets, ``sizes`` has
        the number of each task's documents, which then weigh the same.
        """
        if not self.is_score or (by_size and sizes is None):
            return self.measured(chain.from_iterable(tasks))
        shares = sizes if by_size and sizes is not None else [1] * len(tasks)
        parts = [self.measured(records) for records in tasks]
        value = sum(share * part.value for share, part in zip(shares, parts, strict=True)) / sum(shares)
        if self.measure is mean and not math.isnan(value):
            columns = [_scores(self, list(filter(self.concerns, records))) for records in tasks]
            clusters = [cluster for _, of_task in columns for cluster in of_task]
            if len(set(clusters)) < sum(len(set(of_task)) for _, of_task in columns):
                strata = np.repeat(np.arange(len(columns)), [scores.size for scores, _ in columns])
                weights = np.array(shares, dtype=np.float64) if by_size else None
                influence = contributions(np.concatenate([scores for scores, _ in columns]), strata, weights)
                return Measured(value, mean_and_error(influence, clusters).error)
        errors = [share * part.error for share, part in zip(shares, parts, strict=True)]
        return Measured(value, math.hypot(*errors) / sum(shares))


def coverage(_: Statistic, records: Sequence[Record]) -> Measured:
    """Share of verdicts that were scored, of all that were asked for: 0 to 1, NaN without any.

    The standard error is sqrt(p (1 - p) / n) over n verdicts; where documents share clusters, that of a mean with
    clusters.
    """
    (scored, requests), clusters = _counts(records), list(map(cluster_of, records))
    if not requests:
        return Measured(math.nan)
    share = scored / requests
    if len(set(clusters)) == len(clusters):
        return Measured(share, math.sqrt(share * (1.0 - share) / requests))
    counts = np.array([_counts([record]) for record in records], dtype=np.float64)
    return Measured(share, mean_and_error(ratio_contributions(counts[:, 0], counts[:, 1]), clusters).error)


def unscored(_: Statistic, records: Sequence[Record]) -> Measured:
    """How many verdicts were asked for and not scored: unparsable, refused, failed, or left to a later judge."""
    scored, requests = _counts(records)
    return Measured(requests - scored)


def run_deviation(_: Statistic, records: Sequence[Record]) -> Measured:
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """
    table = np.array([record["run_scores"] for record in records], dtype=np.float64)
    if table.ndim < 2:
        return Measured(math.nan)
    table = table[:, ~np.all(np.isnan(table), axis=0)]
    return Measured(float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan)


def mean(statistic: Statistic, records: Sequence[Record]) -> Measured:
    """The mean of the scores of documents, or of clusters of documents, with its cluster-robust standard error.

    A document without a score that needs no verdict is left out. So is a verdict that failed: it is never counted as a
    zero, and a cluster with one has no score. With a coverage under ``CULTURE_JUDGE_MIN_COVERAGE``, or without any
    score, the mean is NaN: the missing documents may be the hard ones. Where groups weigh the same, it is the mean of
    their means.
    """
    field_name = statistic.metric.equal_groups
    if field_name and statistic.part is None:
        groups = list(_by_group(records, field_name).values())
        of_part = replace(statistic, part=Part(field_name, "", statistic.name))
        return of_part.of_group(groups, by_size=False, sizes=None) if groups else Measured(math.nan)
    if isinstance(statistic.metric, JudgedScore) and not _is_covered(records):
        return Measured(math.nan)
    scores, clusters = _scores(statistic, records)
    if not scores.size:
        return Measured(math.nan)
    return Measured(float(scores.mean()), mean_and_error(scores, clusters).error)


def _is_covered(records: Sequence[Record]) -> bool:
    """Whether some verdict is scored, and the share that the user asks for; true where no verdict is needed."""
    scored, requests = _counts(records)
    session = current_session()
    least = session.settings.judge_min_coverage
    is_covered = not requests or (scored > 0 and scored / requests >= least)
    # Once for each evaluation, since many numbers are over the same verdicts; without a judge, its end says so.
    if not is_covered and not session.has_explained_nan and requests > unjudged(records):
        session.has_explained_nan = True
        _log.warning(
            "judged scores are NaN: of the first, %d of %d verdicts were scored; CULTURE_JUDGE_MIN_COVERAGE "
            "asks for %g. Run again, which asks only for what is missing, or grade the logged samples with "
            "`culture-tasks rejudge`.",
            *(scored, requests, least),
        )
    return is_covered


def _scores(statistic: Statistic, records: Iterable[Record]) -> tuple[Floats, list[Hashable]]:
    """Returns the scores that a mean is of, with the cluster of each."""
    metric: MeanScore = statistic.metric
    scores: list[float] = []
    clusters: list[Hashable] = []
    for record in records:
        score = record.get("score") if statistic.is_main else record["values"][metric.name]
        if score is not None:
            scores.append(score)
            clusters.append(cluster_of(record))
        elif metric.per_cluster is not None and (
            isinstance(metric, JudgedScore) or (statistic.is_main and "failed" in record["outcomes"])
        ):
            scores.append(math.nan)
            clusters.append(cluster_of(record))
    values = np.array(scores, dtype=np.float64)
    if metric.per_cluster is None:
        return values, clusters
    numbers = cluster_numbers(clusters, np.ones(values.size, dtype=np.bool_))
    values = cluster_scores(values, numbers, metric.per_cluster)
    mask = ~np.isnan(values)
    return values[mask], list(compress(dict.fromkeys(clusters), mask))


def computed(statistic: Statistic, records: Sequence[Record]) -> Measured:
    """A number that the benchmark works out: from the records that have a score, or from the documents' inputs.

    Its standard error is the metric's own; for a main metric without one, that of a bootstrap over clusters.
    """
    metric: ComputedScore = statistic.metric
    inputs, clusters = computed_from(statistic, records)
    value = metric.value(inputs)
    if not inputs:
        return Measured(value)
    if metric.stderr is not None:
        return Measured(value, metric.stderr(inputs, clusters))
    if not statistic.is_main:
        return Measured(value)
    resampled = replicates(lambda indices: metric.value([inputs[index] for index in indices]), clusters)
    return Measured(value, bootstrapped(value, resampled, n=len(inputs), clusters=len(set(clusters))).error)


def computed_from(statistic: Statistic, records: Iterable[Record]) -> tuple[list[Any], list[Hashable]]:
    """Returns what a computed number is worked out from, and the cluster of each."""
    name, is_main = statistic.metric.name, statistic.is_main
    used = [record for record in records if statistic.concerns(record) and (not is_main or "score" in record)]
    return [record if is_main else record["inputs"][name] for record in used], list(map(cluster_of, used))


def statistics_of(metrics: Iterable[Metric], main: str, records: Sequence[Record]) -> list[Statistic]:
    """Returns the numbers that the row of a task with these metrics can have, in the order of the row."""
    found: list[Statistic] = []
    is_lexical = any((record.get("judge") or {}).get("backend") == "lexical" for record in records)
    for metric in metrics:
        is_main, better = metric.name == main, None if metric.scale.better is None else metric.scale.better == "higher"
        is_judged = isinstance(metric, JudgedScore)
        name = f"{metric.name}{LEXICAL}" if is_judged and is_lexical else metric.name
        measure = computed if isinstance(metric, ComputedScore) else mean
        is_score = not isinstance(metric, ComputedScore) or metric.is_score
        parts = [(name, None), *((f"{name}_{part.group}", part) for part in parts_of(metric))]
        found += [Statistic(text, better, metric, is_main, measure, part, is_score) for text, part in parts]
        if is_judged:
            found += [
                Statistic(f"{name}_run_sd", False, metric, is_main, run_deviation, is_score=False),
                Statistic(f"{metric.name}_coverage", True, metric, is_main, coverage, is_score=False),
                Statistic(f"{metric.name}_unscored", False, metric, is_main, unscored, is_score=False),
            ]
    return found


def _by_group(records: Iterable[Record], field_name: str) -> dict[str | None, list[Record]]:
    groups: dict[str | None, list[Record]] = {}
    for record in records:
        groups.setdefault(record["groups"].get(field_name), []).append(record)
    return groups


def cluster_of(record: Record) -> Hashable:
    """Returns the benchmark and the cluster of a record."""
    return record["benchmark"], record["cluster"]


def _counts(records: Iterable[Record]) -> tuple[int, int]:
    """Returns how many verdicts of records were scored, and how many were asked for."""
    scored = requests = 0
    for record in records:
        outcomes = record["outcomes"]
        scored += outcomes.get("scored", 0)
        for count in outcomes.values():
            requests += count
    return scored, requests


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
            self._by_field[part.field] = _by_group(self.records, part.field)
        return self._by_field[part.field].get(part.group, [])

    def named(self, name: str) -> Statistic | None:
        """Returns the number of that name; None where the task can't have it."""
        return next((statistic for statistic in self.statistics if statistic.name == name), None)


def write_row(row: Row, task: TaskRecords, filter_name: str) -> list[Statistic]:
    """Writes the numbers that concern any of a task's records into its row, and returns them."""
    written = []
    for statistic in task.statistics:
        records = task.of(statistic)
        if any(map(statistic.concerns, records)):
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
        if not tasks or len(statistics) < len(tasks) or len({statistic.measure for statistic in statistics}) > 1:
            continue
        records = [task.of(statistic) for task, statistic in zip(tasks, statistics, strict=True)]
        if any(map(statistics[0].concerns, chain.from_iterable(records))):
            measured = statistics[0].of_group(records, by_size=by_size, sizes=sizes if has_subset else None)
            _write(row, name, filter_name, measured)
        else:
            for ending in ("", "_stderr"):
                row.pop(f"{name}{ending},{filter_name}", None)


def _write(row: Row, name: str, filter_name: str, measured: Measured) -> None:
    row[f"{name},{filter_name}"] = measured.value
    row[f"{name}_stderr,{filter_name}"] = "N/A" if math.isnan(measured.error) else measured.error
