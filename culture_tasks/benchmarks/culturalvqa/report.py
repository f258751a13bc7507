"""How CulturalVQA is reported: by country and by facet (section 5).

The paper's own table isn't among the published ones yet. As soon as there is one whose columns have the key ``country``
or ``facet``, its rows stand below the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from culture_tasks import published
from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.benchmarks.reporting import At, BenchmarkReport, Field, FigureOf, Shown, TableOf, UnitOf

_UPPER = {"usa": "USA"}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        yield _by(unit.key, "country", COUNTRIES)
        yield _by(unit.key, "facet", FACETS)


def _by(unit: str, field: str, groups: tuple[str, ...]) -> TableOf:
    columns = [
        Shown(each, _UPPER.get(each, each.title()), At(unit, where=((field, each),)), printed={field: each})
        for each in groups
    ]
    return TableOf(
        key=f"{unit}_by_{field}",
        title=f"{unit}: share of answers that the judge calls correct, per {field}",
        source="CulturalVQA, section 5",
        columns=(*columns, Shown("all", "All", At(unit), printed={field: "average"}, sums_up=True)),
        papers=tuple(name for name in published.names() if name.startswith("culturalvqa_")),
    )


_CORRECT = "Share of correct answers"

REPORT = BenchmarkReport(
    fields=(
        Field("country", COUNTRIES, names=_UPPER, cultures={"china": "Chinese", "usa": "American", "india": "Indian"}),
        Field("facet", FACETS),
    ),
    splits=(("country",), ("facet",)),
    culture="country",
    tables=_tables,
    figures=(
        FigureOf(
            key="culturalvqa_country",
            title="CulturalVQA by country",
            source="CulturalVQA, scores per country",
            kind="bars",
            dimensions=("country",),
            groups="country",
            value=_CORRECT,
        ),
        FigureOf(
            key="culturalvqa_facet",
            title="CulturalVQA by facet",
            source="CulturalVQA, scores per facet",
            kind="bars",
            dimensions=("facet",),
            groups="facet",
            value=_CORRECT,
        ),
    ),
)
