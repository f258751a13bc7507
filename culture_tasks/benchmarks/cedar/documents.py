"""CEDAR's questions as documents of a harness, the English labels of their rows, and their check beside Table 4."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from importlib import resources
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

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
from culture_tasks.benchmarks.interface import Documents, Picture, Prompt
from culture_tasks.data.checking import Count, DataReport, check_tables, count
from culture_tasks.data.rows import Identifier, Label, OptionalLabel, TableRow, Text
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

_log = logging.getLogger(__name__)

FOLDER = "cedar"
NO_MINORITY = "none"
_STEMS: Mapping[Modality, str] = {"text": "nq", "multimodal": "inq"}  # the ends of the tables' names
ITEMS: Mapping[Modality, int] = {"multimodal": 400, "text": 1_166}  # of each language (Table 4)


def _may_be_in(language: Language, word: str) -> bool:
    """Whether a gold label may be one of a language: a word of none says nothing, and an English one is accepted."""
    languages = {candidate for candidate in LANGUAGES if translated(word, candidate)}
    return not languages or bool(languages & {language, "en"})


class CedarRow(TableRow):
    """One row as released."""

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
    and :data:`NO_MINORITY` where this item alone has none, so that all documents have the same metrics. ``supported``
    is whether the evaluated model supports the language officially, as far as the user says. ``prompt_language`` is
    the language of the instruction and the options (section 4.4).
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


def prompt_file(prompt_language: str, modality: str) -> PromptFile:
    """Returns the prompt file of a language and modality, with its text and SHA-256."""
    return load_prompt(__package__, f"{modality}_{prompt_language}.v1")


@dataclass(frozen=True)
class AddedCulture:
    """An own culture: its words for emotions, and a prompt for each modality in its own words."""

    name: str
    language: str
    forms: Mapping[str, Emotion]
    prompts: Mapping[Modality, PromptFile]

    @cached_property
    def words(self) -> OwnWords:
        """Its words in replies."""
        from culture_tasks.benchmarks.cedar.reading.reader import OwnWords

        return OwnWords(self.language, {fold(form).strip(): emotion for form, emotion in self.forms.items()})


def prompt_of(doc: CedarDoc, added: AddedCulture | None) -> PromptFile:
    """Returns the prompt file of a document."""
    if added is None:
        return prompt_file(doc["prompt_language"], doc["modality"])
    return added.prompts[cast("Modality", doc["modality"])]


def render(doc: CedarDoc, added: AddedCulture | None = None) -> Prompt:
    """Returns the prompt for an item (Figures 9 and 10): one user message, after the image where there is one.

    An empty narrative leaves its line empty, as filling in the paper's template does.
    """
    file = prompt_of(doc, added)
    text = file.fill({"narrative": doc["narrative"], "question": doc["question"]})
    return Prompt((Picture(), text) if doc["modality"] == "multimodal" else (text,))


def load_languages(
    modality: Modality, languages: Sequence[Language], settings: Settings, *, prompts: Sequence[Language] = ()
) -> Documents:
    """Loads languages of a modality by turns, so that a run with ``--limit`` has documents of them all.

    Each question is asked in its own language, or once in each of the prompts' languages.
    """
    supported = supported_languages(settings.languages)
    checked: set[Path] = set()
    parts = [load(modality, language, settings, checked) for language in languages]
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

    images = datasets.concatenate_datasets([part.images for part in parts]).select(order)
    return Documents(documents, images, reading)


def supported_languages(codes: Collection[str] | None) -> Collection[str]:
    """Returns the languages that the user says the model supports officially; all of them by default."""
    allowed = ", ".join(LANGUAGES)
    if codes is not None and not codes:
        raise SettingsError(f"CULTURE_TASKS_LANGUAGES: no language. Name some of {allowed}, or unset it.")
    for code in codes or ():
        if code not in LANGUAGES:
            raise SettingsError(
                f"CULTURE_TASKS_LANGUAGES: unknown language {code!r}. Expected some of {allowed}, with commas "
                "between them."
            )
    return LANGUAGES if codes is None else codes


def load(modality: Modality, language: Language, settings: Settings, checked: set[Path] | None = None) -> Documents:
    """Loads the questions of one language, with their images where the modality has them, but for those checked."""
    images = (set() if checked is None else checked) if modality == "multimodal" else None
    found = SOURCES[modality, language].rows(settings, images=images)
    contradictions = sum(
        contradicts(row, gold_label(row, language, found.where(index)), language)
        for index, row in enumerate(found.rows)
    )
    unknown_words = sum(translated(row.answer, language) is None for row in found.rows)
    if contradictions or unknown_words:  # said once; `culture-tasks data check` names the rows
        _log.warning(
            "%s: 'answer' is another label than 'english_ver_answer' in %d rows and none of the paper's words in %d; "
            "'english_ver_answer' counts. See: culture-tasks data check cedar",
            *(found.table.origin, contradictions, unknown_words),
        )
    return documents_of(found, modality, language, language)


def documents_of(
    found: Rows[CedarRow],
    modality: Modality,
    label_language: Language | OwnWords,
    language: str,
) -> Documents:
    """Returns the documents of a table's rows."""
    data = found.fingerprint()
    documents = [
        CedarDoc(
            id=identifier,
            modality=modality,
            language=language,
            prompt_language=language,
            narrative=row.narrative,
            question=row.question,
            gold=gold_label(row, label_language, found.where(index)),
            minority=minority_label(row, label_language, found.where(index)) or "",
            supported=True,
            data=data,
        )
        for index, (identifier, row) in enumerate(found)
    ]
    return Documents(documents, found.images, found.reading)


def with_minorities(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns documents in which all have a minority label, or :data:`NO_MINORITY`, if one has."""
    none = NO_MINORITY if any(row["minority"] for row in rows) else ""
    return [{**row, "minority": row["minority"] or none} for row in rows]


@cache
def _labels(language: Language) -> Mapping[str, Emotion]:
    words = {word: emotion for emotion, word in OPTION_WORDS[language].items()}
    return {fold(word).strip(): emotion for word, emotion in {**words, **MISSPELLINGS.get(language, {})}.items()}


def translated(word: str, language: Language | OwnWords) -> Emotion | None:
    """Returns the English label of one in a language or in an own culture's words; None for an unknown word."""
    labels = _labels(language) if isinstance(language, str) else language.labels
    return labels.get(fold(word).strip())


def gold_label(row: CedarRow, language: Language | OwnWords, place: str) -> Emotion:
    """Returns the English gold label: ``english_ver_answer`` where it is there, else the translated ``answer``."""
    if row.english_ver_answer:
        return english_label(row.english_ver_answer, "en", f"{place}, field 'english_ver_answer'")
    return english_label(row.answer, language, f"{place}, field 'answer'")


def minority_label(row: CedarRow, language: Language | OwnWords, place: str) -> Emotion | None:
    """Returns the English minority label, in whichever language it is written; None where the row has none."""
    return english_label(row.minority, language, f"{place}, field 'minority'") if row.minority else None


def contradicts(row: CedarRow, gold: Emotion, language: Language | OwnWords) -> bool:
    """Returns whether ``answer`` is a known word for another label than the gold one."""
    return translated(row.answer, language) not in (gold, None)


def english_label(word: str, language: Language | OwnWords, place: str) -> Emotion:
    """Returns the English label of a gold label in a language or in English; the place begins the message of an error.

    Case, surrounding white space and spelling variants (Unicode form, nukta, hamza, diacritics) don't matter. No other
    form of the word is a label, because a gold label is data and not a reply.
    """
    if label := translated(word, language) or translated(word, "en"):
        return label
    if isinstance(language, str):
        data, labels, words = FILE_NAMES[language], _labels(language), list(OPTION_WORDS[language].values())
    else:
        data, labels, words = language.language, language.labels, list(language.labels)
    raise DataError(
        f"{place}: cedar: {word!r} is no gold label of {data} data.{nearest(fold(word).strip(), labels)} "
        f"Expected one of: {', '.join(words)}. Correct it."
    )


def image_name(row: CedarRow, folder: Path) -> str:
    """Returns the name of a row's image: the one that the row gives, else its id with the ending of the file."""
    names = [f"{row.id}{suffix}" for suffix in (".png", ".jpg", ".jpeg", ".webp")]
    return row.image or next((name for name in names if (folder / "images" / name).is_file()), names[0])


@cache
def gold_counts(modality: Modality) -> Mapping[Language, Mapping[Emotion, int]]:
    """Returns Table 4: the number of gold labels by language and emotion (400 items a language, or 1,166 for text)."""
    file = resources.files(__package__) / "gold_counts.json"
    counts = json.loads(file.read_text(encoding="utf-8"))["counts"]
    return cast("Mapping[Language, Mapping[Emotion, int]]", counts[modality])


def check(settings: Settings) -> DataReport:
    """Checks both modalities. A modality without files is no problem, nor are counts that differ from Table 4."""
    report = DataReport(f"cedar: {(settings.data_folder or Path()) / FOLDER}")
    missing: list[DataUnavailableError] = []
    for modality in MODALITIES:
        questions: dict[Language, Sequence[CedarRow]] = {}
        tables = [
            replace(SOURCES[modality, language], counts=partial(_collect, questions, language))
            for language in LANGUAGES
        ]
        try:
            part = check_tables(FOLDER, settings, tables)
        except DataUnavailableError as error:
            missing.append(error)
            report.counts.append(count(f"{modality}: files", 0, len(LANGUAGES)))
        else:
            report.problems += part.problems
            report.counts += _counts(modality, questions) if questions else ()
    if len(missing) == len(MODALITIES):
        raise missing[0]
    return report


def label_problems(language: Language | OwnWords, found: Rows[CedarRow]) -> Iterator[str]:
    """Yields the rows with an unknown label."""
    for index, row in enumerate(found.rows):
        for label in (gold_label, minority_label):
            try:
                label(row, language, found.where(index))
            except DataError as error:
                yield str(error)


def table_of(modality: Modality, language: Language) -> Table[CedarRow]:
    """Such as ``multilingual/arabic_inq_sample_10.json``; text-only files, which are unpublished, with ``nq``."""
    stem = f"{FILE_NAMES[language]}_{_STEMS[modality]}"
    return Table(
        model=CedarRow,
        folder=FOLDER,
        stems=(f"multilingual/{stem}*", f"text/{stem}*", f"{stem}*", f"*/{stem}*"),
        # The release with minority labels is not published.
        aliases=dict.fromkeys(("minority_label", "minority_answer", "second_label", "second_answer"), "minority"),
        id="id",
        image_column="image" if modality == "multimodal" else None,
        image_of=image_name,
        images_beside=False,
        release=Release(
            rows=ITEMS[modality],
            culture="answer",
            fits=partial(_may_be_in, language),
            expected=f"a label in {FILE_NAMES[language].title()}, and not in another language",
        ),
        rules=partial(label_problems, language),
    )


SOURCES: Mapping[tuple[Modality, Language], Table[CedarRow]] = {
    (modality, language): table_of(modality, language) for modality in MODALITIES for language in LANGUAGES
}


def _collect(
    questions: dict[Language, Sequence[CedarRow]], language: Language, rows: Sequence[CedarRow]
) -> Sequence[Count]:
    questions[language] = rows
    return ()


def _counts(modality: Modality, questions: Mapping[Language, Sequence[CedarRow]]) -> Iterator[Count]:
    contradictions, unknown_words, uneven_ids = [], [], []
    everywhere = set.intersection(*({row.id for row in rows} for rows in questions.values()))
    for language, rows in questions.items():
        golds: dict[str, Emotion] = {}
        for row in rows:
            place = f"{row.id!r} in {language}"
            with suppress(DataError):
                golds[row.id] = gold_label(row, language, place)
                contradictions += [place] if contradicts(row, golds[row.id], language) else []
            unknown_words += [place] if translated(row.answer, language) is None else []
            uneven_ids += [place] if row.id not in everywhere else []
        yield from _beside_table_4(list(golds.values()), modality, language)
    for name, places in (
        ("answers that are another label than english_ver_answer", contradictions),
        ("answers that are none of the paper's words", unknown_words),
        ("ids that not every language has", uneven_ids),
    ):
        yield count(f"{modality}: {name}", f"{len(places)}{f' (first: id {places[0]})' if places else ''}", 0)


def _beside_table_4(golds: Sequence[Emotion], modality: Modality, language: Language) -> Iterator[Count]:
    """Compares a language with Table 4: all labels of complete data, else the labels that the paper has fewer of."""
    items, published, name = Counter(golds), gold_counts(modality)[language], f"{modality}: {FILE_NAMES[language]}"
    yield count(f"{name} items", len(golds), ITEMS[modality])
    for emotion in EMOTIONS:
        is_comparable = len(golds) >= ITEMS[modality] or items[emotion] > published[emotion]
        if is_comparable and items[emotion] != published[emotion]:
            yield count(f"{name} {emotion}", items[emotion], published[emotion])
