"""``culture-tasks culture``: check the folder of an own culture, and tell how well its people agree."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from culture_tasks.benchmarks.registry import culture_in, reading_data
from culture_tasks.cli.options import AddParser, add_json, print_json, show
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_text


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    for handler, summary, description in (
        (_check, "list everything that is wrong with a culture", "Exit status 1: its tasks can't run."),
        (_agree, "tell how well its people agree", "Reads ratings.csv: item, person, and rating or label."),
    ):
        name = handler.__name__.removeprefix("_")
        parser = actions.add_parser(name, help=summary, description=f"{summary.capitalize()}. {description}")
        parser.add_argument("folder", type=Path, metavar="FOLDER", help="the culture's folder, with culture.toml")
        add_json(parser)
        parser.set_defaults(handler=handler)


def _check(options: argparse.Namespace) -> int:
    culture = culture_in(options.folder)
    with reading_data(Settings.from_environment()):
        report = culture.check(None)
    tasks = [entry.name for entry in culture.entries()]
    if options.json:
        counts = [count._asdict() for count in report.counts]
        print_json({"tasks": tasks, "usable": report.usable, "counts": counts, "problems": report.problems})
    else:
        show(report.text(len(report.problems)))
        show(f"{len(report.problems)} problems" if report.problems else f"tasks: {', '.join(tasks)}")
    return 0 if report.usable else 1


def _agree(options: argparse.Namespace) -> int:
    ratings, folder = culture_in(options.folder).like.ratings, options.folder
    values, problems = ratings.read(folder)
    if problems:
        raise DataError("\n".join(problems))
    rows = list(ratings.agreement(values))
    if options.json:
        print_json([row._asdict() for row in rows])
        return 0
    cells = [[*map(str, row[:3]), row.reason if math.isnan(row.value) else f"{row.value:.3f}"] for row in rows]
    print(as_text(["measure", "people", "items", "value"], cells))
    return 0
