"""The benchmarks' tables with the available numbers; two numbers side by side; before and after training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnSpec,
    ContrastSpec,
    Headers,
    ScoreUnit,
    TableSpec,
    Where,
)
from culture_tasks.report.model import Column, Contrast, Gain, ModelRow, Number, Row, Table
from culture_tasks.report.numbers.comparisons import with_best
from culture_tasks.report.numbers.contrasts import run_facts
from culture_tasks.report.numbers.numbers import Numbers, Unit
from culture_tasks.report.tables.grid import Context, FilledColumn, grid
from culture_tasks.report.tables.published_rows import split_own_data
from culture_tasks.report.wording import ITEMS_NEEDED


def benchmark_tables(context: Context) -> tuple[list[Table], set[str]]:
    """Returns the tables of every benchmark that was run, and the published tables that the user's rows are in."""
    tables: list[Table] = []
    laid_out: set[str] = set()
    for layout in _layouts(context.scores):
        models: list[str | None] = [*context.entrants] if "{model}" in layout.spec.title else [None]
        layout_tables = [
            table for model in models for table in split_own_data(_fill(context, layout, model), layout.papers)
        ]
        # Rows of a paper alone are shown as printed, with its other tables.
        user_tables = [table for table in layout_tables if not all(row.published for row in table.rows)]
        laid_out.update(layout.papers if any(row.published for table in user_tables for row in table.rows) else ())
        tables += user_tables
    return tables, laid_out


class _Layout(NamedTuple):
    """A table as its benchmark describes it, with the units and the papers (none for other tasks) that it can show."""

    benchmark: str | None
    spec: TableSpec
    papers: tuple[str, ...]
    units: tuple[str, ...]


def _layouts(scores: Numbers) -> Iterator[_Layout]:
    """Yields the tables that the benchmarks describe for the units that were run."""
    for benchmark, reported, units in _benchmark_units(scores):
        available = [ScoreUnit(key, measured.tasks, measured.headline) for key, measured in units.items()]
        for spec in reported.tables(available):
            keys = tuple(dict.fromkeys(address.unit for address in _addresses(spec) if address.unit in units))
            is_as_published = all(reported.is_as_published(units[key].tasks) for key in keys)
            yield _Layout(benchmark, spec, spec.papers if is_as_published else (), keys)


def _benchmark_units(scores: Numbers) -> Iterator[tuple[str | None, BenchmarkReport, dict[str, Unit]]]:
    units: dict[str | None, dict[str, Unit]] = {}
    for key, measured in ((key, unit) for key, unit in scores.units.items() if unit.benchmark):
        units.setdefault(measured.benchmark, {})[key] = measured
    for benchmark, members in units.items():
        yield benchmark, next(iter(members.values())).reported, members


def _addresses(spec: TableSpec) -> list[At]:
    columns = [column.at for column in spec.columns if column.at is not None]
    return [*columns, *(address for line in spec.lines.values() for address in line.values())]


def _fill(context: Context, layout: _Layout, model: str | None) -> Table:
    """Returns a table; with a model, the table of that model alone."""
    spec = layout.spec
    title = _with_title(context, spec.title)
    table = Table(
        key=spec.key if model is None else f"{spec.key}_{model}",
        title=title if model is None else title.replace("{model}", context.entrants[model].label),
        row_headers=(*spec.headers, *([spec.line_header] if spec.lines else [])),
        reproduces=spec.source,
        benchmark=layout.benchmark,
        notes=spec.notes,
        question=spec.question,
    )

    def texts(entrant: str) -> tuple[str, ...]:
        return _row_texts(context, layout.units, entrant, spec.headers)

    if not spec.lines:
        columns = [
            FilledColumn(
                _column(context, layout, column),
                with_best(context.scores, column.at, context.rankable),
                column.printed,
            )
            for column in spec.columns
            if column.at is not None
        ]
        return grid(context, table, columns, labels=texts, papers=layout.papers)
    rows = {
        f"{entrant} {label}": (entrant, label, addresses)
        for entrant in ([model] if model is not None else context.entrants)
        for label, addresses in spec.lines.items()
    }
    columns = []
    for column in spec.columns:
        cells = {
            row: cell
            for row, (entrant, _, line) in rows.items()
            if (at := line.get(column.key)) is not None
            and (cell := context.scores.cells(at.unit, at.statistic, at.where).get(entrant)) is not None
        }
        columns.append(FilledColumn(_column(context, layout, column), cells))

    def labels(row: str) -> tuple[str, ...]:
        return *texts(rows[row][0]), rows[row][1]

    return grid(context, table, columns, rows=rows, labels=labels, owner=lambda row: rows[row][0])


def _column(context: Context, layout: _Layout, column: ColumnSpec) -> Column:
    """Returns a column on the scale of its numbers; where none of them was run, on that of the table's others."""
    lines = layout.spec.lines.values()
    addresses = [column.at] if column.at is not None else [line[column.key] for line in lines if column.key in line]
    places = (*addresses, *_addresses(layout.spec))
    scale = next(filter(None, (context.scores.scale(at.unit, at.statistic) for at in places)), Scale(""))
    label, header = _with_title(context, column.label), _with_title(context, column.over)
    return Column(column.key, label, scale, over=header, sums_up=column.sums_up)


def _with_title(context: Context, text: str) -> str:
    """Returns a title or header with the title of a unit in place of its key, where it begins with one."""
    key, colon, end = text.partition(": ")
    return f"{context.scores.units[key].title}{colon}{end}" if key in context.scores.units else text


def _row_texts(context: Context, units: Sequence[str], entrant: str, headers: Headers) -> tuple[str, ...]:
    """Returns the texts before a row's numbers, by its runs of the first of some units that it has."""
    cells = (context.scores.units[unit].cells.get(entrant) for unit in units)
    keys = next((cell.runs for cell in cells if cell is not None), ())
    facts = run_facts(entrant, context.entrants[entrant].label, [context.runs[key] for key in keys])
    return tuple(text(facts) for text in headers.values())


# Two numbers side by side, with their difference


def contrast_tables(context: Context, contrasts: Sequence[Contrast]) -> Iterator[Table]:
    """Yields the tables of the numbers that papers set side by side, where there are some."""
    for benchmark, reported, units in _benchmark_units(context.scores):
        for spec in reported.contrasts:
            for statistic, value in spec.values.items():
                members = [
                    contrast
                    for contrast in contrasts
                    if contrast.unit in units and (contrast.kind, contrast.statistic) == (spec.kind, statistic)
                ]
                note = (
                    f"{spec.parts[0]}: {spec.words[0]}. {spec.parts[1]}: {spec.words[1]}. Difference: the second less "
                    "the first, on the items that both have a score for, with a paired interval."
                )
                table = Table(
                    key=spec.key_of(statistic),
                    title=f"{spec.title}: {value}",
                    row_headers=(*spec.headers, *([spec.rows[1]] if spec.rows else [])),
                    reproduces=spec.source,
                    benchmark=benchmark,
                    notes=(note,),
                    question="changes",
                )
                if members:
                    yield _contrast_table(context, spec, reported, table, members)


def _contrast_table(
    context: Context, spec: ContrastSpec, reported: BenchmarkReport, table: Table, contrasts: Sequence[Contrast]
) -> Table:
    field = spec.rows[0] if spec.rows else ""
    rows: dict[str, Contrast] = {}
    groups: dict[Where, dict[str, Contrast]] = {}
    for contrast in contrasts:
        row = f"{contrast.entrant} {dict(contrast.second.where).get(field, '')}"
        where = tuple(pair for pair in contrast.second.where if pair[0] not in spec.outside)
        rows[row] = groups.setdefault(where, {})[row] = contrast

    def labels(row: str) -> tuple[str, ...]:
        contrast = rows[row]
        texts = _row_texts(context, [contrast.unit], contrast.entrant, spec.headers)
        return (*texts, *([reported.field_named(field).name_of(dict(contrast.second.where)[field])] if field else []))

    order = [(), *(((name, group),) for name, named in reported.groups.items() for group in named)]
    sides = {"first": spec.parts[0], "second": spec.parts[1], "difference": "Difference"}
    columns: list[FilledColumn] = []
    for where in sorted(groups, key=lambda pairs: order.index(pairs) if pairs in order else len(order)):
        key = (("", "all"), *spec.fixed, *where)[-1][1]
        header = " · ".join(reported.field_named(name).name_of(group) for name, group in where) or "All"
        for side, label in sides.items():
            cells: dict[str, Number] = {row: getattr(contrast, side) for row, contrast in groups[where].items()}
            scale = next(iter(cells.values())).scale
            columns.append(FilledColumn(Column(f"{key}_{side}", label, scale, over=header), cells))
    return grid(context, table, columns, rows=rows, labels=labels, owner=lambda row: rows[row].entrant)


# Base and trained models side by side

OVER_ALL = "before_after"
"""Key of the table of gains from training."""

_ABOUT_GAINS = (
    "Difference: trained minus base, on the items that both have a score for, with the interval of its paired test; "
    "bold where the two are significantly different. Test and interval are adjusted over a model's columns (Holm), so "
    "with many columns the intervals are wide. Gain: how much better the trained model's score is, in "
    "percent of the base's. Items needed: how many common items would make this difference significant 4 times "
    "out of 5, after the same adjustment."
)


def before_after(entrants: Mapping[str, ModelRow], units: Mapping[str, Unit], gains: Sequence[Gain]) -> list[Table]:
    """Returns the table of scores before and after training; none without a trained model."""
    changed = {gain.unit for gain in gains}
    columns = [unit for unit in units.values() if unit.key in changed]
    has_both = len({unit.benchmark is None for unit in columns}) > 1
    headers = {True: "Other tasks", False: "Benchmarks"} if has_both else {True: "", False: ""}
    rows = [
        Row((entrants[row].label, label), tuple(cells.get(unit.key) for unit in columns), row)
        for row, label, cells in _gain_rows(units, gains)
    ]
    table = Table(
        OVER_ALL,
        "Before and after training",
        row_headers=("Model", "Number"),
        columns=tuple(
            Column(unit.key, unit.title, unit.scale, over=headers[unit.benchmark is None]) for unit in columns
        ),
        rows=tuple(rows),
        notes=("; ".join(f"{unit.title}: {unit.measure}" for unit in columns) + ".", _ABOUT_GAINS),
        question="changes",
    )
    return [table] if rows else []


def _gain_rows(units: Mapping[str, Unit], gains: Sequence[Gain]) -> Iterator[tuple[str, str, dict[str, Number]]]:
    """Yields the rows of each base once, and below them the rows of the models that were trained from it."""
    by_base: dict[str, dict[str, list[Gain]]] = {}
    for gain in gains:
        by_base.setdefault(gain.base, {}).setdefault(gain.trained, []).append(gain)

    def scores(row: str, row_gains: Iterable[Gain]) -> dict[str, Number]:
        # a place among all models would be misread as one among these two
        cells = {gain.unit: units[gain.unit].cells[row] for gain in row_gains}
        return {unit: replace(cell, rank=None, best=False) for unit, cell in cells.items()}

    for base, by_trained in by_base.items():
        yield base, "Base", scores(base, (gain for row_gains in by_trained.values() for gain in row_gains))
        for trained, row_gains in by_trained.items():
            yield trained, "Trained", scores(trained, row_gains)
            yield trained, "Gain", {gain.unit: gain.percent for gain in row_gains}
            yield trained, "Difference", {gain.unit: gain.difference for gain in row_gains}
            needed = {gain.unit: gain.test.items_needed for gain in row_gains if gain.test is not None}
            if any(needed.values()):
                counts = {unit: Number(float(count), ITEMS_NEEDED) for unit, count in needed.items() if count}
                yield trained, "Items needed", counts
