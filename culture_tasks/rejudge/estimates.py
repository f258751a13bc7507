"""What the judge of some tasks will cost: questions, requests, tokens and money, before anything is asked.

For finished runs the responses are known, and the requests are those that ``rejudge`` would send: what the verdict
cache answers costs nothing. Before a run, a response has between no token and as many as the task allows. A reply has
as many tokens as those in the verdict cache by the same judge and rubric had on average; without enough of these,
between a bare rating and its limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import check_revisions
from culture_tasks.costs.prices import Prices
from culture_tasks.costs.token_counts import tokens_by_rule
from culture_tasks.errors import DataError
from culture_tasks.harness.records import scorer_of
from culture_tasks.harness.subsets import draw_subset
from culture_tasks.judges.cache import JudgeStats, VerdictCache
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.grading import Grading, open_requests
from culture_tasks.judges.rubric.rubrics import Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage
from culture_tasks.rejudge.rejudging import find_runs, judged_tasks, sample_of
from culture_tasks.settings import Settings

FEWEST_REPLIES = 20  # in the cache, for their mean length to count
SHORTEST_REPLY = 5  # tokens of a rating and nothing else
_SUMMED = ("questions", "verdicts", "kept", "requests", "tokens_in", "tokens_out")
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_REQUEST = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number that is known only within limits; both are the same where it is known."""

    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: Bounds) -> Bounds:
        """Returns the sum of both."""
        return Bounds(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> Bounds:
        """Returns a multiple."""
        return Bounds(self.low * factor, self.high * factor)

    def text(self, form: Callable[[float], str]) -> str:
        """Returns both ends as text, or one where they read alike."""
        return " to ".join(dict.fromkeys(form(end) for end in (self.low, self.high)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of some requests to a judge."""

    task: str
    judge: str = ""  # the judge's model; empty where no judge grades
    questions: int = 0
    verdicts: int = 0  # verdicts on the responses
    kept: int = 0  # of these, the ones that the verdict cache has
    requests: float = 0.0  # requests that will be sent
    tokens_in: Bounds = field(default_factory=Bounds)  # tokens that the judge reads
    tokens_out: Bounds = field(default_factory=Bounds)  # tokens that it writes
    measured: bool = True  # whether the length of the replies is that of kept ones

    def __add__(self, other: Estimate) -> Estimate:
        """Returns the sum of both, under the first one's names."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMMED}
        return replace(self, **sums, measured=self.measured and other.measured)


@dataclass(frozen=True)
class Estimator:
    """Estimates by prices, and by the replies that the verdict cache has."""

    prices: Prices
    replies: Sequence[JudgeStats]
    settings: Settings
    judge: str | None  # the model that is asked in place of the papers'
    in_batches: bool

    def estimate_run(self, task: Task) -> list[Estimate]:
        """Estimates for a task whose responses aren't there yet, by the judge's model."""
        scorer = scorer_of(task.name)
        check_revisions(self.settings)
        documents = task.data.load(self.settings)
        if self.settings.subset is not None:
            documents, _ = draw_subset(task.name, documents, *self.settings.subset)
        rows = documents.rows
        estimates = []
        for row in rows if scorer.is_judged else ():
            if (expected := scorer.expected(row)) is not None:
                rubric, item = expected
                prompt = _tokens(rubric.messages(item, delimiters=self.settings.judge_delimiters == "on"))
                estimate = Estimate(task.name, self.judge or rubric.model, questions=1, verdicts=1)
                lengths = Bounds(prompt, prompt + task.decoding.max_tokens)
                estimates.append(self._with_request(estimate, rubric, prompt=lengths))
        return summed(estimates) or [Estimate(task.name, questions=len(rows))]

    def estimate_finished_runs(self, paths: Sequence[Path], names: set[str], sample: int | None) -> list[Estimate]:
        """Estimates for judged tasks of runs, all without names; of several gradings of a run, one counts."""
        gradings = {run.origin: [(run.files, task) for task in judged_tasks(run.files)] for run in find_runs(paths)}
        tasks = [pair for pairs in gradings.values() for pair in pairs if not names or pair[1].name in names]
        if not tasks:
            raise DataError(
                "cost: none of these runs has logged samples of these tasks that a judge grades. Expected runs of a "
                "judged benchmark with --log_samples and --output_path."
            )
        estimates = []
        for files, task in tasks:
            graded = task if sample is None else sample_of(files, task, sample)
            items: dict[str, list[tuple[Rubric, JudgeItem]]] = {}
            for each in graded.samples:
                items.setdefault(self.judge or each.rubric.model, []).extend(each.expected(failed_only=False))
            estimates += [self._estimate_responses(graded.name, model, part) for model, part in items.items()]
        return summed(estimates)

    def _estimate_responses(self, task: str, model: str, items: Sequence[tuple[Rubric, JudgeItem]]) -> Estimate:
        """Estimates the cost of grading known responses; verdicts in the cache cost nothing."""
        grader = EndpointJudge(model, self.settings).grader
        gradings = [Grading(grader, rubric, item) for rubric, item in items]
        with closing(VerdictCache(self.settings.cache_file)) as cache:
            open_gradings = [first for first, *_ in open_requests(gradings, cache).values()]
        kept = sum(grading.result is not None for grading in gradings)
        total = Estimate(task, model, len({item.question for _, item in items}), len(items), kept)
        for grading in open_gradings:
            prompt = _tokens(grading.messages())
            total = self._with_request(total, grading.rubric, prompt=Bounds(prompt, prompt))
        return total

    def _with_request(self, estimate: Estimate, rubric: Rubric, *, prompt: Bounds) -> Estimate:
        """Adds a request with a prompt of this length, and its reply, or as many as are asked for again on average."""
        matching_stats = [
            stats for stats in self.replies if (stats.model, stats.rubric) == (estimate.judge, rubric.name)
        ]
        replies = sum(stats.completions for stats in matching_stats)
        tokens = sum(stats.usage.completion_tokens for stats in matching_stats)
        first = replies - sum(stats.asked_again for stats in matching_stats)
        limit = int({**rubric.sampling, **self.settings.judge_parameters}.get("max_tokens") or 32_768)
        requests, length = 1.0, Bounds(min(SHORTEST_REPLY, limit), limit)
        is_measured = replies >= FEWEST_REPLIES and tokens > 0
        if is_measured:
            requests, length = replies / first if first else 1.0, Bounds(tokens / replies, tokens / replies)
        return estimate + Estimate(
            estimate.task,
            requests=requests,
            tokens_in=prompt.times(requests),
            tokens_out=length.times(requests),
            measured=is_measured,
        )

    def money(self, estimate: Estimate) -> Bounds | None:
        """Returns what it costs; None without a judge, or a price by tokens."""
        ends: list[float] = []
        for end in ("low", "high"):
            usage = Usage(math.ceil(getattr(estimate.tokens_in, end)), math.ceil(getattr(estimate.tokens_out, end)))
            usage = usage.in_a_batch if self.in_batches else usage
            cost = self.prices.cost_of_requests(estimate.judge, usage) if estimate.judge else None
            ends += [] if cost is None else [cost]
        return Bounds(*ends) if ends else None


def _tokens(messages: Sequence[Message]) -> int:
    texts = sum(tokens_by_rule(message["content"]) for message in messages)
    return texts + _TOKENS_PER_MESSAGE * len(messages) + _TOKENS_PER_REQUEST


def money_text(amount: Bounds | None) -> str:
    """Returns an amount of money, with four digits where it is less than 1."""
    if amount is None:
        return "no price"
    digits = 2 if amount.high >= 1 or amount.high == 0 else 4
    return amount.text(lambda end: f"{end:,.{digits}f}")


def summed(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Returns the sums by task and judge, without tasks that no judge grades."""
    sums: dict[tuple[str, str], Estimate] = {}
    for estimate in estimates:
        if estimate.judge:
            key = estimate.task, estimate.judge
            sums[key] = sums[key] + estimate if key in sums else estimate
    return list(sums.values())


def totals(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Returns the sums by judge alone."""
    return summed(replace(estimate, task="all") for estimate in estimates)
