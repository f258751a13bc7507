"""Judges behind an OpenAI-compatible endpoint (``openai:<model>``), and the engine that answers their jobs.

Whether a judge can grade is found out before any inference: it gets one real question, graded as all others.

The engine answers jobs from the cache in batches, or by asking the endpoint, identical requests once. That holds for
all processes of the machine that share the cache: what one of them is asking for, the others wait for. All of it runs
in one event loop, in one background thread for the whole process. Memory stays flat: prompts exist for about twice as
many jobs as may be in flight, and for at most 1,000 that wait after a fault.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError
from culture_tasks.judges.cache.verdict_cache import CacheThread, open_cache, release_cache
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Address, address_of
from culture_tasks.judges.endpoint.asker import Adaptations, Asker
from culture_tasks.judges.endpoint.budget import USED_UP, shared_budget
from culture_tasks.judges.endpoint.client import TIMED_OUT, Client, one_line
from culture_tasks.judges.endpoint.jobs import Grader, JudgingProgress, VerdictJob, open_requests
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.settings import Settings

T = TypeVar("T")
logger = logging.getLogger(__name__)

_PATIENCE_BEFORE_A_RUN = Patience(longest=10.0)
_JOBS_PER_LOOKUP = 1000
# Advice for a user without a working judge.
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."


_JOBS_A_BATCH = 128
# At most this many requests that wait after a fault have others asked in their place: the prompts of all exist.
_MOST_RESTING = 1_000
# Answers are handed out together, since a commit of the cache and a wake-up cost more than an answer does: after so
# long, or once they are so large a share of the requests that may be in flight, which bounds what a kill loses.
_SECONDS_BETWEEN_HANDOVERS = 0.02
_SHARE_BETWEEN_HANDOVERS = 0.25
_SECONDS_FOR_REPLIES_ON_THEIR_WAY = 2.0
_SECONDS_TO_STOP = 10.0
_SECONDS_BETWEEN_LOOKS = 0.25


class EndpointJudge(Judge):
    """Asks a model behind an OpenAI-compatible endpoint: OpenAI, Azure, ``vllm serve``, Ollama, ….

    The model is a model's name or an Azure deployment; without a patience, that of the settings counts.
    """

    def __init__(self, model: str, settings: Settings, patience: Patience | None = None) -> None:
        self.address = address_of(settings, model)
        self._settings = settings
        self.budget = shared_budget(settings)
        if self.budget is not None:
            self.budget.check(model)
        self._patience = patience or Patience(settings.judge_patience)
        self._grader = Grader(
            backend="openai",
            endpoint=self.address.name,
            model=model,
            place=self.address.fingerprint,
            hides=self.address.secrets,
            settings=settings,
        )
        self._progress = JudgingProgress(f"judge {model}")
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters that the endpoint accepted so far."""
        return self._grader.identity(rubric)

    def submit(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        """Asks for a verdict on one item; identical requests are asked once."""
        job = VerdictJob(self._grader, rubric, item, progress=self._progress)
        self.engine.submit(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> Verdict | None:
        """Asks the endpoint for one verdict, once: on the first question, with a reference in place of the response.

        The reply isn't kept. Returns None where nothing was asked, or a rate limit or a content filter leaves it open.
        """
        items, engine, grader = list(expected), self.engine, self._grader
        grader.run_began = time.time()
        with engine.check_lock:
            if not items or engine.is_checked or (responses_known and is_at_hand(engine.cache, grader, items)):
                return None
            who = f"judge {grader.model}: {self.address.name}"
            if self.address.is_keyless_openai:
                raise JudgeUnreachableError(f"{who} needs a key. {WAYS_OUT}")
            rubric, item = items[0]
            job = VerdictJob(grader, rubric, replace(item, response=item.references[0]))
            while not job.is_resolved:
                answer = engine.run(engine.asker.ask(job.request, patience=_PATIENCE_BEFORE_A_RUN))
                if isinstance(problem := answer.reply, Problem):
                    if not ((problem.status == 429 and problem.retry) or problem.refused):
                        raise JudgeUnreachableError(f"{who}: {problem.message}. {self._advice(problem)} {OTHERWISE}")
                    why = "declines the first question" if problem.refused else "limits the rate"
                    logger.warning("%s %s (%s): the run goes on", who, why, problem.message)
                    return None
                job.take(answer)
            verdict = job.verdict()
            if verdict.outcome != "scored":
                raise JudgeUnreachableError(
                    f"{who} was asked to grade a reference answer ({rubric.name}), and {verdict.error}: "
                    f"{one_line(verdict.completion or '') or 'an empty reply'!r}. A judge that thinks for long needs a "
                    "larger max_tokens in CULTURE_JUDGE_EXTRA_BODY; one that doesn't keep to the format can't grade: "
                    f"name another with CULTURE_JUDGE. {OTHERWISE}"
                )
            engine.is_checked = True
            return verdict

    def close(self) -> None:
        """Gives up what still waits, and closes connections and cache."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    @property
    def engine(self) -> Engine:
        """The engine of this process, made on first use."""
        with self._lock:
            if self._engine is None or self._engine.pid != os.getpid():
                self._engine = Engine(self.address, self._settings, self._patience, self._grader.adaptations)
            return self._engine

    def _advice(self, problem: Problem) -> str:
        where, key = self.address.url_variable, self.address.key_variable
        if problem.code == USED_UP:
            return "Raise CULTURE_JUDGE_BUDGET."
        if problem.status in (401, 403):
            return f"Correct the key ({key}), or ask for access to the model."
        if problem.says_unknown_model and where == "AZURE_OPENAI_ENDPOINT":
            return "Name one of your deployments by CULTURE_JUDGE=openai:<deployment>, or correct OPENAI_API_VERSION."
        if problem.says_unknown_model:
            address = f", or correct {where}, which usually ends in /v1" if where else ""
            return f"Name a model that it has by CULTURE_JUDGE=openai:<model>{address}."
        if problem.code == "insufficient_quota":
            return f"Its account has no credit left: add some, or use another key ({key})."
        if problem.code == TIMED_OUT:
            return "Raise CULTURE_JUDGE_TIMEOUT if the judge is slow, such as one that is being loaded."
        if problem.status is None:
            reach = "See whether this machine can reach it; HTTPS_PROXY names a proxy."
            return f"Correct {where}, or start the server there." if where else reach
        if 300 <= problem.status < 400 and where:
            return f"Correct {where}."
        return "See what the endpoint says."


def is_at_hand(cache: CacheThread, grader: Grader, expected: Sequence[tuple[Rubric, JudgeItem]]) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _JOBS_PER_LOOKUP):
        some = expected[start : start + _JOBS_PER_LOOKUP]
        jobs = [VerdictJob(grader, rubric, item) for rubric, item in some]
        if open_requests(jobs, cache) or any(job.verdict().outcome != "scored" for job in jobs):
            return False
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", grader.model)
    return True


class Engine:
    """Answers one judge's jobs. Its public methods are called from any thread but the event loop's."""

    def __init__(self, address: Address, settings: Settings, patience: Patience, adaptations: Adaptations) -> None:
        self.pid = os.getpid()  # a forked child needs another engine
        self.is_checked = False  # whether the judge has given a readable verdict
        self.check_lock = threading.Lock()
        self._file = settings.cache_file
        self.cache = open_cache(self._file)
        proxy = settings.proxy_for(address.url)
        self.asker = Asker(
            lambda: Client(address, settings.judge_timeout, proxy),
            name=f"judge at {address.name}",
            concurrency=settings.judge_concurrency,
            patience=patience,
            budget=shared_budget(settings),
            adaptations=adaptations,
        )
        self._loop = _shared_loop()
        atexit.register(self.close)
        self._is_closed = False
        self._inbox: deque[VerdictJob] = deque()
        self._unfinished: set[VerdictJob] = set()
        self._is_woken = False  # whether the loader will look into the inbox
        self._has_jobs = asyncio.Event()
        self._ready: deque[VerdictJob] = deque()
        self._elsewhere: list[VerdictJob] = []
        self._watcher: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._workers: set[asyncio.Task[None]] = set()
        self._followers: dict[bytes, list[VerdictJob]] = {}
        self._answers: list[tuple[VerdictJob, Answer]] = []
        self._loader = self.run(self._begin())

    def submit(self, job: VerdictJob) -> None:
        """Takes a job; returns at once."""
        self._unfinished.add(job)
        self._inbox.append(job)
        if not self._is_woken:  # once for many jobs
            self._is_woken = True
            self._loop.call_soon_threadsafe(self._has_jobs.set)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the event loop and waits for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Ends what runs, commits what came, and closes connections and cache."""
        if not self._is_closed and self.pid == os.getpid():
            self._is_closed = True
            atexit.unregister(self.close)
            self.run(self._close())
            release_cache(self._file)

    async def _begin(self) -> asyncio.Task[None]:
        return self._loop.create_task(self._load())

    async def _close(self) -> None:
        """Ends every job: with an answer where one is on its way and comes soon, for it is paid for; else without."""
        self._loader.cancel()
        self._ready.clear()
        self.asker.gate.close()
        if self._workers:
            await asyncio.wait(self._workers, timeout=_SECONDS_FOR_REPLIES_ON_THEIR_WAY)
        tasks = [self._loader, *self._workers, *([] if self._watcher is None else [self._watcher])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._hand_over()
        for key in self._followers:
            self.cache.claims.release(key)
        for job in list(self._unfinished):
            job.abandon("the judge was closed before it answered", quietly=True)
        await self.asker.close()

    async def _load(self) -> None:
        while await self._has_jobs.wait():
            self._has_jobs.clear()
            self._is_woken = False  # before it looks: a job that comes later wakes it again
            while jobs := [self._inbox.popleft() for _ in range(min(_JOBS_A_BATCH, len(self._inbox)))]:
                while len(self._ready) > 2 * self.asker.concurrency:
                    self._room.clear()
                    await self._room.wait()
                await self._route(jobs)

    async def _route(self, jobs: Iterable[VerdictJob]) -> None:
        """Has each job follow an identical one, wait for another process, be answered from the cache, or be asked.

        A claim comes before the look-up: what another process has asked for is in the cache once its claim has ended.
        """
        while leaders := [job for job in jobs if self._leads(job)]:
            claimed: list[VerdictJob] = []
            for job in leaders:
                (claimed if self.cache.claims.claim(job.request.key) else self._elsewhere).append(job)
            keys = [job.request.key for job in claimed if not job.afresh]
            stored = await asyncio.wrap_future(self.cache.get_many(keys))
            self._ready.extend(job for job in claimed if job.request.key not in stored)
            hits = [(job, stored[job.request.key]) for job in claimed if job.request.key in stored]
            jobs = [open_job for job, answer in hits for open_job in self._settle(job, answer)]
        if self._elsewhere and self._watcher is None:
            self._watcher = self._loop.create_task(self._watch())
        self._start_workers()

    async def _watch(self) -> None:
        """Takes up jobs again that other processes asked for, as these get their answers, fail or end.

        A process that holds its claims for the whole patience without an answer, such as a suspended one, isn't waited
        for any longer.
        """
        waiting, until = 0, 0.0
        while self._elsewhere:
            if len(self._elsewhere) != waiting:
                waiting, until = len(self._elsewhere), self._loop.time() + self.asker.patience.longest
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
            jobs, self._elsewhere = self._elsewhere, []
            if self._loop.time() > until:
                self._ready.extend(jobs)
                self._start_workers()
            else:
                await self._route(
                    [job for leader in jobs for job in (leader, *self._followers.pop(leader.request.key))]
                )
        self._watcher = None

    def _leads(self, job: VerdictJob) -> bool:
        """Whether no identical request is under way; one that is takes the job along."""
        try:
            key = job.request.key
        except Exception as error:  # noqa: BLE001  # broad, since a rubric may come from anywhere
            self._unfinished.discard(job)
            job.abandon(f"the judge broke down: {type(error).__name__}: {error}")
            return False
        if key in self._followers:
            self._followers[key].append(job)
            return False
        self._followers[key] = []
        return True

    def _settle(self, leader: VerdictJob, answer: Answer) -> list[VerdictJob]:
        """Hands an answer to a job and its followers; returns the jobs that have another request."""
        key = leader.request.key
        followers = self._followers.pop(key)
        if answer.kept_since is not None or isinstance(answer.reply, Problem):
            self.cache.claims.release(key)  # else when the completion is committed
        open_jobs = [] if self._finish(leader, answer) else [leader]
        shared = answer._replace(attempts=0)
        return open_jobs + [job for job in followers if not self._finish(job, shared)]

    def _finish(self, job: VerdictJob, answer: Answer) -> bool:
        if has_ended := job.take(answer):
            self._unfinished.discard(job)
        return has_ended

    def _start_workers(self) -> None:
        limit = self.asker.concurrency + min(self.asker.resting, _MOST_RESTING)
        for _ in range(min(len(self._ready), limit - len(self._workers))):
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while self._ready:
            job = self._ready.popleft()
            self._room.set()
            try:
                answer = await self.asker.ask(job.request, on_rest=self._start_workers)
            except Exception as error:  # noqa: BLE001  # broad: no bug may end a worker
                answer = Answer(Problem(f"the judge broke down: {type(error).__name__}: {error}"))
            self._answers.append((job, answer))
            count, most = len(self._answers), max(1, int(_SHARE_BETWEEN_HANDOVERS * self.asker.concurrency))
            if count in (1, most):
                is_due = count == most or not self.asker.gate.in_flight
                self._loop.call_later(0.0 if is_due else _SECONDS_BETWEEN_HANDOVERS, self._hand_over)

    def _hand_over(self) -> None:
        """Stores the completions that came, and hands out all answers."""
        answers, self._answers = self._answers, []
        rows = [job.row(answer.reply) for job, answer in answers if isinstance(answer.reply, Completion)]
        if rows:
            self.cache.put(rows)
        if open_jobs := [job for leader, answer in answers for job in self._settle(leader, answer)]:
            self._inbox.extendleft(reversed(open_jobs))  # before all others
            self._has_jobs.set()


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
