"""Scores of designed draws of the questions: their intervals, and differences of two draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.intervals import Interval, mean_interval
from culture_tasks.metrics.means import contributions
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.metrics.significance import p_of_interval
from culture_tasks.metrics.subsets import SamplingFrame, subset_interval
from culture_tasks.report.numbers.strata import CultureInTask, cultures_of, pooled
from culture_tasks.results.reading import Samples
from culture_tasks.results.runs import Run

if TYPE_CHECKING:
    from culture_tasks.report.numbers.selection import Selection


def has_design(selection: Selection) -> bool:
    """Whether a part is of a subset, and no two parts share a cluster: then there is an interval for the draw."""
    if not selection.subset_runs or not selection.items.size:
        return False
    parts_of_clusters = np.unique(np.stack([selection.clusters, selection.items >> 32]), axis=1)
    return bool(np.unique(parts_of_clusters[0]).size == parts_of_clusters.shape[1])


def by_design(selection: Selection, scale: Scale, width: float | None) -> Interval:
    """Returns the score of all documents, by the design of the draws; ``width`` is the score of a right answer."""
    parts = np.unique(selection.items >> 32)
    shares = np.ones(int(parts.max()) + 1) if selection.shares is None else selection.shares
    estimates = [_of_part(selection, part, scale, width) for part in parts.tolist()]
    return Interval(
        *weighted([estimate[:3] for estimate in estimates], shares[parts] / shares[parts].sum()),
        n=sum(estimate.n for estimate in estimates),
        clusters=sum(estimate.clusters for estimate in estimates),
        reason=next((estimate.reason for estimate in estimates if estimate.reason), None),
    )


def _of_part(selection: Selection, part: int, scale: Scale, width: float | None) -> Interval:
    """Returns the score of a part of the documents, without an error where all of them have an answer."""
    inside, run = selection.items >> 32 == part, selection.subset_runs.get(part)
    scores = contributions(selection.scores[inside], None if selection.strata is None else selection.strata[inside])
    clusters = None if selection.shared_clusters is None else selection.clusters[inside]
    if run is None or run.subset is None:
        estimate = mean_interval(scores, clusters)
        return estimate._replace(low=estimate.value, high=estimate.value)
    if run.whole is not None and run.whole.has_samples and selection.samples is not None:
        return _with_help(scores, selection.items[inside] & 0xFFFFFFFF, run.whole, selection.samples, scale)
    unit = width or 1.0
    estimate = subset_interval(scores / unit, clusters, run.subset.frame, shares=width is not None)
    return estimate._replace(value=estimate.value * unit, low=estimate.low * unit, high=estimate.high * unit)


def _with_help(scores: Floats, items: NDArray[np.int64], run: Run, samples: Samples, scale: Scale) -> Interval:
    """Returns a judge's score of all responses, from its scores of some and another judge's run of all."""
    assert run.samples is not None
    rows = run.samples.rows
    known = dict(zip(items.tolist(), scores.tolist(), strict=True))
    checked = np.array([known.get(item, math.nan) for item in samples.item[rows].tolist()])
    clusters = samples.cluster[rows]
    corrected = corrected_mean(
        samples.score[rows],
        checked,
        pooled([CultureInTask("", name, name) for name in cultures_of(samples, run)], ~np.isnan(checked[None])),
        clusters=clusters if np.unique(clusters).size < clusters.size else None,
        ends=scale.ends,
    ).overall
    ends = corrected.set_low, corrected.set_high
    return Interval(corrected.value, *ends, n=corrected.rated, clusters=corrected.rated, reason=corrected.reason)


def draw_of_both(first: Selection, second: Selection) -> SamplingFrame | None:
    """Returns the frame of two subsets where they are the same draw of one task; None elsewhere."""
    runs = [*first.subset_runs.values(), *second.subset_runs.values()]
    if len(runs) != 2 or not (has_design(first) and has_design(second)):
        return None
    if first.strata is not None or any(run.whole is not None for run in runs):
        return None
    one, other = (run.subset for run in runs)
    return one.frame if one is not None and one == other else None


def unpaired(first: Selection, second: Selection, scale: Scale, confidence: float = 0.95) -> Difference | None:
    """Returns the second score less the first, without pairs, where a part of both is of another draw; else None.

    Two draws by other seeds share few questions by chance, and these few would decide alone. A larger draw by the same
    seed holds the smaller one. The interval is by the intervals of both (Zou and Donner, 2008), as of normal
    distributions at another confidence than 95 %, and so is p.
    """
    parts = first.draws.keys() & second.draws.keys()
    if all(first.draws[part] == second.draws[part] for part in parts):
        return None
    estimates = [side.interval(scale) for side in (second, first)]
    value, low, high = weighted([estimate[:3] for estimate in estimates], (1.0, -1.0))
    reach = special.ndtri(0.5 + confidence / 2.0) / special.ndtri(0.975)
    return Difference(
        value,
        value - reach * (value - low),
        value + reach * (high - value),
        p_of_interval(value, low, high),
        n=min(first.n, second.n),
        method="unpaired",
        clusters=min(estimate.clusters for estimate in estimates),
    )


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
