"""Asks one endpoint for one completion: paced, repeated as far as the rule goes, with parameters that it accepts."""

from __future__ import annotations

import random
import time
from asyncio import sleep
from dataclasses import replace
from typing import NamedTuple

from culture_tasks.judges.adaptations import Adaptations
from culture_tasks.judges.addresses import Address
from culture_tasks.judges.client import Client, Reply
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.gate import Gate
from culture_tasks.judges.pacing import Breaker, Pace
from culture_tasks.judges.replies import Problem
from culture_tasks.judges.retries import RetryRule


class Asked(NamedTuple):
    """How a request ended.

    Attributes:
        result: The completion, or the last problem.
        attempts: How often the endpoint was asked.
    """

    result: Completion | Problem
    attempts: int


class Asker:
    """The way to one endpoint, for all judges of the process that use it. To be used inside the event loop.

    Args:
        address: The endpoint.
        concurrency: Most requests in flight.
        timeout: Seconds that one request may take.
        rule: How persistent to be.
        proxy: Proxy to go through.
    """

    def __init__(
        self, address: Address, *, concurrency: int, timeout: float, rule: RetryRule, proxy: str | None = None
    ) -> None:
        self.concurrency = concurrency
        self._address = address
        self._timeout = timeout
        self._proxy = proxy
        self._rule = rule
        self._client: Client | None = None
        self._gate = Gate(Pace(concurrency))
        self._breaker = Breaker(rule.longest)
        self._adaptations: dict[str, Adaptations] = {}

    def adaptations(self, model: str) -> Adaptations:
        """Returns what this endpoint's model takes in place of the parameters that were meant."""
        return self._adaptations.setdefault(model, Adaptations())

    async def ask(self, request: ChatRequest, rule: RetryRule | None = None) -> Asked:
        """Asks the endpoint until there is a completion, or the rule ends.

        Args:
            request: What to ask.
            rule: How persistent to be; by default as with all requests.
        """
        rule = rule or self._rule
        began, attempts = time.monotonic(), 0
        adaptations = self.adaptations(request.model)
        while not self._breaker.refuses(time.monotonic()):
            sampling = adaptations.apply(request.sampling)
            result, asked_to_wait = await self._send(request.body(sampling))
            attempts += 1
            if isinstance(result, Completion):
                return Asked(replace(result, sampling=sampling), attempts)
            if adaptations.learn(result, sampling):
                continue
            spent = time.monotonic() - began
            wait = rule.wait(attempts, spent, asked_to_wait, random.random()) if result.retry else None  # noqa: S311
            if wait is None:
                return Asked(result, attempts)
            await sleep(wait)
        return Asked(Problem(f"the endpoint has given no answer for {self._rule.longest:g} s", retry=False), attempts)

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _send(self, body: bytes) -> Reply:
        if self._client is None:
            self._client = Client(self._address, self._timeout, self._proxy)
        began = await self._gate.enter()
        overload, pause = False, 0.0
        try:
            reply = await self._client.post(body)
            overload = isinstance(reply.result, Problem) and reply.result.overload
            pause = min(reply.wait or 0.0, self._rule.longest)
        finally:
            self._gate.leave(began, overload=overload, pause=pause)
        if isinstance(reply.result, Problem) and reply.result.retry:
            self._breaker.failed(time.monotonic())
        else:
            self._breaker.succeeded()
        return reply
