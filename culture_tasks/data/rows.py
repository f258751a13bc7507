"""What a row is: the types of its fields, its check against a model, and ids."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError

from culture_tasks.data.files import Rows
from culture_tasks.errors import DataError, nearest

if TYPE_CHECKING:
    from culture_tasks.settings import Settings

_log = logging.getLogger(__name__)

Row = TypeVar("Row", bound=BaseModel)
_Item = TypeVar("_Item")


class TableRow(BaseModel):
    """A row of a table, in which only columns that it names are allowed; a model may say ``extra="ignore"``.

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


def checked(
    table: Rows[Any], model: type[Row], aliases: Mapping[str, str] | None = None, settings: Settings | None = None
) -> Generator[tuple[int, Row] | str, None, None]:
    """Yields each row that a pydantic model accepts with its place in the table, and the problems of the others.

    A field without default is a column that must be there. Case and spaces of a column don't matter. Where columns are
    wrong, that is all that is said: their rows would be, too.
    """
    fields = model.model_fields
    names = _fields_of(set[str]().union(*table.rows), fields, aliases or {})
    if problems := list(_column_problems(table, names, model, settings)) if table.rows else []:
        yield from problems
        return
    for index, row in enumerate(table.rows):
        try:
            yield index, model.model_validate({names[name]: row[name] for name in row if names[name] in fields})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in problem["loc"]) or "row"
            value = "nothing" if problem["type"] == "missing" else f"{problem['input']!r:.80}"
            yield (
                f"{table.where(index)}, field {place!r}: found {value}. {expectation(problem)}. Correct the row, or "
                "remove it."
            )


def _column_problems(
    table: Rows[Any], names: Mapping[str, str], model: type[Row], settings: Settings | None
) -> Iterator[str]:
    """Yields what is wrong with columns: missing, there under two names, or unknown in a file of the user's."""
    fields, columns = model.model_fields, set(names.values())
    required = [name for name, field in fields.items() if field.is_required()]
    if missing := [name for name in required if name not in columns]:
        yield (
            f"{table.origin}: no column {missing[0]!r}.{nearest(missing[0], columns)} "
            f"Found the columns {', '.join(sorted(columns))}. Expected {', '.join(required)}. Rename or add it."
        )
        return
    for field in sorted(columns):
        if len(same := sorted(name for name in names if names[name] == field)) > 1:
            yield f"{table.origin}: the columns {' and '.join(map(repr, same))} mean the same. Remove or rename one."
    is_strict = table.local and model.model_config.get("extra") != "ignore"
    unknown = sorted(columns - set(fields)) if is_strict else []
    if unknown and settings and settings.extra_columns == "allow":
        _warn_of_columns(table.origin, tuple(unknown))
    elif unknown:
        yield (
            f"{table.origin}: unknown column {unknown[0]!r}.{nearest(unknown[0], fields)} Expected one of "
            f"{', '.join(fields)}. Rename or remove it"
            f"{', or ignore all unknown columns with CULTURE_TASKS_EXTRA_COLUMNS=allow' if settings else ''}."
        )


def _fields_of(columns: set[str], fields: Collection[str], aliases: Mapping[str, str]) -> dict[str, str]:
    """Returns the field of each column; an unknown column is its own."""
    plain = {name: name.lower().replace(" ", "_") for name in columns}
    return {
        name: aliases.get(name, plain[name] if plain[name] in fields and plain[name] not in columns else name)
        for name in columns
    }


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


def expectation(problem: Mapping[str, Any]) -> str:
    """Returns what was expected, of an error of pydantic's."""
    return str(_EXPECTED.get(problem["type"], problem["msg"].removeprefix("Value error, ").rstrip(".")))


def validated(
    table: Rows[Any], model: type[Row], aliases: Mapping[str, str] | None = None, settings: Settings | None = None
) -> list[Row]:
    """Returns the rows by :func:`checked`; raises DataError for the first problem."""
    return [row for _, row in or_raise(checked(table, model, aliases, settings))]


def or_raise(found: Generator[_Item | str, None, None]) -> Iterator[_Item]:
    """Yields what isn't a problem; raises DataError for the first problem."""
    with closing(found):
        for item in found:
            if isinstance(item, str):
                raise DataError(item)
            yield item


def id_problems(table: Rows[Any], identifiers: Sequence[str | None], field: str) -> Iterator[str]:
    """Yields the rows without an id where another row has one, and those whose id occurs before."""
    first: dict[str | None, int] = {}
    has_ids = any(identifier is not None for identifier in identifiers)
    for index, identifier in enumerate(identifiers):
        if identifier is None and has_ids:
            yield f"{table.where(index)}, field {field!r}: found nothing. Expected an id in each row, or in none."
        elif identifier is not None and first.setdefault(identifier, index) != index:
            yield (
                f"{table.where(index)}, field {field!r}: {identifier!r} is also the id of "
                f"{table.where(first[identifier])}. Expected a different one in each row."
            )
