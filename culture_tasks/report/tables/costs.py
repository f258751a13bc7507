"""The costs of the runs: tokens of model and judge, money, seconds, and how long the responses are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.costs.prices import Prices, whole_sum
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.report.model import Number, Table
from culture_tasks.report.tables.layout import ALL, COUNT, Values, columns_of, filled
from culture_tasks.results.loading import Results
from culture_tasks.results.runs import Run

_SECONDS = Scale("seconds", 0.0, None, better=None, digits=1)

_NOTES = (
    "The model's tokens are counted by its backend: lmms-eval logs them for some backends, lm-eval for none. The "
    "judge's tokens are counted over all its replies; kept tokens are of verdicts that were already in the verdict "
    "cache or the graded file.",
    "Seconds are the time of a whole run of the harness, with the loading of the model and the grading; a run over "
    "several benchmarks has them in the row of all benchmarks. Numbers that the files don't have are missing.",
)


def costs_table(results: Results, prices: Prices | None) -> Table:
    """Returns the costs of each row's runs, benchmark by benchmark and in all; without prices there is no money."""
    shares = [(row, *share) for row in results.rows.values() for share in _shares(results.of(row.key).values())]
    numbers = [_numbers(runs, seconds, prices) for _, _, runs, seconds in shares]
    amounts = [values[key] or 0.0 for values in numbers for key in ("model_money", "judge_money")]
    currency = prices.currency if prices else ""
    money = Scale(currency, 0.0, None, better=None, digits=2 if max(amounts, default=0) >= 1 else 4)
    columns = (
        *columns_of(COUNT, responses="Responses", tokens_in="Tokens in", tokens_out="Tokens out"),
        *columns_of(COUNT, judge_tokens_in="Judge tokens in", judge_tokens_out="Judge tokens out"),
        *columns_of(COUNT, judge_tokens_kept="Judge tokens kept"),
        *columns_of(_SECONDS, seconds="Seconds"),
        *columns_of(money, model_money=f"Model, {currency}", judge_money=f"Judge, {currency}"),
    )
    scales = {column.key: column.scale for column in columns}
    rows: list[tuple[tuple[str, str], Values]] = []
    for (row, title, runs, _), values in zip(shares, numbers, strict=True):
        keys = tuple(run.key for run in runs)
        known = {key: value for key, value in values.items() if value is not None}
        if known:
            cells = {key: Number(float(value), scales[key], runs=keys) for key, value in known.items()}
            rows.append(((row.label, title), cells))
    all_runs = [run for _, _, runs, _ in shares for run in runs]
    notes = (*_NOTES, *_price_notes(all_runs, prices, has_money=any(amounts)))
    title, headers = "Costs of the runs", ("Model", "Benchmark")
    return filled(Table("costs", title, headers, columns, notes=notes, question="runs"), rows)


def _shares(row_runs: Iterable[Run]) -> Iterator[tuple[str, list[Run], float | None]]:
    """Yields a row's runs by benchmark with their seconds, and all of them where there are several benchmarks."""
    all_runs = [run for run in row_runs if not run.members]
    by_benchmark: dict[str, list[Run]] = {}
    for run in all_runs:
        by_benchmark.setdefault(run.benchmark or run.task, []).append(run)
    for name, runs in by_benchmark.items():
        tasks, title = {run.task for run in runs}, benchmarks()[name].title if name in benchmarks() else name
        yield title, runs, _seconds(runs) if all(run.together <= tasks for run in runs) else None
    if len(by_benchmark) > 1:
        yield ALL, all_runs, _seconds(all_runs)


def _seconds(runs: Sequence[Run]) -> float | None:
    """Returns how long some runs took, each result file once; a new grading repeats the time of the old file."""
    return whole_sum({run.graded_from or run.path: run.seconds for run in runs}.values())


def _numbers(runs: Sequence[Run], seconds: float | None, prices: Prices | None) -> dict[str, float | None]:
    """Returns all numbers of a row by the keys of the columns; None where one of the runs doesn't say."""
    judged_runs = [run for run in runs if run.settings.judges]

    def usage(part: str) -> Usage | None:
        usages: list[Any] = [getattr(run.spent, part, None) for run in judged_runs]
        return sum(usages, start=Usage()) if usages and None not in usages else None

    names = ("responses", "tokens_in", "tokens_out")
    sums = {name: whole_sum(getattr(run.spent, name, None) for run in runs) for name in names}
    judge, kept = usage("judge"), usage("judge_kept")
    price = prices.price_of(runs[0].model_name, runs[0].model) if prices else None
    return {
        **sums,
        "judge_tokens_in": judge.prompt_tokens if judge else None,
        "judge_tokens_out": judge.completion_tokens if judge else None,
        "judge_tokens_kept": (kept.prompt_tokens + kept.completion_tokens or None) if kept else None,
        "seconds": seconds,
        "model_money": price.cost_of_run(sums["tokens_in"], sums["tokens_out"], seconds) if price else None,
        "judge_money": whole_sum(_verdict_cost(run, prices) for run in judged_runs),
    }


def _verdict_cost(run: Run, prices: Prices | None) -> float | None:
    """Returns the cost of a run's verdicts; None without a price or with several judges."""
    models = {judge.model for judge in run.settings.judges}
    price = prices.price_of(*models) if prices and len(models) == 1 else None
    spent = run.spent.judge if run.spent else None
    return price.cost_of_requests(spent) if price and spent is not None else None


def _price_notes(runs: Sequence[Run], prices: Prices | None, *, has_money: bool) -> Iterator[str]:
    """Yields the origin of the prices, and the names without one: models only where others have one."""
    if prices is None:
        return
    if has_money and prices.origin:
        yield f"Prices: {prices.origin}."
    names = [run.model_name for run in runs if prices.price_of(run.model_name, run.model) is None]
    names = names if len(names) < len(runs) else []
    judged_runs = (run for run in runs if run.spent and run.spent.judge is not None)
    judges = [judge.model for run in judged_runs for judge in run.settings.judges]
    names += [model for model in judges if prices.price_of(model) is None]
    if names:
        yield f"Without a price: {', '.join(dict.fromkeys(names))}."
