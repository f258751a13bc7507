"""``culture-tasks cost``: what a judge will cost, before it is asked."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from culture_tasks.cli.options import AddParser, add_tasks, at_least, positive, tasks_called
from culture_tasks.costs import token_counts
from culture_tasks.costs.prices import EXAMPLE, Prices, read_prices
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.judges.batch.batch_rounds import BatchJudge
from culture_tasks.judges.cache.cache_files import stats
from culture_tasks.judges.selection import parse_spec
from culture_tasks.rejudge.estimates import (
    FEWEST_REPLIES,
    SHORTEST_REPLY,
    Bounds,
    Estimate,
    Estimator,
    total_by_judge,
)
from culture_tasks.rejudge.rejudging import find_runs, judged_tasks, sampled
from culture_tasks.settings import Settings
from culture_tasks.text_tables import as_markdown, printable

_DESCRIPTION = """\
Counts the requests to a judge and their tokens, and estimates their cost and duration. Before a run, a response has
between no token and as many as its task allows. For finished runs (--results) the responses are known, and verdicts in
the cache cost nothing. For example: culture-tasks cost --tasks care,culturalvqa --judge openai:gpt-4o
"""


def register(add_parser: AddParser) -> None:
    """Adds the command."""
    parser = add_parser(description=_DESCRIPTION)
    add_tasks(parser, "tasks, groups or tags, as for a run")
    results = "finished runs that are to be graded: result files, folders with result files, or patterns"
    parser.add_argument("--results", type=Path, nargs="+", metavar="PATH", help=results)
    judge = "the judge, as in CULTURE_JUDGE (default: that variable, or the paper's judge)"
    parser.add_argument("--judge", metavar="SPEC", help=judge)
    sample = "with --results: of N responses of each task, as for rejudge --sample"
    parser.add_argument("--sample", type=at_least(2), metavar="N", help=sample)
    parser.add_argument("--batch", action="store_true", help="at the price of batches (see rejudge --batch)")
    prices = "file of prices (default: CULTURE_JUDGE_PRICES, or list prices)"
    parser.add_argument("--prices", type=Path, metavar="FILE", help=prices)
    tokenizer = (
        "count tokens by this one: an encoding of tiktoken's, a tokenizer on the Hub, or a folder with one (default: "
        "the judge's encoding, or a rule)"
    )
    parser.add_argument("--tokenizer", metavar="NAME", help=tokenizer)
    repeats = "responses to a question (default: %(default)s)"
    parser.add_argument("--repeats", type=at_least(1), default=1, metavar="N", help=repeats)
    parser.add_argument("--limit", type=at_least(1), metavar="N", help="only the first N questions of each task")
    seconds = "how long the endpoint takes for a request (default: %(default)s)"
    parser.add_argument("--seconds", type=positive, default=2.0, metavar="S", help=seconds)
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    settings = Settings.from_environment().model_copy(update={"judge_budget": None})
    judge = options.judge or settings.judge
    settings = settings.model_copy(update={"judge": judge})
    prices = read_prices(options.prices or settings.prices_file)
    spec = parse_spec(judge) if judge else None
    if spec is not None and spec.backend != "openai":
        print("Nothing to estimate: costs are known only of judges behind an endpoint (openai:<model>).")
        return 0

    def judge_of(paper_model: str) -> str:
        return spec.model if spec else paper_model

    if not options.tasks and not options.results:
        raise SettingsError("cost: neither --tasks nor --results is given. Name tasks, such as --tasks care.")
    if options.sample is not None and not options.results:
        raise SettingsError("cost: --sample is of finished runs. Name them with --results.")
    tasks = tasks_called(options.tasks, "cost")
    counter = token_counts.counter_for(judge_of("gpt-4o"), options.tokenizer)
    estimator = Estimator(counter, stats(settings.cache_file) if settings.cache_file else [], settings)
    if options.results:
        chosen = {task.name for task in tasks}
        estimates = _of_results(
            options.results, chosen, options.sample, estimator, settings=settings, judge_of=judge_of
        )
    else:
        many = {"repeats": options.repeats, "limit": options.limit}
        estimates = [each for task in tasks for each in estimator.before_a_run(task, judge_of, **many)]
    totals = list(total_by_judge(estimates).values())
    if options.json:
        content = {"counted_by": counter.name, "currency": prices.currency, "prices": prices.origin}
        lists = {"tasks": estimates, "totals": totals}
        entries = {name: [_entry(each, prices, options.batch) for each in some] for name, some in lists.items()}
        print(json.dumps(content | entries, ensure_ascii=False, indent=1))
        return 0
    header = ("task", "judge", "questions", "verdicts", "kept", "requests", "tokens in", "tokens out", prices.currency)
    shown = [*estimates, *(totals if len(estimates) > 1 else ())]
    print(as_markdown(header, [_row(each, prices, options.batch) for each in shown], numbers=7))
    print(f"Tokens are counted by {counter.name}.")
    _explain(totals, options, settings, prices)
    return 0


def _of_results(
    paths: Sequence[Path],
    chosen: set[str],
    size: int | None,
    estimator: Estimator,
    *,
    settings: Settings,
    judge_of: Callable[[str], str],
) -> list[Estimate]:
    """Returns the estimates of finished runs by task and judge; of several gradings of a run, one counts."""
    found: dict[tuple[str, str], Estimate] = {}
    graded = {
        run.origin: [task if size is None else sampled(run.files, task, size) for task in judged_tasks(run.files)]
        for run in find_runs(paths)
    }
    for task in [task for tasks in graded.values() for task in tasks if not chosen or task.name in chosen]:
        by_model: dict[str, list[Any]] = {}
        for sample in task.samples:
            by_model.setdefault(judge_of(sample.rubric.model), []).extend(sample.expected(failed_only=False))
        for model, items in by_model.items():
            with closing(BatchJudge(model, settings, asks=False)) as judge:
                one = estimator.of_responses(task.name, judge, items)
            key = (task.name, model)
            found[key] = found[key] + one if key in found else one
    if not found:
        raise DataError(
            "cost: none of these runs has logged samples of these tasks that a judge grades. Expected runs of a "
            "judged benchmark with --log_samples and --output_path."
        )
    return list(found.values())


def _row(each: Estimate, prices: Prices, batch: bool) -> tuple[str, ...]:
    if not each.judge:
        return (each.task, "none needed", f"{each.questions:,}", "0", "0", "0", "0", "0", "0.00")
    money = each.money(prices.of(each.judge), in_batches=batch)
    return (
        each.task,
        printable(each.judge),
        *(f"{number:,.0f}" for number in (each.questions, each.verdicts, each.kept, each.requests)),
        _shown(each.tokens_in, 0),
        _shown(each.tokens_out, 0),
        "no price" if money is None else _shown(money, 2 if money.high >= 1 or money.high == 0 else 4),
    )


def _shown(interval: Bounds, digits: int) -> str:
    return " to ".join(dict.fromkeys(f"{end:,.{digits}f}" for end in (interval.low, interval.high)))


def _entry(each: Estimate, prices: Prices, batch: bool) -> dict[str, Any]:
    money = each.money(prices.of(each.judge), in_batches=batch) if each.judge else None
    return {**asdict(each), "money": None if money is None else asdict(money)}


def _explain(totals: Iterable[Estimate], options: argparse.Namespace, settings: Settings, prices: Prices) -> None:
    if any(not each.measured for each in totals):
        print(
            f"Replies are taken to have between {SHORTEST_REPLY} tokens and their limit, and none to be asked for "
            f"again: the verdict cache has fewer than {FEWEST_REPLIES} replies for at least one rubric."
        )
    has_price = {each.judge: each.money(prices.of(each.judge)) is not None for each in totals}
    if not all(has_price.values()):
        unpriced = printable(", ".join(judge for judge, known in has_price.items() if not known))
        print(f"Without a price: {unpriced}. Give it one with --prices FILE: {EXAMPLE}.")
    if prices.origin and any(has_price.values()):
        print(f"Prices{' of batches' if options.batch else ''}: {prices.origin}.")
    requests = sum(each.requests for each in totals)
    if options.batch:
        print("Time: up to 24 hours for a batch.")
    elif requests:
        together = settings.judge_concurrency
        print(
            f"Time: about {_duration(max(requests / together, 1.0) * options.seconds)}, with {together} requests in "
            f"flight (CULTURE_JUDGE_CONCURRENCY) that take {options.seconds:g} s each (--seconds), if the endpoint's "
            "rate limits allow it."
        )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
