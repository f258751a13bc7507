"""Judges with one endpoint: from the cache, by the answer to an identical request, or by asking it.

All of it runs in one event loop, in one background thread for the whole process. Memory stays flat: prompts exist for
as many verdicts as may be in flight, and for at most 1,000 that wait after a fault.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from culture_tasks.judges.cache import CachedRow, VerdictCache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.grading import Grading
from culture_tasks.judges.tickets import GradingTicket

T = TypeVar("T")

_TICKETS_PER_LOOKUP = 128
# Replies are read and verdicts handed out together: a wake-up of who waits costs more than a verdict does.
_SECONDS_BETWEEN_HANDOVERS = 0.02
_SECONDS_FOR_REPLIES_ON_THEIR_WAY = 2.0
_SECONDS_TO_STOP = 10.0


class Engine:
    """The verdicts of one judge. Its public methods are called from any thread but the event loop's."""

    def __init__(self, asker: Asker, cache_file: Path | None, concurrency: int) -> None:
        self.pid = os.getpid()  # a forked child needs another engine
        self.asker = asker
        self.cache = VerdictCache(cache_file)  # to be used in the event loop
        self._concurrency = concurrency
        self._loop = _shared_loop()
        self._is_closed = False
        self._is_woken = False  # whether the loop will look into the inbox
        self._inbox: deque[GradingTicket] = deque()
        self._open: deque[GradingTicket] = deque()  # those that the cache doesn't answer
        self._in_flight: dict[bytes, list[GradingTicket]] = {}  # who waits for the answer to a request
        self._workers: set[asyncio.Task[None]] = set()
        self._rows: list[CachedRow] = []
        self._ready: list[tuple[GradingTicket, Answer | None]] = []
        atexit.register(self.close)

    def submit(self, ticket: GradingTicket) -> None:
        """Takes a ticket; returns at once."""
        self._inbox.append(ticket)
        if not self._is_woken:  # once for many
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the event loop and waits for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Ends what runs, commits what came, and closes connections and cache."""
        if not self._is_closed and self.pid == os.getpid():
            self._is_closed = True
            atexit.unregister(self.close)
            self.run(self._close())

    async def _close(self) -> None:
        """Ends every verdict: with an answer where one is on its way and comes soon, for it is paid for."""
        unfinished = [*self._inbox, *self._open]
        self._inbox.clear()
        self._open.clear()
        self.asker.is_closed = True
        if self._workers:
            await asyncio.wait(self._workers, timeout=_SECONDS_FOR_REPLIES_ON_THEIR_WAY)
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._commit()
        self._hand_over()
        for ticket in [
            *unfinished,
            *self._inbox,
            *self._open,
            *(ticket for some in self._in_flight.values() for ticket in some),
        ]:
            ticket.grading.abandon("the judge was closed before it answered")
            ticket.settle(quietly=True)
        self.cache.close()
        await self.asker.close()

    def _wake(self) -> None:
        self._is_woken = False  # before it looks: a ticket that comes later wakes it again
        self._start_workers()

    def _start_workers(self) -> None:
        most = self._concurrency + self.asker.replaced - len(self._workers)
        for _ in range(min(len(self._inbox) + len(self._open), most)):
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._open or self._inbox:
            if self._open:
                await self._judge_one(self._open.popleft())
                continue
            tickets = [self._inbox.popleft() for _ in range(min(_TICKETS_PER_LOOKUP, len(self._inbox)))]
            try:
                self._look_up(tickets)
            except Exception as error:  # noqa: BLE001  # broad: no bug, of any rubric, may leave a caller waiting for ever
                for ticket in tickets:
                    ticket.grading.abandon(f"the judge broke down: {type(error).__name__}: {error}")
                    self._plan(ticket)
            await asyncio.sleep(0)

    def _look_up(self, tickets: Sequence[GradingTicket]) -> None:
        """Has the cache answer as many tickets as it can."""
        answers = self.cache.get_many([ticket.grading.request.key for ticket in tickets])
        for ticket in tickets:
            key = ticket.grading.request.key
            answer = answers.get(key)
            if answer is not None and ticket.grading.take(answer):
                self._plan(ticket)
            elif answer is None or ticket.grading.request.key == key:  # it doesn't count: an earlier run's
                self._open.append(ticket)
            else:
                self._inbox.appendleft(ticket)

    async def _judge_one(self, ticket: GradingTicket) -> None:
        """Asks for the next answer; identical requests get the answer to the one that is in flight."""
        key = ticket.grading.request.key
        if key in self._in_flight:
            self._in_flight[key].append(ticket)
            return
        self._in_flight[key] = [ticket]
        answer = await self._answer(ticket.grading)
        for waiting in self._in_flight.pop(key):
            self._plan(waiting, answer)
            answer = answer._replace(attempts=0)

    async def _answer(self, grading: Grading) -> Answer:
        """Asks for a completion, and returns it once it is in the cache."""
        try:
            answer = await self.asker.ask(grading.request, on_rest=self._start_workers)
        except Exception as error:  # noqa: BLE001  # broad: no bug may leave a caller waiting for ever
            return Answer(Problem(f"the judge broke down: {type(error).__name__}: {error}"))
        if isinstance(answer.reply, Completion):
            if not self._rows:
                self._loop.call_soon(self._commit)  # all that come at the same time, together
            self._rows.append(grading.row(answer.reply))
            await asyncio.sleep(0)  # until that has run
        return answer

    def _commit(self) -> None:
        rows, self._rows = self._rows, []
        self.cache.put_many(rows)

    def _plan(self, ticket: GradingTicket, answer: Answer | None = None) -> None:
        """Hands out a verdict soon, or reads an answer, when the next requests are under way."""
        if not self._ready:
            self._loop.call_later(_SECONDS_BETWEEN_HANDOVERS, self._hand_over)
        self._ready.append((ticket, answer))

    def _hand_over(self) -> None:
        ready, self._ready = self._ready, []
        for ticket, answer in ready:
            if answer is None or ticket.grading.take(answer):
                ticket.settle()
            else:
                self._inbox.appendleft(ticket)
        if not self._is_closed:
            self._start_workers()


_starting = threading.Lock()
_running: tuple[int, asyncio.AbstractEventLoop] | None = None


def _shared_loop() -> asyncio.AbstractEventLoop:
    """Returns the process's event loop, which runs in a daemon thread. A forked child gets another."""
    global _running
    with _starting:
        if _running is None or _running[0] != os.getpid():
            loop = asyncio.new_event_loop()
            thread = threading.Thread(target=loop.run_forever, name="culture-tasks-judges", daemon=True)
            thread.start()
            _running = os.getpid(), loop
            atexit.register(_stop, thread, *_running)
        return _running[1]


def _stop(thread: threading.Thread, pid: int, loop: asyncio.AbstractEventLoop) -> None:
    if pid == os.getpid() and thread.is_alive():
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_SECONDS_TO_STOP)
        loop.close()
