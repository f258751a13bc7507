"""How CARE is reported: by culture and category, by culture and scope, and natively beside English (Figure 6a)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from culture_tasks.benchmarks.care.documents import CATEGORIES, SCOPES
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnOf,
    ContrastOf,
    Field,
    RunFacts,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
)

_LANGUAGES = {"zh": "Chinese", "ar": "Arabic", "ja": "Japanese"}  # in the order of the paper's tables
_PLACES = {"zh": "CN", "ar": "arab", "ja": "JP"}
"""The people whose culture is asked about, in their language: Chinese, Arab and Japanese (Figure 8)."""

_CATEGORIES = {name: "C. sense" if name == "commonsense" else name.title() for name in CATEGORIES}
_SCOPES = {name: name.replace("_", "-").capitalize() for name in SCOPES}
_PRINTED_SCOPES = {"sub_nationwide": "sub-nationalwide", "continent_wide": "continent-wide"}
_NATIVE = tuple(f"care_{language}" for language in _LANGUAGES)


def _tables(units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        # All three for a task of the user's own, which ends in none of the languages.
        ended = [language for language in _LANGUAGES if any(task.endswith(f"_{language}") for task in unit.tasks)]
        yield _by_category(unit.key, ended or _LANGUAGES)
        yield _by_scope(unit.key, ended or _LANGUAGES)


def _by_category(unit: str, languages: Iterable[str]) -> TableOf:
    columns: list[ColumnOf] = []
    for language in languages:
        columns += columns_by(
            "category",
            _CATEGORIES,
            unit,
            within=(("language", language),),
            over=_LANGUAGES[language],
            prefix=f"{language}_",
            printed={"language": language},
            total="Average",
        )
    return TableOf(
        key=f"{unit}_table_3",
        title=f"{unit}: mean rating (1 poor, 10 excellent) by culture and category",
        source="CARE, Tables 3 and 6",
        columns=tuple(columns),
        notes=("Average: the mean over all scored questions, not over the categories.",),
        papers=("care_table_3", "care_table_6"),
    )


def _by_scope(unit: str, languages: Iterable[str]) -> TableOf:
    columns = []
    for language, (scope, label) in product(languages, _SCOPES.items()):
        at = At(unit, where=(("language", language), ("scope", scope)))
        printed = {"language": language, "scope": _PRINTED_SCOPES.get(scope, scope)}
        columns.append(ColumnOf(f"{language}_{scope}", label, at, _LANGUAGES[language], printed=printed))
    return TableOf(
        key=f"{unit}_table_13",
        title=f"{unit}: mean rating (1 poor, 10 excellent) by culture and geographic scope",
        source="CARE, Table 13",
        columns=tuple(columns),
        papers=("care_table_13",),
    )


def _is_in_english(first: RunFacts, second: RunFacts) -> bool:
    """Whether one run asks in English what another run of the model asks in the culture's own language."""
    task = f"care_en_{second.task.removeprefix('care_')}" if second.task in _NATIVE else None
    return first.task == task and first.row == second.row


_RATING = "Mean rating (1 poor, 10 excellent)"

REPORT = BenchmarkReport(
    fields=(
        Field("language", tuple(sorted(_LANGUAGES)), names=_LANGUAGES, places=_PLACES),
        Field("category", CATEGORIES),
        Field("scope", SCOPES),
    ),
    splits=(("language",), ("category",), ("scope",), ("language", "category"), ("language", "scope")),
    culture="language",
    tables=_tables,
    figures=(
        bars_by(
            "category",
            key="care_category",
            title="CARE by category",
            source="CARE, Figure 6a",
            value=_RATING,
            held=("language",),
        ),
    ),
    contrasts=(
        ContrastOf(
            kind="language",
            key="care_languages",
            title="CARE asked in English and natively",
            source="CARE, Figure 6a",
            beside=_is_in_english,
            splits=(("language",), ("language", "category")),
            words=("asked in English", "asked in the culture's own language"),
            parts=("English", "Native"),
            values={"score": _RATING},
            groups="category",
            series="asked in",
            rows=("language", "Culture"),
            panel=lambda number: f"{number.model} · {number.held.get('language', number.title)}",
        ),
    ),
    as_published=_NATIVE,
    published={("score", "category"): ("care_table_3", "care_table_6")},
)
