"""``culture-tasks tasks``: the task table, and whether the data of each task are available now."""

from __future__ import annotations

import argparse
import json
from importlib.metadata import entry_points
from typing import Any

from culture_tasks.catalog import TaskEntry, entries, is_available
from culture_tasks.data.sources import availability
from culture_tasks.settings import Settings
from culture_tasks.task_table import HEADER, markdown, rows


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser("tasks", help="list the tasks, and whether their data are available now")
    parser.add_argument("--json", action="store_true", help="print every task and group as JSON")
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()

    def data_now(entry: TaskEntry) -> str:
        return availability(entry.sources, settings.data_folder)

    if options.json:
        print(
            json.dumps([_as_json(entry, data_now(entry)) for entry in entries().values()], ensure_ascii=False, indent=1)
        )
        return 0
    print(markdown((*HEADER, "data now"), rows(data_now)))
    _explain_missing_plugin()
    return 0


def _as_json(entry: TaskEntry, data_now: str) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "benchmark": entry.benchmark,
        "modality": entry.modality,
        "languages": list(entry.languages),
        "metric": entry.metric,
        "about": entry.about,
        "members": list(entry.members),
        "lm_eval": is_available(entry, "lm_eval"),
        "lmms_eval": is_available(entry, "lmms_eval"),
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
