"""``culture-tasks cost``: what a judge will cost, before it is asked."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Task
from culture_tasks.cli import options as common
from culture_tasks.cli.widths import width_estimates
from culture_tasks.costs.prices import EXAMPLE, read_prices
from culture_tasks.errors import SettingsError
from culture_tasks.judges.cache import stats
from culture_tasks.judges.selection import parse_spec
from culture_tasks.rejudge.estimates import (
    FEWEST_REPLIES,
    SHORTEST_REPLY,
    Bounds,
    Estimate,
    Estimator,
    money_text,
    totals,
)
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, printable

_DESCRIPTION = """\
Counts the requests to a judge and their tokens, and estimates their cost. Before a run, a response has
between no token and as many as its task allows. For finished runs (--results) the responses are known, and verdicts in
the cache cost nothing. For example: culture-tasks cost --tasks care,culturalvqa --judge openai:gpt-4o
"""

_ABOUT_WIDTHS = """\
± is half the width of the 95 % interval, in points of 100 of the score's scale. Set CULTURE_SUBSET to the number of
questions, for all models alike: ±{:g} is then for the score of all of the task's questions, if scores vary as in these
runs. Where a run had all of them, its interval now is for questions like these. Money is the judge's for one run."""


def register(add_parser: common.AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    add = parser.add_argument
    common.add_tasks(parser, "tasks, groups or tags, as for a run")
    results = "finished runs: result files, folders or patterns"
    add("--results", type=Path, nargs="+", default=[], metavar="PATH", help=results)
    common.add_judge(parser, "the judge, as in CULTURE_JUDGE (default: that variable, or the paper's judge)")
    prices = "file of prices (default: CULTURE_JUDGE_PRICES, or list prices)"
    add("--prices", type=Path, metavar="FILE", help=prices)
    sample = "with --results: estimate for N responses of each task, as for rejudge --sample"
    add("--sample", type=common.at_least(2), metavar="N", help=sample)
    width = "with --results: how many questions give a 95 %% interval of ±W, in points of 100 of the score's scale"
    add("--width", type=common.positive, metavar="W", help=width)
    add("--batch", action="store_true", help="estimate at the price of batches (see rejudge --batch)")
    common.add_json(parser)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    if not options.results and (not options.tasks or options.sample is not None or options.width is not None):
        raise SettingsError(
            "cost: name tasks, such as --tasks care, or finished runs with --results, which --sample and --width need."
        )
    if options.width is not None and options.sample is not None:
        raise SettingsError("cost: --width and --sample. Leave out one of them.")
    tasks = common.matching_tasks(options.tasks, "cost")
    settings = Settings.from_environment()
    settings = settings.model_copy(update={"judge": options.judge or settings.judge, "judge_budget": None})
    spec = parse_spec(settings.judge) if settings.judge else None
    estimator = Estimator(
        prices=read_prices(options.prices or settings.prices_file),
        replies=stats(settings.cache_file) if settings.cache_file else [],
        settings=settings,
        judge=spec.model if spec else None,
        in_batches=options.batch,
    )
    has_endpoint = spec is None or spec.backend == "openai"
    if options.width is not None:
        return _show_widths(tasks, estimator, options, has_endpoint=has_endpoint)
    if not has_endpoint:
        estimates: list[Estimate] = []
    elif options.results:
        names = {task.name for task in tasks}
        estimates = estimator.estimate_finished_runs(options.results, names, options.sample)
    else:
        estimates = [estimate for task in tasks for estimate in estimator.estimate_run(task)]
    if options.json:
        prices = estimator.prices
        parts = {
            name: [{**asdict(each), "money": estimator.money(each)} for each in part]
            for name, part in (("tasks", estimates), ("totals", totals(estimates)))
        }
        common.print_json({"currency": prices.currency, "prices": prices.origin, **parts})
    elif estimates:
        _show(estimates, estimator)
    else:
        print("Nothing to estimate: costs are known only of judges behind an endpoint (openai:<model>).")
    return 0


def _show(estimates: Sequence[Estimate], estimator: Estimator) -> None:
    """Prints the estimates, and how they were made."""
    prices, sums = estimator.prices, totals(estimates)
    header = ("task", "judge", "questions", "verdicts", "kept", "requests", "tokens in", "tokens out", prices.currency)
    rows: list[tuple[str, ...]] = []
    for estimate in (*estimates, *(sums if len(estimates) > 1 else ())):
        numbers = (estimate.questions, estimate.verdicts, estimate.kept, estimate.requests)
        tokens = (estimate.tokens_in.text("{:,.0f}".format), estimate.tokens_out.text("{:,.0f}".format))
        money = money_text(estimator.money(estimate) if estimate.judge else Bounds())
        judge = printable(estimate.judge or "none needed")
        rows.append((estimate.task, judge, *(f"{number:,.0f}" for number in numbers), *tokens, money))
    print(as_markdown(header, rows, numbers=7))
    print("Tokens are counted by a rule: for whole prompts, 2 to 12 % more than gpt-4o's encoding has.")
    if any(not total.measured for total in sums):
        print(
            f"Replies are assumed to have between {SHORTEST_REPLY} tokens and their limit, and none to be asked for "
            f"again: the verdict cache has fewer than {FEWEST_REPLIES} replies for at least one rubric."
        )
    unpriced = [total.judge for total in sums if estimator.money(total) is None]
    if unpriced:
        print(f"Without a price: {printable(', '.join(unpriced))}. Give it one with --prices FILE: {EXAMPLE}.")
    if prices.origin and len(unpriced) < len(sums):
        print(f"Prices{' of batches' if estimator.in_batches else ''}: {prices.origin}.")


def _show_widths(
    tasks: Sequence[Task], estimator: Estimator, options: argparse.Namespace, *, has_endpoint: bool
) -> int:
    estimator = replace(estimator, settings=estimator.settings.model_copy(update={"subset": None}))
    estimates, left_out = width_estimates(map(str, options.results), tasks, options.width, estimator.settings)
    content: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    for task, estimate in estimates:
        amounts = [estimator.money(total) for total in totals(estimator.estimate_run(task) if has_endpoint else ())]
        known = [amount.times(estimate.needed / estimate.documents) for amount in amounts if amount is not None]
        money = sum(known, Bounds()) if len(known) == len(amounts) else None
        content.append(asdict(estimate) | {"money": money})
        texts = (estimate.questions.text("{:,}".format), estimate.interval.text("±{:.2g}".format))
        rows.append((task.name, *texts, f"{estimate.needed:,}", money_text(money) if has_endpoint else "-"))
    if options.json:
        common.print_json(content)
        return 0
    currency = estimator.prices.currency
    header = ("task", "questions now", "interval now", f"questions for ±{options.width:g}", currency)
    print(as_markdown(header, rows, numbers=4))
    print(_ABOUT_WIDTHS.format(options.width))
    if left_out:
        print(f"Left out, since their scores are all alike or their score is no mean: {', '.join(left_out)}.")
    return 0
