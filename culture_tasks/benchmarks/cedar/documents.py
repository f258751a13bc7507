"""CEDAR's questions as documents of a harness, and the English labels of their rows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final, TypedDict

from pydantic import BaseModel, ConfigDict

from culture_tasks.benchmarks.cedar.labels import (
    FILE_NAMES,
    LANGUAGES,
    MISSPELLINGS,
    MODALITIES,
    OPTION_WORDS,
    Emotion,
    Language,
    Modality,
)
from culture_tasks.benchmarks.cedar.reading.folding import fold
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Identifier, Label, OptionalLabel, RowTable, Text, fingerprint, unique, validated
from culture_tasks.errors import DataError, SettingsError, nearest

_log = logging.getLogger(__name__)

FOLDER = "cedar"
NO_MINORITY = "none"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")

ITEMS: Mapping[Modality, int] = {"multimodal": 400, "text": 1_166}
"""Items of each language (Table 4)."""

_STEM = {"multimodal": "inq", "text": "nq"}


def _source(modality: Modality, language: Language) -> Source:
    """The released files are ``multilingual/arabic_inq_sample_10.json`` and the like.

    The layout of the text-only files is not published: the same with ``nq``, in any folder.
    """
    stem = f"{FILE_NAMES[language]}_{_STEM[modality]}"
    return Source(
        folder=FOLDER,
        stems=(f"multilingual/{stem}*", f"text/{stem}*", f"{stem}*", f"*/{stem}*"),
        hub=None,
        release=ReleaseFacts(
            rows=ITEMS[modality],
            culture="answer",
            fits=partial(_may_be_in, language),
            expected=f"a label in {FILE_NAMES[language].title()}, and not in another language",
        ),
    )


def _may_be_in(language: Language, word: str) -> bool:
    """Whether a gold label may be one of a language: a word of none says nothing, and an English one is accepted."""
    own = {language, "en"}
    known = {other for other in LANGUAGES if translated(word, other)}
    return not known or bool(known & own)


SOURCES: Mapping[tuple[Modality, Language], Source] = {
    (modality, language): _source(modality, language) for modality in MODALITIES for language in LANGUAGES
}


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


class CedarDoc(TypedDict):
    """One question of CEDAR in one language, its image aside.

    ``gold`` and ``minority`` are English labels. ``minority`` is empty where the data have no minority labels at all,
    and :data:`NO_MINORITY` where this item has none. ``supported`` is whether the evaluated model supports the language
    officially, as far as the user says. ``prompt_language`` is the language of the instruction and the
    options (section 4.4).
    """

    id: str
    modality: str
    language: str
    prompt_language: str
    narrative: str
    question: str
    gold: str
    minority: str
    supported: bool
    data: str


@dataclass(frozen=True)
class LanguageQuestions:
    """The documents of one language with what is needed to find their images.

    Attributes:
        table: The rows as read.
        documents: The documents, in the same order.
        image_names: Image file of each row.
        folder: Folder whose ``images`` holds them.
    """

    table: RowTable
    documents: Sequence[CedarDoc]
    image_names: Sequence[str]
    folder: Path


def load(
    modality: Modality, language: Language, data_folder: Path | None, prompt_language: Language | None = None
) -> LanguageQuestions:
    """Loads the questions of one language.

    Args:
        modality: ``text`` or ``multimodal``.
        language: Language of the data.
        data_folder: The user's data folder: CEDAR comes by request, not from the Hub.
        prompt_language: Language of the instruction; None means the data's own.

    Raises:
        DataError: If the data are missing or can't be used.
    """
    table = read_source(SOURCES[modality, language], data_folder)
    rows = validated(table, CedarRow, ALIASES)
    check_release(SOURCES[modality, language].release, table, list(map(vars, rows)))
    ids = list(unique(table, (row.id for row in rows), "id"))
    golds = [gold_label(row, language, table.where(index)) for index, row in enumerate(rows)]
    _warn(table, rows, golds, language)
    data = fingerprint(row.model_dump() for row in rows)
    documents = [
        CedarDoc(
            id=ids[index],
            modality=modality,
            language=language,
            prompt_language=prompt_language or language,
            narrative=row.narrative,
            question=row.question,
            gold=golds[index],
            minority=minority_label(row, language, table.where(index)) or "",
            supported=True,
            data=data,
        )
        for index, row in enumerate(rows)
    ]
    folder = (data_folder or Path()) / FOLDER  # there is one: CEDAR is not on the Hub
    names = [image_name(folder, row) for row in rows] if modality == "multimodal" else []
    return LanguageQuestions(table, documents, names, folder)


@cache
def _accepted(language: Language) -> Mapping[str, Emotion]:
    """Returns the labels of a language by their folded words."""
    words = {_folded(word): emotion for emotion, word in OPTION_WORDS[language].items()}
    return words | {_folded(word): emotion for word, emotion in MISSPELLINGS.get(language, {}).items()}


def _folded(word: str) -> str:
    return fold(word).strip()


def translated(word: str, language: Language) -> Emotion | None:
    """Returns the English label of a localized one; None for an unknown word."""
    return _accepted(language).get(_folded(word))


def gold_label(row: CedarRow, language: Language, place: str) -> Emotion:
    """Returns the English gold label: ``english_ver_answer`` where it is there, else the translated ``answer``.

    Args:
        row: The row.
        language: Language of the data.
        place: What an error calls the row.

    Raises:
        DataError: If it is none of the 14.
    """
    if row.english_ver_answer:
        return english_label(row.english_ver_answer, "en", f"{place}, field 'english_ver_answer'")
    return english_label(row.answer, language, f"{place}, field 'answer'")


def known_label(row: CedarRow, language: Language) -> Emotion | None:
    """Returns the English gold label as :func:`gold_label` does, and None where it is none of the 14."""
    try:
        return gold_label(row, language, "")
    except DataError:
        return None


def minority_label(row: CedarRow, language: Language, place: str) -> Emotion | None:
    """Returns the English minority label, in whichever language it is written; None where the row has none.

    Args:
        row: The row.
        language: Language of the data.
        place: What an error calls the row.

    Raises:
        DataError: If it is none of the 14.
    """
    return english_label(row.minority, language, f"{place}, field 'minority'") if row.minority else None


def contradicts(row: CedarRow, gold: Emotion, language: Language) -> bool:
    """Returns whether ``answer`` is a known word for another label than the gold one."""
    return translated(row.answer, language) not in (gold, None)


def english_label(word: str, language: Language, place: str) -> Emotion:
    """Returns the English label of a gold label that is written in a language or in English.

    Case, surrounding white space and spelling variants (Unicode form, nukta, hamza, diacritics) don't matter. No other
    form of the word is a label, because a gold label is data and not a reply.

    Args:
        word: The label of a released row.
        language: Code of the row's language.
        place: What an error calls the row and its field.

    Raises:
        DataError: If the language has no such label.
    """
    label = translated(word, language) or translated(word, "en")
    if label is not None:
        return label
    options = ", ".join(OPTION_WORDS[language].values())
    raise DataError(
        f"{place}: cedar: {word!r} is no gold label of {FILE_NAMES[language]} data."
        f"{nearest(_folded(word), _accepted(language))} Allowed are: {options}. Correct it."
    )


def image_name(folder: Path, row: CedarRow) -> str:
    """Returns the name of a row's image: the one that the row gives, else its id with the ending of the file."""
    names = [f"{row.id}{suffix}" for suffix in IMAGE_SUFFIXES]
    return row.image or next((name for name in names if (folder / "images" / name).is_file()), names[0])


def _warn(table: RowTable, rows: Sequence[CedarRow], golds: Sequence[Emotion], language: Language) -> None:
    """Says once where ``answer`` and the gold label don't fit together; ``culture-tasks data check`` names the rows."""
    different = sum(contradicts(row, gold, language) for row, gold in zip(rows, golds, strict=True))
    unknown = sum(translated(row.answer, language) is None for row in rows)
    if different or unknown:
        _log.warning(
            "%s: 'answer' is another label than 'english_ver_answer' in %d rows and none of the paper's words in %d; "
            "'english_ver_answer' counts. See: culture-tasks data check cedar",
            table.origin,
            different,
            unknown,
        )


def check_languages(supported: Collection[str] | None) -> tuple[Language, ...] | None:
    """Returns the user's list of officially supported languages as codes, or None for all.

    Raises:
        SettingsError: If a code is none of the seven, or there is none.
    """
    if supported is None:
        return None
    if not supported:
        raise SettingsError(f"CULTURE_TASKS_LANGUAGES: no language. Name some of {', '.join(LANGUAGES)}, or unset it.")
    unknown = [code for code in supported if code not in LANGUAGES]
    if unknown:
        raise SettingsError(
            f"CULTURE_TASKS_LANGUAGES: unknown language {unknown[0]!r}. Allowed are {', '.join(LANGUAGES)}, with "
            "commas between them."
        )
    return tuple(language for language in LANGUAGES if language in supported)
