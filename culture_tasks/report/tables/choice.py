"""The tables and columns that the user names."""

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
    _check("--tables", names, [table.key for table in known])
    kept = [table for table in known if not names or _fits(names, table.key)]
    _check("--columns", columns, [name for table in kept for column in table.columns for name in _names(column)])
    if not columns:
        return tuple(kept)
    return tuple(narrowed for table in kept if (narrowed := _with_columns(table, columns)).columns)


def _check(option: str, patterns: Iterable[str], known: Iterable[str]) -> None:
    names = list(dict.fromkeys(known))
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
            raise SettingsError(
                f"report: {option} {pattern!r} fits nothing.{nearest(pattern, names)} "
                f"There are {', '.join(names[:_MOST_NAMED])}{more}."
            )


def _fits(patterns: Iterable[str], *names: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _names(column: Column) -> tuple[str, str]:
    return column.key, " ".join(part for part in (column.over, column.label) if part)


def _with_columns(table: Table, patterns: Sequence[str]) -> Table:
    """Returns a table with some of its columns, without rows that have nothing in them."""
    places = [at for at, column in enumerate(table.columns) if _fits(patterns, *_names(column))]
    rows = [replace(row, cells=tuple(row.cells[at] for at in places)) for row in table.rows]
    return replace(
        table,
        columns=tuple(table.columns[at] for at in places),
        rows=tuple(row for row in rows if any(cell is not None for cell in row.cells)),
    )
