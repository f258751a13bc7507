"""The files that raters return: CSV, saved by the page or filled in by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from culture_tasks.data.tables import Table, read_file, validated
from culture_tasks.errors import DataError
from culture_tasks.spotcheck.design import Design, DrawnRow, Rated
from culture_tasks.spotcheck.drawing import in_turn
from culture_tasks.spotcheck.populations import mark_of

COLUMNS = (
    *("row", "culture", "question", "references", "response", "image"),
    *("lowest", "highest", "rating", "comment", "rater"),
)
"""Columns of a sheet. What a rater returns needs ``row`` and ``rating`` alone."""


def _none_if_blank(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


_OptionalText = Annotated[str | None, BeforeValidator(_none_if_blank)]


class _Returned(BaseModel):
    """One line of a returned sheet; what it was shown with may be missing."""

    model_config = ConfigDict(extra="forbid")

    row: str
    rating: Annotated[float | None, Field(allow_inf_nan=False), BeforeValidator(_none_if_blank)]
    response: _OptionalText = None
    rater: _OptionalText = None
    culture: str | None = None
    question: str | None = None
    references: str | None = None
    image: str | None = None
    lowest: str | None = None
    highest: str | None = None
    comment: str | None = None


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
                    f"{table.where(index)}, field 'rating': found {line.rating:g}. Needed is a number from "
                    f"{row.lowest} to {row.highest}. Ask the rater, and correct it."
                )
            rater = line.rater.strip() if line.rater else file.stem
            own = ratings.setdefault(rater, {})
            if own.setdefault(row.row, line.rating) != line.rating:
                raise DataError(
                    f"{table.where(index)}, field 'rating': found {line.rating:g}, while {rater} gave {own[row.row]:g} "
                    "elsewhere. Needed is one rating of a row by a rater: remove the other."
                )
    if not ratings:
        raise DataError(f"spotcheck: no rating in {', '.join(map(str, files))}. Needed are numbers in 'rating'.")
    return Rated(design=design, ratings=ratings)


def _drawn(table: Table, index: int, line: _Returned, rows: Mapping[str, DrawnRow]) -> DrawnRow:
    row = rows.get(line.row.strip().lower())
    if row is None:
        raise DataError(
            f"{table.where(index)}, field 'row': {line.row!r:.40} wasn't drawn. Needed are rows of the sheet that "
            "belongs to this draw: is it of another one?"
        )
    if line.response is not None and mark_of(line.response) != row.mark:
        raise DataError(
            f"{table.where(index)}, field 'response': not the response that was drawn for row {row.row}. A rating is "
            "of that text alone: undo the change (was one column sorted by itself?), or remove the line."
        )
    return row


def doubts(rated: Rated) -> Iterator[str]:
    """Yields what is missing of the ratings: a part that was left for later is no harm, a part that was skipped is."""
    given = {row for own in rated.ratings.values() for row in own}
    missing = len(rated.design.rows) - len(given)
    if not missing:
        return
    skipped = 0
    for names in in_turn(rated.design.rows).values():
        number = max((place for place, name in enumerate(names, start=1) if name in given), default=0)
        skipped += sum(name not in given for name in names[:number])
    yield f"{missing} of {len(rated.design.rows)} drawn responses have no rating."
    if skipped:
        yield (
            f"{skipped} of them were skipped, while later ones of the same culture have ratings. If they were skipped "
            "for what they say, those that are left are no random sample, and the intervals don't hold."
        )
