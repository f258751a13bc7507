"""From the records of a task to the numbers of its row, and from the records of several to a group's.

A judged metric ``x`` comes with ``x_coverage``, ``x_unscored`` and, over repeats, ``x_run_sd``. With the lexical judge
its name is ``x_lexical``, so that text overlap never passes for a judge's score. A metric has a number for each group
of the data that it names, ``x_<group>``. A row has the numbers that concern any of its records.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from typing import Any, NamedTuple, Self

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
Row = dict[str, Any]

LEXICAL = "_lexical"

FILTER = "none"
"""The filter of our tasks, as the keys of a row name it."""

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
    """A number of a row, of the task's main metric or another, with the records that it is worked out from."""

    name: str
    better: bool | None  # whether higher is better; None where a value in between is neutral
    metric: Any
    is_main: bool
    measure: Callable[[Statistic], Measured]
    records: Sequence[Record]
    is_part: bool = False  # of a part of the data
    is_score: bool = True  # counts and shares of verdicts are none: of a group they are taken over all records

    def measured(self) -> Measured:
        """Returns the value and its standard error."""
        return self.measure(self)

    def inputs(self) -> tuple[list[Any], list[Hashable]]:
        """Returns what a computed number is worked out from, and the cluster of each: scored records, or inputs."""
        used = [record for record in self.records if not self.is_main or "score" in record]
        inputs = used if self.is_main else [record["inputs"][self.metric.name] for record in used]
        return list(inputs), list(map(cluster_of, used))


@dataclass(frozen=True)
class TaskRecords:
    """A task's records, and the numbers that its row can have, by name and in their order."""

    records: Sequence[Record]
    numbers: Mapping[str, Statistic]
    size: int | None = None  # the number of all documents, where these are a subset

    @classmethod
    def of(cls, metrics: Iterable[Metric], main: str, records: Sequence[Record], size: int | None = None) -> Self:
        """Returns the numbers that a task with these metrics can have."""
        is_lexical = any((record.get("judge") or {}).get("backend") == "lexical" for record in records)
        numbers = chain.from_iterable(_numbers(metric, main, records, is_lexical=is_lexical) for metric in metrics)
        return cls(records, {number.name: number for number in numbers}, size)


def _numbers(metric: Metric, main: str, records: Sequence[Record], *, is_lexical: bool) -> list[Statistic]:
    """Returns a metric's numbers, those of parts and verdicts included."""
    is_judged, is_computed = isinstance(metric, JudgedScore), isinstance(metric, ComputedScore)
    name = f"{metric.name}{LEXICAL}" if is_judged and is_lexical else metric.name
    if is_main := metric.name == main:
        graded = [record for record in records if record.get("record") is not None]
        usable = [record for record in graded if "judge" in record or record.get("score") is not None]
    else:
        kind = "inputs" if is_computed else "values"
        graded = usable = [record for record in records if (record.get(kind) or {}).get(metric.name) is not None]
    score = Statistic(
        name,
        better=None if metric.scale.better is None else metric.scale.better == "higher",
        metric=metric,
        is_main=is_main,
        measure=computed if is_computed else mean,
        records=graded,
        is_score=metric.is_score if isinstance(metric, ComputedScore) else True,
    )
    by_field = {field: _by_group(usable, field) for field in metric.groups}
    numbers = [score]
    for field, group, _ in parts_of(metric):
        of_group = by_field[field].get(group, [])
        numbers.append(replace(score, name=f"{name}_{group}", records=of_group, is_part=True))
    if is_judged:
        repeated = [record for record in records if "run_scores" in record]
        count = replace(score, better=False, is_score=False)
        numbers += [
            replace(count, name=f"{name}_run_sd", measure=run_deviation, records=repeated),
            replace(count, name=f"{metric.name}_coverage", measure=coverage, better=True),
            replace(count, name=f"{metric.name}_unscored", measure=unscored),
        ]
    return numbers


def _by_group(records: Iterable[Record], field: str) -> dict[str | None, list[Record]]:
    groups: dict[str | None, list[Record]] = {}
    for record in records:
        groups.setdefault(record["groups"].get(field), []).append(record)
    return groups


def measured_together(tasks: Sequence[Statistic], *, by_size: bool, sizes: Sequence[int] | None = None) -> Measured:
    """Returns the value and standard error of a group, of each of whose tasks the same number is given.

    With ``by_size`` every record weighs the same: the value is that of all records together. Else every task does,
    and the standard error is that of a mean of independent means, sqrt(Σ se²) / k over k tasks; where clusters
    have documents of several tasks, it is the cluster-robust one. Where the records are of subsets, ``sizes`` has
    the number of each task's documents, which then weigh the same.
    """
    if not tasks[0].is_score or (by_size and sizes is None):
        return replace(tasks[0], records=[record for task in tasks for record in task.records]).measured()
    shares = sizes if by_size and sizes is not None else [1] * len(tasks)
    parts = [task.measured() for task in tasks]
    value = sum(share * part.value for share, part in zip(shares, parts, strict=True)) / sum(shares)
    if tasks[0].measure is mean and not math.isnan(value):
        columns = [_scores(task) for task in tasks]
        clusters = [cluster for _, of_task in columns for cluster in of_task]
        if len(set(clusters)) < sum(len(set(of_task)) for _, of_task in columns):
            strata = np.repeat(np.arange(len(columns)), [scores.size for scores, _ in columns])
            weights = np.array(shares, dtype=np.float64) if by_size else None
            influence = contributions(np.concatenate([scores for scores, _ in columns]), strata, weights)
            return Measured(value, mean_and_error(influence, clusters).error)
    errors = [share * part.error for share, part in zip(shares, parts, strict=True)]
    return Measured(value, math.hypot(*errors) / sum(shares))


# How numbers are measured


def coverage(statistic: Statistic) -> Measured:
    """Share of verdicts that were scored, of all that were asked for: 0 to 1, NaN without any.

    The standard error is sqrt(p (1 - p) / n) over n verdicts; where documents share clusters, that of a mean with
    clusters.
    """
    counts, clusters = _counts(statistic.records), list(map(cluster_of, statistic.records))
    scored, requests = counts.sum(axis=0).tolist()
    if not requests:
        return Measured(math.nan)
    share = scored / requests
    if len(set(clusters)) == len(clusters):
        return Measured(share, math.sqrt(share * (1.0 - share) / requests))
    return Measured(share, mean_and_error(ratio_contributions(counts[:, 0], counts[:, 1]), clusters).error)


def unscored(statistic: Statistic) -> Measured:
    """How many verdicts were asked for and not scored: unparsable, refused, failed, or left to a later judge."""
    scored, requests = _counts(statistic.records).sum(axis=0).tolist()
    return Measured(int(requests - scored))


def run_deviation(statistic: Statistic) -> Measured:
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """
    table = np.array([record["run_scores"] for record in statistic.records], dtype=np.float64)
    if table.ndim < 2:
        return Measured(math.nan)
    table = table[:, ~np.all(np.isnan(table), axis=0)]
    return Measured(float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan)


def mean(statistic: Statistic) -> Measured:
    """The mean of the scores of documents, or of clusters of documents, with its cluster-robust standard error.

    A document without a score that needs no verdict is left out. So is a verdict that failed: it is never counted as a
    zero, and a cluster with one has no score. With a coverage under ``CULTURE_JUDGE_MIN_COVERAGE``, or without any
    score, the mean is NaN: the missing documents may be the hard ones. Where groups weigh the same, it is the mean of
    their means.
    """
    if statistic.metric.equal_groups and not statistic.is_part:
        groups = _by_group(statistic.records, statistic.metric.equal_groups).values()
        parts = [replace(statistic, records=records, is_part=True) for records in groups]
        return measured_together(parts, by_size=False) if parts else Measured(math.nan)
    if isinstance(statistic.metric, JudgedScore) and not _is_covered(statistic.records):
        return Measured(math.nan)
    scores, clusters = _scores(statistic)
    if not scores.size:
        return Measured(math.nan)
    return Measured(float(scores.mean()), mean_and_error(scores, clusters).error)


def _is_covered(records: Sequence[Record]) -> bool:
    """Whether some verdict is scored, and the share that the user asks for; true where no verdict is needed."""
    scored, requests = map(int, _counts(records).sum(axis=0))
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


def _scores(statistic: Statistic) -> tuple[Floats, list[Hashable]]:
    """Returns the scores that a mean is of, with the cluster of each."""
    metric: MeanScore = statistic.metric
    scores: list[float] = []
    clusters: list[Hashable] = []
    for record in statistic.records:
        score = record.get("score") if statistic.is_main else record["values"][metric.name]
        failed = isinstance(metric, JudgedScore) or (statistic.is_main and "failed" in record["outcomes"])
        if score is not None or (failed and metric.per_cluster is not None):
            scores.append(math.nan if score is None else score)
            clusters.append(cluster_of(record))
    values = np.array(scores, dtype=np.float64)
    if metric.per_cluster is None:
        return values, clusters
    numbers = cluster_numbers(clusters, np.ones(values.size, dtype=np.bool_))
    values = cluster_scores(values, numbers, metric.per_cluster)
    mask = ~np.isnan(values)
    return values[mask], list(compress(dict.fromkeys(clusters), mask))


def computed(statistic: Statistic) -> Measured:
    """A number that the benchmark works out: from the records that have a score, or from the documents' inputs.

    Its standard error is the metric's own; for a main metric without one, that of a bootstrap over clusters.
    """
    metric: ComputedScore = statistic.metric
    inputs, clusters = statistic.inputs()
    value = metric.value(inputs)
    if inputs and metric.stderr is not None:
        return Measured(value, metric.stderr(inputs, clusters))
    if not inputs or not statistic.is_main:
        return Measured(value)
    resampled = replicates(lambda indices: metric.value([inputs[index] for index in indices]), clusters)
    return Measured(value, bootstrapped(value, resampled, n=len(inputs), clusters=len(set(clusters))).error)


def cluster_of(record: Record) -> Hashable:
    """Returns the benchmark and the cluster of a record."""
    return record["benchmark"], record["cluster"]


def _counts(records: Sequence[Record]) -> Floats:
    """Returns how many verdicts of each record were scored, and how many were asked for."""
    scored = [record["outcomes"].get("scored", 0) for record in records]
    requests = [sum(record["outcomes"].values()) for record in records]
    return np.array([scored, requests], dtype=np.float64).T


def unjudged(records: Iterable[Record]) -> int:
    """How many responses were recorded for a judge and not graded, as with ``CULTURE_JUDGE=none``."""
    return sum(int(record["outcomes"].get("unjudged", 0)) for record in records)


# The rows of result files


def write_row(row: Row, task: TaskRecords) -> list[Statistic]:
    """Writes the numbers that concern any of a task's records into its row, and returns them."""
    written = [number for number in task.numbers.values() if number.records]
    for number in written:
        _write(row, number.name, number.measured())
    return written


def write_group_row(row: Row, tasks: Sequence[TaskRecords], weight_by_size: Mapping[str, bool]) -> None:
    """Corrects the numbers of a group's row, over tasks of ours alone.

    ``weight_by_size`` says of the names of numbers in the row whether the items weigh the same, rather than the tasks.
    """
    sizes = [len(task.records) if task.size is None else task.size for task in tasks]
    has_subset = any(task.size is not None for task in tasks)
    for name, by_size in weight_by_size.items():
        numbers = [number for task in tasks if (number := task.numbers.get(name))]
        if not tasks or len(numbers) < len(tasks) or len({number.measure for number in numbers}) > 1:
            continue
        if any(number.records for number in numbers):
            _write(row, name, measured_together(numbers, by_size=by_size, sizes=sizes if has_subset else None))
        else:
            for ending in ("", "_stderr"):
                row.pop(f"{name}{ending},{FILTER}", None)


def _write(row: Row, name: str, measured: Measured) -> None:
    row[f"{name},{FILTER}"] = measured.value
    row[f"{name}_stderr,{FILTER}"] = "N/A" if math.isnan(measured.error) else measured.error
