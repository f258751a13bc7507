"""CEDAR's questions as documents of a harness, and the English labels of their rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial, reduce
from importlib import resources
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
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
from culture_tasks.benchmarks.interface import Doc, Documents, Picture, Prompt
from culture_tasks.data.checking import Count, count
from culture_tasks.data.files import Rows
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

NO_MINORITY = "none"
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


@dataclass(frozen=True)
class OwnCulture:
    """An own culture: its words for emotions, and a prompt for each modality in its own words."""

    name: str
    language: str
    labels: Mapping[str, Emotion]  # by folded word
    prompts: Mapping[Modality, PromptFile]

    @cached_property
    def words(self) -> OwnWords:
        """Its words in replies."""
        from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

        return OwnWords(self.language, self.labels)


def prompt_of(doc: Doc, own: OwnCulture | None) -> PromptFile:
    """Returns the prompt file of a document."""
    return own.prompts[doc["modality"]] if own else prompt_file(doc["prompt_language"], doc["modality"])


def render(doc: Doc, own: OwnCulture | None = None) -> Prompt:
    """Returns the prompt for an item (Figures 9 and 10): one user message, after the image where there is one.

    An empty narrative leaves its line empty, as filling in the paper's template does.
    """
    text = prompt_of(doc, own).fill({"narrative": doc["narrative"], "question": doc["question"]})
    return Prompt((Picture(), text) if doc["modality"] == "multimodal" else (text,))


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


@cache
def gold_counts(modality: Modality) -> Mapping[Language, Mapping[Emotion, int]]:
    """Returns Table 4: the number of gold labels by language and emotion (400 items a language, or 1,166 for text)."""
    file = resources.files(__package__) / "gold_counts.json"
    counts = json.loads(file.read_text(encoding="utf-8"))["counts"]
    return cast("Mapping[Language, Mapping[Emotion, int]]", counts[modality])


def _beside_table_4(modality: Modality, language: Language, rows: Sequence[CedarRow]) -> Iterator[Count]:
    """Compares a language with Table 4, complete data label by label."""
    items = Counter(translated(row.english_ver_answer or row.answer, labels_of(language)) for row in rows)
    published, name = gold_counts(modality)[language], f"{modality}: {FILE_NAMES[language]}"
    yield count(f"{name} items", len(rows), ITEMS[modality])
    for emotion in EMOTIONS if len(rows) >= ITEMS[modality] else ():
        if items[emotion] != published[emotion]:
            yield count(f"{name} {emotion}", items[emotion], published[emotion])


def _table_of(modality: Modality, language: Language) -> Table[CedarRow]:
    """Such as ``multilingual/arabic_inq_sample_10.json``; text-only files, which are unpublished, with ``nq``."""
    return Table(
        model=CedarRow,
        folder="cedar",
        stems=(_FILES[modality].format(FILE_NAMES[language]),),
        id="id",
        image_column="image" if modality == "multimodal" else None,
        image_of=lambda row, _: row.image or f"{row.id}.png",
        release=Release(ITEMS[modality]),
        rules=partial(label_problems, labels_of(language)),
        counts=partial(_beside_table_4, modality, language),
    )


SOURCES: Mapping[tuple[Modality, Language], Table[CedarRow]] = {
    (modality, language): _table_of(modality, language) for modality in MODALITIES for language in LANGUAGES
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
    reading = reduce(or_, (part.reading for part in parts))
    rows = with_minorities([row for part in parts for row in part.rows])
    rows = [{**row, "prompt_language": prompt} for prompt in prompts for row in rows] or rows
    parts *= len(prompts) or 1
    turns = [turn for part in parts for turn in range(len(part.rows))]
    order = sorted(range(len(rows)), key=turns.__getitem__)
    documents = [{**rows[place], "supported": rows[place]["language"] in supported} for place in order]
    if modality == "text":
        return Documents(documents, reading=reading)

    import datasets

    return Documents(documents, datasets.concatenate_datasets([part.images for part in parts]).select(order), reading)


def documents_of(
    table: Table[CedarRow],
    modality: Modality,
    labels: Mapping[str, Emotion],
    language: str,
    settings: Settings,
    images: set[Path],
) -> Documents:
    """Returns the documents of a table's rows, with their images where the modality has them, but for those checked.

    ``gold`` and ``minority`` are English labels. ``supported`` is whether the evaluated model supports the language
    officially, as far as the user says. ``prompt_language`` is that of the instruction and the options (section 4.4).
    """
    found = table.rows(settings, images=images if modality == "multimodal" else None)
    data = found.fingerprint()
    documents = [
        {
            "id": identifier,
            "modality": modality,
            "language": language,
            "prompt_language": language,
            "narrative": row.narrative,
            "question": row.question,
            "gold": translated(row.english_ver_answer or row.answer, labels),
            "minority": translated(row.minority, labels) or "",
            "supported": True,
            "data": data,
        }
        for identifier, row in found
    ]
    return Documents(documents, found.images, found.reading)


def with_minorities(rows: Sequence[Doc]) -> list[dict[str, Any]]:
    """Returns documents in which all have a minority label, or :data:`NO_MINORITY`, if one has."""
    none = NO_MINORITY if any(row["minority"] for row in rows) else ""
    return [{**row, "minority": row["minority"] or none} for row in rows]
