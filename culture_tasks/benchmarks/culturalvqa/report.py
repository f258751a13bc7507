"""How CulturalVQA is reported: by country and by facet (section 5).

The paper's own table isn't among the published ones yet. As soon as there is one whose columns have the key ``country``
or ``facet``, its rows stand below the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from culture_tasks import published
from culture_tasks.benchmarks.culturalvqa.documents import COUNTRIES, FACETS
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnOf,
    Field,
    FigureOf,
    TableOf,
    UnitOf,
    columns_by,
    scores_by,
)
from culture_tasks.vocabulary import places

_UPPER = {"usa": "USA"}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        yield _by(unit.key, "country", COUNTRIES)
        yield _by(unit.key, "facet", FACETS)


def _by(unit: str, field: str, groups: Iterable[str]) -> TableOf:
    labels = {group: _UPPER.get(group, group.title()) for group in groups}
    return TableOf(
        key=f"{unit}_by_{field}",
        title=f"{unit}: share of answers that the judge calls correct, per {field}",
        source="CulturalVQA, section 5",
        columns=(
            *columns_by(field, labels, unit, printed={}),
            ColumnOf("all", "All", At(unit), printed={field: "average"}, sums_up=True),
        ),
        papers=tuple(name for name in published.names() if name.startswith("culturalvqa_")),
    )


REPORT = BenchmarkReport(
    fields=(
        Field("country", COUNTRIES, names=_UPPER, places=places(COUNTRIES)),
        Field("facet", FACETS),
    ),
    splits=(("country",), ("facet",)),
    culture="country",
    ability="perception",
    tables=_tables,
    figures=tuple(
        FigureOf(
            key=f"culturalvqa_{field}",
            title=f"CulturalVQA by {field}",
            source=f"CulturalVQA, scores per {field}",
            kind="bars",
            groups=field,
            value="Share of correct answers",
            mark=scores_by(field),
        )
        for field in ("country", "facet")
    ),
)
