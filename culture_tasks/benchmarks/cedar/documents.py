"""CEDAR's questions as documents of a harness, and the English labels of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import Any

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
from culture_tasks.benchmarks.cedar.reading.spelling import fold
from culture_tasks.benchmarks.interface import Doc, Documents
from culture_tasks.data.checking import Count, count
from culture_tasks.data.files import Rows
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings

NO_MINORITY = "none"
# Such as multilingual/arabic_inq_sample_10.json; text-only files, which are unpublished, have "nq".
_FILES: Mapping[Modality, str] = {"text": "text/{}_nq*", "multimodal": "multilingual/{}_inq*"}
ITEMS: Mapping[Modality, int] = {"multimodal": 400, "text": 1_166}  # of each language (Table 4)


class CedarRow(TableRow):
    """One row as released."""

    id: Identifier
    narrative: str
    question: Text
    answer: Label
    english_ver_answer: OptionalLabel = None
    minority: OptionalLabel = None
    image: OptionalLabel = None


def prompt_file(prompt_language: str, modality: str) -> PromptFile:
    """Returns the prompt file of a language and modality, with its text and SHA-256."""
    return load_prompt(__package__, f"{modality}_{prompt_language}.v1")


# Labels


@cache
def labels_of(language: Language) -> Mapping[str, Emotion]:
    """Returns the English label of each gold label in a language or in English, by folded word."""
    words = {word: emotion for code in ("en", language) for emotion, word in OPTION_WORDS[code].items()}
    return {fold(word): emotion for word, emotion in {**words, **MISSPELLINGS.get(language, {})}.items()}


def translated(word: str | None, labels: Mapping[str, Emotion]) -> Emotion | None:
    """Returns the English label of a gold label; None for none, and for an unknown word.

    Case, surrounding white space and spelling variants (Unicode form, nukta, hamza, diacritics) don't matter. No other
    form of the word is a label, because a gold label is data and not a reply.
    """
    return labels.get(fold(word).strip()) if word else None


def label_problems(labels: Mapping[str, Emotion], found: Rows[CedarRow]) -> Iterator[str]:
    """Yields the rows with an unknown label."""
    for index, row in enumerate(found.rows):
        for name in ("english_ver_answer" if row.english_ver_answer else "answer", "minority"):
            word = getattr(row, name)
            if word and translated(word, labels) is None:
                yield (
                    f"{found.where(index)}, field {name!r}: cedar: {word!r} is no gold label."
                    f"{nearest(fold(word).strip(), labels)} Expected one of: {', '.join(labels)}. Correct it."
                )


# Tables


def _items(modality: Modality, language: Language, rows: Sequence[CedarRow]) -> list[Count]:
    return [count(f"{modality}: {FILE_NAMES[language]} items", len(rows), ITEMS[modality])]


SOURCES: Mapping[tuple[Modality, Language], Table[CedarRow]] = {
    (modality, language): Table(
        model=CedarRow,
        folder="cedar",
        stems=(_FILES[modality].format(FILE_NAMES[language]),),
        id="id",
        image_column="image" if modality == "multimodal" else None,
        image_of=lambda row, _: row.image or f"{row.id}.png",
        release=Release(ITEMS[modality]),
        rules=partial(label_problems, labels_of(language)),
        counts=partial(_items, modality, language),
    )
    for modality in MODALITIES
    for language in LANGUAGES
}


# Documents


def supported_languages(codes: Collection[str] | None) -> Collection[str]:
    """Returns the languages that the user says the model supports officially; all of them by default."""
    if codes is None:
        return LANGUAGES
    if unknown := [code for code in codes if code not in LANGUAGES] or ([] if codes else [""]):
        raise SettingsError(
            f"CULTURE_TASKS_LANGUAGES: unknown language {unknown[0]!r}. Expected some of {', '.join(LANGUAGES)}, with "
            "commas between them. Correct it, or unset it."
        )
    return codes


def load(
    modality: Modality, languages: Sequence[Language], settings: Settings, *, prompts: Sequence[Language] = ()
) -> Documents:
    """Loads languages of a modality by turns, so that a run with ``--limit`` has documents of them all.

    Each question is asked in its own language, or once in each of the prompts' languages.
    """
    supported = supported_languages(settings.languages)
    images: set[Path] = set()
    parts = [
        documents_of(SOURCES[modality, language], modality, labels_of(language), language, settings, images)
        for language in languages
    ]
    rows = with_minorities([row for part in parts for row in part.rows])
    rows = [{**row, "prompt_language": prompt} for prompt in prompts for row in rows] or rows
    parts *= len(prompts) or 1
    turns = [turn for part in parts for turn in range(len(part.rows))]
    order = sorted(range(len(rows)), key=turns.__getitem__)
    shown = None
    if modality == "multimodal":
        import datasets

        shown = datasets.concatenate_datasets([part.images for part in parts]).select(order)
    documents = [{**rows[row], "supported": rows[row]["language"] in supported} for row in order]
    return Documents(documents, shown, reduce(or_, (part.reading for part in parts)))


def documents_of(
    table: Table[CedarRow],
    modality: Modality,
    labels: Mapping[str, Emotion],
    language: str,
    settings: Settings,
    images: set[Path],
) -> Documents:
    """Returns the documents of a table's rows, with their images where the modality has them, but for those checked."""
    found = table.rows(settings, images=images if modality == "multimodal" else None)
    data = found.fingerprint()
    documents = [
        {
            "id": identifier,
            "modality": modality,
            "language": language,
            "prompt_language": language,  # of the instruction and the options (section 4.4)
            "narrative": row.narrative,
            "question": row.question,
            "gold": translated(row.english_ver_answer or row.answer, labels),
            "minority": translated(row.minority, labels) or "",
            "supported": True,  # by the evaluated model, as far as the user says
            "data": data,
        }
        for identifier, row in found
    ]
    return Documents(documents, found.images, found.reading)


def with_minorities(rows: Sequence[Doc]) -> list[dict[str, Any]]:
    """Returns documents in which all have a minority label, or :data:`NO_MINORITY`, if one has."""
    none = NO_MINORITY if any(row["minority"] for row in rows) else ""
    return [{**row, "minority": row["minority"] or none} for row in rows]
