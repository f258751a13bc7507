"""``culture-tasks data``: check a benchmark's data, and what else a benchmark offers for its data."""

from __future__ import annotations

import argparse
from pathlib import Path

from culture_tasks.benchmarks.registry import benchmarks, reading_data
from culture_tasks.cli.options import AddParser
from culture_tasks.settings import Settings
from culture_tasks.text_tables import printable


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    checking = actions.add_parser(
        "check",
        help="report what is in the data and what is wrong with them",
        description="Reads all data of a benchmark and compares them with its paper. Exit status 1: tasks can't run.",
    )
    checking.add_argument("benchmark", choices=sorted(benchmarks()), help="the benchmark whose data are checked")
    checking.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")
    checking.set_defaults(handler=_check)
    for benchmark in benchmarks().values():
        benchmark.add_data_commands(actions)


def _check(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    with reading_data(settings):
        report = benchmarks()[options.benchmark].check(options.data or settings.data_folder)
    print(printable(report.text()))
    return 0 if report.usable else 1
