"""The costs of the runs: tokens of model and judge, money, seconds, and how long the responses are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.costs.prices import Prices, whole_sum
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.report.model import ModelRow, Number, Table
from culture_tasks.report.tables.layout import ALL, COUNT, columns_of, filled
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run

_SECONDS = Scale("seconds", 0.0, None, better=None, digits=1)
_KEPT = ("judge_tokens_kept", "judge_money_kept")
_MONEY = ("model_money", "judge_money", "judge_money_kept")

_NOTES = (
    "The model's tokens are counted by its backend: lmms-eval logs them for some backends, lm-eval for none. The "
    "judge's tokens are counted over all its replies; kept tokens are of verdicts that were already in the verdict "
    "cache or the graded file. The length is the mean number of characters of a response.",
    "Seconds are the time of a whole run of the harness, with the loading of the model and the grading; a run over "
    "several benchmarks has them in the row of all benchmarks. Numbers that the files don't have are missing.",
)


def costs_table(results: Results, prices: Prices | None) -> Table:
    """Returns the costs of each entrant's runs, benchmark by benchmark and in all; without prices there is no money."""
    shares = [share for row in results.rows.values() for share in _shares(row, results)]
    numbers = [_numbers(share, prices) for share in shares]
    amounts = [amount for values in numbers for key in _MONEY if (amount := values[key]) is not None]
    currency, digits = prices.currency if prices else "", 2 if max(amounts, default=0) >= 1 else 4
    money = Scale(currency, 0.0, None, better=None, digits=digits)
    columns = (
        *columns_of(COUNT, responses="Responses", tokens_in="Tokens in", tokens_out="Tokens out", characters="Length"),
        *columns_of(COUNT, judge_tokens_in="Judge tokens in", judge_tokens_out="Judge tokens out"),
        *columns_of(COUNT, judge_tokens_kept="Judge tokens kept"),
        *columns_of(_SECONDS, seconds="Seconds"),
        *columns_of(money, model_money=f"Model, {currency}", judge_money=f"Judge, {currency}"),
        *columns_of(money, judge_money_kept=f"Judge kept, {currency}"),
    )
    scales = {column.key: column.scale for column in columns}
    has_kept = any(values["judge_tokens_kept"] for values in numbers)
    rows = []
    for share, values in zip(shares, numbers, strict=True):
        runs = tuple(loaded.key for loaded in share.runs)
        cells = {
            key: Number(float(value), scales[key], runs=runs)
            for key, value in values.items()
            if value is not None and (has_kept or key not in _KEPT)
        }
        if cells:
            rows.append(((share.entrant.label, share.benchmark), cells))
    notes = (*_NOTES, *_price_notes(shares, prices, has_money=bool(amounts)))
    title, headers = "Costs of the runs", ("Model", "Benchmark")
    return filled(Table("costs", title, headers, columns, notes=notes, question="runs"), rows)


class _Share(NamedTuple):
    """Some of an entrant's runs: those of a benchmark, or all of them."""

    entrant: ModelRow
    benchmark: str
    runs: Sequence[Run]
    seconds: float | None


def _shares(row: ModelRow, results: Results) -> Iterator[_Share]:
    """Yields an entrant's runs by benchmark, and all of them where there are several benchmarks."""
    all_runs = [loaded for loaded in results.of(row.key).values() if not loaded.members]
    by_benchmark: dict[str, list[Run]] = {}
    for loaded in all_runs:
        by_benchmark.setdefault(loaded.benchmark or loaded.task, []).append(loaded)
    for name, runs in by_benchmark.items():
        tasks, title = {loaded.task for loaded in runs}, benchmarks()[name].title if name in benchmarks() else name
        is_alone = all(loaded.together <= tasks for loaded in runs)
        yield _Share(row, title, runs, _seconds(runs) if is_alone else None)
    if len(by_benchmark) > 1:
        yield _Share(row, ALL, all_runs, _seconds(all_runs))


def _seconds(runs: Sequence[Run]) -> float | None:
    """Returns how long some runs took, each result file once; a new grading repeats the time of the old file."""
    files = {loaded.graded_from or loaded.path: loaded.seconds for loaded in runs}
    return whole_sum(files.values())


def _numbers(share: _Share, prices: Prices | None) -> dict[str, float | None]:
    """Returns all numbers of a row by the keys of the columns; None where one of the runs doesn't say."""
    judged_runs = [loaded for loaded in share.runs if loaded.settings.judges]

    def usage(part: str) -> Usage | None:
        usages: list[Any] = [getattr(loaded.spent, part, None) for loaded in judged_runs]
        return sum(usages, start=Usage()) if usages and None not in usages else None

    names = ("responses", "characters", "tokens_in", "tokens_out")
    sums = {name: whole_sum(getattr(loaded.spent, name, None) for loaded in share.runs) for name in names}
    responses, characters = sums["responses"], sums.pop("characters")
    judge, judge_kept = usage("judge"), usage("judge_kept")
    price = prices.price_of(share.runs[0].model_name, share.runs[0].model) if prices else None
    verdict_costs = [_verdict_costs(loaded, prices) for loaded in judged_runs]
    return {
        **sums,
        "characters": characters / responses if responses and characters is not None else None,
        "judge_tokens_in": judge.prompt_tokens if judge else None,
        "judge_tokens_out": judge.completion_tokens if judge else None,
        "judge_tokens_kept": judge_kept.prompt_tokens + judge_kept.completion_tokens if judge_kept else None,
        "seconds": share.seconds,
        "model_money": price.cost_of_run(sums["tokens_in"], sums["tokens_out"], share.seconds) if price else None,
        "judge_money": whole_sum(amount for amount, _ in verdict_costs),
        "judge_money_kept": whole_sum(amount for _, amount in verdict_costs),
    }


def _verdict_costs(loaded: Run, prices: Prices | None) -> tuple[float | None, float | None]:
    """Returns the cost of a run's verdicts, and of its kept ones; None without a price or with several judges."""
    models, spent = {judge.model for judge in loaded.settings.judges}, loaded.spent
    price = prices.price_of(*models) if prices and len(models) == 1 else None
    if price is None or spent is None or spent.judge is None or spent.judge_kept is None:
        return None, None
    return price.cost_of_requests(spent.judge), price.cost_of_requests(spent.judge_kept)


def _price_notes(shares: Sequence[_Share], prices: Prices | None, *, has_money: bool) -> Iterator[str]:
    """Yields the origin of the prices, and the names without one: models only where others have one."""
    if prices is None:
        return
    if has_money and prices.origin:
        yield f"Prices: {prices.origin}."
    runs = [loaded for share in shares for loaded in share.runs]
    names = [loaded.model_name for loaded in runs if prices.price_of(loaded.model_name, loaded.model) is None]
    names = names if len(names) < len(runs) else []
    graders = [
        judge.model
        for loaded in runs
        if loaded.spent and loaded.spent.judge is not None
        for judge in loaded.settings.judges
    ]
    judges = [model for model in graders if prices.price_of(model) is None]
    if names or judges:
        yield f"Without a price: {', '.join(dict.fromkeys((*names, *judges)))}."
