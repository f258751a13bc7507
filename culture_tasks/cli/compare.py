"""``culture-tasks compare``: compare two models in the terminal, or as a check in CI."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from culture_tasks.cli.options import AddParser, add_repeatable, writing
from culture_tasks.cli.report import add_choices, choices, print_problems
from culture_tasks.errors import CultureTasksError
from culture_tasks.plain_files import write_whole
from culture_tasks.report.compare.comparison_text import comparison_text
from culture_tasks.report.compare.gate import GateResult, as_json, gate, parse_margins
from culture_tasks.report.compare.two_models import compare_models
from culture_tasks.text_tables import plain

_DESCRIPTION = """\
Compares B with A on the items that both answered: difference with an interval, p value (Holm-adjusted over the
benchmarks), and how many items would make it significant; then the same for each culture of a benchmark. A and B are
result files, folders or patterns with one model each. Of several runs of a task, B's newest counts, and A's newest that
can be compared with it. Benchmarks that can't be compared are listed with the reason. With --spotcheck, differences of
judged scores are corrected by people's ratings; after `rejudge --sample` of both, by the better judge's.

With --fail-on-regression the exit status says whether B may pass:
  0  no regression, and everything that was required could be compared
  1  B is significantly worse, by more than the margin, on a benchmark or for a culture
  2  an error: an option or a path that can't be used
  3  something couldn't be compared: items or scores of B are missing, or its settings differ
"""

_EPILOG = """\
examples:
  culture-tasks compare runs/base runs/tuned
  culture-tasks compare runs/main runs/candidate --fail-on-regression --json gate.json
  culture-tasks compare runs/main runs/candidate --fail-on-regression --require care --require culturalvqa \\
      --margin culturalvqa=0.01 --margin 'culturalvqa:*=0.05'
  culture-tasks compare runs/main runs/candidate --fail-on-regression --spotcheck sheet
"""

_STDOUT = Path("-")


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("a", metavar="A", help="the first model's results")
    parser.add_argument("b", metavar="B", help="the second model's results")
    regression = "let the exit status say whether B may pass, as above"
    parser.add_argument("--fail-on-regression", action="store_true", help=regression)
    require = "compare only this task, group or pattern, and require it; may be repeated (default: all that A has)"
    add_repeatable(parser, "--require", "NAME", require)
    margin = (
        "tolerate a drop up to this size, on the benchmark's scale; NAME is a benchmark, a pattern or a culture "
        "(culturalvqa:nigeria); may be repeated"
    )
    add_repeatable(parser, "--margin", "NAME=NUMBER", margin)
    json = "write the outcome to a JSON file; without FILE, print it and nothing else"
    parser.add_argument("--json", nargs="?", type=Path, const=_STDOUT, metavar="FILE", help=json)
    add_choices(parser)
    parser.set_defaults(handler=_run, error_status=2)


def _run(options: argparse.Namespace) -> int:
    try:
        margins = parse_margins(options.margin)
        models = compare_models(options.a, options.b, choices(options), only=options.require)
        result = gate(models, required=options.require, margins=margins)
    except CultureTasksError as error:
        _write(error, options)
        raise
    _write(result, options)
    options.reader_gone_status = result.status if options.fail_on_regression else 0
    if options.json == _STDOUT:
        return int(options.reader_gone_status)
    print_problems([problem for side in models.sides for problem in side.problems])
    print(comparison_text(models))
    if not options.fail_on_regression:
        return 0
    reasons = {(benchmark, reason) for benchmark, reason, _ in models.not_compared}
    for check in result.having("regression") + result.having("not compared"):
        if (check.name, check.message) not in reasons:
            print(f"{check.outcome}: {plain(f'{check.title}: {check.message}')}")
    counts = Counter(check.outcome for check in result.checks)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    verdict = "failed" if result.status else "passed"
    print(f"gate: {verdict} ({outcomes})")
    return result.status


def _write(result: GateResult | CultureTasksError, options: argparse.Namespace) -> None:
    """Writes the outcome to its file: of an error too, so that none of an earlier comparison stays behind."""
    path: Path | None = options.json
    if path == _STDOUT:
        print(as_json(result), end="")
    elif path is not None:
        with writing("compare", path):
            write_whole(path, as_json(result))
