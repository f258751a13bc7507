"""How WorldCuisines is reported: by type of question, as in the paper's tables, and by language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
from culture_tasks.benchmarks.worldcuisines.scoring import AUTHORS, DUAL, PERCENT, SINGLE, UNPARSED, UNREAD
from culture_tasks.benchmarks.worldcuisines.vocabulary import LANGUAGES, TYPES
from culture_tasks.vocabulary import countries

_PAPER = "WorldCuisines (Winata et al., 2025)"
_TITLES = {each.name: each.title for each in TYPES}
_COUNTRIES = countries()  # "Korea" of the knowledge base is none of them: it may be either
_READERS = {
    "choices": {"score": "accuracy", AUTHORS: "accuracy by the authors' reader", UNPARSED: "replies without a choice"},
    "open": {
        "score": "replies with the answer in any language",
        DUAL: "replies with the answer in the question's language or English",
        SINGLE: "replies with the answer in the question's language",
    },
}


def _is_open(unit: str) -> bool:
    return "_open" in unit


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        for statistic, quantity in _READERS["open" if _is_open(unit.key) else "choices"].items():
            yield TableOf(
                key=f"{unit.key}_{statistic}_by_question",
                title=f"{unit.key}: {quantity} in percent, by type of question",
                source=_PAPER,
                columns=(
                    *(
                        ColumnOf(name, title, At(unit.key, statistic, (("question", name),)))
                        for name, title in _TITLES.items()
                    ),
                    ColumnOf("average", "Average", At(unit.key, statistic), sums_up=True),
                ),
                headers=MODEL,
                notes=("Average: the mean over the types, each of which weighs the same.",),
            )
        yield TableOf(
            key=f"{unit.key}_by_language",
            title=f"{unit.key}: score in percent, by language",
            source=_PAPER,
            columns=columns_by("language", LANGUAGES, unit.key),
            headers=MODEL,
        )


REPORT = BenchmarkReport(
    fields=(
        Field("language", tuple(LANGUAGES), LANGUAGES),
        Field("question", tuple(_TITLES), _TITLES),
        Field("country", tuple(_COUNTRIES), places=_COUNTRIES),
    ),
    splits=(("language",), ("question",), ("country",)),
    culture="language",
    ability="perception",
    further=(
        FurtherScore(AUTHORS, PERCENT),
        FurtherScore(UNPARSED, UNREAD),
        FurtherScore(DUAL, PERCENT),
        FurtherScore(SINGLE, PERCENT),
    ),
    tables=_tables,
    figures=tuple(
        FigureOf(
            key=f"worldcuisines{'_open' if is_open else ''}_languages",
            title=f"WorldCuisines{', open answers,' if is_open else ''} by language",
            source=_PAPER,
            kind="bars",
            groups="language",
            value="Replies with the answer (percent)" if is_open else "Accuracy (percent)",
            mark=scores_by("language", units=_is_open if is_open else lambda unit: not _is_open(unit)),
        )
        for is_open in (False, True)
    ),
)
