"""The tables and figures of a benchmark: columns of the report's numbers.

A benchmark gets its :class:`BenchmarkNumbers` and returns tables, and figures of the same columns. The report adds
papers' rows, draws and writes them; it knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from culture_tasks.benchmarks.reporting import Groups, Headers, Question, RunFacts, ScoreUnit, Where

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale

Cell: TypeAlias = Any
"""A number of the report (:class:`culture_tasks.report.numbers.numbers.Number`), whose room is above this one."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers, with a cell for each row that has one.

    Attributes:
        cells: The numbers by the keys of the rows.
        over: Header that it shares with its neighbours, such as a language over its categories; may be empty.
        printed: Keys of the column of published tables that it corresponds to; empty where there is none.
        sums_up: Whether it sums up the columns before it: the last of these stays in sight where a table is wide, and
            no figure has it.
    """

    key: str
    label: str
    scale: Scale
    cells: Mapping[str, Cell] = field(default_factory=dict)
    over: str = ""
    printed: Mapping[str, str] = field(default_factory=dict)
    sums_up: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        key: Its name within the report, and in file names.
        row_headers: Headers of the columns of text before the numbers.
        rows: The texts before the numbers, by the keys of the rows.
        source: The paper's table or section in whose layout it is; may be empty.
        benchmark: Our benchmark; None for a table over several.
        notes: The notes below it, one paragraph each.
        papers: Published tables whose rows may be shown below the user's.
        published: Keys of the rows that are from papers.
    """

    key: str
    title: str
    row_headers: tuple[str, ...] = ("Model",)
    columns: tuple[Column, ...] = ()
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""
    benchmark: str | None = None
    notes: tuple[str, ...] = ()
    question: Question = "cultures"
    papers: tuple[str, ...] = ()
    published: frozenset[str] = frozenset()


Panel = Mapping[str, Mapping[str, Cell]]
"""The numbers of series, by name and group."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: panels of series over groups, whose numbers stand in a table, too.

    Attributes:
        key: Names it and its files.
        panels: The series of each panel by title and name. Series that are models are named by the rows' keys.
        value: The quantity, with its unit.
        kind: Marks with intervals, a row per group; colours, a row per series and a column per group; or lines.
        groups: The groups along the axis, in words.
        series: The series, in words; ``model`` where they are models.
        source: The paper's figure that it follows; may be empty.
        bold: Names of the numbers that are certain, as ``series, group``; None where that isn't shown.
        looks: The number of each series' look, by its name: the same model has the same one in every figure.
    """

    key: str
    title: str
    panels: Mapping[str, Panel]
    value: str
    kind: Literal["dots", "heat", "lines"] = "dots"
    groups: str = "group"
    series: str = "model"
    source: str = ""
    notes: tuple[str, ...] = ()
    question: Question = "cultures"
    bold: frozenset[str] | None = None
    looks: Mapping[str, int] = field(default_factory=dict)


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
    """The numbers of a benchmark's units, for its tables and figures.

    Attributes:
        units: The units that were run, by key.
        fields: The groups of samples, by field.
        rows: Keys of the models, in the order of the report.
        cells: Gives the numbers of a unit, a statistic and groups, by row; the last group is the statistic's own where
            it has a dimension.
        scale: Gives the scale of a unit's statistic.
        facts: Gives the facts of runs, by the key of their row and their own keys.
        headers: The texts before a row's numbers.
        source: Where the numbers are from, unless a table or figure says so.
        benchmark: The benchmark's name.
    """

    units: Mapping[str, ScoreUnit]
    fields: Mapping[str, Groups]
    rows: Sequence[str]
    cells: Callable[[str, str, Where], Mapping[str, Cell]]
    scale: Callable[[str, str], Scale]
    facts: Callable[[str, Iterable[str]], RunFacts]
    headers: Headers
    source: str
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
        """Returns a column for each group of a field, and one over all of them where that has a label.

        Args:
            name: The field.
            unit: Key of the unit.
            statistic: The numbers.
            groups: Labels of the groups; None for those of the field.
            within: Groups that are held fixed.
            over: Header that the columns share.
            prefix: Begins the keys of the columns.
            printed: Keys of the published columns beside the group; None where no paper prints these numbers.
            total: Label of the column over all groups, such as ``All``; published tables call its group ``average``.
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
            runs = (
                run
                for columns in lines.values()
                for column in columns
                if row in column.cells
                for run in column.cells[row].runs
            )
            if any(series.values()):
                panels[self.facts(row, runs).label + suffix] = {name: cells for name, cells in series.items() if cells}
        return panels

    def _texts(self, row: str, headers: Headers, columns: Iterable[Column]) -> tuple[str, ...]:
        facts = self.facts(row, (run for column in columns if row in column.cells for run in column.cells[row].runs))
        return tuple(text(facts) for text in headers.values())
