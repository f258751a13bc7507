"""A judge behind an endpoint that is asked in batches: its open requests, and the verdicts of the results.

Its verdicts come from the verdict cache and from the results of batches, and are the same that the endpoint's judge
gives: the same requests, the same reading of replies, the same reminder after an unreadable one. A request that neither
answers is open, and is part of the next batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from culture_tasks.judges.batch.batch_endpoint import BatchLine, name_of
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.asker import Adaptations, limit_of
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge
from culture_tasks.judges.endpoint.jobs import VerdictJob, kept_answer, open_requests
from culture_tasks.judges.rubric.rubrics import Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage
from culture_tasks.settings import Settings

_MOST_TIMES = 3
_NO_REPLY = Problem("the batch ended without a reply", retry=True)

Sampling = Mapping[str, Mapping[str, Any]]
"""Sampling parameters as sent, by rubric."""


class _Reply(NamedTuple):
    """The last result of a request."""

    result: Completion | Problem  # the completion, or why there is none
    sent: Sampling  # the sampling parameters of the batch, as sent
    usage: Usage  # tokens of earlier completions, which thinking had cut off
    times: int  # how many batches it was in that have ended


class BatchJudge(EndpointJudge):
    """Asks in batches: note all items, send the open requests, give the results, and finish.

    A request that failed for a reason that may pass, expired, or was cut off by thinking is open again, and given up
    after three batches. ``asks`` says whether :meth:`check` may ask the endpoint a question.
    """

    def __init__(self, model: str, settings: Settings, *, asks: bool) -> None:
        super().__init__(model, settings)
        self.model = model
        self._asks = asks
        self._unfinished: list[VerdictJob] = []
        self._replies: dict[str, _Reply] = {}
        self._used: set[str] = set()
        self._requested: set[str] = set()
        self._held: dict[str, float] = {}

    def submit(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        """Notes an item to be graded."""
        job = self._job(rubric, item)
        self._unfinished.append(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Asks the endpoint for one verdict, which tells what parameters it takes; not where results are collected."""
        if self._asks:
            super().check(expected, responses_known=responses_known)

    def sent_sampling(self, rubric: Rubric) -> Mapping[str, Any]:
        """Returns the sampling parameters that requests by a rubric are sent with now."""
        return self._adaptations.apply(self._by.wording(rubric).sampling, self._by.most_tokens)

    def adopt_sampling(self, rubric: Rubric, sent: Mapping[str, Any]) -> None:
        """Takes over the sampling parameters that an earlier batch was sent with."""
        self._adaptations.adopt(self._by.wording(rubric).sampling, sent)

    def open_lines(self) -> list[BatchLine]:
        """Returns the open requests as lines, those that begin alike together, for the endpoint's prompt cache."""

        def body(job: VerdictJob) -> bytes:
            return job.request.body(self.sent_sampling(job.rubric))

        jobs = sorted(self._advanced().items(), key=lambda pair: pair[1].rubric.prompt_order(pair[1].item))
        return [BatchLine(name, partial(body, job)) for name, job in jobs]

    def open_prompts(self) -> list[tuple[Rubric, Sequence[Message]]]:
        """Returns the open requests as messages."""
        return [(job.rubric, job.request.chat) for job in self._advanced().values()]

    def affordable(self, lines: Sequence[BatchLine]) -> list[BatchLine]:
        """Returns the lines that the budget pays for, and sets their highest cost aside."""
        if self._budget is None:
            return list(lines)
        for line in lines:
            body = line.make_body()
            most = self._budget.most(self.model, body, limit_of(json.loads(body)), in_a_batch=True)
            if not self._budget.reserve_now(most):
                break
            self._held[line.name] = most
        return [line for line in lines if line.name in self._held]

    def give(self, name: str, result: Completion | Problem | None, sent: Sampling) -> None:
        """Takes the result of a line, in the order of the batches; None where one has ended without a result."""
        before = self._replies.get(name)
        usage = Usage() if before is None else before.usage
        if before is not None and isinstance(before.result, Completion):
            usage += before.result.usage
        if isinstance(result, Completion):
            result = replace(result, usage=result.usage.in_a_batch)
        self._replies[name] = _Reply(result or _NO_REPLY, sent, usage, 1 if before is None else before.times + 1)
        if self._budget is not None and name in self._held:
            most = self._held.pop(name)
            self._budget.settle(most, self._budget.charged(self.model, result, most))

    def finish(self) -> None:
        """Ends all verdicts: open requests have failed, for their last problem or for lack of money."""
        unsent = len(self._advanced().keys() - self._replies.keys())
        if unsent and self._budget is not None:
            self._budget.refuse(unsent)
        for job in self._unfinished:
            reply = self._replies.get(name_of(job.request.key))
            known = reply.result if reply is not None else None
            reason = self._budget.reason if self._budget is not None else "no batch has answered it"
            job.take(Answer(known if isinstance(known, Problem) else Problem(reason)))
        self._unfinished = []
        self._running().cache.flush()

    @property
    def foreign(self) -> int:
        """How many of the results so far belong to no item that was noted, or to other settings."""
        self._advanced()
        return len(self._replies.keys() - self._requested)

    @property
    def _adaptations(self) -> Adaptations:
        return self._running().asker.adaptations

    def _advanced(self) -> dict[str, VerdictJob]:
        """Returns a job for each request that is open, by the name of its line; all others are answered."""
        open_ = open_requests(self._unfinished, self._running().cache, self._answer)
        self._unfinished = [job for jobs in open_.values() for job in jobs]
        return {name_of(key): jobs[0] for key, jobs in open_.items()}

    def _answer(self, job: VerdictJob, kept: Answer | None) -> Answer | None:
        """Returns the answer to a request: a batch's, or else the cache's; None where it is open."""
        name = name_of(job.request.key)
        self._requested.add(name)
        reply = self._replies.get(name)
        result = None if reply is None else self._settled(reply, job.rubric)
        if isinstance(result, Completion) and reply is not None:
            is_new = name not in self._used
            if is_new:
                self._used.add(name)
                self._running().cache.put([replace(job.row(result), replaces=True)])
            return Answer(result, attempts=reply.times if is_new else 0)
        if (answer := kept_answer(job, kept)) is not None:
            return answer
        return Answer(result, attempts=reply.times) if isinstance(result, Problem) and reply is not None else None

    def _settled(self, reply: _Reply, rubric: Rubric) -> Completion | Problem | None:
        """Returns what a request's last result comes to; None if it is to be sent again."""
        result, may_go_on = reply.result, reply.times < _MOST_TIMES
        if isinstance(result, Problem):
            return None if result.retry and may_go_on else result
        sent = reply.sent.get(rubric.name, self._by.wording(rubric).sampling)
        if may_go_on and result.is_cut_off_by_thinking and self._adaptations.grow(sent, self._by.most_tokens):
            return None
        return replace(result, usage=reply.usage + result.usage, sampling=sent)
