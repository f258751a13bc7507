"""BLEnD's questions as documents of a harness, from the authors' files, and the check of these files."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator

from culture_tasks.benchmarks.blend.regions import REGIONS, TOPICS, Region
from culture_tasks.benchmarks.interface import Documents
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.releases import ReleaseFacts, check_cultures, check_release
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import (
    Identifier,
    Label,
    OptionalLabel,
    OptionalText,
    RowTable,
    TableRow,
    Text,
    fingerprint,
    read_file,
    unique,
    validated,
)
from culture_tasks.errors import DataError, DataUnavailableError, nearest
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as load_prompt
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import language

_log = logging.getLogger(__name__)

HUB = "nayeon212/BLEnD"
AUTHORS_PROMPTS = "https://github.com/nlee0212/BLEnD (data/prompts)"

QUESTIONS = 500  # with short answers, of each region
CHOICES = 500  # multiple-choice questions of a region, at least

Wording = Literal["inst", "pers"]
"""``inst`` asks for an answer (the paper's inst-4), ``pers`` asks a person from the region (its pers-3)."""

PAPER_NAMES: Mapping[Wording, str] = {"inst": "inst-4", "pers": "pers-3"}


def prompt_source(region: Region) -> Source:
    """Where the prompts in a region's language are looked for."""
    return Source(folder="blend", stems=(f"prompts/{region.name}_prompts", f"*/{region.name}_prompts"), hub=None)


def label_of(country: str) -> str:
    """Returns a country as the labels of regions: blanks and underscores in it are one."""
    return country.strip().replace("_", " ")


_LABELS = tuple(region.label for region in REGIONS)
# The paper has 37.6k in all, and the release of December 2024 many more.
_CHOICE_RELEASE = ReleaseFacts(
    rows=CHOICES * len(REGIONS),
    grows=True,
    culture="country",
    fits=lambda country: label_of(country) in _LABELS,
    expected=f"one of {', '.join(_LABELS)}",
)
CHOICE_SOURCE = Source(
    folder="blend",
    stems=("mc_questions_file", "*/mc_questions_file", "mc_questions_file-1", "*/mc_questions_file-1"),
    hub=HUB,
    config="multiple-choice-questions",
    additions=tuple(f"prompts/{region.name}_prompts" for region in REGIONS),
    release=_CHOICE_RELEASE,
)


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
_TEXTS = {name.capitalize(): name for name in ("topic", "source", "question", "translation")}
QUESTION_ALIASES = {"ID": "id", **_TEXTS, **_NUMBER}
CHOICE_ALIASES = {"MCQID": "mcqid", "ID": "id", **_NUMBER}
_PROMPT_COLUMNS = {"id": "id", "Translation": "translation"}


def annotation_check(region: Region) -> TableCheck[AnnotationRow]:
    """A region's answers; a folder that holds its prompts alone leaves them to the Hub."""
    name = f"{region.name}_data"
    source = Source(
        folder="blend",
        stems=(f"annotations/{name}", f"*/{name}", name),
        hub=HUB,
        config="annotations",
        split=region.code,
        key="ID",
        additions=(f"prompts/{region.name}_prompts",),
        release=ReleaseFacts(rows=QUESTIONS),
    )
    counts = partial(_region_counts, region)
    return TableCheck(source=source, model=AnnotationRow, aliases={"ID": "id"}, id="ID", counts=counts)


def topic_check(region: Region) -> TableCheck[TopicRow]:
    """The topics of a region's questions, from the same places as its answers."""
    name, config = f"{region.name}_questions", "short-answer-questions"
    stems = (f"questions/{name}", f"*/{name}", name)
    source = replace(annotation_check(region).source, stems=stems, config=config, release=None)
    return TableCheck(source=source, model=TopicRow, aliases=QUESTION_ALIASES, id="ID")


def english_prompt(wording: Wording) -> PromptFile:
    """Returns the English prompt, with the slots ``{question}`` and, for ``pers``, ``{region}``."""
    return load_prompt(__package__, f"{PAPER_NAMES[wording].replace('-', '_')}.en.v1")


def local_prompt(region: Region, wording: Wording, data_folder: Path | None) -> PromptFile:
    """Returns the prompt in the region's language, with the slot ``{q}``, from the authors' file: the Hub has none."""
    try:
        table = read_source(prompt_source(region), data_folder)
    except DataUnavailableError:
        raise DataUnavailableError(
            f"blend: found no prompts in {language(region.language).name}. Expected "
            f"blend/prompts/{region.name}_prompts.csv in the folder that CULTURE_TASKS_DATA names. "
            f"Take it from {AUTHORS_PROMPTS}. The tasks that ask in English need no such file."
        ) from None
    paper_name = PAPER_NAMES[wording]
    rows = [{name: text for name, text in row.items() if name in _PROMPT_COLUMNS} for row in table.rows]
    for index, row in enumerate(validated(replace(table, rows=rows), PromptRow, _PROMPT_COLUMNS)):
        if row.id != paper_name:
            continue
        if row.translation is None or row.translation.count("{q}") != 1:
            raise DataError(
                f"{table.where(index)}, field 'Translation': found {row.translation!r:.80}. Expected the prompt "
                f"{paper_name} in {language(region.language).name}, with {{q}} once, where the question goes. Correct "
                "it."
            )
        return PromptFile(f"{paper_name.replace('-', '_')}.{region.slug}", row.translation)
    raise DataError(f"{table.origin}: no row with the id {paper_name!r}. Take the authors' file, {AUTHORS_PROMPTS}.")


def load_regions(regions: Sequence[Region], wording: Wording, settings: Settings, *, english: bool) -> Documents:
    """Loads the questions of regions by turns, so that a run with ``--limit`` has documents of them all."""
    parts = [load(region, settings.data_folder, wording=wording, english=english) for region in regions]
    return Documents([row for turn in zip_longest(*parts) for row in turn if row is not None])


def regions_at_hand(regions: Sequence[Region], data_folder: Path | None) -> Sequence[Region]:
    """Returns the regions with answers or prompts in the user's folder; all of them where it has none of any region."""

    def is_there(region: Region) -> bool:
        with suppress(DataUnavailableError):
            local_file(annotation_check(region).source, data_folder)
            return True
        return False

    there = [region for region in regions if is_there(region)]
    if there and (missing := [region.label for region in regions if region not in there]):
        _log.warning(
            "blend: %s has neither answers nor prompts of %s, so that these regions aren't asked",
            *((data_folder or Path()) / "blend", ", ".join(missing)),
        )
    return there or regions


def load(
    region: Region, data_folder: Path | None, *, wording: Wording = "inst", english: bool = False
) -> list[BlendDoc]:
    """Loads the valid short-answer questions of a region.

    ``english`` asks in English and looks for English answers alone, as the paper does in its second setting.
    """
    english = english or region.language == "en"
    prompt = english_prompt(wording) if english else local_prompt(region, wording, data_folder)
    table, rows, _ = annotation_check(region).read(data_folder)
    _, topic_rows, _ = topic_check(region).read(data_folder)
    topics = {row.id: row.topic for row in topic_rows}
    for index, row in enumerate(rows):
        if row.id not in topics:
            raise DataError(_missing_topic(table, index, row.id, topic_check(region).source.stems[0]))
    valid = [row for row in rows if row.valid]
    if not valid:
        raise DataError(f"{table.origin}: no question is valid: too few people had an answer to each.")
    if not english and (blank := [row.id for row in valid if not row.question.strip()]):
        _log.warning(
            "%s: %d valid questions have no text in %s (first %s); they are asked as they are, as in the paper",
            *(table.origin, len(blank), language(region.language).name, blank[0]),
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
    return documents


def _missing_topic(table: RowTable, index: int, identifier: str, questions: str) -> str:
    return (
        f"{table.where(index)}, field 'ID': {identifier!r} is not among the questions of {questions}, which give each "
        "its topic. Take both files from one release."
    )


def choice_tables(data_folder: Path | None) -> Iterator[RowTable]:
    """Reads the multiple-choice questions of all regions; the released file is in parts, ``…-1`` and ``…-2``."""
    path = local_file(CHOICE_SOURCE, data_folder)
    if path is None or not path.stem.endswith("-1"):
        yield read_source(CHOICE_SOURCE, data_folder)
        return
    for part in sorted(path.parent.glob(f"{path.stem.removesuffix('1')}*{path.suffix}")):
        yield read_file(part)


def load_choices(settings: Settings) -> Documents:
    """Loads the multiple-choice questions, which are in English, by turns of the regions that have some."""
    by_region: dict[str, list[ChoiceDoc]] = {label: [] for label in _LABELS}
    for table in choice_tables(settings.data_folder):
        check_cultures(_CHOICE_RELEASE, table, table.rows)
        countries = [label_of(str(row.get("country", ""))) for row in table.rows]
        part = table.part([index for index, country in enumerate(countries) if country in by_region])
        rows = validated(part, ChoiceRow, CHOICE_ALIASES) if part.rows else []
        for row, identifier in zip(rows, unique(part, (row.mcqid for row in rows), "MCQID"), strict=True):
            document = ChoiceDoc(
                id=identifier,
                question_id=row.id,
                region=label_of(row.country),
                prompt=row.prompt,
                choices=[[letter, text] for letter, text in row.choices.items()],
                answer=row.answer_idx,
                data="",
            )
            by_region[document["region"]].append(document)
    regions = list(filter(None, by_region.values()))
    if not regions:
        raise DataError(f"{table.origin}: the column 'country' has none of {', '.join(by_region)}.")
    documents = [doc for turn in zip_longest(*regions) for doc in turn if doc is not None]
    check_release(replace(_CHOICE_RELEASE, rows=CHOICES * len(regions)), table, documents)
    for of_region in regions:
        data = fingerprint(of_region)
        for doc in of_region:
            doc["data"] = data
    return Documents(documents)


def check(data_folder: Path | None) -> DataReport:
    """Checks the short-answer questions of all regions, their prompts and the multiple-choice questions."""
    regions = [
        replace(annotation_check(region), problems=partial(_topics_and_prompts, region, data_folder))
        for region in REGIONS
    ]
    choices = TableCheck(
        source=CHOICE_SOURCE, model=ChoiceRow, aliases=CHOICE_ALIASES, tables=choice_tables, counts=_choice_counts
    )
    report = check_tables("blend", data_folder, [*regions, choices])
    report.problems = list(dict.fromkeys(report.problems))  # without its file, both prompts say the same
    return report


def _region_counts(region: Region, rows: Sequence[AnnotationRow]) -> Iterator[Count]:
    valid = [row for row in rows if row.valid]
    yield Count(f"{region.label}: questions", str(len(rows)), str(QUESTIONS))
    yield Count(f"{region.label}: valid", str(len(valid)), str(region.valid))
    if blank := sum(not row.question.strip() for row in valid):
        yield Count(f"{region.label}: valid, without a text in {language(region.language).name}", str(blank))


def _topics_and_prompts(
    region: Region, data_folder: Path | None, table: RowTable, rows: Mapping[int, AnnotationRow]
) -> Iterator[str]:
    try:
        questions = read_source(topic_check(region).source, data_folder)
    except DataError as error:
        yield str(error)
    else:
        topics, problems = topic_check(region).all_problems(questions)
        yield from problems
        identifiers = {row.id for row in topics.values()}
        for index, row in rows.items():
            if row.id not in identifiers:
                yield _missing_topic(table, index, row.id, questions.origin)
    for wording in PAPER_NAMES if region.language != "en" else ():
        try:
            local_prompt(region, wording, data_folder)
        except DataError as error:
            yield str(error)


def _choice_counts(rows: Sequence[ChoiceRow]) -> Iterator[Count]:
    counts = Counter(label_of(row.country) for row in rows)
    for region in REGIONS:
        yield Count(f"{region.label}: multiple choice", str(counts[region.label]))
