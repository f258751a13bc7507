"""Judges behind an OpenAI-compatible endpoint (``openai:<model>``)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable

from culture_tasks.judges.endpoint.addresses import address_of
from culture_tasks.judges.endpoint.budget import shared_budget
from culture_tasks.judges.endpoint.engine import Engine
from culture_tasks.judges.endpoint.jobs import JudgedBy, JudgingProgress, VerdictJob
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.endpoint.readiness import check_endpoint
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.settings import Settings


class EndpointJudge(Judge):
    """Asks a model behind an OpenAI-compatible endpoint: OpenAI, Azure, ``vllm serve``, Ollama, ….

    Args:
        model: Model name, or Azure deployment.
        settings: Where the endpoint is, and how it is used.
        patience: How persistent to be; None means as the settings say.

    Raises:
        SettingsError: If the endpoint's address is not allowed, or the budget can't be used.
    """

    def __init__(self, model: str, settings: Settings, patience: Patience | None = None) -> None:
        self.address = address_of(settings, model)
        self._settings = settings
        self._budget = shared_budget(settings)
        if self._budget is not None:
            self._budget.check(model)
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
        self._running().submit(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> Verdict | None:
        """Asks the endpoint for one verdict.

        Raises:
            JudgeUnreachableError: If key, model or address are wrong, there is no answer, or the reply can't be read.
        """
        self._run_began = time.time()
        items = list(expected)
        return check_endpoint(
            self._running(), address=self.address, by=self._by, expected=items, responses_known=responses_known
        )

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
            adaptations=self._running().asker.adaptations,
            run_began=self._run_began,
        )

    def _running(self) -> Engine:
        engine = self._engine
        if engine is not None and engine.pid == os.getpid():
            return engine
        with self._lock:
            if self._engine is None or self._engine.pid != os.getpid():
                self._engine = Engine(self.address, self._settings, self._patience)
            return self._engine
