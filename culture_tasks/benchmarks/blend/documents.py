"""BLEnD's questions as documents of a harness, from the authors' files, and the check of these files."""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from itertools import zip_longest
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.blend.regions import REGIONS, TOPICS, Region
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.checking import Count, DataReport, check_tables, count, tally
from culture_tasks.data.rows import (
    Identifier,
    Label,
    OptionalLabel,
    OptionalText,
    Row,
    TableRow,
    Text,
    fingerprint,
    id_problems,
)
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError, DataUnavailableError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import language

_log = logging.getLogger(__name__)

HUB = "nayeon212/BLEnD"
_LABELS = tuple(region.label for region in REGIONS)
AUTHORS_PROMPTS = "https://github.com/nlee0212/BLEnD (data/prompts)"

QUESTIONS = 500  # with short answers, of each region

Wording = Literal["inst", "pers"]
"""``inst`` asks for an answer (the paper's inst-4), ``pers`` asks a person from the region (its pers-3)."""

PAPER_NAMES: Mapping[Wording, str] = {"inst": "inst-4", "pers": "pers-3"}


def label_of(country: str) -> str:
    """Returns a country as the labels of regions: blanks and underscores in it are one."""
    return country.strip().replace("_", " ")


class BlendDoc(TypedDict):
    """One short-answer question, asked in the region's language or in English."""

    id: str
    question_id: str
    region: str
    language: str
    topic: str
    question: str
    prompt: str
    prompt_name: str
    template: str
    annotations: list[dict[str, Any]]  # of `VotesRow`, most votes first; no `answers` where it is asked in English
    data: str


class ChoiceDoc(TypedDict):
    """One multiple-choice question."""

    id: str
    question_id: str
    region: str
    prompt: str
    choices: list[list[str]]  # pairs of a letter and a text
    answer: str
    data: str


_REASONS = ("idk", "no-answer", "not-applicable")


def _counts(value: Any) -> Any:
    """Makes one mapping of the reasons for having no answer, which have free-text names.

    The data have a mapping, whose None comes from ``datasets``, or a list of pairs or of objects with a text and a
    number. Entries such as the Hub's list ``other`` say nothing about validity.
    """
    if not isinstance(value, (Mapping, list)):
        return value
    counts: dict[str, Any] = {}
    for entry in value.items() if isinstance(value, Mapping) else value:
        match list(entry.values()) if isinstance(entry, Mapping) else entry:
            case [str(reason), count] | [count, str(reason)]:
                if count is not None and not isinstance(count, list):
                    counts[reason] = count
            case _:
                raise ValueError(f"Expected a reason and a number in each entry, found {entry!r:.60}")
    if missing := [reason for reason in _REASONS if reason not in counts]:
        raise ValueError(f"Expected {', '.join(_REASONS)}, and {missing[0]!r} is missing")
    return counts


def _a_topic(text: str) -> str:
    if topic := next((topic for topic in TOPICS if text.casefold() == TOPICS[topic].casefold()), None):
        return topic
    raise ValueError(f"{nearest(text, TOPICS.values())} Expected one of {', '.join(TOPICS.values())}".strip())


def _choices(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError('Expected a JSON object such as {"A": "tea", "B": "coffee"}') from None
    if isinstance(value, Mapping):  # `datasets` gives every row the letters of all rows
        return {letter: text for letter, text in value.items() if text is not None}
    return value


class VotesRow(TableRow):
    """Answers that annotators counted as one, and how many people gave them."""

    answers: list[str]
    en_answers: list[str]
    count: Annotated[int, Field(gt=0)]


class AnnotationRow(TableRow):
    """What the people of a region answered to one question."""

    id: Identifier
    question: str  # the release has one question without a Chinese text, which the paper asked as it is
    en_question: Text
    annotations: list[VotesRow]
    idks: Annotated[dict[str, int], BeforeValidator(_counts)]

    @property
    def valid(self) -> bool:
        """Whether the question counts (the authors' ``exact_match.py``): enough people had an answer to it."""
        none = self.idks["no-answer"] + self.idks["not-applicable"]
        return none < 3 and self.idks["idk"] < 5 and bool(self.annotations)


class TopicRow(TableRow):
    """A question's topic. The texts are taken from the annotations, whose columns say which language they are in."""

    id: Identifier
    topic: Annotated[Label, AfterValidator(_a_topic)]
    source: OptionalLabel = None
    question: OptionalLabel = None
    translation: OptionalLabel = None
    number: OptionalLabel = None


class PromptRow(TableRow):
    """One row of the authors' ``<Region>_prompts.csv``; some of their files have drafts in further columns."""

    id: Identifier
    translation: OptionalText = None


class ChoiceRow(TableRow):
    """One multiple-choice question."""

    mcqid: Identifier
    id: Identifier
    country: Label
    prompt: Text
    choices: Annotated[dict[str, str], BeforeValidator(_choices), Field(min_length=2)]
    answer_idx: Label
    choice_countries: Annotated[dict[str, str] | None, BeforeValidator(_choices)] = None
    number: OptionalLabel = None

    @field_validator("answer_idx")
    @classmethod
    def _is_a_choice(cls, letter: str, info: ValidationInfo) -> str:
        if (choices := info.data.get("choices")) and letter not in choices:
            raise ValueError(f"Expected one of {', '.join(choices)}")
        return letter


_NUMBER = {"": "number", "Unnamed: 0": "number"}  # the row numbers that pandas wrote


def _region_counts(region: Region, rows: Sequence[AnnotationRow]) -> Iterator[Count]:
    valid = [row for row in rows if row.valid]
    yield count(f"{region.label}: questions", len(rows), QUESTIONS)
    yield count(f"{region.label}: valid", len(valid), region.valid)
    if blank := sum(not row.question.strip() for row in valid):
        yield count(f"{region.label}: valid, without a text in {language(region.language).name}", blank)


def _topics_and_prompts(region: Region, found: Rows[AnnotationRow], settings: Settings) -> Iterator[str]:
    table = topic_table(region)
    try:
        topics, problems = table.check(settings, set())
    except DataError as error:
        yield str(error)
    else:
        yield from problems
        questions = ", ".join(map(str, table.files(settings))) or table.name
        yield from _missing_topics(found, {row.id for row in topics}, questions)
    for wording in PAPER_NAMES if region.language != "en" else ():
        try:
            local_prompt(region, wording, settings)
        except DataError as error:
            yield str(error)


def _of_region(region: Region, model: type[Row], folder: str, name: str, config: str, **more: Any) -> Table[Row]:
    """Returns a table of a region; a folder that holds its prompts alone leaves it to the Hub."""
    return Table(
        model=model,
        folder="blend",
        stems=(f"{folder}/{name}", f"*/{name}", name),
        hub=HUB,
        config=config,
        split=region.code,
        pairs=("ID", ""),
        additions=(f"prompts/{region.name}_prompts",),
        id="ID",
        **more,
    )


@cache
def annotation_table(region: Region) -> Table[AnnotationRow]:
    """A region's answers."""
    return _of_region(
        region,
        AnnotationRow,
        "annotations",
        f"{region.name}_data",
        "annotations",
        release=Release(rows=QUESTIONS),
        beside=partial(_topics_and_prompts, region),
        counts=partial(_region_counts, region),
    )


@cache
def topic_table(region: Region) -> Table[TopicRow]:
    """The topics of a region's questions, from the same places as its answers."""
    where = ("questions", f"{region.name}_questions", "short-answer-questions")
    return _of_region(region, TopicRow, *where, aliases=_NUMBER)


@cache
def prompt_table(region: Region) -> Table[PromptRow]:
    """The prompts in a region's language, which the Hub doesn't have; some files have further columns."""
    return Table(
        model=PromptRow,
        folder="blend",
        stems=(f"prompts/{region.name}_prompts", f"*/{region.name}_prompts"),
        unpack=lambda row: {name: row[name] for name in ("id", "Translation") if name in row},
    )


def english_prompt(wording: Wording) -> PromptFile:
    """Returns the English prompt, with the slots ``{question}`` and, for ``pers``, ``{region}``."""
    return load_prompt(__package__, f"{PAPER_NAMES[wording].replace('-', '_')}.en.v1")


def local_prompt(region: Region, wording: Wording, settings: Settings) -> PromptFile:
    """Returns the prompt in the region's language, with the slot ``{q}``, from the authors' file: the Hub has none."""
    try:
        found = prompt_table(region).rows(settings)
    except DataUnavailableError:
        raise DataUnavailableError(
            f"blend: found no prompts in {language(region.language).name}. Expected "
            f"blend/prompts/{region.name}_prompts.csv in the folder that CULTURE_TASKS_DATA names. "
            f"Take it from {AUTHORS_PROMPTS}. The tasks that ask in English need no such file."
        ) from None
    paper_name = PAPER_NAMES[wording]
    for index, row in enumerate(found.rows):
        if row.id != paper_name:
            continue
        if row.translation is None or row.translation.count("{q}") != 1:
            raise DataError(
                f"{found.where(index)}, field 'Translation': found {row.translation!r:.80}. Expected the prompt "
                f"{paper_name} in {language(region.language).name}, with {{q}} once, where the question goes. Correct "
                "it."
            )
        return PromptFile(f"{paper_name.replace('-', '_')}.{region.slug}", row.translation)
    raise DataError(
        f"{found.table.origin}: no row with the id {paper_name!r}. Take the authors' file, {AUTHORS_PROMPTS}."
    )


def load_regions(regions: Sequence[Region], wording: Wording, settings: Settings, *, english: bool) -> Documents:
    """Loads the questions of regions by turns."""
    parts = [load(region, settings, wording=wording, english=english) for region in regions]
    reading = reduce(or_, (part.reading for part in parts))
    return Documents(_by_turns(part.rows for part in parts), reading=reading)


def regions_at_hand(regions: Sequence[Region], settings: Settings) -> Sequence[Region]:
    """Returns the regions with answers or prompts in the user's folder; all of them where it has none of any region."""

    def is_there(region: Region) -> bool:
        with suppress(DataUnavailableError):
            annotation_table(region).files(settings)
            return True
        return False

    there = [region for region in regions if is_there(region)]
    if there and (missing := [region.label for region in regions if region not in there]):
        _log.warning(
            "blend: %s has neither answers nor prompts of %s, so that these regions aren't asked",
            *((settings.data_folder or Path()) / "blend", ", ".join(missing)),
        )
    return there or regions


def load(region: Region, settings: Settings, *, wording: Wording = "inst", english: bool = False) -> Documents:
    """Loads the valid short-answer questions of a region.

    ``english`` asks in English and looks for English answers alone, as the paper does in its second setting.
    """
    english = english or region.language == "en"
    prompt = english_prompt(wording) if english else local_prompt(region, wording, settings)
    found, topic_rows = annotation_table(region).rows(settings), topic_table(region).rows(settings)
    rows, topics = found.rows, {row.id: row.topic for row in topic_rows.rows}
    for problem in _missing_topics(found, topics, topic_table(region).stems[0]):
        raise DataError(problem)
    valid = [row for row in rows if row.valid]
    if not valid:
        raise DataError(f"{found.table.origin}: no question is valid: too few people had an answer to each.")
    if not english and (blank := [row.id for row in valid if not row.question.strip()]):
        _log.warning(
            "%s: %d valid questions have no text in %s (first %s); they are asked as they are, as in the paper",
            *(found.table.origin, len(blank), language(region.language).name, blank[0]),
        )
    data = fingerprint(row.model_dump() | {"topic": topics[row.id]} for row in rows)
    documents = []
    for row in valid:
        question = row.question
        if english and region.language != "en":  # as in the authors' code
            question = row.en_question.replace("your country", region.label)
        ordered = sorted(row.annotations, key=lambda votes: -votes.count)  # votes that tie keep their order
        document = BlendDoc(
            id=f"{region.slug}-{row.id}",
            question_id=row.id,
            region=region.label,
            language="en" if english else region.language,
            topic=topics[row.id],
            question=question,
            prompt=prompt.fill({"q": question, "question": question, "region": region.label}),
            prompt_name=prompt.name,
            template=prompt.text,
            annotations=[votes.model_dump() | ({"answers": []} if english else {}) for votes in ordered],
            data=data,
        )
        documents.append(document)
    return Documents(documents, reading=found.reading | topic_rows.reading)


def _missing_topics(found: Rows[AnnotationRow], topics: Container[str], questions: str) -> Iterator[str]:
    for index, row in enumerate(found.rows):
        if row.id not in topics:
            yield (
                f"{found.where(index)}, field 'ID': {row.id!r} is not among the questions of {questions}, which give "
                "each its topic. Take both files from one release."
            )


def _repeated_choices(found: Rows[ChoiceRow]) -> Iterator[str]:
    """Yields the questions of a region that have the id of another one in their file."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(found.rows):
        places[found.where(index).rpartition(", row")[0], label_of(row.country)].append(index)
    for indices in places.values():
        yield from id_problems(found.table.part(indices), [found.rows[index].mcqid for index in indices], "MCQID")


def _choice_counts(rows: Sequence[ChoiceRow]) -> Iterator[Count]:
    regions = (label_of(row.country) for row in rows)
    yield from tally("{}: multiple choice", regions, [region.label for region in REGIONS])


CHOICE_TABLE = Table(
    model=ChoiceRow,
    folder="blend",
    stems=("mc_questions_file", "*/mc_questions_file"),
    parts=("mc_questions_file-*", "*/mc_questions_file-*"),  # as the file is released
    hub=HUB,
    config="multiple-choice-questions",
    additions=tuple(f"prompts/{region.name}_prompts" for region in REGIONS),
    aliases=_NUMBER,
    # The paper has 37.6k in all, and the release of December 2024 many more.
    release=Release(
        rows=500,
        per_culture=True,
        grows=True,
        culture="country",
        fits=lambda country: label_of(country) in _LABELS,
        expected=f"one of {', '.join(_LABELS)}",
    ),
    rules=_repeated_choices,
    counts=_choice_counts,
)


def load_choices(settings: Settings) -> Documents:
    """Loads the multiple-choice questions, which are in English, by turns of the regions that have some."""
    found = CHOICE_TABLE.rows(settings)
    by_region: dict[str, list[ChoiceDoc]] = {label: [] for label in _LABELS}
    for row in found.rows:
        document = ChoiceDoc(
            id=row.mcqid,
            question_id=row.id,
            region=label_of(row.country),
            prompt=row.prompt,
            choices=[[letter, text] for letter, text in row.choices.items()],
            answer=row.answer_idx,
            data="",
        )
        if document["region"] in by_region:  # the user may allow others, of which nothing is asked
            by_region[document["region"]].append(document)
    regions = list(filter(None, by_region.values()))
    if not regions:
        raise DataError(f"{found.table.origin}: the column 'country' has none of {', '.join(by_region)}.")
    for of_region in regions:
        data = fingerprint(of_region)
        for document in of_region:
            document["data"] = data
    return Documents(_by_turns(regions), reading=found.reading)


def _by_turns(regions: Iterable[Sequence[Any]]) -> list[Any]:
    """Returns the documents of regions by turns, so that a run with ``--limit`` has documents of them all."""
    return [doc for turn in zip_longest(*regions) for doc in turn if doc is not None]


def check(settings: Settings) -> DataReport:
    """Checks the short-answer questions of all regions, their prompts and the multiple-choice questions."""
    report = check_tables("blend", settings, [*map(annotation_table, REGIONS), CHOICE_TABLE])
    report.problems = list(dict.fromkeys(report.problems))  # without its file, both prompts say the same
    return report
