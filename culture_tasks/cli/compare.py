"""``culture-tasks compare``: compare two models in the terminal."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from culture_tasks.cli.report import add_choices, choices, say_problems

if TYPE_CHECKING:
    from culture_tasks.report.model import Cell, Comparison
    from culture_tasks.report.two_models import TwoModels

_DESCRIPTION = """\
Compares B with A on the items that both answered: difference with a 95 % interval, p value (Holm-adjusted over the
benchmarks), and how many items would be needed to tell the two apart. A and B are result files, folders or
patterns with one model each. Benchmarks that can't be compared are listed with the reason, and not tested.
"""

_EPILOG = """\
examples:
  culture-tasks compare runs/base runs/tuned
  culture-tasks compare runs/main runs/candidate --fail-on-regression
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command ``compare``."""
    parser = subparsers.add_parser(
        "compare",
        help="compare the runs of two models, also as a check in CI",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A", help="the first model's results")
    parser.add_argument("b", metavar="B", help="the second model's results")
    parser.add_argument(
        "--fail-on-regression",
        action="store_true",
        help="exit with status 1 if B is significantly worse on a benchmark, or nothing could be compared",
    )
    add_choices(parser, all_runs=False)
    parser.set_defaults(handler=run)


def run(options: argparse.Namespace) -> int:
    """Runs the command.

    Raises:
        CultureTasksError: If A or B isn't one model's results.
    """
    from culture_tasks.report.two_models import compare_models

    found = compare_models(options.a, options.b, choices(options))
    _say(found)
    return 1 if options.fail_on_regression and (found.regressions or not found.tests) else 0


def _say(found: TwoModels) -> None:
    from culture_tasks.text_tables import as_text, plain

    say_problems(found.problems)
    print(f"A: {plain(found.labels[0])}")
    print(f"B: {plain(found.labels[1])}")
    if found.tests:
        rows = [_row(test, *cells) for test, cells in zip(found.tests, found.cells, strict=True)]
        print()
        print(as_text(_HEADER, rows))
    for line in found.not_compared:
        print(f"not compared: {plain(line)}")
    if not found.tests:
        print("nothing could be compared")
    for unit in found.regressions:
        print(f"regression: B is significantly worse on {plain(unit)}")


_HEADER = ("benchmark", "A", "B", "B - A", "95 % interval", "p (Holm)", "items", "verdict")


def _row(test: Comparison, one: Cell, two: Cell) -> tuple[str, ...]:
    from culture_tasks.report.comparability import explain
    from culture_tasks.report.model import Cell
    from culture_tasks.report.text.wording import interval, number

    difference = Cell(test.difference, one.scale, test.low, test.high)
    needed = f" ({test.items_needed} items needed)" if test.items_needed and "not" in test.verdict else ""
    return (
        test.unit,
        number(one.value, one.scale),
        number(two.value, two.scale),
        number(test.difference, one.scale, signed=True),
        interval(difference, signed=True),
        "" if test.p_holm is None else f"{test.p_holm:.4f}",
        str(test.n),
        f"{test.verdict}{needed}{f' [{explain(test.flags)}]' if test.flags else ''}",
    )
