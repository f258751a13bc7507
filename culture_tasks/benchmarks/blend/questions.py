"""BLEnD's questions as documents of a harness, from the authors' files: short answers, and multiple choice."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial, reduce
from itertools import zip_longest
from operator import attrgetter, or_
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.benchmarks.reporting import names_in
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.files import Rows
from culture_tasks.data.reading import fingerprint
from culture_tasks.data.rows import Identifier, Label, OptionalText, Row, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

HUB = "nayeon212/BLEnD"
QUESTIONS = 500  # with short answers, of each region
Wording = Literal["inst-4", "pers-3"]
"""The paper's prompts: for an answer, and for that of a person from the region."""
TOPICS: Mapping[str, str] = {  # and how the data spell them
    "food": "Food",
    "sport": "Sport",
    "family": "Family",
    "education": "Education",
    "holidays": "Holidays/Celebration/Leisure",
    "work_life": "Work life",
}


class Region(NamedTuple):
    """A country or region."""

    name: str  # in the authors' files
    code: str  # of its split on the Hub
    language: str  # that people there were asked in
    valid: int  # questions of its 500, by the paper's rule, in the release of December 2024

    @property
    def label(self) -> str:
        """Its name in prompts and tables."""
        return self.name.replace("_", " ")


_facts = {name: facts.split() for name, facts in names_in(__package__, "regions.txt").items()}
REGIONS = tuple(Region(name, code, language, int(valid)) for name, (code, language, valid) in _facts.items())
LABELS = tuple(region.label for region in REGIONS)
_REASONS = ("idk", "no-answer", "not-applicable")


def _numbers(value: Any) -> Any:
    """Makes one mapping of the reasons for having no answer, of a mapping or a list of pairs or objects.

    Reasons are free texts beside the three; entries such as the Hub's list ``other`` say nothing about validity.
    """
    pairs = value.items() if isinstance(value, Mapping) else value
    pairs = [pair.values() if isinstance(pair, Mapping) else pair for pair in pairs]
    numbers = dict(sorted(pair, key=lambda part: not isinstance(part, str)) for pair in pairs)
    if missing := set(_REASONS) - numbers.keys():
        raise ValueError(f"Expected {', '.join(_REASONS)}, and {min(missing)!r} is missing")
    return {reason: number for reason, number in numbers.items() if number is not None and not isinstance(number, list)}


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
    idks: Annotated[dict[str, int], BeforeValidator(_numbers)]

    @property
    def valid(self) -> bool:
        """Whether the question counts (the authors' ``exact_match.py``): enough people had an answer to it."""
        none = self.idks["no-answer"] + self.idks["not-applicable"]
        return none < 3 and self.idks["idk"] < 5 and bool(self.annotations)


class TopicRow(TableRow):
    """A question's topic."""

    id: Identifier
    topic: Annotated[Label, AfterValidator(_a_topic)]


class PromptRow(TableRow):
    """One row of the authors' ``<Region>_prompts.csv``."""

    id: Identifier
    translation: OptionalText = None


class ChoiceRow(TableRow):
    """One multiple-choice question."""

    mcqid: Identifier
    id: Identifier
    country: Annotated[Label, AfterValidator(lambda name: name.replace("_", " ")), one_of(LABELS)]
    prompt: Text
    choices: Annotated[dict[str, str], BeforeValidator(_choices), Field(min_length=2)]
    answer_idx: Label

    @field_validator("answer_idx")
    @classmethod
    def _is_a_choice(cls, letter: str, info: ValidationInfo) -> str:
        if (choices := info.data.get("choices")) and letter not in choices:
            raise ValueError(f"Expected one of {', '.join(choices)}")
        return letter


def _of_region(region: Region, model: type[Row], folder: str, name: str, config: str, **more: Any) -> Table[Row]:
    """Returns a table of a region."""
    return Table(
        model=model,
        folder="blend",
        stems=(f"{folder}/{region.name}_{name}", f"*/{region.name}_{name}", f"{region.name}_{name}"),
        hub=HUB,
        config=config,
        split=region.code,
        id="ID",
        **more,
    )


def _only(*columns: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Returns what leaves out all other columns, such as drafts and the row numbers that pandas wrote."""
    return lambda row: {name: row[name] for name in columns if name in row}


def _region_counts(region: Region, rows: Sequence[AnnotationRow]) -> Iterator[Count]:
    yield count(f"{region.label}: questions", len(rows), QUESTIONS)
    yield count(f"{region.label}: valid", sum(row.valid for row in rows), region.valid)


def _without_topic(found: Rows[AnnotationRow], topics: Container[str]) -> Iterator[str]:
    for index, row in enumerate(found.rows):
        if row.id not in topics:
            yield (
                f"{found.where(index)}, field 'ID': {row.id!r} is not among the questions that have a topic. Take both "
                "files from one release."
            )


def topic_problems(region: Region, settings: Settings) -> Iterator[str]:
    """Yields the answered questions of a region without a topic, where both tables can be used."""
    with suppress(DataError):  # which the check of the tables tells
        found, topics = annotation_table(region).rows(settings), topic_table(region).rows(settings)
        yield from _without_topic(found, {row.id for row in topics.rows})


def _prompt_problems(found: Rows[PromptRow]) -> Iterator[str]:
    prompts = {row.id: row.translation for row in found.rows}
    for wording in get_args(Wording):
        if (prompts.get(wording, "{q}") or "").count("{q}") != 1:
            index = list(prompts).index(wording)
            yield (
                f"{found.where(index)}, field 'Translation': found {prompts[wording]!r:.80}. Expected {{q}} once, "
                "where the question goes. Correct it."
            )


@cache
def annotation_table(region: Region) -> Table[AnnotationRow]:
    """A region's answers."""
    release, counts = Release(QUESTIONS), partial(_region_counts, region)
    return _of_region(region, AnnotationRow, "annotations", "data", "annotations", release=release, counts=counts)


@cache
def topic_table(region: Region) -> Table[TopicRow]:
    """The topics of a region's questions, from the same places as its answers."""
    only = _only("ID", "Topic")
    return _of_region(region, TopicRow, "questions", "questions", "short-answer-questions", unpack=only)


@cache
def prompt_table(region: Region) -> Table[PromptRow]:
    """The prompts in a region's language, from the authors' repository; the Hub doesn't have them."""
    return Table(
        model=PromptRow,
        folder="blend",
        stems=(f"prompts/{region.name}_prompts", f"*/{region.name}_prompts"),
        unpack=_only("id", "Translation"),
        rules=_prompt_problems,
    )


CHOICES = Table(
    model=ChoiceRow,
    folder="blend",
    # in parts as the file is released
    stems=("mc_questions_file", "*/mc_questions_file", "mc_questions_file-*", "*/mc_questions_file-*"),
    hub=HUB,
    config="multiple-choice-questions",
    id="MCQID",
    id_of=lambda row: f"{row.country} {row.mcqid}",
    unpack=_only("MCQID", "ID", "country", "prompt", "choices", "answer_idx"),
    # The paper has 37.6k in all, at least 500 of each region, and the release of December 2024 many more.
    release=Release(500 * len(REGIONS), grows=True),
    counts=lambda rows: tally("{}: multiple choice", (row.country for row in rows), LABELS),
)


def regions_at_hand(regions: Sequence[Region], settings: Settings) -> Sequence[Region]:
    """Returns the regions with answers or prompts in the user's folder; all of them where it has none of any region."""

    def is_there(region: Region) -> bool:
        return any(table(region).files(settings) for table in (annotation_table, prompt_table))

    there = list(filter(is_there, regions))
    if there and (missing := [region.label for region in regions if region not in there]):
        _log.warning("blend: without answers or prompts, these regions aren't asked: %s", ", ".join(missing))
    return there or regions


def english_prompt(wording: Wording) -> PromptFile:
    """Returns the prompt in English; it is the paper's, with ``{question}`` and, in ``pers-3``, ``{region}``."""
    return load_prompt(__package__, f"{wording.replace('-', '_')}.en.v1")


def _prompt_in(region: Region, wording: Wording, settings: Settings) -> PromptFile:
    found = prompt_table(region).rows(settings)
    text = next((row.translation for row in found.rows if row.id == wording), None)
    if text is None:
        raise DataError(f"{found.origin}: no row with the id {wording!r}. Take the authors' file.")
    return PromptFile(f"{wording.replace('-', '_')}.{region.name.lower()}", text)


def load_questions(regions: Sequence[Region], wording: Wording, settings: Settings, *, english: bool) -> Documents:
    """Loads the valid short-answer questions of regions by turns.

    ``english`` asks in English and looks for English answers alone, as the paper does in its second setting.
    """
    parts = [_of_one_region(region, wording, settings, english or region.language == "en") for region in regions]
    return Documents(_by_turns(part.rows for part in parts), reading=reduce(or_, map(attrgetter("reading"), parts)))


def _of_one_region(region: Region, wording: Wording, settings: Settings, english: bool) -> Documents:
    prompt = english_prompt(wording) if english else _prompt_in(region, wording, settings)
    found, topic_rows = annotation_table(region).rows(settings), topic_table(region).rows(settings)
    topics = {row.id: row.topic for row in topic_rows.rows}
    for problem in _without_topic(found, topics):
        raise DataError(problem)
    data = fingerprint(row.model_dump() | {"topic": topics[row.id]} for row in found.rows)
    documents = []
    for row in filter(attrgetter("valid"), found.rows):
        question = row.question
        if english and region.language != "en":  # as in the authors' code
            question = row.en_question.replace("your country", region.label)
        ordered = sorted(row.annotations, key=lambda votes: -votes.count)  # votes that tie keep their order
        document = {
            "id": f"{region.name.lower()}-{row.id}",
            "question_id": row.id,
            "region": region.label,
            "language": "en" if english else region.language,
            "topic": topics[row.id],
            "question": question,
            "prompt": prompt.fill({"q": question, "question": question, "region": region.label}),
            "prompt_name": prompt.name,
            "template": prompt.text,
            # most votes first; no `answers` where it is asked in English
            "annotations": [votes.model_dump() | ({"answers": []} if english else {}) for votes in ordered],
            "data": data,
        }
        documents.append(document)
    if not documents:
        raise DataError(f"{found.origin}: no question is valid: too few people had an answer to each.")
    return Documents(documents, reading=found.reading | topic_rows.reading)


def load_choices(settings: Settings) -> Documents:
    """Loads the multiple-choice questions, which are in English, by turns of the regions that have some."""
    found = CHOICES.rows(settings)
    regions = []
    for label in LABELS:
        documents = [
            {
                "id": row.mcqid,
                "question_id": row.id,
                "region": label,
                "prompt": row.prompt,
                "choices": [[letter, text] for letter, text in row.choices.items()],
                "answer": row.answer_idx,
                "data": "",
            }
            for row in found.rows
            if row.country == label
        ]
        data = fingerprint(documents)
        regions.append([{**document, "data": data} for document in documents])
    return Documents(_by_turns(regions), reading=found.reading)


def _by_turns(regions: Iterable[Sequence[Any]]) -> list[Any]:
    """Returns the documents of regions by turns, so that a run with ``--limit`` has documents of them all."""
    return [doc for turn in zip_longest(*regions) for doc in turn if doc is not None]
