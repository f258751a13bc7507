"""CARE's test questions as documents of a harness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypedDict, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from culture_tasks.benchmarks.care.categories import Category, category_of
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Table, validated
from culture_tasks.errors import CultureTasksError, DataError

Language = Literal["ar", "ja", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

Scope = Literal["sub_nationwide", "nationwide", "continent_wide", "worldwide"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PEOPLE: Mapping[Language, str] = {"ar": "Arab", "ja": "Japanese", "zh": "Chinese"}
"""What the paper's role-play prompt (Figure 8) calls a native speaker."""

CONFIGS: Mapping[Language, str] = {"ar": "arabic", "ja": "japanese", "zh": "chinese"}

SOURCES: Mapping[Language, Source] = {
    language: Source(
        folder="care",
        stems=(f"{config.capitalize()}-test", f"{config.capitalize()}_test", config),
        hub="geyang627/CARE-eval",
        config=config,
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

Prompt = Literal["plain", "roleplay", "cot"]
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
    letters = re.sub(r"[^a-z]", "", text.casefold()).replace("nationalwide", "nationwide")
    for scope in SCOPES:
        if letters == scope.replace("_", ""):
            return scope
    raise ValueError(f"Allowed are {', '.join(SCOPES)}")


Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class CareRow(BaseModel):
    """One row as released: Hub ``geyang627/CARE-eval`` or the JSON files of the authors' repository."""

    model_config = ConfigDict(extra="forbid")

    question: Filled
    answer: Filled
    culture_type: Annotated[str, AfterValidator(_a_category)]
    associated_culture: Filled
    geographic_scope: Annotated[str, AfterValidator(_a_scope)]
    id: str | int | None = None
    source: str | None = None
    question_en: str | None = None
    answer_en: str | None = None


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
    data = fingerprint(row.model_dump() for row in rows)
    return [_document(table, index, row, language, english, data) for index, row in enumerate(rows)]


def _document(table: Table, index: int, row: CareRow, language: Language, english: bool, data: str) -> CareDoc:
    question, answer = (row.question_en, row.answer_en) if english else (row.question, row.answer)
    if not question or not question.strip() or not answer or not answer.strip():
        missing = "question_en" if not question or not question.strip() else "answer_en"
        raise DataError(
            f"{table.where(index)}, field {missing!r}: found nothing. The care_en_… tasks need English translations in "
            "the columns question_en and answer_en. Add them, or run the tasks in the culture's own language."
        )
    return CareDoc(
        id=f"{language}-{index if row.id is None else row.id}",
        language=language,
        prompt_language="en" if english else language,
        question=question,
        answer=answer,
        category=row.culture_type,
        culture=row.associated_culture,
        scope=row.geographic_scope,
        data=data,
    )
