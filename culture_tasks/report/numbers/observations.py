"""The observations of a unit: the samples of a row as columns, and their score with its interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culture_tasks.benchmarks.interface import ComputedScore, MeanScore, Metric, Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import Answers, Codes, Floats, Mask, Texts, Where
from culture_tasks.harness.rows import LEXICAL, parts_of
from culture_tasks.metrics.comparison import Difference, paired_bootstrap
from culture_tasks.metrics.intervals import LARGE_CLUSTER, Interval, interval_of, mean_interval, share_interval
from culture_tasks.metrics.means import cluster_scores, contributions, mean_and_error, numbered
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.metrics.resampling import bootstrapped, replicates
from culture_tasks.metrics.subsets import SamplingFrame, subset_interval
from culture_tasks.report.model import Cell, Flag
from culture_tasks.results.columns import Columns
from culture_tasks.results.loaded_runs import LoadedRun

SCORE = "score"
"""The name of a unit's own score among its statistics."""

Compute = Callable[[int, Sequence[Any]], float]
"""Works out a score that is no mean, from the number of a part and the values of the part's items."""


@dataclass(frozen=True)
class Observations:
    """Scored and unscored samples of one entrant, as columns; an item has the same number in every entrant.

    Where a metric has one score per cluster, each cluster is one item.

    Attributes:
        strata: Parts of the score, numbered; None where every item weighs the same.
        coverage: Scored verdicts over verdicts; None without any.
        shares: Weight of each part, by its number; None where all count the same.
        values: The value of each item for a score that is no mean; None for a mean.
        compute: Works out a score that is no mean; None for a mean.
        subset_runs: The runs of a subset, by the number of their part; other parts have all samples.
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
    subset_runs: Mapping[int, LoadedRun] = field(default_factory=dict)

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

    @property
    def has_subset_interval(self) -> bool:
        """Whether a part is of a subset, and no two parts share a cluster: then there is an interval for the draw."""
        if not self.subset_runs or not self.items.size:
            return False
        parts_of_clusters = np.unique(np.stack([self.clusters, self.items >> 32]), axis=1)
        return bool(np.unique(parts_of_clusters[0]).size == parts_of_clusters.shape[1])

    @cached_property
    def replicates(self) -> Floats:
        """Scores of resamples of whole clusters, for a score that is no mean; all observations have a score."""
        return replicates(self._computed, self.clusters)

    def right_or_wrong(self, scale: Scale) -> float | None:
        """Returns the score of a right answer where all scores are right or wrong, or None."""
        if self.strata is not None or scale.low != 0.0 or scale.unit not in ("share", "percent"):
            return None
        return scale.high if scale.high and self._values <= {0.0, scale.high} else None

    @cached_property
    def _values(self) -> frozenset[float]:
        return frozenset(np.unique(self.scores[~np.isnan(self.scores)]).tolist())

    @cached_property
    def cluster_numbers(self) -> Codes:
        """The clusters, numbered from 0 on without gaps."""
        return numbered(self.clusters)[1].astype(np.int32)

    def less(self, observations: Observations, confidence: float = 0.95) -> Difference:
        """Tests this score less another, where they are no means; both are of the same items in the same order."""
        value, replicates = self.score - observations.score, self.replicates - observations.replicates
        clusters = int(np.unique(self.clusters).size)
        return paired_bootstrap(value, replicates, n=self.n, clusters=clusters, confidence=confidence)

    def _computed(self, places: NDArray[np.intp]) -> float:
        assert self.compute is not None
        assert self.values is not None
        if not places.size:
            return math.nan
        codes = np.zeros(places.size, dtype=np.int32) if self.strata is None else self.strata[places]
        parts = np.unique(codes)
        scores = [self.compute(int(part), list(self.values[places[codes == part]])) for part in parts]
        return float(np.average(scores, weights=None if self.shares is None else self.shares[parts]))


def observe(
    runs: Sequence[LoadedRun],
    tasks: Sequence[str],
    where: Where = (),
    *,
    statistic: str = SCORE,
    equal_parts: bool = False,
) -> Observations:
    """Gathers the samples of a unit's tasks in some groups.

    With ``equal_parts``, tasks weigh the same, or the groups that the metric of a single task names; else items do.
    """
    used = [(run, mask) for run in runs_of(runs, statistic) if (mask := columns_of(run).where(where)).any()]
    if not used:
        nothing = np.zeros(0, dtype=np.int32)
        return Observations((), nothing.astype(np.int64), np.zeros(0), nothing, strata=None, coverage=None)
    scored = sum(int(columns_of(run).scored[mask].sum()) for run, mask in used)
    verdicts = sum(int(columns_of(run).verdicts[mask].sum()) for run, mask in used)
    by_number = {tasks.index(run.run.task): run for run, _ in used}
    items, scores, clusters = zip(*(items_of(run, mask, statistic) for run, mask in used), strict=True)
    sizes = [run_items.size for run_items in items]
    parts = np.repeat(np.array(list(by_number), dtype=np.int32), sizes)
    subset_runs = _runs_of_subsets(by_number, statistic)
    shares = None
    if subset_runs and len(used) > 1 and not equal_parts:  # every document of the tasks weighs the same
        shares = np.zeros(len(tasks))
        for (number, run), size in zip(by_number.items(), sizes, strict=True):
            shares[number] = size / (1.0 if run.result.subset is None else run.result.subset.chance)
    strata = parts if equal_parts or shares is not None else None
    if equal_parts and len(tasks) == 1:
        strata = _equal_groups(*used[0], statistic)
    records = [
        run_records[mask]
        for run, mask in used
        if statistic == SCORE and (run_records := columns_of(run).records) is not None
    ]

    def compute(part: int, values: Sequence[Any]) -> float:
        run = by_number[part] if equal_parts else used[0][0]
        metric = _metric(run, statistic)
        assert isinstance(metric, ComputedScore)
        return _times(used[0][0], statistic) * metric.value(values)

    return Observations(
        runs=tuple(run.run.key for run, _ in used),
        items=(parts.astype(np.int64) << 32) | np.concatenate(items),
        scores=np.concatenate(scores),
        clusters=np.concatenate(clusters),
        strata=strata,
        coverage=scored / verdicts if verdicts else None,
        shares=shares,
        subset_runs={} if where else subset_runs,
        values=np.concatenate(records) if records else None,
        compute=compute if records else None,
    )


def _equal_groups(run: LoadedRun, mask: Mask, statistic: str) -> Codes | None:
    """Returns the group of each sample, as a number, where a metric has several that weigh the same."""
    metric = _metric(run, statistic)
    name = metric.equal_groups if isinstance(metric, MeanScore) else ""
    texts, order = columns_of(run).groups.get(name), list(metric.groups.get(name, ())) if metric else []
    if texts is None:
        return None
    numbers = [order.index(group) if group in order else len(order) for group in texts.names]
    codes = np.array(numbers, dtype=np.int32)[texts.codes[mask]]
    return codes if np.unique(codes).size > 1 else None


def runs_of(runs: Sequence[LoadedRun], statistic: str) -> list[LoadedRun]:
    """Returns the runs to observe a statistic of: those of all responses where it needs no judge."""
    return [run if run.whole is None or statistic == SCORE else run.whole for run in runs]


def _runs_of_subsets(runs: Mapping[int, LoadedRun], statistic: str) -> dict[int, LoadedRun]:
    """Returns the runs of a subset, if each other run is of all documents and the statistic is of what was drawn."""
    subset_runs: dict[int, LoadedRun] = {}
    for number, run in runs.items():
        if (subset := run.result.subset) is not None:
            is_part = run.run.items < subset.documents
            if is_part or (statistic != SCORE and subset.items != subset.of_documents):
                return {}
            subset_runs[number] = run
        elif run.run.settings.limit is not None or run.run.items < (run.result.expected or 0):
            return {}
    return subset_runs


def columns_of(run: LoadedRun) -> Columns:
    """Returns the samples of a run, which must have a sample file."""
    assert run.columns is not None
    return run.columns


def _metric(run: LoadedRun, statistic: str) -> Metric | None:
    """Returns the metric behind a statistic; None for one that the report alone has."""
    return None if run.kind is None else run.kind.metrics.get(run.kind.metric if statistic == SCORE else statistic)


def _times(run: LoadedRun, statistic: str) -> float:
    """Returns the factor from a harness's number to the scale of a statistic."""
    metric = None if statistic == SCORE else _metric(run, statistic)
    return 1.0 if run.kind is None else (run.kind.scale if metric is None else metric.scale).times


def items_of(run: LoadedRun, mask: Mask | None = None, statistic: str = SCORE) -> tuple[Codes, Floats, Codes]:
    """Returns items, scores and clusters of a run: all samples', or one per cluster where the metric says so."""
    columns = columns_of(run)
    mask = np.ones(columns.items.size, dtype=np.bool_) if mask is None else mask
    items, clusters = columns.items[mask], columns.clusters[mask]
    scores = (columns.scores if statistic == SCORE else columns.further[statistic])[mask]
    metric = _metric(run, statistic)
    if not isinstance(metric, MeanScore) or metric.per_cluster is None:
        return items, scores, clusters
    lacks_verdict = (columns.scored < columns.verdicts)[mask] & (statistic == SCORE)
    counts, times = ~np.isnan(scores) | lacks_verdict, _times(run, statistic)
    names, numbers = numbered(clusters[counts])
    codes = names.astype(np.int32)
    return codes, times * cluster_scores(scores[counts] / times, numbers, metric.per_cluster), codes


def groups_of_items(run: LoadedRun, name: str) -> Texts | None:
    """Returns the group of a field that each item of a run is in, by the item's number; None without the field.

    An item with samples in several groups has the code -1, as have numbers without an item in the run.
    """
    columns = columns_of(run)
    if name not in columns.groups:
        return None
    metric, texts = _metric(run, SCORE), columns.groups[name]
    items = columns.clusters if isinstance(metric, MeanScore) and metric.per_cluster is not None else columns.items
    first, last = (np.full(int(items.max(initial=-1)) + 1, start, dtype=np.int32) for start in (len(texts.names), -1))
    np.minimum.at(first, items, texts.codes)
    np.maximum.at(last, items, texts.codes)
    return Texts(np.where(first == last, last, np.int32(-1)), texts.names)


def is_same_number(first: float, second: float) -> bool:
    """Whether two numbers are the same, apart from the order in which they were summed."""
    return math.isclose(first, second, rel_tol=1e-6, abs_tol=1e-6)


def unlike_its_file(run: LoadedRun) -> str:
    """Names a number of a run's result file that its samples contradict; empty where they agree.

    The means of all samples and of parts of the data are compared, but not where samples are missing or were left out,
    which the report says elsewhere.
    """
    if run.columns is None or run.kind is None or run.run.problems:
        return ""
    for name, metric in run.kind.metrics.items():
        statistic = SCORE if name == run.kind.metric else name
        if statistic != SCORE and (isinstance(metric, ComputedScore) or name not in run.columns.further):
            continue
        if statistic != SCORE and run.result.subset is not None and run.result.graded_from is not None:
            continue  # a grading of a sample keeps the numbers of all responses that need no judge
        places: list[tuple[str, Where]] = [(part.metric, ((part.field, part.group),)) for part in parts_of(metric)]
        for label, where in ((name, ()), *places):
            lexical = label.replace(name, f"{name}{LEXICAL}", 1)
            names = (lexical, label) if run.lexical else (label, lexical)
            in_file = next((run.result.metrics[key] for key in names if key in run.result.metrics), math.nan)
            observed = observe([run], [run.run.task], where, statistic=statistic, equal_parts=not where)
            score = observed.score / _times(run, statistic)
            if not math.isnan(in_file) and not math.isnan(score) and not is_same_number(in_file, score):
                return f"{label} is {in_file:.6g} in the result file and {score:.6g} by its samples"
    return ""


def answers_of(runs: Sequence[LoadedRun]) -> Answers | None:
    """Returns the samples that have a score as columns; None without any."""
    parts: list[Answers] = []
    for columns in map(columns_of, runs_of(runs, SCORE)):
        part = Answers(columns.scores, columns.clusters, columns.groups).only(~np.isnan(columns.scores))
        parts += [part] if part.scores.size else []
    if not parts:
        return None
    fields = [field for field in parts[0].groups if all(field in part.groups for part in parts)]
    return Answers(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.clusters for part in parts]),
        {field: _joined([part.groups[field] for part in parts]) for field in fields},
    )


def _joined(parts: Sequence[Texts]) -> Texts:
    """Returns columns of texts one below the other, with a common numbering."""
    names = {name: code for code, name in enumerate(dict.fromkeys(name for texts in parts for name in texts.names))}
    codes = [np.array([names[name] for name in texts.names], dtype=np.int32)[texts.codes] for texts in parts]
    return Texts(np.concatenate(codes), tuple(names))


def repeat_means(runs: Sequence[LoadedRun], tasks: Sequence[str], where: Where, *, equal_parts: bool) -> list[float]:
    """Returns the score of each repeat; nothing where items have one answer, or different numbers of answers."""
    used = [(run, columns) for run in runs if (columns := columns_of(run)).where(where).any()]
    tables = [(run, columns, columns.repeats) for run, columns in used if columns.repeats is not None]
    repeats = {table.shape[1] for _, _, table in tables}
    scores: list[float] = []
    for repeat in range(repeats.pop() if len(repeats) == 1 and len(tables) == len(used) else 0):
        run_repeats = [
            replace(run, columns=replace(columns, scores=table[:, repeat])) for run, columns, table in tables
        ]
        scores.append(observe(run_repeats, tasks, where, equal_parts=equal_parts).score)
    return [score for score in scores if not math.isnan(score)]


def averaged(by_run: Sequence[Observations]) -> Observations:
    """Returns the observations of several runs as one: each item's mean over the runs that have a score for it."""
    if len(by_run) == 1:
        return by_run[0]
    scores = np.concatenate([run.scores for run in by_run])
    all_items = np.concatenate([run.items for run in by_run])
    items, first, places = np.unique(all_items, return_index=True, return_inverse=True)
    scored = ~np.isnan(scores)
    counts = np.bincount(places[scored], minlength=items.size)
    sums = np.bincount(places[scored], scores[scored], minlength=items.size)
    strata = [run.strata for run in by_run if run.strata is not None]
    coverages = [run.coverage for run in by_run if run.coverage is not None]
    return Observations(
        runs=tuple(key for run in by_run for key in run.runs),
        items=items,
        scores=np.divide(sums, counts, out=np.full(items.size, np.nan), where=counts > 0),
        clusters=np.concatenate([run.clusters for run in by_run])[first],
        strata=np.concatenate(strata)[first] if len(strata) == len(by_run) else None,
        coverage=float(np.mean(coverages)) if coverages else None,
        shares=next((run.shares for run in by_run if run.shares is not None), None),
    )


def in_order(observed: Observations) -> Observations:
    """Returns the observations that have a score, in the order of their items."""
    scored = np.flatnonzero(~np.isnan(observed.scores))
    return _items_at(observed, scored[np.argsort(observed.items[scored], kind="stable")])


def aligned(first: Observations, second: Observations) -> tuple[Observations, Observations]:
    """Returns both for the items that both have a score for, sorted; the weights of a subset's parts hold for both."""
    if not np.array_equal(first.items, second.items):
        items = np.intersect1d(first.items, second.items, assume_unique=True)
        first, second = (_items_at(side, np.searchsorted(side.items, items)) for side in (first, second))
    if first.shares is None and second.shares is not None:
        first = replace(first, strata=second.strata, shares=second.shares)
    elif second.shares is None and first.shares is not None:
        second = replace(second, strata=first.strata, shares=first.shares)
    return first, second


def _items_at(observed: Observations, places: NDArray[np.intp]) -> Observations:
    return replace(
        observed,
        items=observed.items[places],
        scores=observed.scores[places],
        clusters=observed.clusters[places],
        strata=None if observed.strata is None else observed.strata[places],
        values=None if observed.values is None else observed.values[places],
    )


def interval(observed: Observations, scale: Scale) -> Interval:
    """Returns a score with its 95 % interval.

    Right/wrong scores get Wilson's interval, other means Student's t, or Gaffke's near an end of the scale, and other
    scores a bootstrap over clusters; all count clusters where items share one.
    """
    if observed.compute is not None:
        scored = in_order(observed)
        many = np.unique(scored.clusters).size
        return interval_of(bootstrapped(scored.score, scored.replicates, n=scored.n, clusters=many))
    width = observed.right_or_wrong(scale)
    if observed.has_subset_interval:
        return _subset_interval(observed, scale, width)
    if width is None:
        values = contributions(observed.scores, observed.strata, observed.shares)
        return mean_interval(values, observed.shared_clusters, ends=scale.ends if observed.strata is None else None)
    share = share_interval(observed.scores / width, observed.shared_clusters)
    return share._replace(value=share.value * width, low=share.low * width, high=share.high * width)


def _subset_interval(observed: Observations, scale: Scale, width: float | None) -> Interval:
    """Returns the score of all documents, by the design of the draws; ``width`` is the score of a right answer."""
    codes = observed.items >> 32
    parts = np.unique(codes)
    shares = np.ones(int(parts.max()) + 1) if observed.shares is None else observed.shares
    estimates = [_part_interval(observed, part, scale, width) for part in parts.tolist()]
    return Interval(
        *weighted([estimate[:3] for estimate in estimates], shares[parts] / shares[parts].sum()),
        n=sum(estimate.n for estimate in estimates),
        clusters=sum(estimate.clusters for estimate in estimates),
        reason=next((estimate.reason for estimate in estimates if estimate.reason), None),
    )


def _part_interval(observed: Observations, part: int, scale: Scale, width: float | None) -> Interval:
    """Returns the score of a part of the documents, without an error where all of them have an answer."""
    is_of_part, run = observed.items >> 32 == part, observed.subset_runs.get(part)
    strata = None if observed.strata is None else observed.strata[is_of_part]
    scores = contributions(observed.scores[is_of_part], strata)
    items = (observed.items[is_of_part] & 0xFFFFFFFF).astype(np.int32)
    clusters = None if observed.shared_clusters is None else observed.clusters[is_of_part]
    if run is None or run.result.subset is None:
        estimate = mean_interval(scores, clusters)
        return estimate._replace(low=estimate.value, high=estimate.value)
    if run.whole is not None and run.whole.columns is not None:
        return _with_help(scores, items, run.whole, run.whole.columns, scale.ends)
    unit = width or 1.0
    estimate = subset_interval(scores / unit, clusters, run.result.subset.frame, shares=width is not None)
    return estimate._replace(value=estimate.value * unit, low=estimate.low * unit, high=estimate.high * unit)


def draw_of_both(first: Observations, second: Observations) -> SamplingFrame | None:
    """Returns the frame of two subsets where they are the same draw of one task; None elsewhere."""
    runs = [*first.subset_runs.values(), *second.subset_runs.values()]
    if len(runs) != 2 or not (first.has_subset_interval and second.has_subset_interval):
        return None
    if first.strata is not None or any(run.whole is not None for run in runs):
        return None
    one, other = (run.result.subset for run in runs)
    return one.frame if one is not None and one == other else None


def weighted(
    estimates: Sequence[tuple[float | None, float | None, float | None]], weights: ArrayLike
) -> tuple[float, float, float]:
    """Returns the weighted sum of independent estimates and both ends of its interval (Zou and Donner, 2008)."""
    numbers, shares = np.array(estimates, dtype=np.float64), np.asarray(weights)  # NaN for None
    value = float(shares @ np.ascontiguousarray(numbers[:, 0]))
    reach = np.abs((numbers[:, 1:] - numbers[:, :1]) * shares[:, None])
    reach[shares < 0.0] = reach[shares < 0.0, ::-1]
    below, above = (math.hypot(*side) for side in reach.T)
    return value, value - below, value + above


def _with_help(
    scores: Floats, items: Codes, run: LoadedRun, columns: Columns, ends: tuple[float, float] | None
) -> Interval:
    """Returns a judge's score of all responses, from its scores of some and another judge's run of all."""
    order = np.argsort(columns.items)
    places = order[np.minimum(np.searchsorted(columns.items, items, sorter=order), order.size - 1)]
    is_known = columns.items[places] == items
    checked = np.full(columns.items.size, np.nan)
    checked[places[is_known]] = scores[is_known]
    corrected = corrected_mean(
        columns.scores,
        checked,
        pooled([CultureInTask("", culture, culture) for culture in cultures_of(run)], ~np.isnan(checked[None])),
        clusters=columns.clusters if np.unique(columns.clusters).size < columns.clusters.size else None,
        ends=ends,
    ).overall
    ends = corrected.set_low, corrected.set_high
    return Interval(corrected.value, *ends, n=corrected.rated, clusters=corrected.rated, reason=corrected.reason)


def cultures_of(run: LoadedRun) -> list[str]:
    """Returns the culture of each sample of a run; empty texts where its benchmark names none."""
    columns, benchmark = columns_of(run), benchmarks().get(run.run.benchmark or "")
    groups = None if benchmark is None else columns.groups.get(benchmark.report().culture)
    if groups is None:
        return [""] * columns.items.size
    return [groups.names[code] for code in groups.codes.tolist()]


class CultureInTask(NamedTuple):
    """The responses of one culture in one task; its text is their name for a reader."""

    task: str
    culture: str
    name: str

    def __str__(self) -> str:
        return self.name


def pooled(strata: Sequence[CultureInTask], graded: Mask) -> list[CultureInTask]:
    """Merges cultures with fewer than two graded responses in some task with others; ``graded`` has a row per entrant.

    Every response had the same chance to be graded, so strata may be merged.
    """

    def lacking(names: Sequence[CultureInTask]) -> set[CultureInTask]:
        counts = [Counter(compress(names, row)) for row in graded]
        return {label for label, size in Counter(names).items() if min(row[label] for row in counts) < min(2, size)}

    graded_by_all: Mask = np.logical_and.reduce(graded)
    counts = Counter(stratum.culture for stratum in compress(strata, graded_by_all))
    few = {stratum.culture for stratum in lacking(strata)}
    larger = sorted({stratum.culture for stratum in strata} - few, key=lambda culture: counts[culture])
    labels = list(strata)
    while few:
        labels = [
            stratum._replace(culture="", name="other cultures") if stratum.culture in few else stratum
            for stratum in strata
        ]
        if not (lacking(labels) and larger):
            break
        few.add(larger.pop(0))
    return labels


def cell_of(
    observed: Observations, scale: Scale, flags: Sequence[Flag] = (), where: Where = (), *, min_coverage: float = 0.0
) -> Cell:
    """Returns the cell of some observations; low coverage adds a flag."""
    estimate = interval(observed, scale)
    all_flags: set[Flag] = set(flags) - {"low_coverage"}
    if observed.coverage is not None and observed.coverage < min_coverage:
        all_flags.add("low_coverage")
    return from_interval(estimate, scale, flags=all_flags, runs=observed.runs, where=where, coverage=observed.coverage)


def from_interval(
    estimate: Interval,
    scale: Scale,
    flags: set[Flag],
    runs: tuple[str, ...],
    where: Where = (),
    coverage: float | None = None,
) -> Cell:
    """Returns the cell of an interval, cut at the ends of the scale, with None for NaN and its reason as the note."""
    cell = Cell(None, scale, flags=ordered(flags), runs=runs, where=where, coverage=coverage)
    if math.isnan(estimate.value):
        return cell
    low = nan_to_none(estimate.low if scale.low is None else max(estimate.low, scale.low))
    high = nan_to_none(estimate.high if scale.high is None else min(estimate.high, scale.high))
    note = f"no interval: {estimate.reason}" if estimate.reason and math.isnan(estimate.low) else ""
    if not note and estimate.clusters < estimate.n and estimate.largest > LARGE_CLUSTER:
        note = f"one cluster has {estimate.largest:.0%} of the items"
    return replace(cell, value=estimate.value, low=low, high=high, n=estimate.n, note=note)


def nan_to_none(value: float) -> float | None:
    """Returns a number, or None for NaN."""
    return None if math.isnan(value) else float(value)


def ordered(flags: set[Flag]) -> tuple[Flag, ...]:
    """Returns flags in a fixed order."""
    return tuple(sorted(flags))
