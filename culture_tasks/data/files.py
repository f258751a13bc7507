"""Rows with their origin for messages, read from files or made of data sets of the Hub."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from culture_tasks.data.reading import DataReading, fingerprint
from culture_tasks.errors import DataError
from culture_tasks.plain_files import open_plain

if TYPE_CHECKING:
    import datasets

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
"""File types that local data may have."""

_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Rows(Generic[_Row]):
    """Rows with their origin: mappings as they were read, or models once they are checked."""

    origin: str  # path, or name of the Hub data set, for messages
    rows: Sequence[_Row]  # without images
    embedded: datasets.Dataset | None = None  # images embedded in the rows, not decoded
    local: bool = True  # whether the rows are from a file, whose unknown columns are refused
    first_row: int = 1  # its number in messages: CSV files count the header, as spreadsheets do
    places: Sequence[str] | None = None
    """Origin and number of each row, where the rows are not those of the origin from first to last."""
    folder: Path = Path()  # of the images that rows name
    reading: DataReading = field(default_factory=DataReading)
    ids: Sequence[str] = ()  # of checked rows; their numbers, from 0, where they have none
    images: datasets.Dataset | None = None  # of checked rows as a column `image`, not decoded

    def __iter__(self) -> Iterator[tuple[str, _Row]]:
        """Yields checked rows with their ids."""
        return zip(self.ids, self.rows, strict=True)

    def where(self, index: int) -> str:
        """Returns the origin and the number of a row, for messages."""
        return f"{self.origin}, row {index + self.first_row}" if self.places is None else self.places[index]

    def part(self, indices: Sequence[int]) -> Rows[_Row]:
        """Returns some of the rows, in the given order; messages still number them as in the origin."""
        embedded = None if self.embedded is None else self.embedded.select(indices)
        places = [self.where(index) for index in indices]
        return replace(self, rows=[self.rows[index] for index in indices], embedded=embedded, places=places)

    def fingerprint(self, *, include: set[str] | None = None, exclude: set[str] | None = None) -> str:
        """Returns the fingerprint of checked rows, of the fields to ``include``, or all but those to ``exclude``."""
        models: Sequence[Any] = self.rows
        return fingerprint(row.model_dump(include=include, exclude=exclude) for row in models)

    def require(self, advice: str, **columns: str) -> None:
        """Raises DataError for the first row without a value of one of some fields, by which the user knows them."""
        for index, row in enumerate(self.rows):
            for name, column in columns.items():
                if not getattr(row, name):
                    raise DataError(f"{self.where(index)}, field {column!r}: found nothing. {advice}")


def files_below(folder: Path) -> list[Path]:
    """Returns the files in a folder at any depth, also in linked folders but for those that lead back up."""
    files: list[Path] = []
    for name, folders, names in os.walk(folder, followlinks=True):
        here = Path(name)
        above = [path.resolve() for path in (here, *here.parents)]
        folders[:] = [f for f in folders if not any(path.is_relative_to((here / f).resolve()) for path in above)]
        files += [here / file for file in names if (here / file).is_file()]
    return sorted(files)


def find(folder: Path, stems: Sequence[str]) -> list[Path]:
    """Returns the files below a folder of the first stem that has any, in any case; a link counts once.

    Raises DataError if they are in two folders, or of two types.
    """
    files = {path.relative_to(folder).as_posix().lower(): path for path in files_below(folder)}
    for stem in stems:
        paths = [files[name] for suffix in SUFFIXES for name in fnmatch.filter(files, f"{stem}{suffix}".lower())]
        paths = list({path.resolve(): path for path in reversed(paths)}.values())[::-1]
        for path in paths:
            if (path.parent, path.suffix) != (paths[0].parent, paths[0].suffix):
                raise DataError(f"{paths[0]} and {path} both match. Keep one of them.")
        if paths:
            return paths
    return []


def read_file(path: Path, image_column: str | None = None, key: str = "") -> Rows[Mapping[str, Any]]:
    """Reads a JSON, JSONL, CSV or Parquet file; raises DataError if it is missing, empty, broken, or of another type.

    JSON must hold one list of objects or, with a ``key``, an object of objects whose keys fill this column. Images
    that are embedded in the ``image_column`` (Parquet only) are kept apart and not decoded.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES or path.is_dir() or not path.exists():
        found = "no data file by its name" if path.is_file() else "a folder" if path.is_dir() else "no such file"
        raise DataError(f"{path}: {found}. Expected a file with one of the endings {', '.join(SUFFIXES)}.")
    try:
        open_plain(path).close()
        if suffix == ".parquet":
            table = from_dataset(read_parquet(path), str(path), image_column, local=True)
        else:
            text = path.read_text(encoding="utf-8-sig")
            readers = {".csv": _csv_rows, ".jsonl": _json_lines}
            rows = readers[suffix](text) if suffix in readers else _json_list(text, key)
            table = Rows(str(path), list(rows), first_row=2 if suffix == ".csv" else 1)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}. Save the file as UTF-8.") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}). Check its permissions.") from None
    except ValueError as error:
        raise DataError(f"{path}, {error}. Correct it.") from None
    if not table.rows:
        raise DataError(f"{path}: the file holds no rows. Expected at least one.")
    for index, row in enumerate(table.rows):
        if not isinstance(row, dict):
            raise DataError(f"{table.where(index)}: found {json.dumps(row):.60}. Expected an object.")
    return table


def _json_list(text: str, key: str) -> Iterable[Any]:
    content = _parsed(text)
    if key and isinstance(content, dict):
        return [{key: name, **row} if isinstance(row, dict) else row for name, row in content.items()]
    if not isinstance(content, list):
        raise ValueError(f"line 1: found {json.dumps(content):.60}. Expected a list of objects, one for each row")
    return content


def _json_lines(text: str) -> list[Any]:
    lines = enumerate(text.split("\n"), start=1)  # at no other line break: JSON may contain U+2028
    return [_parsed(line, number) for number, line in lines if line.strip()]


def _parsed(text: str, line: int = 0) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {line or error.lineno}, column {error.colno}: not JSON ({error.msg})") from None
    except RecursionError as error:
        raise ValueError(f"line {line or 1}: not JSON that can be read ({error})") from None


def _csv_rows(text: str) -> Iterator[Mapping[str, Any]]:
    first_line = re.sub('"[^"]*"', "", text.partition("\n")[0])
    separator = next((mark for mark in ",;\t" if mark in first_line), ",")  # spreadsheets of many countries write ;
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        rows = list(filter(None, reader))
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: not CSV ({error})") from None
    header = rows[0] if rows else []
    if len(set(header)) < len(header):
        raise ValueError(f"row 1: found two columns of one name in {', '.join(header)}. Expected different names")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise ValueError(f"row {number}: found {len(row)} fields. Expected {len(header)}, as in the header")
        yield dict(zip(header, row, strict=True))


def read_parquet(path: Path) -> datasets.Dataset:
    """Reads a Parquet file into memory; ``datasets`` would keep a copy, by the file's path and time of change."""
    import datasets
    import pyarrow.parquet

    try:
        with path.open("rb") as file:
            return datasets.Dataset(datasets.table.InMemoryTable(pyarrow.parquet.read_table(file)))
    except (OSError, ValueError, TypeError, NotImplementedError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}). Save the file anew.") from error


def from_dataset(
    data: datasets.Dataset, origin: str, image_column: str | None, *, local: bool
) -> Rows[Mapping[str, Any]]:
    """Converts a ``datasets.Dataset`` to rows; embedded images are kept apart and not decoded."""
    from pyarrow import types

    if image_column is None or image_column not in data.column_names:
        return Rows(origin, data.to_list(), local=local)
    stored = data.data.schema.field(image_column).type
    if any(is_kind(stored) for is_kind in (types.is_string, types.is_large_string, types.is_null)):
        return Rows(origin, data.to_list(), local=local)
    is_image = types.is_struct(stored) and {field.name for field in stored} == {"bytes", "path"}
    if not (is_image or types.is_binary(stored) or types.is_large_binary(stored)):
        raise DataError(f"{origin}, column {image_column!r}: holds {stored}. Expected images or names of their files.")
    images = data.select_columns([image_column])
    return Rows(origin, data.remove_columns([image_column]).to_list(), images, local=local)
