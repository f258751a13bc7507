"""CARE's test questions as documents of a harness."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypedDict, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict

from culture_tasks.benchmarks.care.categories import Category, category_of
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import (
    Label,
    OptionalIdentifier,
    OptionalLabel,
    OptionalText,
    RowTable,
    Text,
    fingerprint,
    unique,
    validated,
)
from culture_tasks.errors import CultureTasksError, DataError, nearest

_log = logging.getLogger(__name__)

Language = Literal["ar", "ja", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

Scope = Literal["sub_nationwide", "nationwide", "continent_wide", "worldwide"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PEOPLE: Mapping[Language, str] = {"ar": "Arab", "ja": "Japanese", "zh": "Chinese"}
"""What the paper's role-play prompt (Figure 8) calls a native speaker."""

CONFIGS: Mapping[Language, str] = {"ar": "arabic", "ja": "japanese", "zh": "chinese"}

QUESTIONS = 150
"""Test questions of each culture (section 5)."""


def _names(people: str, culture: str) -> bool:
    return people.casefold() in culture.casefold()


SOURCES: Mapping[Language, Source] = {
    language: Source(
        folder="care",
        stems=(f"{config.capitalize()}-test", f"{config.capitalize()}_test", config),
        hub="geyang627/CARE-eval",
        config=config,
        release=ReleaseFacts(
            rows=QUESTIONS,
            questions=20,  # 40 of each language are known
            culture="associated_culture",
            fits=partial(_names, PEOPLE[language]),
            expected=f"a culture that is {PEOPLE[language]}, such as 'Native ({PEOPLE[language]})'",
        ),
    )
    for language, config in CONFIGS.items()
}

ALIASES = {
    "cul_type": "culture_type",
    "english_question": "question_en",
    "question_english": "question_en",
    "english_answer": "answer_en",
    "answer_english": "answer_en",
}

PromptName = Literal["plain", "roleplay", "cot"]
"""Prompting of the evaluated model: the question alone, Figure 8, or Figure 9."""


class CareDoc(TypedDict):
    """One question of CARE.

    ``question`` and ``answer`` are in English in the cross-lingual variant (section 5.2).
    """

    id: str
    language: str
    prompt_language: str
    question: str
    answer: str
    category: str
    culture: str
    scope: str
    data: str


def _a_category(text: str) -> Category:
    try:
        return category_of(text)
    except CultureTasksError as error:
        raise ValueError(str(error)) from None


def _a_scope(text: str) -> Scope:
    # Letters alone: the data have "Sub-nationwide" and "National-wide".
    letters = re.sub(r"[^a-z]", "", text.casefold()).replace("nationalwide", "nationwide")
    for scope in SCOPES:
        if letters == scope.replace("_", ""):
            return scope
    raise ValueError(f"{nearest(text.casefold(), SCOPES)} Allowed are {', '.join(SCOPES)}".strip())


class CareRow(BaseModel):
    """One row as released: Hub ``geyang627/CARE-eval`` or the JSON files of the authors' repository."""

    model_config = ConfigDict(extra="forbid")

    question: Text
    answer: Text
    culture_type: Annotated[str, AfterValidator(_a_category)]
    associated_culture: Label
    geographic_scope: Annotated[str, AfterValidator(_a_scope)]
    id: OptionalIdentifier = None
    source: OptionalLabel = None
    question_en: OptionalText = None
    answer_en: OptionalText = None


def load(language: Language, data_folder: Path | None, *, english: bool = False) -> list[CareDoc]:
    """Loads the test questions of one culture.

    Args:
        language: Language of the culture.
        data_folder: The user's data folder, or None.
        english: Ask and grade in English (section 5.2), which needs translated columns.

    Raises:
        DataError: If the data can't be used.
    """
    table = read_source(SOURCES[language], data_folder)
    rows = validated(table, CareRow, ALIASES)
    check_release(SOURCES[language].release, table, list(map(vars, rows)))
    data = fingerprint(row.model_dump() for row in rows)
    ids = list(unique(table, (row.id for row in rows), "id"))
    if repeats := [problem for _, problem in repeated(table, rows)]:
        if table.local:
            raise DataError(repeats[0])
        _log.warning("%s (%d in all)", repeats[0], len(repeats))
    texts = [
        _english(table, index, row) if english else _Texts(row.question, row.answer) for index, row in enumerate(rows)
    ]
    return [
        CareDoc(
            id=f"{language}-{identifier}",
            language=language,
            prompt_language="en" if english else language,
            question=text.question,
            answer=text.answer,
            category=row.culture_type,
            culture=row.associated_culture,
            scope=row.geographic_scope,
            data=data,
        )
        for identifier, text, row in zip(ids, texts, rows, strict=True)
    ]


def repeated(table: RowTable, rows: Iterable[CareRow]) -> Iterator[tuple[int, str]]:
    """Yields the rows that ask what an earlier row asks and have its answer, and what to say of each.

    Such a question would weigh twice.

    Args:
        table: Where the rows are from.
        rows: Its rows, in their order.
    """
    seen: dict[tuple[str, str], int] = {}
    for index, row in enumerate(rows):
        first = seen.setdefault((row.question.strip(), row.answer.strip()), index)
        if first != index:
            yield (
                index,
                f"{table.where(index)}, field 'question': {row.question!r:.80} stands with the same answer in "
                f"{table.where(first)} too. Expected a different question in each row. Remove one of them.",
            )


class _Texts(NamedTuple):
    question: str
    answer: str


def _english(table: RowTable, index: int, row: CareRow) -> _Texts:
    if row.question_en is None or row.answer_en is None:
        missing = "question_en" if row.question_en is None else "answer_en"
        raise DataError(
            f"{table.where(index)}, field {missing!r}: found nothing. The care_en_… tasks need English translations in "
            "the columns question_en and answer_en. Add them, or run the tasks in the culture's own language."
        )
    return _Texts(row.question_en, row.answer_en)
