"""``culture-tasks tasks`` lists the tasks, ``culture-tasks include-path`` says where their files are."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.interface import HARNESSES, Entry, Task
from culture_tasks.benchmarks.registry import (
    benchmark_of,
    benchmarks,
    entries,
    in_harness,
    reading_data,
    task_folder,
    tasks_below,
)
from culture_tasks.cli.task_table import HEADER, alike, languages_of, rows
from culture_tasks.data.sources import availability
from culture_tasks.harness.index_probe import plug_in_problems
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, as_text, printable

if TYPE_CHECKING:
    from culture_tasks.cli.main import Commands


def register(commands: Commands) -> None:
    """Adds both subcommands."""
    parser = commands.add_parser(
        "tasks",
        description="Lists the tasks by benchmark. Tasks that measure the same, such as a group's, are one line.",
    )
    parser.add_argument("--all", action="store_true", help="list every task and group on a separate line")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print one Markdown table with metrics and judges")
    form.add_argument("--json", action="store_true", help="print every task and group as JSON")
    parser.set_defaults(handler=_list)
    parser = commands.add_parser(
        "include-path",
        description="Prints the folder of our tasks, to give to a harness's --include_path. For example: "
        'lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES, help="the harness that the tasks are for")
    parser.set_defaults(handler=_print_folder)


def _print_folder(options: argparse.Namespace) -> int:
    print(task_folder(options.harness))
    return 0


def _list(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()

    def data_now(entry: Entry) -> str:
        sources = dict.fromkeys(source for task in tasks_below(entry.name) for source in task.data.sources)
        with reading_data(settings):
            return availability(tuple(sources), settings.data_folder)

    if options.json:
        print(
            json.dumps([_as_json(entry, data_now(entry)) for entry in entries().values()], ensure_ascii=False, indent=1)
        )
        return 0
    together = [[entry] for entry in entries().values()] if options.all else alike()
    if options.markdown:
        print(as_markdown((*HEADER, "data now"), rows(data_now, together)))
    else:
        _print_by_benchmark(together, data_now)
    for problem in plug_in_problems():
        print(f"\n{problem}")
    return 0


def _print_by_benchmark(together: Sequence[Sequence[Entry]], data_now: Callable[[Entry], str]) -> None:
    """Prints a table for each benchmark; what holds for all of its tasks stands above it."""
    width = shutil.get_terminal_size(fallback=(120, 24)).columns
    for name, group in groupby(together, lambda alike: benchmark_of(alike[0].name).name):
        benchmark = benchmarks()[name]
        lines = [(*_line(alike), data_now(alike[0])) for alike in group]
        shared = {at for at in _MAY_BE_SHARED if len({line[at] for line in lines}) == 1}
        kept = [at for at in range(len(_COLUMNS)) if at not in shared and any(line[at] for line in lines)]
        said = [f"{benchmark.title} ({benchmark.paper})", f"judge: {benchmark.judge or 'none needed'}"]
        said += [f"{_COLUMNS[at]}: {lines[0][at]}" for at in sorted(shared)]
        said.append(f"data: {benchmark.data}")
        print(textwrap.fill(printable("; ".join(said)), width, subsequent_indent="  "))
        table = as_text(
            [_COLUMNS[at] for at in kept],
            [[_short(line[at]) if at == _DATA else line[at] for at in kept] for line in lines],
            width - 2,
            wraps=kept.index(_COLUMNS.index("what it measures")),
        )
        print(textwrap.indent(table, "  "))
        reasons = dict.fromkeys(line[_DATA] for line in lines if ": " in line[_DATA] and _DATA in kept)
        for reason in reasons:
            print(textwrap.fill(printable(f"  {reason}"), width, subsequent_indent="    "))
        print()


_COLUMNS = ("task", "more", "what it measures", "input", "language", "harnesses", "data now")
_DATA = _COLUMNS.index("data now")
_MAY_BE_SHARED = tuple(_COLUMNS.index(name) for name in ("input", "language", "harnesses", "data now"))
_MOST_LANGUAGES = 4


def _short(data: str) -> str:
    """Returns in a word or two where the data are; of several parts, what the first one that lacks something lacks."""
    states = data.partition(": ")[0].split(" and ")
    return next((state for state in ("error", "missing", "not downloaded") if state in states), states[0])


def _line(together: Sequence[Entry]) -> tuple[str, ...]:
    """Returns what a line says of tasks that measure the same: all columns but the last."""
    tasks = [task for entry in together for task in tasks_below(entry.name)]
    languages = languages_of(tasks)
    harnesses = [name.replace("_", "-") for name in HARNESSES if any(in_harness(entry, name) for entry in together)]
    return (
        together[0].name,
        f"+ {len(together) - 1}" if len(together) > 1 else "",
        together[0].about,
        "image+text" if any(task.shows_images for task in tasks) else "text",
        ", ".join(languages) if len(languages) <= _MOST_LANGUAGES else f"{len(languages)} languages",
        "both" if len(harnesses) == len(HARNESSES) else ", ".join(harnesses),
    )


def _as_json(entry: Entry, data_now: str) -> dict[str, Any]:
    tasks = tasks_below(entry.name)
    return {
        "name": entry.name,
        "kind": type(entry).__name__.lower(),
        "benchmark": benchmark_of(entry.name).name,
        "modality": "image+text" if any(task.shows_images for task in tasks) else "text",
        "languages": languages_of(tasks),
        "metric": tasks[0].metric,
        "about": entry.about,
        "members": [] if isinstance(entry, Task) else list(entry.members),
        "lm_eval": in_harness(entry, "lm_eval"),
        "lmms_eval": in_harness(entry, "lmms_eval"),
        "data_now": data_now,
    }
