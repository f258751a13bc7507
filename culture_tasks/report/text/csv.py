"""The report as CSV: a file for each table, and one with the numbers of all groups in long form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from culture_tasks.report.model import Cell, Report
from culture_tasks.report.text.latex import file_name
from culture_tasks.report.wording import headers
from culture_tasks.text_tables import write_csv as write_file

Value = str | float | None

_PARTS = ("", "low", "high", "n", "coverage", "rank", "last rank", "flags")


def write_csv(report: Report, folder: Path) -> list[Path]:
    """Writes ``csv/<table>.csv`` and ``csv/groups.csv``, and returns their paths."""
    target = folder / "csv"
    target.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for table in report.tables:
        paths.append(target / f"{file_name(table.key)}.csv")
        names, texts = headers(table), len(table.row_headers)
        header = [*names[:texts], *(f"{name} {part}".strip() for name in names[texts:] for part in _PARTS)]
        rows = ([*row.labels, *(value for cell in row.cells for value in _values(cell))] for row in table.rows)
        write_file(paths[-1], header, rows)
    paths.append(target / "groups.csv")
    write_file(paths[-1], ["unit", "model", "statistic", "dimension", "group", "where", *_NUMBERS], _groups(report))
    return paths


_NUMBERS = ("value", "low", "high", "n", "coverage", "unit of measure", "flags")


def _values(cell: Cell | None) -> list[Value]:
    if cell is None:
        return [None] * len(_PARTS)
    rank = cell.rank
    places = (None, None) if rank is None else (rank.first, rank.last)
    return [cell.value, cell.low, cell.high, cell.n, cell.coverage, *places, " ".join(cell.flags)]


def _groups(report: Report) -> Iterator[list[Value]]:
    for each in report.groups:
        cell = each.cell
        where = "; ".join(f"{name}={value}" for name, value in cell.where)
        numbers = [cell.value, cell.low, cell.high, cell.n, cell.coverage, cell.scale.unit, " ".join(cell.flags)]
        label = report.entrants[each.entrant].label
        yield [each.unit, label, each.statistic, each.dimension, each.group, where, *numbers]
