"""``culture-tasks data check``: counts of a benchmark's data beside its paper's, and all rows that can't be used."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

from culture_tasks.data.releases import contradictions
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Row, RowTable, unique, usable_rows
from culture_tasks.errors import DataError, DataUnavailableError


@dataclass
class Count:
    """One thing that was counted.

    Attributes:
        name: What was counted.
        found: What the data have.
        paper: What the paper says, or None where it says nothing.
    """

    name: str
    found: str
    paper: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the data and the paper disagree."""
        return self.paper is not None and self.paper != self.found


@dataclass
class DataReport:
    """Counts beside the paper's, and the problems of single rows.

    Attributes:
        title: What was checked.
        counts: Counts, in the order to show them.
        problems: Rows that can't be used, each with what to do about it.
    """

    title: str
    counts: list[Count] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether the tasks can run on the data. Counts that differ from the paper's are no obstacle."""
        return not self.problems

    def text(self, most_problems: int = 20) -> str:
        """Returns the report as plain text, with the first few problems."""
        width = max((len(count.name) for count in self.counts), default=0)
        shown = [self.title]
        for count in self.counts:
            paper = "" if count.paper is None else f"   paper: {count.paper}{'   DIFFERS' if count.differs else ''}"
            shown.append(f"  {count.name:<{width}}   {count.found}{paper}")
        shown += [f"problem: {problem}" for problem in self.problems[:most_problems]]
        more = len(self.problems) - most_problems
        if more > 0:
            shown.append(f"… and {more} more problems")
        return "\n".join(shown)


@dataclass(frozen=True, kw_only=True)
class TableCheck(Generic[Row]):
    """How one source of a benchmark is checked.

    Attributes:
        source: The source.
        model: What a row must be.
        counts: Counts the usable rows.
        aliases: Other column names, each with its field.
        id: What messages call the rows' ``id``, which must be different in each row; empty where rows have none.
        tables: Reads the source; by default as its one table.
        problems: Yields further problems, of the usable rows by their place in a table.
    """

    source: Source
    model: type[Row]
    counts: Callable[[Sequence[Row]], Iterable[Count]]
    aliases: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    tables: Callable[[Path | None], Iterable[RowTable]] | None = None
    problems: Callable[[RowTable, Mapping[int, Row]], Iterable[str]] = lambda table, rows: ()  # noqa: ARG005

    def add_to(self, report: DataReport, data_folder: Path | None) -> None:
        """Adds what the source holds to a report.

        Raises:
            DataUnavailableError: If the source is missing.
        """
        usable: list[Row] = []
        try:
            for table in [read_source(self.source, data_folder)] if self.tables is None else self.tables(data_folder):
                rows, problems = usable_rows(table, self.model, self.aliases)
                report.problems += [*problems, *self._between_rows(table, rows), *self.problems(table, rows)]
                usable += rows.values()
        except DataUnavailableError:
            raise
        except DataError as error:
            report.problems.append(str(error))
        else:
            report.counts += self.counts(usable)

    def _between_rows(self, table: RowTable, rows: Mapping[int, Row]) -> Iterator[str]:
        if self.id:
            try:
                list(unique(table.part(list(rows)), (vars(row)["id"] for row in rows.values()), self.id))
            except DataError as error:
                yield str(error)
        yield from contradictions(self.source.release, table, {index: vars(row) for index, row in rows.items()})


def check_tables(title: str, data_folder: Path | None, checks: Sequence[TableCheck[Any]]) -> DataReport:
    """Checks all sources of a benchmark, without stopping at the first problem.

    A missing source is a problem, since some of the tasks can't run.

    Args:
        title: The benchmark's name, and that of its folder.
        data_folder: The user's data folder, or None for the Hub's data.
        checks: How each source is checked.

    Raises:
        DataUnavailableError: If all sources are missing.
    """
    report = DataReport(f"{title}: {data_folder / title if data_folder else 'the Hub'}")
    missing: list[DataUnavailableError] = []
    for check in checks:
        try:
            check.add_to(report, data_folder)
        except DataUnavailableError as error:
            missing.append(error)
    if len(missing) == len(checks):
        raise missing[0]
    report.problems += map(str, missing)
    return report
