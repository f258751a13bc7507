"""Which figures a report has of numbers that a paper sets side by side: two bars and their difference in each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from culture_tasks.report.figures.charts import Chart, Panel, Series
from culture_tasks.report.figures.labels import Labels
from culture_tasks.report.figures.notes import notes
from culture_tasks.report.model import GroupValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from culture_tasks.report.model import Cell, Contrast, Report

DIFFERENCE = "Difference"
"""Label of the third series of a panel, which is written and not drawn."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one figure is made of a report's contrasts.

    Attributes:
        key: Names the figure and its files.
        title: What it shows.
        source: The paper's figure.
        statistic: Which numbers.
        groups: What their groups are, in words.
        series: What the two numbers differ in.
        first: Label of the first numbers.
        second: Label of the second numbers.
        kind: Which contrasts.
        dimensions: What the groups are.
        panel: Gives the title of a number's panel.
    """

    key: str
    title: str
    source: str
    statistic: str
    groups: str
    series: str
    first: str
    second: str
    kind: Literal["insertion", "language"]
    dimensions: tuple[str, ...]
    panel: Callable[[Labels, GroupValue], str]


_PLANS = (
    _Plan(
        *("care_languages", "CARE asked in English and natively", "CARE, Figure 6a", "score", "category"),
        *("asked in", "English", "the culture's own language"),
        kind="language",
        dimensions=("category",),
        panel=Labels.entrant_and_language,
    ),
    _Plan(
        *("crosscult_insertion", "Reliability without and with the insertion", "CrossCult-KIBench, Figure 5"),
        *("score", "topic and partition", "model", "base", "edited"),
        kind="insertion",
        dimensions=("topic", "partition"),
        panel=Labels.entrant,
    ),
    _Plan(
        *("crosscult_insertion_rouge_l", "Reliability without and with the insertion, by ROUGE-L"),
        *("CrossCult-KIBench, Figure 5", "rouge_l", "topic and partition", "model", "base", "edited"),
        kind="insertion",
        dimensions=("topic", "partition"),
        panel=Labels.entrant,
    ),
)


def contrast_charts(report: Report) -> Iterator[Chart]:
    """Yields every figure that the report has contrasts for."""
    for plan in _PLANS:
        found = [
            each
            for each in report.contrasts
            if (each.kind, each.statistic) == (plan.kind, plan.statistic)
            and each.dimension in plan.dimensions
            and each.first.value is not None
            and each.second.value is not None
        ]
        if found:
            yield _chart(report, plan, found)


def _chart(report: Report, plan: _Plan, found: Sequence[Contrast]) -> Chart:
    values = [_value(each, cell) for each in found for cell in (each.second, each.first)]
    labels = Labels(report, values)
    drawn: dict[str, dict[str, Contrast]] = {}
    for each in found:
        value = _value(each, each.second)
        drawn.setdefault(plan.panel(labels, value), {}).setdefault(labels.group(value), each)
    panels = tuple(_panel(plan, title, groups) for title, groups in drawn.items())
    below = f"Below each group: {plan.second} less {plan.first} on common items, with its paired 95 % interval"
    names = (plan.groups, plan.series, labels.metric(values))
    said = (*notes(report, "pairs", values, published=True), below)
    return Chart(plan.key, plan.title, plan.source, "pairs", *names, panels, said)


def _value(each: Contrast, cell: Cell) -> GroupValue:
    return GroupValue(each.unit, each.entrant, each.statistic, each.dimension, each.group, cell)


def _panel(plan: _Plan, title: str, groups: dict[str, Contrast]) -> Panel:
    series = (
        Series(plan.first, {name: each.first for name, each in groups.items()}),
        Series(plan.second, {name: each.second for name, each in groups.items()}),
        Series(DIFFERENCE, {name: each.difference for name, each in groups.items()}),
    )
    return Panel(title, tuple(groups), series)
