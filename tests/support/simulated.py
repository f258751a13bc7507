"""Endpoints that misbehave for hours, in no time: an event loop whose clock jumps, and replies without a network."""

from __future__ import annotations

import asyncio
import math
import random
from collections import deque
from collections.abc import Coroutine
from typing import Any, NamedTuple, TypeVar

from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.endpoint.client import Reply
from culture_tasks.judges.endpoint.pacing import Patience

T = TypeVar("T")

GOOD = Reply(Completion("rating=2", "stop"))


def problem(status: int | None, wait: float | None = None) -> Reply:
    """What the client makes of an error that may pass; None is a refused connection."""
    return Reply(Problem(f"HTTP {status}", retry=True, overload=status in (429, 503), status=status), wait)


class _JumpingLoop(asyncio.SelectorEventLoop):
    now = 0.0

    def __init__(self) -> None:
        super().__init__()
        select = self._selector.select

        def jump(timeout: float | None = None) -> Any:
            if timeout is None:
                raise RuntimeError("everybody waits, and nothing will ever happen")
            self.now += max(0.0, timeout)
            return select(0)

        self._selector.select = jump

    def time(self) -> float:
        return self.now


def in_simulated_time(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a loop that never waits: where nothing happens before a time, it is that time."""
    with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
        return runner.run(work)


class Simulated:
    """An endpoint, as the asker knows it. Each test's own is a subclass.

    Attributes:
        posts: When each request came.
        in_flight: Requests under way.
        most_in_flight: Most of them at a time.
    """

    def __init__(self) -> None:
        self.posts: list[float] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def post(self, body: bytes) -> Reply:
        """Counts a request, and replies."""
        self.posts.append(self.now)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self.reply(body)
        finally:
            self.in_flight -= 1

    async def reply(self, body: bytes) -> Reply:
        """Replies; to be replaced."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes nothing."""

    @property
    def now(self) -> float:
        """The time."""
        return asyncio.get_running_loop().time()


class Limited(Simulated):
    """Takes so many requests a second: from a bucket that fills, or in windows of fixed length.

    Args:
        rate: Requests a second.
        burst: Requests that the bucket holds.
        window: Seconds of a window in which ``rate * window`` requests are taken; None for the bucket.
        tells: Whether Retry-After comes with a refusal, in whole seconds.
        latency: Seconds that an answer takes.
    """

    def __init__(
        self, rate: float, *, burst: int = 1, window: float | None = None, tells: bool = False, latency: float = 0.5
    ) -> None:
        super().__init__()
        self.rate, self.burst, self.window, self.tells, self.latency = rate, burst, window, tells, latency
        self._level, self._filled_at = float(burst), 0.0
        self._taken: dict[int, int] = {}

    async def reply(self, body: bytes) -> Reply:
        wait = self._wait()
        if wait > 0:
            await asyncio.sleep(0.01)
            return problem(429, float(math.ceil(wait)) if self.tells else None)
        await asyncio.sleep(self.latency)
        return GOOD

    def _wait(self) -> float:
        if self.window is not None:
            number = int(self.now // self.window)
            self._taken[number] = self._taken.get(number, 0) + 1
            return 0.0 if self._taken[number] <= self.rate * self.window else (number + 1) * self.window - self.now
        self._level = min(self.burst, self._level + (self.now - self._filled_at) * self.rate)
        self._filled_at = self.now
        if self._level < 1 - 1e-9:
            return (1 - self._level) / self.rate
        self._level -= 1
        return 0.0


class Outcome(NamedTuple):
    """How a simulated run went.

    Attributes:
        answers: How each request ended, in the order of their ends.
        ended: When each ended.
    """

    answers: list[Answer]
    ended: list[float]

    @property
    def lost(self) -> int:
        """How many requests brought no completion."""
        return sum(not isinstance(answer.reply, Completion) for answer in self.answers)

    @property
    def seconds(self) -> float:
        """When the last request ended."""
        return max(self.ended)


def run(endpoint: Simulated, requests: int, *, concurrency: int = 64) -> Outcome:
    """Asks the endpoint as an engine does: so many at a time, and others in place of those that rest."""
    random.seed(0)

    async def scenario() -> Outcome:
        asker = Asker(lambda: endpoint, name="judge", concurrency=concurrency, patience=Patience())
        waiting = deque(ChatRequest("e", "m", [{"role": "user", "content": str(n)}], {}) for n in range(requests))
        outcome = Outcome([], [])
        workers: set[asyncio.Task[None]] = set()

        async def work() -> None:
            while waiting:
                outcome.answers.append(await asker.ask(waiting.popleft(), on_rest=start))
                outcome.ended.append(asyncio.get_running_loop().time())

        def start() -> None:
            for _ in range(min(len(waiting), concurrency + asker.resting - len(workers))):
                task = asyncio.get_running_loop().create_task(work())
                workers.add(task)
                task.add_done_callback(workers.discard)

        start()
        while workers:
            await asyncio.gather(*workers)
        return outcome

    return in_simulated_time(scenario())
