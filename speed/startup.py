"""What this package adds to the start of each harness, each time in a separate process.

lmms-eval imports the plug-in and asks it for its part of the task index; lm-eval reads every YAML of the folder that
``--include_path`` names. What the harness has imported by then is not counted. From the repository's root::

    .venv/bin/python speed/startup.py --runs 9

The two together are to stay under 0.3 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

LIMIT = 0.3

LMMS_EVAL = """
import importlib.metadata, json, time
entry_points = importlib.metadata.entry_points
importlib.metadata.entry_points = lambda **_: importlib.metadata.EntryPoints()  # the harness without any plug-in
from lmms_eval.tasks import TaskManager
import lmms_eval.models.registry_v2
importlib.metadata.entry_points = entry_points
begun = time.perf_counter()
from culture_tasks.harness.lmms_eval import plugin
plugin.register()
imported = time.perf_counter()
count = len(plugin.task_index())
done = time.perf_counter()
"""
LM_EVAL = """
import importlib.resources, json, time
from lm_eval.tasks import TaskManager
folder = importlib.resources.files("culture_tasks.task_yamls") / "lm_eval"
begun = imported = time.perf_counter()
count = len(TaskManager(include_path=str(folder), include_defaults=False).all_tasks)
done = time.perf_counter()
"""
REPORT = "print('\\n' + json.dumps([imported - begun, done - imported, count]))"


def main() -> None:
    """Measures both harnesses and prints a table."""
    parser = argparse.ArgumentParser(description="Measure what this package adds to the start of the harnesses.")
    parser.add_argument("--runs", type=int, default=5, help="processes for each harness (default: 5)")
    runs = parser.parse_args().runs
    print(f"seconds, median of {runs}")
    print(f"{'harness':<10} {'tasks':>6} {'import':>9} {'index':>9} {'together':>9} {'slowest':>9}")
    total = sum(_row(name, script, runs) for name, script in (("lmms-eval", LMMS_EVAL), ("lm-eval", LM_EVAL)))
    print(f"both: {total:.3f} s; the limit is {LIMIT} s")


def _row(name: str, script: str, runs: int) -> float:
    """Prints the row of a harness and returns the median of its time."""
    _measure(script)  # writes the byte code
    imports, indexes, counts = zip(*(_measure(script) for _ in range(runs)), strict=True)
    sums = [import_time + index_time for import_time, index_time in zip(imports, indexes, strict=True)]
    medians = " ".join(f"{statistics.median(times):9.3f}" for times in (imports, indexes, sums))
    print(f"{name:<10} {counts[0]:6} {medians} {max(sums):9.3f}")
    return statistics.median(sums)


def _measure(script: str) -> tuple[float, float, int]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", script + REPORT]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    imported, indexed, count = json.loads(done.stdout.splitlines()[-1])
    return imported, indexed, count


if __name__ == "__main__":
    main()
