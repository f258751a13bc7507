"""Rows of a local file or a Hub data set, each with its origin for messages."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from culture_tasks.data.reading import current
from culture_tasks.errors import DataError, nearest

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

_MOST_PROBLEMS = 100  # in the message about one file

SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
"""File types that local data may have."""

Row = TypeVar("Row", bound=BaseModel)


class TableRow(BaseModel):
    """A row of a table, in which only columns that it names are allowed.

    Its validator is made when the first row is checked: harnesses import the rows of all benchmarks when they start.
    """

    model_config = ConfigDict(extra="forbid", defer_build=True)


def none_if_blank(value: Any) -> Any:
    """Returns None for a text without a visible character, and everything else as it is."""
    return None if isinstance(value, str) and not value.strip() else value


def _text_if_number(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(_EXPECTED["string_too_short"])
    return text


Text = Annotated[str, StringConstraints(min_length=1), AfterValidator(_not_blank)]
"""A required text, shown as it is: white space around it is kept."""

OptionalText = Annotated[Text | None, BeforeValidator(none_if_blank)]
"""An optional text, shown as it is; an empty field of a CSV file counts as missing."""

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A required name, such as a category or a file name: white space around it is stripped."""

OptionalLabel = Annotated[Label | None, BeforeValidator(none_if_blank)]

Identifier = Annotated[Label, BeforeValidator(_text_if_number)]
"""A row's id: a text or an integer, which a CSV file can't tell apart."""

OptionalIdentifier = Annotated[OptionalLabel, BeforeValidator(_text_if_number)]


def one_of(names: Collection[str]) -> AfterValidator:
    """Returns a validator that refuses a text that isn't among the names."""

    def check(text: str) -> str:
        if text not in names:
            raise ValueError(f"{nearest(text, names)} Expected one of {', '.join(names)}".strip())
        return text

    return AfterValidator(check)


@dataclass(frozen=True)
class RowTable:
    """Rows with their origin.

    Attributes:
        origin: File path, or name of the Hub data set.
        rows: The rows without their image column.
        images: The image column as a one-column data set aligned with the rows; None where there is none.
        local: Whether the rows are from the user's own file, where unknown columns are an error.
        first_row: Number of the first row in messages; 2 in CSV, where the header is line 1.
        places: Index of each row in the origin, where the table holds only some of its rows.
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

    def part(self, indices: Sequence[int]) -> RowTable:
        """Returns some of the rows, in the given order; messages still number them as in the origin."""
        places = indices if self.places is None else [self.places[index] for index in indices]
        images = None if self.images is None else self.images.select(indices)
        return replace(self, rows=[self.rows[index] for index in indices], images=images, places=places)


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


def validated(table: RowTable, model: type[Row], aliases: Mapping[str, str] | None = None) -> list[Row]:
    """Checks every row against a pydantic model.

    Args:
        table: The rows.
        model: The pydantic model of a row. A field without default is a column that must be there.
        aliases: Other column names, each with its field.

    Raises:
        DataError: For a missing or (in the user's own files) unknown column, two columns that mean the same, or the
            first invalid field.
    """
    renamed = [_rename_columns(table.where(index), row, aliases or {}) for index, row in enumerate(table.rows)]
    _check_columns(table, model, {name for row in renamed for name in row})
    return [_check_row(table.where(index), row, model) for index, row in enumerate(renamed)]


def usable_rows(table: RowTable, model: type[Row], aliases: Mapping[str, str]) -> tuple[dict[int, Row], list[str]]:
    """Checks every row by itself; returns the valid rows by their index, and the problems of the others, each once."""
    rows: dict[int, Row] = {}
    problems: dict[str, None] = {}  # a wrong column of all rows is reported once, not for every row
    alike = all(row.keys() == table.rows[0].keys() for row in table.rows)
    for index, row in enumerate(table.rows):
        where = table.where(index)
        try:
            renamed = _rename_columns(where, row, aliases)
            _check_columns(table if alike else replace(table, origin=where), model, set(renamed))
            rows[index] = _check_row(where, renamed, model)
        except DataError as error:
            problems[str(error)] = None
    return rows, list(problems)


def _rename_columns(where: str, row: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    renamed: dict[str, Any] = {}
    for name, value in row.items():
        field = aliases.get(name, name)
        if field in renamed:
            names = " and ".join(repr(column) for column in row if aliases.get(column, column) == field)
            raise DataError(f"{where}: the columns {names} mean the same. Remove or rename one of them.")
        renamed[field] = value
    return renamed


def _check_columns(table: RowTable, model: type[BaseModel], columns: set[str]) -> None:
    required_columns = [name for name, field in model.model_fields.items() if field.is_required()]
    missing = [name for name in required_columns if name not in columns]
    if missing:
        raise DataError(
            f"{table.origin}: no column {missing[0]!r}.{nearest(missing[0], columns)} "
            f"Found the columns {', '.join(sorted(columns))}. Expected {', '.join(required_columns)}. Rename or add it."
        )
    unknown = sorted(columns - set(model.model_fields))
    if not unknown or not table.local:
        return
    if current().settings.extra_columns == "allow":
        _warn_of_columns(table.origin, tuple(unknown))
        return
    raise DataError(
        f"{table.origin}: unknown column {unknown[0]!r}.{nearest(unknown[0], model.model_fields)} "
        f"Expected one of {', '.join(model.model_fields)}. Rename or remove it, or ignore all unknown columns with "
        "CULTURE_TASKS_EXTRA_COLUMNS=allow."
    )


@cache
def _warn_of_columns(origin: str, columns: tuple[str, ...]) -> None:
    """Logs the unknown columns of a file once, however often it is read."""
    _log.warning("%s: unknown columns are ignored: %s", origin, ", ".join(columns))


_EXPECTED = {
    "missing": "Expected a value",
    "string_type": "Expected a text",
    "string_too_short": "Expected a text that isn't empty",
    "string_unicode": "Expected Unicode text without lone surrogates",
    "too_short": "Expected at least one entry",
    "list_type": "Expected a list",
    "float_parsing": "Expected a number",
    "finite_number": "Expected a finite number",
}
"""The expected value, by pydantic's type of error, in the words of this package."""


def _check_row(where: str, row: Mapping[str, Any], model: type[Row]) -> Row:
    fields = model.model_fields
    try:
        return model.model_validate({name: value for name, value in row.items() if name in fields})
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in problem["loc"]) or "row"
        value = "nothing" if problem["type"] == "missing" else f"{problem['input']!r:.80}"
        raise DataError(
            f"{where}, field {field!r}: found {value}. {expectation(problem)}. Correct the row, or remove it."
        ) from None


def expectation(problem: Mapping[str, Any]) -> str:
    """Returns what was expected, of an error of pydantic's, in the words of this package."""
    return str(_EXPECTED.get(problem["type"], problem["msg"].removeprefix("Value error, ").rstrip(".")))


def unique(table: RowTable, ids: Iterable[str | None], field: str) -> Iterator[str]:
    """Yields the ids; if no row has one, rows are numbered from 0.

    Raises:
        DataError: If an id occurs twice, or only some rows have one.
    """
    identifiers = list(ids)
    for problem in id_problems(table, identifiers, field):
        raise DataError(problem)
    yield from (str(index) if text is None else text for index, text in enumerate(identifiers))


def id_problems(table: RowTable, identifiers: Sequence[str | None], field: str) -> Iterator[str]:
    """Yields the rows without an id where another row has one, and those whose id occurs before."""
    first = next((index for index, identifier in enumerate(identifiers) if identifier is not None), None)
    places: dict[str, int] = {}
    for index, identifier in enumerate(identifiers):
        if identifier is None and first is not None:
            yield (
                f"{table.where(index)}, field {field!r}: found nothing, while {table.where(first)} has "
                f"{identifiers[first]!r}. Expected an id in each row, or in none."
            )
        elif identifier is not None and places.setdefault(identifier, index) != index:
            yield (
                f"{table.where(index)}, field {field!r}: {identifier!r} is also the id of "
                f"{table.where(places[identifier])}. Expected a different one in each row."
            )


def fingerprint(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns a hash of data: two runs compare only where they saw the same rows.

    It is the first 16 hexadecimal digits of the SHA-256 of the rows as canonical JSON, one a line, in their order.
    """
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n")
    return digest.hexdigest()[:16]
