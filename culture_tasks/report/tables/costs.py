"""The costs of the runs: tokens of model and judge, money, seconds, and how long the responses are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.costs.prices import Prices, whole_sum
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.report.model import Cell, Row, Table
from culture_tasks.report.tables.grid import ALL, COUNT, columns_of
from culture_tasks.results.loaded_runs import EntrantRuns, LoadedRun

_SECONDS = Scale("seconds", 0.0, None, better=None, digits=1)
_KEPT = ("judge_tokens_kept", "judge_money_kept")
_MONEY = ("model_money", "judge_money", "judge_money_kept")

_NOTES = (
    "Tokens are those that the model's backend counts: lmms-eval logs them for some backends, lm-eval for none. The "
    "judge's are those of all its replies; kept are those of verdicts that were there already, in the verdict cache or "
    "the graded file. The length is the mean number of characters of a response.",
    "Seconds are those of a whole run of the harness, with the loading of the model and the grading; of a run over "
    "several benchmarks they stand beside all of them. What the files don't say is missing.",
)


def costs_table(entered: Iterable[EntrantRuns], prices: Prices | None) -> Table:
    """Returns the costs of each entrant's runs, benchmark by benchmark and in all; without prices there is no money."""
    shares = [share for one in entered for share in _shares(one)]
    numbers = [_numbers(share, prices) for share in shares]
    amounts = [amount for one in numbers for key in _MONEY if (amount := one[key]) is not None]
    currency, digits = prices.currency if prices else "", 2 if max(amounts, default=0) >= 1 else 4
    money = Scale(currency, 0.0, None, better=None, digits=digits)
    has_kept = any(one["judge_tokens_kept"] for one in numbers)
    left_out = {*(() if has_kept else _KEPT), *(() if amounts else _MONEY)}
    amounts_of = {"model_money": "Model", "judge_money": "Judge", "judge_money_kept": "Judge kept"}
    every = [
        *columns_of(COUNT, responses="Responses", tokens_in="Tokens in", tokens_out="Tokens out", characters="Length"),
        *columns_of(COUNT, judge_tokens_in="Judge tokens in", judge_tokens_out="Judge tokens out"),
        *columns_of(COUNT, judge_tokens_kept="Judge tokens kept"),
        *columns_of(_SECONDS, seconds="Seconds"),
        *columns_of(money, **{key: f"{label}, {currency}" for key, label in amounts_of.items()}),
    ]
    columns = [column for column in every if column.key not in left_out]
    rows: list[Row] = []
    for share, own in zip(shares, numbers, strict=True):
        runs = tuple(each.run.key for each in share.runs)
        values = ((own[column.key], column.scale) for column in columns)
        cells = tuple(Cell(None if value is None else float(value), scale, runs=runs) for value, scale in values)
        if any(cell.value is not None for cell in cells):
            rows.append(Row((share.model, share.benchmark), cells, share.entrant))
    notes = (*_NOTES, *_about_money(shares, prices, has_money=bool(amounts)))
    title, headers = "What the runs took", ("Model", "Benchmark")
    return Table("costs", title, headers, tuple(columns), tuple(rows), notes=notes, question="runs")


class _Share(NamedTuple):
    """Some of an entrant's runs: those of a benchmark, or all of them."""

    entrant: str
    model: str
    benchmark: str
    runs: Sequence[LoadedRun]
    seconds: float | None


def _shares(one: EntrantRuns) -> Iterator[_Share]:
    """Yields an entrant's runs by benchmark, and all of them where these are several."""
    runs = [each for each in one.runs.values() if not each.result.members]
    by_benchmark: dict[str, list[LoadedRun]] = {}
    for each in runs:
        by_benchmark.setdefault(each.run.benchmark or each.run.task, []).append(each)
    for name, own in by_benchmark.items():
        tasks, benchmark = {each.run.task for each in own}, benchmarks()[name].title if name in benchmarks() else name
        alone = all(each.result.together <= tasks for each in own)
        yield _Share(one.entrant.key, one.entrant.label, benchmark, own, _seconds(own) if alone else None)
    if len(by_benchmark) > 1:
        yield _Share(one.entrant.key, one.entrant.label, ALL, runs, _seconds(runs))


def _seconds(runs: Sequence[LoadedRun]) -> float | None:
    """Returns how long some runs took, each result file once; a new grading repeats the time of the old file."""
    files = {each.result.graded_from or each.result.path: each.result.seconds for each in runs}
    return whole_sum(files.values())


def _numbers(share: _Share, prices: Prices | None) -> dict[str, float | None]:
    """Returns all numbers of a row by the keys of the columns; None where one of the runs doesn't say."""

    def total(usages: Sequence[Usage | None]) -> Usage | None:
        known = [usage for usage in usages if usage is not None]
        return sum(known, start=Usage()) if known and len(known) == len(usages) else None

    spent = [each.run.spent for each in share.runs]
    names = ("responses", "characters", "tokens_in", "tokens_out")
    sums = {name: whole_sum(None if one is None else getattr(one, name) for one in spent) for name in names}
    responses, characters = sums["responses"], sums.pop("characters")
    judged = [each for each in share.runs if each.run.settings.judges]
    judge, kept = (
        total([None if each.run.spent is None else getattr(each.run.spent, part) for each in judged])
        for part in ("judge", "judge_kept")
    )
    price = prices.of(share.runs[0].result.model, share.runs[0].run.model) if prices else None
    graded = [_graded_for(each, prices) for each in judged]
    return {
        **sums,
        "characters": characters / responses if responses and characters is not None else None,
        "judge_tokens_in": judge.prompt_tokens if judge else None,
        "judge_tokens_out": judge.completion_tokens if judge else None,
        "judge_tokens_kept": kept.prompt_tokens + kept.completion_tokens if kept else None,
        "seconds": share.seconds,
        "model_money": price.of(sums["tokens_in"], sums["tokens_out"], share.seconds) if price else None,
        "judge_money": whole_sum(amount for amount, _ in graded),
        "judge_money_kept": whole_sum(amount for _, amount in graded),
    }


def _graded_for(each: LoadedRun, prices: Prices | None) -> tuple[float | None, float | None]:
    """Returns the cost of a run's verdicts, and of its kept ones; None without a price or with several judges."""
    models, spent = {judge.model for judge in each.run.settings.judges}, each.run.spent
    price = prices.of(*models) if prices and len(models) == 1 else None
    if price is None or spent is None or spent.judge is None or spent.judge_kept is None:
        return None, None
    return price.of_requests(spent.judge), price.of_requests(spent.judge_kept)


def _about_money(shares: Sequence[_Share], prices: Prices | None, *, has_money: bool) -> Iterator[str]:
    """Yields the origin of the prices, and the names without one: models only where others have one."""
    if prices is None:
        return
    if has_money and prices.origin:
        yield f"Prices: {prices.origin}."
    runs = [each for share in shares for each in share.runs]
    names = [each.result.model for each in runs if prices.of(each.result.model, each.run.model) is None]
    names = names if len(names) < len(runs) else []
    graded = [each for each in runs if each.run.spent and each.run.spent.judge is not None]
    judges = [judge.model for each in graded for judge in each.run.settings.judges if prices.of(judge.model) is None]
    if names or judges:
        yield f"Without a price: {', '.join(dict.fromkeys((*names, *judges)))}."
