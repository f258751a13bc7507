"""What the runs took: tokens of model and judge, money, seconds, and how long the responses are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.loaded_runs import Entered, LoadedRun
from culture_tasks.report.model import Cell, Column, Row, Table
from culture_tasks.report.prices import Prices, whole_sum

_COUNT = Scale("count", 0.0, None, better=None, digits=0)
_SECONDS = Scale("seconds", 0.0, None, better=None, digits=1)
_ALL = "all"

_NOTES = (
    "Tokens are those that the model's backend counts: lmms-eval logs them for some backends, lm-eval for none. The "
    "judge's are those of all its replies, also of those that were kept from an earlier run. The length is the mean "
    "number of characters of a response.",
    "Seconds are those of a whole run of the harness, with the loading of the model and the grading; of a run over "
    "several benchmarks they stand beside all of them. What the files don't say is missing.",
)


def costs_table(entered: Iterable[Entered], prices: Prices | None) -> Table:
    """Returns what each entrant's runs took, benchmark by benchmark and in all.

    Args:
        entered: The entrants with their runs.
        prices: What models and judges cost; None leaves money out.
    """
    shares = [share for one in entered for share in _shares(one)]
    amounts = [amount for share in shares for amount in share.money(prices) if amount is not None]
    money = Scale(
        prices.currency if prices else "", 0.0, None, better=None, digits=2 if max(amounts, default=0) >= 1 else 4
    )
    columns = [
        Column("responses", "Responses", _COUNT),
        Column("tokens_in", "Tokens in", _COUNT),
        Column("tokens_out", "Tokens out", _COUNT),
        Column("characters", "Length", _COUNT),
        Column("judge_tokens_in", "Judge tokens in", _COUNT),
        Column("judge_tokens_out", "Judge tokens out", _COUNT),
        Column("seconds", "Seconds", _SECONDS),
    ]
    if prices:
        columns += [
            Column("model_money", f"Model, {prices.currency}", money),
            Column("judge_money", f"Judge, {prices.currency}", money),
        ]
    rows = [Row((share.model, share.benchmark), share.cells(prices, money), share.entrant) for share in shares]
    return Table(
        "costs",
        "What the runs took",
        question="runs",
        row_headers=("Model", "Benchmark"),
        columns=tuple(columns),
        rows=tuple(row for row in rows if any(cell and cell.value is not None for cell in row.cells)),
        notes=(*_NOTES, *_without_price(shares, prices)),
    )


@dataclass(frozen=True, slots=True)
class _Share:
    """Some of an entrant's runs: those of a benchmark, or all of them."""

    entrant: str
    model: str
    benchmark: str
    runs: Sequence[LoadedRun]
    seconds: float | None

    def sum_of(self, name: str) -> float | None:
        """Returns a sum over all runs; None where one of them doesn't say."""
        return whole_sum(None if each.run.spent is None else getattr(each.run.spent, name) for each in self.runs)

    @property
    def judged(self) -> list[LoadedRun]:
        """The runs that a judge graded."""
        return [each for each in self.runs if each.run.settings.judges]

    def money(self, prices: Prices | None) -> tuple[float | None, float | None]:
        """Returns what model and judge cost."""
        if prices is None:
            return None, None
        return self._model_money(prices), self._judge_money(prices)

    def _model_money(self, prices: Prices) -> float | None:
        price = prices.of(self.runs[0].result.model, self.runs[0].run.model)
        if price is None:
            return None
        return price.of(self.sum_of("tokens_in"), self.sum_of("tokens_out"), self.seconds)

    def _judge_money(self, prices: Prices) -> float | None:
        """Returns what the judge costs; None where one has no price, or one file has verdicts of several."""
        return whole_sum(_graded_for(each, prices) for each in self.judged)

    def cells(self, prices: Prices | None, money: Scale) -> tuple[Cell | None, ...]:
        """Returns the numbers of its row."""
        responses, characters = self.sum_of("responses"), self.sum_of("characters")
        of_judge = replace(self, runs=self.judged)
        numbers = [
            responses,
            self.sum_of("tokens_in"),
            self.sum_of("tokens_out"),
            characters / responses if responses and characters is not None else None,
            of_judge.sum_of("judge_tokens_in"),
            of_judge.sum_of("judge_tokens_out"),
        ]
        keys = tuple(each.run.key for each in self.runs)
        counts = [Cell(None if number is None else float(number), _COUNT, runs=keys) for number in numbers]
        amounts = [Cell(amount, money, runs=keys) for amount in self.money(prices)] if prices else []
        return (*counts, Cell(self.seconds, _SECONDS, runs=keys), *amounts)


def _graded_for(each: LoadedRun, prices: Prices) -> float | None:
    models = {judge.model for judge in each.run.settings.judges}
    price = prices.of(*models) if len(models) == 1 else None
    spent = each.run.spent
    return None if price is None or spent is None else price.of(spent.judge_tokens_in, spent.judge_tokens_out)


def _shares(one: Entered) -> Iterator[_Share]:
    """Yields an entrant's runs by benchmark, and all of them where these are several."""
    runs = [each for each in one.runs.values() if not each.result.members]
    by_benchmark: dict[str, list[LoadedRun]] = {}
    for each in runs:
        by_benchmark.setdefault(each.run.benchmark or each.run.task, []).append(each)
    for benchmark, own in by_benchmark.items():
        tasks = {each.run.task for each in own}
        alone = all(each.result.together <= tasks for each in own)
        yield _Share(one.entrant.key, one.entrant.label, benchmark, runs=own, seconds=_seconds(own) if alone else None)
    if len(by_benchmark) > 1:
        yield _Share(one.entrant.key, one.entrant.label, _ALL, runs=runs, seconds=_seconds(runs))


def _seconds(runs: Sequence[LoadedRun]) -> float | None:
    """Returns how long some runs took, each result file once; a new grading repeats the time of the old file."""
    files = {each.result.graded_from or each.result.path: each.result.seconds for each in runs}
    return whole_sum(files.values())


def _without_price(shares: Sequence[_Share], prices: Prices | None) -> Iterator[str]:
    if prices is None:
        return
    runs = [each for share in shares for each in share.runs]
    names = [each.result.model for each in runs if prices.of(each.result.model, each.run.model) is None]
    graded = [each for each in runs if each.run.spent and each.run.spent.judge_tokens_in is not None]
    judges = [judge.model for each in graded for judge in each.run.settings.judges if prices.of(judge.model) is None]
    if names or judges:
        yield f"Without a price: {', '.join(dict.fromkeys((*names, *judges)))}."
