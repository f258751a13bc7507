"""Papers' numbers: their rows below the user's, and their other tables as they are.

They are marked as published and have no intervals. They are added after all ranks, tests and means, and so take no part
in them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

from culture_tasks import published
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.published import Measure, PublishedRow, PublishedTable
from culture_tasks.report.model import Column, Number, Row, Table
from culture_tasks.report.numbers.numbers import Numbers
from culture_tasks.report.wording import PERCENT_SIGN

_BETTER: Mapping[bool | None, Literal["higher", "lower"] | None] = {True: "higher", False: "lower", None: None}
Keys = frozenset[tuple[str, str]]
"""The keys of a published column."""


def keys_of(keys: Mapping[Any, str]) -> Keys:
    """Returns keys in a form that can be compared."""
    return frozenset((str(name), text) for name, text in keys.items())


def with_papers(table: Table, keys: Sequence[Keys], papers: Sequence[str]) -> Table:
    """Returns a table with rows of published tables, and notes on them, below its rows.

    No paper has a column without keys.
    """
    below = {paper: rows for paper in papers if (rows := [*_rows_below(table, keys, published.load(paper))])}
    notes = [note for paper in below for note in paper_notes(paper)]
    return replace(table, rows=(*table.rows, *chain(*below.values())), notes=(*table.notes, *notes))


def _rows_below(table: Table, keys: Sequence[Keys], paper: PublishedTable) -> Iterator[Row]:
    places = _places(paper)
    judge = f"published ({paper.judge})" if paper.judge else "published"
    for row in paper.rows:
        cells = tuple(
            _cell_below(paper, row, places[column_keys], column.scale) if column_keys in places else None
            for column_keys, column in zip(keys, table.columns, strict=True)
        )
        first = next(iter(row.keys.values()))
        labels = {1: (f"{row.name}, {judge}",), 2: (row.name, judge)}
        if any(cells):
            parts = (first, row.name.removeprefix(first).strip(), judge)
            yield Row(labels.get(len(table.row_headers), parts), cells, published=True)


def _places(paper: PublishedTable) -> dict[Keys, int]:
    return {keys_of(column.keys): index for index, column in enumerate(paper.columns)}


def _cell_below(paper: PublishedTable, row: PublishedRow, index: int, scale: Scale) -> Number | None:
    """Returns a published number on the scale of the user's column, or on that of its row where it has another one."""
    if (printed := row.cells[index]) is None:
        return None
    number = published.number(printed)
    if row.measure is not None:
        measure = paper.measures[row.measure]
        row_scale = Scale(_unit(measure, scale.unit), digits=number.digits)
        return Number(number.value, row_scale, flags=("published",), note=measure.name)
    places = _point_shift(paper, index, scale)
    column_scale = replace(scale, digits=max(0, number.digits - places))
    return Number(number.value * 10.0**places, column_scale, flags=("published",))


def _point_shift(paper: PublishedTable, index: int, scale: Scale) -> int:
    """Returns how far a number's point moves where it is a percent and the user's a share, or the other way round."""
    units = (paper.measures[paper.columns[index].measure].unit, scale.unit)
    return {("percent", "share"): -2, ("fraction", "percent"): 2}.get(units, 0)


def _unit(measure: Measure, of_column: str) -> str:
    """Returns the unit of a cell: a percent among other numbers is shown with its sign."""
    return PERCENT_SIGN if measure.unit == "percent" != of_column else measure.unit


def paper_notes(paper: str) -> Iterator[str]:
    """Yields the notes of a published table: its source, its remarks, and averages that don't follow from its cells."""
    table = published.load(paper)
    yield f"Published rows: {table.source}. They were not judged by your judge."
    yield from table.notes
    if table.missing is not None:
        yield f"{table.missing.mark} in a published row: {table.missing.meaning}"
    if table.contradictions:
        yield f"Printed aggregates that don't follow from the printed cells: {'; '.join(table.contradictions)}"


def split_own_data(table: Table, papers: Sequence[str]) -> Iterator[Table]:
    """Yields a table; where it has rows of these papers, numbers on own data get a second table."""
    paper_rows = tuple(row for row in table.rows if row.published)
    own_rows, release_rows = (tuple(_on_data(table.rows, own_data=is_own)) for is_own in (True, False))
    if not own_rows or not paper_rows:
        yield table
        return
    if release_rows:
        yield replace(table, rows=(*release_rows, *paper_rows))
        table = replace(table, key=f"{table.key}_own_data", title=f"{table.title}, own data")
    note_texts = {note for paper in papers for note in paper_notes(paper)}
    yield replace(table, rows=own_rows, notes=tuple(note for note in table.notes if note not in note_texts))


def _on_data(rows: Sequence[Row], *, own_data: bool) -> Iterator[Row]:
    """Yields the user's rows with their numbers on own data alone, or without them."""
    for row in rows:
        cells = tuple(cell if cell and ("own_data" in cell.flags) == own_data else None for cell in row.cells)
        if any(cells) and not row.published:
            yield replace(row, cells=cells)


def other_tables(scores: Numbers, laid_out: Collection[str]) -> Iterator[Table]:
    """Yields the published tables of the benchmarks that were run, as printed, if they have no rows of the user."""
    benchmarks = {measured.benchmark for measured in scores.units.values()}
    for table in published.all_tables():
        if table.benchmark in benchmarks and table.name not in laid_out:
            yield _printed_table(table)


def _printed_table(table: PublishedTable) -> Table:
    headers = list(dict.fromkeys(name for row in table.rows for name in row.keys))
    measures = [table.measures[column.measure] for column in table.columns]
    scales = [
        Scale(measure.unit, measure.low, measure.high, better=_BETTER[measure.higher_is_better]) for measure in measures
    ]

    def cell(row: PublishedRow, index: int, printed: str) -> Number:
        number = published.number(printed)
        measure = measures[index] if row.measure is None else table.measures[row.measure]
        unit = _unit(measure, measures[index].unit)
        scale = Scale(unit, measure.low, measure.high, better=None, digits=number.digits)
        note = "" if number.deviation is None else f"standard deviation over runs {number.deviation}"
        return Number(number.value, scale, flags=("published",), note=note)

    rows: list[Row] = []
    for row in table.rows:
        cells = tuple(None if printed is None else cell(row, index, printed) for index, printed in enumerate(row.cells))
        rows.append(Row(tuple(row.keys.get(name, "") for name in headers), cells, published=True))
    return Table(
        key=f"published_{table.name}",
        title=f"{table.paper.title}, {table.place} (published)",
        row_headers=tuple(str(name).title() for name in headers),
        columns=tuple(Column(f"c{index}", table.columns[index].label, scale) for index, scale in enumerate(scales)),
        rows=tuple(rows),
        reproduces=table.source,
        benchmark=table.benchmark,
        notes=tuple(paper_notes(table.name)),
        question="papers",
    )
