"""``culture-tasks culture``: make data of a culture that no benchmark has, and build a benchmark of them."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.cli.options import AddParser, add_json, at_least, names, print_json, show, writing
from culture_tasks.text_tables import as_text, write_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from culture_tasks.benchmarks.culture_forms import Figure
    from culture_tasks.cultures.project import Project
    from culture_tasks.settings import Settings

    _Actions = argparse._SubParsersAction[argparse.ArgumentParser]


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    actions = add_parser().add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_new(actions)
    _add_sheets(actions)
    _add_collect(actions)
    draft = _action(
        actions,
        _draft,
        "have a model fill in a step: drafts to be rewritten by people, or responses to be rated",
        "Asks a model for the rows of a step that it hasn't filled in. Each reply is saved as it comes; a second call "
        "asks only for what is missing.",
    )
    draft.add_argument("--step", required=True, help="the step")
    draft.add_argument("--model", required=True, help="openai:NAME, at the endpoint that OPENAI_BASE_URL names")
    draft.add_argument("-n", "--number", type=at_least(1), metavar="N", help="ask for at most N rows (default: all)")
    agree = _action(
        actions,
        _agree,
        "show agreement, and the rows that need another person or fall out",
        "Prints the progress of each step, the paper's measures of agreement beside its numbers, and the rows that "
        "fall out, with the reasons.",
    )
    agree.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the rows that fall out as CSV")
    build = _action(
        actions,
        _build,
        "build the benchmark of the culture",
        "Writes data, task files, data card and hashes into the project's folder 'built', which CULTURE_TASKS_CULTURES "
        "makes known to both harnesses.",
    )
    build.add_argument("--zip", type=Path, metavar="FILE", help="write the culture as a zip file too")


def _add_new(actions: _Actions) -> None:
    summary = "make the folder of a project: decisions with their defaults, labels to translate, a guide for the group"
    new = actions.add_parser("new", help=summary, description=f"{summary.capitalize()}.")
    new.add_argument("name", metavar="NAME", help="name of the culture in tasks, such as korea")
    new.add_argument("--like", required=True, metavar="BENCHMARK", help="the benchmark whose steps make the data")
    new.add_argument("--language", required=True, metavar="CODE", help="the culture's language (ISO 639), such as ko")
    place = "its country or region (ISO 3166), such as KR (default: the country with the name)"
    new.add_argument("--place", default="", metavar="CODE", help=place)
    new.add_argument("--way", help="which way, where the benchmark has several (default: its first)")
    new.add_argument("--title", default="", help="its name for readers (default: made of the name)")
    new.add_argument("-o", "--output", type=Path, metavar="DIR", help="the folder (default: NAME)")
    new.set_defaults(handler=_new)


def _add_sheets(actions: _Actions) -> None:
    sheets = _action(
        actions,
        _sheets,
        "write the sheets of a step: a page and a CSV file for each person",
        "Gives every row to as many people as it needs, evenly, and writes a page that needs no network and a CSV file "
        "for each. A later call gives out only rows that nobody has filled in or has on a sheet.",
    )
    sheets.add_argument("--step", required=True, help="the step")
    sheets.add_argument("-o", "--output", type=Path, metavar="DIR", help="folder to write to (default: PROJECT/sheets)")
    people = "write the sheets of these people only; the others' shares are left for them"
    sheets.add_argument("--people", type=names, default=(), metavar="LIST", help=people)
    most = "most rows on a sheet; rows that belong together are never split"
    sheets.add_argument("--most", type=at_least(1), metavar="N", help=most)
    again = "also give people the rows of earlier sheets that they haven't returned, such as lost ones"
    sheets.add_argument("--again", action="store_true", help=again)
    add_json(sheets)


def _add_collect(actions: _Actions) -> None:
    collect = _action(
        actions,
        _collect,
        "read the sheets that came back",
        "Reads files that pages saved, and CSV files. Every row is new, skipped, the same as before, empty, in "
        "conflict with an earlier one, or refused with a reason; conflicts and refusals make the exit status 1. A copy "
        "of each file is kept in PROJECT/collected.",
    )
    collect.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files that came back")
    replace = "where a person filled in a row differently before, take the entry in these files"
    collect.add_argument("--replace", action="store_true", help=replace)
    output = "write the rows that were refused or are in conflict as CSV"
    collect.add_argument("-o", "--output", type=Path, metavar="FILE", help=output)
    add_json(collect)


def _action(
    actions: _Actions, handler: Callable[[argparse.Namespace], int], summary: str, description: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(handler.__name__.removeprefix("_"), help=summary, description=description)
    parser.add_argument("project", type=Path, metavar="PROJECT", help="folder of the project")
    parser.set_defaults(handler=handler)
    return parser


def _project_and_settings(options: argparse.Namespace) -> tuple[Project, Settings]:
    from culture_tasks.cultures.project import Project
    from culture_tasks.settings import Settings

    return Project.open(options.project), Settings.from_environment()


def _new(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.new_project import create

    folder = options.output or Path(options.name)
    with writing("culture new", folder):
        project = create(
            options.name,
            like=options.like,
            language_code=options.language,
            place_code=options.place,
            way=options.way,
            title=options.title,
            folder=folder,
        )
    show(f"{folder}: {project.config.title}, like {options.like}, with the steps {', '.join(project.steps)}")
    show(f"Next: read {folder / 'README.md'}, and decide in {folder / 'culture.toml'}")
    return 0


def _sheets(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.giving_out import give_out

    project, settings = _project_and_settings(options)
    folder = options.output or options.project / "sheets"
    state = project.state(settings.data_folder)
    problems = project.form.check(state)
    with writing("culture sheets", folder):
        assignment = give_out(
            project, state, options.step, folder, people=options.people, most=options.most, again=options.again
        )
    if options.json:
        sheets = [{"name": sheet.name, "person": sheet.person, "rows": len(sheet.rows)} for sheet in assignment.sheets]
        print_json({**assignment._asdict(), "sheets": sheets, "folder": folder, "problems": problems})
        return 0
    for problem in problems:
        show(f"problem: {problem}")
    if assignment.sheets:
        rows = [[sheet.person, str(len(sheet.rows)), str(folder / f"{sheet.name}.html")] for sheet in assignment.sheets]
        print(as_text(["person", "rows", "page (and CSV file)"], rows))
    elif project.step(options.step).rows(state):
        print(f"nothing to give out: no row of {options.step} is open for anybody.")
    else:
        print(f"nothing to give out: {options.step} has no rows yet. `culture agree` says how far earlier steps are.")
    if assignment.out:
        print(f"{assignment.out} places in rows are out on earlier sheets (--again writes them once more)")
    if assignment.later:
        print(f"{assignment.later} places in rows are left for a later call")
    if assignment.short:
        show(
            f"{len(assignment.short)} rows need people who aren't there ({sum(assignment.short.values())} places), "
            f"such as {', '.join(list(assignment.short)[:5])}: enter more people under [people] in culture.toml"
        )
    if assignment.labels:
        labels = f"{assignment.labels} labels are new in labels.json"
        print(f"{labels}: translate them, and write the sheets again, if you like")
    return 0


def _collect(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.collecting import OUTCOMES, collect

    project, settings = _project_and_settings(options)
    with writing("culture collect", options.project):
        collection = collect(project, options.files, settings.data_folder, overwrite=options.replace)
    failures = [line for line in collection.lines if line.outcome in ("refused", "conflict")]
    if options.output is not None:
        with writing("culture collect", options.output):
            write_csv(
                options.output, list(failures[0]._fields) if failures else ["file"], [list(line) for line in failures]
            )
    if options.json:
        notes = [{"file": file, "note": note} for file, note in collection.notes]
        print_json({"rows": [line._asdict() for line in collection.lines], "notes": notes})
        return 1 if failures else 0
    for file, note in collection.notes:
        show(f"{file}: {note}")
    for line in failures[:50]:
        place = ", ".join(filter(None, (line.file, line.place, line.row, line.person)))
        show(f"{place}: {line.outcome}: {line.reason}")
    if len(failures) > 50:
        print(f"… and {len(failures) - 50} more (--output FILE lists all)")
    rows = [[file, *(str(count[outcome]) for outcome in OUTCOMES)] for file, count in collection.counts().items()]
    print(as_text(["file", *OUTCOMES], rows))
    return 1 if failures else 0


def _draft(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from culture_tasks.cultures.drafting import draft

    project, settings = _project_and_settings(options)
    with tqdm(desc="rows", unit="row", file=sys.stderr, disable=None) as bar:
        drafts = draft(project, options.step, options.model, settings, most=options.number, progress=bar.update)
    print(f"{drafts.saved} rows saved, {drafts.before} were there before, {len(drafts.failed)} failed")
    for row, reason in drafts.failed[:20]:
        show(f"  {row}: {reason}")
    if drafts.failed:
        print("Call again to ask for the rows that failed.")
    return 1 if drafts.failed and not drafts.saved else 0


def _agree(options: argparse.Namespace) -> int:
    from culture_tasks.benchmarks.culture_forms import NothingBuiltError
    from culture_tasks.cultures.gold import gold_shares

    project, settings = _project_and_settings(options)
    state = project.state(settings.data_folder)
    for problem in (problems := list(project.form.check(state))):
        show(f"problem: {problem}")
    table, needs = [], []
    for step in project.steps.values():
        rows = [(row, state.entries_of(step.name, row.name)) for row in step.rows(state)]
        missing = [row.people - len(entries) for row, entries in rows if step.by_people and row.people > len(entries)]
        entry_count, skip_count, draft_count = (
            sum(len(entries_of(step.name, row.name)) for row, _ in rows)
            for entries_of in (state.entries_of, state.skips, state.model_entries)
        )
        numbers = (len(rows), len(rows) - len(missing), len(missing), entry_count, skip_count, draft_count)
        table.append([step.name, *map(str, numbers)])
        if missing and entry_count:
            needs.append(f"{step.name}: {len(missing)} rows need {sum(missing)} more entries by people")
    print(as_text(["step", "rows", "complete", "open", "entries", "skipped", "by models"], table))
    for line in needs:
        print(line)
    if gold := gold_shares(project, state):
        print()
        shares = [[share.step, share.person, f"{share.right} of {share.n}"] for share in gold]
        print(as_text(["gold questions", "person", "right"], shares))
    if figures := project.form.agreement(state):
        print()
        print(as_text(["agreement", "of", "n", "value", "95 %", "paper", "floor"], _figures(figures)))
    print()
    notes: list[str] = []
    try:
        built = project.form.build(state)
        counts, dropped = [f"{name}: {number}" for name, number in built.counts.items()], built.dropped
        notes = [f"note: {mark}" for mark in built.marks]
    except NothingBuiltError as error:
        problems.append(str(error))
        counts, dropped = [f"nothing can be built yet: {error}"], error.dropped
    rest = [f"… and {len(dropped) - 20} more rows (--output FILE lists all)"] if len(dropped) > 20 else []
    for line in (*counts, *(f"left out: {row.step}, {row.row}: {row.reason}" for row in dropped[:20]), *rest, *notes):
        show(line)
    if options.output is not None:
        with writing("culture agree", options.output):
            write_csv(options.output, ["step", "row", "reason"], [list(row) for row in dropped])
    return 1 if problems else 0


def _figures(figures: Sequence[Figure]) -> list[list[str]]:
    rows = []
    for figure in figures:
        value, low, high, n = figure.number[:4]
        interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        floor = "" if figure.floor is None else f"{figure.floor:g}{', not reached' if figure.passes is False else ''}"
        number = figure.missing or f"{value:.3f}"
        rows.append([figure.name, figure.group, str(n), number, interval, figure.printed, floor])
    return rows


def _build(options: argparse.Namespace) -> int:
    from culture_tasks.cultures.building import DROPPED, build, pack

    project, settings = _project_and_settings(options)
    building = build(project, settings)
    show(f"{building.culture.folder}: {building.culture.benchmark}, with the tasks {', '.join(building.tasks)}")
    for name, number in building.built.counts.items():
        show(f"  {name}: {number}")
    if building.built.dropped:
        show(f"  left out: {len(building.built.dropped)} rows, in {options.project / DROPPED}")
    for mark in building.culture.marks:
        show(f"note: {mark}")
    for heading, text in project.config.card.items():
        if not text.strip():
            show(f"note: the data card says nothing about {heading}. Fill it in under [card].")
    if options.zip is not None:
        with writing("culture build", options.zip):
            pack(building.culture, options.zip)
    show(f"Next: CULTURE_TASKS_CULTURES={options.project} culture-tasks data check {building.culture.benchmark}")
    return 0
