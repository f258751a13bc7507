"""Which of our names a harness knows: its index of tasks is built as its own commands build it, and looked at.

``python -m culture_tasks.harness.index_probe lmms_eval`` does so in a separate process, and writes JSON: importing a
harness takes seconds and changes settings of the process.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Harness, Tag
from culture_tasks.benchmarks.registry import entries, in_harness, task_file, task_folders
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness.task_files import write_task_files_of_cultures

GROUP = "lmms_eval.models"
"""Entry points that lmms-eval loads when it starts, ours among them."""


def main(harness: Harness) -> int:
    """Writes which of our names a harness lacks, and which it takes from another file than ours, as JSON."""
    with contextlib.redirect_stdout(sys.stderr):
        index = dict(_index(harness))
        ours = {name: entry for name, entry in entries().items() if in_harness(entry, harness)}
        missing = [name for name in ours if name not in index]
        clashes = {
            name: str(index[name])
            for name, entry in ours.items()
            if name in index and not isinstance(entry, Tag) and index[name] != task_file(entry, harness)
        }
        report: dict[str, Any] = {"names": len(ours), "missing": missing, "taken": clashes}
        if missing and harness == "lmms_eval":
            report["plug_ins"] = list(plug_in_problems())
    sys.stdout.write(json.dumps(report))
    return 0


def _index(harness: Harness) -> Iterator[tuple[str, Path | None]]:
    """Yields each name that a harness knows, with its file."""
    if harness == "lm_eval":
        from lm_eval.tasks import TaskManager

        write_task_files_of_cultures()
        manager = TaskManager(include_path=[str(folder) for folder in task_folders("lm_eval")])
        yield from ((name, entry.yaml_path) for name, entry in manager.task_index.items())
    else:
        import lmms_eval.models  # noqa: F401 - loads the plug-ins
        from lmms_eval.tasks import TaskManager

        for name, entry in TaskManager().task_index.items():
            yield name, Path(entry["yaml_path"]) if entry["yaml_path"] != -1 else None


def plug_in_problems() -> Iterator[str]:
    """Yields why lmms-eval doesn't find our tasks by itself, as far as its plug-ins are the reason.

    lmms-eval loads plug-ins in the order in which they are installed, and none after one that raises.
    """
    points = list(entry_points(group=GROUP))
    ours = next((place for place, point in enumerate(points) if point.value.startswith("culture_tasks.")), None)
    if ours is None:
        yield "lmms-eval doesn't see this package: reinstall it with `pip install .` in its checkout."
    for point in points[:ours]:
        try:
            payload = point.load()
            if callable(payload):  # as lmms-eval does
                payload()
        except Exception as error:  # noqa: BLE001 - another package's code may raise anything, and that is the finding
            yield (
                f"The lmms-eval plug-in {point.name!r} ({point.value}) fails to load: {type(error).__name__}: {error}. "
                "lmms-eval stops loading plug-ins there, so it may not know our tasks. Repair or remove it."
            )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))  # type: ignore[arg-type]
    except CultureTasksError as error:
        sys.exit(str(error))
