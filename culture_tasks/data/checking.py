"""``culture-tasks data check``: counts of a benchmark's data beside its paper's, and all rows that can't be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple

from culture_tasks.data.files import RowTable
from culture_tasks.data.releases import check_release, contradictions
from culture_tasks.data.rows import Row, id_problems, unique, usable_rows, validated
from culture_tasks.data.sources import Source, read_source
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError, DataUnavailableError
from culture_tasks.settings import Settings


class Count(NamedTuple):
    """A count: its name, the number in the data, and the paper's; None where the paper has none."""

    name: str
    found: str
    paper: str | None = None

    @property
    def differs(self) -> bool:
        """Whether the data and the paper disagree."""
        return self.paper is not None and self.paper != self.found


@dataclass
class DataReport:
    """Counts beside the paper's, and the rows that can't be used, each with what to do about it."""

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
        lines = [self.title]
        for count in self.counts:
            paper = "" if count.paper is None else f"   paper: {count.paper}{'   DIFFERS' if count.differs else ''}"
            lines.append(f"  {count.name:<{width}}   {count.found}{paper}")
        problems = list(dict.fromkeys(self.problems))  # a missing folder is one for each of its files
        lines += [f"problem: {problem}" for problem in problems[:most_problems]]
        more = len(problems) - most_problems
        if more > 0:
            lines.append(f"… and {more} more problems")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class TableCheck(Generic[Row]):
    """How one source of a benchmark is read and checked.

    Attributes:
        source: The source.
        model: The pydantic model of a row.
        counts: Counts the usable rows; by default nothing.
        aliases: Other column names, each with its field.
        id: The name of the rows' id in messages, which must be different in each row; empty where rows have none.
        id_of: Gives a row's id.
        tables: Reads the source; by default as its one table.
        problems: Yields further problems, of the usable rows by their place in a table.
    """

    source: Source
    model: type[Row]
    counts: Callable[[Sequence[Row]], Iterable[Count]] = lambda rows: ()  # noqa: ARG005
    aliases: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    id_of: Callable[[Row], str | None] = attrgetter("id")
    tables: Callable[[Path | None], Iterable[RowTable]] | None = None
    problems: Callable[[RowTable, Mapping[int, Row]], Iterable[str]] = lambda table, rows: ()  # noqa: ARG005

    def read(self, data_folder: Path | None) -> tuple[RowTable, list[Row], list[str]]:
        """Returns the source as a run needs it: its table, all rows, and their ids; raises DataError for a problem."""
        table = read_source(self.source, data_folder)
        rows = validated(table, self.model, self.aliases)
        ids = list(unique(table, map(self.id_of, rows), self.id)) if self.id else []
        for problem in self.problems(table, dict(enumerate(rows))):
            raise DataError(problem)
        check_release(self.source.release, table, list(map(vars, rows)))
        return table, rows, ids

    def all_problems(self, table: RowTable) -> tuple[dict[int, Row], list[str]]:
        """Returns the usable rows of a table by their place, and the problems of rows and between them."""
        rows, problems = usable_rows(table, self.model, self.aliases)
        if self.id:
            problems += id_problems(table.part(list(rows)), list(map(self.id_of, rows.values())), self.id)
        problems += contradictions(self.source.release, table, {index: vars(row) for index, row in rows.items()})
        return rows, [*problems, *self.problems(table, rows)]


def count(name: str, found: object, paper: object = None) -> Count:
    """Returns a count of two numbers, or of what stands for them."""
    return Count(name, str(found), None if paper is None else str(paper))


def tally(name: str, values: Iterable[Any], groups: Iterable[str], paper: object = None) -> Iterator[Count]:
    """Yields how many values each group has; the name has ``{}`` where that of the group is put."""
    counts = Counter(values)
    for group in groups:
        yield count(name.format(group), counts[group], paper)


def check_all(title: str, settings: Settings, tables: Sequence[Table[Any]]) -> DataReport:
    """Checks all tables of a benchmark, whose name and folder is the title, without stopping at the first problem.

    A missing table is a problem, since some of the tasks can't run.

    Raises:
        DataUnavailableError: If all tables are missing.
    """
    where = tables[0].root or (settings.data_folder / title if settings.data_folder else "the Hub")
    report = DataReport(f"{title}: {where}")
    missing: list[DataUnavailableError] = []
    images = set[Path]()
    for table in tables:
        try:
            rows, problems = table.check(settings, images)
        except DataUnavailableError as error:
            missing.append(error)
        except DataError as error:
            report.problems += str(error).split("\n")
        else:
            report.problems += problems
            report.counts += table.counts(rows)
    if len(missing) == len(tables):
        raise missing[0]
    report.problems += map(str, missing)
    return report


def check_tables(title: str, data_folder: Path | None, checks: Sequence[TableCheck[Any]]) -> DataReport:
    """Checks all sources of a benchmark, whose name and folder is the title, without stopping at the first problem.

    A missing source is a problem, since some of the tasks can't run.

    Raises:
        DataUnavailableError: If all sources are missing.
    """
    where = checks[0].source.root or (data_folder / title if data_folder else "the Hub")
    report = DataReport(f"{title}: {where}")
    missing: list[DataUnavailableError] = []
    for check in checks:
        usable: list[Any] = []
        try:
            for table in check.tables(data_folder) if check.tables else [read_source(check.source, data_folder)]:
                rows, problems = check.all_problems(table)
                report.problems += problems
                usable += rows.values()
        except DataUnavailableError as error:
            missing.append(error)
        except DataError as error:
            report.problems += str(error).split("\n")
        else:
            report.counts += check.counts(usable)
    if len(missing) == len(checks):
        raise missing[0]
    report.problems += map(str, missing)
    return report
