"""``culture-tasks agreement``: does a judge agree with people?"""

from __future__ import annotations

import argparse
import textwrap
from contextlib import closing
from functools import partial
from pathlib import Path

from culture_tasks.benchmarks.registry import check_revisions, rubric_named, rubrics
from culture_tasks.cli import options as common
from culture_tasks.errors import SettingsError
from culture_tasks.judges import selection
from culture_tasks.people.agreement import AgreementReport, grade
from culture_tasks.people.rated_responses import load, offered
from culture_tasks.settings import Settings

_DESCRIPTION = """\
Runs a judge over responses that people have rated, and reports how well the two agree: Pearson, Spearman, Kendall's
tau-b, Krippendorff's alpha (ordinal), mean error and mean absolute error with bootstrap intervals, overall, by language
and by category. Only scored verdicts count.
"""

_EPILOG = """\
FILE is JSON, JSONL, CSV or Parquet with the columns question, reference, response and human_rating, and optionally
rubric, category, language, associated_culture, model and source. For example:
  culture-tasks agreement --judge openai:gpt-4o --sample 500 -o gpt-4o_agreement
  culture-tasks agreement --judge openai:gpt-4o-mini --data ratings.jsonl
"""


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    common.add_judge(parser, "judge, such as openai:gpt-4o or lexical (default: CULTURE_JUDGE)")
    data, metavar = next(iter(offered())), "|".join((*offered(), "FILE"))
    add("--data", default=data, metavar=metavar, help="rated responses (default: %(default)s)")
    rubric = "rubric for all rows (default: that of the row or of its category)"
    add("--rubric", metavar="NAME", choices=sorted(rubrics()), help=rubric)
    folder = "also write this text, JSON, and all ratings as CSV to this folder"
    add("-o", "--output", type=Path, metavar="DIR", help=folder)
    sample = "use N responses drawn at random (default: all)"
    add("--sample", type=common.at_least(1), metavar="N", help=sample)
    seed = "seed of the sample and of the bootstrap (default: %(default)s)"
    add("--seed", type=common.at_least(0), default=0, help=seed)
    resamples = "bootstrap resamples (default: %(default)s)"
    add("--resamples", type=common.at_least(1), default=1_000, metavar="N", help=resamples)
    common.add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    settings = Settings.from_environment()
    folder: Path | None = options.output
    if folder is not None:  # it must be writable before any verdict is paid for
        with common.writing("agreement", folder):
            folder.mkdir(parents=True, exist_ok=True)
    spec = _spec(options, settings)
    check_revisions(settings)
    rows = {name: getattr(options, name) for name in ("rubric", "sample", "seed")}
    data = load(options.data, settings, **rows)
    with closing(selection.make_judge(spec, settings)) as judge:
        graded = grade(str(spec), judge, data.responses, partial(common.with_progress, label="verdicts"))
    intervals = {"resamples": options.resamples, "least_coverage": settings.judge_min_coverage}
    report = AgreementReport(data, graded, rows | intervals)
    paths = [] if folder is None else report.write(folder)
    if options.json:
        common.print_json(report.to_json())
        return 0
    print(report.as_text())
    if paths:
        print(textwrap.fill(f"written to {folder}: {', '.join(path.name for path in paths)}", 118))
    return 0


def _spec(options: argparse.Namespace, settings: Settings) -> selection.JudgeSpec:
    if options.judge:
        spec = selection.parse_spec(options.judge)
    else:
        ratings = offered().get(options.data) or next(iter(offered().values()))
        rubric = rubric_named(options.rubric) if options.rubric else ratings.rubric_for(ratings.categories[0])
        spec = selection.spec_for(settings, rubric.model)
    if spec.backend == "none":
        raise SettingsError("agreement: the judge 'none' gives no ratings. Name one that does: --judge openai:gpt-4o.")
    return spec
