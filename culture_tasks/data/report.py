"""What a check of a benchmark's data found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Line:
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
class Report:
    """Counts beside the paper's, and the problems of single rows.

    Attributes:
        title: What was checked.
        lines: Counts, in the order to show them.
        problems: Rows that can't be used, each with what is needed.
    """

    title: str
    lines: list[Line] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether the tasks can run on the data. Counts that differ from the paper's are no obstacle."""
        return not self.problems

    def text(self, most_problems: int = 20) -> str:
        """Returns the report as plain text, with the first few problems."""
        width = max((len(line.name) for line in self.lines), default=0)
        shown = [self.title, *(_shown(line, width) for line in self.lines)]
        shown += [f"problem: {problem}" for problem in self.problems[:most_problems]]
        more = len(self.problems) - most_problems
        if more > 0:
            shown.append(f"… and {more} more problems")
        return "\n".join(shown)


def _shown(line: Line, width: int) -> str:
    paper = "" if line.paper is None else f"   paper: {line.paper}{'   DIFFERS' if line.differs else ''}"
    return f"  {line.name:<{width}}   {line.found}{paper}"
