"""The benchmarks' tables with the available numbers; two numbers side by side; before and after training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from culture_tasks.report.model import Column, Contrast, Gain, Number, Row, Table, Trial
from culture_tasks.report.numbers.comparisons import with_best
from culture_tasks.report.numbers.contrasts import run_facts
from culture_tasks.report.numbers.gains import OVER_ALL, Training
from culture_tasks.report.numbers.numbers import Numbers, Unit
from culture_tasks.report.tables.grid import Context, FilledColumn, grid
from culture_tasks.report.tables.published_rows import keys_of, split_own_data, with_papers
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


# Base and trained models side by side: over all benchmarks, and in the layout of each benchmark's tables

_ABOUT_GAINS = (
    "Difference: trained minus base, on the items that both have a score for, with the interval of its paired test; "
    "bold where the two are significantly different. Test and interval are adjusted over a model's columns in this "
    "table (Holm), so with many columns the intervals are wide. Gain: how much better the trained model's score is, in "
    "percent of the base's. Items needed: how many common items would make this difference significant 4 times "
    "out of 5, after the same adjustment."
)


def before_after(context: Context, training: Training) -> tuple[list[Table], list[Gain]]:
    """Returns the tables of numbers before and after training, the one of all benchmarks first, and their gains.

    A benchmark's table shows scores and derived statistics; the costs of a run have nothing to do with training.
    """
    if not training.lineages:
        return [], []
    pairs = [_gains_overall(context, training)]
    pairs += [_gains_in_layout(context, training, layout) for layout in _layouts(context.scores)]
    return [table for table, gains in pairs if gains], [gain for _, gains in pairs for gain in gains]


def _gains_overall(context: Context, training: Training) -> tuple[Table, list[Gain]]:
    units = [unit for unit in training.measured.values() if unit.headline]
    gains = training.gains(OVER_ALL, [At(unit.key) for unit in units])
    changed = {gain.unit for gain in gains}
    columns = [unit for unit in units if unit.key in changed]
    has_both = len({unit.benchmark is None for unit in columns}) > 1
    headers = {True: "Other tasks", False: "Benchmarks"} if has_both else {True: "", False: ""}
    metrics = "; ".join(f"{unit.title}: {unit.measure}" for unit in columns)
    table = Table(
        OVER_ALL,
        "Before and after training",
        row_headers=("Model", "Number"),
        columns=tuple(
            Column(unit.key, unit.title, unit.scale, over=headers[unit.benchmark is None]) for unit in columns
        ),
        rows=tuple(_lines(gains, [At(unit.key) for unit in columns])),
        notes=(f"{metrics}.", _ABOUT_GAINS, *_repeat_notes(context, gains)),
        question="changes",
    )
    return table, gains


def _gains_in_layout(context: Context, training: Training, layout: _Layout) -> tuple[Table, list[Gain]]:
    """Returns a benchmark's table with the numbers before and after training, and their differences, as rows."""
    spec, key = layout.spec, f"{layout.spec.key}_{OVER_ALL}"
    costs = {(unit, cost.name) for unit in layout.units for cost in context.scores.units[unit].reported.costs}
    columns = {
        column.at: column
        for column in spec.columns
        if column.at is not None and (column.at.unit, column.at.statistic) not in costs
    }
    gains = training.gains(key, list(columns))
    headers = {"Judge": spec.headers["Judge"]} if "Judge" in spec.headers else {}
    is_own = any("own_data" in trial.cell.flags for gain in gains for trial in (gain.base, gain.trained))
    rows = [
        replace(row, labels=(*row.labels, *_row_texts(context, layout.units, row.entrant or "", headers)))
        for row in _lines(gains, list(columns))
    ]
    table = Table(
        key,
        f"{_with_title(context, spec.title)}, before and after training",
        row_headers=("Model", "Number", *headers),
        columns=tuple(_column(context, layout, column) for column in columns.values()),
        rows=tuple(rows),
        reproduces=spec.source,
        benchmark=layout.benchmark,
        notes=(*spec.notes, _ABOUT_GAINS, *_repeat_notes(context, gains)),
        question="changes",
    )
    papers = layout.papers if context.published and not is_own else ()
    return with_papers(table, [keys_of(column.printed) for column in columns.values()], papers), gains


def _lines(gains: Sequence[Gain], columns: Sequence[At]) -> Iterator[Row]:
    """Yields the rows of each base once, and below them the rows of the models that were trained from it."""
    models: dict[str, dict[str, dict[At, Gain]]] = {}
    for gain in gains:
        by_column = models.setdefault(gain.base.label, {}).setdefault(gain.trained.label, {})
        by_column[At(gain.unit, gain.statistic, gain.where)] = gain

    def line(label: str, trial: Trial, cells: Mapping[At, Number | None]) -> Row:
        return Row((trial.label, label), tuple(cells.get(column) for column in columns), trial.entrants[0])

    def score_lines(label: str, trials: Mapping[At, Trial]) -> Iterator[Row]:
        first = next(iter(trials.values()))
        # a place among all models would be misread as one among these two
        scores = {column: replace(trial.cell, rank=None, best=False) for column, trial in trials.items()}
        yield line(label, first, scores)
        if any(trial.deviation is not None for trial in trials.values()):
            deviations = {column: trial.deviation for column, trial in trials.items()}
            yield line(f"{label}, SD of runs", first, deviations)

    for trained in models.values():
        bases = {column: gain.base for members in reversed(trained.values()) for column, gain in members.items()}
        yield from score_lines("Base", bases)
        for by_column in trained.values():
            yield from score_lines("Trained", {column: gain.trained for column, gain in by_column.items()})
            first = next(iter(by_column.values())).trained
            yield line("Gain", first, {column: gain.percent for column, gain in by_column.items()})
            yield line("Difference", first, {column: gain.difference for column, gain in by_column.items()})
            counts = {
                column: Number(float(gain.test.items_needed), ITEMS_NEEDED)
                for column, gain in by_column.items()
                if gain.test is not None and gain.test.items_needed is not None
            }
            if any(cell.value for cell in counts.values()):
                yield line("Items needed", first, counts)


def _repeat_notes(context: Context, gains: Sequence[Gain]) -> Iterator[str]:
    trials = [trial for gain in gains for trial in (gain.base, gain.trained) if trial.deviation is not None]
    most = {trial.label: trial for trial in sorted(trials, key=lambda trial: len(trial.entrants))}
    for label, trial in most.items():
        runs = f"{0 if trial.deviation is None else trial.deviation.n} repeats"
        if len(trial.entrants) > 1:
            names = ", ".join(context.entrants[key].label for key in trial.entrants)
            runs = f"{len(trial.entrants)} runs ({names})"
        yield (
            f"{label}: the mean of {runs}, item by item; SD of runs is the sample standard deviation of their own "
            "scores."
        )
