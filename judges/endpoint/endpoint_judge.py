"""Judges behind an OpenAI-compatible endpoint (``openai:<model>``).

Whether one can grade is found out before any inference: it gets one real question, graded as all others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError
from culture_tasks.judges.cache.verdict_cache import CacheThread
from culture_tasks.judges.completions import Problem
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.budget import USED_UP, shared_budget
from culture_tasks.judges.endpoint.client import one_line
from culture_tasks.judges.endpoint.engine import Engine
from culture_tasks.judges.endpoint.jobs import JudgedBy, JudgingProgress, VerdictJob, open_requests
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.settings import Settings

logger = logging.getLogger(__name__)

_PATIENCE_BEFORE_A_RUN = Patience(longest=10.0)
_JOBS_PER_LOOKUP = 1000
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."
"""What a user can do who has no judge that works now."""


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
        self._by = JudgedBy(
            backend="openai",
            endpoint=self.address.shown,
            model=model,
            place=self.address.fingerprint,
            delimiters=settings.judge_delimiters == "on",
            ask_again=settings.judge_ask_again,
            form=settings.judge_form,
            parameters=settings.judge_parameters,
            hides=self.address.secrets,
        )
        self._progress = JudgingProgress(f"judge {model}")
        self._run_began = time.time()
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters that the endpoint accepted so far.

        The limit of tokens is the one that was meant, whether or not thinking made it grow: each verdict says what
        was sent.
        """
        engine, sampling = self._engine, self._by.wording(rubric).sampling
        return self._by.identity(rubric, sampling if engine is None else engine.asker.adaptations.apply(sampling))

    def submit(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        """Asks for a verdict on one item; identical requests are asked once."""
        job = self._job(rubric, item)
        self.engine.submit(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> Verdict | None:
        """Asks the endpoint for one verdict, once.

        The question is the first one that will be graded, with a reference in place of the response: a judge that
        gives no readable verdict on it gives none on anything. The reply isn't kept. Nothing is asked where the cache
        holds every verdict, which can be told only where the responses are known.

        Returns:
            The verdict; None where nothing was asked, or where a rate limit or a content filter leaves it open.

        Raises:
            JudgeUnreachableError: If key, model or address are wrong, there is no answer, or the reply can't be read.
        """
        self._run_began = time.time()
        items, engine, by = list(expected), self.engine, self._by
        with engine.check_lock:
            adaptations = engine.asker.adaptations
            if not items or engine.is_checked:
                return None
            if responses_known and is_at_hand(engine.cache, adaptations=adaptations, by=by, expected=items):
                return None
            who = f"judge {by.model}: {self.address.shown}"
            if self.address.is_keyless_openai:
                raise JudgeUnreachableError(f"{who} needs a key. {WAYS_OUT}")
            rubric, item = items[0]
            question = replace(item, response=item.references[0])
            job = VerdictJob(by, rubric, question, progress=None, adaptations=adaptations)
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
                raise JudgeUnreachableError(unreadable(who, rubric, verdict))
            engine.is_checked = True
            return verdict

    def close(self) -> None:
        """Gives up what still waits, and closes connections and cache."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _job(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        return VerdictJob(
            self._by,
            rubric,
            item,
            progress=self._progress,
            adaptations=self.engine.asker.adaptations,
            run_began=self._run_began,
        )

    @property
    def engine(self) -> Engine:
        """What answers this process's jobs, made on first use."""
        engine = self._engine
        if engine is not None and engine.pid == os.getpid():
            return engine
        with self._lock:
            if self._engine is None or self._engine.pid != os.getpid():
                self._engine = Engine(self.address, self._settings, self._patience)
            return self._engine

    def _advice(self, problem: Problem) -> str:
        where, key = self.address.url_variable, self.address.key_variable
        if problem.code == USED_UP:
            return "Raise CULTURE_JUDGE_BUDGET."
        if problem.status in (401, 403):
            return f"Correct the key ({key}), or ask for access to the model."
        if problem.says_unknown_model:
            model = "Name a model that it has by CULTURE_JUDGE=openai:<model>"
            if where == "AZURE_OPENAI_ENDPOINT":
                return (
                    "Name one of your deployments by CULTURE_JUDGE=openai:<deployment>, or correct OPENAI_API_VERSION."
                )
            return f"{model}, or correct {where}, which usually ends in /v1." if where else f"{model}."
        if problem.code == "insufficient_quota":
            return f"Its account has no credit left: add some, or use another key ({key})."
        if problem.status is None:
            reach = "See whether this machine can reach it; HTTPS_PROXY names a proxy."
            return f"Correct {where}, or start the server there." if where else reach
        if 300 <= problem.status < 400 and where:
            return f"Correct {where}."
        return "See what the endpoint says."


def is_at_hand(
    cache: CacheThread, *, adaptations: Adaptations, by: JudgedBy, expected: Sequence[tuple[Rubric, JudgeItem]]
) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _JOBS_PER_LOOKUP):
        some = expected[start : start + _JOBS_PER_LOOKUP]
        jobs = [VerdictJob(by, rubric, item, progress=None, adaptations=adaptations) for rubric, item in some]
        if open_requests(jobs, cache) or any(job.verdict().outcome != "scored" for job in jobs):
            return False
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", by.model)
    return True


def unreadable(who: str, rubric: Rubric, verdict: Verdict) -> str:
    """Says that a judge gave no verdict on a reference answer, why that may be, and what to do."""
    return (
        f"{who} was asked to grade a reference answer ({rubric.name}), and "
        f"{verdict.error}: {one_line(verdict.completion or '') or 'an empty reply'!r}. A judge that thinks for long "
        "needs a larger CULTURE_JUDGE_MAX_TOKENS; one that doesn't keep to the format can't grade: name another with "
        f"CULTURE_JUDGE. {OTHERWISE}"
    )
