"""What was observed of a unit: the samples of a row as columns, and the number with its interval that they make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Answers, Codes, Floats, Mask, Texts, Where
from culture_tasks.metrics.intervals import Interval, mean_interval, share_interval
from culture_tasks.metrics.means import contributions, mean_and_error
from culture_tasks.report.loaded_runs import LoadedRun
from culture_tasks.report.model import Cell, Flag

SCORE = "score"
"""The statistic that is the mean of a unit's own score."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Scored and unscored samples of one entrant.

    Attributes:
        runs: Keys of the runs that they come from.
        items: What was asked, the same number in every entrant.
        scores: NaN without one.
        clusters: What items share.
        strata: Parts of the score, numbered; None where every item weighs the same.
        coverage: Scored verdicts over verdicts; None without any.
        shares: What each part counts, by its number; None where all count the same.
    """

    runs: tuple[str, ...]
    items: NDArray[np.int64]
    scores: Floats
    clusters: Codes
    strata: Codes | None
    coverage: float | None
    shares: Floats | None = None

    @property
    def n(self) -> int:
        """Number of items with a score."""
        return int(np.count_nonzero(~np.isnan(self.scores)))


def observe(
    runs: Sequence[LoadedRun],
    tasks: Sequence[str],
    where: Where = (),
    *,
    statistic: str = SCORE,
    equal_parts: bool = False,
) -> Observations:
    """Gathers samples.

    Args:
        runs: Runs that have samples.
        tasks: Tasks of the unit, in the order in which all entrants number them.
        where: Groups that the samples must belong to.
        statistic: The score, or the name of a further score.
        equal_parts: Whether the tasks weigh the same, rather than the items.
    """
    used = [(each, each.columns, mask) for each, mask in _chosen(runs, where) if each.columns is not None]
    if not used:
        nothing = np.zeros(0, dtype=np.int32)
        return Observations(
            (), nothing.astype(np.int64), scores=np.zeros(0), clusters=nothing, strata=None, coverage=None
        )
    parts = np.concatenate([np.full(mask.sum(), tasks.index(each.run.task), np.int32) for each, _, mask in used])
    items = np.concatenate([columns.items[mask] for _, columns, mask in used])
    scores = [columns.scores if statistic == SCORE else columns.further[statistic] for _, columns, _ in used]
    scored = sum(int(columns.scored[mask].sum()) for _, columns, mask in used)
    verdicts = sum(int(columns.verdicts[mask].sum()) for _, columns, mask in used)
    return Observations(
        runs=tuple(each.run.key for each, _, _ in used),
        items=(parts.astype(np.int64) << 32) | items,
        scores=np.concatenate([own[mask] for own, (_, _, mask) in zip(scores, used, strict=True)]),
        clusters=np.concatenate([columns.clusters[mask] for _, columns, mask in used]),
        strata=parts if equal_parts else None,
        coverage=scored / verdicts if verdicts else None,
    )


def _chosen(runs: Sequence[LoadedRun], where: Where) -> Iterator[tuple[LoadedRun, Mask]]:
    """Yields the runs that have samples in these groups, each with which of its samples they are."""
    for each in runs:
        mask = np.zeros(0, dtype=np.bool_) if each.columns is None else each.columns.where(where)
        if mask.any():
            yield each, mask


def answers_of(runs: Sequence[LoadedRun], statistic: str = SCORE) -> tuple[Answers, Codes] | None:
    """Returns the samples with a score, or with a further score, as columns, and their clusters; None without any."""
    used = [each.columns for each in runs if each.columns is not None]
    numbers = [each.scores if statistic == SCORE else each.further[statistic] for each in used]
    columns = [(each, ~np.isnan(own)) for each, own in zip(used, numbers, strict=True)]
    if not any(mask.any() for _, mask in columns):
        return None
    fields = dict.fromkeys(field for each, _ in columns for field in each.groups)
    groups = {
        field: _joined([each.groups[field].only(mask) for each, mask in columns if field in each.groups])
        for field in fields
    }
    scores = np.concatenate([own[mask] for own, (_, mask) in zip(numbers, columns, strict=True)])
    whole = {field: texts for field, texts in groups.items() if texts.codes.size == scores.size}
    return Answers(scores, whole), np.concatenate([each.clusters[mask] for each, mask in columns])


def _joined(parts: Sequence[Texts]) -> Texts:
    """Returns columns of texts one below the other, with one numbering."""
    names = {name: code for code, name in enumerate(dict.fromkeys(name for each in parts for name in each.names))}
    codes = [np.array([names[name] for name in each.names], dtype=np.int32)[each.codes] for each in parts]
    return Texts(np.concatenate(codes), tuple(names))


def repeat_means(runs: Sequence[LoadedRun], tasks: Sequence[str], where: Where, *, equal_parts: bool) -> list[float]:
    """Returns the score of each repeat by itself; nothing where the items weren't all asked equally often, or once.

    Args:
        runs: Runs that have samples.
        tasks: Tasks of the unit.
        where: Groups that the samples must belong to.
        equal_parts: Whether the tasks weigh the same, rather than the items.
    """
    tables = [
        columns.repeats[mask]
        for each, mask in _chosen(runs, where)
        if (columns := each.columns) is not None and columns.repeats is not None
    ]
    observed = observe(runs, tasks, where, equal_parts=equal_parts)
    if len({table.shape[1] for table in tables}) != 1 or sum(map(len, tables)) != observed.items.size:
        return []
    repeats = np.concatenate(tables).T
    means = (mean_and_error(contributions(each, observed.strata, observed.shares)).value for each in repeats)
    return [mean for mean in means if not math.isnan(mean)]


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
    """Returns what two have observed of the items that both have a score for, in one order; both are in order."""
    if np.array_equal(one.items, two.items):
        return one, two
    items = np.intersect1d(one.items, two.items, assume_unique=True)
    first, second = (_chosen_items(each, np.searchsorted(each.items, items)) for each in (one, two))
    return first, second


def _chosen_items(observed: Observations, at: NDArray[np.intp]) -> Observations:
    return replace(
        observed,
        items=observed.items[at],
        scores=observed.scores[at],
        clusters=observed.clusters[at],
        strata=None if observed.strata is None else observed.strata[at],
    )


def interval(observed: Observations, scale: Scale) -> Interval:
    """Returns a score with its 95 % interval.

    Right/wrong scores get Wilson's interval, any others Student's t; both count clusters where items share one.
    """
    clusters = observed.clusters if np.unique(observed.clusters).size < observed.clusters.size else None
    width = _right_or_wrong(observed, scale)
    if width is None:
        return mean_interval(contributions(observed.scores, observed.strata, observed.shares), clusters)
    found = share_interval(observed.scores / width, clusters)
    return found._replace(value=found.value * width, low=found.low * width, high=found.high * width)


def _right_or_wrong(observed: Observations, scale: Scale) -> float | None:
    """Returns the score of a right answer where all scores are right or wrong, or None."""
    if observed.strata is not None or scale.low != 0.0 or scale.unit not in ("share", "percent"):
        return None
    width = 0.0 if scale.high is None else scale.high
    known = observed.scores[~np.isnan(observed.scores)]
    return width if width and np.isin(known, (0.0, width)).all() else None


def cell_of(
    observed: Observations, scale: Scale, flags: Sequence[Flag] = (), where: Where = (), *, min_coverage: float = 0.0
) -> Cell:
    """Returns the cell of some observations; low coverage adds a flag."""
    found = interval(observed, scale) if observed.scores.size else None
    own: set[Flag] = set(flags) - {"low_coverage"}
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
    if found is None or math.isnan(found.value):
        return Cell(None, scale, flags=ordered(flags), runs=runs, where=where, coverage=coverage)
    return Cell(
        found.value,
        scale,
        low=known(found.low if scale.low is None else max(found.low, scale.low)),
        high=known(found.high if scale.high is None else min(found.high, scale.high)),
        n=found.n,
        coverage=coverage,
        flags=ordered(flags),
        runs=runs,
        where=where,
        note=f"no interval: {found.reason}" if found.reason and math.isnan(found.low) else "",
    )


def known(value: float) -> float | None:
    """Returns a number, or None for NaN."""
    return None if math.isnan(value) else float(value)


def ordered(flags: set[Flag]) -> tuple[Flag, ...]:
    """Returns flags in one order."""
    return tuple(sorted(flags))
