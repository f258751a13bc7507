"""The finished report as plain values: what the builder makes, and the writers, the page and the figures read.

How the parts hang together:

* A :class:`Run` is one task of one result file. Its ``key`` names it everywhere else.
* An :class:`Entrant` is a row: a model, or a model under other settings (another judge, say). It has several runs.
* A :class:`Unit` is what is measured as one number: a task (``culturalvqa``), or a group (``care``).
* A :class:`Cell` is a number with its interval, and how it may be used. ``runs`` and ``where`` tell which samples are
  behind it: ``report.samples.read(run, where)`` for each of its runs.
* :attr:`Report.tables` are laid out and finished; a writer only draws them. :attr:`Report.groups` has the same numbers
  in long form, for figures.

Numbers stand on the metric's own scale, which :class:`Scale` states; None means that there is no number, and the flags
or the note say why. Texts that come from models, data or file names are not escaped here: each writer does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from culture_tasks.report.cells import FLAG_TEXT, NOT_COMPARABLE, Cell, Flag, Scale
from culture_tasks.report.findings import Comparison, Contrast, Entrant, Fairness, GroupValue, Unit
from culture_tasks.report.runs import Judge, Run, Sample, SampleStore, Settings
from culture_tasks.results.finding import Harness, Kind, Problem

__all__ = [
    "FLAG_TEXT",
    "NOT_COMPARABLE",
    "Cell",
    "Column",
    "Comparison",
    "Contrast",
    "Entrant",
    "Fairness",
    "Flag",
    "GroupValue",
    "Harness",
    "Judge",
    "Kind",
    "Problem",
    "Report",
    "Row",
    "Run",
    "Sample",
    "SampleStore",
    "Scale",
    "Settings",
    "Table",
    "Unit",
]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers.

    Attributes:
        key: Names it within its table.
        label: Its header.
        over: Header that it shares with its neighbours, such as ``Arabic`` over CARE's categories; may be empty.
        scale: The scale of its numbers.
    """

    key: str
    label: str
    scale: Scale
    over: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table.

    Attributes:
        labels: One text for each of the table's ``row_headers``.
        cells: One cell for each column; None where there is nothing to show.
        entrant: Key of the entrant that it shows; None where it shows none.
        published: Whether it is a paper's row.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell | None, ...]
    entrant: str | None = None
    published: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A finished table.

    Attributes:
        key: Names it within the report, and its files.
        title: What it shows.
        reproduces: The paper's table in whose layout it is, such as ``CARE, Table 3``; may be empty.
        benchmark: Our benchmark; None for a table over several.
        row_headers: Headers of the columns of text before the numbers.
        columns: The columns of numbers.
        rows: The rows.
        notes: What stands below it, one paragraph each.
    """

    key: str
    title: str
    row_headers: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    reproduces: str = ""
    benchmark: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report.

    Attributes:
        created: When, as ISO 8601 in UTC.
        version: Version of this package.
        options: What the user asked for, by option.
        entrants: The rows, in order, by key; where they were asked for, the papers' own are the last.
        runs: The runs in use, by key.
        units: What was measured, in order, by key.
        tables: Finished tables, in order.
        groups: Numbers by group, in long form; where they were asked for, the papers' own are the last.
        fairness: Spread over groups.
        comparisons: Tests between entrants.
        contrasts: Numbers of one entrant that a paper sets side by side.
        problems: Files that were not used, and why.
        notes: What holds for the whole report.
        samples: The samples behind the cells.
    """

    created: str
    version: str
    options: Mapping[str, str]
    entrants: Mapping[str, Entrant]
    runs: Mapping[str, Run]
    units: Mapping[str, Unit]
    tables: tuple[Table, ...]
    groups: tuple[GroupValue, ...]
    fairness: tuple[Fairness, ...]
    comparisons: tuple[Comparison, ...]
    contrasts: tuple[Contrast, ...]
    problems: tuple[Problem, ...]
    samples: SampleStore
    notes: tuple[str, ...] = field(default=())

    @property
    def models(self) -> set[str]:
        """Names of the user's models; the papers' are not among them."""
        return {entrant.model for entrant in self.entrants.values() if not entrant.published}
