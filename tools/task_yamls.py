"""Writes the task files of all benchmarks of this repository anew from what the benchmarks declare."""

from __future__ import annotations

from pathlib import Path

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.harness.task_files import write_task_files

FOLDER = Path(__file__).parents[1] / "task_yamls"

if __name__ == "__main__":
    for benchmark in benchmarks().values():
        if benchmark.task_files is None:  # not from another package
            write_task_files(benchmark, FOLDER)
