"""CulturalVQA's questions as documents of a harness."""

from __future__ import annotations

import ast
import hashlib
import json
import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from annotated_types import Len
from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints

from culture_tasks.benchmarks.culturalvqa.vocabulary import country_of, facet_of
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import SUFFIXES, Table, read_file, unique, validated
from culture_tasks.errors import DataError

_log = logging.getLogger(__name__)

SOURCE = Source(
    folder="culturalvqa",
    stems=("test", "culturalvqa", "data/test", "data/test-00000-of-00001"),
    hub="mair-lab/CulturalVQA",
    image_column="image",
)

ALIASES = {"answers": "all_answers", "id": "u_id", "visual_entities": "entities"}

Variant = Literal["vlm", "fewshot", "blind", "country", "lens"]
"""What the model is shown: image and question (App. H), with examples (App. I), or one of section 5's baselines."""

WITH_IMAGE: tuple[Variant, ...] = ("vlm", "fewshot")

EXAMPLES = 3
"""Examples of the few-shot variant. The paper shows the layout of one and doesn't say how many there were."""

EXAMPLE_SEED = 1234


class CulturalVqaDoc(TypedDict):
    """One question of CulturalVQA, its image aside.

    ``references`` is empty where the answers are withheld. ``country`` and ``facet`` are empty where the row has none
    of the paper's. ``examples`` are the rows that the few-shot variant shows before the question.
    """

    id: str
    question: str
    references: list[str]
    country: str
    facet: str
    entities: str
    examples: list[int]
    data: str


@dataclass(frozen=True)
class Questions:
    """The documents with what is needed to find their images.

    Attributes:
        table: The rows as read.
        documents: The documents, in the same order.
        image_names: Image file of each row; None where images are embedded in the table.
        folder: Folder of the local file; the current one for the Hub's data.
    """

    table: Table
    documents: Sequence[CulturalVqaDoc]
    image_names: Sequence[str | None]
    folder: Path


def _as_list(value: Any) -> Any:
    """Turns what releases and CSV files write for a list into one: a list, its JSON or Python form, or one text."""
    if value is None:
        return []
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text.startswith("["):
        return [text] if text else []
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError('Needed is a list of texts, such as ["naan", "flatbread"]') from None


Filled = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Texts = Annotated[list[Filled], BeforeValidator(_as_list)]


class CulturalVqaRow(BaseModel):
    """One row as released; older revisions of the Hub's data hold image and question alone."""

    model_config = ConfigDict(extra="forbid")

    question: Filled
    u_id: str | int | None = None
    image: str | None = None
    facet: str | None = None
    country: str | None = None
    all_answers: Texts = []
    entities: Texts = []


class AnswerRow(BaseModel):
    """One row of a local answers file, joined on ``u_id``."""

    model_config = ConfigDict(extra="forbid")

    u_id: str | int
    all_answers: Annotated[Texts, Len(min_length=1)]
    facet: str | None = None
    country: str | None = None


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
    documents = _documents(table, rows, variant)
    path = local_file(SOURCE, data_folder)
    names = [row.image for row in rows]
    return Questions(table, documents, names, path.parent if path else Path())


def _with_local_answers(table: Table, rows: list[CulturalVqaRow], data_folder: Path | None) -> list[CulturalVqaRow]:
    path = _answers_file(data_folder)
    if path is None:
        return rows
    answers_table = read_file(path)
    answers = {str(row.u_id): row for row in validated(answers_table, AnswerRow, ALIASES)}
    missing = [index for index, row in enumerate(rows) if str(row.u_id) not in answers]
    if missing:
        raise DataError(
            f"{path}: no answer for u_id {rows[missing[0]].u_id!r} ({table.where(missing[0])}), and for "
            f"{len(missing) - 1} more. Needed is one row for each question."
        )
    return [_joined(row, answers[str(row.u_id)]) for row in rows]


def _answers_file(data_folder: Path | None) -> Path | None:
    if data_folder is None:
        return None
    names = [data_folder / SOURCE.folder / f"answers{suffix}" for suffix in SUFFIXES]
    return next((path for path in names if path.is_file()), None)


def _joined(row: CulturalVqaRow, answer: AnswerRow) -> CulturalVqaRow:
    known = {"facet": answer.facet, "country": answer.country}
    given = {name: value for name, value in known.items() if value is not None}
    return row.model_copy(update={"all_answers": answer.all_answers, **given})


def _check_answers(table: Table, rows: Sequence[CulturalVqaRow]) -> None:
    without = [index for index, row in enumerate(rows) if not row.all_answers]
    if without and len(without) < len(rows):
        raise DataError(
            f"{table.where(without[0])}, field 'all_answers': found nothing, here and in {len(without) - 1} more rows "
            "while others have answers. Needed is at least one answer in each row, or in none."
        )


def _check_variant(table: Table, rows: Sequence[CulturalVqaRow], variant: Variant) -> None:
    if variant == "fewshot" and (len(rows) <= EXAMPLES or not rows[0].all_answers):
        raise DataError(
            f"{table.origin}: culturalvqa_fewshot shows {EXAMPLES} other questions with their answers; found are "
            f"{len(rows)} questions {'with' if rows[0].all_answers else 'without'} answers."
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


def _documents(table: Table, rows: Sequence[CulturalVqaRow], variant: Variant) -> list[CulturalVqaDoc]:
    data = fingerprint(row.model_dump(exclude={"image"}) for row in rows)
    ids = list(unique(table, (str(index if row.u_id is None else row.u_id) for index, row in enumerate(rows)), "u_id"))
    image_keys = _image_keys(table, rows) if variant == "fewshot" else []
    documents = [
        CulturalVqaDoc(
            id=ids[index],
            question=row.question,
            references=row.all_answers,
            country=country_of(row.country or "") or "",
            facet=facet_of(row.facet or "") or "",
            entities=", ".join(row.entities),
            examples=_examples(image_keys, index) if variant == "fewshot" else [],
            data=data,
        )
        for index, row in enumerate(rows)
    ]
    _warn_of_unknown_groups(table, rows, documents)
    return documents


def _image_keys(table: Table, rows: Sequence[CulturalVqaRow]) -> list[str]:
    """Returns for each row what tells its image from others: its file name, or the hash of its bytes."""
    if table.images is None:
        return [row.image or "" for row in rows]
    import datasets

    column = table.images.column_names[0]
    raw = table.images.cast_column(column, datasets.Image(decode=False))
    return [hashlib.sha256(row[column]["bytes"] or str(row[column]["path"]).encode()).hexdigest() for row in raw]


def _examples(image_keys: Sequence[str], index: int) -> list[int]:
    """Draws the examples of a question, by a fixed seed, from the questions about other images."""
    others = [other for other, key in enumerate(image_keys) if key != image_keys[index]]
    return random.Random(f"{EXAMPLE_SEED}-{index}").sample(others, min(EXAMPLES, len(others)))  # noqa: S311


def _warn_of_unknown_groups(
    table: Table, rows: Sequence[CulturalVqaRow], documents: Sequence[Mapping[str, Any]]
) -> None:
    for field in ("country", "facet"):
        unknown = {getattr(row, field) for row, doc in zip(rows, documents, strict=True) if not doc[field]} - {None, ""}
        if unknown:
            _log.warning(
                "%s: %d values of %r are none of the paper's (such as %r); their questions count in the overall score "
                "only",
                table.origin,
                len(unknown),
                field,
                sorted(unknown)[0],
            )
