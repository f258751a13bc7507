"""The gate to an endpoint: lets requests through as the pace allows, in order of arrival."""

from __future__ import annotations

import asyncio
from collections import deque

from culture_tasks.judges.pacing import Pace


class Gate:
    """Applies a :class:`~culture_tasks.judges.pacing.Pace` inside an event loop."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def enter(self) -> float:
        """Waits until one more request may start; returns the time."""
        loop = asyncio.get_running_loop()
        if not self._waiting and self.pace.free(loop.time()):
            self.pace.start()
            return loop.time()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(loop.time())
            raise
        return loop.time()

    def leave(self, began: float, *, overload: bool = False, pause: float = 0.0) -> None:
        """Ends a request (see :meth:`Pace.end`) and lets the next ones in."""
        now = asyncio.get_running_loop().time()
        self.pace.end(began, now, overload=overload, pause=pause)
        if self._waiting:
            self._admit()

    def _admit(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._waiting and self.pace.free(now):
            turn = self._waiting.popleft()
            if not turn.done():
                self.pace.start()
                turn.set_result(None)
        if self._waiting and now < self.pace.resumes_at and self._timer is None:
            self._timer = loop.call_at(self.pace.resumes_at, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._admit()
