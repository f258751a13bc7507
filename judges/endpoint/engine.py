"""Judges with one endpoint: from the cache, by the answer to an identical request, or by asking it.

All of it runs in one event loop, in one background thread for the whole process. A prompt exists for as long as its
request is in flight.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from culture_tasks.judges.cache import Row, VerdictCache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.asker import Asker, Exchange
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.grading import Grading

logger = logging.getLogger(__name__)
T = TypeVar("T")

_GRADINGS_PER_LOOKUP = 128
# Replies are read, and verdicts handed out, in pauses between replies: until then the next requests go first.
_SECONDS_OF_A_PAUSE, _SECONDS_TO_HAND_OVER = 0.02, 0.5
_SECONDS_FOR_REPLIES_ON_THEIR_WAY = 2.0
_SECONDS_TO_STOP = 10.0
_CLOSED = "the judge was closed before it answered"
_SECONDS_WITHOUT_A_LINE, _SECONDS_BETWEEN_UPDATES = 3.0, 1.0


class Engine:
    """The verdicts of one judge. Its public methods are called from any thread but the event loop's.

    ``make_asker`` makes the way to the endpoint, which reports answers to the function that it is given.
    """

    def __init__(self, make_asker: Callable[[Any], Asker], cache_file: Path | None, name: str) -> None:
        self.pid = os.getpid()  # a forked child needs another engine
        self.cache = VerdictCache(cache_file)  # to be used in the event loop
        self._name = name
        self._asker = make_asker(self._keep)
        self._loop = _shared_loop()
        self._is_closed = False
        self._is_woken = False  # whether the loop will look into the inbox
        self._inbox: deque[Grading] = deque()
        self._exchanges: dict[bytes, Exchange] = {}  # requests that wait for their answers, by key
        self._checks: dict[Exchange, asyncio.Future[Answer]] = {}
        self._arrived: list[tuple[Exchange, Answer]] = []  # completions that are not in the cache yet
        self._ready: list[tuple[Exchange, Answer]] = []
        self._will_hand_over = False
        self._latest = 0.0  # when the latest answer came, by the loop's clock
        self._news = threading.Condition()  # notified when there are new verdicts
        self._submitted = 0
        self._verdicts: Counter[str] = Counter()  # by outcome
        atexit.register(self.close)

    def submit(self, grading: Grading) -> None:
        """Takes a grading; returns at once."""
        self._submitted += 1
        self._inbox.append(grading)
        if not self._is_woken:  # once for many
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def wait(self, grading: Grading) -> None:
        """Waits until a grading has its verdict; shows a line on a terminal if that takes long."""
        if self.pid != os.getpid():
            grading.abandon("asked before this process was forked: no answer will come here")
            return
        shown = {"file": sys.stderr, "leave": False, "disable": None, "delay": _SECONDS_WITHOUT_A_LINE}
        with tqdm(desc=self._name, unit="verdict", **shown) as line:
            is_there = False
            while not is_there:
                with self._news:
                    is_there = self._news.wait_for(lambda: grading.result is not None, _SECONDS_BETWEEN_UPDATES)
                line.total = self._submitted
                line.update(self._verdicts.total() - line.n)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the event loop and waits for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def ask(self, grading: Grading, patience: Patience) -> Answer:
        """Asks for one answer that is not kept."""
        exchange = Exchange([grading], patience, most_tokens=grading.grader.most_tokens)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._checks[exchange] = future
        self._asker.ask(exchange, soon=True)
        self._asker.wake()
        return await future

    def close(self) -> None:
        """Ends what runs, commits what came, and closes connections and cache."""
        if not self._is_closed and self.pid == os.getpid():
            self._is_closed = True
            atexit.unregister(self.close)
            self.run(self._close())

    async def _close(self) -> None:
        """Ends every verdict: with an answer where one is on its way and comes soon, for it is paid for."""
        self._asker.stop()
        if self._asker.workers:
            await asyncio.wait(self._asker.workers, timeout=_SECONDS_FOR_REPLIES_ON_THEIR_WAY)
        for task in self._asker.workers:
            task.cancel()
        await asyncio.gather(*self._asker.workers, return_exceptions=True)
        self._commit()
        self._hand_over()
        unanswered = [grading for exchange in self._exchanges.values() for grading in exchange.gradings]
        for grading in [*unanswered, *self._inbox]:
            grading.abandon(_CLOSED)
        for check in self._checks.values():
            check.set_result(Answer(Problem(_CLOSED)))
        with self._news:
            self._news.notify_all()
        self.cache.close()
        await self._asker.close()

    def _wake(self) -> None:
        """Has the cache answer some gradings, and those asked for that it doesn't."""
        self._is_woken = False  # before it looks: a grading that comes later wakes it again
        gradings = [self._inbox.popleft() for _ in range(min(_GRADINGS_PER_LOOKUP, len(self._inbox)))]
        try:
            self._look_up(gradings)
        except Exception as error:  # noqa: BLE001  # broad: no bug, of any rubric, may leave a caller waiting for ever
            for grading in gradings:
                grading.abandon(f"the judge broke down: {type(error).__name__}: {error}")
        if self._inbox:
            self._is_woken = True
            self._loop.call_soon(self._wake)
        self._asker.wake()

    def _look_up(self, gradings: list[Grading]) -> None:
        answers = self.cache.get_many([grading.key for grading in gradings])
        for grading in gradings:
            key = grading.key
            if (answer := answers.get(key)) is not None and grading.take(answer):
                self._count(grading)
            elif answer is not None and grading.key != key:  # the next answer may be there, too
                self._inbox.appendleft(grading)
            elif key in self._exchanges:
                self._exchanges[key].gradings.append(grading)
            else:
                self._exchanges[key] = exchange = Exchange([grading], most_tokens=grading.grader.most_tokens)
                self._asker.ask(exchange, soon=grading.attempts > 0)

    def _keep(self, exchange: Exchange, answer: Answer) -> Awaitable[None] | None:
        """Takes an answer from the asker; what it returns ends when a completion is in the cache.

        Completions that come at the same time are stored together. Until then, they count as in flight.
        """
        if exchange in self._checks:
            self._checks.pop(exchange).set_result(answer)
            return None
        if not isinstance(answer.reply, Completion):
            self._finish(exchange, answer)
            return None
        if not self._arrived:
            self._loop.call_soon(self._commit)
        self._arrived.append((exchange, answer))
        return asyncio.sleep(0)  # the loop commits before it goes on here

    def _commit(self) -> None:
        """Stores the completions that have come."""
        arrived, self._arrived = self._arrived, []
        rows: dict[bool, list[Row]] = {False: [], True: []}
        for exchange, answer in arrived:
            if isinstance(answer.reply, Completion):
                grading = exchange.gradings[0]
                rows[grading.ignores_cache].append(grading.row(answer.reply))
        for replace, some in rows.items():
            if some:
                self.cache.put_many(some, replace=replace)
        for exchange, answer in arrived:
            self._finish(exchange, answer)

    def _finish(self, exchange: Exchange, answer: Answer) -> None:
        self._exchanges.pop(exchange.gradings[0].key, None)
        self._ready.append((exchange, answer))
        self._latest = self._loop.time()
        self._hand_over_soon()

    def _hand_over_soon(self) -> None:
        if not self._will_hand_over:
            self._will_hand_over = True
            self._hand_over_in_a_pause(self._loop.time() + _SECONDS_TO_HAND_OVER)

    def _hand_over_in_a_pause(self, latest: float) -> None:
        """Hands over once no answer has come for a while, or at the latest time."""
        wait = min(self._latest + _SECONDS_OF_A_PAUSE, latest) - self._loop.time()
        if wait > 0:
            self._loop.call_later(wait, self._hand_over_in_a_pause, latest)
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        """Reads answers, when the next requests are under way, and tells who waits."""
        self._will_hand_over = False
        ready, self._ready = self._ready, []
        for exchange, answer in ready:
            for grading in exchange.gradings:
                if grading.take(answer):
                    self._count(grading)
                else:
                    self._inbox.appendleft(grading)
                answer = answer._replace(attempts=0)
        with self._news:
            self._news.notify_all()
        if self._inbox and not self._is_closed:
            self._wake()

    def _count(self, grading: Grading) -> None:
        """Counts a verdict that is there, and warns at the first, tenth, hundredth, … without a score."""
        self._hand_over_soon()
        verdict = grading.verdict()
        self._verdicts[verdict.outcome] += 1
        count = self._verdicts[verdict.outcome]
        if verdict.outcome != "scored" and count == 10 ** (len(str(count)) - 1):
            logger.warning("%s: %d %s so far; the last: %s", self._name, count, verdict.outcome, verdict.error)


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
