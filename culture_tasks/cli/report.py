"""``culture-tasks report``: tables over all models and benchmarks."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from culture_tasks.cli.options import AddParser, add_repeatable, names, show, with_progress
from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.people.spotcheck_design import read_rated
from culture_tasks.report.building import Options, build
from culture_tasks.report.every_eval_ever import write_eval_logs
from culture_tasks.report.formats import in_one_step, parse_formats, write_report
from culture_tasks.report.wording import counted
from culture_tasks.results.finding import UnusedFile
from culture_tasks.settings import Settings
from culture_tasks.text_tables import plain

_DESCRIPTION = """\
Reads result and sample files of lm-eval and lmms-eval and writes tables over all models and benchmarks: with
intervals, tests on common items, the spread over cultures, and the layouts of the papers. Runs that can't be compared
(another judge, prompt, data, decoding …) are marked, and neither ranked nor tested against each other. For each model,
task and settings, the newest run counts. Options with an = may be repeated.
"""

_EPILOG = """\
examples:
  culture-tasks report results/ -o report --name '*Qwen3-VL-8B*=Qwen3-VL 8B' --published
  culture-tasks report results/ -o paper --formats latex,pdf --tables summary,care_table_3
  culture-tasks report results/ -o report --trained 'dpo-zh-*=Qwen2.5-7B-Instruct'
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("results", nargs="+", help="result or sample files, folders or patterns")
    add("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    formats = "markdown, latex, csv, json, html, png, svg, pdf, or all"
    add("--formats", default="markdown,csv,json,html", metavar="LIST", help=formats)
    add("--images", type=Path, metavar="DIR", help="folder of the samples' images, for thumbnails in the HTML")
    tables = "only these tables, by the names of their files, or patterns"
    add("--tables", type=names, default=(), metavar="LIST", help=tables)
    add("--published", action="store_true", help="show the papers' own results beside yours, marked")
    add("--prices", type=Path, metavar="FILE", help="prices of models and judges (default: CULTURE_JUDGE_PRICES)")
    trained = "set models beside their base, by patterns (needless for adapters)"
    add_repeatable(parser, "--trained", "TRAINED=BASE", trained)
    add_choices(parser)
    export = "also export the numbers as logs of Every Eval Ever, into exports/eee/"
    add("--export", choices=("eee",), help=export)
    add("--organization", default="unknown", metavar="NAME", help="who evaluated, for the export")
    add("--all-runs", action="store_true", help="also show older runs, each in a separate row")
    parser.set_defaults(handler=_run)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Adds the options that ``report`` and ``compare`` share."""
    add_repeatable(parser, "--name", "PATTERN=NAME", "name for the models or result files that match", dest="names")
    add_repeatable(parser, "--trained-on", "MODEL=DIR", "folder of preference data that models were trained on")
    rated = "correct judged scores by people's ratings: a rated.json"
    add_repeatable(parser, "--spotcheck", "FILE", rated, type=Path)
    anyway = "rank and test runs even if settings differ; they stay marked"
    parser.add_argument("--compare-anyway", action="store_true", help=anyway)


def _run(options: argparse.Namespace) -> int:
    folder: Path = options.output
    formats = parse_formats(options.formats)
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"report: {folder} is a file. Choose a folder with -o.")
    if options.images is not None and not options.images.is_dir():
        raise SettingsError(f"report: --images {options.images}: no such folder. Name the samples' images' folder.")
    report = build(options.results, choices(options), progress=partial(with_progress, label="results"))
    progress = partial(with_progress, label="figures")
    paths = write_report(report, folder, formats, options.images, progress)
    if options.export:
        with in_one_step(folder) as part:
            logs = write_eval_logs(report, part / "exports" / "eee", options.organization)
        paths += [folder / path.relative_to(part) for path in logs]
    for finding in report.findings:
        print(plain(f"{finding.text} {finding.command}"))
    runs, models = counted(len(report.runs), "run"), counted(len(report.models), "model")
    print(f"{runs} of {models}, {counted(len(report.tables), 'table')}")
    for path in paths:
        if path.parent == folder:
            show(str(path))
    if deeper := sum(path.parent != folder for path in paths):
        show(f"and {counted(deeper, 'file')} below {folder}")
    print_problems(report.problems)
    return 0


def choices(options: argparse.Namespace) -> Options:
    """Returns the options of the report; ``compare`` has some of them."""
    settings = Settings.from_environment()
    option_names = {field.name for field in fields(Options)}
    values: dict[str, Any] = {name: value for name, value in vars(options).items() if name in option_names}
    values["prices"] = read_prices(values.get("prices") or settings.prices_file)
    values["rated"] = tuple(read_rated(path) for path in options.spotcheck)
    values["min_coverage"] = settings.judge_min_coverage
    return Options(**values)


def print_problems(problems: Sequence[UnusedFile]) -> None:
    """Prints how many files were not included, by kind, each with the first of them."""
    for kind, count in Counter(problem.kind for problem in problems).items():
        first = next(problem for problem in problems if problem.kind == kind)
        more = f" (and {count - 1} more)" if count > 1 else ""
        show(f"not included: {first.path}: {kind.replace('_', ' ')}, {first.detail}{more}", sys.stderr)
