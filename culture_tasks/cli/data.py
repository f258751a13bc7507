"""``culture-tasks data``: check a benchmark's data, and what else a benchmark offers for its data."""

from __future__ import annotations

import argparse
from pathlib import Path

from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, check_data, entries, reading_data, tasks_below
from culture_tasks.cli.options import AddParser
from culture_tasks.errors import SettingsError, nearest
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text, printable, write_csv


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser()
    parser.set_defaults(handler=_print_text)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    checking = actions.add_parser(
        "check",
        help="report what is in the data and what is wrong with them",
        description="Reads all data of a benchmark and compares them with its paper. Exit status 1: tasks can't run.",
    )
    checking.add_argument("benchmark", choices=sorted(benchmarks()), help="the benchmark whose data are checked")
    checking.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")
    checking.set_defaults(handler=_check)
    overlapping = actions.add_parser(
        "overlap",
        help="list the questions that benchmarks share",
        description="Compares the questions of tasks of several benchmarks: how many are the same, and how many are "
        "much alike (at least 70 %% of their words and pairs of words).",
    )
    overlapping.add_argument("tasks", nargs="+", metavar="TASK", help="tasks or groups of at least two benchmarks")
    overlapping.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the pairs of questions as CSV")
    overlapping.set_defaults(handler=_overlap)
    for benchmark in benchmarks().values():
        benchmark.add_data_commands(actions)


def _print_text(options: argparse.Namespace) -> int:
    """Prints the text that an action of a benchmark returns."""
    print(printable(options.make_text(options)))
    return 0


def _check(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    with reading_data(settings):
        report = check_data(options.benchmark, options.data or settings.data_folder)
    print(printable(report.text()))
    return 0 if report.usable else 1


def _overlap(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.overlaps import shared_questions

    if unknown := next((name for name in options.tasks if name not in entries()), None):
        raise SettingsError(
            f"data overlap: no task or group {unknown!r}.{nearest(unknown, entries())} `culture-tasks tasks` lists "
            "them."
        )
    tasks = {task.name: task for name in options.tasks for task in tasks_below(name)}
    if len({benchmark_of(name).name for name in tasks}) < 2:
        raise SettingsError("data overlap: the tasks are of one benchmark. Name tasks of at least two.")
    settings = Settings.from_environment()
    with reading_data(settings):
        found = list(shared_questions(list(tasks.values()), settings))
    rows = [
        [*each.benchmarks, *map(str, each.sizes), str(each.same), str(len(each.questions) - each.same)]
        for each in found
    ]
    print(as_text(["first", "second", "questions", "questions", "the same", "much alike"], rows))
    if options.output is not None:
        pairs = sorted((pair for each in found for pair in each.questions), key=lambda pair: -pair.similarity)
        columns = ["similarity", "first task", "first item", "first", "second task", "second item", "second"]
        write_csv(options.output, columns, [[pair.similarity, *pair.first, *pair.second] for pair in pairs])
    return 0
