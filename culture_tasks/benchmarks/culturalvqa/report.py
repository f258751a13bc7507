"""How CulturalVQA is reported: by country and by facet (section 5).

The paper's own table isn't among the published ones yet. As soon as there is one whose columns have the key ``country``
or ``facet``, its rows are shown below the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product

from culture_tasks import published
from culture_tasks.benchmarks.culturalvqa.documents import COUNTRIES, FACETS
from culture_tasks.benchmarks.reporting import BenchmarkReport, Groups, TableOf, UnitOf, bars_by, columns_by
from culture_tasks.vocabulary import places


def _tables(countries: Mapping[str, str], units: Iterable[UnitOf]) -> Iterator[TableOf]:
    facets = {facet: facet.title() for facet in FACETS}
    for unit, (field, labels) in product(units, (("country", countries), ("facet", facets))):
        yield TableOf(
            key=f"{unit.key}_by_{field}",
            title=f"{unit.key}: share of answers that the judge calls correct, per {field}",
            source="CulturalVQA, section 5",
            columns=columns_by(field, labels, unit.key, printed={}, total="All"),
            papers=tuple(name for name in published.names() if name.startswith("culturalvqa_")),
        )


def report_of(name: str, title: str, countries: Mapping[str, str], codes: Mapping[str, str]) -> BenchmarkReport:
    """Returns how CulturalVQA, or a culture like it, is reported.

    Args:
        name: Name of the benchmark.
        title: Its title.
        countries: Its countries, with their labels.
        codes: The codes of their places.
    """
    return BenchmarkReport(
        groups={"country": Groups(countries, places=codes), "facet": Groups(FACETS)},
        splits=(("country",), ("facet",)),
        culture="country",
        ability="perception",
        tables=partial(_tables, countries),
        figures=tuple(
            bars_by(
                field,
                key=f"{name}_{field}",
                title=f"{title} by {field}",
                source=f"CulturalVQA, scores per {field}",
                value="Share of correct answers",
            )
            for field in ("country", "facet")
        ),
    )


REPORT = report_of(
    "culturalvqa",
    "CulturalVQA",
    {country: country.title() for country in COUNTRIES} | {"usa": "USA"},
    places(COUNTRIES),
)
