"""``culture-tasks include-path``: where a harness's task files are."""

from __future__ import annotations

import argparse

from culture_tasks.benchmarks.interface import HARNESSES
from culture_tasks.benchmarks.registry import task_folder
from culture_tasks.cli.options import AddParser


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(
        description="Prints the folder of our tasks, to give to a harness's --include_path. For example:\n"
        'lm_eval run … --tasks care --include_path "$(culture-tasks include-path lm_eval)"',
    )
    parser.add_argument("harness", choices=HARNESSES, help="the harness that the tasks are for")
    parser.set_defaults(handler=_print)


def _print(options: argparse.Namespace) -> int:
    print(task_folder(options.harness))
    return 0
