"""``culture-tasks cost``: what a judge will cost, before it is asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import entries
from culture_tasks.cli import options as common
from culture_tasks.cli.widths import samples_by_task, width_estimate
from culture_tasks.costs import token_counts
from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.judges.cache import stats
from culture_tasks.judges.selection import JudgeSpec, parse_spec
from culture_tasks.rejudge.estimates import (
    FEWEST_REPLIES,
    SHORTEST_REPLY,
    Bounds,
    Estimate,
    Estimator,
    money_text,
    summed,
    totals,
)
from culture_tasks.rejudge.rejudging import find_runs, judged_tasks, sample_of
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
    common.add_tasks(parser, "tasks, groups or tags, as for a run")
    results = "finished runs: result files, folders or patterns"
    parser.add_argument("--results", type=Path, nargs="+", metavar="PATH", help=results)
    judge = "the judge, as in CULTURE_JUDGE (default: that variable, or the paper's judge)"
    parser.add_argument("--judge", metavar="SPEC", help=judge)
    prices = "file of prices (default: CULTURE_JUDGE_PRICES, or list prices)"
    parser.add_argument("--prices", type=Path, metavar="FILE", help=prices)
    sample = "with --results: estimate for N responses of each task, as for rejudge --sample"
    parser.add_argument("--sample", type=common.at_least(2), metavar="N", help=sample)
    width = "with --results: how many questions give a 95 %% interval of ±W, in points of 100 of the score's scale"
    parser.add_argument("--width", type=common.positive, metavar="W", help=width)
    parser.add_argument("--batch", action="store_true", help="estimate at the price of batches (see rejudge --batch)")
    repeats = "before a run: responses per question (default: %(default)s)"
    parser.add_argument("--repeats", type=common.at_least(1), default=1, metavar="N", help=repeats)
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
    prices = read_prices(options.prices or settings.prices_file)
    spec = parse_spec(settings.judge) if settings.judge else None

    def judge_of(paper_model: str) -> str:
        return spec.model if spec else paper_model

    counter = token_counts.counter_for(judge_of("gpt-4o"))
    estimator = Estimator(counter, stats(settings.cache_file) if settings.cache_file else [], settings)
    if options.width is not None:
        return _show_widths(tasks, estimator, spec, prices, options)
    if spec is not None and spec.backend != "openai":
        estimates: list[Estimate] = []
    elif options.results:
        estimates = _estimates_of(options, {task.name for task in tasks}, estimator, judge_of)
    else:
        estimates = [each for task in tasks for each in estimator.estimate_run(task, judge_of, repeats=options.repeats)]
    if options.json:
        content: dict[str, Any] = {"counted_by": counter.name, "currency": prices.currency, "prices": prices.origin}
        for name, part in (("tasks", estimates), ("totals", totals(estimates))):
            content |= {name: [{**asdict(each), "money": _money(each, prices, options)} for each in part]}
        common.print_json(content)
    elif estimates:
        _show(estimates, counter.name, options, prices)
    else:
        print("Nothing to estimate: costs are known only of judges behind an endpoint (openai:<model>).")
    return 0


def _show(estimates: Sequence[Estimate], counted_by: str, options: argparse.Namespace, prices: Prices) -> None:
    """Prints the estimates, and how they were made."""
    sums = totals(estimates)
    header = ("task", "judge", "questions", "verdicts", "kept", "requests", "tokens in", "tokens out", prices.currency)
    rows: list[tuple[str, ...]] = []
    for estimate in (*estimates, *(sums if len(estimates) > 1 else ())):
        numbers = (estimate.questions, estimate.verdicts, estimate.kept, estimate.requests)
        tokens = (estimate.tokens_in.text("{:,.0f}".format), estimate.tokens_out.text("{:,.0f}".format))
        money = _money(estimate, prices, options) if estimate.judge else Bounds()
        texts = (*(f"{number:,.0f}" for number in numbers), *tokens, money_text(money))
        rows.append((estimate.task, printable(estimate.judge or "none needed"), *texts))
    print(as_markdown(header, rows, numbers=7))
    print(f"Tokens are counted by {counted_by}.")
    if any(not total.measured for total in sums):
        print(
            f"Replies are assumed to have between {SHORTEST_REPLY} tokens and their limit, and none to be asked for "
            f"again: the verdict cache has fewer than {FEWEST_REPLIES} replies for at least one rubric."
        )
    unpriced = [total.judge for total in sums if _money(total, prices, options) is None]
    if unpriced:
        print(f"Without a price: {printable(', '.join(unpriced))}. Give it one with --prices FILE: {EXAMPLE}.")
    if prices.origin and len(unpriced) < len(sums):
        print(f"Prices{' of batches' if options.batch else ''}: {prices.origin}.")


def _show_widths(
    tasks: Sequence[Task], estimator: Estimator, spec: JudgeSpec | None, prices: Prices, options: argparse.Namespace
) -> int:
    estimator = replace(estimator, settings=estimator.settings.model_copy(update={"subset": None}))
    estimates: list[dict[str, Any]] = []
    rows: list[tuple[str, ...]] = []
    left_out: list[str] = []
    for name, runs in samples_by_task([str(path) for path in options.results]).items():
        task = entries().get(name)
        if not isinstance(task, Task) or (tasks and task not in tasks):
            continue
        if (estimate := width_estimate(task, runs, options.width, estimator.settings)) is None:
            left_out.append(name)
            continue
        asks = spec is None or spec.backend == "openai"
        parts = estimator.estimate_run(task, lambda paper_model: spec.model if spec else paper_model) if asks else []
        amounts = [_money(total, prices, options) for total in totals(parts)]
        known = [amount.times(estimate.needed / estimate.documents) for amount in amounts if amount is not None]
        money = sum(known, Bounds()) if len(known) == len(amounts) else None
        estimates.append(asdict(estimate) | {"money": money})
        texts = (estimate.questions.text("{:,}".format), estimate.interval.text("±{:.2g}".format))
        rows.append((name, *texts, f"{estimate.needed:,}", money_text(money) if asks else "-"))
    if not estimates:
        raise DataError(
            "cost: no task of these runs has logged samples, scores that vary (the lexical judge's don't count), and "
            "their mean as its score."
        )
    if options.json:
        common.print_json(estimates)
        return 0
    header = ("task", "questions now", "interval now", f"questions for ±{options.width:g}", prices.currency)
    print(as_markdown(header, rows, numbers=4))
    print(_ABOUT_WIDTHS.format(options.width))
    if left_out:
        print(f"Left out, since their scores are all alike or their score is no mean: {', '.join(left_out)}.")
    return 0


def _estimates_of(
    options: argparse.Namespace, task_names: set[str], estimator: Estimator, judge_of: Callable[[str], str]
) -> list[Estimate]:
    """Returns the estimates of the judged tasks of finished runs; of several gradings of a run, one counts."""
    gradings = {
        run.origin: [(run.files, task) for task in judged_tasks(run.files)] for run in find_runs(options.results)
    }
    tasks = [pair for pairs in gradings.values() for pair in pairs if not task_names or pair[1].name in task_names]
    if not tasks:
        raise DataError(
            "cost: none of these runs has logged samples of these tasks that a judge grades. Expected runs of a "
            "judged benchmark with --log_samples and --output_path."
        )
    items: dict[tuple[str, str, int], list[Any]] = {}
    for number, (files, task) in enumerate(tasks):
        graded = task if options.sample is None else sample_of(files, task, options.sample)
        for sample in graded.samples:
            key = (graded.name, judge_of(sample.rubric.model), number)
            items.setdefault(key, []).extend(sample.expected(failed_only=False))
    return summed(estimator.estimate_responses(name, model, part) for (name, model, _), part in items.items())


def _money(estimate: Estimate, prices: Prices, options: argparse.Namespace) -> Bounds | None:
    """Returns what an estimate's judge costs; None without a price or a judge."""
    return estimate.money(prices.price_of(estimate.judge), in_batches=options.batch) if estimate.judge else None
