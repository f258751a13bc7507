"""Rated responses from tables: CARE's, from the Hub, or the user's own files."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from culture_tasks.agreement.rated_responses import NO_CATEGORY, language_of, named_category, offered
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import OptionalLabel, Table, Text, read_batches, validated
from culture_tasks.errors import DataError, JudgeError, nearest
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.preferences.manifest import RatedBy, TrainingSource
from culture_tasks.preferences.rated_questions import PEOPLE, Gathering, Scale, Seen, kind_of_culture

RATING_COLUMNS = ("human_rating", "rating")
"""Columns of people's ratings, as CARE's newer and older revisions call them; the first that is there counts."""

_LARGEST = 1e100
"""Largest rating, up or down: the difference of two is finite."""

_AT_ONCE = 1_000
"""Rows that are checked together, so that a long file is never in memory as models of its rows."""


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("Needed is a number")
    return None if isinstance(value, str) and not value.strip() else value


class _Row(BaseModel):
    """One row; ``rating`` is the column that was chosen."""

    model_config = ConfigDict(extra="forbid")

    question: Text
    response: str
    rating: Annotated[
        Annotated[float, Field(allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)] | None, BeforeValidator(_number)
    ]
    reference: Text | Annotated[list[Text], Field(min_length=1)] | None = None
    rubric: OptionalLabel = None
    category: OptionalLabel = None
    language: OptionalLabel = None
    associated_culture: OptionalLabel = None
    source: OptionalLabel = None
    model: OptionalLabel = None
    translated_question: Any = None
    id: Any = None


def gather_rows(source: str, rating: str | None, data_folder: Path | None, gathering: Gathering) -> None:
    """Reads the rows of a table.

    Args:
        source: A benchmark that offers rated responses, their data set on the Hub, or a file.
        rating: Column of the ratings; None for people's.
        data_folder: The user's data folder, where a benchmark's are looked for before the Hub.
        gathering: Where they go.

    Raises:
        DataError: If the table, a row, or a rating can't be used.
    """
    offer = next((each.source for name, each in offered().items() if source in (name, each.source.hub)), None)
    path = Path(source).expanduser()
    digest = hashlib.sha256()
    batches = _batches(path, offer, data_folder)
    first = next(batches)
    reader = _Reader(first, rating, gathering)
    counts = reader.take(first, digest)
    for batch in batches:
        counts += reader.take(batch, digest)
    if not counts["rated"]:
        raise DataError(
            f"preferences: {first.origin}: no row has a rating in the column {reader.column!r}. "
            "Name another column with --rating."
        )
    gathering.left_out["unrated_responses"] += counts["unrated"]
    gathering.note_rater(reader.rated_by, first.origin)
    known = TrainingSource(
        kind="rows",
        name=Path(first.origin).name if first.local else first.origin,
        fingerprint=digest.hexdigest()[:16],
        responses=counts["rated"],
    )
    gathering.note_source(known)


def _batches(path: Path, offer: Source | None, data_folder: Path | None) -> Iterator[Table]:
    local = path if offer is None else local_file(offer, data_folder)
    if local is not None:
        yield from read_batches(local, _AT_ONCE)
        return
    assert offer is not None
    table = read_source(offer, data_folder)
    for start in range(0, len(table.rows), _AT_ONCE):
        yield table.part(range(start, min(start + _AT_ONCE, len(table.rows))))


class _Reader:
    """Reads the batches of one table."""

    def __init__(self, first: Table, rating: str | None, gathering: Gathering) -> None:
        columns = {name for row in first.rows for name in row}
        self.column = rating or next((name for name in RATING_COLUMNS if name in columns), RATING_COLUMNS[0])
        if self.column not in columns:
            raise DataError(
                f"preferences: {first.origin}: no column {self.column!r} with ratings.{nearest(self.column, columns)} "
                f"Found are {', '.join(sorted(columns))}. Name the column with --rating."
            )
        self._of_people = self.column in RATING_COLUMNS
        self.rated_by = RatedBy(
            kind="people" if self._of_people else "column", name=PEOPLE if self._of_people else self.column
        )
        self._aliases = {"references": "reference"}
        for each in offered().values():
            self._aliases |= each.aliases
        self._aliases |= {self.column: "rating"}
        self._passed_over = frozenset(RATING_COLUMNS) - {self.column}
        self._gathering = gathering
        self._graded: dict[tuple[str | None, str | None], tuple[str, Rubric | None]] = {}

    def take(self, table: Table, digest: Any) -> Counter[str]:
        """Takes the rows of a batch in, and returns how many have a rating and how many none."""
        kept = [{name: row[name] for name in row if name not in self._passed_over} for row in table.rows]
        table = replace(table, rows=kept)
        try:
            rows = validated(table, _Row, self._aliases)
        except DataError as error:
            said = str(error).replace("field 'rating':", f"field {self.column!r}:", 1)  # as the user's file calls it
            raise DataError(f"preferences: {said}") from None
        rated = [(index, row, row.rating) for index, row in enumerate(rows) if row.rating is not None]
        without_scale: list[tuple[float, int]] = []
        for index, row, rating in rated:
            references = (row.reference,) if isinstance(row.reference, str) else tuple(row.reference or ())
            read = "\x1f".join((row.question, *references, row.response, f"{rating!r}\x1e"))
            digest.update(read.encode("utf-8", "replace"))
            category, rubric = self._graded_by(table, index, row)
            if rubric is None:
                without_scale.append((rating, index))
            else:
                self._check(table, index, rating, rubric)
            self._gathering.add(
                Seen(
                    question=row.question,
                    references=references,
                    language=_language(row.question, row.language, row.associated_culture),
                    category=category,
                    culture=kind_of_culture(row.associated_culture),
                    rubric="" if rubric is None else rubric.name,
                    response=row.response,
                    rating=rating,
                    by=PEOPLE if row.response.strip() in references else row.model or row.source or "",
                )
            )
        for rating, index in {min(without_scale), max(without_scale)} if without_scale else ():
            self._gathering.note_rating(rating, table.where(index))
        return Counter(rated=len(rated), unrated=len(rows) - len(rated))

    def _graded_by(self, table: Table, index: int, row: _Row) -> tuple[str, Rubric | None]:
        """Returns the category of a row and the rubric by which people rated it, where the row or category says it."""
        key = (row.category, row.rubric)
        if key not in self._graded:
            where = table.where(index)
            category = self._category(where, row.category)
            rubric = self._rubric(where, row.rubric, category) if self._of_people else None
            self._graded[key] = ("" if category == NO_CATEGORY else category, rubric)
            if rubric is not None:
                self._gathering.note_scale(Scale(rubric.lowest, rubric.highest, table.where(index)))
        return self._graded[key]

    @staticmethod
    def _category(where: str, name: str | None) -> str:
        try:
            return named_category(f"{where}, field 'category'", name)
        except DataError as error:
            raise DataError(f"preferences: {error}") from None

    @staticmethod
    def _rubric(where: str, name: str | None, category: str) -> Rubric | None:
        if name is None:
            return next((each.rubric_for(category) for each in offered().values() if category in each.categories), None)
        try:
            return rubric_named(name)
        except JudgeError as error:
            raise DataError(f"preferences: {where}, field 'rubric': {error}") from None

    def _check(self, table: Table, index: int, rating: float, rubric: Rubric) -> None:
        if not rubric.lowest <= rating <= rubric.highest:
            raise DataError(
                f"preferences: {table.where(index)}, field {self.column!r}: found {rating:g}. Needed is a number from "
                f"{rubric.lowest} to {rubric.highest}, the scale of the rubric {rubric.name}. Correct it; if the "
                "column isn't people's rating, name the one that is meant with --rating."
            )


# The rows of a question mostly follow each other.
@lru_cache(maxsize=1_000)
def _language(question: str, language: str | None, culture: str | None) -> str:
    return language_of(question, language=language, culture=culture)
