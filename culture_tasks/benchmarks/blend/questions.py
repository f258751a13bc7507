"""BLEnD's questions as documents of a harness, from the authors' files: short answers, and multiple choice."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import zip_longest
from operator import attrgetter, or_
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.fields import spelled
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.benchmarks.reporting import names_in
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.reading import fingerprint
from culture_tasks.data.rows import Identifier, Label, OptionalText, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

HUB = "nayeon212/BLEnD"
QUESTIONS = 500  # with short answers, of each region
_SPELLED = ("Food", "Sport", "Family", "Education", "Holidays/Celebration/Leisure", "Work life")
TOPICS = {topic: topic.partition("/")[0].lower().replace(" ", "_") for topic in _SPELLED}
"""The topics by their names in the data."""


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


# Rows


class VotesRow(TableRow):
    """Answers that annotators counted as one, and how many people gave them."""

    answers: list[str]
    en_answers: list[str]
    count: Annotated[int, Field(gt=0)]


def _numbers(reasons: Any) -> Any:
    """Leaves out what counts nobody: reasons of other rows, and lists such as the Hub's ``other``."""
    if not isinstance(reasons, Mapping):
        return reasons
    return {reason: count for reason, count in reasons.items() if count is not None and not isinstance(count, list)}


class AnnotationRow(TableRow):
    """What the people of a region answered to one question, and how many had no answer, by reason."""

    id: Identifier
    question: str  # the release has one question without a Chinese text, which the paper asked as it is
    en_question: Text
    annotations: list[VotesRow]
    idks: Annotated[dict[str, int], BeforeValidator(_numbers)]

    @property
    def valid(self) -> bool:
        """Whether the question counts (the authors' ``exact_match.py``): enough people had an answer to it."""
        none = self.idks.get("no-answer", 0) + self.idks.get("not-applicable", 0)
        return none < 3 and self.idks.get("idk", 0) < 5 and bool(self.annotations)


class TopicRow(TableRow, extra="ignore"):
    """A question's topic."""

    id: Identifier
    topic: Annotated[Label, spelled(TOPICS)]


class PromptRow(TableRow, extra="ignore"):
    """One row of the authors' ``<Region>_prompts.csv``."""

    id: Identifier
    translation: OptionalText = None


def _choices(value: Any) -> Any:
    value = json.loads(value) if isinstance(value, str) else value
    if isinstance(value, Mapping):  # `datasets` gives every row the letters of all rows
        return {letter: text for letter, text in value.items() if text is not None}
    return value


class ChoiceRow(TableRow, extra="ignore"):
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


# Tables


_FILES: Mapping[str, tuple[type[TableRow], str]] = {
    "annotations": (AnnotationRow, "annotations/{}_data"),
    "short-answer-questions": (TopicRow, "questions/{}_questions"),
    "prompts": (PromptRow, "prompts/{}_prompts"),
}
"""Tables of a region: row model and file. The first two have the names of the Hub's configurations."""


@cache
def table(region: Region, kind: str) -> Table[Any]:
    """Returns a table of a region; a folder that holds its prompts alone leaves the others to the Hub."""

    def counts(rows: Sequence[AnnotationRow]) -> Iterator[Count]:
        yield count(f"{region.label}: questions", len(rows), QUESTIONS)
        yield count(f"{region.label}: valid", sum(row.valid for row in rows), region.valid)

    model, stem = _FILES[kind]
    more: dict[str, Any] = {}
    if kind != "prompts":
        more |= {"hub": HUB, "config": kind, "split": region.code, "id": "ID", "additions": ("prompts/*",)}
    if kind == "annotations":
        more |= {"release": Release(rows=QUESTIONS), "counts": counts}
    return Table(model=model, folder="blend", stems=(stem.format(region.name),), **more)


CHOICES = Table(
    model=ChoiceRow,
    folder="blend",
    stems=("mc_questions_file", "mc_questions_file-*"),  # in parts as the file is released
    hub=HUB,
    config="multiple-choice-questions",
    id="MCQID",
    id_of=lambda row: f"{row.country} {row.mcqid}",
    additions=("prompts/*",),
    # The paper has 37.6k in all, at least 500 of each region, and the release of December 2024 many more.
    release=Release(500 * len(REGIONS), grows=True),
    counts=lambda rows: tally("{}: multiple choice", (row.country for row in rows), LABELS),
)


# Documents


def regions_at_hand(regions: Sequence[Region], settings: Settings) -> Sequence[Region]:
    """Returns the regions with answers or prompts in the user's folder; all of them where it has none of any region."""
    kinds = ("annotations", "prompts")
    there = [region for region in regions if any(table(region, kind).files(settings) for kind in kinds)]
    if there and (missing := [region.label for region in regions if region not in there]):
        _log.warning("blend: without answers or prompts, these regions aren't asked: %s", ", ".join(missing))
    return there or regions


def _prompt_in(region: Region, wording: str, settings: Settings) -> PromptFile:
    """Returns the paper's prompt in a region's language."""
    found = table(region, "prompts").rows(settings)
    text = next((row.translation for row in found.rows if row.id == wording), None) or ""
    if text.count("{q}") != 1:
        raise DataError(
            f"{found.origin}, field 'Translation' of {wording!r}: found {text!r:.80}. Expected a text with {{q}} "
            "once, where the question goes. Take the authors' file."
        )
    return PromptFile(f"{wording.replace('-', '_')}.{region.name.lower()}", text)


def load_questions(regions: Sequence[Region], wording: str, settings: Settings, *, english: bool) -> Documents:
    """Loads the valid short-answer questions of regions by turns.

    ``english`` asks in English and looks for English answers alone, as the paper does in its second setting.
    """
    parts = [_of_one_region(region, wording, settings, english or region.language == "en") for region in regions]
    return Documents(_by_turns(part.rows for part in parts), reading=reduce(or_, map(attrgetter("reading"), parts)))


def _of_one_region(region: Region, wording: str, settings: Settings, english: bool) -> Documents:
    in_english = f"{wording.replace('-', '_')}.en.v1"  # with {question} and, in pers-3, {region}
    prompt = load_prompt(__package__, in_english) if english else _prompt_in(region, wording, settings)
    found, topic_rows = (table(region, kind).rows(settings) for kind in ("annotations", "short-answer-questions"))
    topics = {row.id: row.topic for row in topic_rows.rows}
    for index, row in enumerate(found.rows):
        if row.id not in topics:
            raise DataError(
                f"{found.where(index)}, field 'ID': found {row.id!r}, which is not among the questions that have a "
                "topic. Take both files from one release."
            )
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
