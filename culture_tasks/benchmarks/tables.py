"""The tables and figures of a benchmark: columns of the report's numbers.

A benchmark gets its :class:`BenchmarkNumbers` and returns tables, and figures of the same columns. The report adds
papers' rows, draws and writes them; it knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from culture_tasks.benchmarks.reporting import Groups, Headers, Question, RunFacts, ScoreUnit, Where

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Benchmark, Scale

Cell: TypeAlias = Any
"""A number of the report (:class:`culture_tasks.report.numbers.numbers.Number`), whose room is above this one."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers, with a cell for each row that has one."""

    key: str
    label: str
    scale: Scale
    cells: Mapping[str, Cell] = field(default_factory=dict)  # by the keys of the rows
    over: str = ""  # header that it shares with its neighbours, such as a language over its categories
    printed: Mapping[str, str] = field(default_factory=dict)  # keys of the column of published tables that it is
    sums_up: bool = False
    """Whether it sums up the columns before it: the last of these stays in sight where a table is wide, and no figure
    has it."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table."""

    key: str  # its name within the report, and in file names
    title: str
    row_headers: tuple[str, ...] = ("Model",)  # of the columns of text before the numbers
    columns: tuple[Column, ...] = ()
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # these texts, by the keys of the rows
    source: str = ""  # the paper's table or section in whose layout it is
    benchmark: str | None = None  # ours; None for a table over several
    notes: tuple[str, ...] = ()  # below it, one paragraph each
    question: Question = "cultures"
    papers: tuple[str, ...] = ()  # published tables whose rows may be shown below the user's
    published: frozenset[str] = frozenset()  # keys of the rows that are from papers


Panel = Mapping[str, Mapping[str, Cell]]
"""The numbers of series, by name and group."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: panels of series over groups, whose numbers stand in a table, too."""

    key: str  # names it and its files
    title: str
    panels: Mapping[str, Panel]  # by title; series that are models are named by the rows' keys
    value: str  # the quantity, with its unit
    kind: Literal["dots", "heat", "lines"] = "dots"
    """Marks with intervals, a row per group; colours, a row per series and a column per group; or lines."""
    groups: str = "group"  # along the axis, in words
    series: str = "model"  # in words
    source: str = ""  # the paper's figure that it follows
    notes: tuple[str, ...] = ()
    question: Question = "cultures"
    bold: frozenset[str] | None = None  # names of the numbers that are certain, as `series, group`, where that is shown
    looks: Mapping[str, int] = field(default_factory=dict)
    """The number of each series' look, by its name: the same model has the same one in every figure."""


def series_of(columns: Iterable[Column]) -> Panel:
    """Returns the cells of columns as a panel: a series per row, over the columns' labels."""
    panel: dict[str, dict[str, Cell]] = {}
    for column in columns:
        for row, cell in column.cells.items():
            if cell.value is not None and not column.sums_up:
                panel.setdefault(row, {})[column.label] = cell
    return panel


@dataclass(frozen=True, slots=True)
class BenchmarkNumbers:
    """The numbers of a benchmark's units, for its tables and figures."""

    units: Mapping[str, ScoreUnit]  # that were run, by key
    fields: Mapping[str, Groups]  # of samples, by field
    rows: Sequence[str]  # keys of the models, in the order of the report
    cells: Callable[[str, str, Where], Mapping[str, Cell]]
    """Gives the numbers of a unit, a statistic and groups, by row; the last group is the statistic's own where it has a
    dimension."""
    scale: Callable[[str, str], Scale]  # of a unit's statistic
    facts: Callable[[str, Iterable[str]], RunFacts]  # of runs, by the key of their row and their own keys
    headers: Headers
    source: str  # unless a table or figure has its own
    benchmark: str | None

    def column(
        self, key: str, label: str, unit: str, statistic: str = "score", where: Where = (), **more: Any
    ) -> Column:
        """Returns the column of a statistic of a unit; ``more`` as in :class:`Column`."""
        return Column(key, label, self.scale(unit, statistic), self.cells(unit, statistic, where), **more)

    def by(
        self,
        name: str,
        unit: str,
        statistic: str = "score",
        *,
        groups: Mapping[str, str] | None = None,
        within: Where = (),
        over: str = "",
        prefix: str = "",
        printed: Mapping[str, str] | None = None,
        total: str = "",
    ) -> list[Column]:
        """Returns a column for each group of a field of a unit, and one over all of them where that has a label.

        ``groups`` are labels in place of the field's own, ``within`` groups that are held fixed, and ``prefix`` begins
        the keys of the columns. ``printed`` are keys of the published columns beside the group, which is ``average``
        for all of them; None where no paper prints these numbers.
        """
        field = self.fields[name]
        labels = {group: field.name_of(group) for group in field} if groups is None else groups

        def keys(group: str) -> Mapping[str, str]:
            return {} if printed is None else {**printed, name: group}

        columns = [
            self.column(
                f"{prefix}{group}", label, unit, statistic, (*within, (name, group)), over=over, printed=keys(group)
            )
            for group, label in labels.items()
        ]
        if total:
            key, more = f"{prefix}{total.lower()}", {"over": over, "printed": keys("average"), "sums_up": True}
            columns.append(self.column(key, total, unit, statistic, within, **more))
        return columns

    def table(
        self, key: str, title: str, columns: Iterable[Column], *, headers: Headers | None = None, **more: Any
    ) -> Table:
        """Returns a table with a row for each model that has a number in it; ``more`` as in :class:`Table`."""
        columns, headers = tuple(columns), self.headers if headers is None else headers
        present = {row for column in columns for row in column.cells}
        rows = {row: self._texts(row, headers, columns) for row in self.rows if row in present}
        more = {"source": self.source, "benchmark": self.benchmark, **more}
        return Table(key, title, tuple(headers), columns, rows, **more)

    def lines(
        self,
        key: str,
        title: str,
        lines: Mapping[tuple[str, ...], Sequence[Column]],
        line_headers: tuple[str, ...],
        *,
        headers: Headers | None = None,
        **more: Any,
    ) -> Table:
        """Returns a table with several rows for each model: a row's numbers are those of its line's columns."""
        headers = self.headers if headers is None else headers
        rows: dict[str, tuple[str, ...]] = {}
        cells: dict[str, dict[str, Cell]] = {}
        shown = {column.key: column for columns in lines.values() for column in columns}
        for row in self.rows:
            for texts, columns in lines.items():
                line = " ".join((row, *texts))
                numbers = {column.key: column.cells[row] for column in columns if row in column.cells}
                if numbers:
                    rows[line] = (*self._texts(row, headers, columns), *texts)
                for name, cell in numbers.items():  # a place among models would be misread as one among these rows
                    cells.setdefault(name, {})[line] = replace(cell, rank=None, best=False)
        filled = tuple(replace(column, cells=cells.get(name, {})) for name, column in shown.items())
        more = {"source": self.source, "benchmark": self.benchmark, **more}
        return Table(key, title, (*headers, *line_headers), filled, rows, **more)

    def panels(self, lines: Mapping[str, Sequence[Column]], suffix: str = "") -> dict[str, Panel]:
        """Returns a panel for each model, whose series are the numbers of several lines of columns."""
        panels: dict[str, Panel] = {}
        for row in self.rows:
            series = {name: series_of(columns).get(row) for name, columns in lines.items()}
            if any(series.values()):
                facts = self._facts(row, (column for columns in lines.values() for column in columns))
                panels[facts.label + suffix] = {name: cells for name, cells in series.items() if cells}
        return panels

    def _facts(self, row: str, columns: Iterable[Column]) -> RunFacts:
        return self.facts(row, (run for column in columns if row in column.cells for run in column.cells[row].runs))

    def _texts(self, row: str, headers: Headers, columns: Iterable[Column]) -> tuple[str, ...]:
        facts = self._facts(row, columns)
        return tuple(text(facts) for text in headers.values())


def standard_tables(benchmark: Benchmark, numbers: BenchmarkNumbers) -> Iterator[Table]:
    """Yields a table of the score for each unit and each field of a benchmark's groups.

    Of several tasks it has no column for all groups: their score may be a mean over tasks.
    """
    for unit in numbers.units.values():
        metric = benchmark.metrics_of(unit)["score"]
        for name in _shown_fields(benchmark):
            columns = numbers.by(name, unit.key, printed={}, total="All" if len(unit.tasks) == 1 else "")
            yield numbers.table(f"{unit.key}_by_{name}", f"{unit.title}: {metric.in_words}, by {name}", columns)


def standard_figures(benchmark: Benchmark, numbers: BenchmarkNumbers) -> Iterator[Figure]:
    """Yields a figure for each field of a benchmark's groups and each main metric, with a panel per unit."""
    units: dict[str, list[ScoreUnit]] = {}
    for unit in numbers.units.values():
        units.setdefault(benchmark.metrics_of(unit)["score"].name, []).append(unit)
    first = benchmark.tasks()[0].metric
    for name in _shown_fields(benchmark):
        for key, members in units.items():
            metric = benchmark.metrics_of(members[0])["score"]
            yield Figure(
                key=f"{benchmark.name}_{f'{key}_' if key != first else ''}{name}",
                title=f"{benchmark.title}{f', {metric.title},' if key != first else ''} by {name}",
                panels={unit.title: series_of(numbers.by(name, unit.key)) for unit in members},
                value=metric.in_words[:1].upper() + metric.in_words[1:],
                groups=benchmark.groups[name].axis or name,
                source=numbers.source,
            )


def _shown_fields(benchmark: Benchmark) -> list[str]:
    return [name for name, groups in benchmark.groups.items() if groups.shown and groups]


def metric_columns(
    benchmark: Benchmark,
    numbers: BenchmarkNumbers,
    labels: Mapping[str, str],
    printed: Mapping[str, Mapping[str, str]],
) -> list[Column]:
    """Returns a column for each metric of each unit that has a label, in the order of the labels.

    ``printed`` are keys of the column of published tables, by unit and statistic as in ``cvqa_en_acc_macro``.
    """
    return [
        numbers.column(
            key := f"{unit.key}_{name}", labels[name], unit.key, name, over=unit.title, printed=printed.get(key, {})
        )
        for unit in numbers.units.values()
        for name in labels
        if name in benchmark.metrics_of(unit)
    ]
