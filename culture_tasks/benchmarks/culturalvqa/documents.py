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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from annotated_types import Len
from pydantic import BeforeValidator, Field

from culture_tasks.benchmarks.interface import Doc, Documents
from culture_tasks.benchmarks.reporting import names_in
from culture_tasks.data.checking import Count, count, tally
from culture_tasks.data.images import image_keys
from culture_tasks.data.rows import (
    Identifier,
    OptionalIdentifier,
    OptionalLabel,
    TableRow,
    Text,
)
from culture_tasks.data.tables import Release, Rows, Table
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

COUNTRIES = names_in(__package__, "countries.txt")
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

Shown = Literal["vlm", "fewshot", "blind", "country", "lens"]
"""The parts of the prompt: image and question (App. H), with examples (App. I), or one of section 5's baselines."""

WITH_IMAGE: tuple[Shown, ...] = ("vlm", "fewshot")

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


def _answer_problems(_: Rows[CulturalVqaRow], settings: Settings) -> Iterator[str]:
    if ANSWERS_TABLE.files(settings):
        try:
            yield from ANSWERS_TABLE.check(settings, set())[1]
        except DataError as error:
            yield str(error)


_ALIASES = {"answers": "all_answers", "id": "u_id", "visual_entities": "entities"}
QUESTION_TABLE = Table(
    model=CulturalVqaRow,
    folder="culturalvqa",
    stems=("test", "culturalvqa", "data/test", "data/test-00000-of-00001"),
    hub="mair-lab/CulturalVQA",
    additions=("answers",),
    aliases=_ALIASES,
    id="u_id",
    id_of=attrgetter("u_id"),
    image_column="image",
    release=Release(
        rows=QUESTIONS,
        culture="country",
        fits=lambda country: bool(country_of(country)),
        expected=f"one of {', '.join(COUNTRIES)}",
    ),
    beside=_answer_problems,
    counts=lambda rows: [count("questions", len(rows), QUESTIONS)],
)
ANSWERS_TABLE = Table(
    model=_AnswerRow,
    folder="culturalvqa",
    stems=("answers",),
    additions=("*",),  # there may be none
    pairs=("u_id", "all_answers"),
    aliases=_ALIASES,
    id="u_id",
    id_of=attrgetter("u_id"),
)


def culture_table(folder: Path) -> Table[CulturalVqaRow]:
    """Returns the table of an own culture."""
    return QUESTION_TABLE.of_culture(folder, beside=lambda *_: (), counts=lambda rows: [count("questions", len(rows))])


def load(
    shown: Shown, settings: Settings, table: Table[CulturalVqaRow] = QUESTION_TABLE, country: str = ""
) -> Documents:
    """Loads the questions, and their images where the model will be shown them.

    Args:
        shown: What the model is shown of a question.
        settings: The user's settings.
        table: The questions: the released ones, or those of an own culture.
        country: The country that all of them are about; empty for the one that each row names.
    """
    found = table.rows(settings, images=set() if shown in WITH_IMAGE else None)
    if table is QUESTION_TABLE:
        found = replace(found, rows=_with_local_answers(found, settings))
    rows = found.rows
    without = [index for index, row in enumerate(rows) if not row.all_answers]
    if without and len(without) < len(rows):
        raise DataError(
            f"{found.where(without[0])}, field 'all_answers': found nothing, here and in {len(without) - 1} more rows "
            "while others have answers. Expected at least one answer in each row, or in none."
        )
    if shown == "fewshot" and without:
        raise DataError(
            f"{found.table.origin}: found no answers. culturalvqa_fewshot shows {EXAMPLES} other questions with "
            "theirs: add the column 'all_answers' to your data, or leave this task out."
        )
    if column := {"country": "country", "lens": "entities"}.get(shown):  # which this variant alone shows
        advice = f"add the column {column!r} to your data, or leave this task out."
        found.require(f"culturalvqa_{shown} shows it to the model: {advice}", **{column: column})
    keys = image_keys(found.table, [row.image for row in rows], found.table.folder)
    data = found.fingerprint(exclude={"image"})
    documents = [
        CulturalVqaDoc(
            id=identifier,
            question=row.question,
            references=row.all_answers,
            country=country or country_of(row.country),
            facet=facet_of(row.facet),
            image_id=key,
            data=data,
        )
        for (identifier, row), key in zip(found, keys, strict=True)
    ]
    for field in ("country", "facet"):
        values = [getattr(row, field) for row, doc in zip(rows, documents, strict=True) if not doc[field]]
        if unknown_values := sorted(filter(None, set(values))):  # such as misspelt ones
            _log.warning(
                "%s: %d values of %r are none of the paper's (such as %r); their questions count in the overall score "
                "only",
                *(found.table.origin, len(unknown_values), field, unknown_values[0]),
            )
    examples = _examples(found, keys)
    for document, row in zip(documents, rows, strict=True):
        if shown == "fewshot":
            document["examples"] = [
                Example(row=index, question=rows[index].question, answer=rows[index].all_answers[0])
                for index in next(examples)
            ]
        elif shown == "country":
            document["country_name"] = row.country or ""
        elif shown == "lens":
            document["entities"] = ", ".join(row.entities)
    return Documents(documents, found.images, found.reading)


def _with_local_answers(found: Rows[CulturalVqaRow], settings: Settings) -> Sequence[CulturalVqaRow]:
    paths, rows = ANSWERS_TABLE.files(settings), found.rows
    if not paths:
        return rows
    if all(row.u_id is None for row in rows):
        raise DataError(
            f"{paths[0]}: can't be joined, since {found.table.origin} has no column 'u_id'. Expected questions with "
            "the ids of the answers: use a newer revision of the data, or put the answers into the column "
            "'all_answers'."
        )
    answers = {row.u_id: row for row in ANSWERS_TABLE.rows(settings).rows}
    missing = [index for index, row in enumerate(rows) if row.u_id not in answers]
    if missing:
        raise DataError(
            f"{paths[0]}: no answer for u_id {rows[missing[0]].u_id!r} ({found.where(missing[0])}), and for "
            f"{len(missing) - 1} more. Expected one row for each question. Add them."
        )
    return [
        row.model_copy(update=answers[str(row.u_id)].model_dump(exclude={"u_id"}, exclude_none=True)) for row in rows
    ]


def _examples(found: Rows[CulturalVqaRow], keys: Sequence[str]) -> Iterator[list[int]]:
    """Draws the examples of each question, by a fixed seed, from the questions about other images."""
    times = Counter(keys)
    for index, key in enumerate(keys):
        if len(keys) - times[key] < EXAMPLES:
            raise DataError(
                f"{found.where(index)}: culturalvqa_fewshot shows {EXAMPLES} questions about other images, and there "
                f"are {len(keys) - times[key]}. Add questions, or leave this task out."
            )
        rng = random.Random(f"1234-{index}")  # noqa: S311
        examples: list[int] = []
        while len(examples) < EXAMPLES:
            candidate = rng.randrange(len(keys))
            if keys[candidate] != key and candidate not in examples:
                examples.append(candidate)
        yield examples


def counts_of(documents: Sequence[Doc]) -> Iterator[Count]:
    """Yields the counts of the released questions, with the answers of a local file."""
    yield count("questions", len(documents), QUESTIONS)
    yield count("answers", sum(len(doc["references"]) for doc in documents), ANSWERS)
    for field, groups in (("country", COUNTRIES), ("facet", FACETS)):
        values = [doc[field] for doc in documents]
        yield from tally(f"{field} {{}}", values, groups)
        yield count(f"{field}: none of the paper's", values.count(""), 0)
