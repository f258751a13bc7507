"""Each benchmark's own tables: what it says that they show, with the numbers that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import (
    At,
    BenchmarkReport,
    ContrastOf,
    ContrastTable,
    Header,
    Line,
    MethodArgument,
    Shown,
    TableOf,
    UnitOf,
    Where,
)
from culture_tasks.insertion import methods
from culture_tasks.report.model import Cell, Column, Contrast, Table
from culture_tasks.report.scores import Measured, Scores
from culture_tasks.report.standings import with_best
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
    for benchmark, spec, papers in layouts(scores):
        models: list[str | None] = [*context.entrants] if spec.each_model else [None]
        filled = [
            table
            for model in models
            for table in own_data_apart(
                _filled(context, scores, spec=spec, benchmark=benchmark, papers=papers, model=model), papers
            )
        ]
        # Rows of a paper alone are shown as printed, with its other tables.
        own = [table for table in filled if not all(row.published for row in table.rows)]
        laid_out.update(papers if any(row.published for table in own for row in table.rows) else ())
        tables += own
    return BenchmarkTables(tuple(tables), frozenset(laid_out))


class Layout(NamedTuple):
    """A table as its benchmark describes it.

    Attributes:
        benchmark: The benchmark.
        spec: The table.
        papers: Published tables whose rows may stand below: none where a unit measures something else.
    """

    benchmark: str | None
    spec: TableOf
    papers: tuple[str, ...]


def layouts(scores: Scores) -> Iterator[Layout]:
    """Yields the tables that the benchmarks describe for the units that were run."""
    for benchmark, reported, units in _by_benchmark(scores):
        ran = [UnitOf(key, each.tasks, each.unit.headline) for key, each in units.items()]
        for spec in reported.tables(ran):
            yield Layout(benchmark, spec, spec.papers if _is_as_published(spec, units, reported) else ())


def _by_benchmark(scores: Scores) -> Iterator[tuple[str | None, BenchmarkReport, dict[str, Measured]]]:
    units: dict[str | None, dict[str, Measured]] = {}
    for key, each in scores.units.items():
        units.setdefault(each.unit.benchmark, {})[key] = each
    for benchmark, own in units.items():
        yield benchmark, next(iter(own.values())).reported, own


def _addresses(spec: TableOf) -> Iterator[At]:
    for shown in spec.columns:
        if shown.at is not None:
            yield shown.at
    for line in spec.lines:
        yield from line.at.values()


def _is_as_published(spec: TableOf, units: Mapping[str, Measured], reported: BenchmarkReport) -> bool:
    """Whether every unit of a table measures what the published tables do."""
    shown = {address.unit for address in _addresses(spec)} & units.keys()
    return all(reported.is_as_published(units[unit].tasks) for unit in shown)


def _filled(
    context: Context,
    scores: Scores,
    spec: TableOf,
    benchmark: str | None,
    papers: Sequence[str],
    model: str | None,
) -> Table:
    """Returns a table; with a model, that model's own, of lines alone."""
    table = Table(
        key=spec.key if model is None else f"{spec.key}_{model}",
        title=spec.title if model is None else spec.title.replace("{model}", context.entrants[model].label),
        row_headers=(*spec.headers, *([spec.line_header] if spec.lines else [])),
        columns=(),
        rows=(),
        reproduces=spec.source,
        benchmark=benchmark,
        notes=spec.notes,
        question=spec.question,
    )
    texts = row_texts(context, scores, spec)
    if not spec.lines:
        places = [
            Place(column_of(scores, spec, shown), with_best(scores, shown.at, context.rankable), shown.printed)
            for shown in spec.columns
            if shown.at is not None
        ]
        return grid(
            context,
            table,
            places=places,
            rows=context.entrants,
            labels=lambda key: texts.labels(key, spec.headers),
            papers=papers,
        )
    rows = {
        f"{entrant} {line.label}": (entrant, line)
        for entrant in ([model] if model is not None else context.entrants)
        for line in spec.lines
    }
    places = [Place(column_of(scores, spec, shown), _of_lines(scores, shown.key, rows)) for shown in spec.columns]
    return grid(
        context,
        table,
        places=places,
        rows=rows,
        labels=lambda row: (*texts.labels(rows[row][0], spec.headers), rows[row][1].label),
        owner=lambda row: rows[row][0],
    )


def column_of(scores: Scores, spec: TableOf, shown: Shown) -> Column:
    """Returns a column on the scale of its numbers; where none of them was run, on that of the table's others."""
    own = [shown.at] if shown.at is not None else [line.at[shown.key] for line in spec.lines if shown.key in line.at]
    scales = (scores.scale(address) for address in (*own, *_addresses(spec)))
    return Column(
        shown.key,
        shown.label,
        scale=next((each for each in scales if each is not None), Scale("")),
        over=shown.over,
        sums_up=shown.sums_up,
    )


def _of_lines(scores: Scores, column: str, rows: Mapping[str, tuple[str, Line]]) -> dict[str, Cell]:
    found = {row: scores.at(line.at[column]).get(entrant) for row, (entrant, line) in rows.items() if column in line.at}
    return {row: cell for row, cell in found.items() if cell is not None}


def row_texts(context: Context, scores: Scores, spec: TableOf) -> RowTexts:
    """Returns what gives the texts of a table's rows."""
    return RowTexts(context, scores, tuple(dict.fromkeys(address.unit for address in _addresses(spec))))


@dataclass(frozen=True, slots=True)
class RowTexts:
    """The texts before a row's numbers.

    Attributes:
        context: What every table needs.
        scores: The numbers.
        units: Units of the table: the first that a row has was graded by its judge, with its method.
    """

    context: Context
    scores: Scores
    units: tuple[str, ...]

    def labels(self, entrant: str, headers: Sequence[Header]) -> tuple[str, ...]:
        """Returns a row's texts."""
        label = self.context.entrants[entrant].label
        method = self._method(entrant)
        found: dict[Header, str] = {
            "Model": label,
            "Base model": label.replace(f" + {method}", "", 1) if method else label,
            "Method": self._labels.get(method, method),
            "Measured": self._measured(entrant),
            "Judge": self._judges(entrant),
        }
        return tuple(found[header] for header in headers)

    def _runs(self, entrant: str) -> tuple[str, ...]:
        cells = (self.scores.units[unit].unit.cells.get(entrant) for unit in self.units if unit in self.scores.units)
        return next((cell.runs for cell in cells if cell is not None), ())

    def _judges(self, entrant: str) -> str:
        runs = (self.context.runs[key] for key in self._runs(entrant))
        return " + ".join(dict.fromkeys(judge.label for run in runs for judge in run.settings.judges)) or "unknown"

    def _measured(self, entrant: str) -> str:
        runs = (self.context.runs[key] for key in self._runs(entrant))
        return " + ".join(dict.fromkeys(run.measured for run in runs if run.measured))

    @property
    def _argument(self) -> MethodArgument | None:
        return next((self.scores.units[unit].reported.method for unit in self.units if unit in self.scores.units), None)

    @property
    def _labels(self) -> Mapping[str, str]:
        return {**methods.labels(), **self._argument.labels} if self._argument else {}

    def _method(self, entrant: str) -> str:
        runs = self._runs(entrant)
        arguments = self.context.runs[runs[0]].model_args.split(", ") if runs and self._argument else []
        pairs = (argument.partition("=") for argument in arguments)
        return next((value for name, _, value in pairs if self._argument and name == self._argument.name), "")


# Two numbers side by side, with their difference


def contrast_tables(context: Context, scores: Scores, contrasts: Sequence[Contrast]) -> Iterator[Table]:
    """Yields the tables of what papers set side by side, where there are contrasts for them."""
    for benchmark, reported, _ in _by_benchmark(scores):
        for contrast in reported.contrasts:
            for spec in contrast.tables:
                found = [each for each in contrasts if (each.kind, each.statistic) == (contrast.kind, spec.statistic)]
                if found:
                    yield _contrast_table(
                        context, scores, contrast=contrast, spec=spec, benchmark=benchmark, found=found
                    )


def _contrast_table(
    context: Context,
    scores: Scores,
    contrast: ContrastOf,
    spec: ContrastTable,
    benchmark: str | None,
    found: Sequence[Contrast],
) -> Table:
    field, header, groups = spec.rows or ("", "", {})
    rows: dict[str, Contrast] = {}
    cells: dict[tuple[str, Where], Contrast] = {}
    for each in found:
        row = f"{each.entrant} {dict(each.second.where).get(field, '')}"
        beside = tuple(pair for pair in each.second.where if pair not in contrast.fixed and pair[0] != field)
        rows[row], cells[row, beside] = each, each
    table = Table(
        key=spec.key,
        title=spec.title,
        row_headers=(*spec.headers, *([header] if spec.rows else [])),
        columns=(),
        rows=(),
        reproduces=contrast.source,
        benchmark=benchmark,
        notes=(spec.note,),
        question="changes",
    )

    def labels(row: str) -> tuple[str, ...]:
        each = rows[row]
        own = RowTexts(context, scores, (each.unit,)).labels(each.entrant, spec.headers)
        if not spec.rows:
            return own
        group = dict(each.second.where)[field]
        return (*own, groups.get(group, group))

    places = [
        place
        for beside, over in spec.groups.items()
        for place in _sides(
            key=beside[-1][1] if beside else contrast.fixed[-1][1] if contrast.fixed else "all",
            over=over,
            parts=spec.parts,
            cells={row: each for (row, where), each in cells.items() if where == beside},
        )
    ]
    return grid(context, table, places=places, rows=rows, labels=labels, owner=lambda row: rows[row].entrant)


def _sides(key: str, over: str, parts: tuple[str, str], cells: Mapping[str, Contrast]) -> Iterator[Place]:
    """Yields three columns for a group that there is a contrast of."""
    sides = {
        "first": (parts[0], {row: each.first for row, each in cells.items()}),
        "second": (parts[1], {row: each.second for row, each in cells.items()}),
        "difference": ("Difference", {row: each.difference for row, each in cells.items()}),
    }
    for side, (label, own) in sides.items() if cells else ():
        yield Place(Column(f"{key}_{side}", label, scale=next(iter(own.values())).scale, over=over), own)
