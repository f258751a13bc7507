"""CEDAR's questions as documents of a harness."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from culture_tasks.benchmarks.cedar.labels import (
    FILE_NAMES,
    LANGUAGES,
    MODALITIES,
    Emotion,
    Language,
    Modality,
)
from culture_tasks.benchmarks.cedar.rows import (
    ALIASES,
    CedarRow,
    contradicts,
    gold_label,
    minority_label,
    translated,
)
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Table, unique, validated
from culture_tasks.errors import SettingsError

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
    return Source(folder=FOLDER, stems=(f"multilingual/{stem}*", f"text/{stem}*", f"{stem}*", f"*/{stem}*"), hub=None)


SOURCES: Mapping[tuple[Modality, Language], Source] = {
    (modality, language): _source(modality, language) for modality in MODALITIES for language in LANGUAGES
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
    table = read_source(SOURCES[modality, language], data_folder)
    rows = validated(table, CedarRow, ALIASES)
    ids = list(unique(table, (row.id for row in rows), "id"))
    golds = [gold_label(table, index, row, language) for index, row in enumerate(rows)]
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
            minority=minority_label(table, index, row, language) or "",
            data=data,
        )
        for index, row in enumerate(rows)
    ]
    folder = (data_folder or Path()) / FOLDER  # there is one: CEDAR is not on the Hub
    names = [image_name(folder, row) for row in rows] if modality == "multimodal" else []
    return LanguageQuestions(table, documents, names, folder)


def image_name(folder: Path, row: CedarRow) -> str:
    """Returns the name of a row's image: the one that the row gives, else its id with the ending of the file."""
    names = [f"{row.id}{suffix}" for suffix in IMAGE_SUFFIXES]
    return row.image or next((name for name in names if (folder / "images" / name).is_file()), names[0])


def _warn(table: Table, rows: Sequence[CedarRow], golds: Sequence[Emotion], language: Language) -> None:
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
