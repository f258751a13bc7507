"""Papers' rows below the user's.

They are marked as published and have no intervals. They are added after all ranks, tests and means, and so take no part
in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from culture_tasks import published
from culture_tasks.benchmarks.interface import Scale
from culture_tasks.published import PublishedRow, PublishedTable
from culture_tasks.report.model import Number, Table
from culture_tasks.report.wording import PERCENT_SIGN


def with_papers(table: Table) -> Table:
    """Returns a table with the rows of the published tables that it names, and notes on them, below its rows."""
    rows, cells, notes = dict(table.rows), [dict(column.cells) for column in table.columns], [*table.notes]
    for paper in map(published.load, table.papers):
        places = {frozenset(column.keys.items()): index for index, column in enumerate(paper.columns)}
        indices = [places.get(frozenset(column.printed.items())) for column in table.columns]
        before = len(rows)
        for number, row in enumerate(paper.rows):
            key, printed = f"published {paper.name} {number}", False
            for index, column, column_cells in zip(indices, table.columns, cells, strict=True):
                if index is not None and row.cells[index] is not None:
                    column_cells[key], printed = _cell(paper, row, index, column.scale), True
            if printed:
                rows[key] = _texts(paper, row, len(table.row_headers))
        notes += _notes(paper) if len(rows) > before else ()
    return replace(
        table,
        rows=rows,
        columns=tuple(replace(column, cells=own) for column, own in zip(table.columns, cells, strict=True)),
        published=frozenset(rows.keys() - table.rows.keys()),
        notes=tuple(notes),
    )


def _texts(paper: PublishedTable, row: PublishedRow, count: int) -> tuple[str, ...]:
    judge = f"published ({paper.judge})" if paper.judge else "published"
    first = next(iter(row.keys.values()))
    rest = row.name.removeprefix(first).strip()
    return {1: (f"{row.name}, {judge}",), 2: (row.name, judge)}.get(count, (first, rest, judge))


def _cell(paper: PublishedTable, row: PublishedRow, index: int, scale: Scale) -> Number:
    """Returns a published number on the scale of the user's column, or on that of its row where it has another one."""
    number = published.number(row.cells[index] or "")
    if row.measure is not None:  # a percent among other numbers is shown with its sign
        measure = paper.measures[row.measure]
        unit = PERCENT_SIGN if measure.unit == "percent" != scale.unit else measure.unit
        return Number(number.value, Scale(unit, digits=number.digits), note=measure.name)
    units = (paper.measures[paper.columns[index].measure].unit, scale.unit)
    places = {("percent", "share"): -2, ("fraction", "percent"): 2}.get(units, 0)  # how far the point moves
    scale = replace(scale, digits=max(0, number.digits - places))
    return Number(number.value * 10.0**places, scale)


def _notes(paper: PublishedTable) -> Iterator[str]:
    """Yields the notes of a published table: its source, its remarks, and averages that don't follow from its cells."""
    yield f"Published rows: {paper.source}. They were not judged by your judge."
    yield from paper.notes
    if paper.missing is not None:
        yield f"{paper.missing.mark} in a published row: {paper.missing.meaning}"
    if paper.contradictions:
        yield f"Printed aggregates that don't follow from the printed cells: {'; '.join(paper.contradictions)}"
