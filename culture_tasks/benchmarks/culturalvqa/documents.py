"""CulturalVQA's questions as documents of a harness."""

from __future__ import annotations

import ast
import difflib
import io
import json
import logging
import random
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from annotated_types import Len
from pydantic import BaseModel, BeforeValidator, ConfigDict

from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS, country_of, facet_of
from culture_tasks.data.images import image_keys
from culture_tasks.data.releases import ReleaseFacts, check_release
from culture_tasks.data.sources import Source, addition, folder_of, read_source
from culture_tasks.data.tables import (
    Identifier,
    OptionalIdentifier,
    OptionalLabel,
    RowTable,
    Text,
    fingerprint,
    read_file,
    unique,
    validated,
)
from culture_tasks.errors import DataError

_log = logging.getLogger(__name__)

QUESTIONS = 2_378
"""Questions in all (section 3)."""

SOURCE = Source(
    folder="culturalvqa",
    stems=("test", "culturalvqa", "data/test", "data/test-00000-of-00001"),
    hub="mair-lab/CulturalVQA",
    image_column="image",
    additions=("answers",),
    release=ReleaseFacts(
        rows=QUESTIONS,
        culture="country",
        fits=lambda country: country_of(country) is not None,
        expected=f"one of {', '.join(COUNTRIES)}",
    ),
)

ALIASES = {"answers": "all_answers", "id": "u_id", "visual_entities": "entities"}

Variant = Literal["vlm", "fewshot", "blind", "country", "lens"]
"""What the model is shown: image and question (App. H), with examples (App. I), or one of section 5's baselines."""

WITH_IMAGE: tuple[Variant, ...] = ("vlm", "fewshot")

EXAMPLES = 3
"""Examples of the few-shot variant. The paper shows the layout of one and doesn't say how many there were."""

EXAMPLE_SEED = 1234

_ALIKE = 0.85
"""Similarity from which a country or facet is one of the paper's misspelt: Niger is no misspelt Nigeria."""


class Example(TypedDict):
    """One answered question of the few-shot prompt: its row, which has its image, and of several answers the first."""

    row: int
    question: str
    answer: str


class CulturalVqaDoc(TypedDict):
    """One question of CulturalVQA, without its image.

    ``references`` is empty where the answers are withheld. ``country`` and ``facet`` are empty where the row has none
    of the paper's. ``image_id`` is the same for questions about one image, and empty where there is none. What only one
    variant shows is in its documents alone, since the harnesses walk over every field of every document several times:
    ``country_name`` (the row's own spelling), ``entities``, and ``examples``, which stand before the question.
    """

    id: str
    question: str
    references: list[str]
    country: str
    facet: str
    image_id: str
    data: str
    country_name: NotRequired[str]
    entities: NotRequired[str]
    examples: NotRequired[list[Example]]


@dataclass(frozen=True)
class Questions:
    """The documents, and where their images are.

    Attributes:
        table: The rows as read.
        documents: The documents, in the same order.
        image_names: Image file of each row; None where images are embedded in the table.
        folder: Folder of the local file; the current one for the Hub's data.
    """

    table: RowTable
    documents: Sequence[CulturalVqaDoc]
    image_names: Sequence[str | None]
    folder: Path


def _as_list(value: Any) -> Any:
    """Turns what releases and CSV files write for a list into one, without the blank entries that pad some columns.

    A text may be a list's JSON form, Python's, or NumPy's (which has no commas); another text is one entry.
    """
    entries = _listed(value) if isinstance(value, str) else [] if value is None else value
    if not isinstance(entries, list):
        return entries
    return [entry for entry in entries if entry is not None and (not isinstance(entry, str) or entry.strip())]


def _listed(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return [text]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _literals(text.strip())
    except (ValueError, SyntaxError, tokenize.TokenError):
        raise ValueError('Expected a list of texts, such as ["naan", "flatbread"]') from None


def _literals(text: str) -> list[Any]:
    """Reads ``['a', 'b']`` and ``['a' 'b']``, which as Python would be one text."""
    found = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.string.strip()]
    if [token.string for token in (found[0], found[-1])] != ["[", "]"]:
        raise ValueError("no list")
    inner = [token.string for token in found[1:-1] if token.string != ","]
    return [None if entry in ("None", "nan") else ast.literal_eval(entry) for entry in inner]


Texts = Annotated[list[Text], BeforeValidator(_as_list)]


class CulturalVqaRow(BaseModel):
    """One row as released; older revisions of the Hub's data hold image and question alone."""

    model_config = ConfigDict(extra="forbid")

    question: Text
    u_id: OptionalIdentifier = None
    image: OptionalLabel = None
    facet: OptionalLabel = None
    country: OptionalLabel = None
    all_answers: Texts = []
    entities: Texts = []


class AnswerRow(BaseModel):
    """One row of a local answers file, joined on ``u_id``."""

    model_config = ConfigDict(extra="forbid")

    u_id: Identifier
    all_answers: Annotated[Texts, Len(min_length=1)]
    facet: OptionalLabel = None
    country: OptionalLabel = None


def load(variant: Variant, data_folder: Path | None) -> Questions:
    """Loads the questions.

    Args:
        variant: What the model will be shown.
        data_folder: The user's data folder, or None.

    Raises:
        DataError: If the data can't be used for this variant.
    """
    table = read_source(SOURCE, data_folder)
    rows = validated(table, CulturalVqaRow, ALIASES)
    rows = _with_local_answers(table, rows, data_folder)
    _check_answers(table, rows)
    _check_variant(table, rows, variant)
    folder = folder_of(SOURCE, data_folder)
    names = [row.image for row in rows]
    keys = image_keys(table, names, folder, needed=variant == "fewshot")
    documents = _documents(table, rows, keys)
    _add_shown(documents, variant, table, rows, keys)
    return Questions(table, documents, names, folder)


def _with_local_answers(table: RowTable, rows: list[CulturalVqaRow], data_folder: Path | None) -> list[CulturalVqaRow]:
    path = addition(SOURCE, data_folder)
    if path is None:
        return rows
    if all(row.u_id is None for row in rows):
        raise DataError(
            f"{path}: can't be joined, since {table.origin} has no column 'u_id'. Expected questions with the ids of "
            "the answers: use a newer revision of the data, or put the answers into the column 'all_answers'."
        )
    answers_table = read_answers(path)
    answer_rows = validated(answers_table, AnswerRow, ALIASES)
    answers = dict(zip(unique(answers_table, (row.u_id for row in answer_rows), "u_id"), answer_rows, strict=True))
    missing = [index for index, row in enumerate(rows) if row.u_id not in answers]
    if missing:
        raise DataError(
            f"{path}: no answer for u_id {rows[missing[0]].u_id!r} ({table.where(missing[0])}), and for "
            f"{len(missing) - 1} more. Expected one row for each question. Add them."
        )
    joined = []
    for row in rows:
        answer = answers[str(row.u_id)]
        given = {"all_answers": answer.all_answers, "facet": answer.facet, "country": answer.country}
        joined.append(row.model_copy(update={name: value for name, value in given.items() if value is not None}))
    return joined


def read_answers(path: Path) -> RowTable:
    """Reads a file of answers: rows, or in JSON one object with the answers of each question under its ``u_id``.

    Raises:
        DataError: If the file can't be read.
    """
    return read_file(path, pairs=("u_id", "all_answers"))


def _check_answers(table: RowTable, rows: Sequence[CulturalVqaRow]) -> None:
    without = [index for index, row in enumerate(rows) if not row.all_answers]
    if without and len(without) < len(rows):
        raise DataError(
            f"{table.where(without[0])}, field 'all_answers': found nothing, here and in {len(without) - 1} more rows "
            "while others have answers. Expected at least one answer in each row, or in none."
        )


def _check_variant(table: RowTable, rows: Sequence[CulturalVqaRow], variant: Variant) -> None:
    if variant == "fewshot" and not rows[0].all_answers:
        raise DataError(
            f"{table.origin}: found no answers. culturalvqa_fewshot shows {EXAMPLES} other questions with theirs: add "
            "the column 'all_answers' to your data, or leave this task out."
        )
    field = {"country": "country", "lens": "entities"}.get(variant)
    if field is None:
        return
    for index, row in enumerate(rows):
        if not getattr(row, field):
            raise DataError(
                f"{table.where(index)}, field {field!r}: found nothing. culturalvqa_{variant} shows it to the model: "
                f"add the column {field!r} to your data, or leave this task out."
            )


def _documents(table: RowTable, rows: Sequence[CulturalVqaRow], keys: Sequence[str | None]) -> list[CulturalVqaDoc]:
    data = fingerprint(row.model_dump(exclude={"image"}) for row in rows)
    ids = unique(table, (row.u_id for row in rows), "u_id")
    documents = [
        CulturalVqaDoc(
            id=identifier,
            question=row.question,
            references=row.all_answers,
            country=country_of(row.country or "") or "",
            facet=facet_of(row.facet or "") or "",
            image_id=key or "",
            data=data,
        )
        for identifier, row, key in zip(ids, rows, keys, strict=True)
    ]
    _check_groups(table, rows, documents)
    check_release(SOURCE.release, table, list(map(vars, rows)))
    return documents


def _add_shown(
    documents: Sequence[CulturalVqaDoc],
    variant: Variant,
    table: RowTable,
    rows: Sequence[CulturalVqaRow],
    keys: Sequence[str | None],
) -> None:
    """Adds what this variant alone shows to the model."""
    if variant == "fewshot":
        for document, drawn in zip(documents, _examples(table, keys), strict=True):
            document["examples"] = [
                Example(row=row, question=rows[row].question, answer=rows[row].all_answers[0]) for row in drawn
            ]
    for document, row in zip(documents, rows, strict=True):
        if variant == "country":
            document["country_name"] = row.country or ""
        elif variant == "lens":
            document["entities"] = ", ".join(row.entities)


def _examples(table: RowTable, keys: Sequence[str | None]) -> list[list[int]]:
    """Draws the examples of each question, by a fixed seed, from the questions about other images."""
    times = Counter(keys)
    for index, key in enumerate(keys):
        if len(keys) - times[key] < EXAMPLES:
            raise DataError(
                f"{table.where(index)}: culturalvqa_fewshot shows {EXAMPLES} questions about other images, and there "
                f"are {len(keys) - times[key]}. Add questions, or leave this task out."
            )
    return [_drawn(keys, index) for index in range(len(keys))]


def _drawn(keys: Sequence[str | None], index: int) -> list[int]:
    random_numbers = random.Random(f"{EXAMPLE_SEED}-{index}")  # noqa: S311
    drawn: list[int] = []
    while len(drawn) < EXAMPLES:
        other = random_numbers.randrange(len(keys))
        if keys[other] != keys[index] and other not in drawn:
            drawn.append(other)
    return drawn


def _check_groups(table: RowTable, rows: Sequence[CulturalVqaRow], documents: Sequence[Mapping[str, Any]]) -> None:
    """Refuses a country or facet of a local file that is one of the paper's misspelt, and names others in the log.

    Raises:
        DataError: For the first misspelt one.
    """
    for field, known in (("country", COUNTRIES), ("facet", FACETS)):
        others: dict[str, int] = {}
        for index, (row, doc) in enumerate(zip(rows, documents, strict=True)):
            given = getattr(row, field)
            if given and not doc[field]:
                others.setdefault(given, index)
        for given, index in others.items():
            if table.local and (alike := difflib.get_close_matches(given.casefold(), known, n=1, cutoff=_ALIKE)):
                raise DataError(
                    f"{table.where(index)}, field {field!r}: found {given!r}. Did you mean {alike[0]!r}? "
                    f"The paper's are {', '.join(known)}. Correct the row."
                )
        if others:
            _log.warning(
                "%s: %d values of %r are none of the paper's (such as %r, %s); their questions count in the overall "
                "score only",
                table.origin,
                len(others),
                field,
                min(others),
                table.where(others[min(others)]).removeprefix(f"{table.origin}, "),
            )
