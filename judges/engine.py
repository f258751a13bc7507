"""Works off jobs for one endpoint: from the cache in batches, from the endpoint by workers, identical ones once.

Everything here runs in the process's event loop (:mod:`culture_tasks.judges.loop`), except :meth:`Engine.put`.
Memory stays flat: a job that waits is two references and a ticket; prompts exist for about twice as many jobs as may be
in flight, and for those that wait to be sent again after a fault, 1,000 at most.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from culture_tasks.judges.asker import Asker
from culture_tasks.judges.cache_files import Kept, Row
from culture_tasks.judges.cache_thread import CacheThread
from culture_tasks.judges.completions import ChatRequest, Completion, Failure

logger = logging.getLogger(__name__)

_JOBS_A_BATCH = 128
# So many requests that wait after a fault of their own have others asked in their place; the prompts of all exist.
_MOST_RESTING = 1_000
_SECONDS_FOR_REPLIES_ON_THEIR_WAY = 2.0
_CLOSED = "the judge was closed before it answered"


class Answer(NamedTuple):
    """What a job gets.

    Attributes:
        reply: The completion, or why there is none.
        attempts: How often the endpoint was asked; 0 for a completion from the cache or shared with another job.
        kept_since: When a completion from the cache came, in seconds since 1970; None for one that was just asked for.
    """

    reply: Completion | Failure
    attempts: int = 0
    kept_since: float | None = None

    @classmethod
    def of(cls, kept: Kept) -> Answer:
        """Returns a completion of the cache as an answer."""
        return cls(kept.completion, kept_since=kept.created)


class Job(Protocol):
    """A verdict to be had."""

    @property
    def request(self) -> ChatRequest:
        """What to ask now."""
        ...  # pragma: no cover

    @property
    def afresh(self) -> bool:
        """Whether the cache is not to be asked."""
        ...  # pragma: no cover

    def row(self, completion: Completion) -> Row:
        """Returns a completion of that request as the cache keeps it."""
        ...  # pragma: no cover

    def take(self, answer: Answer) -> bool:
        """Takes an answer; False where there is another request to answer first."""
        ...  # pragma: no cover

    def abandon(self, error: str) -> None:
        """Ends without an answer, if it hasn't ended yet."""
        ...  # pragma: no cover


class Engine:
    """Answers jobs.

    Args:
        asker: The way to the endpoint.
        cache: Where completions are kept.
    """

    def __init__(self, asker: Asker, cache: CacheThread) -> None:
        self._asker = asker
        self._cache = cache
        self._lock = threading.Lock()
        self._inbox: deque[Job] = deque()
        self._unfinished: set[Job] = set()
        self._loading = False
        self._loader: asyncio.Task[None] | None = None
        self._ready: deque[Job] = deque()
        self._room = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._followers: dict[bytes, list[Job]] = {}
        self._arrived: list[Row] = []

    def put(self, job: Job) -> bool:
        """Takes a job, from any thread.

        Returns:
            Whether :meth:`wake` must now be called in the event loop.
        """
        with self._lock:
            self._inbox.append(job)
            self._unfinished.add(job)
            asleep, self._loading = not self._loading, True
            return asleep

    def wake(self) -> None:
        """Begins to work off what was put."""
        self._loader = asyncio.get_running_loop().create_task(self._load())

    async def close(self) -> None:
        """Ends every job: with an answer where one is on its way and comes soon, for it is paid for; else without."""
        if self._loader is not None:
            self._loader.cancel()
        self._ready.clear()
        self._asker.stop()
        if self._workers:
            await asyncio.wait(self._workers, timeout=_SECONDS_FOR_REPLIES_ON_THEIR_WAY)
        tasks = [*self._workers, *([self._loader] if self._loader else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._hand_over()
        with self._lock:
            unfinished = list(self._unfinished)
            self._unfinished.clear()
        for job in unfinished:
            job.abandon(_CLOSED)
        await self._asker.close()

    async def _load(self) -> None:
        while jobs := self._next_jobs():
            while len(self._ready) > self._asker.concurrency:
                self._room.clear()
                await self._room.wait()
            await self._route(jobs)

    def _next_jobs(self) -> list[Job]:
        with self._lock:
            jobs = [self._inbox.popleft() for _ in range(min(_JOBS_A_BATCH, len(self._inbox)))]
            self._loading = bool(jobs)
            return jobs

    async def _route(self, jobs: Iterable[Job]) -> None:
        """Sends each job its way: to follow an identical one, to an answer from the cache, or to the workers."""
        while leaders := [job for job in jobs if self._leads(job)]:
            keys = [job.request.key for job in leaders if not job.afresh]
            found = await self._look_up(keys)
            self._ready.extend(job for job in leaders if job.request.key not in found)
            hits = [job for job in leaders if job.request.key in found]
            jobs = [rest for job in hits for rest in self._settle(job, Answer.of(found[job.request.key]))]
        self._start_workers()

    async def _look_up(self, keys: list[bytes]) -> dict[bytes, Kept]:
        self._hand_over()
        try:
            return await asyncio.wrap_future(self._cache.get_many(keys))
        except Exception:
            # The cache takes care of what files do; whatever else it is, the endpoint can still answer.
            logger.exception("verdict cache: %d completions could not be looked up", len(keys))
            return {}

    def _leads(self, job: Job) -> bool:
        """Whether no identical request is under way; one that is takes the job along."""
        try:
            key = job.request.key
        except Exception as error:  # noqa: BLE001  # see _taken
            self._break_down(job, error)
            return False
        if key in self._followers:
            self._followers[key].append(job)
            return False
        self._followers[key] = []
        return True

    def _settle(self, leader: Job, answer: Answer) -> list[Job]:
        """Hands an answer to a job and its followers; returns those that have another request to answer."""
        followers = self._followers.pop(leader.request.key)
        rest = [] if self._taken(leader, answer) else [leader]
        shared = answer._replace(attempts=0)
        return rest + [job for job in followers if not self._taken(job, shared)]

    def _taken(self, job: Job, answer: Answer) -> bool:
        try:
            finished = job.take(answer)
        except Exception as error:  # noqa: BLE001  # a bug must not leave somebody waiting for ever
            self._break_down(job, error)
            return True
        if finished:
            self._unfinished.discard(job)
        return finished

    def _break_down(self, job: Job, error: Exception) -> None:
        self._unfinished.discard(job)
        job.abandon(f"the judge broke down: {type(error).__name__}: {error}")

    def _start_workers(self) -> None:
        loop = asyncio.get_running_loop()
        wanted = self._asker.concurrency + min(self._asker.resting, _MOST_RESTING)
        for _ in range(min(len(self._ready), wanted - len(self._workers))):
            worker = loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._ready:
            job = self._ready.popleft()
            self._room.set()
            try:
                answer = await self._ask(job)
            except Exception as error:  # noqa: BLE001  # see _taken
                answer = Answer(Failure("failed", f"the judge broke down: {type(error).__name__}: {error}"))
            if rest := self._settle(job, answer):
                await self._route(rest)

    async def _ask(self, job: Job) -> Answer:
        result, attempts = await self._asker.ask(job.request, on_rest=self._start_workers)
        if not isinstance(result, Completion):
            return Answer(result.as_failure(), attempts)
        self._keep(job.row(result))
        return Answer(result, attempts)

    def _keep(self, row: Row) -> None:
        """Has a completion stored with those that arrived in the same turn of the loop: waking a thread costs more."""
        self._arrived.append(row)
        if len(self._arrived) == 1:
            asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        if self._arrived:
            self._cache.put(self._arrived)
            self._arrived = []
