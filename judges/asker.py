"""Asks one endpoint for one completion: paced, repeated while patience lasts, with parameters that it accepts."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol

from culture_tasks.judges.adaptations import Adaptations, limit_of
from culture_tasks.judges.client import Reply
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.pacing import Gate, Kind, Pace, Patience
from culture_tasks.judges.replies import Problem
from culture_tasks.judges.verdicts import Usage

logger = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429


class Asked(NamedTuple):
    """How a request ended.

    Attributes:
        result: The completion, or the last problem.
        attempts: How often the endpoint was asked.
    """

    result: Completion | Problem
    attempts: int


class Posts(Protocol):
    """What sends a request: :class:`~culture_tasks.judges.client.Client`, or a test's endpoint."""

    async def post(self, body: bytes) -> Reply:
        """Sends one request and reads the whole reply."""
        ...  # pragma: no cover

    async def close(self) -> None:
        """Closes all connections."""
        ...  # pragma: no cover


class Asker:
    """The way to one endpoint, for all judges of the process that use it. To be used inside the event loop.

    Args:
        connect: Makes what sends requests, when the first one is sent.
        name: Who is asked, without secrets, for the log.
        concurrency: Most requests in flight.
        patience: How persistent to be.

    Attributes:
        concurrency: Most requests in flight.
        resting: Requests that wait to be sent again after a fault, and let others go first.
    """

    def __init__(self, connect: Callable[[], Posts], *, name: str, concurrency: int, patience: Patience) -> None:
        self.concurrency = concurrency
        self.resting = 0
        self._connect = connect
        self._name = name
        self._patience = patience
        self._client: Posts | None = None
        self._gate = Gate(Pace(concurrency, patience))
        self._adaptations: dict[str, Adaptations] = {}
        self._last_problem = Problem("the judge was closed", retry=False)
        self._told: str | None = None

    def adaptations(self, model: str) -> Adaptations:
        """Returns what this endpoint's model takes in place of the parameters that were meant."""
        if model not in self._adaptations:
            self._adaptations[model] = Adaptations()
        return self._adaptations[model]

    async def ask(
        self, request: ChatRequest, *, patience: Patience | None = None, on_rest: Callable[[], None] | None = None
    ) -> Asked:
        """Asks the endpoint until there is a completion, or patience ends.

        The endpoint's silence is borne as long as it is for all requests. A request that fails while others are
        answered is asked again for as long, counted by itself; one that only came too early is never given up.

        A reply that thinking cut off is asked for again with a larger limit of tokens, as far as request and endpoint
        allow; its tokens are counted in the usage of the reply that follows.

        Args:
            request: What to ask.
            patience: Less patience than with all requests: no further attempt begins after that long.
            on_rest: Called whenever this request begins to wait after a fault, so that others are asked meanwhile: a
                request that always fails must not keep the endpoint from showing that it answers.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + patience.longest if patience else float("inf")
        patience = patience or self._patience
        adaptations = self.adaptations(request.model)
        attempts = faults = 0
        most_tokens, usage = request.most_tokens, Usage()
        cut_off: Completion | None = None
        failing, last_fault = 0.0, float("inf")
        began = await self._gate.enter()
        while began is not None:
            sampling = adaptations.apply(request.sampling, most_tokens)
            result = await self._send(request.body(sampling), began)
            attempts += 1
            if isinstance(result, Completion):
                usage += result.usage
                result = Completion(
                    result.text, result.finish_reason, result.model, usage, sampling, thought=result.thought
                )
                if not (result.is_cut_off_by_thinking and adaptations.grow(sampling, most_tokens)):
                    return Asked(result, attempts)
                cut_off = result
                began = await self._gate.enter()
                continue
            if result.status in (400, 422) and (limit_of(sampling) or 0) > (limit_of(request.sampling) or 0):
                # The endpoint takes no such limit, or has no room for it beside this prompt.
                if cut_off is not None and cut_off.sampling is not None:
                    adaptations.shrink(limit_of(cut_off.sampling) or 0)
                    return Asked(cut_off, attempts)
                most_tokens = 0
                began = await self._gate.enter()
                continue
            if adaptations.learn(result, sampling):
                began = await self._gate.enter()
                continue
            silence, now = self._gate.pace.silence, loop.time()
            limited, wait = _kind(result) == "limited", 0.0
            if not limited:
                faults += 1
                wait = 0.0 if silence.out else patience.backoff(faults, random.random())  # noqa: S311
                # A fault is the request's own, and not the endpoint's, where others were answered since the last one.
                if silence.answered_at >= min(began, last_fault):
                    failing += now - began + wait
                last_fault = now
            hopeless = failing > patience.longest or now + max(wait, self._gate.pace.delay(now) or 0.0) > ends
            if not result.retry or (hopeless and silence.given_up is None):
                return Asked(result, attempts)
            began = await (self._gate.enter() if limited else self._rested(wait, on_rest))
        return Asked(self._refusal(), attempts)

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def stop(self) -> None:
        """Begins no further request; those in flight go on."""
        self._gate.close()

    async def _send(self, body: bytes, began: float) -> Completion | Problem:
        if self._client is None:
            self._client = self._connect()
        kind: Kind | None = None
        pause = 0.0
        try:
            reply = await self._client.post(body)
            kind, pause = _kind(reply.result), reply.wait or 0.0
            if isinstance(reply.result, Problem) and kind != "answer":
                self._last_problem = reply.result
        finally:
            self._gate.leave(began, kind, pause)
        self._tell()
        return reply.result

    async def _rested(self, seconds: float, on_rest: Callable[[], None] | None) -> float | None:
        self.resting += 1
        try:
            if on_rest is not None:
                on_rest()
            await asyncio.sleep(seconds)
            return await self._gate.enter()
        finally:
            self.resting -= 1

    def _refusal(self) -> Problem:
        why = self._gate.pace.silence.given_up
        if why is None:
            return Problem("the judge was closed before it answered", retry=False)
        return replace(self._last_problem, message=f"{why}. Its last reply: {self._last_problem.message}", retry=False)

    def _tell(self) -> None:
        """Logs, once each, that the endpoint gives no answers any more, that it is given up, and that it is back."""
        silence = self._gate.pace.silence
        news = silence.given_up
        if news is None and silence.out:
            news = f"the endpoint gives no answers, and is waited for {self._patience.longest:g} s at most"
        if news != self._told:
            self._told = news
            told = f"{news}. Its last reply: {self._last_problem.message}" if news else "the endpoint answers again"
            logger.warning("%s: %s", self._name, told)


def _kind(result: Completion | Problem) -> Kind:
    if isinstance(result, Completion) or not (result.retry or result.overload):
        return "answer"
    if result.status == _TOO_MANY_REQUESTS:
        return "limited"
    return "overload" if result.overload else "fault"
