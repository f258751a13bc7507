"""``culture-tasks cost``: what a judge will cost, before it is asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import entries
from culture_tasks.cli.options import (
    AddParser,
    add_json,
    add_judge_and_prices,
    add_tasks,
    at_least,
    matching_tasks,
    positive,
    print_json,
)
from culture_tasks.cli.widths import WidthEstimate, runs_by_task, width_estimate
from culture_tasks.costs import token_counts
from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.judges.cache import stats
from culture_tasks.judges.selection import parse_spec
from culture_tasks.rejudge.estimates import (
    FEWEST_REPLIES,
    SHORTEST_REPLY,
    Bounds,
    Estimate,
    Estimator,
    duration,
    money_text,
    sum_of_money,
    total_by_judge,
)
from culture_tasks.rejudge.rejudging import TaskToGrade, find_runs, judged_tasks, sample_of
from culture_tasks.results.run_files import RunFiles
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, printable

_DESCRIPTION = """\
Counts the requests to a judge and their tokens, and estimates their cost and duration. Before a run, a response has
between no token and as many as its task allows. For finished runs (--results) the responses are known, and verdicts in
the cache cost nothing. For example: culture-tasks cost --tasks care,culturalvqa --judge openai:gpt-4o
"""

_ABOUT_WIDTHS = """\
± is half the width of the 95 % interval, in points of 100 of the score's scale. Set CULTURE_SUBSET to the number of
questions, for all models alike: ±{:g} is then for the score of all of the task's questions, if scores vary as in these
runs. Where a run had all of them, its interval now is for questions like these. Money is the judge's for one run."""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    add_tasks(parser, "tasks, groups or tags, as for a run")
    results = "finished runs: result files, folders or patterns"
    parser.add_argument("--results", type=Path, nargs="+", metavar="PATH", help=results)
    add_judge_and_prices(parser)
    sample = "with --results: estimate for N responses of each task, as for rejudge --sample"
    parser.add_argument("--sample", type=at_least(2), metavar="N", help=sample)
    width = (
        "with --results: how many questions of each task give a 95 %% interval of ±W, in points of 100 of the score's "
        "scale, and what the judge costs for them"
    )
    parser.add_argument("--width", type=positive, metavar="W", help=width)
    parser.add_argument("--batch", action="store_true", help="estimate at the price of batches (see rejudge --batch)")
    tokenizer = (
        "count tokens with it: an encoding of tiktoken's, a tokenizer on the Hub, or a folder with one (default: "
        "the judge's encoding, or a rule)"
    )
    parser.add_argument("--tokenizer", metavar="NAME", help=tokenizer)
    repeats = "before a run: responses per question (default: %(default)s)"
    parser.add_argument("--repeats", type=at_least(1), default=1, metavar="N", help=repeats)
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="before a run: only the first N questions")
    seconds = "how long the endpoint takes for a request (default: %(default)s)"
    parser.add_argument("--seconds", type=positive, default=2.0, metavar="S", help=seconds)
    add_json(parser)
    parser.set_defaults(handler=_run)


def judge_and_prices(options: argparse.Namespace) -> tuple[Settings, Prices]:
    """Returns the settings with the judge of a command's options, without a budget, and the prices."""
    settings = Settings.from_environment()
    updates = {"judge": options.judge or settings.judge, "judge_budget": None}
    return settings.model_copy(update=updates), read_prices(options.prices or settings.prices_file)


def estimator_of(settings: Settings, model: str, tokenizer: str | None = None) -> Estimator:
    """Returns what estimates a judge's cost; it counts with the model's encoding where no tokenizer is named."""
    counter = token_counts.counter_for(model, tokenizer)
    return Estimator(counter, stats(settings.cache_file) if settings.cache_file else [], settings)


def _run(options: argparse.Namespace) -> int:
    if not options.tasks and not options.results:
        raise SettingsError("cost: neither --tasks nor --results is given. Name tasks, such as --tasks care.")
    if options.sample is not None and not options.results:
        raise SettingsError("cost: --sample needs finished runs. Name them with --results.")
    if options.width is not None and (not options.results or options.sample is not None):
        raise SettingsError("cost: --width needs finished runs, named with --results, and no --sample.")
    tasks = matching_tasks(options.tasks, "cost")
    settings, prices = judge_and_prices(options)
    spec = parse_spec(settings.judge) if settings.judge else None
    if options.width is not None:
        return _show_widths(tasks, settings, prices, options)
    if spec is not None and spec.backend != "openai":
        if options.json:
            content = {"counted_by": "", "currency": prices.currency, "prices": prices.origin}
            print_json(content | {"tasks": [], "totals": []})
            return 0
        print("Nothing to estimate: costs are known only of judges behind an endpoint (openai:<model>).")
        return 0

    def judge_of(paper_model: str) -> str:
        return spec.model if spec else paper_model

    estimator = estimator_of(settings, judge_of("gpt-4o"), options.tokenizer)
    if options.results:
        tasks_of_runs = _tasks_of(options.results, {task.name for task in tasks})
        sample: int | None = options.sample
        graded = [task if sample is None else sample_of(files, task, sample) for files, task in tasks_of_runs]
        estimates = _estimates_of(graded, estimator, judge_of)
    else:
        counts = {"repeats": options.repeats, "limit": options.limit}
        estimates = [estimate for task in tasks for estimate in estimator.estimate_run(task, judge_of, **counts)]
    totals = list(total_by_judge(estimates).values())
    counter = estimator.counter.name
    if options.json:
        content = {"counted_by": counter, "currency": prices.currency, "prices": prices.origin}
        lists = {"tasks": estimates, "totals": totals}
        entries = {
            name: [{**asdict(estimate), "money": _money(estimate, prices, options)} for estimate in part]
            for name, part in lists.items()
        }
        print_json(content | entries)
        return 0
    header = ("task", "judge", "questions", "verdicts", "kept", "requests", "tokens in", "tokens out", prices.currency)
    rows: list[tuple[str, ...]] = []
    for estimate in (*estimates, *(totals if len(estimates) > 1 else ())):
        numbers = (estimate.questions, estimate.verdicts, estimate.kept, estimate.requests)
        tokens = (estimate.tokens_in.text("{:,.0f}".format), estimate.tokens_out.text("{:,.0f}".format))
        money = _money(estimate, prices, options) if estimate.judge else Bounds()
        texts = (*(f"{number:,.0f}" for number in numbers), *tokens, money_text(money))
        rows.append((estimate.task, printable(estimate.judge or "none needed"), *texts))
    print(as_markdown(header, rows, numbers=7))
    print(f"Tokens are counted by {counter}.")
    _explain(totals, options, settings, prices)
    return 0


def _show_widths(tasks: Sequence[Task], settings: Settings, prices: Prices, options: argparse.Namespace) -> int:
    spec = parse_spec(settings.judge) if settings.judge else None
    settings = settings.model_copy(update={"subset": None})
    estimator = estimator_of(settings, spec.model if spec else "gpt-4o", options.tokenizer)
    estimates: list[WidthEstimate] = []
    left_out: list[str] = []
    for name, runs in runs_by_task([str(path) for path in options.results]).items():
        task = entries().get(name)
        if not isinstance(task, Task) or (tasks and task not in tasks):
            continue
        if (estimate := width_estimate(task, runs, options.width, settings)) is None:
            left_out.append(name)
            continue
        totals: Iterable[Estimate] = ()
        if spec is None or spec.backend == "openai":
            parts = estimator.estimate_run(task, lambda paper_model: spec.model if spec else paper_model)
            totals = total_by_judge(parts).values()
        money = sum_of_money(_money(total, prices, options) for total in totals)
        share = estimate.needed / estimate.documents
        estimates.append(replace(estimate, money=None if money is None else money.times(share)))
    if not estimates:
        raise DataError(
            "cost: no task of these runs has logged samples, scores that vary (the lexical judge's don't count), and "
            "their mean as its score."
        )
    if options.json:
        print_json(estimates)
        return 0
    header = ("task", "questions now", "interval now", f"questions for ±{options.width:g}", prices.currency)
    rows = [
        (
            estimate.task,
            estimate.questions.text("{:,}".format),
            estimate.interval.text("±{:.2g}".format),
            f"{estimate.needed:,}",
            "-" if estimate.money == Bounds() else money_text(estimate.money),
        )
        for estimate in estimates
    ]
    print(as_markdown(header, rows, numbers=4))
    print(_ABOUT_WIDTHS.format(options.width))
    if left_out:
        print(f"Left out, since their scores are all alike or their score is no mean: {', '.join(left_out)}.")
    return 0


def _tasks_of(paths: Sequence[Path], task_names: set[str]) -> list[tuple[RunFiles, TaskToGrade]]:
    """Returns the judged tasks of finished runs; of several gradings of a run, one counts."""
    gradings = {run.origin: [(run.files, task) for task in judged_tasks(run.files)] for run in find_runs(paths)}
    tasks = [pair for pairs in gradings.values() for pair in pairs if not task_names or pair[1].name in task_names]
    if not tasks:
        raise DataError(
            "cost: none of these runs has logged samples of these tasks that a judge grades. Expected runs of a "
            "judged benchmark with --log_samples and --output_path."
        )
    return tasks


def _estimates_of(tasks: Iterable[TaskToGrade], estimator: Estimator, judge_of: Callable[[str], str]) -> list[Estimate]:
    """Returns the estimates of the tasks of finished runs by task and judge."""
    estimates: dict[tuple[str, str], Estimate] = {}
    for task in tasks:
        by_model: dict[str, list[Any]] = {}
        for sample in task.samples:
            by_model.setdefault(judge_of(sample.rubric.model), []).extend(sample.expected(failed_only=False))
        for model, items in by_model.items():
            estimate = estimator.estimate_responses(task.name, model, items)
            key = (task.name, model)
            estimates[key] = estimates[key] + estimate if key in estimates else estimate
    return list(estimates.values())


def _money(estimate: Estimate, prices: Prices, options: argparse.Namespace) -> Bounds | None:
    """Returns what an estimate's judge costs; None without a price or a judge."""
    return estimate.money(prices.price_of(estimate.judge), in_batches=options.batch) if estimate.judge else None


def _explain(totals: Iterable[Estimate], options: argparse.Namespace, settings: Settings, prices: Prices) -> None:
    if any(not total.measured for total in totals):
        print(
            f"Replies are assumed to have between {SHORTEST_REPLY} tokens and their limit, and none to be asked for "
            f"again: the verdict cache has fewer than {FEWEST_REPLIES} replies for at least one rubric."
        )
    has_price = {total.judge: total.money(prices.price_of(total.judge)) is not None for total in totals}
    if not all(has_price.values()):
        unpriced = printable(", ".join(judge for judge, is_known in has_price.items() if not is_known))
        print(f"Without a price: {unpriced}. Give it one with --prices FILE: {EXAMPLE}.")
    if prices.origin and any(has_price.values()):
        print(f"Prices{' of batches' if options.batch else ''}: {prices.origin}.")
    requests = sum(total.requests for total in totals)
    if options.batch:
        print("Time: up to 24 hours for a batch.")
    elif requests:
        concurrency = settings.judge_concurrency
        print(
            f"Time: about {duration(max(requests / concurrency, 1.0) * options.seconds)}, with {concurrency} requests "
            f"in flight (CULTURE_JUDGE_CONCURRENCY) that take {options.seconds:g} s each (--seconds), if the "
            "endpoint's rate limits allow it."
        )
