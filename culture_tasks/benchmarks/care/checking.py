"""``culture-tasks data check care``: the test questions of the three cultures, counted beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import (
    ALIASES,
    LANGUAGES,
    QUESTIONS,
    SCOPES,
    SOURCES,
    CareRow,
    Language,
    repeated,
)
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.tables import RowTable

QUESTIONS_PER_CATEGORY = 30


def check(data_folder: Path | None) -> DataReport:
    """Checks the questions of all three cultures (:func:`~culture_tasks.data.checking.check_tables`)."""
    checks = [
        TableCheck(
            source=SOURCES[language],
            model=CareRow,
            aliases=ALIASES,
            id="id",
            problems=_repeats,
            counts=partial(_counts, language),
        )
        for language in LANGUAGES
    ]
    return check_tables("care", data_folder, checks)


def _repeats(table: RowTable, rows: Mapping[int, CareRow]) -> Iterator[str]:
    """Yields the questions that occur twice. On the Hub they are none of the user's business."""
    if table.local:
        yield from (problem for _, problem in repeated(table.part(list(rows)), rows.values()))


def _counts(language: Language, rows: Sequence[CareRow]) -> Iterator[Count]:
    yield Count(f"{language}: questions", str(len(rows)), str(QUESTIONS))
    categories = Counter(row.culture_type for row in rows)
    for category in CATEGORIES:
        yield Count(f"{language}: {category}", str(categories[category]), str(QUESTIONS_PER_CATEGORY))
    scopes = Counter(row.geographic_scope for row in rows)
    for scope in SCOPES:
        yield Count(f"{language}: {scope}", str(scopes[scope]))
    translated = sum(row.question_en is not None and row.answer_en is not None for row in rows)
    yield Count(f"{language}: with English translations, for care_en", str(translated))
