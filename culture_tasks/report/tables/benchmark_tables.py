"""The benchmarks' own tables and figures; two numbers side by side; before and after training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import BenchmarkReport, ContrastSpec, ScoreUnit, Where
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Figure, Panel
from culture_tasks.report.model import Column, Contrast, Gain, Number, Table, Unit
from culture_tasks.report.numbers.comparisons import with_best
from culture_tasks.report.numbers.contrasts import run_facts
from culture_tasks.report.tables.layout import Context, filled
from culture_tasks.report.tables.published_rows import with_papers
from culture_tasks.report.wording import ITEMS_NEEDED


def benchmark_parts(context: Context, contrasts: Sequence[Contrast]) -> tuple[list[Table], list[Figure]]:
    """Returns the tables and the figures of every benchmark that was run, with those of its contrasts."""
    tables: list[Table] = []
    figures: list[Figure] = []
    contrast_parts: list[tuple[Table, Figure]] = []
    units: dict[str, list[Unit]] = {}
    for unit in context.scores.units.values():
        if unit.benchmark is not None:
            units.setdefault(unit.benchmark, []).append(unit)
    for benchmark, members in units.items():
        reported = members[0].reported
        numbers = _numbers(context, benchmark, reported, members)
        own_tables = [_with_note_on_draws(table) for table in reported.tables(numbers) if table.rows]
        tables += map(with_papers, own_tables) if context.published else own_tables
        figures += reported.figures(numbers)
        keys = {unit.key for unit in members}
        own = [contrast for contrast in contrasts if contrast.unit in keys]
        contrast_parts += [part for spec in reported.contrasts for part in _contrasts(numbers, reported, spec, own)]
    contrast_tables, contrast_figures = zip(*contrast_parts, strict=True) if contrast_parts else ((), ())
    return [*tables, *contrast_tables], [*figures, *contrast_figures]


def _with_note_on_draws(table: Table) -> Table:
    """Says of a draw of the questions what the intervals are for, which isn't the same for groups."""
    cells = [cell for column in table.columns for cell in column.cells.values() if "subset" in cell.flags]
    note = (
        "Of a draw of the questions: the interval of a whole task's score is for all of its questions, as in the table "
        "of scores; that of a group, such as the average of a language, is the ordinary one, for questions like these."
    )
    return replace(table, notes=(*table.notes, note)) if any(cell.where for cell in cells) else table


def _numbers(context: Context, benchmark: str, reported: BenchmarkReport, members: Sequence[Unit]) -> BenchmarkNumbers:
    units = (ScoreUnit(measured.key, measured.tasks, measured.headline, measured.title) for measured in members)
    return BenchmarkNumbers(
        units={unit.key: unit for unit in units},
        fields=reported.groups,
        rows=list(context.entrants),
        cells=cache(lambda *address: with_best(context.scores, *address, rankable=context.rankable)),
        scale=lambda *address: context.scores.scale(*address) or Scale(""),
        facts=lambda row, runs: run_facts(
            row, context.entrants[row].label, [context.runs[key] for key in dict.fromkeys(runs)]
        ),
        headers=reported.headers,
        source=reported.source,
        benchmark=benchmark,
    )


# Two numbers side by side, with their difference


def _contrasts(
    numbers: BenchmarkNumbers, reported: BenchmarkReport, spec: ContrastSpec, contrasts: Sequence[Contrast]
) -> Iterator[tuple[Table, Figure]]:
    """Yields the table and the figure of the numbers that a paper sets side by side, by statistic."""
    field, header = spec.rows or ("", "")
    for statistic, value in spec.values.items():
        rows: dict[str, tuple[str, ...]] = {}
        names: dict[str, str] = {}
        groups: dict[Where, dict[str, Contrast]] = {}
        for contrast in contrasts:
            if (contrast.kind, contrast.statistic) == (spec.kind, statistic):
                group = dict(contrast.second.where).get(field, "")
                facts, row = numbers.facts(contrast.entrant, contrast.second.runs), f"{contrast.entrant} {group}"
                labels = [reported.field_named(field).name_of(group)] if field else []
                rows[row] = (*(text(facts) for text in numbers.headers.values()), *labels)
                names[row] = " · ".join((facts.label, *labels))
                where = tuple(pair for pair in contrast.second.where if pair[0] not in spec.outside)
                groups.setdefault(where, {})[row] = contrast
        if rows:
            columns = _contrast_columns(reported, spec, groups)
            key, source, note = spec.key_of(statistic), spec.source or numbers.source, _contrast_note(spec)
            more: Any = {"source": source, "question": "changes"}
            headers, title = (*numbers.headers, *([header] if header else [])), f"{spec.title}: {value}"
            table = Table(key, title, headers, columns, rows, benchmark=numbers.benchmark, notes=(note,), **more)
            panels = {name: _sides(columns, row, spec) for row, name in names.items()}
            more |= {"groups": spec.groups, "series": "side", "notes": ("The table has the paired differences",)}
            yield table, Figure(key, spec.title, panels, value, **more)


def _contrast_columns(
    reported: BenchmarkReport, spec: ContrastSpec, groups: Mapping[Where, Mapping[str, Contrast]]
) -> tuple[Column, ...]:
    """Returns three columns for each group: both numbers, and their difference."""
    order = [(), *(((name, group),) for name, named in reported.groups.items() for group in named)]
    columns: list[Column] = []
    for where in dict.fromkeys((*(where for where in order if where in groups), *groups)):
        key = (("", "all"), *spec.fixed, *where)[-1][1]
        over = " · ".join(reported.field_named(name).name_of(group) for name, group in where) or "All"
        for side, label in zip(("first", "second", "difference"), (*spec.parts, "Difference"), strict=True):
            cells = {row: replace(getattr(one, side), rank=None, best=False) for row, one in groups[where].items()}
            scale = next(iter(cells.values())).scale
            columns.append(Column(f"{key}_{side}", label, scale, cells, over, sums_up=not where))
    return tuple(columns)


def _contrast_note(spec: ContrastSpec) -> str:
    return (
        f"{spec.parts[0]}: {spec.words[0]}. {spec.parts[1]}: {spec.words[1]}. Difference: the second less "
        "the first, on the items that both have a score for, with a paired interval."
    )


def _sides(columns: Sequence[Column], row: str, spec: ContrastSpec) -> Panel:
    shown = [column for column in columns if row in column.cells and not column.sums_up]
    return {part: {one.over: one.cells[row] for one in shown if one.label == part} for part in spec.parts}


# Base and trained models side by side, over all benchmarks

_ABOUT_GAINS = (
    "Difference: trained minus base, on the items that both have a score for, with the interval of its paired test; "
    "bold where the two are significantly different. Test and interval are adjusted over a model's columns (Holm), so "
    "with many columns the intervals are wide. Gain: how much better the trained model's score is, in percent of the "
    "base's. Items needed: how many common items would make this difference significant 4 times out of 5, after the "
    "same adjustment."
)


def before_after(context: Context, gains: Sequence[Gain]) -> Table:
    """Returns the table of scores before and after training; without rows where no model was trained."""
    changed = {gain.unit for gain in gains}
    units = [unit for unit in context.scores.units.values() if unit.key in changed]
    has_both = len({unit.benchmark is None for unit in units}) > 1
    headers = {True: "Other tasks", False: "Benchmarks"} if has_both else {True: "", False: ""}
    table = Table(
        "before_after",
        "Before and after training",
        row_headers=("Model", "Number"),
        columns=tuple(Column(unit.key, unit.title, unit.scale, over=headers[unit.benchmark is None]) for unit in units),
        notes=("; ".join(f"{unit.title}: {unit.measure}" for unit in units) + ".", _ABOUT_GAINS),
        question="changes",
    )
    return filled(table, _gain_rows(context, gains))


def _gain_rows(context: Context, gains: Sequence[Gain]) -> Iterator[tuple[tuple[str, str], Mapping[str, Number]]]:
    """Yields the rows of each base once, and below them the rows of the models that were trained from it."""
    by_base: dict[str, dict[str, list[Gain]]] = {}
    for gain in gains:
        by_base.setdefault(gain.base, {}).setdefault(gain.trained, []).append(gain)

    def scores(row: str, row_gains: Iterable[Gain]) -> dict[str, Number]:
        # a place among all models would be misread as one among these two
        cells = {gain.unit: context.scores.units[gain.unit].cells[row] for gain in row_gains}
        return {unit: replace(cell, rank=None, best=False) for unit, cell in cells.items()}

    for base, by_trained in by_base.items():
        base_gains = (gain for row_gains in by_trained.values() for gain in row_gains)
        yield (context.entrants[base].label, "Base"), scores(base, base_gains)
        for trained, row_gains in by_trained.items():
            label = context.entrants[trained].label
            yield (label, "Trained"), scores(trained, row_gains)
            yield (label, "Gain"), {gain.unit: gain.percent for gain in row_gains}
            yield (label, "Difference"), {gain.unit: gain.difference for gain in row_gains}
            needed = {gain.unit: gain.test.items_needed for gain in row_gains if gain.test is not None}
            counts = {unit: Number(float(count), ITEMS_NEEDED) for unit, count in needed.items() if count}
            if counts:
                yield (label, "Items needed"), counts
