"""``culture-tasks tasks``: every task, and where its data are now; the task table; ``culture-tasks include-path``."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import HARNESSES, Entry, Task
from culture_tasks.benchmarks.registry import (
    benchmark_of,
    benchmarks,
    check_revisions,
    entries,
    in_harness,
    task_folder,
    tasks_below,
)
from culture_tasks.cli.options import AddParser, print_json
from culture_tasks.data.tables import availability
from culture_tasks.harness.plug_ins import plug_in_problems
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, as_text, printable

HEADER = ("task", "what it measures", "harnesses", "input", "language", "metric", "judge", "data", "paper")
"""The columns of the task table."""

_NAMED = 8  # names of a row of the table
_COLUMNS = ("task", "more", "what it measures", "input", "language", "data now")
_DATA = _COLUMNS.index("data now")
_MAY_BE_SHARED = tuple(_COLUMNS.index(name) for name in ("input", "language", "data now"))
_MOST_LANGUAGES = 4


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(
        description="Lists the tasks by benchmark. Tasks that measure the same, such as a group's, are one line."
    )
    parser.add_argument("--all", action="store_true", help="list every task and group on a separate line")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print one Markdown table with metrics and judges")
    form.add_argument("--json", action="store_true", help="print every task and group as JSON")
    parser.set_defaults(handler=_list)


def register_include_path(add_parser: AddParser) -> None:
    """Adds the command ``include-path``."""
    parser = add_parser(
        description="Prints the folder of our tasks, to give to a harness's --include_path. For example:\n"
        'lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES, help="the harness that the tasks are for")
    parser.set_defaults(handler=_print_folder)


def _print_folder(options: argparse.Namespace) -> int:
    print(task_folder(options.harness))
    return 0


def _list(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    check_revisions(settings)

    def data_now(entry: Entry) -> str:
        sources = dict.fromkeys(source for task in tasks_below(entry.name) for source in task.data.sources)
        return availability(sources, settings)

    if options.json:
        print_json([{**_as_json(entry), "data_now": data_now(entry)} for entry in entries().values()])
        return 0
    listing = [[entry] for entry in entries().values()] if options.all else similar_entries()
    if options.markdown:
        body = [(*row, data_now(peers[0])) for row, peers in zip(rows(listing), listing, strict=True)]
        print(as_markdown((*HEADER, "data now"), body))
    else:
        _print_by_benchmark(listing, data_now)
    for problem in plug_in_problems():
        print(f"\n{problem}")
    return 0


class _Facts(NamedTuple):
    """What tasks and groups that measure the same are like."""

    modality: str
    languages: list[str]
    metric: str
    harnesses: list[str]


def _facts(peers: Sequence[Entry]) -> _Facts:
    tasks = [task for entry in peers for task in tasks_below(entry.name)]
    return _Facts(
        modality="image+text" if any(task.shows_images for task in tasks) else "text",
        languages=list(dict.fromkeys(language for task in tasks for language in task.languages)),
        metric=tasks[0].metric,
        harnesses=[name.replace("_", "-") for name in HARNESSES if any(in_harness(entry, name) for entry in peers)],
    )


def similar_entries() -> list[list[Entry]]:
    """Returns the tasks and groups; those that measure the same are together, a group or tag before its members."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries().values():
        facts = _facts([entry])
        key = (benchmark_of(entry.name).name, entry.about, facts.modality, facts.metric)
        groups.setdefault(key, []).append(entry)
    return list(groups.values())


def rows(entries: Iterable[Sequence[Entry]], *, brief: bool = False) -> list[tuple[str, ...]]:
    """Returns the rows of the task table; the entries of a row measure the same. ``brief`` counts many languages."""
    table: list[tuple[str, ...]] = []
    for peers in entries:
        names = [f"`{entry.name}`" for entry in peers]
        if len(names) > _NAMED:
            names = [*names[:2], f"… {len(names) - 3} more …", names[-1]]
        benchmark, facts = benchmark_of(peers[0].name), _facts(peers)
        names_and_facts = (", ".join(names), peers[0].about, ", ".join(facts.harnesses), facts.modality)
        paper = f"{benchmark.title} ({benchmark.paper})"
        judge = benchmark.judge or "none needed"
        languages = _brief(facts.languages) if brief else ", ".join(facts.languages)
        table.append((*names_and_facts, languages, f"`{facts.metric}`", judge, benchmark.data, paper))
    return table


def _brief(languages: Sequence[str]) -> str:
    return ", ".join(languages) if len(languages) <= _MOST_LANGUAGES else f"{len(languages)} languages"


def _line(peers: Sequence[Entry]) -> tuple[str, ...]:
    """Returns what a line of the terminal says of tasks that measure the same: all columns but the last."""
    facts, others = _facts(peers), len(peers) - 1
    note = "" if len(facts.harnesses) == len(HARNESSES) else f" ({', '.join(facts.harnesses)} only)"
    return (
        peers[0].name,
        f"+ {others}" if others else "",
        f"{peers[0].about}{note}",
        facts.modality,
        _brief(facts.languages),
    )


def _as_json(entry: Entry) -> dict[str, Any]:
    facts = _facts([entry])
    return {
        "name": entry.name,
        "kind": type(entry).__name__.lower(),
        "benchmark": benchmark_of(entry.name).name,
        "modality": facts.modality,
        "languages": facts.languages,
        "metric": facts.metric,
        "about": entry.about,
        "members": [] if isinstance(entry, Task) else list(entry.members),
        **{harness: in_harness(entry, harness) for harness in HARNESSES},
    }


def _print_by_benchmark(listing: Sequence[Sequence[Entry]], data_now: Callable[[Entry], str]) -> None:
    """Prints a table for each benchmark; what holds for all of its tasks stands above it."""

    def shortest(data: str) -> str:  # of several parts, what the first one that lacks something lacks
        states = data.partition(": ")[0].split(" and ")
        return next((state for state in ("error", "missing", "not downloaded") if state in states), states[0])

    width = shutil.get_terminal_size(fallback=(120, 24)).columns
    for name, group in groupby(listing, lambda peers: benchmark_of(peers[0].name).name):
        benchmark = benchmarks()[name]
        lines = [(*_line(peers), data_now(peers[0])) for peers in group]
        shared = {column for column in _MAY_BE_SHARED if len({line[column] for line in lines}) == 1}
        columns = [
            column for column in range(len(_COLUMNS)) if column not in shared and any(line[column] for line in lines)
        ]
        facts = [f"{benchmark.title} ({benchmark.paper})", f"judge: {benchmark.judge or 'none needed'}"]
        facts += [f"{_COLUMNS[column]}: {lines[0][column]}" for column in sorted(shared)]
        facts.append(f"data: {benchmark.data}")
        print(textwrap.fill(printable("; ".join(facts)), width, subsequent_indent="  "))
        table = as_text(
            [_COLUMNS[column] for column in columns],
            [[shortest(line[column]) if column == _DATA else line[column] for column in columns] for line in lines],
            width - 2,
            wraps=columns.index(_COLUMNS.index("what it measures")),
        )
        print(textwrap.indent(table, "  "))
        for reason in dict.fromkeys(line[_DATA] for line in lines if ": " in line[_DATA] and _DATA in columns):
            print(textwrap.fill(printable(f"  {reason}"), width, subsequent_indent="    "))
        print()
