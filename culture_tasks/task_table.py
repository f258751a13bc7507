"""The task table of the README and of ``culture-tasks tasks``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from culture_tasks.catalog import BENCHMARKS, HARNESSES, TaskEntry, entries, is_available

HEADER = ("task", "what it measures", "harnesses", "shown", "asked in", "metric", "judge", "data", "paper")
_LISTED = 8


def rows(extra: Callable[[TaskEntry], str] | None = None) -> list[tuple[str, ...]]:
    """Returns the table's rows; tasks that measure the same share one, a group or tag going before its members.

    Args:
        extra: Gives one more column, from the first entry of a row.
    """
    alike: dict[tuple[str, ...], list[TaskEntry]] = {}
    for entry in entries().values():
        alike.setdefault((entry.benchmark, entry.about, entry.modality, entry.metric), []).append(entry)
    return [(*_row(together), *((extra(together[0]),) if extra else ())) for together in alike.values()]


def _row(together: Sequence[TaskEntry]) -> tuple[str, ...]:
    first = together[0]
    benchmark = BENCHMARKS[first.benchmark]
    harnesses = [name.replace("_", "-") for name in HARNESSES if any(is_available(entry, name) for entry in together)]
    languages = dict.fromkeys(language for entry in together for language in entry.languages)
    return (
        _names(together),
        first.about,
        ", ".join(harnesses),
        first.modality,
        ", ".join(languages),
        f"`{first.metric}`",
        benchmark.judge or "none needed",
        benchmark.data,
        f"{benchmark.title} ({benchmark.paper})",
    )


def _names(together: Sequence[TaskEntry]) -> str:
    names = [f"`{entry.name}`" for entry in together]
    if len(names) > _LISTED:
        names = [*names[:2], f"… {len(names) - 3} more …", names[-1]]
    return ", ".join(names)


def markdown(header: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """Returns a Markdown table; a vertical bar in a cell is escaped."""
    lines = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in body)]
    rule = ["---"] * len(lines[0])
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], rule, *lines[1:]))
