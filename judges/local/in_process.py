"""Judges that lm-eval loads into this process (``lm_eval:<backend>,<model args>``)."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import SecretStr

from culture_tasks.errors import SettingsError
from culture_tasks.judges.cache.verdict_cache import CacheThread, opened_cache, released
from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.addresses import secrets_of, secrets_of_arguments
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.endpoint_judge import is_at_hand
from culture_tasks.judges.endpoint.jobs import JudgedBy, JudgingProgress, VerdictJob, open_requests
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.local.local_model import (
    BACKEND_WITH_FORMS,
    FORMS,
    PARAMETERS,
    LocalModel,
    check_model,
    named_by,
)
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem
from culture_tasks.settings import Settings
from culture_tasks.text import storable


class InProcessJudge(Judge):
    """Grades with a model in this process, all at once: the first verdict waited for has everything graded.

    The model is loaded then, after the evaluated model has done its work. Greedy, with the model's chat template.

    The model is ``<backend>,<model args>``, such as ``hf,pretrained=Qwen/Qwen3-8B,dtype=bfloat16``.
    """

    def __init__(self, model: str, settings: Settings) -> None:
        if settings.judge_budget is not None:
            raise SettingsError(
                "CULTURE_JUDGE_BUDGET: a judge that lm-eval loads counts no tokens, so no budget holds it. Unset the "
                "variable, or name the judge as openai:<model>."
            )
        self._backend, _, arguments = model.partition(",")
        if settings.judge_form != "free" and self._backend != BACKEND_WITH_FORMS:
            raise SettingsError(
                f"CULTURE_JUDGE_FORM={settings.judge_form}: lm-eval's {self._backend} can't hold replies to a form. "
                f"Unset the variable, or name the judge as lm_eval:{BACKEND_WITH_FORMS},<model args> or openai:<model>."
            )
        parameters = settings.judge_parameters
        if unknown := [name for name in parameters if parameters[name] is not None and name not in PARAMETERS]:
            raise SettingsError(
                f"CULTURE_JUDGE=lm_eval:…: a judge in this process takes no {unknown[0]} (set by "
                f"CULTURE_JUDGE_REASONING_EFFORT or CULTURE_JUDGE_EXTRA_BODY), only {', '.join(PARAMETERS)}. Unset it; "
                "model arguments such as enable_thinking=False say whether it thinks."
            )
        self._arguments = SecretStr(arguments)
        self._secrets = secrets_of_arguments(arguments) | secrets_of(settings)
        self._settings = settings
        model, fingerprint = named_by(arguments)
        self._by = JudgedBy(
            backend="lm_eval",
            endpoint=f"lm_eval:{self._backend}",
            model=model,
            place=fingerprint,
            delimiters=settings.judge_delimiters == "on",
            ask_again=settings.judge_ask_again,
            form=settings.judge_form,
            parameters=parameters,
            takes=PARAMETERS if settings.judge_form == "free" else (*PARAMETERS, *FORMS),
            hides=self._secrets,
        )
        self._progress = JudgingProgress(f"judge lm_eval:{self._backend},{model}", self._flush)
        self._run_began = time.time()
        self._adaptations = Adaptations()
        self._lock = threading.RLock()
        self._pending: deque[VerdictJob] = deque()
        self._model: LocalModel | None = None
        self._broken: str | None = None
        self._cache: CacheThread | None = None
        self._cache_pid = 0

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric."""
        return self._by.identity(rubric, self._by.wording(rubric).sampling)

    def submit(self, rubric: Rubric, item: JudgeItem) -> VerdictJob:
        """Notes an item to be graded; nothing happens until somebody waits for a verdict."""
        began = self._run_began
        job = VerdictJob(
            self._by, rubric, item, progress=self._progress, adaptations=self._adaptations, run_began=began
        )
        self._pending.append(job)
        return job

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Makes sure that the model can be loaded, as far as that can be known before it is.

        Raises:
            JudgeUnreachableError: If not.
        """
        self._run_began = time.time()
        items, cache = list(expected), self._opened_cache()
        if not (responses_known and is_at_hand(cache, adaptations=Adaptations(), by=self._by, expected=items)):
            check_model(self._backend, self._arguments.get_secret_value(), self._secrets)

    def close(self) -> None:
        """Grades no more, and lets go of the model."""
        with self._lock:
            for job in self._taken():
                job.abandon("the judge was closed before it answered")
            if self._model is not None:
                self._model.close()
                self._model = None
            if self._cache is not None and self._cache_pid == os.getpid():
                released(self._settings.cache_file)
            self._cache = None

    def _flush(self) -> None:
        """Grades all that was submitted."""
        with self._lock:
            jobs = self._taken()
            try:
                while jobs:
                    jobs = self._answered(open_requests(jobs, self._opened_cache()))
            except BaseException as error:  # at an interrupt, too, no thread may be left waiting
                for job in jobs:
                    job.abandon(self._reason(error))
                if not isinstance(error, Exception):
                    raise

    def _taken(self) -> list[VerdictJob]:
        # One by one, since other threads may submit meanwhile.
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def _answered(self, open_: dict[bytes, list[VerdictJob]]) -> list[VerdictJob]:
        """Has the model answer open requests and stores its completions; returns the jobs that have another request."""
        rest: list[VerdictJob] = []

        def settle(key: bytes, answer: Answer) -> None:
            jobs = open_.pop(key, [])  # none where the completion was reported before
            if jobs and isinstance(answer.reply, Completion):
                self._opened_cache().put([jobs[0].row(answer.reply)])
            for job in jobs:
                rest.extend([] if job.take(answer) else [job])
                answer = answer._replace(attempts=0)

        by_sampling: dict[str, dict[bytes, ChatRequest]] = {}
        for key, (first, *_) in open_.items():
            by_sampling.setdefault(repr(first.request.sampling), {})[key] = first.request
        for requests in by_sampling.values():
            try:
                self._complete(requests, settle)
            except Exception as error:  # noqa: BLE001  # broad: a backend may fail in any way, and ends verdicts, not the run
                for key in requests:
                    settle(key, Answer(Problem(self._reason(error))))
        return rest

    def _complete(self, requests: Mapping[bytes, ChatRequest], settle: Callable[[bytes, Answer], None]) -> None:
        """Completes requests with the same sampling parameters.

        A completion that thinking cuts off is asked for again with a larger limit, if the context has room for it.
        """
        model, meant = self._loaded(), next(iter(requests.values())).sampling
        keys: dict[str, list[bytes]] = {}
        for key, request in requests.items():
            prompt = model.prompt(request.chat)
            if model.fits(prompt, meant["max_tokens"]):
                keys.setdefault(prompt, []).append(key)
            else:
                settle(key, Answer(Problem("the prompt is longer than the judge's context")))
        times, prompts, again = 0, list(keys), dict[str, None]()

        def take(prompt: str, text: str, sampling: Mapping[str, Any]) -> None:
            if prompt in again:
                return
            completion = model.completed(prompt, storable(self._secrets.hidden_in_reply(text)), sampling)
            if completion.is_cut_off_by_thinking and self._adaptations.grow(sampling, self._by.most_tokens):
                larger = self._adaptations.apply(sampling, self._by.most_tokens)["max_tokens"]
                if model.fits(prompt, larger):
                    again[prompt] = None
                    return
            for key in keys[prompt]:
                settle(key, Answer(completion, attempts=times))

        while prompts:
            times += 1
            grown = self._adaptations.apply(meant, self._by.most_tokens)
            roomy = [prompt for prompt in prompts if model.fits(prompt, grown["max_tokens"])]
            for sampling, some in ((grown, roomy), (meant, sorted(set(prompts).difference(roomy)))):
                if some:
                    model.generate(some, sampling, partial(take, sampling=sampling))
            prompts = list(again)
            again.clear()

    def _loaded(self) -> LocalModel:
        if self._broken is not None:
            raise RuntimeError(self._broken)
        if self._model is None:
            try:
                self._model = LocalModel(self._backend, self._arguments.get_secret_value())
            except Exception as error:  # broad, as in _grade_round; raised again
                self._broken = self._secrets.hidden(f"it could not be loaded: {type(error).__name__}: {error}")
                raise
        return self._model

    def _reason(self, error: BaseException) -> str:
        text = self._secrets.hidden(str(error))
        return f"the judge broke down: {type(error).__name__}: {' '.join(text.split())[:300]}"

    def _opened_cache(self) -> CacheThread:
        if self._cache is None or self._cache_pid != os.getpid():
            self._cache, self._cache_pid = opened_cache(self._settings.cache_file), os.getpid()
        return self._cache
