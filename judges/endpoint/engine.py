"""Answers jobs for one endpoint: from the cache in batches, by asking the endpoint, identical requests once.

That holds for all processes of the machine that share the cache: what one of them is asking for, the others wait for.

All of it runs in one event loop, in one background thread for the whole process. Memory stays flat: prompts exist for
about twice as many jobs as may be in flight, and for those that wait to be sent again after a fault, 1,000 at most.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from culture_tasks.judges.cache.verdict_cache import opened_cache, released
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Address
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.endpoint.budget import shared_budget
from culture_tasks.judges.endpoint.client import Client
from culture_tasks.judges.endpoint.jobs import VerdictJob
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.settings import Settings

T = TypeVar("T")
logger = logging.getLogger(__name__)

_JOBS_A_BATCH = 128
# At most this many requests that wait after a fault have others asked in their place: the prompts of all exist.
_MOST_RESTING = 1_000
# Answers are handed out together after so long: waking the threads that wait costs more than an answer does.
_SECONDS_BETWEEN_HANDOVERS = 0.005
_SECONDS_FOR_REPLIES_ON_THEIR_WAY = 2.0
_SECONDS_TO_STOP = 10.0
_SECONDS_BETWEEN_LOOKS = 0.25


class Engine:
    """Answers one judge's jobs. Its public methods are called from any thread but the event loop's."""

    def __init__(self, address: Address, settings: Settings, patience: Patience) -> None:
        self.pid = os.getpid()  # a forked child needs another engine
        self.is_checked = False  # whether the judge has given a readable verdict
        self.check_lock = threading.Lock()
        self._file = settings.cache_file
        self.cache = opened_cache(self._file)
        proxy = settings.proxy_for(address.url)
        self.asker = Asker(
            lambda: Client(address, settings.judge_timeout, proxy),
            name=f"judge at {address.shown}",
            concurrency=settings.judge_concurrency,
            patience=patience,
            budget=shared_budget(settings),
        )
        self._loop = _shared_loop()
        atexit.register(self.close)
        self._is_closed = False
        self._lock = threading.Lock()
        self._inbox: deque[VerdictJob] = deque()
        self._unfinished: set[VerdictJob] = set()
        self._is_loading = False
        self._loader: asyncio.Task[None] | None = None
        self._ready: deque[VerdictJob] = deque()
        self._elsewhere: list[VerdictJob] = []
        self._watcher: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._followers: dict[bytes, list[VerdictJob]] = {}
        self._answered: list[tuple[VerdictJob, Answer]] = []

    def submit(self, job: VerdictJob) -> None:
        """Takes a job; returns at once."""
        with self._lock:
            self._inbox.append(job)
            self._unfinished.add(job)
            was_loading, self._is_loading = self._is_loading, True
        if not was_loading:
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
            released(self._file)

    def _put_back(self, jobs: list[VerdictJob]) -> None:
        """Takes jobs again, before all others, that have another request to answer."""
        with self._lock:
            self._inbox.extendleft(reversed(jobs))
            was_loading, self._is_loading = self._is_loading, True
        if not was_loading:
            self._wake()

    def _wake(self) -> None:
        self._loader = asyncio.get_running_loop().create_task(self._load())

    async def _close(self) -> None:
        """Ends every job: with an answer where one is on its way and comes soon, for it is paid for; else without."""
        if self._loader is not None:
            self._loader.cancel()
        self._ready.clear()
        self.asker.stop()
        if self._workers:
            await asyncio.wait(self._workers, timeout=_SECONDS_FOR_REPLIES_ON_THEIR_WAY)
        tasks = [*self._workers, *(task for task in (self._loader, self._watcher) if task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._hand_over()
        for key in self._followers:
            self.cache.claims.release(key)
        with self._lock:
            unfinished = list(self._unfinished)
            self._unfinished.clear()
        for job in unfinished:
            job.abandon("the judge was closed before it answered", quietly=True)
        await self.asker.close()

    async def _load(self) -> None:
        while True:
            with self._lock:
                jobs = [self._inbox.popleft() for _ in range(min(_JOBS_A_BATCH, len(self._inbox)))]
                self._is_loading = bool(jobs)
            if not jobs:
                return
            while len(self._ready) > 2 * self.asker.concurrency:
                self._room.clear()
                await self._room.wait()
            await self._route(jobs)

    async def _route(self, jobs: Iterable[VerdictJob]) -> None:
        """Has each job follow an identical one, answers it from the cache, or leaves it to the workers."""
        while leaders := [job for job in jobs if self._leads(job)]:
            jobs = await self._begin(leaders)
        self._start_workers()

    async def _begin(self, leaders: Iterable[VerdictJob]) -> list[VerdictJob]:
        """Begins to answer jobs, but for those that another process asks for; returns those with another request.

        A claim comes before the look-up: what another process has asked for is in the cache once its claim has ended.
        """
        claimed: list[VerdictJob] = []
        for job in leaders:
            (claimed if self.cache.claims.claim(job.request.key) else self._elsewhere).append(job)
        if self._elsewhere and self._watcher is None:
            self._watcher = asyncio.get_running_loop().create_task(self._watch())
        keys = [job.request.key for job in claimed if not job.afresh]
        stored: dict[bytes, Answer] = {}
        try:
            stored = await asyncio.wrap_future(self.cache.get_many(keys))
        except Exception:
            # Broad: the cache handles errors of files itself, and whatever else breaks in it, the endpoint can answer.
            logger.exception("verdict cache: %d completions could not be looked up", len(keys))
        self._ready.extend(job for job in claimed if job.request.key not in stored)
        hits = [(job, stored[job.request.key]) for job in claimed if job.request.key in stored]
        return [rest for job, answer in hits for rest in self._settle(job, answer)]

    async def _watch(self) -> None:
        """Takes up jobs again that other processes asked for, as these get their answers, fail or end.

        A process that holds its claims for the whole patience without an answer, such as a suspended one, isn't waited
        for any longer.
        """
        loop = asyncio.get_running_loop()
        waiting, until = len(self._elsewhere), loop.time() + self.asker.patience.longest
        while self._elsewhere:
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            jobs, self._elsewhere = self._elsewhere, []
            if loop.time() > until:
                self._ready.extend(jobs)
            elif rest := await self._begin(jobs):
                await self._route(rest)
            if len(self._elsewhere) != waiting:
                waiting, until = len(self._elsewhere), loop.time() + self.asker.patience.longest
            self._start_workers()
        self._watcher = None

    def _leads(self, job: VerdictJob) -> bool:
        """Whether no identical request is under way; one that is takes the job along."""
        try:
            key = job.request.key
        except Exception as error:  # noqa: BLE001  # broad, since a rubric may come from anywhere; see _is_finished
            self._break_down(job, error)
            return False
        if key in self._followers:
            self._followers[key].append(job)
            return False
        self._followers[key] = []
        return True

    def _settle(self, leader: VerdictJob, answer: Answer) -> list[VerdictJob]:
        """Hands an answer to a job and its followers; returns those that have another request to answer."""
        key = leader.request.key
        followers = self._followers.pop(key)
        if answer.kept_since is not None or isinstance(answer.reply, Problem):
            self.cache.claims.release(key)  # else when the completion is committed
        rest = [] if self._is_finished(leader, answer) else [leader]
        shared = answer._replace(attempts=0)
        return rest + [job for job in followers if not self._is_finished(job, shared)]

    def _is_finished(self, job: VerdictJob, answer: Answer) -> bool:
        try:
            is_finished = job.take(answer)
        except Exception as error:  # noqa: BLE001  # broad: no bug may leave a caller waiting for ever
            self._break_down(job, error)
            return True
        if is_finished:
            self._unfinished.discard(job)
        return is_finished

    def _break_down(self, job: VerdictJob, error: Exception) -> None:
        self._unfinished.discard(job)
        job.abandon(f"the judge broke down: {type(error).__name__}: {error}")

    def _start_workers(self) -> None:
        loop = asyncio.get_running_loop()
        wanted = self.asker.concurrency + min(self.asker.resting, _MOST_RESTING)
        for _ in range(min(len(self._ready), wanted - len(self._workers))):
            worker = loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._ready:
            job = self._ready.popleft()
            self._room.set()
            try:
                answer = await self.asker.ask(job.request, on_rest=self._start_workers)
            except Exception as error:  # noqa: BLE001  # broad, as in _is_finished
                answer = Answer(Problem(f"the judge broke down: {type(error).__name__}: {error}"))
            self._answered.append((job, answer))
            if len(self._answered) == 1:
                loop.call_later(_SECONDS_BETWEEN_HANDOVERS if self.asker.in_flight else 0.0, self._hand_over)

    def _hand_over(self) -> None:
        """Has the completions that came stored, and hands all answers that came to those who wait."""
        answered, self._answered = self._answered, []
        rows = [job.row(answer.reply) for job, answer in answered if isinstance(answer.reply, Completion)]
        if rows:
            self.cache.put(rows)
        if rest := [job for leader, answer in answered for job in self._settle(leader, answer)]:
            self._put_back(rest)


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
