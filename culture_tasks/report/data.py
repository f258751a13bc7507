"""The report as data: CSV, one file for each table and one for the numbers of all groups; JSON without the samples."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.registry import benchmarks, title_of
from culture_tasks.report.model import Number, Numbers, Report
from culture_tasks.report.wording import file_name
from culture_tasks.results.runs import Run
from culture_tasks.text import escaped
from culture_tasks.text_tables import write_csv as write_file

FORMAT = 2
"""Version of the layout of ``report.json``."""

_LEFT_OUT = frozenset(("samples", "times", "figures", "printed", "papers"))

_OF_RUN = (
    *("key", "model", "model_args", "harness", "task", "benchmark", "settings", "date", "items", "scored"),
    *("problems", "spent", "measured", "own_data", "trained_on"),
)

Value = str | float | None

_PARTS = ("", "low", "high", "n", "coverage", "rank", "last rank", "flags")
_GROUP_HEADER = (
    *("unit", "model", "statistic", "dimension", "group", "where"),
    *("value", "low", "high", "n", "coverage", "unit of measure", "flags"),
)


def write_csv(report: Report, folder: Path) -> list[Path]:
    """Writes ``csv/<table>.csv`` and ``csv/groups.csv``, and returns their paths.

    Tasks and benchmarks have their keys there, as in options.
    """
    target = folder / "csv"
    target.mkdir(parents=True, exist_ok=True)
    keys = {benchmark.title: name for name, benchmark in benchmarks().items()}
    keys |= {title_of(run.task): run.task for run in report.runs.values()}
    keys |= {unit.title: unit.key for unit in report.units.values()}
    paths: list[Path] = []
    for table in report.tables:
        header = list(table.row_headers)
        for column in table.columns:
            unit = report.units.get(column.key)
            label = column.label.replace(unit.title, unit.key, 1) if unit else column.label
            name = f"{keys.get(column.over, column.over)}: {label}" if column.over else label
            header += [f"{name} {part}".strip() for part in _PARTS]
        rows = (
            [
                *(
                    keys.get(text, text) if name in ("Benchmark", "Task") else text
                    for name, text in zip(table.row_headers, texts, strict=True)
                ),
                *(value for column in table.columns for value in _values(column.cells.get(row))),
            ]
            for row, texts in table.rows.items()
        )
        paths.append(target / f"{file_name(table.key)}.csv")
        write_file(paths[-1], header, rows)
    paths.append(target / "groups.csv")
    write_file(paths[-1], _GROUP_HEADER, _groups(report))
    return paths


def _values(cell: Number | None) -> list[Value]:
    if cell is None:
        return [None] * len(_PARTS)
    places = (None, None) if cell.rank is None else (cell.rank.first, cell.rank.last)
    return [cell.value, cell.low, cell.high, cell.n, cell.coverage, *places, " ".join(cell.flags)]


def _groups(report: Report) -> Iterator[list[Value]]:
    for cell in report.groups:
        label, samples = report.entrants[cell.row].label, cell.where if cell.samples is None else cell.samples
        where = "; ".join(f"{field}={group}" for field, group in samples)
        numbers = [cell.value, cell.low, cell.high, cell.n, cell.coverage, cell.scale.unit, " ".join(cell.flags)]
        yield [cell.unit, label, cell.statistic, cell.dimension, cell.group, where, *numbers]


def write_json(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.json``, a line for every entry of a list, and returns its path; a missing number is null."""
    path = folder / "report.json"
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f'{{\n"format": {FORMAT}')
        for name in (*_names(Report), "units"):
            file.write(escaped(f',\n"{name}": {_in_lines(getattr(report, name))}'))
        file.write("\n}\n")
    return [path]


def _in_lines(value: Any) -> str:
    if isinstance(value, Mapping):
        (start, end), entries = "{}", [f"{_encode(str(key))}: {_encode(entry)}" for key, entry in value.items()]
    elif isinstance(value, tuple | Numbers):
        (start, end), entries = "[]", list(map(_encode, value))
    else:
        return _encode(value)
    return start + ",".join(f"\n {entry}" for entry in entries) + ("\n" if entries else "") + end


def _encode(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Returns an object as JSON has it; all numbers are in dataclasses."""
    if isinstance(value, Run):
        outcomes = tuple(sorted(value.samples.outcomes.items())) if value.samples else ()
        samples_file = str(value.samples_file) if value.samples else None
        files = {"results_file": str(value.path), "samples_file": samples_file, "outcomes": outcomes}
        return {name: getattr(value, name) for name in _OF_RUN} | files
    if not is_dataclass(value):
        return sorted(value) if isinstance(value, frozenset) else dict(value)
    kind: Any = type(value)
    values = {name: getattr(value, name) for name in _names(kind)}
    return {
        name: None if type(entry) is float and not math.isfinite(entry) else entry for name, entry in values.items()
    }


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.repr and field.name not in _LEFT_OUT)
