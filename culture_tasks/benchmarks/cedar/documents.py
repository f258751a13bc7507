"""CEDAR's questions as documents of a harness."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypedDict

from pydantic import BaseModel, ConfigDict, StringConstraints

from culture_tasks.benchmarks.cedar.labels import (
    FILE_NAMES,
    LANGUAGES,
    MODALITIES,
    Emotion,
    Language,
    Modality,
    english_label,
)
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import Table, unique, validated
from culture_tasks.errors import DataError, SettingsError

_log = logging.getLogger(__name__)

FOLDER = "cedar"
NO_MINORITY = "none"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")

_STEM = {"multimodal": "inq", "text": "nq"}


def _source(modality: Modality, language: Language) -> Source:
    """The released files are ``multilingual/arabic_inq_sample_10.json`` and the like.

    The layout of the text-only files is not published: the same with ``nq``, in any folder.
    """
    stem = f"{FILE_NAMES[language]}_{_STEM[modality]}"
    return Source(folder=FOLDER, stems=(f"multilingual/{stem}*", f"text/{stem}*", f"{stem}*"), hub=None)


SOURCES: Mapping[tuple[Modality, Language], Source] = {
    (modality, language): _source(modality, language) for modality in MODALITIES for language in LANGUAGES
}

ALIASES = {
    "minority_label": "minority",
    "minority_answer": "minority",
    "second_label": "minority",
    "second_answer": "minority",
}


class CedarDoc(TypedDict):
    """One question of CEDAR in one language, its image aside.

    ``gold`` and ``minority`` are English labels. ``minority`` is empty where the data have no minority labels at all,
    and :data:`NO_MINORITY` where this item has none. ``prompt_language`` is the language of the instruction and the
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
    data: str


Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class CedarRow(BaseModel):
    """One row as released."""

    model_config = ConfigDict(extra="forbid")

    id: str | int
    narrative: str
    question: Filled
    answer: Filled
    english_ver_answer: str | None = None
    minority: str | None = None
    image: str | None = None


@dataclass(frozen=True)
class LanguageQuestions:
    """The documents of one language with what is needed to find their images.

    Attributes:
        table: The rows as read.
        documents: The documents, in the same order.
        image_names: Image file of each row.
        folder: Folder whose ``images`` holds them.
    """

    table: Table
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
    source = SOURCES[modality, language]
    table = read_source(source, data_folder)
    rows = validated(table, CedarRow, ALIASES)
    ids = list(unique(table, (str(row.id) for row in rows), "id"))
    golds = _golds(table, rows, language)
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
            minority=_label(table, index, "minority", row.minority, language) if row.minority else "",
            data=data,
        )
        for index, row in enumerate(rows)
    ]
    folder = _folder(source, data_folder)
    names = [row.image or _image_name(folder, row.id) for row in rows] if modality == "multimodal" else []
    return LanguageQuestions(table, documents, names, folder)


def _folder(source: Source, data_folder: Path | None) -> Path:
    path = local_file(source, data_folder)
    return path.parent if path is None or data_folder is None else data_folder / source.folder


def _image_name(folder: Path, identifier: str | int) -> str:
    names = [f"{identifier}{suffix}" for suffix in IMAGE_SUFFIXES]
    return next((name for name in names if (folder / "images" / name).is_file()), names[0])


def _golds(table: Table, rows: Sequence[CedarRow], language: Language) -> list[Emotion]:
    """Returns the English gold labels: ``english_ver_answer`` where it is there, else what ``answer`` stands for."""
    golds = [
        _label(table, index, "english_ver_answer", row.english_ver_answer, "en")
        if row.english_ver_answer
        else _label(table, index, "answer", row.answer, language)
        for index, row in enumerate(rows)
    ]
    different = [
        index for index, row in enumerate(rows) if _translated(row.answer, language) not in (golds[index], None)
    ]
    unknown = [row.answer for row in rows if _translated(row.answer, language) is None]
    if different:
        _log.warning(
            "%s: the answer isn't what english_ver_answer says in %d rows (first: %s); the English one counts",
            table.origin,
            len(different),
            table.where(different[0]),
        )
    if unknown:
        _log.warning(
            "%s: %d answers are none of the paper's words (first: %r); english_ver_answer counts",
            table.origin,
            len(unknown),
            unknown[0],
        )
    return golds


def _translated(word: str, language: Language) -> Emotion | None:
    try:
        return english_label(word, language)
    except DataError:
        return None


def _label(table: Table, index: int, field: str, word: str, language: Language) -> Emotion:
    for known in dict.fromkeys((language, "en")):
        if (label := _translated(word, known)) is not None:
            return label
    try:
        return english_label(word, language)
    except DataError as error:
        raise DataError(f"{table.where(index)}, field {field!r}: {error}") from None


def check_languages(supported: Collection[str] | None) -> tuple[Language, ...] | None:
    """Returns the user's list of officially supported languages as codes, or None for all.

    Raises:
        SettingsError: If a code is none of the seven.
    """
    if supported is None:
        return None
    unknown = [code for code in supported if code not in LANGUAGES]
    if unknown:
        raise SettingsError(
            f"CULTURE_TASKS_LANGUAGES: unknown language {unknown[0]!r}. Allowed are {', '.join(LANGUAGES)}, with "
            "commas between them."
        )
    return tuple(language for language in LANGUAGES if language in supported)
