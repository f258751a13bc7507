"""Reads the published tables: one JSON file a table."""

from __future__ import annotations

from functools import cache
from importlib import resources

from culture_tasks.errors import DataError, nearest
from culture_tasks.published.model import PublishedTable

_ORDER = ("care", "cedar", "crosscult")


@cache
def names() -> tuple[str, ...]:
    """Returns the tables' names, by paper and number: ``care_table_3``, …, ``crosscult_table_4``."""
    files = (resources.files(__package__) / "tables").iterdir()
    return tuple(sorted((file.name.removesuffix(".json") for file in files if file.name.endswith(".json")), key=_place))


def _place(name: str) -> tuple[int, int]:
    paper, _, table = name.partition("_table_")
    return _ORDER.index(paper), int(table)


@cache
def load(name: str) -> PublishedTable:
    """Returns a published table.

    Args:
        name: Such as ``cedar_table_1``; :func:`names` has all.

    Raises:
        DataError: If there is no such table.
    """
    if name not in names():
        raise DataError(f"published: unknown table {name!r}.{nearest(name, names())} There are {', '.join(names())}.")
    file = resources.files(__package__) / "tables" / f"{name}.json"
    return PublishedTable.model_validate_json(file.read_text(encoding="utf-8"))


def all_tables() -> tuple[PublishedTable, ...]:
    """Returns every published table, by paper and number."""
    return tuple(load(name) for name in names())
