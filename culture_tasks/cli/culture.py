"""``culture-tasks culture``: check the folder of an own culture, and tell how well its people agree."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import check_revisions, culture_in
from culture_tasks.cli.options import AddParser, add_json, print_json, show
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, handler, summary, description in (
        ("check", _check, "list everything that is wrong with a culture", "Exit status 1: its tasks can't run."),
        ("agree", _agree, "tell how well its people agree", "Reads ratings.csv: item, person, and rating or label."),
    ):
        parser = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}. {description}")
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the culture's folder, with culture.toml")
        add_json(parser)
        parser.set_defaults(handler=handler)


def _check(options: argparse.Namespace) -> int:
    culture, settings = culture_in(options.folder), Settings.from_environment()
    tasks: list[str] = []
    lacking: dict[str, list[str]] = {}  # tasks by what the culture doesn't have for them, such as translations
    check_revisions(settings)
    report = culture.check(settings)
    for task in (entry for entry in culture.entries() if report.usable and isinstance(entry, Task)):
        try:
            task.data.load(settings)
            tasks.append(task.name)
        except DataError as error:
            lacking.setdefault(str(error), []).append(task.name)
    if options.json:
        counts = [count._asdict() for count in report.counts]
        print_json({"tasks": tasks, "lacking": lacking, "counts": counts, "problems": report.problems})
        return 0 if report.usable else 1
    show(report.text(len(report.problems)))
    for reason, names in lacking.items():
        show(f"can't run: {', '.join(names)}: {reason}")
    show(f"can run: {', '.join(tasks)}" if report.usable else f"problems: {len(report.problems)}")
    return 0 if report.usable else 1


def _agree(options: argparse.Namespace) -> int:
    ratings = culture_in(options.folder).ratings
    values, problems = ratings.read(options.folder, Settings.from_environment())
    if problems:
        raise DataError("\n".join(problems))
    rows = list(ratings.agreement(values))
    if options.json:
        print_json([row._asdict() for row in rows])
        return 0
    cells = [[*map(str, row[:3]), row.reason if math.isnan(row.value) else f"{row.value:.3f}"] for row in rows]
    print(as_text(["measure", "people", "items", "value"], cells))
    return 0
