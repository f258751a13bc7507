"""Which figures a report has: the papers' pictures, for the user's models."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES
from culture_tasks.benchmarks.crosscult.vocabulary import PARTITIONS
from culture_tasks.report.figures.charts import Chart, panels
from culture_tasks.report.figures.contrasting import contrast_charts
from culture_tasks.report.figures.labels import QUADRANTS, Labels
from culture_tasks.report.figures.notes import notes
from culture_tasks.report.model import GroupValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from culture_tasks.report.figures.charts import Kind
    from culture_tasks.report.model import Report

    Name = Callable[[Labels, GroupValue], str]

_ORDER = (*EMOTIONS, *QUADRANTS.values(), *(language.upper() for language in LANGUAGES))
_PARTITIONS = tuple(partition.upper() for partition in PARTITIONS)
_PAIR = re.compile(r"_prompt_(?P<prompt>[a-z]{2})_data_(?P<data>[a-z]{2})$")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How one figure is made of a report's numbers.

    Attributes:
        key: Names the figure and its files.
        title: What it shows.
        source: The paper's figure.
        kind: How it is drawn.
        benchmark: Whose numbers.
        statistic: Which of its numbers.
        dimensions: What their groups are.
        groups: The same, in words.
        unit: What the keys of their units begin with.
        fixed: What must be held fixed beside the group.
        free: Fields that may be held fixed beside the group, at any value.
        series: What the series are.
        panel: Gives the title of a number's panel.
        line: Gives the label of its series.
        group: Gives the name of its group.
        order: Groups that come first.
    """

    key: str
    title: str
    source: str
    kind: Kind
    benchmark: str
    statistic: str
    dimensions: tuple[str, ...]
    groups: str
    unit: str = ""
    fixed: tuple[tuple[str, str], ...] = ()
    free: tuple[str, ...] = ()
    series: str = "model"
    panel: Name = Labels.unit_and_held
    line: Name = Labels.entrant
    group: Name = Labels.group
    order: tuple[str, ...] = _ORDER


_PLANS = (
    _Plan(
        *("culturalvqa_country", "CulturalVQA by country", "CulturalVQA, scores per country", "bars"),
        *("culturalvqa", "score", ("country",), "country"),
    ),
    _Plan(
        *("culturalvqa_facet", "CulturalVQA by facet", "CulturalVQA, scores per facet", "bars"),
        *("culturalvqa", "score", ("facet",), "facet"),
    ),
    _Plan(
        *("care_category", "CARE by category", "CARE, Figure 6a", "bars"),
        *("care", "score", ("category",), "category"),
        free=("language",),
    ),
    _Plan(
        *("cedar_gepp", "Emotion prediction propensity (GEPP)", "CEDAR, Figure 3", "points"),
        *("cedar", "gepp", ("emotion",), "emotion"),
        panel=Labels.modality,
    ),
    _Plan(
        *("cedar_lsepp", "Emotion prediction propensity by language (LSEPP)", "CEDAR, Figure 4", "radar"),
        *("cedar", "lsepp", ("emotion",), "emotion"),
        free=("language",),
        series="language",
        panel=Labels.entrant_and_modality,
        line=Labels.language,
    ),
    _Plan(
        *("cedar_grqb", "Bias towards Russell's quadrants (GRQB)", "CEDAR, Figure 5", "bars"),
        *("cedar", "grqb", ("quadrant",), "quadrant"),
        panel=Labels.modality,
    ),
    _Plan(
        *("cedar_lsrqb", "Bias towards Russell's quadrants by language (LSRQB)", "CEDAR, Figure 6", "points"),
        *("cedar", "lsrqb", ("quadrant",), "language"),
        free=("language",),
        panel=Labels.modality_and_group,
        group=Labels.language,
    ),
    _Plan(
        *("cedar_matrix", "Accuracy by prompt and data language", "CEDAR, Figure 7", "heat"),
        *("cedar", "score", ("pair",), "data language"),
        series="prompt language",
        panel=Labels.entrant_and_modality,
        line=Labels.prompt,
        group=Labels.data,
    ),
    _Plan(
        *("crosscult_reliability", "Single-insert reliability", "CrossCult-KIBench, Figure 5", "bars"),
        *("crosscult", "score", ("topic", "partition"), "topic and partition"),
        unit="crosscult_single",
        fixed=(("role", "reliability"),),
        panel=Labels.dimension,
        order=_PARTITIONS,
    ),
    _Plan(
        *("crosscult_diagnostic", "Scores with nothing inserted", "CrossCult-KIBench, Figure 1b", "bars"),
        *("crosscult", "score", ("partition",), "partition"),
        unit="crosscult_diagnostic",
        order=_PARTITIONS,
    ),
    _Plan(
        *("crosscult_retention", "Retention after each insertion", "CrossCult-KIBench, Figures 6, 11-13", "lines"),
        *("crosscult", "score", ("after",), "insertions so far"),
        unit="crosscult_retention",
        free=("partition",),
        series="inserted partition",
        panel=Labels.entrant_and_chain,
        line=Labels.partition,
    ),
    _Plan(
        *("crosscult_retention_rouge_l", "Retention by ROUGE-L", "CrossCult-KIBench, Figures 6, 11-13", "lines"),
        *("crosscult", "rouge_l", ("after",), "insertions so far"),
        unit="crosscult_retention",
        free=("partition",),
        series="inserted partition",
        panel=Labels.entrant_and_chain,
        line=Labels.partition,
    ),
)


def charts(report: Report, *, published: bool = False) -> tuple[Chart, ...]:
    """Returns every figure that the report has numbers for.

    Args:
        report: The report.
        published: Whether rows from papers are drawn beside the user's.
    """
    drawn = [
        value
        for value in (*report.groups, *_pairs(report))
        if value.cell.value is not None and (published or not report.entrants[value.entrant].published)
    ]
    picked = ((plan, _picked(report, plan, drawn)) for plan in _PLANS)
    made = (_chart(report, plan, values, published) for plan, values in picked if values)
    return (*made, *contrast_charts(report))


def _pairs(report: Report) -> Iterator[GroupValue]:
    """Yields accuracy by prompt and data language, which are tasks of their own."""
    for unit in report.units.values():
        found = _PAIR.search(unit.key) if unit.benchmark == "cedar" else None
        if found:
            for entrant, cell in unit.cells.items():
                yield GroupValue(unit.key, entrant, "score", "pair", f"{found['prompt']}/{found['data']}", cell)


def _picked(report: Report, plan: _Plan, values: Sequence[GroupValue]) -> list[GroupValue]:
    return [
        value
        for value in values
        if value.statistic == plan.statistic
        and value.dimension in plan.dimensions
        and report.units[value.unit].benchmark == plan.benchmark
        and value.unit.startswith(plan.unit)
        and _fits(plan, value)
    ]


def _fits(plan: _Plan, value: GroupValue) -> bool:
    """Whether what is held fixed beside the group is what the figure needs: no more, and no less."""
    held = {pair for pair in value.cell.where if pair[0] not in (value.dimension, *plan.free)}
    return held == set(plan.fixed)


def _chart(report: Report, plan: _Plan, values: Sequence[GroupValue], published: bool) -> Chart:
    labels = Labels(report, values)
    made = panels(
        values,
        panel=lambda value: plan.panel(labels, value),
        series=lambda value: plan.line(labels, value),
        group=lambda value: plan.group(labels, value),
        order=plan.order,
    )
    names = (plan.key, plan.title, plan.source, plan.kind, plan.groups, plan.series, labels.metric(values))
    return Chart(*names, made, notes(report, plan.kind, values, published))
