"""Papers' numbers: their rows below the user's, their numbers in figures, and their other tables as they are.

They are marked as published and have no intervals. They are added after all ranks, tests and means, and so take no part
in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from culture_tasks import published
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.model import Cell, Column, Entrant, GroupValue, Row, Table
from culture_tasks.report.numbers.scores import Scores
from culture_tasks.report.wording import SAYS_PERCENT

Keys = frozenset[tuple[str, str]]
"""The keys of a published column."""


def keys_of(keys: Mapping[Any, str]) -> Keys:
    """Returns keys in a form that can be compared."""
    return frozenset((str(name), text) for name, text in keys.items())


def published_rows(paper: str, places: Sequence[tuple[Keys, Scale]], headers: int) -> Iterator[Row]:
    """Yields the rows of a published table in the columns of another table.

    Args:
        paper: Name of the published table.
        places: Keys and scale of each column; empty keys for one that the paper doesn't have.
        headers: Number of texts before a row's numbers.
    """
    table = published.load(paper)
    columns = {keys_of(column.keys): at for at, column in enumerate(table.columns)}
    for row in table.rows:
        cells = tuple(
            None if (at := columns.get(keys)) is None else _cell_in_row(table, row, column=at, scale=scale)
            for keys, scale in places
        )
        if any(cell is not None for cell in cells):
            yield Row(_labels(table, row, headers), cells, None, published=True)


def _labels(table: published.PublishedTable, row: published.PublishedRow, headers: int) -> tuple[str, ...]:
    judge = f"published ({table.judge})" if table.judge else "published"
    if headers == 1:
        return (f"{row.name}, {judge}",)
    if headers == 2:
        return (row.name, judge)
    first = next(iter(row.keys.values()))
    return (first, row.name.removeprefix(first).strip(), judge)


def _cell_in_row(
    table: published.PublishedTable, row: published.PublishedRow, column: int, scale: Scale
) -> Cell | None:
    printed = row.cells[column]
    if printed is None:
        return None
    number = published.number(printed)
    times, digits = _in_unit_of(scale, table, column=column, digits=number.digits)
    measure = None if row.measure is None else table.measures[row.measure]
    if measure is None:
        return Cell(number.value * times, replace(scale, digits=digits), flags=("published",))
    own = Scale(_unit(measure, scale.unit), digits=number.digits)
    return Cell(number.value, own, flags=("published",), note=measure.name)


def _in_unit_of(scale: Scale, table: published.PublishedTable, column: int, digits: int = 0) -> tuple[float, int]:
    """Returns the factor from a printed number to a scale, and the digits there: percent may be shares."""
    if table.measures[table.columns[column].measure].unit == "percent" and scale.unit == "share":
        return 0.01, digits + 2
    return 1.0, digits


def _unit(measure: published.Measure, of_column: str) -> str:
    """Returns the unit of a cell: a percent among other numbers is shown with its sign."""
    return SAYS_PERCENT if measure.unit == "percent" != of_column else measure.unit


def paper_notes(paper: str) -> Iterator[str]:
    """Yields the notes of a published table: its source, its remarks, and averages that don't follow from its cells."""
    table = published.load(paper)
    yield f"Published rows: {table.source}. They were not judged by your judge."
    yield from table.notes
    if table.missing is not None:
        yield f"{table.missing.mark} in a published row: {table.missing.meaning}"
    if table.contradictions:
        yield f"Printed aggregates that don't follow from the printed cells: {'; '.join(table.contradictions)}"


def own_data_apart(table: Table, papers: Sequence[str]) -> Iterator[Table]:
    """Yields a table; numbers on own data are moved to a table by themselves where it has published rows.

    Args:
        table: The table.
        papers: Published tables whose rows it has.
    """
    of_papers = tuple(row for row in table.rows if row.published)
    own, release = (tuple(_on_data(table.rows, own=own)) for own in (True, False))
    if not own or not of_papers:
        yield table
        return
    if release:
        yield replace(table, rows=(*release, *of_papers))
        table = replace(table, key=f"{table.key}_own_data", title=f"{table.title}, own data")
    about_papers = {note for paper in papers for note in paper_notes(paper)}
    yield replace(table, rows=own, notes=tuple(note for note in table.notes if note not in about_papers))


def _on_data(rows: Sequence[Row], *, own: bool) -> Iterator[Row]:
    """Yields the user's rows with their numbers on own data alone, or without these."""
    for row in rows:
        cells = tuple(cell if cell and ("own_data" in cell.flags) == own else None for cell in row.cells)
        if any(cells) and not row.published:
            yield replace(row, cells=cells)


# Numbers by group, for figures


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """The papers' rows, by key, and their numbers."""

    entrants: Mapping[str, Entrant]
    values: tuple[GroupValue, ...]


def published_scores(scores: Scores) -> PublishedScores:
    """Returns the papers' numbers for the user's groups, where the tasks measure what the papers do."""
    places: dict[tuple[str, str], dict[tuple[object, ...], GroupValue]] = {}
    for value in scores.groups:
        measured = scores.units[value.unit]
        is_on_release = value.cell.value is not None and "own_data" not in value.cell.flags
        if is_on_release and measured.reported.is_as_published(measured.tasks):
            for paper in measured.reported.published.get((value.statistic, value.dimension), ()):
                there = places.setdefault((paper, value.statistic), {})
                there.setdefault((value.unit, value.group, value.cell.where), value)
    entrants: dict[str, Entrant] = {}
    named = (paper for each in scores.units.values() for tables in each.reported.published.values() for paper in tables)
    values = [
        value
        for paper in dict.fromkeys(named)
        for (name, _), there in places.items()
        if name == paper
        for value in _printed_values(published.load(paper), scores, places=list(there.values()), entrants=entrants)
    ]
    return PublishedScores(entrants, tuple(values))


def _printed_values(
    table: published.PublishedTable, scores: Scores, places: Sequence[GroupValue], entrants: dict[str, Entrant]
) -> Iterator[GroupValue]:
    columns = {keys_of(column.keys): at for at, column in enumerate(table.columns)}
    for row in table.rows:
        for place in places:
            more = scores.units[place.unit].reported.printed.get(place.unit, {})
            at = columns.get(keys_of({**dict(place.cell.where), place.dimension: place.group, **more}))
            if at is not None and (printed := row.cells[at]) is not None and row.measure is None:
                number = published.number(printed).value * _in_unit_of(place.cell.scale, table, column=at)[0]
                cell = Cell(number, place.cell.scale, flags=("published",), where=place.cell.where)
                yield replace(place, entrant=_entered(entrants, table, row), cell=cell)


def _entered(entrants: dict[str, Entrant], table: published.PublishedTable, row: published.PublishedRow) -> str:
    """Enters a row of a paper, or adds the table to the sources of the one that is there."""
    key = f"published {table.benchmark} {row.name}"
    known = entrants.get(key)
    if known is None:
        entrants[key] = Entrant(key, row.name, "published", published=True, source=table.source)
    elif table.source not in known.source:
        entrants[key] = replace(known, source=f"{known.source} + {table.source}")
    return key


# Tables as they are


def other_tables(scores: Scores, laid_out: Collection[str]) -> Iterator[Table]:
    """Yields the published tables of the benchmarks that the user ran, apart from those that show the user's rows.

    Args:
        scores: The user's numbers.
        laid_out: Published tables that the user's rows were put into.
    """
    benchmarks = {each.unit.benchmark for each in scores.units.values()}
    for table in published.all_tables():
        if table.benchmark in benchmarks and table.name not in laid_out:
            yield _table(table)


def _table(table: published.PublishedTable) -> Table:
    headers = list(dict.fromkeys(name for row in table.rows for name in row.keys))
    cells = table.cells()
    return Table(
        key=f"published_{table.name}",
        title=f"{table.paper.title}, Table {table.table} (published)",
        row_headers=tuple(str(name).title() for name in headers),
        columns=tuple(
            Column(f"c{at}", column.label, _scale(table.measures[column.measure]))
            for at, column in enumerate(table.columns)
        ),
        rows=tuple(
            Row(
                labels=tuple(row.keys.get(name, "") for name in headers),
                cells=tuple(_cell(next(cells), table.measures[column.measure].unit) for column in table.columns),
                published=True,
            )
            for row in table.rows
        ),
        reproduces=table.source,
        benchmark=table.benchmark,
        notes=tuple(paper_notes(table.name)),
        question="papers",
    )


def _scale(measure: published.Measure) -> Scale:
    better = None if measure.higher_is_better is None else "higher" if measure.higher_is_better else "lower"
    return Scale(measure.unit, measure.low, measure.high, better=better)  # type: ignore[arg-type]


def _cell(cell: published.PublishedCell, of_column: str) -> Cell | None:
    if cell.number is None:
        return None
    unit = _unit(cell.measure, of_column)
    scale = Scale(unit, cell.measure.low, cell.measure.high, better=None, digits=cell.number.digits)
    deviation = cell.number.deviation
    note = "" if deviation is None else f"standard deviation over runs {deviation}"
    return Cell(cell.number.value, scale, flags=("published",), note=note)
