"""The task files of a benchmark: each names its class and its task, and leaves the rest to them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path

from culture_tasks.benchmarks.interface import HARNESSES, Benchmark, Entry, Group, Harness, JudgedScore, Tag, Task
from culture_tasks.benchmarks.registry import cultures
from culture_tasks.harness.hooks import NAME
from culture_tasks.harness.rows import LEXICAL


def task_files(benchmark: Benchmark) -> dict[Path, str]:
    """Returns the files of a benchmark, by their path below the folder of task files."""
    entries = {entry.name: entry for entry in benchmark.entries()}
    return {
        Path(harness) / benchmark.name / f"{entry.name}.yaml": (
            _task_file(entry, harness) if isinstance(entry, Task) else _group_file(entry, entries, harness)
        )
        for harness in HARNESSES
        for entry in entries.values()
        if not isinstance(entry, Tag) and harness in entry.harnesses
    }


def _task_file(task: Task, harness: Harness) -> str:
    tag = f"tag: {task.tag}\n" if task.tag else ""  # a harness looks for it in the task's own file
    return (
        f"task: {task.name}\n{tag}class: !function culture_tasks.harness.{harness}.task.CultureTask\n"
        f"metadata:\n  {NAME}: {task.name}\n"
    )


def _group_file(group: Group, entries: Mapping[str, Entry], harness: Harness) -> str:
    task = _first_task(group, entries)
    lines = [f"group: {group.name}", "task:", *(f"  - {member}" for member in group.members)]
    metrics = {metric.name: metric for metric in task.metrics()}
    if group.means:
        lines.append("aggregate_metric_list:")
    for name in group.means:
        endings = [""]
        if harness == "lm_eval" and isinstance(metrics[name], JudgedScore):
            endings += [LEXICAL, "_coverage", "_unscored"]
        # lmms-eval takes an entry for every metric whose name holds these letters, and needs the filter's name.
        filters = ", filter_list: [none]" if harness == "lmms_eval" else ""
        by_size = str(group.weight_by_size).lower()
        lines += [
            f"  - {{metric: {name}{ending}, aggregation: mean, weight_by_size: {by_size}{filters}}}"
            for ending in endings
        ]
    return "\n".join([*lines, "metadata:", f"  version: {task.version}", ""])


def _first_task(group: Group, entries: Mapping[str, Entry]) -> Task:
    """Returns the first task of a group or of its groups, whose metrics all of them have."""
    first = entries[group.members[0]]
    assert not isinstance(first, Tag)
    return first if isinstance(first, Task) else _first_task(first, entries)


def write_task_files_of_cultures() -> None:
    """Writes the task files of own cultures into the user's cache, unless they, and nothing else, are there.

    A harness runs what a task file names, so files that anybody else left there are replaced.
    """
    for benchmark in cultures().values():
        folder = benchmark.task_files
        if _holds_only(folder, task_files(benchmark)):
            continue
        unfinished = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
        write_task_files(benchmark, unfinished)
        if folder.is_symlink():
            folder.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            unfinished.replace(folder)
        except OSError:  # another process was first
            shutil.rmtree(unfinished)


def _holds_only(folder: Path, files: Mapping[Path, str]) -> bool:
    there = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    if folder.is_symlink() or any(path.is_symlink() or not path.is_file() for path in there):
        return False
    return {path.relative_to(folder): path.read_bytes() for path in there} == {
        path: text.encode() for path, text in files.items()
    }


def write_task_files(benchmark: Benchmark, folder: Path) -> None:
    """Writes the files of a benchmark below a folder of task files, and removes what it no longer declares."""
    files = {folder / path: text for path, text in task_files(benchmark).items()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for path in stale_files(benchmark, folder):
        path.unlink()


def stale_files(benchmark: Benchmark, folder: Path) -> list[Path]:
    """Returns the files of a benchmark that are missing, have another text, or aren't declared."""
    files = {folder / path: text for path, text in task_files(benchmark).items()}
    existing = {path for harness in HARNESSES for path in (folder / harness / benchmark.name).glob("*")}
    different = [path for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    return sorted({*different, *(existing - files.keys())})
