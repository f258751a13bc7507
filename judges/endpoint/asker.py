"""Asks one endpoint for one completion, and repeats it while patience lasts: the retries of all requests."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.budget import USED_UP, Budget
from culture_tasks.judges.endpoint.client import Client, Reply
from culture_tasks.judges.endpoint.pacing import Gate, Patience
from culture_tasks.judges.parameters import Adaptations, limit_of
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import may_be_cut

logger = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429
_STRAYS = 2  # how often a redirect, which may be a proxy's, is asked again
_EMPTY_REPLIES = 1  # how often a reply without a text, such as one of reasoning alone, is asked again as a fault is
_WHOLE_SECOND = 1.0  # what Retry-After says of any shorter wait
_NO_ANSWER = "the endpoint gives no answers, and the judge waits"
_SECONDS_OF_SILENCE = 5.0  # without an answer, after which the log says so
_SECONDS_BETWEEN_LATE_PROBES = 30.0
# At most this many requests that wait after a fault have others asked in their place: the prompts of all exist. Few
# where nothing is answered: a request that always fails must not keep the endpoint from showing that it answers.
_MOST_REPLACED, _REPLACED_IN_SILENCE = 1_000, 8
_FAULTS_OF_AN_OUTAGE = 8


class Asker:
    """The way to one endpoint's model, which connects with the first request. To be used inside one event loop."""

    def __init__(
        self,
        connect: Callable[[], Client],
        *,
        name: str,
        concurrency: int,
        patience: Patience,
        budget: Budget | None = None,
        adaptations: Adaptations | None = None,
    ) -> None:
        self.gate = Gate(concurrency)
        self.is_closed = False  # whether nothing more is asked
        self._connect, self._name, self._patience, self._budget = connect, name, patience, budget
        self._adaptations = adaptations or Adaptations()
        self._client: Client | None = None
        self._resting = 0
        self._faults_in_a_row = 0
        self._silent_since = math.inf  # when the first fault since the last answer came
        self._is_told = False  # whether the log says that there are no answers
        self._news = asyncio.Event()  # ends the waits after faults
        self._given_up: str | None = None  # why nothing is asked but a probe now and then
        self._next_probe = 0.0
        self._last_fault = Problem("no reply")

    @property
    def replaced(self) -> int:
        """How many requests that wait after a fault have others asked in their place."""
        return min(
            self._resting, _MOST_REPLACED if self._faults_in_a_row < _FAULTS_OF_AN_OUTAGE else _REPLACED_IN_SILENCE
        )

    async def ask(
        self, request: ChatRequest, *, patience: Patience | None = None, on_rest: Callable[[], None] | None = None
    ) -> Answer:
        """Asks the endpoint until there is a completion, or patience ends.

        An endpoint that answers nobody for as long as patience is given up for all requests at once, and found again
        by a late probe. A request that alone fails has that long for its attempts and the waits between them.
        ``on_rest`` is called whenever this request begins to wait after a fault.
        """
        loop = asyncio.get_running_loop()
        in_a_check, patience = patience is not None, patience or self._patience
        attempts = faults = strays = empty = 0
        seconds, usage, most_tokens = 0.0, Usage(), request.most_tokens
        cut_off: Completion | None = None
        while (refusal := self._refusal(loop.time())) is None:
            was_given_up = self._given_up
            began = await self.gate.enter()
            try:
                if self.is_closed or self._given_up != was_given_up:
                    continue
                if self._client is None:
                    self._client = self._connect()
                sampling = self._adaptations.apply(request.sampling, most_tokens)
                body = request.body(sampling)
                reply = await self._client.post(body)
            finally:
                self.gate.leave()
            now = loop.time()
            attempts += 1
            result = reply.result
            self._count(reply, began, now)
            if isinstance(result, Completion):
                if self._budget is not None:
                    self._budget.spend(request.model, result.usage)
                if may_be_cut(len(body), result.usage.prompt_tokens):
                    self._adaptations.warn_of_a_cut(request, result.usage.prompt_tokens)
                usage = result.usage if attempts == 1 else usage + result.usage
                result = Completion(result.text, result.finish_reason, result.model, usage, sampling, result.thought)
                if result.is_cut_off_by_thinking and self._adaptations.grow(sampling, most_tokens):
                    cut_off = result
                    continue
                if not result.is_whole or result.text.strip() or empty == _EMPTY_REPLIES:
                    return Answer(result, attempts)
                empty += 1
                await self._rest(patience.first * random.uniform(0.5, 1.0), on_rest)  # noqa: S311
                continue
            has_grown = (limit_of(sampling) or 0) > (limit_of(request.sampling) or 0)
            if result.status in (400, 422) and has_grown and not result.refused:
                # The endpoint takes no larger limit, or has no room for it beside this prompt.
                if cut_off is not None and cut_off.sampling is not None:
                    self._adaptations.shrink(limit_of(cut_off.sampling) or 0)
                    return Answer(cut_off, attempts)
                most_tokens = 0
                continue
            if self._adaptations.learn(result, sampling):
                continue
            strays += result.is_stray
            seconds += now - began
            if not (result.retry or (result.is_stray and strays <= _STRAYS)):
                return Answer(result, attempts)
            if self._given_up is None and max(seconds, reply.wait or 0.0) >= patience.longest:
                return Answer(result if in_a_check else self._given_up_problem(_NO_ANSWER, result), attempts)
            longest = min(patience.cap, patience.first * 2.0 ** min(faults, 60))
            wait = (reply.wait or longest) * random.uniform(0.5, 1.0)  # noqa: S311
            faults += 1
            await self._rest(wait, on_rest)
            seconds += wait
        return Answer(refusal, attempts)

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _refusal(self, now: float) -> Problem | None:
        """Returns why a request isn't sent; None where it is."""
        if self.is_closed:
            return Problem("the judge was closed before it answered")
        if self._budget is not None and self._budget.is_spent:
            self._budget.refuse()
            return Problem(self._budget.reason, code=USED_UP)
        if self._given_up is not None:
            if now < self._next_probe:
                return self._given_up_problem(self._given_up, self._last_fault)
            self._next_probe = now + _SECONDS_BETWEEN_LATE_PROBES
        return None

    def _given_up_problem(self, why: str, last: Problem) -> Problem:
        text = f"{why} {self._patience.longest:g} s at most (CULTURE_JUDGE_PATIENCE). Its last reply: {last.message}"
        return replace(last, message=text, retry=False)

    def _count(self, reply: Reply, began: float, now: float) -> None:
        """Learns from a reply what the endpoint takes, and whether it answers at all."""
        result, pause, longest = reply.result, reply.wait or 0.0, self._patience.longest
        if isinstance(result, Completion) or not (result.retry or result.overload):
            self.gate.count_answer(began, now)
            self._faults_in_a_row = 0
            if self._silent_since < math.inf:
                if self._is_told:
                    logger.warning("%s: the endpoint answers again", self._name)
                    self._end_rests()
                self._silent_since, self._is_told, self._given_up = math.inf, False, None
            return
        self._last_fault = result
        self._silent_since = min(self._silent_since, now)
        self._faults_in_a_row += result.status != _TOO_MANY_REQUESTS
        if result.status == _TOO_MANY_REQUESTS:
            self.gate.count_limit(began, now)
        elif result.overload:
            self.gate.count_overload(began, now)
        why = _NO_ANSWER
        if pause > longest:
            why = f"the endpoint asks to be left alone for {pause:g} s, and the judge waits"
        elif pause > _WHOLE_SECOND:
            self.gate.pause(now + pause)
        if self._given_up is None and (pause > longest or now - self._silent_since >= longest):
            self._given_up = why
            self._next_probe = now + _SECONDS_BETWEEN_LATE_PROBES
            self.gate.open()
            self._end_rests()
        if not self._is_told and (self._given_up is not None or now - self._silent_since >= _SECONDS_OF_SILENCE):
            self._is_told = True
            logger.warning("%s: %s", self._name, self._given_up_problem(why, result).message)

    def _end_rests(self) -> None:
        self._news.set()
        self._news.clear()

    async def _rest(self, seconds: float, on_rest: Callable[[], None] | None) -> None:
        """Waits after a fault, no longer than until the endpoint answers again, or is given up."""
        if self._given_up is not None:
            return
        self._resting += 1
        try:
            if on_rest is not None:
                on_rest()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), seconds)
        finally:
            self._resting -= 1
