"""Runs commands one after the other in a process of its own, to save the seconds that imports of each would take.

Lines of standard input are commands, as lists in JSON: a script of TRL with its arguments, as ``trl`` launches it
(``["sft", "--config", …]``), a Python file (``["simpo.py", …]``), or this package (``["culture-tasks", …]``).
"""

from __future__ import annotations

import importlib
import json
import runpy
import sys

from culture_tasks.cli.main import main as culture_tasks


def run(program: str, *arguments: str) -> None:
    sys.stdout.write(f"\n$ {program}\n")
    sys.argv = [program, *arguments]
    if program == "culture-tasks":
        assert culture_tasks(arguments) == 0
    elif program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        script = importlib.import_module(f"trl.scripts.{program}")
        script.main(*script.make_parser().parse_args_and_config(arguments, fail_with_unknown_args=False))


if __name__ == "__main__":
    for line in sys.stdin:
        run(*json.loads(line))
