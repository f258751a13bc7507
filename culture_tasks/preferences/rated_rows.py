"""Rated responses from tables: CARE's, from the Hub, or the user's own files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import RowTable, read_file, validated
from culture_tasks.errors import DataError, nearest
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.people.rated_responses import (
    NO_CATEGORY,
    ResponseRow,
    aliases,
    check_rating,
    language_of,
    named_category,
    offered,
    rubric_of,
)
from culture_tasks.preferences.rated_questions import PEOPLE, Gathering, RatedAnswer, RatingScale, kind_of_culture
from culture_tasks.results.training_manifest import RatedBy, TrainingSource

RATING_COLUMNS = ("human_rating", "rating")
"""Columns of people's ratings, as CARE's newer and older revisions call them; the first that is there counts."""

_AT_ONCE = 1_000
"""Rows that are checked together, so that a long file is never in memory as models of its rows."""


def gather_rows(source: str, rating: str | None, data_folder: Path | None, gathering: Gathering) -> None:
    """Reads the rows of a table: those that a benchmark offers (by its name or its data set's), or a file's.

    Raises:
        DataError: If the table, a row, or a rating can't be used.
    """
    offer = next((each.source for name, each in offered().items() if source in (name, each.source.hub)), None)
    table = read_file(Path(source).expanduser()) if offer is None else read_source(offer, data_folder)
    columns = {name for row in table.rows for name in row}
    column = rating or next((name for name in RATING_COLUMNS if name in columns), RATING_COLUMNS[0])
    if column not in columns:
        raise DataError(
            f"preferences: {table.origin}: no column {column!r} with ratings.{nearest(column, columns)} "
            f"Found are {', '.join(sorted(columns))}. Name the column with --rating."
        )
    try:
        fingerprint, responses = _gather(table, column, gathering)
    except DataError as error:
        raise DataError(f"preferences: {str(error).removeprefix('preferences: ')}") from None
    if not responses:
        raise DataError(
            f"preferences: {table.origin}: no row has a rating in the column {column!r}. "
            "Name another column with --rating."
        )
    gathering.left_out["unrated_responses"] += len(table.rows) - responses
    rated_by = RatedBy(kind="people", name=PEOPLE) if column in RATING_COLUMNS else RatedBy(kind="column", name=column)
    gathering.note_rater(rated_by, table.origin)
    name = Path(table.origin).name if table.local else table.origin
    gathering.sources.append(TrainingSource(kind="rows", name=name, fingerprint=fingerprint, responses=responses))


def _gather(table: RowTable, column: str, gathering: Gathering) -> tuple[str, int]:
    """Returns the fingerprint of the rated responses, and their number."""
    digest = hashlib.sha256()
    responses = 0
    graded: dict[tuple[str | None, str | None], tuple[str, Rubric | None]] = {}
    without_scale: list[tuple[float, int]] = []
    for index, row in _rows(table, column):
        rating = row.human_rating
        if rating is None:
            continue
        read = "\x1f".join((row.question, *row.references, row.response, f"{rating!r}\x1e"))
        digest.update(read.encode("utf-8", "replace"))
        responses += 1
        where, key = table.where(index), (row.category, row.rubric)
        if key not in graded:
            category = named_category(f"{where}, field 'category'", row.category)
            rubric = rubric_of(where, row.rubric, category) if column in RATING_COLUMNS else None
            graded[key] = ("" if category == NO_CATEGORY else category, rubric)
            if rubric is not None:
                gathering.note_scale(RatingScale(rubric.lowest, rubric.highest, where))
        category, rubric = graded[key]
        if rubric is None:
            without_scale.append((rating, index))
        else:
            way_out = "Correct it; if the column isn't people's rating, name the one that is meant with --rating."
            check_rating(where, column, rating, rubric, way_out)
        by = PEOPLE if row.response.strip() in row.references else row.model or row.source or ""
        gathering.add(
            row.question,
            "" if rubric is None else rubric.name,
            RatedAnswer(row.response, rating, by),
            references=row.references,
            language=language_of(row.question, language=row.language, culture=row.associated_culture),
            category=category,
            culture=kind_of_culture(row.associated_culture),
        )
    for rating, index in {min(without_scale), max(without_scale)} if without_scale else ():
        gathering.without_scale.append((rating, table.where(index)))
    return digest.hexdigest()[:16], responses


def _rows(table: RowTable, column: str) -> Iterator[tuple[int, ResponseRow]]:
    """Yields the rows by their index, with the ratings of a column."""
    names = aliases() | {column: "human_rating"}
    other_ratings = frozenset(RATING_COLUMNS) - {column}
    for start in range(0, len(table.rows), _AT_ONCE):
        part = table.part(range(start, min(start + _AT_ONCE, len(table.rows))))
        rows = [{name: value for name, value in row.items() if name not in other_ratings} for row in part.rows]
        try:
            yield from enumerate(validated(replace(part, rows=rows), ResponseRow, names), start)
        except DataError as error:
            text = str(error).replace("field 'human_rating':", f"field {column!r}:", 1)  # as the user's file calls it
            raise DataError(text) from None
