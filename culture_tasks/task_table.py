"""The task table of the README and of ``culture-tasks tasks``."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from culture_tasks.catalog import BENCHMARKS, HARNESSES, TaskEntry, entries, task_file

HEADER = ("task", "harnesses", "shown to the model", "asked in", "metric", "judge", "data", "paper")


def rows(extra: Callable[[TaskEntry], str] | None = None) -> list[tuple[str, ...]]:
    """Returns the table's rows, the tasks of a group folded into the group's.

    Args:
        extra: Gives one more column.
    """
    members = {member for entry in entries().values() for member in entry.members}
    shown = [entry for entry in entries().values() if entry.name not in members]
    return [(*_row(entry), *((extra(entry),) if extra else ())) for entry in shown]


def _row(entry: TaskEntry) -> tuple[str, ...]:
    benchmark = BENCHMARKS[entry.benchmark]
    harnesses = [harness.replace("_", "-") for harness in HARNESSES if task_file(entry, harness).is_file()]
    name = f"`{entry.name}`" + (f" (`{'`, `'.join(entry.members)}`)" if 0 < len(entry.members) <= _FEW else "")
    return (
        f"{name}: {entry.about}",
        ", ".join(harnesses),
        entry.modality,
        ", ".join(entry.languages),
        f"`{entry.metric}`",
        benchmark.judge or "none needed",
        benchmark.data,
        f"{benchmark.title} ({benchmark.paper})",
    )


_FEW = 7


def markdown(header: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """Returns a Markdown table; a vertical bar in a cell is escaped."""
    lines = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in body)]
    rule = ["---"] * len(lines[0])
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))
