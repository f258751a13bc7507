"""CulturalVQA's questions as documents of a harness, and ``culture-tasks data check culturalvqa``."""

from __future__ import annotations

import ast
import io
import json
import logging
import random
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from annotated_types import Len
from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.interface import Doc, Documents
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.files import RowTable, read_file
from culture_tasks.data.images import broken_images, image_column, image_keys
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.rows import (
    Identifier,
    OptionalIdentifier,
    OptionalLabel,
    TableRow,
    Text,
    fingerprint,
    unique,
    usable_rows,
    validated,
)
from culture_tasks.data.sources import Source, addition, folder_of, read_source
from culture_tasks.errors import DataError

_log = logging.getLogger(__name__)

COUNTRIES = (
    *("brazil", "canada", "china", "ethiopia", "germany", "india"),
    *("iran", "nigeria", "rwanda", "turkey", "usa"),
)
"""The 11 countries (Appendix A)."""

FACETS = ("clothing", "drinks", "food", "rituals", "traditions")  # abstract and section 5

_COUNTRY_SPELLINGS = {
    **{country: country for country in COUNTRIES},
    **dict.fromkeys(("us", "unitedstates", "unitedstatesofamerica", "america"), "usa"),
    **dict.fromkeys(("turkiye", "türkiye"), "turkey"),
    **dict.fromkeys(("prchina", "peoplesrepublicofchina"), "china"),
    "brasil": "brazil",
    "islamicrepublicofiran": "iran",
}


def _letters(text: str | None) -> str:
    """Returns the letters and digits of a text alone: ``United States`` is ``unitedstates``."""
    return re.sub(r"[\W_]", "", (text or "").casefold())


def country_of(text: str | None) -> str:
    """Returns the country that a text names; empty if it is none of the 11."""
    return _COUNTRY_SPELLINGS.get(_letters(text), "")


def facet_of(text: str | None) -> str:
    """Returns the facet that a text names by its stem (``Drink``, ``beverages``); empty if it is none of the 5."""
    stems = {facet[:4]: facet for facet in FACETS} | {"beve": "drinks"}
    return stems.get(_letters(text)[:4], "")


QUESTIONS, ANSWERS = 2_378, 7_206  # in all (section 3 and conclusion)

SOURCE = Source(
    folder="culturalvqa",
    stems=("test", "culturalvqa", "data/test", "data/test-00000-of-00001"),
    hub="mair-lab/CulturalVQA",
    image_column="image",
    additions=("answers",),
    release=ReleaseFacts(
        rows=QUESTIONS,
        culture="country",
        fits=lambda country: bool(country_of(country)),
        expected=f"one of {', '.join(COUNTRIES)}",
    ),
)

_ALIASES = {"answers": "all_answers", "id": "u_id", "visual_entities": "entities"}
_ANSWER_PAIRS = ("u_id", "all_answers")
"""Columns of an answers file, which in JSON may be one object with the answers of each question under its ``u_id``."""

Variant = Literal["vlm", "fewshot", "blind", "country", "lens"]
"""The parts of the prompt: image and question (App. H), with examples (App. I), or one of section 5's baselines."""

WITH_IMAGE: tuple[Variant, ...] = ("vlm", "fewshot")

EXAMPLES = 3
"""Examples of the few-shot variant. The paper shows the layout of one and doesn't say how many there were."""


class Example(TypedDict):
    """One answered question of the few-shot prompt."""

    row: int  # which has its image
    question: str
    answer: str  # of several the first


class CulturalVqaDoc(TypedDict):
    """One question of CulturalVQA, without its image.

    The last three are in the documents of one variant alone, since the harnesses walk over every field several times.
    """

    id: str
    question: str
    references: list[str]  # empty where the answers are withheld
    country: str  # empty where the row has none of the paper's, as `facet` is
    facet: str
    image_id: str  # the same for questions about one image, empty where there is none
    data: str
    country_name: NotRequired[str]  # in the row's own spelling
    entities: NotRequired[str]
    examples: NotRequired[list[Example]]  # shown before the question


def _as_list(value: Any) -> Any:
    """Reads a list as releases and CSV files write it, without the blank entries that pad some columns."""
    if isinstance(value, str):
        value = _listed(value) if value.lstrip().startswith("[") else [value]
    entries = [] if value is None else value
    if not isinstance(entries, list):
        return entries
    return [entry for entry in entries if entry is not None and (not isinstance(entry, str) or entry.strip())]


def _listed(text: str) -> Any:
    """Reads a list in the form of JSON, of Python, or of NumPy, which has no commas."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:  # ['a', 'b'] and ['a' 'b'], which as Python would be one text
        tokens = [token.string for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline)]
        opening, *inner, closing = (token for token in tokens if token.strip())
        if (opening, closing) != ("[", "]"):
            raise ValueError("no list")
        return [None if entry in ("None", "nan") else ast.literal_eval(entry) for entry in inner if entry != ","]
    except (ValueError, SyntaxError, tokenize.TokenError):
        raise ValueError('Expected a list of texts, such as ["naan", "flatbread"]') from None


Texts = Annotated[list[Text], BeforeValidator(_as_list)]


class CulturalVqaRow(TableRow):
    """One row as released; older revisions of the Hub's data hold image and question alone."""

    question: Text
    u_id: OptionalIdentifier = None
    image: OptionalLabel = None
    facet: OptionalLabel = None
    country: OptionalLabel = None
    all_answers: Texts = Field(default_factory=list)
    entities: Texts = Field(default_factory=list)


class _AnswerRow(TableRow):
    """One row of a local answers file, joined on ``u_id``."""

    u_id: Identifier
    all_answers: Annotated[Texts, Len(min_length=1)]
    facet: OptionalLabel = None
    country: OptionalLabel = None


def load(
    variant: Variant,
    data_folder: Path | None,
    source: Source = SOURCE,
    country: str = "",
) -> Documents:
    """Loads the questions, and their images where the model will be shown them.

    Args:
        variant: The parts of the prompt.
        data_folder: The user's data folder.
        source: The questions: the released ones, or those of an own culture.
        country: The country that all of them are about; empty for the one that each row names.
    """
    table = read_source(source, data_folder)
    rows = _with_local_answers(source, table, validated(table, CulturalVqaRow, _ALIASES), data_folder)
    without = [index for index, row in enumerate(rows) if not row.all_answers]
    if without and len(without) < len(rows):
        raise DataError(
            f"{table.where(without[0])}, field 'all_answers': found nothing, here and in {len(without) - 1} more rows "
            "while others have answers. Expected at least one answer in each row, or in none."
        )
    if variant == "fewshot" and without:
        raise DataError(
            f"{table.origin}: found no answers. culturalvqa_fewshot shows {EXAMPLES} other questions with theirs: add "
            "the column 'all_answers' to your data, or leave this task out."
        )
    column = {"country": "country", "lens": "entities"}.get(variant)  # which this variant alone shows
    if lacking := [index for index, row in enumerate(rows) if column and not getattr(row, column)]:
        raise DataError(
            f"{table.where(lacking[0])}, field {column!r}: found nothing. culturalvqa_{variant} shows it to the "
            f"model: add the column {column!r} to your data, or leave this task out."
        )
    folder, names = folder_of(source, data_folder), [row.image for row in rows]
    keys = image_keys(table, names, folder, strict=variant == "fewshot")
    data = fingerprint(row.model_dump(exclude={"image"}) for row in rows)
    documents = [
        CulturalVqaDoc(
            id=identifier,
            question=row.question,
            references=row.all_answers,
            country=country or country_of(row.country),
            facet=facet_of(row.facet),
            image_id=key or "",
            data=data,
        )
        for identifier, row, key in zip(unique(table, (row.u_id for row in rows), "u_id"), rows, keys, strict=True)
    ]
    check_release(source.release, table, list(map(vars, rows)))
    for field in ("country", "facet"):
        values = [getattr(row, field) for row, doc in zip(rows, documents, strict=True) if not doc[field]]
        if unknown_values := sorted(filter(None, set(values))):  # such as misspelt ones
            _log.warning(
                "%s: %d values of %r are none of the paper's (such as %r); their questions count in the overall score "
                "only",
                *(table.origin, len(unknown_values), field, unknown_values[0]),
            )
    examples = _examples(table, keys)
    for document, row in zip(documents, rows, strict=True):
        if variant == "fewshot":
            document["examples"] = [
                Example(row=index, question=rows[index].question, answer=rows[index].all_answers[0])
                for index in next(examples)
            ]
        elif variant == "country":
            document["country_name"] = row.country or ""
        elif variant == "lens":
            document["entities"] = ", ".join(row.entities)
    return Documents(documents, image_column(table, names, folder) if variant in WITH_IMAGE else None)


def _with_local_answers(
    source: Source, table: RowTable, rows: list[CulturalVqaRow], data_folder: Path | None
) -> list[CulturalVqaRow]:
    path = addition(source, data_folder)
    if path is None:
        return rows
    if all(row.u_id is None for row in rows):
        raise DataError(
            f"{path}: can't be joined, since {table.origin} has no column 'u_id'. Expected questions with the ids of "
            "the answers: use a newer revision of the data, or put the answers into the column 'all_answers'."
        )
    answers_table = read_file(path, pairs=_ANSWER_PAIRS)
    answer_rows = validated(answers_table, _AnswerRow, _ALIASES)
    answers = dict(zip(unique(answers_table, (row.u_id for row in answer_rows), "u_id"), answer_rows, strict=True))
    missing = [index for index, row in enumerate(rows) if row.u_id not in answers]
    if missing:
        raise DataError(
            f"{path}: no answer for u_id {rows[missing[0]].u_id!r} ({table.where(missing[0])}), and for "
            f"{len(missing) - 1} more. Expected one row for each question. Add them."
        )
    return [
        row.model_copy(update=answers[str(row.u_id)].model_dump(exclude={"u_id"}, exclude_none=True)) for row in rows
    ]


def _examples(table: RowTable, keys: Sequence[str | None]) -> Iterator[list[int]]:
    """Draws the examples of each question, by a fixed seed, from the questions about other images."""
    times = Counter(keys)
    for index, key in enumerate(keys):
        if len(keys) - times[key] < EXAMPLES:
            raise DataError(
                f"{table.where(index)}: culturalvqa_fewshot shows {EXAMPLES} questions about other images, and there "
                f"are {len(keys) - times[key]}. Add questions, or leave this task out."
            )
        rng = random.Random(f"1234-{index}")  # noqa: S311
        examples: list[int] = []
        while len(examples) < EXAMPLES:
            candidate = rng.randrange(len(keys))
            if keys[candidate] != key and candidate not in examples:
                examples.append(candidate)
        yield examples


def check(name: str, data_folder: Path | None, source: Source) -> DataReport:
    """Checks a benchmark's questions, answers and images; the released ones are counted beside the paper's.

    Answers that are withheld in all rows are no problem: the tasks then write predictions for submission.
    """
    paper = str(QUESTIONS) if source.release else None
    questions = TableCheck(
        source=source,
        model=CulturalVqaRow,
        aliases=_ALIASES,
        problems=partial(_answers_and_images, source, data_folder),
        counts=lambda rows: [Count("questions", str(len(rows)), paper)],
    )
    report = check_tables(name, data_folder, [questions])
    if source.release and report.usable:
        try:
            report.counts = list(_counts(load("blind", data_folder).rows))
        except DataError as error:
            report.problems.append(str(error))
    return report


def _answers_and_images(
    source: Source, data_folder: Path | None, table: RowTable, rows: Mapping[int, CulturalVqaRow]
) -> Iterator[str]:
    answers = addition(source, data_folder)
    if answers is not None:
        try:
            yield from usable_rows(read_file(answers, pairs=_ANSWER_PAIRS), _AnswerRow, _ALIASES)[1]
        except DataError as error:
            yield str(error)
    names = [row.image for row in rows.values()]
    yield from broken_images(table.part(list(rows)), names, folder_of(source, data_folder))


def _counts(documents: Sequence[Doc]) -> Iterator[Count]:
    yield Count("questions", str(len(documents)), str(QUESTIONS))
    yield Count("answers", str(sum(len(doc["references"]) for doc in documents)), str(ANSWERS))
    for field, groups in (("country", COUNTRIES), ("facet", FACETS)):
        counts = Counter(doc[field] for doc in documents)
        for group in groups:
            yield Count(f"{field} {group}", str(counts[group]))
        yield Count(f"{field}: none of the paper's", str(counts[""]), "0")
