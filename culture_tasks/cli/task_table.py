"""The task table of the README and of ``culture-tasks tasks --markdown``, and which tasks measure the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from culture_tasks.benchmarks.interface import HARNESSES, Entry, Task
from culture_tasks.benchmarks.registry import benchmark_of, entries, in_harness, tasks_below

HEADER = ("task", "what it measures", "harnesses", "input", "language", "metric", "judge", "data", "paper")
_LISTED = 8


def rows(
    extra: Callable[[Entry], str] | None = None, entries: Iterable[Sequence[Entry]] | None = None
) -> list[tuple[str, ...]]:
    """Returns the table's rows; tasks that measure the same share one, a group or tag standing before its members.

    Args:
        extra: Gives one more column, from the first entry of a row.
        entries: The tasks and groups of each row; None for :func:`alike`.
    """
    shown = alike() if entries is None else entries
    return [(*_row(together), *((extra(together[0]),) if extra else ())) for together in shown]


def alike() -> list[list[Entry]]:
    """Returns the tasks and groups; those that measure the same are together, a group or tag before its members."""
    found: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries().values():
        first = tasks_below(entry.name)[0]
        modality = "image+text" if any(task.shows_images for task in tasks_below(entry.name)) else "text"
        found.setdefault((benchmark_of(entry.name).name, entry.about, modality, first.metric), []).append(entry)
    return list(found.values())


def _row(together: Sequence[Entry]) -> tuple[str, ...]:
    first = together[0]
    benchmark = benchmark_of(first.name)
    tasks = [task for entry in together for task in tasks_below(entry.name)]
    harnesses = [name.replace("_", "-") for name in HARNESSES if any(in_harness(entry, name) for entry in together)]
    return (
        _names(together),
        first.about,
        ", ".join(harnesses),
        "image+text" if any(task.shows_images for task in tasks) else "text",
        ", ".join(languages_of(tasks)),
        f"`{tasks[0].metric}`",
        benchmark.judge or "none needed",
        benchmark.data,
        f"{benchmark.title} ({benchmark.paper})",
    )


def languages_of(tasks: Iterable[Task]) -> list[str]:
    """Returns the languages of tasks, each once."""
    return list(dict.fromkeys(language for task in tasks for language in task.languages))


def _names(together: Sequence[Entry]) -> str:
    names = [f"`{entry.name}`" for entry in together]
    if len(names) > _LISTED:
        names = [*names[:2], f"… {len(names) - 3} more …", names[-1]]
    return ", ".join(names)
