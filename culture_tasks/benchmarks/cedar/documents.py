"""CEDAR's questions as documents of a harness, and the English labels of their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

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
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.checking import count
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


class Source(NamedTuple):
    """A table in one language, and the English labels of its words."""

    modality: Modality
    language: str
    labels: Mapping[str, Emotion]
    table: Table[CedarRow]


def _source(modality: Modality, language: Language) -> Source:
    name = FILE_NAMES[language]
    table = Table(
        model=CedarRow,
        folder="cedar",
        stems=(_FILES[modality].format(name),),
        id="id",
        image_column="image" if modality == "multimodal" else None,
        image_of=lambda row, _: row.image or f"{row.id}.png",
        release=Release(ITEMS[modality]),
        rules=partial(label_problems, labels_of(language)),
        counts=lambda rows: [count(f"{modality}: {name} items", len(rows), ITEMS[modality])],
    )
    return Source(modality, language, labels_of(language), table)


SOURCES: Mapping[tuple[Modality, Language], Source] = {
    (modality, language): _source(modality, language) for modality in MODALITIES for language in LANGUAGES
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
    sources: Sequence[Source], settings: Settings, *, prompts: Sequence[Language] = (), is_own: bool = False
) -> Documents:
    """Loads tables of a modality by turns, so that a run with ``--limit`` has documents of them all.

    Each question is asked in its own language, or once in each of the prompts' languages. All documents have a minority
    label, or :data:`NO_MINORITY`, if one has.
    """
    supported = {source.language for source in sources} if is_own else supported_languages(settings.languages)
    images: set[Path] | None = set() if sources[0].modality == "multimodal" else None
    tables = [source.table.rows(settings, images=images) for source in sources]
    documents = [
        {**document, "supported": source.language in supported}
        for source, table in zip(sources, tables, strict=True)
        for document in _documents(source, table)
    ]
    if any(document["minority"] for document in documents):
        documents = [{**document, "minority": document["minority"] or NO_MINORITY} for document in documents]
    documents = [{**document, "prompt_language": prompt} for prompt in prompts for document in documents] or documents
    repeats = len(prompts) or 1
    turns = [turn for table in tables for turn in range(len(table.rows))] * repeats
    order = sorted(range(len(documents)), key=turns.__getitem__)
    shown = None
    if images is not None:
        import datasets

        shown = datasets.concatenate_datasets([table.images for table in tables] * repeats).select(order)
    return Documents([documents[row] for row in order], shown, reduce(or_, (table.reading for table in tables)))


def _documents(source: Source, table: Rows[CedarRow]) -> Iterator[dict[str, Any]]:
    data = table.fingerprint()
    for identifier, row in table:
        yield {
            "id": identifier,
            "modality": source.modality,
            "language": source.language,
            "prompt_language": source.language,  # of the instruction and the options (section 4.4)
            "narrative": row.narrative,
            "question": row.question,
            "gold": translated(row.english_ver_answer or row.answer, source.labels),
            "minority": translated(row.minority, source.labels) or "",
            "data": data,
        }
