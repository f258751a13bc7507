"""How CulturalBench is reported: over all questions and by country, Easy beside Hard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from culture_tasks.benchmarks.culturalbench.benchmark import OF_ROWS, PERCENT, SAID_TRUE, SHARE, UNPARSED, UNREAD
from culture_tasks.benchmarks.culturalbench.documents import COUNTRIES
from culture_tasks.benchmarks.reporting import (
    MODEL,
    At,
    BenchmarkReport,
    ColumnOf,
    Field,
    FurtherScore,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
    columns_of,
)
from culture_tasks.vocabulary import places

_PAPER = "CulturalBench (Chiu et al., 2024)"
_FURTHER = {OF_ROWS: "Options", SAID_TRUE: "Called true", UNPARSED: "Unparsed"}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    columns = []
    for unit in units:
        is_hard = unit.key.removesuffix("_ll").endswith("hard")
        form = f"{'Hard' if is_hard else 'Easy'}{', by log-likelihood' if unit.key.endswith('_ll') else ''}"
        further = _FURTHER if is_hard else {UNPARSED: _FURTHER[UNPARSED]}
        columns += [
            ColumnOf(unit.key, "Questions", At(unit.key), form, {"form": form}),
            *columns_of(unit.key, further, over=form, prefix=f"{unit.key}_"),
        ]
        yield TableOf(
            key=f"{unit.key}_by_country",
            title=f"CulturalBench-{form}: questions answered right in percent, by country",
            source=_PAPER,
            columns=columns_by("country", dict(zip(COUNTRIES, COUNTRIES, strict=True)), unit.key, total="All"),
            headers=MODEL,
        )
    yield TableOf(
        key="culturalbench",
        title="CulturalBench: questions answered right in percent",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
        papers=("culturalbench_abstract",),
        notes=(
            "Hard: a question counts if all of its four options are judged right. Options: the share of single options "
            'that are, which is 75 for a model that always says "False". One in four options is true.',
        ),
    )


REPORT = BenchmarkReport(
    fields=(Field("country", COUNTRIES, {country: country for country in COUNTRIES}, places=places(COUNTRIES)),),
    splits=(("country",),),
    culture="country",
    further=(FurtherScore(OF_ROWS, PERCENT), FurtherScore(SAID_TRUE, SHARE), FurtherScore(UNPARSED, UNREAD)),
    tables=_tables,
    figures=(
        bars_by(
            "country",
            key="culturalbench_countries",
            title="CulturalBench by country",
            source=_PAPER,
            value="Questions answered right (percent)",
        ),
    ),
)
