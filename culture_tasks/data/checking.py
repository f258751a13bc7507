"""``culture-tasks data check``: counts of a benchmark's data beside its paper's, and all rows that can't be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

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


def count(name: str, found: object, paper: object = None) -> Count:
    """Returns a count with both numbers as text; a share is given as text already."""
    return Count(name, str(found), None if paper is None else str(paper))


def tally(name: str, values: Iterable[Any], groups: Iterable[str], paper: object = None) -> Iterator[Count]:
    """Yields how many values each group has; the name has ``{}`` where that of the group is put."""
    counts = Counter(values)
    for group in groups:
        yield count(name.format(group), counts[group], paper)


def check_tables(title: str, settings: Settings, tables: Sequence[Table[Any]]) -> DataReport:
    """Checks all tables of a benchmark, whose name and folder is the title, without stopping at the first problem.

    A missing table is a problem, since some of the tasks can't run; DataUnavailableError is raised if all are missing.
    """
    root = next((table.root for table in tables if table.root), None)
    where = root or (settings.data_folder / title if settings.data_folder else "the Hub")
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
    if missing and len(missing) == len(tables):
        raise missing[0]
    report.problems += map(str, missing)
    return report
