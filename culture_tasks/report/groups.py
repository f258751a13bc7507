"""Numbers by group: countries, facets, categories, languages, roles, topics; the source of figures and of fairness."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import SCOPES
from culture_tasks.benchmarks.cedar.labels import LANGUAGES
from culture_tasks.benchmarks.crosscult.vocabulary import PARTITIONS, TOPICS, Role
from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.metrics.rankings import spread
from culture_tasks.report.benchmarks import PERCENT
from culture_tasks.report.model import Fairness, GroupValue
from culture_tasks.report.numbers import Where, cell_of
from culture_tasks.report.units import Measured

CULTURE_DIMENSION: Mapping[str, str] = {
    "culturalvqa": "country",
    "care": "language",
    "cedar": "language",
    "crosscult": "partition",
}
"""The dimension whose groups are cultures, by benchmark: what fairness is about."""

DIMENSIONS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "culturalvqa": (("country",), ("facet",)),
    "care": (("language",), ("category",), ("scope",), ("language", "category"), ("language", "scope")),
    "cedar": (("language",),),
    "crosscult": (
        *(("role",), ("topic",), ("partition",)),
        *(("role", "topic"), ("role", "partition"), ("role", "topic", "partition"), ("partition", "after")),
    ),
}
"""What each benchmark's score is split by: the last field is the dimension, those before it are held fixed."""

_ORDER: Mapping[str, Sequence[str]] = {
    "country": COUNTRIES,
    "facet": FACETS,
    "category": CATEGORIES,
    "scope": SCOPES,
    "language": LANGUAGES,
    "partition": PARTITIONS,
    "topic": TOPICS,
    "role": get_args(Role),
    "after": ("0", "1", "2", "3"),
}


def group_values(measured: Iterable[Measured]) -> Iterator[GroupValue]:
    """Yields the score of every entrant in every group, and CrossCult's second score likewise."""
    for each in measured:
        benchmark = each.unit.benchmark
        if benchmark is None:
            continue
        for fields in DIMENSIONS[benchmark]:
            for entrant in each.runs:
                yield from _of_entrant(each, entrant, fields)


def _of_entrant(measured: Measured, entrant: str, fields: tuple[str, ...]) -> Iterator[GroupValue]:
    for where in combinations_of(measured, entrant, fields):
        dimension, group = where[-1]
        cell = measured.cell(entrant, where)
        if cell is not None:
            yield GroupValue(measured.unit.key, entrant, "score", dimension, group, cell)
        if measured.unit.benchmark == "crosscult":
            observed = measured.observe(entrant, where, extra=True)
            flags = tuple(measured.flags[entrant] - {"lexical_judge", "other_judge", "other_judge_prompt"})
            overlap = cell_of(observed, PERCENT, flags, where)
            yield GroupValue(measured.unit.key, entrant, "rouge_l", dimension, group, overlap)


def combinations_of(measured: Measured, entrant: str, fields: tuple[str, ...]) -> list[Where]:
    """Returns the combinations of groups that an entrant has samples of, in the papers' order."""
    found: list[Where] = [()]
    for field in fields:
        found = [(*where, (field, name)) for where in found for name in groups_of(measured, entrant, field)]
    return found


def groups_of(measured: Measured, entrant: str, field: str) -> list[str]:
    """Returns the groups of a field that an entrant has samples of, in the papers' order; unnamed ones are left out."""
    present: dict[str, None] = {}
    for each in measured.runs[entrant]:
        if each.columns is not None and field in each.columns.groups:
            present.update(dict.fromkeys(each.columns.groups[field].present()))
    order = _ORDER.get(field, ())
    listed = [name for name in order if name in present]
    return [*listed, *sorted(name for name in present if name and name not in order)]


def fairness(values: Iterable[GroupValue], measured: Iterable[Measured]) -> list[Fairness]:
    """Works out how evenly each entrant's score spreads over the cultures of a unit; fewer than two give nothing."""
    dimension = {each.unit.key: CULTURE_DIMENSION[each.unit.benchmark or ""] for each in measured}
    found: dict[tuple[str, str], list[GroupValue]] = {}
    for value in values:
        if value.statistic == "score" and len(value.cell.where) == 1 and value.dimension == dimension[value.unit]:
            found.setdefault((value.unit, value.entrant), []).append(value)
    spreads = (_spread(*key, own) for key, own in found.items())
    return [each for each in spreads if each is not None]


def _spread(unit: str, entrant: str, values: Sequence[GroupValue]) -> Fairness | None:
    scale = values[0].cell.scale
    scores = {each.group: each.cell.value for each in values if each.cell.value is not None}
    if len(scores) < 2:
        return None
    found = spread(scores, ddof=1, higher_is_better=scale.better != "lower")
    return Fairness(
        unit,
        entrant,
        values[0].dimension,
        best=str(found.best_group),
        best_value=found.best,
        worst=str(found.worst_group),
        worst_value=found.worst,
        gap=found.gap,
        variance=found.variance,
        groups=found.groups,
        scale=scale,
    )
