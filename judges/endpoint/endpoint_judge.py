"""Judges behind an OpenAI-compatible endpoint (``openai:<model>``).

Whether a judge can grade is found out before any inference: it gets one real question, graded as all others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from culture_tasks.errors import WAYS_OUT, JudgeUnreachableError
from culture_tasks.judges.completions import Problem
from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.asker import Asker
from culture_tasks.judges.endpoint.budget import USED_UP, shared_budget
from culture_tasks.judges.endpoint.client import TIMED_OUT, Client, one_line
from culture_tasks.judges.endpoint.engine import Engine
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.grading import Grader, Grading, is_at_hand
from culture_tasks.judges.judge import Judge, Ticket
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.settings import Settings

logger = logging.getLogger(__name__)

_PATIENCE_BEFORE_A_RUN = Patience(longest=10.0)
_MODEL_CODES = ("model_not_found", "DeploymentNotFound", "model_not_available")
# Advice for a user without a working judge.
OTHERWISE = "Or set CULTURE_JUDGE=none to record the responses now and grade them later with `culture-tasks rejudge`."


class EndpointJudge(Judge):
    """Asks a model behind an OpenAI-compatible endpoint: OpenAI, Azure, ``vllm serve``, Ollama, ….

    The model is a model's name or an Azure deployment; without a patience, that of the settings counts.
    """

    def __init__(self, model: str, settings: Settings, patience: Patience | None = None) -> None:
        self.address = address_of(settings, model)
        self._settings = settings
        self.budget = shared_budget(settings, model)
        self._patience = patience or Patience(settings.judge_patience)
        self.grader = Grader(
            backend="openai",
            endpoint=self.address.name,
            model=model,
            place=self.address.fingerprint,
            hides=self.address.secrets,
            settings=settings,
        )
        self._engine: Engine | None = None
        self._lock, self._checking = threading.Lock(), threading.Lock()
        self._is_checked = False  # whether the judge has given a readable verdict

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters that the endpoint accepted so far."""
        return self.grader.identity(rubric)

    def submit(self, rubric: Rubric, item: JudgeItem) -> Ticket:
        """Asks for a verdict on one item; identical requests are asked once."""
        engine = self.engine
        grading = Grading(self.grader, rubric, item, engine.wait)
        engine.submit(grading)
        return grading

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> Verdict | None:
        """Asks the endpoint for one verdict, once: on the first question, with a reference in place of the response.

        The reply isn't kept. Returns None where nothing was asked, or a rate limit or a content filter leaves it open.
        """
        items, engine, grader = list(expected), self.engine, self.grader
        grader.run_began = time.time()

        async def are_at_hand() -> bool:  # in the cache's thread
            return is_at_hand(engine.cache, grader, items)

        with self._checking:
            if not items or self._is_checked or (responses_known and engine.run(are_at_hand())):
                return None
            who = f"judge {grader.model}: {self.address.name}"
            if self.address.is_keyless_openai:
                raise JudgeUnreachableError(f"{who} needs a key. {WAYS_OUT}")
            rubric, item = items[0]
            grading = Grading(grader, rubric, replace(item, response=item.references[0]))
            while grading.result is None:
                answer = engine.run(engine.ask(grading, _PATIENCE_BEFORE_A_RUN))
                if isinstance(problem := answer.reply, Problem):
                    if not ((problem.status == 429 and problem.retry) or problem.refused):
                        raise JudgeUnreachableError(f"{who}: {problem.message}. {self._advice(problem)} {OTHERWISE}")
                    why = "declines the first question" if problem.refused else "limits the rate"
                    logger.warning("%s %s (%s): the run goes on", who, why, problem.message)
                    return None
                grading.take(answer)
            verdict = grading.result
            if verdict.outcome != "scored":
                raise JudgeUnreachableError(
                    f"{who} was asked to grade a reference answer ({rubric.name}), and {verdict.error}: "
                    f"{one_line(verdict.completion or '') or 'an empty reply'!r}. A judge that thinks for long needs a "
                    "larger max_tokens in CULTURE_JUDGE_EXTRA_BODY; one that doesn't keep to the format can't grade: "
                    f"name another with CULTURE_JUDGE. {OTHERWISE}"
                )
            self._is_checked = True
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
                settings, address, proxy = self._settings, self.address, self._settings.proxy_for(self.address.url)
                make_asker = partial(
                    Asker,
                    lambda: Client(address, settings.judge_timeout, proxy),
                    name=f"judge at {address.name}",
                    concurrency=settings.judge_concurrency,
                    patience=self._patience,
                    budget=self.budget,
                )
                self._engine = Engine(make_asker, settings.cache_file, f"judge {self.grader.model}")
            return self._engine

    def _advice(self, problem: Problem) -> str:
        where, key = self.address.url_variable, self.address.key_variable
        address = f", or correct {where} (which usually ends in /v1)" if where else ""
        if problem.code == USED_UP:
            return "Raise CULTURE_JUDGE_BUDGET."
        if problem.status in (401, 403) or problem.code == "insufficient_quota":
            return f"Correct the key ({key}), or see to its access to the model and its credit."
        if problem.status == 404 or problem.code in _MODEL_CODES:
            return f"Name a model, or on Azure a deployment, that it has by CULTURE_JUDGE=openai:<model>{address}."
        if problem.code == TIMED_OUT:
            return "Raise CULTURE_JUDGE_TIMEOUT if the judge is slow, such as one that is being loaded."
        if problem.status is None or problem.status < 400:
            return f"See whether this machine can reach it (HTTPS_PROXY names a proxy){address}."
        return "See what the endpoint says."
