"""How CARE is reported: by culture and category, by culture and scope, and natively beside English (Figure 6a)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product

from culture_tasks.benchmarks.care.documents import CATEGORIES, LANGUAGE_NAMES, RELEASED_SCOPES, SCOPES
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnOf,
    ContrastOf,
    Groups,
    RunFacts,
    TableOf,
    UnitOf,
    bars_by,
    columns_by,
)

_PLACES = {"zh": "CN", "ar": "arab", "ja": "JP"}
"""The people whose culture is asked about, in their language: Chinese, Arab and Japanese (Figure 8)."""

_CATEGORIES = {name: "C. sense" if name == "commonsense" else name.title() for name in CATEGORIES}
_PRINTED_SCOPES = {"sub_nationwide": "sub-nationalwide", "continent_wide": "continent-wide"}
_NATIVE = {f"care_en_{language}": f"care_{language}" for language in LANGUAGE_NAMES}


def _tables(languages: Mapping[str, str], units: Iterable[UnitOf]) -> Iterator[TableOf]:
    for unit in units:
        # All three for a user's task, which ends in none of the languages.
        unit_languages = {
            language: people
            for language, people in languages.items()
            if any(task.endswith(f"_{language}") for task in unit.tasks)
        }
        yield _category_table(unit.key, unit_languages or languages)
        yield _scope_table(unit.key, unit_languages or languages)


def _category_table(unit: str, languages: Mapping[str, str]) -> TableOf:
    columns: list[ColumnOf] = []
    for language, people in languages.items():
        columns += columns_by(
            "category",
            _CATEGORIES,
            unit,
            within=(("language", language),),
            over=people,
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


def _scope_table(unit: str, languages: Mapping[str, str]) -> TableOf:
    columns = []
    for (language, people), (scope, label) in product(languages.items(), RELEASED_SCOPES.items()):
        address = At(unit, where=(("language", language), ("scope", scope)))
        printed = {"language": language, "scope": _PRINTED_SCOPES.get(scope, scope)}
        columns.append(ColumnOf(f"{language}_{scope}", label, address, people, printed=printed))
    return TableOf(
        key=f"{unit}_table_13",
        title=f"{unit}: mean rating (1 poor, 10 excellent) by culture and geographic scope",
        source="CARE, Table 13",
        columns=tuple(columns),
        papers=("care_table_13",),
    )


_RATING = "Mean rating (1 poor, 10 excellent)"


def report_of(
    name: str, title: str, languages: Mapping[str, str], places: Mapping[str, str], native: Mapping[str, str]
) -> BenchmarkReport:
    """Returns how the tasks of CARE, or of a culture like it, are reported, without published numbers.

    Args:
        name: Name of the benchmark.
        title: Its title.
        languages: What its languages are called in tables: their own names, or the culture of their speakers.
        places: The places of their speakers.
        native: The task in a culture's own language, by the one that asks the same questions in English.
    """

    def beside(first: RunFacts, second: RunFacts) -> bool:
        """Whether one run asks in English the questions that another run asks in the culture's own language."""
        return native.get(first.task) == second.task and first.row == second.row

    return BenchmarkReport(
        groups={
            "language": Groups(dict(sorted(languages.items())), places=places),
            "category": Groups(CATEGORIES),
            "scope": Groups(SCOPES),
        },
        splits=(("language",), ("category",), ("scope",), ("language", "category"), ("language", "scope")),
        culture="language",
        tables=partial(_tables, languages),
        figures=(
            bars_by(
                "category",
                key=f"{name}_category",
                title=f"{title} by category",
                source="CARE, Figure 6a",
                value=_RATING,
                fixed=("language",),
            ),
        ),
        contrasts=(
            ContrastOf(
                kind="language",
                key=f"{name}_languages",
                title=f"{title} asked in English and natively",
                source="CARE, Figure 6a",
                beside=beside,
                splits=(("language",), ("language", "category")),
                words=("asked in English", "asked in the culture's own language"),
                parts=("English", "Native"),
                values={"score": _RATING},
                groups="category",
                series="asked in",
                rows=("language", "Culture"),
                panel=lambda number: f"{number.model} · {number.fixed.get('language', number.title)}",
            ),
        ),
        as_published=(),
    )


REPORT = replace(
    report_of("care", "CARE", LANGUAGE_NAMES, _PLACES, _NATIVE),
    as_published=tuple(_NATIVE.values()),
    published={("score", "category"): ("care_table_3", "care_table_6")},
)
