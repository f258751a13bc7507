"""``culture-tasks tasks`` lists the tasks, ``culture-tasks include-path`` says where their files are."""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from typing import Any

from culture_tasks.benchmarks.interface import HARNESSES, Entry, Task
from culture_tasks.benchmarks.registry import benchmark_of, entries, in_harness, task_folder, tasks_below
from culture_tasks.data.sources import availability
from culture_tasks.settings import Settings
from culture_tasks.task_table import HEADER, languages_of, rows
from culture_tasks.text_tables import as_markdown


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds both subcommands."""
    parser = subparsers.add_parser("tasks", help="list the tasks, and whether their data are available now")
    parser.add_argument("--json", action="store_true", help="print every task and group as JSON")
    parser.set_defaults(handler=_list)
    parser = subparsers.add_parser(
        "include-path",
        help="print the folder to give to a harness's --include_path",
        description='For example: lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES)
    parser.set_defaults(handler=_print_folder)


def _print_folder(options: argparse.Namespace) -> int:
    print(task_folder(options.harness))
    return 0


def _list(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()

    def data_now(entry: Entry) -> str:
        sources = dict.fromkeys(source for task in tasks_below(entry.name) for source in task.data.sources)
        return availability(tuple(sources), settings.data_folder)

    if options.json:
        print(
            json.dumps([_as_json(entry, data_now(entry)) for entry in entries().values()], ensure_ascii=False, indent=1)
        )
        return 0
    print(as_markdown((*HEADER, "data now"), rows(data_now)))
    _explain_missing_plugin()
    return 0


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


def _explain_missing_plugin() -> None:
    """Warns if lmms-eval won't find the tasks by itself, and names the plug-in that may be in the way."""
    installed = list(entry_points(group="lmms_eval.models"))
    if not any(point.value.startswith("culture_tasks.") for point in installed):
        print("\nlmms-eval doesn't see this package: reinstall it with `pip install culture-tasks`.")
    for point in installed:
        if not point.value.startswith("culture_tasks.") and (problem := _failure(point)):
            print(
                f"\nThe lmms-eval plug-in {point.name!r} ({point.value}) fails to load: {problem}. "
                "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it."
            )


def _failure(point: Any) -> str | None:
    try:
        payload = point.load()
        if callable(payload):  # as lmms-eval does
            payload()
    except Exception as error:  # noqa: BLE001 - another package's code may raise anything, and that is the finding
        return f"{type(error).__name__}: {error}"
    return None
