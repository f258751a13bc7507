"""``culture-tasks data``: check a benchmark's data, and list the questions that benchmarks share."""

from __future__ import annotations

import argparse
from pathlib import Path

from culture_tasks.benchmarks.registry import benchmark_of, benchmarks, check_revisions
from culture_tasks.cli.options import (
    AddParser,
    add_json,
    matching_tasks,
    names,
    print_json,
    show,
    with_progress,
    writing,
)
from culture_tasks.data.checking import DataReport
from culture_tasks.errors import DataUnavailableError, SettingsError, hint
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text, write_csv


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser()
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="report what is in the data and what is wrong with them",
        description="Reads all data of benchmarks and compares them with the papers. Exit status 1: tasks can't run.",
    )
    benchmark_names = f"{', '.join(sorted(benchmarks()))}, or several (default: all)"
    check.add_argument("benchmarks", nargs="*", type=_benchmark, metavar="BENCHMARK", help=benchmark_names)
    check.add_argument("--data", type=Path, help="the data folder (default: CULTURE_TASKS_DATA, else the Hub)")
    add_json(check)
    check.set_defaults(handler=_check)
    overlap = actions.add_parser(
        "overlap",
        help="list the questions that benchmarks share",
        description="Compares the questions of tasks of several benchmarks: how many are the same, and how many are "
        "much alike (at least 70 % of their words and pairs of words).",
    )
    tasks = "tasks or groups of at least two benchmarks, or patterns"
    overlap.add_argument("tasks", nargs="+", type=names, metavar="TASK", help=tasks)
    overlap.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the pairs of questions as CSV")
    add_json(overlap)
    overlap.set_defaults(handler=_overlap)


def _check(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    if options.data:
        settings = settings.model_copy(update={"data": options.data})
    check_revisions(settings)
    reports: dict[str, DataReport] = {}
    benchmark_names = list(dict.fromkeys(options.benchmarks)) or sorted(benchmarks())
    for name in with_progress(benchmark_names, "data"):
        try:
            reports[name] = benchmarks()[name].check(settings)
        except DataUnavailableError as error:
            if len(benchmark_names) == 1:
                raise
            reports[name] = DataReport(benchmarks()[name].title, problems=[str(error)])
    unusable = [name for name, report in reports.items() if not report.usable]
    if options.json:
        print_json(
            [
                {
                    "benchmark": name,
                    "usable": report.usable,
                    "counts": [count._asdict() for count in report.counts],
                    "problems": report.problems,
                }
                for name, report in reports.items()
            ]
        )
        return 1 if unusable else 0
    show("\n\n".join(report.text() for report in reports.values()))
    if len(reports) > 1:
        wrong = f"can't run: {', '.join(unusable)}" if unusable else "all can run"
        print(f"\n{len(reports)} benchmarks checked; {wrong}")
    return 1 if unusable else 0


def _benchmark(name: str) -> str:
    if name not in benchmarks():
        raise argparse.ArgumentTypeError(f"no benchmark {name!r}.{hint(name, sorted(benchmarks()))}")
    return name


def _overlap(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.overlaps import shared_questions

    tasks = matching_tasks([name for names in options.tasks for name in names], "data overlap")
    if len({benchmark_of(task.name).name for task in tasks}) < 2:
        raise SettingsError("data overlap: the tasks are of one benchmark. Name tasks of at least two.")
    settings = Settings.from_environment()
    check_revisions(settings)
    overlaps = list(shared_questions(tasks, settings))
    rows = [[*one.benchmarks, *one.sizes, len(one.same), len(one.alike)] for one in overlaps]
    if options.json:
        keys = ("first", "second", "first_questions", "second_questions", "same", "alike")
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
    else:
        header = ("first", "second", "questions", "questions", "the same", "much alike")
        print(as_text(header, [list(map(str, row)) for row in rows]))
    if options.output is not None:
        pairs = [(first, second, 1.0) for overlap in overlaps for first, second in overlap.same]
        pairs += [pair for overlap in overlaps for pair in overlap.alike]
        pairs.sort(key=lambda pair: -pair[2])
        columns = ["similarity", "first task", "first item", "first", "second task", "second item", "second"]
        with writing("data overlap", options.output):
            write_csv(options.output, columns, [(alike, *first, *second) for first, second, alike in pairs])
    return 0
