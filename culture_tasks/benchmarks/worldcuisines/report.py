"""How WorldCuisines is reported: by type of question, as in the paper's tables, and by language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from culture_tasks.benchmarks.reporting import (
    MODEL,
    BenchmarkReport,
    Field,
    FurtherScore,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
)
from culture_tasks.benchmarks.worldcuisines.scoring import AUTHORS, FORMS
from culture_tasks.benchmarks.worldcuisines.vocabulary import LANGUAGES, TYPES, Format
from culture_tasks.vocabulary import countries

_PAPER = "WorldCuisines (Winata et al., 2025)"
_TITLES = {each.name: each.title for each in TYPES}
_COUNTRIES = countries()  # "Korea" of the knowledge base is none of them: it may be either
_PUBLISHED = {"choices": AUTHORS, "open": "score"}
"""The numbers that the authors publish, by form of answer."""


def _is_open(unit: str) -> bool:
    return "_open" in unit


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        form: Format = "open" if _is_open(unit.key) else "choices"
        printed = {"form": form, "set": "large" if "_large" in unit.key else "small"}
        for metric in FORMS[form].metrics:
            statistic = "score" if metric is FORMS[form].metrics[0] else metric.name
            yield TableOf(
                key=f"{unit.key}_{statistic}_by_question",
                title=f"{unit.key}: {metric.title} in percent, by type of question",
                source=_PAPER,
                columns=columns_by("question", _TITLES, unit.key, statistic, printed=printed, total="Average"),
                headers=MODEL,
                notes=("Average: the mean over the types, each of which weighs the same.",),
                papers=("worldcuisines_scores",)
                if statistic == _PUBLISHED[form] and len(unit.tasks) == len(TYPES)
                else (),
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
    further=tuple(FurtherScore(metric.name, metric.scale) for form in FORMS.values() for metric in form.metrics[1:]),
    tables=_tables,
    figures=tuple(
        bars_by(
            "language",
            key=f"worldcuisines{ending}_languages",
            title=f"WorldCuisines{words} by language",
            source=_PAPER,
            value=value,
            units=units,
        )
        for ending, words, value, units in (
            ("", "", "Accuracy (percent)", lambda unit: not _is_open(unit)),
            ("_open", ", open answers,", "Replies with the answer (percent)", _is_open),
        )
    ),
)
