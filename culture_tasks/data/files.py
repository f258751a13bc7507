"""Files of rows, and data sets of the Hub, as rows with their origin for messages."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError

if TYPE_CHECKING:
    import datasets

_MOST_PROBLEMS = 100  # in the message about one file

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
"""File types that local data may have."""


@dataclass(frozen=True)
class RowTable:
    """Rows with their origin.

    Attributes:
        origin: Path, or name of the Hub data set, for messages.
        rows: The rows, without images.
        images: Images embedded in the rows, not decoded; None if there are none.
        local: Whether the rows are from a file, whose unknown columns are refused.
        first_row: Number of the first row in messages; CSV files count the header, as spreadsheets do.
        places: Origin and number of each row, where the rows are not those of the origin from first to last.
        folder: Folder of the images that rows name.
        reading: What the rows were read from.
    """

    origin: str
    rows: Sequence[Mapping[str, Any]]
    images: datasets.Dataset | None = None
    local: bool = True
    first_row: int = 1
    places: Sequence[str] | None = None
    folder: Path = Path()
    reading: DataReading = field(default_factory=DataReading)

    def where(self, index: int) -> str:
        """Returns the origin and the number of a row, for messages."""
        return f"{self.origin}, row {index + self.first_row}" if self.places is None else self.places[index]

    def part(self, indices: Sequence[int]) -> RowTable:
        """Returns some of the rows, in the given order; messages still number them as in the origin."""
        images = None if self.images is None else self.images.select(indices)
        places = [self.where(index) for index in indices]
        return replace(self, rows=[self.rows[index] for index in indices], images=images, places=places)


def files_below(folder: Path) -> list[Path]:
    """Returns the files in a folder at any depth, also in linked folders but for those that lead back up."""
    files: list[Path] = []
    for name, folders, names in os.walk(folder, followlinks=True):
        here = Path(name)
        above = [path.resolve() for path in (here, *here.parents)]
        folders[:] = [f for f in folders if not any(path.is_relative_to((here / f).resolve()) for path in above)]
        files += [here / file for file in names if (here / file).is_file()]
    return sorted(files)


def find(files: Mapping[str, Path], stems: Sequence[str]) -> list[Path]:
    """Returns the files of the first stem that has any, of files by their name in small letters; a link counts once."""
    for stem in stems:
        paths = [files[name] for suffix in SUFFIXES for name in fnmatch.filter(files, f"{stem}{suffix}".lower())]
        if paths:
            return list({path.resolve(): path for path in reversed(paths)}.values())[::-1]
    return []


def read_file(path: Path, image_column: str | None = None, pairs: tuple[str, str] = ("", "")) -> RowTable:
    """Reads a JSON, JSONL, CSV or Parquet file.

    Args:
        path: The file; JSON must hold one list of objects.
        image_column: Column that holds embedded images (Parquet only), kept apart and not decoded.
        pairs: Two columns; with the first, JSON may also hold one object, whose keys fill it. Its values are the rows'
            other columns, or fill the second one.

    Raises:
        DataError: If the file is missing, empty, broken, or of another type.
    """
    if not path.is_file():
        found = "not a plain file" if path.exists() else "no such file"
        raise DataError(f"{path}: {found}. Expected a data file with one of the endings {', '.join(SUFFIXES)}.")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = from_dataset(read_parquet(path), str(path), image_column, local=True)
    elif suffix == ".csv":
        table = RowTable(str(path), list(_csv_rows(path)), first_row=2)
    elif suffix == ".jsonl":
        table = RowTable(str(path), list(_objects(path, _json_lines(path))))
    elif suffix == ".json":
        table = RowTable(str(path), list(_objects(path, _json_list(path, *pairs))))
    else:
        raise DataError(
            f"{path}: files ending in {path.suffix!r} can't be read. Expected one of {', '.join(SUFFIXES)}."
        )
    if not table.rows:
        raise DataError(f"{path}: the file holds no rows. Expected at least one.")
    return table


def from_dataset(data: datasets.Dataset, origin: str, image_column: str | None, *, local: bool) -> RowTable:
    """Converts a ``datasets.Dataset`` to a table; embedded images are kept apart and not decoded.

    Raises:
        DataError: If the image column holds neither images nor file names.
    """
    import pyarrow.types

    if image_column is None or image_column not in data.column_names:
        return RowTable(origin, data.to_list(), local=local)
    stored = data.data.schema.field(image_column).type
    if pyarrow.types.is_string(stored) or pyarrow.types.is_large_string(stored) or pyarrow.types.is_null(stored):
        return RowTable(origin, data.to_list(), local=local)
    is_image = pyarrow.types.is_struct(stored) and {field.name for field in stored} == {"bytes", "path"}
    if not (is_image or pyarrow.types.is_binary(stored) or pyarrow.types.is_large_binary(stored)):
        raise DataError(
            f"{origin}, column {image_column!r}: holds {stored}. Expected images (bytes, or bytes and path) or file "
            "names."
        )
    images = data.select_columns([image_column])
    return RowTable(origin, data.remove_columns([image_column]).to_list(), images, local=local)


def _json_list(path: Path, key: str, value: str) -> Iterable[Any]:
    content = _parse_json(path, _text(path))
    if key and isinstance(content, dict):
        rows = [{value: entry} if value else entry for entry in content.values()]
        return [{key: name, **row} if isinstance(row, dict) else row for name, row in zip(content, rows, strict=True)]
    if not isinstance(content, list):
        kind = "object" if isinstance(content, dict) else "text" if isinstance(content, str) else "value"
        raise DataError(f"{path}: holds one {kind}. Expected a list of objects, one for each row.")
    return content


def _json_lines(path: Path) -> Iterator[Any]:
    # Lines end at no other line break: JSON may contain U+2028.
    problems: list[str] = []
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                yield _parse_json(path, line, number)
            except DataError as error:
                problems.append(str(error))
    _raise(problems)


def _raise(problems: Sequence[str]) -> None:
    """Raises DataError with the first problems of a file, if there are any."""
    if problems:
        more = [f"… and {len(problems) - _MOST_PROBLEMS} more rows"] if len(problems) > _MOST_PROBLEMS else []
        raise DataError("\n".join([*problems[:_MOST_PROBLEMS], *more]))


def _parse_json(path: Path, text: str, line: int | None = None) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise DataError(f"{path}, {place}: not JSON ({error.msg}). Correct it there.") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}, line {line or 1}: JSON that can't be read ({error}). Correct it.") from None


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes an object from its pairs; by default, json silently keeps the last of several with one name."""
    unique_names = dict(pairs)
    if len(unique_names) < len(pairs):
        name, times = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{name!r} occurs {times} times in one object")
    return unique_names


_DECODER = json.JSONDecoder(object_pairs_hook=_object_of_pairs)


def _csv_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    text = _text(path)
    first_line = re.sub('"[^"]*"', "", text.partition("\n")[0])
    separator = next((mark for mark in ",;\t" if mark in first_line), ",")  # spreadsheets of many countries write ;
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    rows, problems = filter(None, reader), list[str]()
    try:
        header = next(rows, [])
        for name, times in Counter(header).items():
            if times > 1:
                raise DataError(f"{path}: {times} columns are named {name!r}. Rename or remove one.")
        for number, row in enumerate(rows, start=2):
            if len(row) == len(header):
                yield dict(zip(header, row, strict=True))
            else:
                problems.append(
                    f"{path}, row {number}: {len(row)} fields, while the header has {len(header)} columns. "
                    f"Quote fields that hold {separator!r}, and leave no field out."
                )
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not CSV ({error}). Correct the quotes.") from None
    _raise(problems)


def read_parquet(path: Path) -> datasets.Dataset:
    """Reads a Parquet file into memory; ``datasets`` would keep a copy, by the file's path and time of change.

    Raises:
        DataError: If the file is broken.
    """
    import datasets
    import pyarrow.parquet

    try:
        with path.open("rb") as file:
            return datasets.Dataset(datasets.table.InMemoryTable(pyarrow.parquet.read_table(file)))
    except (OSError, ValueError, TypeError, NotImplementedError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file ({error}). Save the file anew.") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text at byte {error.start}. Save the file as UTF-8.") from None
    except OSError as error:
        raise DataError(f"{path}: can't be read ({error.strerror}). Check its permissions.") from None


def _objects(path: Path, content: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    for number, row in enumerate(content, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{path}, row {number}: found {json.dumps(row):.60}. Expected an object.")
        yield row
