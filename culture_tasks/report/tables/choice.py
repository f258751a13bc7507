"""What a paper needs of a report: the tables and columns that the user names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from culture_tasks.errors import SettingsError, nearest
from culture_tasks.report.model import Column, Table

_MOST_NAMED = 30
"""Most names that an error lists."""


def chosen(tables: Iterable[Table], names: Sequence[str], columns: Sequence[str]) -> tuple[Table, ...]:
    """Returns the tables that are wanted, with the columns that are wanted, in the report's order.

    Args:
        tables: All tables.
        names: Keys of tables or patterns of them, such as ``care_*``; none means all.
        columns: Keys or labels of columns or patterns of them; none means all. Tables that have none of them are left
            out.

    Raises:
        SettingsError: If a name fits nothing.
    """
    known = list(tables)
    for name in names:
        _check("--tables", name, [table.key for table in known])
    kept = [table for table in known if not names or any(fnmatchcase(table.key, name) for name in names)]
    for name in columns:
        _check("--columns", name, [each for table in kept for column in table.columns for each in _names(column)])
    return tuple(_with_columns(table, columns) for table in kept if not columns or _places(table, columns))


def _check(option: str, name: str, known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    if not any(fnmatchcase(each, name) for each in names):
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise SettingsError(
            f"report: {option} {name!r} fits nothing.{nearest(name, names)} "
            f"There are {', '.join(names[:_MOST_NAMED])}{more}."
        )


def _names(column: Column) -> tuple[str, str]:
    return column.key, " ".join(part for part in (column.over, column.label) if part)


def _places(table: Table, columns: Sequence[str]) -> list[int]:
    return [
        at
        for at, column in enumerate(table.columns)
        if any(fnmatchcase(each, name) for each in _names(column) for name in columns)
    ]


def _with_columns(table: Table, columns: Sequence[str]) -> Table:
    """Returns a table with some of its columns, without rows that have nothing in them."""
    if not columns:
        return table
    places = _places(table, columns)
    rows = [
        replace(row, cells=tuple(row.cells[at] if at < len(row.cells) else None for at in places)) for row in table.rows
    ]
    return replace(
        table,
        columns=tuple(table.columns[at] for at in places),
        rows=tuple(row for row in rows if any(cell is not None for cell in row.cells)),
    )
