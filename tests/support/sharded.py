"""Runs of a harness in shards, in this process, and what a test compares of merged files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support.written_runs import content, samples_of, write_lm_eval, write_lmms_eval

from culture_tasks.results.run_files import read_run


def run_shard(harness: str, folder: Path, tasks: list[str], shard: str, **options: Any) -> Path:
    """Runs tasks, or a shard of them where one is named, and returns the result file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CULTURE_SHARD", shard)
        if harness == "lm_eval":
            return write_lm_eval(folder, tasks, lambda prompt, run: f"{prompt[-30:]} {run}", **options)
        return write_lmms_eval(folder, tasks, **options)


def run_shards(harness: str, folder: Path, tasks: list[str], count: int, **options: Any) -> list[Path]:
    """Runs all shards, each into its own folder, and returns the result files."""
    numbers = range(1, count + 1)
    return [run_shard(harness, folder / f"shard-{n}", tasks, f"{n}/{count}", **options) for n in numbers]


def comparable(path: Path) -> dict[str, Any]:
    """Returns what a result file says of a run, without what differs between any two runs."""
    read = content(path)
    for name in ("date", "start_time", "end_time", "total_evaluation_time_seconds", "model_source", "task_hashes"):
        read.pop(name, None)
    read["config"].pop("merged_from", None)
    # As text, since NaN is unlike itself; without the addresses of functions that lm-eval writes.
    return {name: re.sub(r" at 0x[0-9a-f]+", "", json.dumps(value, sort_keys=True)) for name, value in read.items()}


def samples(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Returns the samples beside a result file by task, without lm-eval's hash of a document.

    It is over the memory address of an image, too.
    """
    tasks = read_run(path).logged_tasks()
    return {task: [sample | {"doc_hash": ""} for sample in samples_of(path, task)] for task in tasks}


def environment(**variables: str) -> dict[str, str]:
    """Returns the environment of a process that runs a harness."""
    tests = str(Path(__file__).parents[1])
    return os.environ | {"PYTHONPATH": tests, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"} | variables
