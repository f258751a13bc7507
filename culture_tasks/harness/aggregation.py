"""From the records of one metric to its value and standard error.

The record of a judged metric is a dictionary with ``outcomes`` (how many of its verdicts ended how) and, if any was
scored, ``score``. For any other metric it is the value that the benchmark gave, or the document's whole record for a
task's main metric. It is None where the metric does not concern the document: a question about Brazil says nothing
about India. Every function takes the records of one metric, in any order, and is registered with both harnesses.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from culture_tasks.benchmarks.interface import ComputedScore, JudgedScore, MeanScore, Metric, Run
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.harness.records import PartRecord
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

_log = logging.getLogger(__name__)


class Aggregation:
    """From the records of one metric to its value and standard error; a harness calls it, and logs its name.

    Attributes:
        groups: Groups of documents of which it is worked out, too, by field.
        is_score: Whether the mean of several tasks' values means something. Counts and shares of verdicts have none: of
            a group they are taken over all records.
    """

    __slots__ = ("_finish", "_stderr", "_value", "groups", "is_score", "name")

    def __init__(
        self,
        name: str,
        value: Callable[[Sequence[Any]], float],
        stderr: Callable[[Sequence[Any]], float] | None = None,
        *,
        is_score: bool = True,
        finish: Callable[[Sequence[Any], str, Run], None] | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.name = name
        self.groups = groups or {}
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
        return "N/A" if self._stderr is None else _number(self._stderr(records))

    def by_group(self, records: Sequence[Any]) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yields the records of each group that has some, with the name of its number."""
        for field, names in self.groups.items():
            groups = _by_group(records, field)
            yield from ((f"{self.name}_{name}", groups[name]) for name in names if name in groups)

    def finish(self, records: Sequence[Any], task: str, run: Run) -> None:
        """Does what is left to do with a task's records, such as writing a file, once a harness has its results."""
        if self._finish is not None:
            self._finish(records, task, run)

    def group_value(
        self, tasks: Sequence[Sequence[Any]], *, weight_by_size: bool, sizes: Sequence[int] | None = None
    ) -> tuple[float, Number]:
        """Returns the value and standard error of a group of tasks, of each of which the records are given.

        With ``weight_by_size`` every record weighs the same: the value is that of all records together. Else every task
        does, and the standard error is that of a mean of independent means, sqrt(Σ se²) / k over k tasks. Where the
        records are of subsets, ``sizes`` has the number of each task's documents, which then weigh the same.
        """
        if not self.is_score or (weight_by_size and sizes is None):
            together = list(chain.from_iterable(tasks))
            return self(together), self.stderr(together)
        shares = sizes if weight_by_size and sizes is not None else [1] * len(tasks)
        value = sum(share * self(records) for share, records in zip(shares, tasks, strict=True)) / sum(shares)
        errors = [(share, self.stderr(records)) for share, records in zip(shares, tasks, strict=True)]
        terms = [share * error for share, error in errors if error != "N/A"]
        return value, math.hypot(*terms) / sum(shares) if len(terms) == len(tasks) else "N/A"


def _number(value: float) -> Number:
    return "N/A" if math.isnan(value) else value


def _concerned_records(records: Iterable[Record | None]) -> Iterator[Record]:
    """Yields the records of the documents that the metric concerns, in place of views of them."""
    return (record.record if isinstance(record, PartRecord) else record for record in records if record is not None)


def _counts(records: Iterable[Record | None]) -> tuple[int, int]:
    """Returns how many verdicts of a metric's records were scored, and how many were asked for."""
    outcomes = [record["outcomes"] for record in _concerned_records(records)]
    return sum(counts.get("scored", 0) for counts in outcomes), sum(sum(counts.values()) for counts in outcomes)


def unjudged(records: Iterable[Record | None]) -> int:
    """How many responses were recorded for a judge and not graded, as with ``CULTURE_JUDGE=none``."""
    return sum(int(record["outcomes"].get("unjudged", 0)) for record in _concerned_records(records))


def coverage(records: Iterable[Record | None]) -> float:
    """Share of verdicts that were scored, of all that were asked for.

    Range 0-1; 1 is best. Without any verdict asked for, NaN.
    """
    scored, requests = _counts(records)
    return scored / requests if requests else math.nan


def coverage_stderr(records: Sequence[Record | None]) -> float:
    """Standard error of :func:`coverage`: the square root of p (1 - p) / n over n verdicts; NaN without any.

    Where documents share clusters, it is that of a mean with clusters.
    """
    scored, requests = _counts(records)
    clusters = [cluster_of(record) for record in records if record is not None]
    if not requests or len(set(clusters)) == len(clusters):
        return math.sqrt(scored / requests * (1.0 - scored / requests) / requests) if requests else math.nan
    counts = np.array([_counts([record]) for record in records if record is not None], dtype=np.float64)
    return mean_and_error(ratio_contributions(counts[:, 0], counts[:, 1]), clusters).error


def unscored(records: Iterable[Record | None]) -> int:
    """How many verdicts were asked for and not scored: unparsable, refused, failed, or left to a later judge."""
    scored, requests = _counts(records)
    return requests - scored


def spread_over_runs(records: Iterable[Record | None]) -> float:
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """
    runs = [record["run_scores"] for record in _concerned_records(records) if "run_scores" in record]
    if not runs:
        return math.nan
    table = np.array(runs, dtype=np.float64)
    table = table[:, ~np.all(np.isnan(table), axis=0)]
    return float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan


class MeanOfScores(Aggregation):
    """The mean of the scores of documents, or of clusters of documents.

    Documents that the metric doesn't concern, or that have no score and need no verdict, are left out. So is a verdict
    that failed: it is never counted as a zero, and a cluster with one has no score. With a coverage under
    ``CULTURE_JUDGE_MIN_COVERAGE``, or without any score, the mean is NaN: the missing documents may be the hard ones.
    """

    __slots__ = ("_is_judged", "_per_cluster")

    def __init__(
        self, per_cluster: Callable[[Sequence[float]], float] | None = None, *, is_judged: bool = False
    ) -> None:
        """Takes the function that makes one score of a cluster's, None without clusters, and whether a judge grades."""
        scope = "" if per_cluster is None else f", {getattr(per_cluster, '__name__', 'one score')} of each cluster"
        name = f"mean{' of the scored' if is_judged else ''}{scope}"
        super().__init__(
            name,
            lambda records: self._mean_of(self._scores(records)[0], records),
            lambda records: self._error_of(*self._scores(records), records),
        )
        self._per_cluster = per_cluster
        self._is_judged = is_judged

    def group_value(
        self, tasks: Sequence[Sequence[Any]], *, weight_by_size: bool, sizes: Sequence[int] | None = None
    ) -> tuple[float, Number]:
        """Returns the value and standard error of a group of tasks, where a cluster may have documents of several.

        Clusters of one benchmark with equal names are one. Where tasks share none, the standard error is that of
        :meth:`Aggregation.group_value`.
        """
        together = list(chain.from_iterable(tasks))
        parts = [self._scores(records) for records in tasks]
        scores = np.concatenate([scores for scores, _ in parts])
        clusters = [cluster for _, of_part in parts for cluster in of_part]
        is_plain = weight_by_size and sizes is None
        if is_plain:
            value, error = self._mean_of(scores, together), _number(self._error_of(scores, clusters, together))
        else:
            value, error = super().group_value(tasks, weight_by_size=weight_by_size, sizes=sizes)
        shares_clusters = len(set(clusters)) < sum(len(set(of_part)) for _, of_part in parts)
        if not is_plain and shares_clusters and not math.isnan(value):
            strata = np.repeat(np.arange(len(parts)), [part.size for part, _ in parts])
            shares = np.array(sizes, dtype=np.float64) if weight_by_size and sizes is not None else None
            influence = contributions(scores, strata, shares)
            error = _number(mean_and_error(influence, clusters).error)
        return value, error

    def _mean_of(self, scores: Floats, records: Sequence[Any]) -> float:
        if not self._is_covered(records):
            session = current_session()
            scored, requests = _counts(records)
            # Once for each evaluation, since many metrics are over the same verdicts; without a judge, its end says so.
            if requests > unjudged(records) and not session.has_explained_nan:
                session.has_explained_nan = True
                _log.warning(
                    "judged scores are NaN: of the first, %d of %d verdicts were scored; CULTURE_JUDGE_MIN_COVERAGE "
                    "asks for %g. Run again, which asks only for what is missing, or grade the logged samples with "
                    "`culture-tasks rejudge`.",
                    *(scored, requests, session.settings.judge_min_coverage),
                )
            return math.nan
        return float(scores.mean()) if scores.size else math.nan

    def _error_of(self, scores: Floats, clusters: Sequence[Hashable], records: Sequence[Any]) -> float:
        """The cluster-robust standard error; NaN where the mean is, and for scores of a single cluster."""
        return mean_and_error(scores, clusters).error if self._is_covered(records) else math.nan

    def _is_covered(self, records: Sequence[Any]) -> bool:
        """Whether some verdict is scored, and the share that the user asks for; true where no verdict is needed."""
        scored, requests = _counts(records) if self._is_judged else (0, 0)
        least = current_session().settings.judge_min_coverage if requests else 0.0
        return not requests or (scored > 0 and scored / requests >= least)

    def _scores(self, records: Sequence[Any]) -> tuple[Floats, list[Hashable]]:
        """Returns the scores that the mean is of, with the cluster of each."""
        scores: list[float] = []
        clusters: list[Hashable] = []
        for record in _concerned_records(records):
            score = record.get("score") if isinstance(record, Mapping) else record
            is_missing = self._is_judged or (isinstance(record, Mapping) and "failed" in record.get("outcomes", ()))
            if score is not None or (is_missing and self._per_cluster is not None):
                scores.append(math.nan if score is None else score)
                clusters.append(cluster_of(record))
        values = np.array(scores, dtype=np.float64)
        if self._per_cluster is not None:
            numbers = cluster_numbers(clusters, np.ones(values.size, dtype=np.bool_))
            values = cluster_scores(values, numbers, self._per_cluster)
            clusters = list(dict.fromkeys(clusters))
        mask = ~np.isnan(values)
        return values[mask], [cluster for cluster, is_scored in zip(clusters, mask, strict=True) if is_scored]


def cluster_of(record: Any) -> Hashable:
    """Returns the benchmark and the cluster of a record or value; one without is a cluster by itself."""
    if isinstance(record, Mapping) and record.get("cluster") is not None:
        return record.get("benchmark"), record["cluster"]
    return getattr(record, "cluster", None) or object()


def aggregation_of(metric: Metric, *, is_main: bool) -> Aggregation:
    """Returns the aggregation of a metric; the records of a task's main one are whole."""
    if isinstance(metric, MeanScore):
        mean = MeanOfScores(metric.per_cluster, is_judged=isinstance(metric, JudgedScore))
        return _of_equal_groups(mean, metric.equal_groups) if metric.equal_groups else mean
    assert isinstance(metric, ComputedScore)

    def values_of(records: Sequence[Any]) -> list[Any]:
        return [record for record in records if record is not None and (not is_main or "score" in record)]

    def stderr(records: Sequence[Any]) -> float:
        values = values_of(records)
        clusters = [cluster_of(record) for record in values]
        if metric.stderr is not None:
            return metric.stderr(values, clusters)
        again = replicates(lambda places: metric.value([values[place] for place in places]), clusters)
        return bootstrapped(metric.value(values), again, n=len(values), clusters=len(set(clusters))).error

    def finish(records: Sequence[Any], task: str, run: Run) -> None:
        if metric.finish is not None:
            metric.finish(values_of(records), task, run)

    return Aggregation(
        metric.name,
        lambda records: metric.value(values_of(records)),
        stderr if is_main or metric.stderr is not None else None,
        is_score=metric.is_score,
        finish=finish,
        groups=metric.groups,
    )


def _by_group(records: Sequence[Any], field: str) -> dict[str | None, list[Any]]:
    groups: dict[str | None, list[Any]] = {}
    for record in _concerned_records(records):
        of_record = record["groups"] if isinstance(record, Mapping) else record.groups
        groups.setdefault(of_record.get(field), []).append(record)
    return groups


def _of_equal_groups(mean: MeanOfScores, field: str) -> Aggregation:
    """Returns the mean of the means of a field's groups."""

    def of_groups(records: Sequence[Any]) -> tuple[float, Number]:
        groups = _by_group(records, field)
        return mean.group_value(list(groups.values()), weight_by_size=False) if groups else (math.nan, "N/A")

    def stderr(records: Sequence[Any]) -> float:
        error = of_groups(records)[1]
        return math.nan if error == "N/A" else error

    return Aggregation(f"{mean.name}, each {field} alike", lambda records: of_groups(records)[0], stderr)


MEAN_OF_SCORED = MeanOfScores(is_judged=True)
COVERAGE = Aggregation("share of verdicts that were scored", coverage, coverage_stderr, is_score=False)
UNSCORED = Aggregation("number of verdicts that were not scored", unscored, is_score=False)
SPREAD_OVER_RUNS = Aggregation("deviation of the mean over runs", spread_over_runs, is_score=False)
