"""``culture-tasks include-path``: the folder of our task files."""

from __future__ import annotations

import argparse
from typing import Any

from culture_tasks.benchmarks.interface import HARNESSES
from culture_tasks.benchmarks.registry import task_folder


def register(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "include-path",
        help="print the folder to give to a harness's --include_path",
        description='For example: lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    print(task_folder(options.harness))
    return 0
