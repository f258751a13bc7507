"""The design of a spot check and people's ratings, as two small JSON files, and the files of the raters.

``spotcheck.json`` is written when responses are drawn: the populations, the seed, and the drawn rows.
``rated.json`` has the ratings too. Both are checked when they are read, since anybody may have changed them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from culture_tasks.data.files import Rows, read_file
from culture_tasks.data.rows import OptionalLabel, OptionalText, TableRow, validated
from culture_tasks.errors import DataError
from culture_tasks.people.rated_responses import OptionalRating
from culture_tasks.plain_files import read_plain, write_whole
from culture_tasks.results.samples import damage

DESIGN_FILE, RATED_FILE = "spotcheck.json", "rated.json"

COLUMNS = (
    *("row", "culture", "question", "references", "response", "image"),
    *("lowest", "highest", "rating", "comment", "rater"),
)
"""Columns of a sheet. A returned file needs ``row`` and ``rating`` alone."""

_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]


def mark_of(text: str) -> str:
    """Returns a hash of a text without its white space and apostrophes before it, which spreadsheets change."""
    return hashlib.sha256("".join(text.lstrip("'").split()).encode("utf-8", "replace")).hexdigest()


class DesignStratum(BaseModel, extra="forbid", frozen=True):
    """The responses of one culture in one task of one model: how many there are, and how many were drawn."""

    culture: str
    size: _Count
    drawn: _Count


class DesignPopulation(BaseModel, extra="forbid", frozen=True):
    """The responses of one task of one model, with a hash of all of them."""

    model: str
    task: str
    fingerprint: _Sha256
    strata: tuple[DesignStratum, ...]


class DesignRow(BaseModel, extra="forbid", frozen=True):
    """One response that was drawn, of the population with this number, from 0, and the ratings on offer.

    ``row`` is its name on the sheet, which says nothing of where it comes from, ``mark`` the hash of its text.
    """

    row: Annotated[str, Field(pattern="^r[0-9a-f]{12}$")]
    population: _Count
    culture: str
    item: str
    run: _Count
    mark: _Sha256
    lowest: int
    highest: int


class Design(BaseModel, extra="forbid", frozen=True):
    """What was drawn, in the order in which it is rated."""

    format: Literal[1] = 1
    culture_tasks: str
    created: str
    seed: int
    populations: Annotated[tuple[DesignPopulation, ...], Field(min_length=1)]
    rows: Annotated[tuple[DesignRow, ...], Field(min_length=1)]


class RatedDesign(BaseModel, extra="forbid", frozen=True):
    """What was drawn, with people's ratings by rater and row, each on the scale of its row."""

    design: Design
    ratings: Annotated[dict[str, dict[str, float]], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rows = {row.row: row for row in self.design.rows}
        for rater, row_ratings in self.ratings.items():
            for name, rating in row_ratings.items():
                if name not in rows:
                    raise ValueError(f"{rater} rated {name}, which wasn't drawn")
                if not rows[name].lowest <= rating <= rows[name].highest:
                    raise ValueError(f"{rater} gave {name} {rating:g}, which is off its scale")
        return self


def read_design(path: Path) -> Design:
    """Reads a design from its file or folder."""
    return _read(path / DESIGN_FILE if path.is_dir() else path, Design, "culture-tasks spotcheck draw")


def read_rated(path: Path) -> RatedDesign:
    """Reads a design with its ratings from its file or folder."""
    return _read(path / RATED_FILE if path.is_dir() else path, RatedDesign, "culture-tasks spotcheck score")


def write(content: Design | RatedDesign, path: Path) -> None:
    """Writes either, as JSON."""
    write_whole(path, json.dumps(content.model_dump(), indent=1, ensure_ascii=True) + "\n")


_Content = TypeVar("_Content", Design, RatedDesign)


def _read(path: Path, kind: type[_Content], made_by: str) -> _Content:
    expected = f"Expected a file that `{made_by}` has written."
    try:
        return kind.model_validate_json(read_plain(path))
    except OSError as error:
        raise DataError(f"spotcheck: {path} can't be read ({error.strerror}). {expected}") from None
    except ValidationError as error:
        raise DataError(f"spotcheck: {path}, {damage(error)}. {expected}") from None


# The files that raters return: CSV, saved by the page or filled in by hand


class _SheetLine(TableRow):
    """One line of a returned sheet; all but the row and the rating may be missing."""

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


def read_ratings(design: Design, files: Sequence[Path]) -> RatedDesign:
    """Reads the ratings of raters, who are named in the column ``rater``, or else by the file's name.

    A response in a line without a rating isn't rated yet.
    """
    rows = {row.row: row for row in design.rows}
    ratings: dict[str, dict[str, float]] = {}
    for file in files:
        table = read_file(file)
        for index, line in enumerate(validated(table, _SheetLine)):
            row = _design_row(table, index, line, rows)
            if line.rating is None:
                continue
            if not row.lowest <= line.rating <= row.highest:
                raise DataError(
                    f"{table.where(index)}, field 'rating': found {line.rating:g}. Expected a number from "
                    f"{row.lowest} to {row.highest}. Ask the rater, and correct it."
                )
            rater = line.rater or file.stem
            first_rating = ratings.setdefault(rater, {}).setdefault(row.row, line.rating)
            if first_rating != line.rating:
                raise DataError(
                    f"{table.where(index)}, field 'rating': found {line.rating:g}, while {rater} gave {first_rating:g} "
                    "elsewhere. A rater has one rating of a row: remove the other."
                )
    if not ratings:
        raise DataError(f"spotcheck: no rating in {', '.join(map(str, files))}. Expected numbers in 'rating'.")
    return RatedDesign(design=design, ratings=ratings)


def _design_row(table: Rows[Any], index: int, line: _SheetLine, rows: Mapping[str, DesignRow]) -> DesignRow:
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


def doubts(rated: RatedDesign) -> Iterator[str]:
    """Yields sentences on missing ratings: responses that are left for later are no harm, skipped ones are."""
    rated_rows = set().union(*rated.ratings.values())
    skipped, later_rated = 0, set()
    for row in reversed(rated.design.rows):
        stratum = (row.population, row.culture)
        if row.row in rated_rows:
            later_rated.add(stratum)
        else:
            skipped += stratum in later_rated
    for first, second in combinations(rated.ratings, 2):
        if len(rated.ratings[first]) > 1 and rated.ratings[first] == rated.ratings[second]:
            yield f"{first} and {second} gave the same ratings throughout: one may be a copy of the other."
    if missing := len(rated.design.rows) - len(rated_rows):
        yield f"{missing} of {len(rated.design.rows)} drawn responses have no rating."
    if skipped:
        yield (
            f"{skipped} of them were skipped, while later ones of the same culture have ratings. If their "
            "content was the reason, the other responses are no random sample, and the intervals don't hold."
        )
