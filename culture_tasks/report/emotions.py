"""CEDAR's own numbers with intervals: macro average, variance, propensities and quadrant biases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, QUADRANT_NAMES, QUADRANTS
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.means import contributions, ratio_contributions
from culture_tasks.report.benchmarks import BIAS, PERCENT, RATIO, VARIANCE
from culture_tasks.report.columns import Codes, Floats, Mask
from culture_tasks.report.model import Cell, GroupValue, Scale
from culture_tasks.report.numbers import Where, from_interval
from culture_tasks.report.units import Measured


@dataclass(frozen=True, slots=True)
class Replies:
    """The replies of one entrant to a CEDAR task that count: those in officially supported languages.

    Attributes:
        run: Key of the run.
        gold: Gold label of each, as one column an emotion.
        predicted: Label that was read, likewise; a row without any where none could be read.
        language: Language of each, as a code of ``LANGUAGES``.
        scores: 100 for a right one, else 0.
        clusters: Scene of each.
    """

    run: str
    gold: Floats
    predicted: Floats
    language: Codes
    scores: Floats
    clusters: Codes

    def limited(self, mask: Mask) -> Replies:
        """Returns some of the replies."""
        return Replies(
            self.run,
            self.gold[mask],
            self.predicted[mask],
            self.language[mask],
            self.scores[mask],
            self.clusters[mask],
        )


def replies_of(measured: Measured, entrant: str) -> Replies | None:
    """Returns an entrant's replies to a task of CEDAR, or None without any."""
    for each in measured.runs[entrant]:
        if each.columns is None:
            continue
        counted = ~np.isnan(each.columns.scores)
        labels = {name: _indicators(each.columns.groups[name].names, EMOTIONS) for name in ("gold", "prediction")}
        languages = _indicators(each.columns.groups["language"].names, LANGUAGES)
        replies = Replies(
            each.run.key,
            labels["gold"][each.columns.groups["gold"].codes],
            labels["prediction"][each.columns.groups["prediction"].codes],
            languages[each.columns.groups["language"].codes].argmax(axis=1).astype(np.int32),
            each.columns.scores,
            each.columns.clusters,
        )
        return replies.limited(counted)
    return None


def _indicators(names: Iterable[str], known: tuple[str, ...]) -> Floats:
    """Returns one row a name, with a 1 at its place among the known ones."""
    return np.array([[float(name == each) for each in known] for name in names]).reshape(-1, len(known))


def average(measured: Measured, entrant: str) -> Cell | None:
    """Macro average of accuracy over languages (Table 1, Avg.), in percent; None without replies."""
    replies = replies_of(measured, entrant)
    if replies is None or not replies.scores.size:
        return None
    found = mean_interval(contributions(replies.scores, replies.language), replies.clusters)
    return from_interval(found, PERCENT, set(measured.flags[entrant]), (replies.run,))


def variance(measured: Measured, entrant: str) -> Cell | None:
    """Sample variance of accuracy over languages (Table 1, Var.); None with fewer than two languages."""
    replies = replies_of(measured, entrant)
    if replies is None or np.unique(replies.language).size < 2:
        return None
    sizes = np.bincount(replies.language, minlength=len(LANGUAGES))
    sums = np.bincount(replies.language, weights=replies.scores, minlength=len(LANGUAGES))
    value = float((sums[sizes > 0] / sizes[sizes > 0]).var(ddof=1))
    flags = tuple(sorted(measured.flags[entrant]))
    return Cell(value, VARIANCE, n=int(sizes.sum()), flags=flags, runs=(replies.run,))


def emotion_values(measured: Iterable[Measured]) -> Iterator[GroupValue]:
    """Yields propensities and quadrant biases of the pooled tasks, and those of each language."""
    for each in measured:
        if each.unit.benchmark != "cedar" or "_prompt_" in each.unit.key:
            continue
        for entrant in each.runs:
            replies = replies_of(each, entrant)
            if replies is not None:
                yield from _of_replies(each, entrant, replies)


def _of_replies(measured: Measured, entrant: str, replies: Replies) -> Iterator[GroupValue]:
    present = [code for code in range(len(LANGUAGES)) if (replies.language == code).any()]
    if len(present) > 1:
        yield from _biases(measured, entrant, replies, ("gepp", "grqb"), ())
    for code in present:
        where = (("language", LANGUAGES[code]),)
        yield from _biases(measured, entrant, replies.limited(replies.language == code), ("lsepp", "lsrqb"), where)


def _biases(
    measured: Measured, entrant: str, replies: Replies, names: tuple[str, str], where: Where
) -> Iterator[GroupValue]:
    flags = set(measured.flags[entrant])

    def value(statistic: str, dimension: str, group: str, per_item: Floats, scale: Scale) -> GroupValue:
        found = mean_interval(per_item, replies.clusters)
        cell = from_interval(found, scale, flags, (replies.run,), where)
        return GroupValue(measured.unit.key, entrant, statistic, dimension, group, cell)

    for at, emotion in enumerate(EMOTIONS):
        per_item = ratio_contributions(replies.predicted[:, at], replies.gold[:, at])
        yield value(names[0], "emotion", emotion, per_item, RATIO)
    for quadrant in QUADRANT_NAMES:
        inside = np.array([emotion in QUADRANTS[quadrant] for emotion in EMOTIONS], dtype=np.float64)
        per_item = 100.0 * ((replies.predicted - replies.gold) @ inside)
        yield value(names[1], "quadrant", quadrant, per_item, BIAS)
