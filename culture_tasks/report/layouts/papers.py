"""The papers' other tables of results, as they are: those in whose layout nothing of the user's was put."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from culture_tasks import published
from culture_tasks.report.layouts.grid import paper_notes
from culture_tasks.report.model import Cell, Column, Row, Scale, Table
from culture_tasks.report.papers import is_the_papers
from culture_tasks.report.units import Measured

_LAID_OUT: Mapping[str, tuple[str, ...]] = {
    "care": ("care_table_3", "care_table_6", "care_table_13"),
    "cedar": ("cedar_table_1", "cedar_table_7", "cedar_table_8"),
    "crosscult": ("crosscult_table_2", "crosscult_table_3"),
}
"""Tables that the user's rows are put into, by benchmark."""


def tables(shown: Sequence[Measured]) -> Iterator[Table]:
    """Yields the published tables of the benchmarks that the user ran, apart from those that show the user's rows."""
    benchmarks = {each.unit.benchmark for each in shown}
    laid_out = {name for each in shown for name in _laid_out(each)}
    for table in published.all_tables():
        if table.benchmark in benchmarks and table.name not in laid_out:
            yield _table(table)


def _laid_out(measured: Measured) -> tuple[str, ...]:
    benchmark = measured.unit.benchmark or ""
    return () if benchmark == "care" and not is_the_papers(measured) else _LAID_OUT.get(benchmark, ())


def _table(table: published.PublishedTable) -> Table:
    headers = list(dict.fromkeys(name for row in table.rows for name in row.keys))
    columns = tuple(
        Column(f"c{at}", column.label, _scale(table.measures[column.measure]))
        for at, column in enumerate(table.columns)
    )
    cells = table.cells()
    rows = tuple(
        Row(
            tuple(row.keys.get(name, "") for name in headers),
            tuple(_cell(next(cells)) for _ in columns),
            None,
            published=True,
        )
        for row in table.rows
    )
    return Table(
        f"published_{table.name}",
        f"{table.paper.title}, Table {table.table} (published)",
        tuple(str(name).title() for name in headers),
        columns,
        rows,
        table.source,
        table.benchmark,
        tuple(paper_notes(table.name)),
    )


def _scale(measure: published.Measure) -> Scale:
    better = None if measure.higher_is_better is None else "higher" if measure.higher_is_better else "lower"
    return Scale(measure.unit, measure.low, measure.high, better=better)  # type: ignore[arg-type]


def _cell(cell: published.Cell) -> Cell | None:
    if cell.number is None:
        return None
    scale = Scale(cell.measure.unit, cell.measure.low, cell.measure.high, better=None, digits=cell.number.digits)
    deviation = cell.number.deviation
    note = "" if deviation is None else f"standard deviation over runs {deviation}"
    return Cell(cell.number.value, scale, flags=("published",), note=note)
