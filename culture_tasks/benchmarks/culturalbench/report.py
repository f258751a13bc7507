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
    FigureOf,
    FurtherScore,
    TableOf,
    UnitOf,
    columns_by,
    scores_by,
)
from culture_tasks.vocabulary import places

_PAPER = "CulturalBench (Chiu et al., 2024)"
_FURTHER = {OF_ROWS: "Options", SAID_TRUE: "Called true", UNPARSED: "Unparsed"}


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    columns = []
    for unit in units:
        form = "Hard" if unit.key.endswith("hard") else "Easy"
        columns.append(ColumnOf(unit.key, "Questions", At(unit.key), form))
        columns += [
            ColumnOf(f"{unit.key}_{name}", label, At(unit.key, name), form)
            for name, label in _FURTHER.items()
            if form == "Hard" or name == UNPARSED
        ]
        yield TableOf(
            key=f"{unit.key}_by_country",
            title=f"CulturalBench-{form}: questions answered right in percent, by country",
            source=_PAPER,
            columns=(
                *columns_by("country", dict(zip(COUNTRIES, COUNTRIES, strict=True)), unit.key),
                ColumnOf("all", "All", At(unit.key), sums_up=True),
            ),
            headers=MODEL,
        )
    yield TableOf(
        key="culturalbench",
        title="CulturalBench: questions answered right in percent",
        source=_PAPER,
        columns=tuple(columns),
        headers=MODEL,
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
        FigureOf(
            key="culturalbench_countries",
            title="CulturalBench by country",
            source=_PAPER,
            kind="bars",
            groups="country",
            value="Questions answered right (percent)",
            mark=scores_by("country"),
        ),
    ),
)
