"""BLEnD's questions as documents of a harness: the authors' annotations, questions and multiple-choice files."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.blend.prompts import Wording, english_prompt, local_prompt
from culture_tasks.benchmarks.blend.regions import LANGUAGES, REGIONS, TOPICS, Region
from culture_tasks.data.releases import ReleaseFacts, check_cultures, check_release
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import (
    Identifier,
    Label,
    OptionalLabel,
    RowTable,
    Text,
    fingerprint,
    read_file,
    unique,
    validated,
)
from culture_tasks.errors import DataError, nearest

_log = logging.getLogger(__name__)

HUB = "nayeon212/BLEnD"

QUESTIONS = 500
"""Short-answer questions of each region."""


def annotation_source(region: Region) -> Source:
    """Where a region's answers are looked for; a folder that holds its prompts alone leaves them to the Hub."""
    name = f"{region.name}_data"
    return Source(
        folder="blend",
        stems=(f"annotations/{name}", f"*/{name}", name),
        hub=HUB,
        config="annotations",
        split=region.code,
        additions=(f"prompts/{region.name}_prompts",),
        release=ReleaseFacts(rows=QUESTIONS),
    )


def question_source(region: Region) -> Source:
    """Where the topics of a region's questions are looked for."""
    name = f"{region.name}_questions"
    return Source(
        folder="blend",
        stems=(f"questions/{name}", f"*/{name}", name),
        hub=HUB,
        config="short-answer-questions",
        split=region.code,
        additions=(f"prompts/{region.name}_prompts",),
    )


CHOICE_SOURCE = Source(
    folder="blend",
    stems=("mc_questions_file", "*/mc_questions_file", "mc_questions_file-1", "*/mc_questions_file-1"),
    hub=HUB,
    config="multiple-choice-questions",
    additions=tuple(f"prompts/{region.name}_prompts" for region in REGIONS),
    # The paper has 37.6k in all, and the release of December 2024 many more. The rows are those of one region.
    release=ReleaseFacts(
        rows=500,
        grows=True,
        culture="country",
        fits=lambda country: region_name(country) in {region.name for region in REGIONS},
        expected=f"one of {', '.join(region.name for region in REGIONS)}",
    ),
)


class Votes(TypedDict):
    """Answers that mean the same, and how many people gave them.

    ``answers`` are in the region's language and empty where the question is asked in English.
    """

    answers: list[str]
    en_answers: list[str]
    count: int


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
    annotations: list[Votes]
    data: str


class ChoiceDoc(TypedDict):
    """One multiple-choice question. ``choices`` are pairs of a letter and a text."""

    id: str
    question_id: str
    region: str
    prompt: str
    choices: list[list[str]]
    answer: str
    data: str


def _counts(value: Any) -> Any:
    """Makes one mapping of the reasons for having no answer, which have free-text names.

    A mapping may hold None, since ``datasets`` gives every row the names of all rows; a list has a row for each
    reason, either a pair or an object with a text and a number. Other entries, such as the Hub's list ``other``, say
    nothing about validity.
    """
    entries = value.items() if isinstance(value, Mapping) else value
    if not isinstance(value, (Mapping, Sequence)) or isinstance(value, str):
        return value
    counts: dict[str, Any] = {}
    for entry in entries:
        parts = list(entry.values()) if isinstance(entry, Mapping) else list(entry) if _is_list(entry) else [entry]
        if len(parts) != 2:
            raise ValueError(f"Expected a reason and a number in each entry, found {entry!r:.60}")
        name, number = parts if isinstance(parts[0], str) else reversed(parts)
        if not isinstance(name, str):
            raise ValueError(f"Expected a reason and a number in each entry, found {entry!r:.60}")
        if number is not None and not _is_list(number):
            counts[name] = number
    return counts


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


_REASONS = ("idk", "no-answer", "not-applicable")


def _with_reasons(counts: dict[str, int]) -> dict[str, int]:
    if missing := [reason for reason in _REASONS if reason not in counts]:
        raise ValueError(f"Expected {', '.join(_REASONS)}, and {missing[0]!r} is missing")
    return counts


class VotesRow(BaseModel):
    """Answers that annotators counted as one."""

    model_config = ConfigDict(extra="forbid")

    answers: list[str]
    en_answers: list[str]
    count: Annotated[int, Field(gt=0)]


class AnnotationRow(BaseModel):
    """What the people of a region answered to one question."""

    model_config = ConfigDict(extra="forbid")

    id: Identifier
    question: str  # the release has one question without a Chinese text, which the paper asked as it is
    en_question: Text
    annotations: list[VotesRow]
    idks: Annotated[dict[str, int], BeforeValidator(_counts), AfterValidator(_with_reasons)]

    @property
    def valid(self) -> bool:
        """Whether the question counts (the authors' ``exact_match.py``): enough people had an answer to it."""
        none = self.idks["no-answer"] + self.idks["not-applicable"]
        return none < 3 and self.idks["idk"] < 5 and bool(self.annotations)


def _a_topic(text: str) -> str:
    for topic, released in TOPICS.items():
        if text.casefold() == released.casefold():
            return topic
    raise ValueError(f"{nearest(text, TOPICS.values())} Allowed are {', '.join(TOPICS.values())}".strip())


class QuestionRow(BaseModel):
    """A question's topic. The texts are taken from the annotations, whose columns say which language they are in."""

    model_config = ConfigDict(extra="forbid")

    id: Identifier
    topic: Annotated[Label, AfterValidator(_a_topic)]
    source: OptionalLabel = None
    question: OptionalLabel = None
    translation: OptionalLabel = None
    number: OptionalLabel = None


def _choices(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError('Expected a JSON object such as {"A": "tea", "B": "coffee"}') from None
    if isinstance(value, Mapping):  # `datasets` gives every row the letters of all rows
        return {letter: text for letter, text in value.items() if text is not None}
    return value


class ChoiceRow(BaseModel):
    """One multiple-choice question."""

    model_config = ConfigDict(extra="forbid")

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
            raise ValueError(f"Allowed are {', '.join(choices)}")
        return letter


_NUMBER = {"": "number", "Unnamed: 0": "number"}  # the row numbers that pandas wrote
ANNOTATION_ALIASES = {"ID": "id"}
QUESTION_ALIASES = {
    "ID": "id",
    "Topic": "topic",
    "Source": "source",
    "Question": "question",
    "Translation": "translation",
    **_NUMBER,
}
CHOICE_ALIASES = {"MCQID": "mcqid", "ID": "id", **_NUMBER}


def annotation_table(region: Region, data_folder: Path | None) -> RowTable:
    """Reads a region's annotations: an object with an entry for each question, as released, or a list of rows.

    Raises:
        DataError: If they can't be read.
    """
    source = annotation_source(region)
    path = local_file(source, data_folder)
    if path is None:
        return read_source(source, data_folder)
    table = read_file(path, pairs=("ID", "entry"))
    return replace(table, rows=[_flat(table, index, row) for index, row in enumerate(table.rows)])


def _flat(table: RowTable, index: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    if set(row) != {"ID", "entry"}:
        return row
    if not isinstance(row["entry"], dict):
        raise DataError(
            f"{table.where(index)}, question {row['ID']!r}: found {row['entry']!r:.60}. Expected an object with "
            f"{', '.join(name for name in AnnotationRow.model_fields if name != 'id')}."
        )
    return {"ID": row["ID"], **row["entry"]}


def choice_tables(data_folder: Path | None) -> Iterator[RowTable]:
    """Reads the multiple-choice questions of all regions; the released file is in parts, ``…-1`` and ``…-2``.

    Raises:
        DataError: If they can't be read.
    """
    path = local_file(CHOICE_SOURCE, data_folder)
    if path is None:
        yield read_source(CHOICE_SOURCE, data_folder)
        return
    first = path.stem.removesuffix("-1")
    for part in sorted(path.parent.glob(f"{first}-*{path.suffix}")) if path.stem != first else [path]:
        yield read_file(part)


def load(
    region: Region, data_folder: Path | None, *, wording: Wording = "inst", english: bool = False
) -> list[BlendDoc]:
    """Loads the valid short-answer questions of a region.

    Args:
        region: The region.
        data_folder: The user's data folder, or None.
        wording: The paper's prompt.
        english: Ask in English and look for English answers alone, as the paper does in its second setting. In the
            regions that speak English nothing else is done.

    Raises:
        DataError: If the data can't be used.
    """
    english = english or region.language == "en"
    prompt = english_prompt(wording) if english else local_prompt(region, wording, data_folder)
    table = annotation_table(region, data_folder)
    rows = validated(table, AnnotationRow, ANNOTATION_ALIASES)
    check_release(annotation_source(region).release, table, list(map(vars, rows)))
    topics = _topics(region, data_folder)
    ids = list(unique(table, (row.id for row in rows), "ID"))
    if unknown := [index for index, identifier in enumerate(ids) if identifier not in topics]:
        raise DataError(
            f"{table.where(unknown[0])}, field 'ID': {ids[unknown[0]]!r} is not among the questions of "
            f"{question_source(region).stems[0]}, which give each its topic. "
            "Take both files from one release."
        )
    valid = [row for row in rows if row.valid]
    if not valid:
        raise DataError(f"{table.origin}: no question is valid: too few people had an answer to each.")
    if not english and (blank := [row.id for row in valid if not row.question.strip()]):
        _log.warning(
            "%s: %d valid questions have no text in %s (first %s); they are asked as they are, as in the paper",
            *(table.origin, len(blank), LANGUAGES[region.language], blank[0]),
        )
    data = fingerprint(row.model_dump() | {"topic": topics[row.id]} for row in rows)
    return [
        BlendDoc(
            id=f"{region.slug}-{row.id}",
            question_id=row.id,
            region=region.label,
            language="en" if english else region.language,
            topic=topics[row.id],
            question=question,
            prompt=prompt.fill({"q": question, "question": question, "region": region.label}),
            prompt_name=prompt.name,
            template=prompt.text,
            annotations=_votes(row, english=english),
            data=data,
        )
        for row in valid
        for question in [_question(row, region, english=english)]
    ]


def _topics(region: Region, data_folder: Path | None) -> dict[str, str]:
    table = read_source(question_source(region), data_folder)
    rows = validated(table, QuestionRow, QUESTION_ALIASES)
    return {row.id: row.topic for row, _ in zip(rows, unique(table, (row.id for row in rows), "ID"), strict=True)}


def _question(row: AnnotationRow, region: Region, *, english: bool) -> str:
    """Returns the question; in English the region replaces "your country", as in the authors' code."""
    if not english or region.language == "en":
        return row.question
    return row.en_question.replace("your country", region.label)


def _votes(row: AnnotationRow, *, english: bool) -> list[Votes]:
    ordered = sorted(row.annotations, key=lambda votes: -votes.count)  # as released; votes that tie keep their order
    return [
        Votes(answers=[] if english else votes.answers, en_answers=votes.en_answers, count=votes.count)
        for votes in ordered
    ]


def load_choices(region: Region, data_folder: Path | None) -> list[ChoiceDoc]:
    """Loads the multiple-choice questions of a region, which are in English.

    Raises:
        DataError: If the data can't be used, or hold none of this region.
    """
    docs: list[ChoiceDoc] = []
    origins: list[str] = []
    for table in choice_tables(data_folder):
        origins.append(table.origin)
        check_cultures(CHOICE_SOURCE.release, table, table.rows)
        part = table.part([index for index, row in enumerate(table.rows) if of_region(row, region)])
        if not part.rows:
            continue
        rows = validated(part, ChoiceRow, CHOICE_ALIASES)
        for row, identifier in zip(rows, unique(part, (row.mcqid for row in rows), "MCQID"), strict=True):
            docs.append(
                ChoiceDoc(
                    id=identifier,
                    question_id=row.id,
                    region=region.label,
                    prompt=row.prompt,
                    choices=[[letter, text] for letter, text in row.choices.items()],
                    answer=row.answer_idx,
                    data="",
                )
            )
    if not docs:
        raise DataError(
            f"{', '.join(origins)}: no row has {region.name!r} in the column 'country'. "
            f"Allowed are {', '.join(each.name for each in REGIONS)}."
        )
    check_release(CHOICE_SOURCE.release, table, docs)
    data = fingerprint(docs)
    return [ChoiceDoc(**{**doc, "data": data}) for doc in docs]


def of_region(row: Mapping[str, Any], region: Region) -> bool:
    """Whether a row of the multiple-choice questions is of a region; blanks and underscores in its name are one."""
    return region_name(str(row.get("country", ""))) == region.name


def region_name(country: str) -> str:
    """Returns a country as the regions are named: blanks and underscores in it are one."""
    return country.strip().replace(" ", "_")
