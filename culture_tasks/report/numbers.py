"""From columns to a number with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.intervals import Interval, mean_interval, share_interval
from culture_tasks.metrics.means import contributions
from culture_tasks.report.columns import Codes, Floats, Mask
from culture_tasks.report.loading import LoadedRun
from culture_tasks.report.model import Cell, Flag, Scale

Where = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Observations:
    """Scored and unscored samples of one entrant.

    Attributes:
        runs: Keys of the runs that they come from.
        items: What was asked, the same number in every entrant.
        scores: NaN without one.
        clusters: What items share.
        strata: Parts that weigh the same in the score, numbered; None where every item weighs the same.
        coverage: Scored verdicts over verdicts; None without any.
    """

    runs: tuple[str, ...]
    items: NDArray[np.int64]
    scores: Floats
    clusters: Codes
    strata: Codes | None
    coverage: float | None

    @property
    def n(self) -> int:
        """Number of items with a score."""
        return int(np.count_nonzero(~np.isnan(self.scores)))


def observe(
    runs: Sequence[LoadedRun],
    tasks: Sequence[str],
    where: Where = (),
    *,
    equal_parts: bool = False,
    extra: bool = False,
) -> Observations:
    """Gathers samples.

    Args:
        runs: Runs that have samples.
        tasks: Tasks of the unit, in the order in which all entrants number them.
        where: Groups that the samples must belong to.
        equal_parts: Whether the tasks weigh the same, rather than the items.
        extra: Whether the second score is wanted.
    """
    used: list[str] = []
    columns: list[tuple[Codes, Floats, Codes, Codes, Codes]] = []
    counts = np.zeros(2, dtype=np.int64)
    for each in runs:
        if each.columns is None:
            continue
        mask = each.columns.where(where) if where else np.ones(each.columns.items.size, dtype=np.bool_)
        if not mask.any():
            continue
        used.append(each.run.key)
        part = np.full(int(mask.sum()), tasks.index(each.run.task), dtype=np.int32)
        scores = each.columns.extra if extra else each.columns.scores
        columns.append((each.columns.items[mask], scores[mask], each.columns.clusters[mask], part, part))
        counts += each.columns.scored[mask].sum(), each.columns.verdicts[mask].sum()
    return _joined(used, columns, counts, equal_parts)


def _joined(
    used: list[str],
    columns: list[tuple[Codes, Floats, Codes, Codes, Codes]],
    counts: NDArray[np.int64],
    equal_parts: bool,
) -> Observations:
    if not columns:
        nothing = np.zeros(0, dtype=np.int32)
        return Observations((), nothing.astype(np.int64), np.zeros(0), nothing, None, None)
    items, scores, clusters, parts, _ = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Observations(
        tuple(used),
        (parts.astype(np.int64) << 32) | items,
        scores,
        clusters,
        parts if equal_parts else None,
        float(counts[0] / counts[1]) if counts[1] else None,
    )


def in_order(observed: Observations, items: NDArray[np.int64]) -> Observations:
    """Returns the observations of these items, all of which must be there, in their order."""
    order = np.argsort(observed.items, kind="stable")
    at = order[np.searchsorted(observed.items[order], items)]
    strata = None if observed.strata is None else observed.strata[at]
    return replace(
        observed, items=observed.items[at], scores=observed.scores[at], clusters=observed.clusters[at], strata=strata
    )


def common_items(one: Observations, two: Observations) -> NDArray[np.int64]:
    """Returns the items that both have a score for."""
    return np.intersect1d(one.items[~np.isnan(one.scores)], two.items[~np.isnan(two.scores)], assume_unique=True)


def interval(observed: Observations, scale: Scale) -> Interval:
    """Returns a score with its 95 % interval.

    Right/wrong scores get Wilson's interval, any others Student's t; both count clusters where items share one.
    """
    clusters = _clusters(observed)
    width = _right_or_wrong(observed, scale)
    if width is None:
        return mean_interval(contributions(observed.scores, observed.strata), clusters)
    found = share_interval(observed.scores / width, clusters)
    return found._replace(value=found.value * width, low=found.low * width, high=found.high * width)


def _clusters(observed: Observations) -> Codes | None:
    """Returns the clusters, or None where no two items share one."""
    return observed.clusters if np.unique(observed.clusters).size < observed.clusters.size else None


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
    return from_interval(found, scale, own, observed.runs, where, observed.coverage)


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


def select(mask: Mask, observed: Observations) -> Observations:
    """Returns the observations that a mask picks."""
    strata = None if observed.strata is None else observed.strata[mask]
    return replace(
        observed,
        items=observed.items[mask],
        scores=observed.scores[mask],
        clusters=observed.clusters[mask],
        strata=strata,
    )
