"""Writes the task files of all benchmarks of this repository anew from what the benchmarks declare.

python tools/task_yamls.py            # write
python tools/task_yamls.py --check    # exit 1 if a file is stale
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.harness.task_files import stale_files, write_task_files

FOLDER = Path(__file__).parents[1] / "task_yamls"


def main() -> int:
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    bundled = [benchmark for benchmark in benchmarks().values() if benchmark.task_files is None]
    if not options.check:
        for benchmark in bundled:
            write_task_files(benchmark, FOLDER)
        return 0
    stale = [path for benchmark in bundled for path in stale_files(benchmark, FOLDER)]
    for path in stale:
        sys.stderr.write(f"{path} is stale: run `make task-files`.\n")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
