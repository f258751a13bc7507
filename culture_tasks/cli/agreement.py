"""``culture-tasks agreement``: does a judge agree with people, or with another judge?"""

from __future__ import annotations

import argparse
import sys
import textwrap
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.cli.options import at_least, between_0_and_1, rated_data, unwritable
from culture_tasks.errors import SettingsError
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.cli.main import Commands
    from culture_tasks.judges.judge import Judge
    from culture_tasks.judges.selection import JudgeSpec
    from culture_tasks.people.agreement_report import AgreementReport
    from culture_tasks.people.rated_responses import RatedResponses
    from culture_tasks.people.raters import Rater

_DESCRIPTION = """\
Runs a judge over responses that people have rated, and reports how well the two agree: Pearson, Spearman, Kendall's
tau-b, Krippendorff's alpha (ordinal), mean error and mean absolute error with bootstrap intervals, overall, by language
and by category. With several judges, each is compared with people and with each other. Only scored verdicts count;
coverage and the numbers of other outcomes are reported. Verdicts are taken from the cache (CULTURE_JUDGE_CACHE) if they
are there.
"""

_EPILOG = """\
data:
{offered}
  FILE        JSON, JSONL, CSV or Parquet with the columns question, reference (also references, answer), response and
              human_rating (which may be missing if several judges are compared); and optionally rubric,
              category (also cul_type), language, associated_culture, id, model, source, translated_question

examples:
  culture-tasks agreement --judge openai:gpt-4o --sample 500 -o gpt-4o_agreement
  culture-tasks agreement --judge openai:gpt-4o --judge openai:gpt-4o-mini --data ratings.jsonl \\
      --rubric NAME
"""


def register(commands: Commands) -> None:
    """Adds the command ``agreement``."""
    from culture_tasks.people.rated_responses import offered

    names = list(offered())
    parser = commands.add_parser(
        "agreement",
        description=_DESCRIPTION,
        epilog=_EPILOG.format(offered=rated_data()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--judge",
        action="append",
        metavar="SPEC",
        help="judge, such as openai:gpt-4o or lexical; repeat the option to compare judges (default: CULTURE_JUDGE)",
    )
    metavar = "|".join((*names, "FILE"))
    parser.add_argument("--data", default=names[0], metavar=metavar, help="rated responses (default: %(default)s)")
    parser.add_argument(
        "--rubric",
        choices=sorted(rubrics()),
        help="rubric for all rows (default: that of the row or of its category)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="also write JSON, Markdown, CSV and figures to this folder"
    )
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--limit", type=at_least(1), metavar="N", help="use only the first N responses")
    part.add_argument("--sample", type=at_least(1), metavar="N", help="use N responses drawn at random")
    parser.add_argument(
        "--seed", type=at_least(0), default=0, help="seed of the sample and of the bootstrap (default: %(default)s)"
    )
    parser.add_argument(
        "--resamples", type=at_least(1), default=1_000, metavar="N", help="bootstrap resamples (default: %(default)s)"
    )
    parser.add_argument(
        "--confidence",
        type=between_0_and_1,
        default=0.95,
        metavar="P",
        help="confidence of the intervals (default: %(default)s)",
    )
    parser.add_argument(
        "--skip-invalid", action="store_true", help="skip rows that can't be used, instead of refusing the data"
    )
    parser.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        CultureTasksError: If the judges, the data or the settings can't be used.
    """
    from culture_tasks.benchmarks.registry import reading_data
    from culture_tasks.people.agreement_report import AgreementReport
    from culture_tasks.people.rated_responses import load
    from culture_tasks.people.raters import compare

    settings = Settings.from_environment()
    if args.output is not None:  # it must be writable before any verdict is paid for
        try:
            args.output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable("agreement", args.output, error) from None
    specs = _specs(args, settings)
    rows = {"rubric": args.rubric, "limit": args.limit, "sample": args.sample, "skip_invalid": args.skip_invalid}
    intervals = {"resamples": args.resamples, "confidence": args.confidence, "seed": args.seed}
    with reading_data(settings) as read:
        data = load(args.data, settings.data_folder, **rows, seed=args.seed, needs_human=len(specs) == 1)
    for commit in read.commits.values():
        data = replace(data, origin=f"{data.origin} at commit {commit}")
    raters = _raters(data, specs, settings)
    report = AgreementReport(
        data=data,
        raters=raters,
        comparisons=compare(raters, data.responses, **intervals),
        options={**rows, **intervals, "least_coverage": settings.judge_min_coverage},
    )
    print(report.as_text())
    if args.output is not None:
        _write(report, args.output)
    return 0


def _specs(args: argparse.Namespace, settings: Settings) -> list[JudgeSpec]:
    from culture_tasks.benchmarks.registry import rubric_named
    from culture_tasks.judges.selection import parse_spec, spec_for
    from culture_tasks.people.rated_responses import offered

    ratings = offered().get(args.data) or next(iter(offered().values()))
    rubric = rubric_named(args.rubric) if args.rubric else ratings.rubric_for(ratings.categories[0])
    specs = [parse_spec(name) for name in args.judge] if args.judge else [spec_for(settings, rubric.model)]
    if any(spec.backend == "none" for spec in specs):
        raise SettingsError(
            "agreement: the judge 'none' gives no ratings. Name one that does, such as --judge openai:gpt-4o."
        )
    if len(set(map(str, specs))) < len(specs):
        raise SettingsError(
            "agreement: the same judge is named twice. Name two different ones, or just one to compare it with people."
        )
    return specs


def _raters(data: RatedResponses, specs: list[JudgeSpec], settings: Settings) -> list[Rater]:
    from culture_tasks.judges.selection import make_judge
    from culture_tasks.people.raters import grade, human_rater

    human = human_rater(data.responses)
    with ExitStack() as stack:
        judges: dict[str, Judge] = {}
        for spec in specs:
            judges[str(spec)] = make_judge(spec, settings)
            stack.callback(judges[str(spec)].close)
        graded = grade(judges, data.responses, _show_progress if sys.stderr.isatty() else None)
    return [*([human] if human else []), *graded]


def _write(report: AgreementReport, folder: Path) -> None:
    from culture_tasks.people.agreement_report import write_report
    from culture_tasks.people.rating_pictures import write_pictures

    languages = [response.language for response in report.data.responses]
    paths = write_report(report, folder)
    paths += write_pictures(report.comparisons, languages=languages, scale=report.data.scale, folder=folder)
    print(textwrap.fill(f"written to {folder}: {', '.join(path.name for path in paths)}", 118))


def _show_progress(done: int, total: int) -> None:
    if done == total or done % max(1, total // 200) == 0:
        print(f"\rverdicts: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
