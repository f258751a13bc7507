"""The samples behind a number: items, scores, clusters and weights of one row in a unit, with their interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import ComputedScore, MeanScore, Metric, Scale
from culture_tasks.benchmarks.reporting import Codes, Floats, Texts, Where
from culture_tasks.metrics.comparison import Difference, paired_bootstrap
from culture_tasks.metrics.intervals import Interval, interval_of, mean_interval, share_interval
from culture_tasks.metrics.means import cluster_scores, contributions, mean_and_error, numbered
from culture_tasks.metrics.resampling import bootstrapped, replicates
from culture_tasks.report.numbers.draws import by_design, has_design
from culture_tasks.results.loading import Results
from culture_tasks.results.reading import Samples
from culture_tasks.results.runs import Run

SCORE = "score"
"""The name of a unit's own score among its statistics."""

Compute = Callable[[int, Sequence[Any]], float]
"""Works out a score that is no mean, from the number of a part and the values of the part's items."""


@dataclass(frozen=True)
class Selection:
    """Scored and unscored samples of one row, as columns; an item has the same number in every row.

    Where a metric has one score per cluster, each cluster is one item.

    Attributes:
        items: The number of the part that each belongs to (a task), in the upper half, and that of its item.
        strata: Parts of the score, numbered; None where every item weighs the same.
        coverage: Scored verdicts over verdicts; None without any.
        shares: Weight of each part, by its number; None where all count the same.
        values: The value of each item for a score that is no mean, which ``compute`` works out; None for a mean.
        subset_runs: The runs of a subset, by the number of their part; other parts have all samples.
        draws: The seeds of the subsets that parts are of, by their number, also in groups.
        samples: The samples of all runs, where some are of a subset.
    """

    runs: tuple[str, ...]
    items: NDArray[np.int64]
    scores: Floats
    clusters: Codes
    strata: Codes | None
    coverage: float | None
    shares: Floats | None = None
    values: NDArray[np.object_] | None = None
    compute: Compute | None = None
    subset_runs: Mapping[int, Run] = field(default_factory=dict)
    draws: Mapping[int, int] = field(default_factory=dict)
    samples: Samples | None = None

    @property
    def n(self) -> int:
        """Number of items with a score."""
        return int(np.count_nonzero(~np.isnan(self.scores)))

    @property
    def shared_clusters(self) -> Codes | None:
        """The clusters; None where each item is a cluster by itself."""
        return self.clusters if np.unique(self.clusters).size < self.clusters.size else None

    @property
    def score(self) -> float:
        """The score of all items; NaN where no item has one."""
        if self.compute is None:
            return mean_and_error(contributions(self.scores, self.strata, self.shares)).value
        return self._computed(np.flatnonzero(~np.isnan(self.scores)))

    @cached_property
    def replicates(self) -> Floats:
        """Scores of resamples of whole clusters, for a score that is no mean; all items have a score."""
        return replicates(self._computed, self.clusters)

    def right_or_wrong(self, scale: Scale) -> float | None:
        """Returns the score of a right answer where all scores are right or wrong, or None."""
        if self.strata is not None or scale.low != 0.0 or scale.unit not in ("share", "percent"):
            return None
        is_share = bool(np.isin(self.scores[~np.isnan(self.scores)], (0.0, scale.high or 0.0)).all())
        return scale.high if scale.high and is_share else None

    @cached_property
    def cluster_numbers(self) -> Codes:
        """The clusters, numbered from 0 on without gaps."""
        return numbered(self.clusters)[1].astype(np.int32)

    def less(self, other: Selection, confidence: float = 0.95) -> Difference:
        """Tests this score less another, where they are no means; both are of the same items in the same order."""
        value, replicates = self.score - other.score, self.replicates - other.replicates
        clusters = int(np.unique(self.clusters).size)
        return paired_bootstrap(value, replicates, n=self.n, clusters=clusters, confidence=confidence)

    def interval(self, scale: Scale) -> Interval:
        """Returns the score with its 95 % interval.

        Right/wrong scores get Wilson's interval, other means Student's t, or Gaffke's near an end of the scale, and
        other scores a bootstrap over clusters; all count clusters where items share one.
        """
        if self.compute is not None:
            scored = in_order(self)
            many = np.unique(scored.clusters).size
            return interval_of(bootstrapped(scored.score, scored.replicates, n=scored.n, clusters=many))
        width = self.right_or_wrong(scale)
        if has_design(self):
            return by_design(self, scale, width)
        if width is None:
            values = contributions(self.scores, self.strata, self.shares)
            return mean_interval(values, self.shared_clusters, ends=scale.ends if self.strata is None else None)
        share = share_interval(self.scores / width, self.shared_clusters)
        return share._replace(value=share.value * width, low=share.low * width, high=share.high * width)

    def _computed(self, places: NDArray[np.intp]) -> float:
        assert self.compute is not None
        assert self.values is not None
        if not places.size:
            return math.nan
        codes = np.zeros(places.size, dtype=np.int32) if self.strata is None else self.strata[places]
        parts = np.unique(codes)
        scores = [self.compute(int(part), list(self.values[places[codes == part]])) for part in parts]
        return float(np.average(scores, weights=None if self.shares is None else self.shares[parts]))


def select(
    results: Results,
    runs: Sequence[Run],
    tasks: Sequence[str],
    where: Where = (),
    *,
    statistic: str = SCORE,
    equal_parts: bool = False,
) -> Selection:
    """Gathers the samples of a unit's tasks in some groups.

    With ``equal_parts``, tasks weigh the same, or the groups that the metric of a single task names; else items do.
    """
    samples = results.samples
    used = {
        tasks.index(run.task): (run, rows)
        for run in runs_of(runs, statistic)
        if run.samples and (rows := samples.where(run.samples.rows, where)).size
    }
    if not used:
        nothing = np.zeros(0, dtype=np.int32)
        return Selection((), nothing.astype(np.int64), np.zeros(0), nothing, strata=None, coverage=None)
    by_number = {number: run for number, (run, _) in used.items()}
    first, all_rows = next(iter(by_number.values())), np.concatenate([rows for _, rows in used.values()])
    items, scores, clusters = zip(*(_items_of(samples, *part, statistic) for part in used.values()), strict=True)
    sizes = [part.size for part in items]
    parts = np.repeat(np.array(list(used), dtype=np.int32), sizes)
    subset_runs = _runs_of_subsets(by_number, statistic)
    shares = _shares_of_subsets(by_number, sizes, len(tasks)) if subset_runs and not equal_parts else None
    strata = parts if equal_parts or shares is not None else None
    if equal_parts and len(tasks) == 1:
        strata = _equal_groups(samples, all_rows, _metric(first, statistic))
    records = [record for part in used.values() for record in _records_of(*part)] if statistic == SCORE else []

    def compute(part: int, values: Sequence[Any]) -> float:
        metric = _metric(by_number[part] if equal_parts else first, statistic)
        assert isinstance(metric, ComputedScore)
        return _factor(first, statistic) * metric.value(values)

    verdicts = int(samples.verdicts[all_rows].sum())
    return Selection(
        runs=tuple(run.key for run in by_number.values()),
        items=(parts.astype(np.int64) << 32) | np.concatenate(items),
        scores=np.concatenate(scores),
        clusters=np.concatenate(clusters),
        strata=strata,
        coverage=int(samples.scored[all_rows].sum()) / verdicts if verdicts else None,
        shares=shares,
        values=np.fromiter(records, dtype=np.object_) if records else None,
        compute=compute if records else None,
        subset_runs={} if where else subset_runs,
        draws={part: run.settings.seed for part, run in by_number.items() if run.settings.subset and not run.whole},
        samples=samples if subset_runs else None,
    )


def _records_of(run: Run, rows: NDArray[np.intp]) -> Sequence[Mapping[str, Any]]:
    """Returns the records of some rows of a run; none where its metric isn't computed from records."""
    if run.samples is None or not run.samples.records:
        return ()
    return [run.samples.records[row - run.samples.rows.start] for row in rows.tolist()]


def _shares_of_subsets(runs: Mapping[int, Run], sizes: Sequence[int], tasks: int) -> Floats | None:
    """Returns the weight of each task where every document of the tasks weighs the same; None for a single run."""
    if len(runs) < 2:
        return None
    shares = np.zeros(tasks)
    for (number, run), size in zip(runs.items(), sizes, strict=True):
        shares[number] = size / (1.0 if run.subset is None else run.subset.chance)
    return shares


def runs_of(runs: Sequence[Run], statistic: str) -> list[Run]:
    """Returns the runs to select a statistic's samples of: those of all responses where it needs no judge."""
    return [run if run.whole is None or statistic == SCORE else run.whole for run in runs]


def _items_of(samples: Samples, run: Run, rows: NDArray[np.intp], statistic: str) -> tuple[Codes, Floats, Codes]:
    """Returns items, scores and clusters of some samples of a run: one per cluster where the metric says so."""
    column = samples.score if statistic == SCORE else samples.values.get(statistic)
    scores = np.full(rows.size, np.nan) if column is None else column[rows]
    metric, clusters = _metric(run, statistic), samples.cluster[rows]
    if not isinstance(metric, MeanScore) or metric.per_cluster is None:
        return samples.item[rows], scores, clusters
    lacks_verdict = (samples.scored < samples.verdicts)[rows] & (statistic == SCORE)
    counts, factor = ~np.isnan(scores) | lacks_verdict, _factor(run, statistic)
    names, numbers = numbered(clusters[counts])
    codes = names.astype(np.int32)
    return codes, factor * cluster_scores(scores[counts] / factor, numbers, metric.per_cluster), codes


def _equal_groups(samples: Samples, rows: NDArray[np.intp], metric: Metric | None) -> Codes | None:
    """Returns the group of each sample, as a number, where a metric has several that weigh the same."""
    name = metric.equal_groups if isinstance(metric, MeanScore) else ""
    texts, order = samples.groups.get(name), list(metric.groups.get(name, ())) if metric else []
    if texts is None:
        return None
    numbers = [order.index(group) if group in order else len(order) for group in texts.names]
    codes = np.array(numbers, dtype=np.int32)[texts.codes[rows]]
    return codes if np.unique(codes).size > 1 else None


def _runs_of_subsets(runs: Mapping[int, Run], statistic: str) -> dict[int, Run]:
    """Returns the runs of a subset, if each other run is of all documents and the statistic is of what was drawn."""
    subset_runs: dict[int, Run] = {}
    for number, run in runs.items():
        if (subset := run.subset) is not None:
            if run.items < subset.documents or (statistic != SCORE and subset.items != subset.of_documents):
                return {}
            subset_runs[number] = run
        elif run.settings.limit is not None or run.items < (run.expected or 0):
            return {}
    return subset_runs


def _metric(run: Run, statistic: str) -> Metric | None:
    """Returns the metric behind a statistic; None for one that the report alone has."""
    return run.metric if statistic == SCORE else run.kind.metrics.get(statistic) if run.kind else None


def _factor(run: Run, statistic: str) -> float:
    """Returns the factor from a harness's number to the scale of a statistic."""
    metric = _metric(run, statistic) or run.metric
    return 1.0 if metric is None else metric.scale.times


def groups_of_items(samples: Samples, run: Run, name: str) -> Texts | None:
    """Returns the group of a field that each item of a run is in, by the item's number; None without the field.

    An item with samples in several groups has the code -1, as have numbers without an item in the run.
    """
    texts, metric = samples.groups.get(name), run.metric
    if run.samples is None or texts is None:
        return None
    rows, is_per_cluster = run.samples.rows, isinstance(metric, MeanScore) and metric.per_cluster is not None
    items, codes = (samples.cluster if is_per_cluster else samples.item)[rows], texts.codes[rows]
    first, last = (np.full(int(items.max(initial=-1)) + 1, start, dtype=np.int32) for start in (len(texts.names), -1))
    np.minimum.at(first, items, codes)
    np.maximum.at(last, items, codes)
    return Texts(np.where(first == last, last, np.int32(-1)), texts.names)


def in_order(selection: Selection) -> Selection:
    """Returns the samples that have a score, in the order of their items."""
    scored = np.flatnonzero(~np.isnan(selection.scores))
    return _items_at(selection, scored[np.argsort(selection.items[scored], kind="stable")])


def aligned(first: Selection, second: Selection) -> tuple[Selection, Selection]:
    """Returns both for the items that both have a score for, sorted; the weights of a subset's parts hold for both."""
    if not np.array_equal(first.items, second.items):
        items = np.intersect1d(first.items, second.items, assume_unique=True)
        first, second = (_items_at(side, np.searchsorted(side.items, items)) for side in (first, second))
    if first.shares is None and second.shares is not None:
        first = replace(first, strata=second.strata, shares=second.shares)
    elif second.shares is None and first.shares is not None:
        second = replace(second, strata=first.strata, shares=first.shares)
    return first, second


def _items_at(selection: Selection, places: NDArray[np.intp]) -> Selection:
    return replace(
        selection,
        items=selection.items[places],
        scores=selection.scores[places],
        clusters=selection.clusters[places],
        strata=None if selection.strata is None else selection.strata[places],
        values=None if selection.values is None else selection.values[places],
    )
