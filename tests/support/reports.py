"""Reports of files, and their parts by name."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.tables import Figure
from culture_tasks.cli.main import main
from culture_tasks.report.building import Options, build
from culture_tasks.report.model import Number, Report, Table


def report_of(*paths: Path, **options: Any) -> Report:
    """Builds a report."""
    return build([str(path) for path in paths], Options(**options))


def tables_of(report: Report) -> dict[str, Table]:
    """Returns the tables by key."""
    return {table.key: table for table in report.tables}


class Row(NamedTuple):
    """A row of a table."""

    key: str
    labels: tuple[str, ...]
    cells: tuple[Number | None, ...]
    published: bool


def rows_of(table: Table) -> list[Row]:
    """Returns the rows of a table, with a cell or None for each of its columns."""
    return [
        Row(key, texts, tuple(column.cells.get(key) for column in table.columns), key in table.published)
        for key, texts in table.rows.items()
    ]


def figures_of(report: Report) -> dict[str, Figure]:
    """Returns the figures by key."""
    return {figure.key: figure for figure in report.figures}


def cells_of(report: Report, unit: str = "culturalvqa") -> dict[str, Number]:
    """Returns the scores of a unit by the label of their row."""
    return {report.entrants[key].label: cell for key, cell in report.units[unit].cells.items()}


def row_of(table: Table, row: int | str | Iterable[str] = 0) -> dict[str, Number | None]:
    """Returns a row's cells by column: the row of a number, or the one whose labels begin with these."""
    if not isinstance(row, int):
        labels = (row,) if isinstance(row, str) else tuple(row)
        row = next(index for index, texts in enumerate(table.rows.values()) if texts[: len(labels)] == labels)
    return dict(zip((column.key for column in table.columns), rows_of(table)[row].cells, strict=True))


def values_of(table: Table, row: int | str | Iterable[str] = 0) -> dict[str, float | None]:
    """Returns a row's numbers by column."""
    return {key: cell and cell.value for key, cell in row_of(table, row).items()}


def flags_of(folder: Path, unit: str = "culturalvqa", **options: Any) -> dict[str, tuple[str, ...]]:
    """Builds a report, and returns the flags of a unit's scores by the label of their row."""
    return {label: cell.flags for label, cell in cells_of(report_of(folder, **options), unit).items()}


def gate_checks(folder: Path, *options: Any) -> tuple[int, dict[str, dict[str, Any]]]:
    """Compares the models in ``a`` and ``b``, and returns the exit status and each check by name."""
    paths = [str(folder / name) for name in ("a", "b", "gate.json")]
    status = main(["compare", *paths[:2], "--fail-on-regression", "--json", paths[2], *map(str, options)])
    content = json.loads(Path(paths[2]).read_text(encoding="utf-8"))
    assert content["status"] == status
    return status, {check["name"]: check for check in content["checks"]}
