"""What was observed of a unit: the samples of a row as columns, and the number with its interval that they make."""

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
from culture_tasks.harness.scoring import LEXICAL, parts_of
from culture_tasks.metrics.comparison import Difference, paired_bootstrap
from culture_tasks.metrics.intervals import Interval, interval_of, mean_interval, share_interval
from culture_tasks.metrics.means import cluster_scores, contributions, mean_and_error, numbered
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.metrics.resampling import bootstrapped, replicates
from culture_tasks.metrics.subsets import control_variate_interval, subset_interval
from culture_tasks.report.model import Cell, Flag
from culture_tasks.results.columns import Columns
from culture_tasks.results.loaded_runs import LoadedRun

SCORE = "score"
"""The statistic that is a unit's own score."""

Compute = Callable[[int, Sequence[Any]], float]
"""Works out a score that is no mean, by the number of a part of it and what the items of that part have for it."""


@dataclass(frozen=True)
class Observations:
    """Scored and unscored samples of one entrant, as columns; an item has the same number in every entrant.

    Where a metric has one score per cluster, each cluster is one item.

    Attributes:
        strata: Parts of the score, numbered; None where every item weighs the same.
        coverage: Scored verdicts over verdicts; None without any.
        shares: Weight of each part, by its number; None where all count the same.
        values: What each item has for a score that is no mean of the scores; None for a mean.
        compute: Works that score out; None for a mean.
        drawn: The runs whose samples are all of a subset's, by the number of the part; other parts have all samples.
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
    drawn: Mapping[int, LoadedRun] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of items with a score."""
        return int(np.count_nonzero(~np.isnan(self.scores)))

    @property
    def shared_clusters(self) -> Codes | None:
        """The clusters; None where each item stands alone."""
        return self.clusters if np.unique(self.clusters).size < self.clusters.size else None

    @property
    def score(self) -> float:
        """The score that they make together; NaN where none of them has one."""
        if self.compute is None:
            return mean_and_error(contributions(self.scores, self.strata, self.shares)).value
        return self._computed(np.flatnonzero(~np.isnan(self.scores)))

    @cached_property
    def is_drawn(self) -> bool:
        """Whether a part is of a subset, and no two parts have clusters in common: then a draw's interval is known."""
        if not self.drawn:
            return False
        parts_of_clusters = np.unique(np.stack([self.clusters, self.items >> 32]), axis=1)
        return bool(np.unique(parts_of_clusters[0]).size == parts_of_clusters.shape[1])

    @cached_property
    def replicates(self) -> Floats:
        """A score that is no mean, of resamples of whole clusters; all observations have a score."""
        return replicates(self._computed, self.clusters)

    def right_or_wrong(self, scale: Scale) -> float | None:
        """Returns the score of a right answer where all scores are right or wrong, or None."""
        if self.strata is not None or scale.low != 0.0 or scale.unit not in ("share", "percent"):
            return None
        scores = self.scores[~np.isnan(self.scores)]
        return scale.high if scale.high and np.isin(scores, (0.0, scale.high)).all() else None

    def less(self, other: Observations, confidence: float = 0.95) -> Difference:
        """Tests this score less another, where they are no means; both are of the same items in one order."""
        value, replicates, many = self.score - other.score, self.replicates - other.replicates, np.unique(self.clusters)
        return paired_bootstrap(value, replicates, n=self.n, clusters=int(many.size), confidence=confidence)

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
    """Gathers the samples of a unit's tasks, which all entrants number alike, in some groups.

    With ``equal_parts`` the tasks weigh the same, rather than the items.
    """
    used = [(each, mask) for each in runs_of(runs, statistic) if (mask := columns_of(each).where(where)).any()]
    if not used:
        nothing = np.zeros(0, dtype=np.int32)
        return Observations((), nothing.astype(np.int64), np.zeros(0), nothing, strata=None, coverage=None)
    scored = sum(int(columns_of(each).scored[mask].sum()) for each, mask in used)
    verdicts = sum(int(columns_of(each).verdicts[mask].sum()) for each, mask in used)
    by_number = {tasks.index(each.run.task): each for each, _ in used}
    items, scores, clusters = zip(*(items_of(each, mask, statistic) for each, mask in used), strict=True)
    sizes = [own.size for own in items]
    parts = np.repeat(np.array(list(by_number), dtype=np.int32), sizes)
    drawn = _drawn_parts(by_number, statistic)
    shares = None
    if drawn and len(used) > 1 and not equal_parts:  # every document of the tasks weighs the same
        shares = np.zeros(len(tasks))
        for (number, each), size in zip(by_number.items(), sizes, strict=True):
            shares[number] = size / (1.0 if each.result.subset is None else each.result.subset.chance)
    records = [own[mask] for each, mask in used if statistic == SCORE and (own := columns_of(each).records) is not None]

    def compute(part: int, values: Sequence[Any]) -> float:
        each = by_number[part] if equal_parts else used[0][0]
        metric = _metric(each, statistic)
        assert isinstance(metric, ComputedScore)
        return _times(used[0][0], statistic) * metric.value(values)

    return Observations(
        runs=tuple(each.run.key for each, _ in used),
        items=(parts.astype(np.int64) << 32) | np.concatenate(items),
        scores=np.concatenate(scores),
        clusters=np.concatenate(clusters),
        strata=parts if equal_parts or shares is not None else None,
        coverage=scored / verdicts if verdicts else None,
        shares=shares,
        drawn={} if where else drawn,
        values=np.concatenate(records) if records else None,
        compute=compute if records else None,
    )


def runs_of(runs: Sequence[LoadedRun], statistic: str) -> list[LoadedRun]:
    """Returns the runs to observe a statistic of.

    Where a judge graded a sample of the responses, statistics that need no judge are known of all of them.
    """
    return [
        each.whole
        if statistic != SCORE
        and each.whole is not None
        and each.whole.columns is not None
        and statistic in each.whole.columns.further
        else each
        for each in runs
    ]


def _drawn_parts(runs: Mapping[int, LoadedRun], statistic: str) -> dict[int, LoadedRun]:
    """Returns the runs of a subset, if each other one is of all documents.

    There is nothing for a statistic of documents where whole clusters were drawn.
    """
    drawn: dict[int, LoadedRun] = {}
    for number, each in runs.items():
        if (subset := each.result.subset) is not None:
            if statistic != SCORE and subset.items != subset.of_documents:
                return {}
            drawn[number] = each if statistic == SCORE else replace(each, others=())
        elif each.run.settings.limit is not None or each.run.items < (each.result.expected or 0):
            return {}
    return drawn


def columns_of(each: LoadedRun) -> Columns:
    """Returns the samples of a run, which must have a sample file."""
    assert each.columns is not None
    return each.columns


def _metric(each: LoadedRun, statistic: str) -> Metric | None:
    """Returns the metric behind a statistic; None for one that the report alone has."""
    return None if each.kind is None else each.kind.metrics.get(each.kind.metric if statistic == SCORE else statistic)


def _times(each: LoadedRun, statistic: str) -> float:
    """Returns what 1 of a harness's number is on the scale of a statistic."""
    metric = None if statistic == SCORE else _metric(each, statistic)
    return 1.0 if each.kind is None else (each.kind.scale if metric is None else metric.scale).times


def items_of(each: LoadedRun, mask: Mask | None = None, statistic: str = SCORE) -> tuple[Codes, Floats, Codes]:
    """Returns items, scores and clusters of a run: all samples', or one per cluster where the metric says so."""
    columns = columns_of(each)
    mask = np.ones(columns.items.size, dtype=np.bool_) if mask is None else mask
    items, clusters = columns.items[mask], columns.clusters[mask]
    scores = (columns.scores if statistic == SCORE else columns.further[statistic])[mask]
    metric = _metric(each, statistic)
    if not isinstance(metric, MeanScore) or metric.per_cluster is None:
        return items, scores, clusters
    lacks_verdict = (columns.scored < columns.verdicts)[mask] & (statistic == SCORE)
    counts, times = ~np.isnan(scores) | lacks_verdict, _times(each, statistic)
    names, numbers = numbered(clusters[counts])
    codes = names.astype(np.int32)
    return codes, times * cluster_scores(scores[counts] / times, numbers, metric.per_cluster), codes


def groups_of_items(each: LoadedRun, name: str) -> Texts | None:
    """Returns the group of a field that each item of a run is in, by the item's number; None without the field.

    An item whose samples are in several groups has the code -1, and so have numbers that are no item of the run.
    """
    columns = columns_of(each)
    if name not in columns.groups:
        return None
    metric, texts = _metric(each, SCORE), columns.groups[name]
    items = columns.clusters if isinstance(metric, MeanScore) and metric.per_cluster is not None else columns.items
    first, last = (np.full(int(items.max(initial=-1)) + 1, start, dtype=np.int32) for start in (len(texts.names), -1))
    np.minimum.at(first, items, texts.codes)
    np.maximum.at(last, items, texts.codes)
    return Texts(np.where(first == last, last, np.int32(-1)), texts.names)


def is_same_number(one: float, other: float) -> bool:
    """Whether two numbers are the same but for the order in which each was added up."""
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)


def unlike_its_file(each: LoadedRun) -> str:
    """Says which number of a run's result file its samples don't give; empty where they give all that they should.

    The means of all samples and of parts of the data are compared. Nothing is where samples are missing or were left
    out, which the report says elsewhere.
    """
    if each.columns is None or each.kind is None or each.run.problems:
        return ""
    for name, metric in each.kind.metrics.items():
        statistic = SCORE if name == each.kind.metric else name
        if statistic != SCORE and (isinstance(metric, ComputedScore) or name not in each.columns.further):
            continue
        if statistic != SCORE and each.result.subset is not None and each.result.graded_from is not None:
            continue  # a grading of a sample keeps the numbers of all responses that need no judge
        places: list[tuple[str, Where]] = [(part.metric, ((part.field, part.group),)) for part in parts_of(metric)]
        for label, where in ((name, ()), *places):
            lexical = label.replace(name, f"{name}{LEXICAL}", 1)
            names = (lexical, label) if each.lexical else (label, lexical)
            in_file = next((each.result.metrics[one] for one in names if one in each.result.metrics), math.nan)
            score = observe([each], [each.run.task], where, statistic=statistic).score / _times(each, statistic)
            if not math.isnan(in_file) and not math.isnan(score) and not is_same_number(in_file, score):
                return f"{label} is {in_file:.6g} in the result file and {score:.6g} by its samples"
    return ""


def answers_of(runs: Sequence[LoadedRun], statistic: str = SCORE) -> Answers | None:
    """Returns the samples with a score, or with a further score, as columns; None without any."""
    parts: list[Answers] = []
    for columns in map(columns_of, runs_of(runs, statistic)):
        scores = columns.scores if statistic == SCORE else columns.further[statistic]
        part = Answers(scores, columns.clusters, columns.groups).only(~np.isnan(scores))
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
    """Returns columns of texts one below the other, with one numbering."""
    names = {name: code for code, name in enumerate(dict.fromkeys(name for each in parts for name in each.names))}
    codes = [np.array([names[name] for name in each.names], dtype=np.int32)[each.codes] for each in parts]
    return Texts(np.concatenate(codes), tuple(names))


def repeat_means(runs: Sequence[LoadedRun], tasks: Sequence[str], where: Where, *, equal_parts: bool) -> list[float]:
    """Returns the score of each repeat by itself; nothing where the items weren't all asked equally often, or once."""
    chosen = [(each, columns) for each in runs if (columns := columns_of(each)).where(where).any()]
    repeats = {0 if columns.repeats is None else columns.repeats.shape[1] for _, columns in chosen}
    scores: list[float] = []
    for at in range(repeats.pop() if len(repeats) == 1 else 0):
        own = [
            replace(each, columns=replace(columns, scores=columns.repeats[:, at]))
            for each, columns in chosen
            if columns.repeats is not None
        ]
        scores.append(observe(own, tasks, where, equal_parts=equal_parts).score)
    return [score for score in scores if not math.isnan(score)]


def averaged(runs: Sequence[Observations]) -> Observations:
    """Returns the observations of several runs as one: each item's mean over the runs that have a score for it."""
    if len(runs) == 1:
        return runs[0]
    scores = np.concatenate([each.scores for each in runs])
    items, first, at = np.unique(np.concatenate([each.items for each in runs]), return_index=True, return_inverse=True)
    scored = ~np.isnan(scores)
    counts = np.bincount(at[scored], minlength=items.size)
    sums = np.bincount(at[scored], scores[scored], minlength=items.size)
    strata = [each.strata for each in runs if each.strata is not None]
    coverages = [each.coverage for each in runs if each.coverage is not None]
    return Observations(
        runs=tuple(key for each in runs for key in each.runs),
        items=items,
        scores=np.divide(sums, counts, out=np.full(items.size, np.nan), where=counts > 0),
        clusters=np.concatenate([each.clusters for each in runs])[first],
        strata=np.concatenate(strata)[first] if strata else None,
        coverage=float(np.mean(coverages)) if coverages else None,
    )


def in_order(observed: Observations) -> Observations:
    """Returns the observations that have a score, in the order of their items."""
    scored = np.flatnonzero(~np.isnan(observed.scores))
    return _chosen_items(observed, scored[np.argsort(observed.items[scored], kind="stable")])


def aligned(one: Observations, two: Observations) -> tuple[Observations, Observations]:
    """Returns what two have observed of the items that both have a score for, in one order; both are in order.

    Where one is of a subset, its parts weigh in both what they weigh in it.
    """
    if not np.array_equal(one.items, two.items):
        items = np.intersect1d(one.items, two.items, assume_unique=True)
        one, two = (_chosen_items(each, np.searchsorted(each.items, items)) for each in (one, two))
    if one.shares is None and two.shares is not None:
        one = replace(one, strata=two.strata, shares=two.shares)
    elif two.shares is None and one.shares is not None:
        two = replace(two, strata=one.strata, shares=one.shares)
    return one, two


def _chosen_items(observed: Observations, at: NDArray[np.intp]) -> Observations:
    return replace(
        observed,
        items=observed.items[at],
        scores=observed.scores[at],
        clusters=observed.clusters[at],
        strata=None if observed.strata is None else observed.strata[at],
        values=None if observed.values is None else observed.values[at],
    )


def interval(observed: Observations, scale: Scale) -> Interval:
    """Returns a score with its 95 % interval.

    Right/wrong scores get Wilson's interval, other means Student's t, and what is no mean a bootstrap over clusters;
    all count clusters where items share one.
    """
    if observed.compute is not None:
        scored = in_order(observed)
        many = np.unique(scored.clusters).size
        return interval_of(bootstrapped(scored.score, scored.replicates, n=scored.n, clusters=many))
    width = observed.right_or_wrong(scale)
    if observed.is_drawn:
        return _of_subsets(observed, scale, width)
    if width is None:
        return mean_interval(contributions(observed.scores, observed.strata, observed.shares), observed.shared_clusters)
    found = share_interval(observed.scores / width, observed.shared_clusters)
    return found._replace(value=found.value * width, low=found.low * width, high=found.high * width)


def _of_subsets(observed: Observations, scale: Scale, width: float | None) -> Interval:
    """Returns the score of all documents by the designed draws of them.

    ``width`` is the score of a right answer, where all are right or wrong.
    """
    codes = observed.items >> 32
    parts = np.unique(codes)
    counted = observed.shares if observed.shares is not None else np.ones(int(parts.max()) + 1)
    found = [_of_part(observed, part, scale, width) for part in parts.tolist()]
    return Interval(
        *weighted([each[:3] for each in found], counted[parts] / counted[parts].sum()),
        n=sum(each.n for each in found),
        clusters=sum(each.clusters for each in found),
        reason=next((each.reason for each in found if each.reason), None),
    )


def _of_part(observed: Observations, part: int, scale: Scale, width: float | None) -> Interval:
    """Returns the score of a part of the documents; one that all have an answer to has no error."""
    chosen, run = observed.items >> 32 == part, observed.drawn.get(part)
    scores, items = observed.scores[chosen], (observed.items[chosen] & 0xFFFFFFFF).astype(np.int32)
    clusters = None if observed.shared_clusters is None else observed.clusters[chosen]
    if run is None or run.result.subset is None:
        found = mean_interval(scores, clusters)
        return found._replace(low=found.value, high=found.value)
    if run.whole is not None and run.whole.columns is not None:
        return _with_help(scores, items, run.whole, run.whole.columns, scale.ends)
    population, unit, is_share = run.result.subset.frame, width or 1.0, width is not None
    if run.others:
        others = [items_of(other)[:2] for other in run.others]
        table = np.stack([own[np.argsort(names)] for names, own in others], axis=1)
        places, ends = np.searchsorted(np.sort(others[0][0]), items), None if width else scale.ends
        found = control_variate_interval(
            scores / unit, table / unit, places, clusters, population, shares=is_share, ends=ends
        )
    else:
        found = subset_interval(scores / unit, clusters, population, shares=is_share)
    return found._replace(value=found.value * unit, low=found.low * unit, high=found.high * unit)


def weighted(
    estimates: Sequence[tuple[float | None, float | None, float | None]], weights: ArrayLike
) -> tuple[float, float, float]:
    """Returns the weighted sum of independent estimates, and both ends of its interval, from theirs; NaN for none.

    Source: Zou and Donner (2008).
    """
    numbers, shares = np.array(estimates, dtype=np.float64), np.asarray(weights)  # NaN for None
    value = float(shares @ np.ascontiguousarray(numbers[:, 0]))
    reach = np.abs((numbers[:, 1:] - numbers[:, :1]) * shares[:, None])
    reach[shares < 0.0] = reach[shares < 0.0, ::-1]
    below, above = (math.hypot(*side) for side in reach.T)
    return value, value - below, value + above


def _with_help(
    scores: Floats, items: Codes, run: LoadedRun, whole: Columns, ends: tuple[float, float] | None
) -> Interval:
    """Returns a judge's score of all responses from its scores of some and another judge's run of all.

    It holds whatever the other judge's bias: see :func:`~culture_tasks.metrics.prediction_powered.corrected_mean`.
    """
    order = np.argsort(whole.items)
    places = order[np.minimum(np.searchsorted(whole.items, items, sorter=order), order.size - 1)]
    known = whole.items[places] == items
    checked = np.full(whole.items.size, np.nan)
    checked[places[known]] = scores[known]
    found = corrected_mean(
        whole.scores,
        checked,
        pooled([CultureInTask("", culture, culture) for culture in cultures_of(run)], ~np.isnan(checked[None])),
        clusters=whole.clusters if np.unique(whole.clusters).size < whole.clusters.size else None,
        ends=ends,
    ).overall
    return Interval(
        found.value, found.set_low, found.set_high, n=found.rated, clusters=found.rated, reason=found.reason
    )


def cultures_of(each: LoadedRun) -> list[str]:
    """Returns the culture of each sample of a run; empty texts where its benchmark names none."""
    columns, known = columns_of(each), benchmarks().get(each.run.benchmark or "")
    groups = None if known is None else columns.groups.get(known.report().culture)
    if groups is None:
        return [""] * columns.items.size
    return [groups.names[code] for code in groups.codes.tolist()]


class CultureInTask(NamedTuple):
    """The responses of one culture in one task; as text, their name for a reader."""

    task: str
    culture: str
    name: str

    def __str__(self) -> str:
        return self.name


def pooled(strata: Sequence[CultureInTask], graded: Mask) -> list[CultureInTask]:
    """Puts cultures with fewer than two graded responses in some task together with others; a row per entrant.

    Every response had the same chance to be graded, so that strata may be put together.
    """

    def lacking(labels: Sequence[CultureInTask]) -> set[CultureInTask]:
        counts = [Counter(compress(labels, own)) for own in graded]
        return {label for label, size in Counter(labels).items() if min(own[label] for own in counts) < min(2, size)}

    both: Mask = np.logical_and.reduce(graded)
    counts = Counter(stratum.culture for stratum in compress(strata, both))
    few = {stratum.culture for stratum in lacking(strata)}
    others = sorted({stratum.culture for stratum in strata} - few, key=lambda culture: counts[culture])
    found = list(strata)
    while few:
        found = [one._replace(culture="", name="other cultures") if one.culture in few else one for one in strata]
        if not (lacking(found) and others):
            break
        few.add(others.pop(0))
    return found


def cell_of(
    observed: Observations, scale: Scale, flags: Sequence[Flag] = (), where: Where = (), *, min_coverage: float = 0.0
) -> Cell:
    """Returns the cell of some observations; low coverage and other models' scores add flags."""
    found = interval(observed, scale) if observed.scores.size else None
    own: set[Flag] = set(flags) - {"low_coverage", "control_variates"}
    if observed.is_drawn and any(run.others for run in observed.drawn.values()):
        own.add("control_variates")
    if observed.coverage is not None and observed.coverage < min_coverage:
        own.add("low_coverage")
    return from_interval(found, scale, flags=own, runs=observed.runs, where=where, coverage=observed.coverage)


def from_interval(
    found: Interval | None,
    scale: Scale,
    flags: set[Flag],
    runs: tuple[str, ...],
    where: Where = (),
    coverage: float | None = None,
) -> Cell:
    """Returns the cell of an interval; what is NaN there is None here, and the reason is the note.

    Where the interval goes beyond the ends of the scale it is cut there: no true score lies beyond them.
    """
    cell = Cell(None, scale, flags=ordered(flags), runs=runs, where=where, coverage=coverage)
    if found is None or math.isnan(found.value):
        return cell
    low = known(found.low if scale.low is None else max(found.low, scale.low))
    high = known(found.high if scale.high is None else min(found.high, scale.high))
    note = f"no interval: {found.reason}" if found.reason and math.isnan(found.low) else ""
    return replace(cell, value=found.value, low=low, high=high, n=found.n, note=note)


def known(value: float) -> float | None:
    """Returns a number, or None for NaN."""
    return None if math.isnan(value) else float(value)


def ordered(flags: set[Flag]) -> tuple[Flag, ...]:
    """Returns flags in one order."""
    return tuple(sorted(flags))
