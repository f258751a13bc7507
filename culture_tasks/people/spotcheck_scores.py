"""The files that raters return: CSV, saved by the page or filled in by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from culture_tasks.data.tables import OptionalLabel, OptionalText, RowTable, read_file, validated
from culture_tasks.errors import DataError
from culture_tasks.people.populations import mark_of
from culture_tasks.people.rated_responses import OptionalRating
from culture_tasks.people.spotcheck_design import Design, DrawnRow, Rated

COLUMNS = (
    *("row", "culture", "question", "references", "response", "image"),
    *("lowest", "highest", "rating", "comment", "rater"),
)
"""Columns of a sheet. What a rater returns needs ``row`` and ``rating`` alone."""


class _Returned(BaseModel):
    """One line of a returned sheet; all but the row and the rating may be missing."""

    model_config = ConfigDict(extra="forbid")

    row: str
    rating: OptionalRating
    response: OptionalText = None
    rater: OptionalLabel = None
    culture: Any = None
    question: Any = None
    references: Any = None
    image: Any = None
    lowest: Any = None
    highest: Any = None
    comment: Any = None


def read_ratings(design: Design, files: Sequence[Path]) -> Rated:
    """Reads the ratings of one or several raters.

    A rater is called what the column ``rater`` says, or else by the name of the file. A line without a rating says that
    the response isn't rated yet.

    Args:
        design: What was drawn.
        files: What the raters returned.

    Raises:
        DataError: If a file can't be read, a row wasn't drawn or is shown with another response, a rating is off its
            scale, one rater rated a row twice with different results, or there is no rating at all.
    """
    rows = {row.row: row for row in design.rows}
    ratings: dict[str, dict[str, float]] = {}
    for file in files:
        table = read_file(file)
        for index, line in enumerate(validated(table, _Returned)):
            row = _drawn(table, index, line, rows)
            if line.rating is None:
                continue
            if not row.lowest <= line.rating <= row.highest:
                raise DataError(
                    f"{table.where(index)}, field 'rating': found {line.rating:g}. Expected a number from "
                    f"{row.lowest} to {row.highest}. Ask the rater, and correct it."
                )
            rater = line.rater or file.stem
            of_rater = ratings.setdefault(rater, {})
            if of_rater.setdefault(row.row, line.rating) != line.rating:
                raise DataError(
                    f"{table.where(index)}, field 'rating': found {line.rating:g}, while {rater} gave "
                    f"{of_rater[row.row]:g} elsewhere. A rater has one rating of a row: remove the other."
                )
    if not ratings:
        raise DataError(f"spotcheck: no rating in {', '.join(map(str, files))}. Expected numbers in 'rating'.")
    return Rated(design=design, ratings=ratings)


def _drawn(table: RowTable, index: int, line: _Returned, rows: Mapping[str, DrawnRow]) -> DrawnRow:
    row = rows.get(line.row.strip().lower())
    if row is None:
        raise DataError(
            f"{table.where(index)}, field 'row': {line.row!r:.40} wasn't drawn. Expected rows of the sheet that "
            "belongs to this draw: is it of another one?"
        )
    if line.response is not None and mark_of(line.response) != row.mark:
        raise DataError(
            f"{table.where(index)}, field 'response': not the response that was drawn for row {row.row}. A rating is "
            "of that text alone: undo the change (was one column sorted by itself?), or remove the line."
        )
    return row


def doubts(rated: Rated) -> Iterator[str]:
    """Says which ratings are missing: responses that were left for later are no harm, skipped ones are."""
    given = set().union(*rated.ratings.values())
    missing = len(rated.design.rows) - len(given)
    if not missing:
        return
    skipped = 0
    later_rated: set[tuple[int, str]] = set()
    for row in reversed(rated.design.rows):
        if row.row in given:
            later_rated.add((row.population, row.culture))
        else:
            skipped += (row.population, row.culture) in later_rated
    yield f"{missing} of {len(rated.design.rows)} drawn responses have no rating."
    if skipped:
        yield (
            f"{skipped} of them were skipped, while later ones of the same culture have ratings. If they were skipped "
            "for what they say, those that are left are no random sample, and the intervals don't hold."
        )
