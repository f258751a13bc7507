"""``culture-tasks tasks``: the tasks, and where their data are now; ``culture-tasks include-path``."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Sequence

from culture_tasks.benchmarks import registry
from culture_tasks.benchmarks.interface import HARNESSES, Entry, Task
from culture_tasks.cli.options import AddParser, print_json
from culture_tasks.data.tables import availability
from culture_tasks.harness.plug_ins import plug_in_problems
from culture_tasks.settings import Settings
from culture_tasks.text_tables import printable

_MOST_LANGUAGES = 4


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(
        description="Lists the tasks by benchmark. Tasks that measure the same, such as a group's, are one line."
    )
    parser.add_argument("--json", action="store_true", help="print every task and group as JSON")
    parser.set_defaults(handler=_list)


def register_include_path(add_parser: AddParser) -> None:
    """Adds the command ``include-path``."""
    parser = add_parser(
        description="Prints the folder of our tasks, to give to a harness's --include_path. For example:\n"
        '  lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES, help="the harness that the tasks are for")
    parser.set_defaults(handler=lambda options: print(registry.task_folder(options.harness)) or 0)


def facts_of(entries: Sequence[Entry]) -> dict[str, str]:
    """Returns what tasks and groups that measure the same are like, by the columns of a table."""
    tasks = [task for entry in entries for task in registry.tasks_below(entry.name)]
    languages = list(dict.fromkeys(language for task in tasks for language in task.languages))
    harnesses = [name for name in HARNESSES if any(registry.in_harness(entry, name) for entry in entries)]
    return {
        "what it measures": entries[0].about,
        "harnesses": ", ".join(harnesses).replace("_", "-"),
        "input": "image+text" if any(task.shows_images for task in tasks) else "text",
        "language": ", ".join(languages) if len(languages) <= _MOST_LANGUAGES else f"{len(languages)} languages",
        "metric": tasks[0].metric,
    }


def families(benchmark: str) -> list[list[Entry]]:
    """Returns the tasks and groups of a benchmark; those that measure the same are together, a group before its own."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in registry.entries().values():
        if registry.benchmark_of(entry.name).name == benchmark:
            facts = facts_of([entry])
            groups.setdefault((facts["what it measures"], facts["input"], facts["metric"]), []).append(entry)
    return list(groups.values())


def _list(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    registry.check_revisions(settings)
    if options.json:
        print_json([_as_json(entry, settings) for entry in registry.entries().values()])
        return 0
    width = shutil.get_terminal_size(fallback=(120, 24)).columns
    for name, benchmark in registry.benchmarks().items():
        title = (
            f"{benchmark.title} ({benchmark.paper}); judge: {benchmark.judge or 'none needed'}; data: {benchmark.data}"
        )
        print(textwrap.fill(printable(title), width, subsequent_indent="  "))
        advice = dict[str, None]()
        for entries in families(name):
            facts, (state, _, text) = facts_of(entries), _data_now(entries[0], settings).partition(": ")
            advice |= {text: None} if text else {}
            images = ", with images" if facts["input"] == "image+text" else ""
            only = "" if "," in facts["harnesses"] else f" ({facts['harnesses']} only)"
            more = f" + {len(entries) - 1}" if len(entries) > 1 else ""
            lacking = next((word for word in ("error", "missing", "not downloaded") if word in state), state)
            about = f"{facts['what it measures']}{images}{only}; {facts['language']}; data {lacking}"
            line = printable(f"{entries[0].name}{more}: {about}")
            print(textwrap.fill(line, width, initial_indent="  ", subsequent_indent="      "))
        for text in advice:
            print(textwrap.fill(printable(text), width, initial_indent="  ", subsequent_indent="    "))
        print()
    for problem in plug_in_problems():
        print(problem)
    return 0


def _data_now(entry: Entry, settings: Settings) -> str:
    tables = dict.fromkeys(table for task in registry.tasks_below(entry.name) for table in task.data.sources)
    return availability(tables, settings)


def _as_json(entry: Entry, settings: Settings) -> dict[str, object]:
    tasks = registry.tasks_below(entry.name)
    return {
        "name": entry.name,
        "kind": type(entry).__name__.lower(),
        "benchmark": registry.benchmark_of(entry.name).name,
        "modality": facts_of([entry])["input"],
        "languages": list(dict.fromkeys(language for task in tasks for language in task.languages)),
        "metric": tasks[0].metric,
        "about": entry.about,
        "members": [] if isinstance(entry, Task) else list(entry.members),
        **{harness: registry.in_harness(entry, harness) for harness in HARNESSES},
        "data_now": _data_now(entry, settings),
    }
