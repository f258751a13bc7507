"""Part of :mod:`culture_tasks.report.model`: what was found of whom, in long form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from culture_tasks.report.cells import Cell, Flag, Scale


@dataclass(frozen=True, slots=True)
class Entrant:
    """One row of the report: a model, or a model under settings of its own.

    Attributes:
        key: Names it within the report.
        model: The model's name.
        variation: What sets it apart from other rows of that model, such as ``judge: text overlap``; may be empty.
        published: Whether it comes from a paper.
        source: Paper, table, judge and date of a published one; else empty.
    """

    key: str
    model: str
    variation: str = ""
    published: bool = False
    source: str = ""

    @property
    def label(self) -> str:
        """Name for a table."""
        return f"{self.model} [{self.variation}]" if self.variation else self.model


@dataclass(frozen=True, slots=True)
class Unit:
    """What is measured as one number.

    Attributes:
        key: The task or group, such as ``culturalvqa``, ``care``, ``cedar_text``, ``arab_culture``.
        title: Name for a table.
        benchmark: Our benchmark; None for any other task.
        metric: The metric that its score is.
        scale: The scale of its score.
        about: What it measures, in a few words.
        headline: Whether it stands in the summary, and not only in a table of its benchmark.
        cells: The score of each entrant, by the entrant's key.
    """

    key: str
    title: str
    benchmark: str | None
    metric: str
    scale: Scale
    about: str
    headline: bool
    cells: Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class GroupValue:
    """One number of one group: what figures are drawn from.

    Attributes:
        unit: Key of the unit.
        entrant: Key of the entrant.
        statistic: ``score`` (the unit's own), or ``gepp``, ``lsepp``, ``grqb``, ``lsrqb``, ``rouge_l``.
        dimension: What the groups are: ``country``, ``facet``, ``category``, ``scope``, ``culture``, ``language``,
            ``emotion``, ``quadrant``, ``topic``, ``partition``, ``role``, ``pair`` (prompt language/data language),
            ``after`` (retention: number of insertions).
        group: The group.
        cell: The number. Its ``where`` has the same selection, with what else is held fixed, such as the language of
            an ``lsepp``.
    """

    unit: str
    entrant: str
    statistic: str
    dimension: str
    group: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class Fairness:
    """How evenly a unit's score spreads over the groups of one dimension.

    Attributes:
        unit: Key of the unit.
        entrant: Key of the entrant.
        dimension: What the groups are.
        best: Group with the best score.
        best_value: Its score.
        worst: Group with the worst score.
        worst_value: Its score: the worst-group score.
        gap: Best minus worst, in the direction that is better; 0 where all groups do equally well.
        variance: Sample variance over the groups, in squared units of the scale.
        groups: Number of groups that have a score.
        scale: The scale of the scores.
    """

    unit: str
    entrant: str
    dimension: str
    best: str
    best_value: float
    worst: str
    worst_value: float
    gap: float
    variance: float | None
    groups: int
    scale: Scale


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two entrants on the items of a unit that both answered.

    Attributes:
        unit: Key of the unit.
        first: Key of one entrant.
        second: Key of the other.
        difference: Score of the second minus score of the first on common items.
        low: Lower end of its interval.
        high: Upper end.
        p: The test's p-value.
        p_holm: The same after Holm's adjustment over all pairs of the unit.
        test: Name of the test.
        n: Number of common items.
        clusters: Number of clusters; None where the items are independent.
        verdict: In words, such as ``B is better`` or ``not distinguishable``.
        items_needed: Items that would tell them apart at this difference, 80 % of the time; None where unknown.
        flags: Why they should not have been compared, where the user insisted.
    """

    unit: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    test: str
    n: int
    clusters: int | None
    verdict: str
    items_needed: int | None
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two numbers of one group of one entrant that a paper sets side by side, and their paired difference.

    Attributes:
        kind: ``insertion`` (CrossCult-KIBench: the model as it was, and with an insertion) or ``language`` (CARE: asked
            in English, and in the culture's own language).
        unit: Key of the unit of the second number.
        entrant: Key of the entrant of the second number.
        statistic: ``score``, or ``rouge_l``.
        dimension: What the groups are.
        group: The group; what else is held fixed stands in the numbers' ``where``.
        first: The number of the model as it was, or of what was asked in English.
        second: The number with the insertion, or of what was asked in the culture's own language.
        difference: Second less first on the items that both have a score for, with a paired interval; without a value
            where the two can't be compared, unless the user insisted.
    """

    kind: Literal["insertion", "language"]
    unit: str
    entrant: str
    statistic: str
    dimension: str
    group: str
    first: Cell
    second: Cell
    difference: Cell
