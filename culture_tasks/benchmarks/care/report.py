"""How CARE is reported: by culture and category, by culture and scope, and natively beside English (Figure 6a)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import SCOPES
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ContrastFigure,
    ContrastOf,
    ContrastTable,
    Drawn,
    Field,
    FigureOf,
    OtherTask,
    Shown,
    TableOf,
    UnitOf,
)

_LANGUAGES = {"zh": "Chinese", "ar": "Arabic", "ja": "Japanese"}
"""In the order of the paper's tables."""

_CATEGORIES = {each: "C. sense" if each == "commonsense" else each.title() for each in CATEGORIES}
_SCOPES = {each: each.replace("_", "-").capitalize() for each in SCOPES}
_PRINTED_SCOPES = {"sub_nationwide": "sub-nationalwide", "continent_wide": "continent-wide"}
_NATIVE = tuple(f"care_{language}" for language in _LANGUAGES)


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        yield _by_category(unit)
        yield _by_scope(unit)


def _by_category(unit: UnitOf) -> TableOf:
    columns: list[Shown] = []
    for language in _present(unit):
        columns += [
            _column(unit, language, field="category", group=each, label=label, printed=each)
            for each, label in _CATEGORIES.items()
        ]
        average = At(unit.key, where=(("language", language),))
        printed = {"language": language, "category": "average"}
        columns.append(
            Shown(
                f"{language}_average", "Average", at=average, over=_LANGUAGES[language], printed=printed, sums_up=True
            )
        )
    return TableOf(
        key=f"{unit.key}_table_3",
        title=f"{unit.key}: mean rating (1 poor, 10 excellent) by culture and category",
        source="CARE, Tables 3 and 6",
        columns=tuple(columns),
        notes=("Average: the mean over all scored questions, not over the categories.",),
        papers=("care_table_3", "care_table_6"),
    )


def _by_scope(unit: UnitOf) -> TableOf:
    return TableOf(
        key=f"{unit.key}_table_13",
        title=f"{unit.key}: mean rating (1 poor, 10 excellent) by culture and geographic scope",
        source="CARE, Table 13",
        columns=tuple(
            _column(unit, language, field="scope", group=each, label=label, printed=_PRINTED_SCOPES.get(each, each))
            for language in _present(unit)
            for each, label in _SCOPES.items()
        ),
        papers=("care_table_13",),
    )


def _present(unit: UnitOf) -> list[str]:
    """Returns the languages that the unit's tasks end in; all three for a task of the user's own."""
    found = [language for language in _LANGUAGES if any(task.endswith(f"_{language}") for task in unit.tasks)]
    return found or list(_LANGUAGES)


def _column(unit: UnitOf, language: str, field: str, group: str, label: str, printed: str) -> Shown:
    return Shown(
        f"{language}_{group}",
        label,
        at=At(unit.key, where=(("language", language), (field, group))),
        over=_LANGUAGES[language],
        printed={"language": language, field: printed},
    )


def _asked_in_english(task: str) -> str | None:
    """Returns the task that asks in English what a task asks in the culture's own language."""
    return f"care_en_{task.removeprefix('care_')}" if task in _NATIVE else None


def _model_and_language(at: Drawn) -> str:
    return f"{at.model} · {at.held.get('language', at.title)}"


_RATING = "Mean rating (1 poor, 10 excellent)"

_NATIVELY_AND_IN_ENGLISH = ContrastOf(
    kind="language",
    source="CARE, Figure 6a",
    first=OtherTask(_asked_in_english),
    splits=(("language",), ("language", "category")),
    words=("asked in English", "asked in the culture's own language"),
    tables=(
        ContrastTable(
            key="care_languages",
            title="CARE: mean rating (1 poor, 10 excellent) asked in English and in the culture's own language",
            groups={(): "All"} | {(("category", each),): label for each, label in _CATEGORIES.items()},
            parts=("English", "Native"),
            headers=("Model", "Judge"),
            rows=("language", "Culture", _LANGUAGES),
            note="Difference: native less English, on the items that both have a score for, with a paired interval.",
        ),
    ),
    figures=(
        ContrastFigure(
            key="care_languages",
            title="CARE asked in English and natively",
            dimensions=("category",),
            groups="category",
            series="asked in",
            parts=("English", "the culture's own language"),
            panel=_model_and_language,
            value=_RATING,
        ),
    ),
)


REPORT = BenchmarkReport(
    fields=(
        Field(
            "language",
            tuple(sorted(_LANGUAGES)),
            names=_LANGUAGES,
            cultures=_LANGUAGES,
        ),
        Field("category", CATEGORIES),
        Field("scope", SCOPES),
    ),
    splits=(("language",), ("category",), ("scope",), ("language", "category"), ("language", "scope")),
    culture="language",
    tables=_tables,
    figures=(
        FigureOf(
            key="care_category",
            title="CARE by category",
            source="CARE, Figure 6a",
            kind="bars",
            dimensions=("category",),
            groups="category",
            free=("language",),
            value=_RATING,
        ),
    ),
    contrasts=(_NATIVELY_AND_IN_ENGLISH,),
    as_published=_NATIVE,
    published={("score", "category"): ("care_table_3", "care_table_6")},
)
