"""What was drawn, and how people rated it, as the two small JSON files that keep them.

``spotcheck.json`` is written when responses are drawn: from which responses, by which seed, and which of them.
``rated.json`` has the ratings too. Both are checked when they are read, since anybody may have changed them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from culture_tasks.errors import DataError
from culture_tasks.results.samples import damage

DESIGN_FILE, RATED_FILE = "spotcheck.json", "rated.json"

_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Stratum(_Frozen):
    """The responses of one culture in one task of one model.

    Attributes:
        culture: The culture; ``(none)`` where the benchmark has none.
        size: Number of responses.
        drawn: Number of those that were drawn.
    """

    culture: str
    size: _Count
    drawn: _Count


class DrawnFrom(_Frozen):
    """The responses of one task of one model.

    Attributes:
        model: The model's name, for the one who reads the file.
        task: The task.
        fingerprint: Hash of all of its responses.
        strata: Its cultures.
    """

    model: str
    task: str
    fingerprint: _Sha256
    strata: tuple[Stratum, ...]


class DrawnRow(_Frozen):
    """One response that was drawn.

    Attributes:
        row: Its name on the sheet, which says nothing of where it comes from.
        population: Which of the populations it is of, from 0.
        culture: Its culture.
        item: Its item.
        run: Which of several responses to the item.
        mark: Hash of its text.
        lowest: Lowest rating on offer.
        highest: Highest rating on offer.
    """

    row: Annotated[str, Field(pattern="^[0-9a-f]{12}$")]
    population: _Count
    culture: str
    item: str
    run: _Count
    mark: _Sha256
    lowest: int
    highest: int


class Design(_Frozen):
    """What was drawn.

    Attributes:
        format: Version of the layout.
        culture_tasks: Version of this package.
        created: When, as ISO 8601.
        seed: Seed of the draw.
        populations: What was drawn from.
        rows: What was drawn, in the order in which it is rated.
    """

    format: Literal[1] = 1
    culture_tasks: str
    created: str
    seed: int
    populations: Annotated[tuple[DrawnFrom, ...], Field(min_length=1)]
    rows: Annotated[tuple[DrawnRow, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if len({row.row for row in self.rows}) < len(self.rows):
            raise ValueError("two rows have one name")
        if any(row.population >= len(self.populations) for row in self.rows):
            raise ValueError("a row is of a population that isn't there")
        return self


class Rated(_Frozen):
    """What was drawn, with people's ratings.

    Attributes:
        design: What was drawn.
        ratings: Ratings by rater and row, each on the scale of its row.
    """

    design: Design
    ratings: Annotated[dict[str, dict[str, float]], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        rows = {row.row: row for row in self.design.rows}
        for rater, given in self.ratings.items():
            for name, rating in given.items():
                if name not in rows:
                    raise ValueError(f"{rater} rated {name}, which wasn't drawn")
                if not rows[name].lowest <= rating <= rows[name].highest:
                    raise ValueError(f"{rater} gave {name} {rating:g}, which is off its scale")
        return self


def read_design(path: Path) -> Design:
    """Reads what was drawn, from the file or the folder that it lies in.

    Raises:
        DataError: If there is no such file, or it isn't laid out as one.
    """
    return _read(path / DESIGN_FILE if path.is_dir() else path, Design, "culture-tasks spotcheck draw")


def read_rated(path: Path) -> Rated:
    """Reads what was drawn with its ratings, from the file or the folder that it lies in.

    Raises:
        DataError: If there is no such file, or it isn't laid out as one.
    """
    return _read(path / RATED_FILE if path.is_dir() else path, Rated, "culture-tasks spotcheck score")


def write(content: Design | Rated, path: Path) -> None:
    """Writes either, as JSON."""
    path.write_text(json.dumps(content.model_dump(), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


_Content = TypeVar("_Content", Design, Rated)


def _read(path: Path, kind: type[_Content], made_by: str) -> _Content:
    expected = f"Expected a file that `{made_by}` has written."
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"spotcheck: {path} can't be read ({error.strerror}). {expected}") from None
    except ValidationError as error:
        raise DataError(f"spotcheck: {path}, {damage(error)}. {expected}") from None
