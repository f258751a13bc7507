"""``culture-tasks spotcheck``: people rate a random part of the responses, and correct the judge's score."""

from __future__ import annotations

import argparse
import textwrap
from datetime import UTC, datetime
from pathlib import Path

from culture_tasks.cli.options import AddParser, add_json, add_tasks, at_least, print_json, show, writing
from culture_tasks.errors import SettingsError
from culture_tasks.people.spotcheck_design import DESIGN_FILE, RATED_FILE, read_design, read_ratings, write
from culture_tasks.people.spotcheck_draw import draw, judged_tasks, write_sheets
from culture_tasks.report.building import Options, checked_scores
from culture_tasks.report.model import Number, Table
from culture_tasks.report.tables.people import checked_by_people
from culture_tasks.report.wording import NOTHING, headers, interval, number
from culture_tasks.text_tables import as_text, plain

_DESCRIPTION = """\
Has people rate a random part of a model's responses, and corrects the judge's score by their ratings: with an interval
that allows for the judge's bias and for rare gross errors. First draw, then give the sheet to raters, then score.
"""

_DRAW = """\
Draws responses at random, from each culture of each task, the same items for all models, and writes a sheet for people:
a page that needs no network, and a CSV file, neither of which names the judge or the model. A larger -n with the same
seed and results keeps all earlier responses. After `rejudge --sample` it draws from that sample. Keep spotcheck.json,
which says what was drawn, to yourself.
"""

_SCORE = """\
Reads the ratings that people returned, and shows the score corrected by them and how well judge and people agree, by
culture. Writes rated.json beside the draw, from which `culture-tasks report RESULTS --spotcheck` makes the same tables.
"""

_EPILOG = """\
examples:
  culture-tasks spotcheck draw results/ -n 100 --tasks 'care_*' -o sheet
  culture-tasks spotcheck score sheet ratings_amina.csv ratings_li.csv --results results/
  culture-tasks report results/ -o report --spotcheck sheet
"""


def register(add_parser: AddParser) -> None:
    """Adds the command with its two steps."""
    steps = add_parser(description=_DESCRIPTION, epilog=_EPILOG).add_subparsers(
        title="steps", metavar="STEP", required=True
    )
    draw = steps.add_parser("draw", help="draw responses and write the sheet", description=_DRAW)
    draw.add_argument("results", nargs="+", help="result or sample files, folders or patterns")
    draw.add_argument("-n", "--number", type=at_least(1), required=True, metavar="N", help="how many responses to draw")
    draw.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    add_tasks(draw, "only these tasks (default: all)")
    draw.add_argument("--seed", type=int, default=0, help="seed of the draw (default: %(default)s)")
    raters = "write sheets for this many raters (default: 1)"
    draw.add_argument("--raters", type=at_least(1), default=1, metavar="N", help=raters)
    shared = "responses that every rater gets; the others go to one rater each (default: all responses)"
    draw.add_argument("--shared", type=at_least(0), metavar="N", help=shared)
    draw.add_argument("--images", type=Path, metavar="DIR", help="folder of the samples' images, to show them")
    add_json(draw)
    draw.set_defaults(handler=_draw)
    score = steps.add_parser("score", help="correct the judge's score by the ratings", description=_SCORE)
    score.add_argument("sheet", type=Path, help="the folder that the sheet was drawn to, or its spotcheck.json")
    score.add_argument("ratings", nargs="+", type=Path, help="CSV files that the raters returned")
    results = "the results that the sheet was drawn from"
    score.add_argument("--results", nargs="+", required=True, metavar="RESULTS", help=results)
    add_json(score)
    score.set_defaults(handler=_score)


def _draw(options: argparse.Namespace) -> int:
    folder: Path = options.output
    if options.images is not None and not options.images.is_dir():
        raise SettingsError(f"spotcheck: --images {options.images}: no such folder. Name the folder of the images.")
    if (folder / DESIGN_FILE).exists():
        raise SettingsError(
            f"spotcheck: {folder} has the sheet of another draw. Choose another folder with -o, so that no ratings "
            "are lost."
        )
    populations = judged_tasks(options.results, options.tasks)
    design, responses = draw(populations, options.number, seed=options.seed, now=datetime.now(UTC))
    chosen = {"raters": options.raters, "shared": options.shared, "images": options.images}
    with writing("spotcheck", folder):
        folder.mkdir(parents=True, exist_ok=True)
        paths = [*write_sheets(design, responses, folder, **chosen), folder / DESIGN_FILE]
        write(design, folder / DESIGN_FILE)
    if options.json:
        print_json({"populations": design.populations, "files": paths})
        return 0
    rows = [
        [source.model, source.task, stratum.culture, str(stratum.size), str(stratum.drawn)]
        for source in design.populations
        for stratum in source.strata
    ]
    print(as_text(("model", "task", "culture", "responses", "drawn"), rows))
    for path in paths:
        show(str(path))
    if options.images is None and any(response.image for response in responses):
        print("The questions are about images, which the sheet lacks: to show them, draw with --images DIR.")
    return 0


def _score(options: argparse.Namespace) -> int:
    ratings = read_ratings(read_design(options.sheet), options.ratings)
    units = checked_scores(options.results, Options(rated=(ratings,)))
    tables, _ = checked_by_people((ratings,), units)
    sheet: Path = options.sheet
    file = (sheet if sheet.is_dir() else sheet.parent) / RATED_FILE
    with writing("spotcheck", file):
        write(ratings, file)
    if options.json:
        print_json({"rated": file, "tables": tables})
        return 0
    print("\n\n".join(_as_text(table) for table in tables if table.rows))
    show(f"\n{file}")
    return 0


def _as_text(table: Table) -> str:
    """Returns a table for the terminal, with its notes and the reasons for missing numbers."""

    def text(cell: Number | None) -> str:
        return "" if cell is None else f"{number(cell.value, cell.scale)} ({interval(cell)})".replace(" ()", "")

    rows = [[*texts, *(text(column.cells.get(row)) for column in table.columns)] for row, texts in table.rows.items()]
    missing = dict.fromkeys(
        f"{NOTHING} {' '.join(texts)}: {cell.note}"
        for row, texts in table.rows.items()
        for column in table.columns
        if (cell := column.cells.get(row)) and cell.note
    )
    notes = (textwrap.fill(plain(note), 118) for note in (*missing, *table.notes))
    return "\n".join([table.title, as_text(headers(table), rows), *notes])
