"""Rows of a local file or a Hub data set, each knowing where it came from."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jsonlines
from pydantic import BaseModel, ValidationError

from culture_tasks.errors import DataError, nearest

if TYPE_CHECKING:
    import datasets

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
"""File types that local data may have."""

Row = TypeVar("Row", bound=BaseModel)


@dataclass(frozen=True)
class Table:
    """Rows with their origin.

    Attributes:
        origin: File path, or name of the Hub data set.
        rows: The rows without their image column.
        images: The image column as a one-column data set aligned with the rows; None where there is none.
        local: Whether the user's own file was read: then unknown columns are an error, not a remark.
        first_row: Number that messages give the first row; 2 in CSV, where the header is line 1.
        places: Place of each row in the origin, from 0, where only some of its rows are here.
    """

    origin: str
    rows: Sequence[Mapping[str, Any]]
    images: datasets.Dataset | None = None
    local: bool = True
    first_row: int = 1
    places: Sequence[int] | None = None

    def where(self, index: int) -> str:
        """Returns the origin and the number of a row, for messages."""
        place = index if self.places is None else self.places[index]
        return f"{self.origin}, row {place + self.first_row}"

    def part(self, indices: Sequence[int]) -> Table:
        """Returns some of the rows, in the order asked for; messages still give them their numbers in the origin."""
        places = indices if self.places is None else [self.places[index] for index in indices]
        images = None if self.images is None else self.images.select(indices)
        return replace(self, rows=[self.rows[index] for index in indices], images=images, places=places)


def read_file(path: Path, image_column: str | None = None) -> Table:
    """Reads a JSON, JSONL, CSV or Parquet file.

    Args:
        path: The file; JSON must hold one list of objects.
        image_column: Column that holds embedded images (Parquet only), kept apart and not decoded.

    Raises:
        DataError: If the file is missing, empty, broken, or of another kind.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file. Needed is a data file with one of the endings {', '.join(SUFFIXES)}.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DataError(f"{path}: files ending in {path.suffix!r} can't be read. Allowed are {', '.join(SUFFIXES)}.")
    table = reader(path, image_column)
    if not table.rows:
        raise DataError(f"{path}: the file holds no rows. Needed is at least one.")
    return table


def from_dataset(data: datasets.Dataset, origin: str, image_column: str | None, *, local: bool) -> Table:
    """Makes a table of a ``datasets.Dataset``; the image column is kept apart and not decoded."""
    has_images = image_column is not None and image_column in data.column_names
    images = data.select_columns([image_column]) if has_images else None
    rows = data.remove_columns([image_column]) if has_images else data
    return Table(origin, rows.to_list(), images, local=local)


def _read_json(path: Path, image_column: str | None) -> Table:  # noqa: ARG001
    try:
        content = json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}, column {error.colno}: not JSON ({error.msg}).") from None
    if not isinstance(content, list):
        raise DataError(f"{path}: holds one {type(content).__name__}. Needed is a list of objects, one a row.")
    return Table(str(path), _objects(path, content))


def _read_jsonl(path: Path, image_column: str | None) -> Table:  # noqa: ARG001
    try:
        with jsonlines.Reader(_text(path).split("\n")) as reader:
            return Table(str(path), _objects(path, list(reader.iter(skip_empty=True))))
    except jsonlines.InvalidLineError as error:
        raise DataError(f"{path}, line {error.lineno}: not JSON ({error}).") from None


def _read_csv(path: Path, image_column: str | None) -> Table:  # noqa: ARG001
    rows = list(csv.DictReader(io.StringIO(_text(path), newline=""), strict=True))
    for number, row in enumerate(rows, start=2):
        if None in row:
            raise DataError(f"{path}, row {number}: more fields than the header has columns. Quote fields with commas.")
    return Table(str(path), rows, first_row=2)


def _read_parquet(path: Path, image_column: str | None) -> Table:
    import datasets
    import pyarrow

    try:
        data = datasets.Dataset.from_parquet(str(path))
    except (pyarrow.ArrowInvalid, datasets.exceptions.DatasetGenerationError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}).") from error
    return from_dataset(data, str(path), image_column, local=True)


_READERS: Mapping[str, Callable[[Path, str | None], Table]] = {
    ".json": _read_json,
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}. Save the file as UTF-8.") from None


def _objects(path: Path, content: Iterable[Any]) -> list[Mapping[str, Any]]:
    rows = list(content)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {number}: found {type(row).__name__} {row!r:.60}. Needed is an object.")
    return rows


def validated(table: Table, model: type[Row], aliases: Mapping[str, str] | None = None) -> list[Row]:
    """Checks every row against a pydantic model.

    Args:
        table: The rows.
        model: What a row must be. A field without default is a column that must be there.
        aliases: Other column names, each with the field that it stands for.

    Raises:
        DataError: For a missing or (in the user's own files) unknown column, or the first field that doesn't fit.
    """
    renamed = [{(aliases or {}).get(name, name): value for name, value in row.items()} for row in table.rows]
    _check_columns(table, model, {name for row in renamed for name in row})
    return [_checked(table, index, row, model) for index, row in enumerate(renamed)]


def _check_columns(table: Table, model: type[BaseModel], found: set[str]) -> None:
    needed = [name for name, field in model.model_fields.items() if field.is_required()]
    missing = [name for name in needed if name not in found]
    if missing:
        raise DataError(
            f"{table.origin}: no column {missing[0]!r}.{nearest(missing[0], found)} "
            f"Found are {', '.join(sorted(found))}. Needed are {', '.join(needed)}. Rename or add the column."
        )
    unknown = sorted(found - set(model.model_fields))
    if unknown and table.local:
        raise DataError(
            f"{table.origin}: unknown column {unknown[0]!r}.{nearest(unknown[0], model.model_fields)} "
            f"Allowed are {', '.join(model.model_fields)}. Rename or remove the column."
        )


def _checked(table: Table, index: int, row: Mapping[str, Any], model: type[Row]) -> Row:
    known = {name: value for name, value in row.items() if name in model.model_fields}
    try:
        return model.model_validate(known)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"]) or "row"
        found = "nothing" if problem["type"] == "missing" else f"{problem['input']!r:.80}"
        needed = problem["msg"].removeprefix("Value error, ")
        raise DataError(f"{table.where(index)}, field {field!r}: found {found}. {needed}.".replace("..", ".")) from None


def unique(table: Table, ids: Iterable[str], field: str) -> Iterator[str]:
    """Passes ids on as they come.

    Raises:
        DataError: If an id comes twice.
    """
    seen: dict[str, int] = {}
    for index, identifier in enumerate(ids):
        if identifier in seen:
            raise DataError(
                f"{table.where(index)}, field {field!r}: {identifier!r} stands in {table.where(seen[identifier])} too. "
                "Needed is a different one in each row."
            )
        seen[identifier] = index
        yield identifier
