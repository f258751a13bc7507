"""Asks one endpoint for completions, and repeats a request while patience lasts: the retries of all requests."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.budget import USED_UP, Budget
from culture_tasks.judges.endpoint.client import Client, Reply
from culture_tasks.judges.endpoint.pacing import Pace, Patience
from culture_tasks.judges.grading import Grading
from culture_tasks.judges.parameters import limit_of
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import may_be_cut

logger = logging.getLogger(__name__)

_REDIRECTS = 2  # how often one is asked again
_WHOLE_SECOND = 1.0  # what Retry-After says of any shorter wait
_NO_ANSWER = "the endpoint gives no answers, and the judge waits"
_SECONDS_OF_SILENCE = 5.0  # without an answer, after which the log says so
_SECONDS_BETWEEN_LATE_PROBES = 30.0
_MORE_IN_SILENCE = 8  # requests that are tried beyond as many as may be in flight, while none is answered


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and what became of it so far."""

    gradings: list[Grading]  # who waits for the answer; all of them have the same request
    patience: Patience | None = None  # None means the asker's
    attempts: int = 0
    faults: int = 0
    doubts: int = 0  # redirects and replies without a text
    seconds: float = 0.0  # that faults, and the waits after them, took
    usage: Usage | None = None  # of all its completions
    most_tokens: int = 0  # how far the limit of tokens may grow where thinking uses it up
    sent: Mapping[str, Any] = field(default_factory=dict)  # the sampling parameters that were sent last
    cut_off: Completion | None = None  # the last reply that thinking cut off


class Asker:
    """The way to one endpoint's model, which connects with the first request. To be used inside one event loop.

    An endpoint that answers nobody for as long as patience is given up for all requests at once, and found again by a
    late probe. A request that alone fails has that long for its attempts and the waits between them. ``deliver`` gets
    each exchange with its answer; the endpoint is asked for no more until what it returns is done.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        deliver: Callable[[Exchange, Answer], Awaitable[None] | None],
        *,
        name: str,
        concurrency: int,
        patience: Patience,
        budget: Budget | None = None,
    ) -> None:
        self.in_flight = 0
        self.workers: set[asyncio.Task[None]] = set()
        self._connect, self._deliver, self._name = connect, deliver, name
        self._concurrency, self._patience, self._budget = concurrency, patience, budget
        self._pace = Pace(concurrency)
        self._client: Client | None = None
        self._is_closed = False  # whether nothing more is asked
        self._open: deque[Exchange] = deque()
        self._resting = 0  # requests that wait after a fault
        self._wakes: asyncio.TimerHandle | None = None
        self._silent_since = math.inf  # when the first fault since the last answer came
        self._is_told = False  # whether the log says that there are no answers
        self._given_up: Problem | None = None  # why nothing is asked but a probe now and then
        self._next_probe = 0.0

    def ask(self, exchange: Exchange, *, soon: bool = False) -> None:
        """Takes a request that is to be answered; soon means before those that are there."""
        (self._open.appendleft if soon else self._open.append)(exchange)

    def wake(self) -> None:
        """Starts as many requests as may be in flight."""
        while self.in_flight < int(self._pace.bound) and (exchange := self._next()) is not None:
            self.in_flight += 1
            worker = asyncio.get_running_loop().create_task(self._work(exchange))
            self.workers.add(worker)
            worker.add_done_callback(self.workers.discard)

    def stop(self) -> None:
        """Asks nothing more."""
        self._is_closed = True

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()

    def _next(self) -> Exchange | None:
        """Returns the next request to send; None where there is none, or it must wait."""
        loop = asyncio.get_running_loop()
        while self._open and not self._is_closed:
            now = loop.time()
            if (delay := self._pace.delay(now)) > 0:
                if self._wakes is None:
                    self._wakes = loop.call_later(delay, self._wake_late)
                return None
            is_silent = self._silent_since < math.inf and self._given_up is None
            if is_silent and self._resting + self.in_flight >= self._concurrency + _MORE_IN_SILENCE:
                return None
            exchange = self._open.popleft()
            if (refusal := self._refusal(now)) is None:
                self._pace.start(now)
                return exchange
            self._deliver(exchange, Answer(refusal, exchange.attempts))
        return None

    def _wake_late(self) -> None:
        self._wakes = None
        self.wake()

    def _refusal(self, now: float) -> Problem | None:
        """Returns why a request isn't sent; None where it is."""
        if self._budget is not None and self._budget.left <= 0:
            self._budget.refuse()
            return Problem(self._budget.reason, code=USED_UP)
        if self._given_up is not None:
            if now < self._next_probe:
                return self._given_up
            self._next_probe = now + _SECONDS_BETWEEN_LATE_PROBES
        return None

    async def _work(self, first: Exchange) -> None:
        """Sends one request after the other, as long as there are any."""
        exchange: Exchange | None = first
        while exchange is not None:
            try:
                answer = await self._post(exchange)
                if answer is not None and (is_kept := self._deliver(exchange, answer)) is not None:
                    await is_kept
            except Exception as error:  # noqa: BLE001  # broad: no bug may leave a caller waiting for ever
                problem = Problem(f"the judge broke down: {type(error).__name__}: {error}")
                self._deliver(exchange, Answer(problem, exchange.attempts))
            finally:
                self.in_flight -= 1
            exchange = self._next() if self.in_flight < int(self._pace.bound) else None
            self.in_flight += exchange is not None
            self.wake()

    async def _post(self, exchange: Exchange) -> Answer | None:
        """Sends a request once; returns its answer, or None where it is sent again."""
        grading, time = exchange.gradings[0], asyncio.get_running_loop().time
        adaptations = grading.grader.adaptations
        if self._client is None:
            self._client = self._connect()
        exchange.sent = sampling = adaptations.apply(grading.sampling, exchange.most_tokens)
        body, began = grading.body(sampling), time()
        reply = await self._client.post(body)
        ended, result = time(), reply.result
        exchange.attempts += 1
        if isinstance(result, Completion):
            self._count_answer(began, ended)
            if may_be_cut(len(body), result.usage.prompt_tokens):
                characters = sum(len(message["content"]) for message in grading.messages())
                adaptations.warn_of_a_cut(characters, result.usage.prompt_tokens)
            return self._take(exchange, result)
        if result.retry or result.overload:
            self._count_fault(result, reply, began, ended)
        else:
            self._count_answer(began, ended)
        return self._retry(exchange, result, reply.wait, ended - began)

    def _take(self, exchange: Exchange, result: Completion) -> Answer | None:
        """Takes a completion; None where thinking cut it off and the limit grows, or where an empty one is repeated."""
        grader = exchange.gradings[0].grader
        if self._budget is not None:
            self._budget.spend(grader.model, result.usage)
        usage = result.usage if exchange.usage is None else exchange.usage + result.usage
        result = Completion(result.text, result.finish_reason, result.model, usage, exchange.sent, result.thought)
        exchange.usage = usage
        if result.is_cut_off_by_thinking and grader.adaptations.grow(exchange.sent, exchange.most_tokens):
            exchange.cut_off = result
            self.ask(exchange, soon=True)
            return None
        if not result.is_whole or result.text.strip() or exchange.doubts:
            return Answer(result, exchange.attempts)
        exchange.doubts += 1
        self._rest(exchange, (exchange.patience or self._patience).first)
        return None

    def _retry(self, exchange: Exchange, problem: Problem, wait: float | None, seconds: float) -> Answer | None:
        """Has a request repeated after a problem that may pass; else returns the problem as its answer."""
        grading, patience = exchange.gradings[0], exchange.patience or self._patience
        adaptations, cut_off = grading.grader.adaptations, exchange.cut_off
        has_grown = (limit_of(exchange.sent) or 0) > (limit_of(grading.sampling) or 0)
        if problem.status in (400, 422) and has_grown and not problem.refused:
            # The endpoint takes no larger limit, or has no room for it beside this prompt.
            if cut_off is not None and cut_off.sampling is not None:
                adaptations.shrink(limit_of(cut_off.sampling) or 0)
                return Answer(cut_off, exchange.attempts)
            exchange.most_tokens = 0
            self.ask(exchange, soon=True)
            return None
        if adaptations.learn(problem, exchange.sent):
            self.ask(exchange, soon=True)
            return None
        exchange.seconds += seconds
        if problem.is_redirect and exchange.doubts < _REDIRECTS:
            exchange.doubts += 1
        elif not problem.retry:
            return Answer(problem, exchange.attempts)
        if self._given_up is None and max(exchange.seconds, wait or 0.0) >= patience.longest:
            in_a_check = exchange.patience is not None
            return Answer(problem if in_a_check else self._giving_up(_NO_ANSWER, problem), exchange.attempts)
        longest = min(patience.cap, patience.first * 2.0 ** min(exchange.faults, 60))
        exchange.faults += 1
        exchange.seconds += self._rest(exchange, wait or longest)
        return None

    def _rest(self, exchange: Exchange, longest: float) -> float:
        """Has a request sent again after at most so many seconds; returns after how many."""
        seconds = longest * random.uniform(0.5, 1.0) if self._given_up is None else 0.0  # noqa: S311
        self._resting += 1
        asyncio.get_running_loop().call_later(seconds, self._repeat, exchange)
        return seconds

    def _repeat(self, exchange: Exchange) -> None:
        self._resting -= 1
        self.ask(exchange, soon=True)
        self.wake()

    def _giving_up(self, why: str, last: Problem) -> Problem:
        text = f"{why} {self._patience.longest:g} s at most (CULTURE_JUDGE_PATIENCE). Its last reply: {last.message}"
        return replace(last, message=text, retry=False)

    def _count_answer(self, began: float, now: float) -> None:
        """Learns from any answer, if only "wrong key", that the endpoint answers."""
        self._pace.count_answer(began, now)
        self._silent_since, self._given_up = math.inf, None
        if self._is_told:
            self._is_told = False
            logger.warning("%s: the endpoint answers again", self._name)

    def _count_fault(self, problem: Problem, reply: Reply, began: float, now: float) -> None:
        """Learns from a fault what the endpoint takes, and gives it up when patience ends."""
        pause, longest = reply.wait or 0.0, self._patience.longest
        self._silent_since = min(self._silent_since, now)
        if problem.status == 429:
            self._pace.count_limit(began, now, self.in_flight)
        elif problem.overload:
            self._pace.count_overload(began, now)
        why = _NO_ANSWER
        if pause > longest:
            why = f"the endpoint asks to be left alone for {pause:g} s, and the judge waits"
        elif pause > _WHOLE_SECOND:
            self._pace.pause(now + pause)
        if pause > longest or now - self._silent_since >= longest:
            if self._given_up is None:
                self._next_probe = now + _SECONDS_BETWEEN_LATE_PROBES
                self._pace.open()
            self._given_up = self._giving_up(why, problem)
        if not self._is_told and (self._given_up is not None or now - self._silent_since >= _SECONDS_OF_SILENCE):
            self._is_told = True
            logger.warning("%s: %s", self._name, self._giving_up(why, problem).message)
