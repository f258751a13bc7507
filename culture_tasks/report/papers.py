"""The papers' own numbers by group, in the places where the user has numbers too: what figures set beside them.

They are rows of their own, marked as published, without intervals. They come after everything that is ranked, tested or
averaged has been worked out, and so take no part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from culture_tasks import published
from culture_tasks.benchmarks.cedar.labels import MODALITIES
from culture_tasks.benchmarks.registry import tasks_below
from culture_tasks.report.model import Cell, Entrant, GroupValue
from culture_tasks.report.units import Measured

_TABLES: Mapping[tuple[str, str, str], tuple[str, ...]] = {
    ("care", "score", "category"): ("care_table_3", "care_table_6"),
    ("cedar", "gepp", "emotion"): ("cedar_table_7", "cedar_table_8"),
}
"""Published tables by benchmark, statistic and dimension: those whose numbers one of the figures shows."""


@dataclass(frozen=True, slots=True)
class Papers:
    """The papers' rows.

    Attributes:
        entrants: The rows, by key.
        values: Their numbers.
    """

    entrants: Mapping[str, Entrant]
    values: tuple[GroupValue, ...]


def paper_values(measured: Iterable[Measured], values: Iterable[GroupValue]) -> Papers:
    """Returns what the papers print for the groups that the user has numbers of, from the papers' own variant alone.

    Args:
        measured: The user's units.
        values: The user's numbers.
    """
    benchmarks = {each.unit.key: each.unit.benchmark or "" for each in measured if is_the_papers(each)}
    places: dict[tuple[str, str, str], dict[tuple[object, ...], GroupValue]] = {}
    for value in values:
        if value.unit in benchmarks and value.cell.value is not None:
            kind = (benchmarks[value.unit], value.statistic, value.dimension)
            places.setdefault(kind, {}).setdefault((value.unit, value.group, value.cell.where), value)
    entrants: dict[str, Entrant] = {}
    found = [
        value
        for kind, names in _TABLES.items()
        for name in names
        for value in _of_table(published.load(name), list(places.get(kind, {}).values()), entrants)
    ]
    return Papers(entrants, tuple(found))


def is_the_papers(measured: Measured) -> bool:
    """Whether a unit is the variant that CARE's or CEDAR's tables are about, and not another prompt or language."""
    plain = {
        "care": tuple(task.name for task in tasks_below("care")),
        "cedar": tuple(f"cedar_{modality}" for modality in MODALITIES),
    }
    return set(measured.tasks) <= set(plain.get(measured.unit.benchmark or "", ()))


def _of_table(
    table: published.PublishedTable, places: Sequence[GroupValue], entrants: dict[str, Entrant]
) -> Iterator[GroupValue]:
    columns = {frozenset(_plain(column.keys).items()): at for at, column in enumerate(table.columns)}
    for row in table.rows:
        for place in places:
            printed = row.cells[at] if (at := columns.get(_keys(place))) is not None else None
            if printed is not None and row.measure is None:
                key = _entered(entrants, table, row)
                cell = Cell(
                    published.number(printed).value, place.cell.scale, flags=("published",), where=place.cell.where
                )
                yield replace(place, entrant=key, cell=cell)


def _plain(keys: Mapping[Any, str]) -> dict[str, str]:
    return {str(name): text for name, text in keys.items()}


def _keys(place: GroupValue) -> frozenset[tuple[str, str]]:
    """Returns the keys of the published column that has the numbers of a place."""
    keys = dict(place.cell.where) | {place.dimension: place.group}
    if place.unit.startswith("cedar_"):
        keys["modality"] = place.unit.removeprefix("cedar_")
    return frozenset(keys.items())


def _entered(entrants: dict[str, Entrant], table: published.PublishedTable, row: published.Row) -> str:
    """Enters a row of a paper, or adds the table to the sources of the one that is there."""
    key = f"published {table.benchmark} {row.name}"
    known = entrants.get(key)
    if known is None:
        entrants[key] = Entrant(key, row.name, "published", published=True, source=table.source)
    elif table.source not in known.source:
        entrants[key] = replace(known, source=f"{known.source} + {table.source}")
    return key
