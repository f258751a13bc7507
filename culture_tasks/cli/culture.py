"""``culture-tasks culture``: make data of a culture that no benchmark has, and build a benchmark of them."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.cli.options import AddParser
from culture_tasks.text_tables import as_text, printable, write_csv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culture_tasks.benchmarks.cultures import Figure


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser()
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    drafting = _action(
        actions,
        "draft",
        "have a model fill in a step: drafts to be rewritten by people, or responses to be rated",
        "Asks a model for the rows of a step that it hasn't filled in. Each reply is saved as it comes; a second call "
        "asks only for what is missing.",
    )
    drafting.add_argument("--step", required=True, help="the step")
    drafting.add_argument("--model", required=True, help="openai:NAME, at the endpoint that OPENAI_BASE_URL names")
    drafting.add_argument("-n", "--number", type=int, metavar="N", help="ask for so many rows (default: all)")
    drafting.set_defaults(handler=_draft)
    agreeing = _action(
        actions,
        "agree",
        "say how well people agree, what needs another person, and what falls out",
        "Prints how far each step is, the paper's measures of agreement beside its numbers, and the rows that fall "
        "out, with the reasons.",
    )
    agreeing.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the rows that fall out as CSV")
    agreeing.set_defaults(handler=_agree)
    building = _action(
        actions,
        "build",
        "build the benchmark of the culture",
        "Writes data, task files, data card and hashes into the project's folder 'built', which CULTURE_TASKS_CULTURES "
        "makes known to both harnesses.",
    )
    building.add_argument("--zip", type=Path, metavar="FILE", help="write the culture as a zip file too")
    building.set_defaults(handler=_build)


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, about: str, description: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=about, description=description)
    parser.add_argument("project", type=Path, metavar="PROJECT", help="folder of the project")
    return parser


def _draft(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from culture_tasks.cultures.drafting import draft
    from culture_tasks.cultures.project import Project
    from culture_tasks.settings import Settings

    with tqdm(desc="rows", unit="row", file=sys.stderr, disable=None) as bar:
        drafted = draft(
            Project.open(options.project),
            options.step,
            options.model,
            Settings.from_environment(),
            most=options.number,
            progress=bar.update,
        )
    print(f"{drafted.saved} rows saved, {drafted.before} were there before, {len(drafted.failed)} failed")
    for row, reason in drafted.failed[:20]:
        print(printable(f"  {row}: {reason}"))
    if drafted.failed:
        print("Call again to ask for the rows that failed.")
    return 1 if drafted.failed and not drafted.saved else 0


def _agree(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.progress import progress
    from culture_tasks.cultures.project import Project
    from culture_tasks.errors import DataError
    from culture_tasks.settings import Settings

    project = Project.open(options.project)
    state = project.state(Settings.from_environment().data_folder)
    for problem in (problems := list(project.form.check(state))):
        print(printable(f"problem: {problem}"))
    found = list(progress(project, state))
    header = ["step", "rows", "complete", "open", "entries", "skipped", "by models"]
    rows = [
        [
            each.step.name,
            *map(str, (len(each.rows), each.complete, len(each.missing), each.entries, each.skipped, each.by_models)),
        ]
        for each in found
    ]
    print(printable(as_text(header, rows)))
    for each in found:
        if each.missing and each.entries:
            print(
                f"{each.step.name}: {len(each.missing)} rows need {sum(each.missing.values())} more entries by people"
            )
    if figures := project.form.agreement(state):
        print()
        print(printable(as_text(["agreement", "of", "n", "value", "95 %", "paper", "floor"], _figures(figures))))
    print()
    try:
        built = project.form.build(state)
    except DataError as error:
        print(printable(f"nothing can be built yet: {error}"))
        return 1
    for name, number in built.counts.items():
        print(printable(f"{name}: {number}"))
    for row in built.dropped[:20]:
        print(printable(f"left out: {row.step}, {row.row}: {row.reason}"))
    if len(built.dropped) > 20:
        print(f"… and {len(built.dropped) - 20} more rows (--output FILE lists all)")
    for mark in built.marks:
        print(printable(f"note: {mark}"))
    if options.output is not None:
        write_csv(options.output, ["step", "row", "reason"], [list(each) for each in built.dropped])
    return 1 if problems else 0


def _figures(figures: Sequence[Figure]) -> list[list[str]]:
    def shown(value: float) -> str:
        return "" if math.isnan(value) else f"{value:.3f}"

    rows = []
    for one in figures:
        interval = f"{one.low:.3f} to {one.high:.3f}" if one.low == one.low else ""
        floor = "" if one.floor is None else f"{one.floor:g}" + ("" if one.passes is not False else ", not reached")
        rows.append([one.name, one.of, str(one.n), shown(one.value) or one.missing, interval, one.printed, floor])
    return rows


def _build(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.building import DROPPED, build, pack
    from culture_tasks.cultures.project import Project
    from culture_tasks.settings import Settings

    project = Project.open(options.project)
    done = build(project, Settings.from_environment())
    print(printable(f"{done.culture.folder}: {done.culture.benchmark}, with the tasks {', '.join(done.tasks)}"))
    for name, number in done.counts.items():
        print(printable(f"  {name}: {number}"))
    if done.dropped:
        print(printable(f"  left out: {len(done.dropped)} rows, in {options.project / DROPPED}"))
    for mark in done.culture.marks:
        print(printable(f"note: {mark}"))
    for heading, text in project.config.card.items():
        if not text.strip():
            print(printable(f"note: the data card says nothing about {heading}. Fill it in under [card]."))
    if options.zip is not None:
        pack(done.culture, options.zip)
    print(
        printable(f"Next: CULTURE_TASKS_CULTURES={options.project} culture-tasks data check {done.culture.benchmark}")
    )
    return 0
