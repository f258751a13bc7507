"""``culture-tasks report``: tables over all models and benchmarks."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, get_args

from culture_tasks.cli.options import AddParser, add_repeatable, at_least, names, share, show, with_progress
from culture_tasks.costs.prices import read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.people.spotcheck_design import read_rated
from culture_tasks.report.building import Options, build
from culture_tasks.report.exports.every_eval_ever import Evaluator, Relationship, write_eval_logs
from culture_tasks.report.formats import in_one_step, parse_formats, write_report
from culture_tasks.report.html import SAMPLES_PER_CELL
from culture_tasks.report.wording import counted
from culture_tasks.results.finding import Kind, UnusedFile
from culture_tasks.settings import Settings
from culture_tasks.text_tables import plain

_DESCRIPTION = """\
Reads result and sample files of lm-eval and lmms-eval and writes tables over all models and benchmarks: with
intervals, tests on common items, the spread over cultures, and the layouts of the papers. Runs that can't be compared
(another judge, prompt, data, decoding …) are marked, and neither ranked nor tested against each other. For each model,
task and settings, the newest run counts.
"""

_EPILOG = """\
examples:
  culture-tasks report results/ -o report
  culture-tasks report 'runs/**/*results*.json' -o report --formats html,latex --published \\
      --name '*Qwen3-VL-8B*=Qwen3-VL 8B' --name '*/sft/checkpoint-300=ours'
  culture-tasks report results/ -o paper --formats latex,pdf --tables summary,care_table_3
  culture-tasks report results/ -o report --trained 'dpo-zh-*=Qwen2.5-7B-Instruct'
  culture-tasks report results/ -o report --export eee --organization 'Example University'
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("results", nargs="+", help="result or sample files, folders or patterns")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder to write to")
    formats = "markdown, latex, csv, json, html, png, svg, pdf, or all (default: %(default)s)"
    parser.add_argument("--formats", default="markdown,csv,json,html", metavar="LIST", help=formats)
    images = "folder of the samples' images, for thumbnails in the HTML"
    parser.add_argument("--images", type=Path, metavar="DIR", help=images)
    samples = (
        "most samples of each run behind a cell of the HTML, failures first, then at random (default: %(default)s)"
    )
    parser.add_argument("--samples-per-cell", type=at_least(0), default=SAMPLES_PER_CELL, metavar="N", help=samples)
    contents = parser.add_argument_group("contents")
    tables = "only these tables, by the names of their files, or patterns: summary,care_table_*"
    contents.add_argument("--tables", type=names, default=(), metavar="LIST", help=tables)
    columns = "only these columns, by their headers or keys in report.json, or patterns: mean,'Chinese *'"
    contents.add_argument("--columns", type=names, default=(), metavar="LIST", help=columns)
    contents.add_argument("--published", action="store_true", help="show the papers' own results beside yours, marked")
    metrics = (
        "also show these metrics of the harnesses' own tasks: acc_norm, 'mmlu*:*', or '*' for all; may be repeated"
    )
    add_repeatable(contents, "--other-metrics", "PATTERN", metrics)
    mean = "put the harnesses' own tasks into the mean, too"
    contents.add_argument("--other-tasks-in-mean", action="store_true", help=mean)
    prices = (
        'what models and judges cost: {"currency": "USD", "models": {"gpt-4o": {"input": 2.5, "output": 10}, '
        '"Qwen/*": {"hour": 2}}}, per million tokens or hour (default: CULTURE_JUDGE_PRICES, or list prices)'
    )
    contents.add_argument("--prices", type=Path, metavar="FILE", help=prices)
    comparisons = parser.add_argument_group("comparisons")
    trained = (
        "set a trained model beside its base, by patterns of models; models that fit one pattern count as runs of one "
        "model; may be repeated. Not needed for adapters (peft=, lora_local_path=)"
    )
    add_repeatable(comparisons, "--trained", "TRAINED=BASE", trained)
    add_choices(parser)
    _add_export(parser)
    parser.add_argument("--all-runs", action="store_true", help="also show older runs, each in its own row")
    parser.set_defaults(handler=_run)


def _add_export(parser: argparse.ArgumentParser) -> None:
    export = parser.add_argument_group("export")
    target = "also export the numbers as logs of Every Eval Ever, into exports/eee/"
    export.add_argument("--export", choices=("eee",), help=target)
    organization = "who evaluated, for the export (default: %(default)s)"
    export.add_argument("--organization", default="unknown", metavar="NAME", help=organization)
    relationship = "what the organization is to the models' developers (default: %(default)s)"
    export.add_argument("--relationship", choices=get_args(Relationship), default="other", help=relationship)
    address = "address with more about the evaluation, for the export"
    export.add_argument("--source-url", default="", metavar="URL", help=address)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Adds the options that ``report`` and ``compare`` share."""
    name = "name for the models or result files that match a pattern; may be repeated"
    add_repeatable(parser, "--name", "PATTERN=NAME", name, dest="names")
    trained_on = (
        "folder of `preferences build` that the models matching a pattern were trained on, where its manifest.json "
        "isn't beside their weights: scores on tests that are among the data are only marked; may be repeated"
    )
    add_repeatable(parser, "--trained-on", "MODEL=DIR", trained_on)
    rated = (
        "correct the judge's scores by people's ratings: the rated.json of `spotcheck score`, or its folder; may be "
        "repeated"
    )
    add_repeatable(parser, "--spotcheck", "FILE", rated, type=Path)
    anyway = "rank and test runs even if settings differ; they stay marked"
    parser.add_argument("--compare-anyway", action="store_true", help=anyway)
    coverage = "mark numbers with a smaller share of scored verdicts (default: CULTURE_JUDGE_MIN_COVERAGE)"
    parser.add_argument("--min-coverage", type=share, metavar="SHARE", help=coverage)


def _run(options: argparse.Namespace) -> int:
    folder: Path = options.output
    formats = parse_formats(options.formats)
    if not re.match(r"https?://\S+$|$", options.source_url):
        raise SettingsError(
            f"report: --source-url {options.source_url}. Expected an address that begins with https://."
        )
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"report: {folder} is a file. Choose a folder with -o.")
    if options.images is not None and not options.images.is_dir():
        raise SettingsError(
            f"report: --images {options.images}: no such folder. Name the folder of the samples' images."
        )
    report = build(options.results, choices(options), progress=partial(with_progress, label="results"))
    images, most, progress = options.images, options.samples_per_cell, partial(with_progress, label="figures")
    paths = write_report(report, folder, formats, images, most, progress)
    if options.export:
        evaluator = Evaluator(options.organization, options.relationship, options.source_url)
        with in_one_step(folder) as part:
            logs = write_eval_logs(report, part / "exports" / "eee", evaluator)
        paths += [folder / path.relative_to(part) for path in logs]
    for finding in report.findings:
        if finding.first:
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
    if options.min_coverage is None:
        values["min_coverage"] = settings.judge_min_coverage
    return Options(**values)


_REPLACED: Mapping[Kind, str] = {"superseded": "older results", "duplicate": "copies"}
"""Kinds of files whose content is in the report, from another file, and their names."""


def print_problems(problems: Sequence[UnusedFile]) -> None:
    """Prints which files were not included: one for those that a newer or the same file replaces, and the first ten."""
    for kind in _REPLACED:
        of_kind = [problem for problem in problems if problem.kind == kind]
        if len(of_kind) > 1:
            example = f"{of_kind[0].path}: {of_kind[0].detail}"
            show(f"not included: {len(of_kind)} {_REPLACED[kind]}, such as {example}", sys.stderr)
            problems = [problem for problem in problems if problem.kind != kind]
    for problem in problems[:10]:
        show(f"not included: {problem.path}: {problem.kind.replace('_', ' ')}, {problem.detail}", sys.stderr)
    if len(problems) > 10:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(problem.kind for problem in problems).items())
        print(f"not included: {len(problems)} in all ({kinds}); the report lists them", file=sys.stderr)
