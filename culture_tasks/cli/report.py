"""``culture-tasks report``: tables over all models and benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.cli.options import names, share
from culture_tasks.errors import SettingsError
from culture_tasks.report.html import SAMPLES_PER_CELL
from culture_tasks.text_tables import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culture_tasks.cli.main import Commands
    from culture_tasks.report.building import Options
    from culture_tasks.report.model import Report
    from culture_tasks.results.finding import UnusedFile

_DESCRIPTION = """\
Reads result and sample files of lm-eval and lmms-eval, as files, folders (at any depth) or patterns, and writes tables
over all models and benchmarks: with intervals, tests on common items, the spread over cultures, and the layouts of the
papers. Runs that can't be compared (another judge, prompt, chat template, version, data, decoding or limit, or low
coverage) are marked, and neither ranked nor tested against each other. For each model, task and settings, the newest
run counts.
"""

_EPILOG = """\
examples:
  culture-tasks report results/ -o report
  culture-tasks report 'runs/**/*results*.json' -o report --formats html,latex --published \\
      --name '*Qwen3-VL-8B*=Qwen3-VL 8B' --name '*/sft/checkpoint-300=ours'
  culture-tasks report results/ -o paper --formats latex,pdf --tables summary,care_table_3
  culture-tasks report results/ -o report --trained 'dpo-zh-*=Qwen2.5-7B-Instruct'
"""


def register(commands: Commands) -> None:
    """Adds the command ``report``."""
    parser = commands.add_parser(
        "report",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", nargs="+", help="result or sample files, folders or patterns")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.add_argument(
        "--formats",
        default="markdown,csv,json,html",
        metavar="LIST",
        help="markdown, latex, csv, json, html, png, svg, pdf, or all (default: %(default)s)",
    )
    parser.add_argument(
        "--images", type=Path, metavar="DIR", help="folder of the samples' images, for thumbnails in the HTML"
    )
    parser.add_argument(
        "--samples-per-cell",
        type=_samples,
        default=SAMPLES_PER_CELL,
        metavar="N",
        help="maximum number of samples of each run behind a cell of the HTML, failures first and a fair draw beside "
        "them; 0 for none, all for all of them in files beside the page (default: %(default)s)",
    )
    _add_shown(parser.add_argument_group("what to show"))
    _add_beside(parser.add_argument_group("what to set beside the scores"))
    add_choices(parser)
    parser.set_defaults(handler=run)


def _add_shown(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument(
        "--tables",
        type=names,
        default=(),
        metavar="LIST",
        help="only these tables, by the names of their files in csv/ and latex/, or patterns: summary,care_table_*",
    )
    shown.add_argument(
        "--columns",
        type=names,
        default=(),
        metavar="LIST",
        help="only these columns, by their keys in report.json, their headers, or patterns: mean,'Chinese *'",
    )
    shown.add_argument("--published", action="store_true", help="show the papers' own results beside yours, marked")
    shown.add_argument(
        "--other-metrics",
        action="append",
        default=[],
        metavar="PATTERN",
        help="of the harnesses' own tasks, show these metrics too and not only the one that counts: acc_norm, "
        "'mmlu*:*', or '*' for all; may be repeated",
    )
    shown.add_argument(
        "--other-tasks-in-mean", action="store_true", help="put the harnesses' own tasks into the mean, too"
    )
    shown.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help='what models and judges cost, as JSON: {"currency": "USD", "models": {"gpt-4o": {"input": 2.5, "output": '
        '10}, "Qwen/*": {"hour": 2}}}, per million tokens or per hour; names may be patterns (default: '
        "CULTURE_JUDGE_PRICES, or the list prices that are part of this package)",
    )


def _add_beside(beside: argparse._ArgumentGroup) -> None:
    beside.add_argument(
        "--trained",
        action="append",
        default=[],
        metavar="TRAINED=BASE",
        help="set a trained model beside its base, by patterns of models; if several fit TRAINED, or BASE, they count "
        "as runs of one model; may be repeated. A run with an adapter (peft=, lora_local_path=) is shown beside the "
        "model below it without this",
    )
    beside.add_argument(
        "--spotcheck",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="show the judge's scores corrected by people: the rated.json of `culture-tasks spotcheck score`, or its "
        "folder; may be repeated",
    )


def add_choices(parser: argparse.ArgumentParser, *, all_runs: bool = True) -> None:
    """Adds the options that ``report`` and ``compare`` share."""
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="PATTERN=NAME",
        help="name for the models or result files that match a pattern; may be repeated",
    )
    parser.add_argument(
        "--trained-on",
        action="append",
        default=[],
        metavar="MODEL=DIR",
        help="folder of `culture-tasks preferences build` that the models matching a pattern were trained on, needed "
        "where its manifest.json isn't found beside their weights: scores on tests that are among the data are "
        "marked, and neither ranked nor tested; may be repeated",
    )
    parser.add_argument(
        "--compare-anyway", action="store_true", help="also rank and test runs that can't be compared; they stay marked"
    )
    parser.add_argument(
        "--min-coverage",
        type=share,
        metavar="SHARE",
        help="mark numbers with a smaller share of scored verdicts (default: CULTURE_JUDGE_MIN_COVERAGE)",
    )
    if all_runs:
        parser.add_argument("--all-runs", action="store_true", help="also show older runs, each in its own row")


def run(options: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        CultureTasksError: If there is nothing to report, or an option can't be used.
    """
    from culture_tasks.report.building import build
    from culture_tasks.report.formats import parse_formats, write_report

    formats = parse_formats(options.formats)
    if options.output.exists() and not options.output.is_dir():
        raise SettingsError(f"report: {options.output} is a file. Choose a folder with -o.")
    if options.images is not None and not options.images.is_dir():
        raise SettingsError(
            f"report: --images {options.images}: no such folder. Name the folder of the samples' images."
        )
    report = build(options.results, choices(options))
    paths = write_report(report, options.output, formats, options.images, options.samples_per_cell)
    _say(report, paths, options.output)
    return 0


def choices(options: argparse.Namespace) -> Options:
    """Returns what the user asked for."""
    from culture_tasks.costs.prices import read_prices
    from culture_tasks.people.spotcheck_design import read_rated
    from culture_tasks.report.building import Options
    from culture_tasks.settings import Settings

    coverage, settings = options.min_coverage, Settings.from_environment()
    return Options(
        names=tuple(options.name),
        all_runs=getattr(options, "all_runs", False),
        compare_anyway=options.compare_anyway,
        published=getattr(options, "published", False),
        other_tasks_in_mean=getattr(options, "other_tasks_in_mean", False),
        other_metrics=tuple(getattr(options, "other_metrics", ())),
        tables=getattr(options, "tables", ()),
        columns=getattr(options, "columns", ()),
        trained=tuple(getattr(options, "trained", ())),
        trained_on=tuple(options.trained_on),
        rated=tuple(read_rated(path) for path in getattr(options, "spotcheck", ())),
        prices=read_prices(getattr(options, "prices", None) or settings.prices_file),
        min_coverage=settings.judge_min_coverage if coverage is None else coverage,
    )


def _say(report: Report, paths: list[Path], folder: Path) -> None:
    from culture_tasks.report.wording import counted

    runs, models = counted(len(report.runs), "run"), counted(len(report.models), "model")
    print(f"{runs} of {models}, {counted(len(report.tables), 'table')}")
    for path in paths:
        if path.parent == folder:
            print(printable(str(path)))
    if below := sum(path.parent != folder for path in paths):
        print(f"and {counted(below, 'file')} below {printable(str(folder))}")
    say_problems(report.problems)


def say_problems(problems: Sequence[UnusedFile]) -> None:
    """Prints which files were not used: the first ten, and the number of all."""
    kinds = Counter(problem.kind for problem in problems)
    for problem in problems[:10]:
        said = f"{problem.path}: {problem.kind.replace('_', ' ')}, {problem.detail}"
        print(f"not used: {printable(said)}", file=sys.stderr)
    if len(problems) > 10:
        counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        print(f"not used: {len(problems)} in all ({counted}); the report lists them", file=sys.stderr)


def _samples(text: str) -> int | None:
    """Returns a number of samples, None for all."""
    if text != "all" and not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number of at least 0, or all")
    return None if text == "all" else int(text)
