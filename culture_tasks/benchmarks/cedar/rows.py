"""CEDAR's rows as released, and the English labels that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

from culture_tasks.benchmarks.cedar.labels import Emotion, Language, english_label
from culture_tasks.data.tables import Identifier, Label, OptionalLabel, Table, Text
from culture_tasks.errors import DataError

ALIASES: Final[Mapping[str, str]] = {
    "minority_label": "minority",
    "minority_answer": "minority",
    "second_label": "minority",
    "second_answer": "minority",
}
"""Other names of the minority label's column: the release with these labels is not published."""


class CedarRow(BaseModel):
    """One row as released."""

    model_config = ConfigDict(extra="forbid")

    id: Identifier
    narrative: str
    question: Text
    answer: Label
    english_ver_answer: OptionalLabel = None
    minority: OptionalLabel = None
    image: OptionalLabel = None


def translated(word: str, language: Language) -> Emotion | None:
    """Returns the English label of a localized one; None for an unknown word."""
    try:
        return english_label(word, language)
    except DataError:
        return None


def gold_label(table: Table, index: int, row: CedarRow, language: Language) -> Emotion:
    """Returns the English gold label: ``english_ver_answer`` where it is there, else what ``answer`` stands for.

    Raises:
        DataError: If it is none of the 14.
    """
    if row.english_ver_answer:
        return _label(table, index, "english_ver_answer", row.english_ver_answer, "en")
    return _label(table, index, "answer", row.answer, language)


def minority_label(table: Table, index: int, row: CedarRow, language: Language) -> Emotion | None:
    """Returns the English minority label, in whichever language it is written; None where the row has none.

    Raises:
        DataError: If it is none of the 14.
    """
    return _label(table, index, "minority", row.minority, language) if row.minority else None


def contradicts(row: CedarRow, gold: Emotion, language: Language) -> bool:
    """Returns whether ``answer`` is a known word for another label than the gold one."""
    return translated(row.answer, language) not in (gold, None)


def _label(table: Table, index: int, field: str, word: str, language: Language) -> Emotion:
    label = translated(word, language) or translated(word, "en")
    if label is not None:
        return label
    try:
        return english_label(word, language)
    except DataError as error:
        raise DataError(f"{table.where(index)}, field {field!r}: {error}") from None
