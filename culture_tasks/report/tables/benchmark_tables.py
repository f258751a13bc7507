"""The benchmarks' own tables, filled with the numbers that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ColumnOf,
    ContrastOf,
    Headers,
    TableOf,
    UnitOf,
    Where,
)
from culture_tasks.report.model import Column, Contrast, Table
from culture_tasks.report.numbers.comparisons import with_best
from culture_tasks.report.numbers.contrasts import run_facts
from culture_tasks.report.numbers.scores import Measured, Scores
from culture_tasks.report.tables.grid import Context, Place, grid
from culture_tasks.report.tables.published_rows import own_data_apart


@dataclass(frozen=True, slots=True)
class BenchmarkTables:
    """The tables, and the published tables that the user's rows were put into."""

    tables: tuple[Table, ...]
    laid_out: frozenset[str]


def benchmark_tables(context: Context, scores: Scores) -> BenchmarkTables:
    """Returns the tables of every benchmark that was run."""
    tables: list[Table] = []
    laid_out: set[str] = set()
    for layout in layouts(scores):
        models: list[str | None] = [*context.entrants] if "{model}" in layout.spec.title else [None]
        filled = [
            table
            for model in models
            for table in own_data_apart(_filled(context, scores, layout, model), layout.papers)
        ]
        # Rows of a paper alone are shown as printed, with its other tables.
        own = [table for table in filled if not all(row.published for row in table.rows)]
        laid_out.update(layout.papers if any(row.published for table in own for row in table.rows) else ())
        tables += own
    return BenchmarkTables(tuple(tables), frozenset(laid_out))


class Layout(NamedTuple):
    """A table as its benchmark describes it.

    Attributes:
        benchmark: The benchmark.
        spec: The table.
        papers: Published tables whose rows may stand below: none where a unit measures something else.
        units: Units that its numbers may be of.
    """

    benchmark: str | None
    spec: TableOf
    papers: tuple[str, ...]
    units: tuple[str, ...]


def layouts(scores: Scores) -> Iterator[Layout]:
    """Yields the tables that the benchmarks describe for the units that were run."""
    for benchmark, reported, units in _by_benchmark(scores):
        ran = [UnitOf(key, measured.tasks, measured.unit.headline) for key, measured in units.items()]
        for spec in reported.tables(ran):
            shown = tuple(dict.fromkeys(address.unit for address in _addresses(spec) if address.unit in units))
            is_as_published = all(reported.is_as_published(units[unit].tasks) for unit in shown)
            yield Layout(benchmark, spec, spec.papers if is_as_published else (), shown)


def _by_benchmark(scores: Scores) -> Iterator[tuple[str | None, BenchmarkReport, dict[str, Measured]]]:
    units: dict[str | None, dict[str, Measured]] = {}
    for key, measured in scores.units.items():
        units.setdefault(measured.unit.benchmark, {})[key] = measured
    for benchmark, own in units.items():
        yield benchmark, next(iter(own.values())).reported, own


def _addresses(spec: TableOf) -> list[At]:
    of_columns = [column.at for column in spec.columns if column.at is not None]
    return [*of_columns, *(address for line in spec.lines.values() for address in line.values())]


def _filled(context: Context, scores: Scores, layout: Layout, model: str | None) -> Table:
    """Returns a table; with a model, that model's own, of lines alone."""
    spec = layout.spec
    table = Table(
        key=spec.key if model is None else f"{spec.key}_{model}",
        title=spec.title if model is None else spec.title.replace("{model}", context.entrants[model].label),
        row_headers=(*spec.headers, *([spec.line_header] if spec.lines else [])),
        columns=(),
        rows=(),
        reproduces=spec.source,
        benchmark=layout.benchmark,
        notes=spec.notes,
        question=spec.question,
    )

    def texts(entrant: str) -> tuple[str, ...]:
        return row_texts(context, scores, layout.units, entrant, spec.headers)

    if not spec.lines:
        places = [
            Place(column_of(scores, layout, column), with_best(scores, column.at, context.rankable), column.printed)
            for column in spec.columns
            if column.at is not None
        ]
        return grid(context, table, places=places, rows=context.entrants, labels=texts, papers=layout.papers)
    rows = {
        f"{entrant} {label}": (entrant, label, addresses)
        for entrant in ([model] if model is not None else context.entrants)
        for label, addresses in spec.lines.items()
    }
    places = [
        Place(
            column_of(scores, layout, column),
            {
                row: cell
                for row, (entrant, _, addresses) in rows.items()
                if column.key in addresses and (cell := scores.at(addresses[column.key]).get(entrant)) is not None
            },
        )
        for column in spec.columns
    ]
    return grid(
        context,
        table,
        places=places,
        rows=rows,
        labels=lambda row: (*texts(rows[row][0]), rows[row][1]),
        owner=lambda row: rows[row][0],
    )


def column_of(scores: Scores, layout: Layout, column: ColumnOf) -> Column:
    """Returns a column on the scale of its numbers; where none of them was run, on that of the table's others."""
    lines = layout.spec.lines.values()
    own = [column.at] if column.at is not None else [line[column.key] for line in lines if column.key in line]
    scales = (scores.scale(address) for address in (*own, *_addresses(layout.spec)))
    return Column(
        column.key,
        column.label,
        scale=next((scale for scale in scales if scale is not None), Scale("")),
        over=column.over,
        sums_up=column.sums_up,
    )


def row_texts(
    context: Context, scores: Scores, units: Sequence[str], entrant: str, headers: Headers
) -> tuple[str, ...]:
    """Returns the texts before a row's numbers, by its runs of the first of some units that it has."""
    cells = (scores.units[unit].unit.cells.get(entrant) for unit in units)
    keys = next((cell.runs for cell in cells if cell is not None), ())
    facts = run_facts(entrant, context.entrants[entrant].label, [context.runs[key] for key in keys])
    return tuple(text(facts) for text in headers.values())


# Two numbers side by side, with their difference


def contrast_tables(context: Context, scores: Scores, contrasts: Sequence[Contrast]) -> Iterator[Table]:
    """Yields the tables of the numbers that papers set side by side, where there are some."""
    for benchmark, reported, units in _by_benchmark(scores):
        of_benchmark = [one for one in contrasts if one.unit in units]
        for contrast in reported.contrasts:
            for statistic in contrast.values:
                found = [one for one in of_benchmark if (one.kind, one.statistic) == (contrast.kind, statistic)]
                if found:
                    table = Table(
                        key=contrast.key_of(statistic),
                        title=f"{contrast.title}: {contrast.values[statistic]}",
                        row_headers=(*contrast.headers, *([contrast.rows[1]] if contrast.rows else [])),
                        columns=(),
                        rows=(),
                        reproduces=contrast.source,
                        benchmark=benchmark,
                        notes=(
                            f"{contrast.parts[0]}: {contrast.words[0]}. {contrast.parts[1]}: {contrast.words[1]}. "
                            "Difference: the second less the first, on the items that both have a score for, with a "
                            "paired interval.",
                        ),
                        question="changes",
                    )
                    yield _contrast_table(context, scores, contrast, reported, table=table, found=found)


def _contrast_table(
    context: Context,
    scores: Scores,
    contrast: ContrastOf,
    reported: BenchmarkReport,
    *,
    table: Table,
    found: Sequence[Contrast],
) -> Table:
    field = contrast.rows[0] if contrast.rows else ""
    rows: dict[str, Contrast] = {}
    groups: dict[Where, dict[str, Contrast]] = {}
    for one in found:
        row = f"{one.entrant} {dict(one.second.where).get(field, '')}"
        beside = tuple(pair for pair in one.second.where if pair[0] not in contrast.outside)
        rows[row] = groups.setdefault(beside, {})[row] = one

    def labels(row: str) -> tuple[str, ...]:
        one = rows[row]
        texts = row_texts(context, scores, [one.unit], one.entrant, contrast.headers)
        held = dict(one.second.where)
        return (*texts, *([reported.field_named(field).name_of(held[field])] if field else []))

    order = [(), *(((known.name, group),) for known in reported.fields for group in known.order)]
    places = [
        place
        for beside in sorted(groups, key=lambda where: order.index(where) if where in order else len(order))
        for place in _sides(contrast, reported, beside, groups[beside])
    ]
    return grid(context, table, places=places, rows=rows, labels=labels, owner=lambda row: rows[row].entrant)


def _sides(
    contrast: ContrastOf, reported: BenchmarkReport, beside: Where, cells: Mapping[str, Contrast]
) -> Iterator[Place]:
    """Yields the three columns of a group."""
    key = (("", "all"), *contrast.fixed, *beside)[-1][1]
    over = " · ".join(reported.field_named(field).name_of(group) for field, group in beside) or "All"
    sides = {
        "first": (contrast.parts[0], {row: one.first for row, one in cells.items()}),
        "second": (contrast.parts[1], {row: one.second for row, one in cells.items()}),
        "difference": ("Difference", {row: one.difference for row, one in cells.items()}),
    }
    for side, (label, own) in sides.items():
        yield Place(Column(f"{key}_{side}", label, scale=next(iter(own.values())).scale, over=over), own)
