"""How CulturalVQA is reported: by country and by facet (section 5).

The paper's own table isn't among the published ones yet. As soon as there is one whose columns have the key ``country``
or ``facet``, its rows stand below the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from culture_tasks import published
from culture_tasks.benchmarks.culturalvqa.documents import COUNTRIES, FACETS
from culture_tasks.benchmarks.reporting import BenchmarkReport, Field, TableOf, UnitOf, bars_by, columns_by
from culture_tasks.vocabulary import places

_UPPER = {"usa": "USA"}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit, (field, groups) in product(units, (("country", COUNTRIES), ("facet", FACETS))):
        labels = {group: _UPPER.get(group, group.title()) for group in groups}
        yield TableOf(
            key=f"{unit.key}_by_{field}",
            title=f"{unit.key}: share of answers that the judge calls correct, per {field}",
            source="CulturalVQA, section 5",
            columns=columns_by(field, labels, unit.key, printed={}, total="All"),
            papers=tuple(name for name in published.names() if name.startswith("culturalvqa_")),
        )


REPORT = BenchmarkReport(
    fields=(Field("country", COUNTRIES, names=_UPPER, places=places(COUNTRIES)), Field("facet", FACETS)),
    splits=(("country",), ("facet",)),
    culture="country",
    ability="perception",
    tables=_tables,
    figures=tuple(
        bars_by(
            field,
            key=f"culturalvqa_{field}",
            title=f"CulturalVQA by {field}",
            source=f"CulturalVQA, scores per {field}",
            value="Share of correct answers",
        )
        for field in ("country", "facet")
    ),
)
