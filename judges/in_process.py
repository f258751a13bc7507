"""Judges that lm-eval loads into this process (``lm_eval:<backend>,<model args>``)."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from pydantic import SecretStr

from culture_tasks.errors import JudgeUnreachableError, SettingsError
from culture_tasks.judges.addresses import secrets_of
from culture_tasks.judges.asker import Adaptations
from culture_tasks.judges.completions import Completion, Failure
from culture_tasks.judges.engine import Answer
from culture_tasks.judges.jobs import JudgedBy, PendingTicket, Progress, VerdictJob
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.local_model import BACKEND_WITH_FORMS, FORMS, PARAMETERS, LocalModel, named_by
from culture_tasks.judges.readiness import OTHERWISE, check_model, is_at_hand, unreadable
from culture_tasks.judges.redaction import secrets_of_arguments
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdict_cache import CacheThread, opened_cache, released
from culture_tasks.judges.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.settings import Settings
from culture_tasks.text import storable


class _Arrival(Protocol):
    """What happens to a completion."""

    def __call__(self, prompt: str, completion: Completion, times: int) -> None:
        """Takes a prompt's completion, and how often the model was asked for it."""
        ...  # pragma: no cover


class InProcessJudge(Judge):
    """Grades with a model in this process, all at once: the first verdict waited for has everything graded.

    The model is loaded then, after the evaluated model has done its work. Greedy, with the model's chat template.

    Args:
        model: ``<backend>,<model args>``, such as ``hf,pretrained=Qwen/Qwen3-8B,dtype=bfloat16``.
        settings: The user's settings.

    Raises:
        SettingsError: If they set what lm-eval's backend takes from no request: a sampling parameter, or a form.
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
        self._arguments = SecretStr(arguments)
        self._secrets = secrets_of_arguments(arguments) | secrets_of(settings)
        self._settings = settings
        named = named_by(arguments)
        delimiters = settings.judge_delimiters == "on"
        ask_again = settings.judge_ask_again
        self._by = JudgedBy(
            backend="lm_eval",
            endpoint=f"lm_eval:{self._backend}" + (f" at {named.address}" if named.address else ""),
            model=named.model,
            place=named.fingerprint,
            delimiters=delimiters,
            ask_again=ask_again,
            form=settings.judge_form,
            parameters=_parameters(settings),
            takes=PARAMETERS if settings.judge_form == "free" else (*PARAMETERS, *FORMS),
            hides=self._secrets,
        )
        self._progress = _Flushing(f"judge lm_eval:{self._backend},{named.model}", self)
        self._run_began = time.time()
        self._adaptations = Adaptations()
        self._lock = threading.RLock()
        self._pending: deque[VerdictJob] = deque()
        self._model: LocalModel | None = None
        self._broken: str | None = None
        self._asked = False
        self._cache: CacheThread | None = None
        self._cache_pid = 0

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric."""
        return self._by.identity(rubric, self._by.sampling(rubric))

    def submit(self, rubric: Rubric, item: JudgeItem) -> PendingTicket:
        """Notes an item to be graded; nothing happens until somebody waits for a verdict."""
        job = VerdictJob(
            self._by,
            rubric,
            item,
            progress=self._progress,
            adaptations=self._adaptations,
            run_began=self._run_began,
        )
        self._progress.submitted()
        self._pending.append(job)
        return job.ticket

    def check(
        self,
        expected: Iterable[tuple[Rubric, JudgeItem]],
        *,
        responses_known: bool = False,
    ) -> Verdict | None:
        """Makes sure that the model can be loaded, as far as that can be known before it is.

        A model behind an API is asked one question, as an endpoint is.

        Raises:
            JudgeUnreachableError: If not.
        """
        self._run_began = time.time()
        items = list(expected)
        if responses_known and is_at_hand(self._opened_cache(), adaptations=Adaptations(), by=self._by, expected=items):
            return None
        is_remote = check_model(self._backend, self._arguments.get_secret_value(), self._secrets)
        if is_remote and items and not self._asked:
            with self._lock:
                rubric, item = items[0]
                verdict = self._ask_once(rubric, item)
            self._asked = True
            return verdict
        return None

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

    def flush(self) -> None:
        """Grades all that was submitted."""
        with self._lock:
            jobs = self._taken()
            try:
                while jobs:
                    jobs = self._grade_round(jobs)
            except BaseException as error:  # at an interrupt, too, no thread may be left waiting
                for job in jobs:
                    job.abandon(self._reason(error))
                if not isinstance(error, Exception):
                    raise

    def _taken(self) -> list[VerdictJob]:
        # One by one, since other threads may submit meanwhile.
        return [self._pending.popleft() for _ in range(len(self._pending))]

    def _grade_round(self, jobs: Sequence[VerdictJob]) -> list[VerdictJob]:
        """Answers the present request of each job; returns the jobs that have another."""
        round_ = _Round(jobs, self._opened_cache())
        round_.read_cache()
        for missing in round_.missing_by_sampling():
            try:
                self._complete(missing, round_)
            except Exception as error:  # noqa: BLE001  # broad: a backend may fail in any way, and ends verdicts, not the run
                round_.fail(missing, self._reason(error))
        return round_.rest

    def _complete(self, jobs: Sequence[VerdictJob], round_: _Round) -> None:
        model, meant = self._loaded(), jobs[0].request.sampling
        by_prompt: dict[str, VerdictJob] = {}
        for job in jobs:
            prompt = model.prompt(job.request.messages)
            if model.fits(prompt, meant["max_tokens"]):
                by_prompt[prompt] = job
            else:
                round_.fail([job], "the prompt is longer than the judge's context")

        def arrived(prompt: str, completion: Completion, times: int) -> None:
            round_.arrived(by_prompt[prompt], completion, times)

        self._ask(model, list(by_prompt), meant=meant, arrived=arrived)

    def _ask(self, model: LocalModel, prompts: Collection[str], *, meant: Mapping[str, Any], arrived: _Arrival) -> None:
        """Completes prompts that fit; what thinking cuts off is completed again with a larger limit, if it has room."""
        times = 0
        while prompts:
            times += 1
            grown = self._adaptations.apply(meant, self._by.most_tokens)
            roomy = [prompt for prompt in prompts if model.fits(prompt, grown["max_tokens"])]
            others = set(prompts).difference(roomy)
            prompts = [
                *self._cut_off(model, roomy, sampling=grown, arrived=partial(arrived, times=times)),
                *self._cut_off(model, sorted(others), sampling=meant, arrived=partial(arrived, times=times)),
            ]

    def _cut_off(
        self,
        model: LocalModel,
        prompts: Sequence[str],
        *,
        sampling: Mapping[str, Any],
        arrived: Callable[[str, Completion], None],
    ) -> list[str]:
        """Completes prompts once; returns those to complete again, and reports all others."""
        again: dict[str, None] = {}

        def take(prompt: str, text: str) -> None:
            if prompt in again:
                return
            completion = model.completed(prompt, storable(self._secrets.hidden_in_reply(text)), sampling)
            if completion.is_cut_off_by_thinking and self._has_room(model, prompt, sampling):
                again[prompt] = None
            else:
                arrived(prompt, completion)

        if prompts:
            model.generate(prompts, sampling, take)
        return list(again)

    def _has_room(self, model: LocalModel, prompt: str, sampling: Mapping[str, Any]) -> bool:
        """Whether the limit of tokens grows for what follows, and this prompt has room for the larger one."""
        if not self._adaptations.grow(sampling, self._by.most_tokens):
            return False
        return model.fits(prompt, self._adaptations.apply(sampling, self._by.most_tokens)["max_tokens"])

    def _ask_once(self, rubric: Rubric, item: JudgeItem) -> Verdict:
        who = f"judge lm_eval:{self._backend},{self._by.model}"
        grading = self._by.grading(rubric, replace(item, response=item.references[0]))
        verdict: Verdict | None = None
        replies: list[Completion] = []

        def arrived(prompt: str, completion: Completion, times: int) -> None:  # noqa: ARG001
            replies.append(completion)

        while verdict is None:
            request = self._by.request(grading)
            try:
                model = self._loaded()
                self._ask(model, [model.prompt(request.messages)], meant=request.sampling, arrived=arrived)
            except Exception as error:  # noqa: BLE001  # broad, as in _grade_round
                self._broken = None
                raise JudgeUnreachableError(f"{who}: {self._reason(error)}. {OTHERWISE}") from None
            verdict = grading.take(replies[-1], self._by.model, 1)
        if verdict.outcome != "scored":
            raise JudgeUnreachableError(unreadable(who, rubric, verdict))
        return verdict

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


def _parameters(settings: Settings) -> Mapping[str, Any]:
    unknown = [
        name for name, value in settings.judge_parameters.items() if value is not None and name not in PARAMETERS
    ]
    if unknown:
        raise SettingsError(
            f"CULTURE_JUDGE=lm_eval:…: a judge in this process takes no {unknown[0]} (set by "
            "CULTURE_JUDGE_REASONING_EFFORT or CULTURE_JUDGE_EXTRA_BODY), only "
            f"{', '.join(PARAMETERS)}. Unset it; model arguments such as enable_thinking=False say whether it thinks."
        )
    return settings.judge_parameters


class _Round:
    """One request of each job, on its way to an answer; jobs with identical requests share one."""

    def __init__(self, jobs: Sequence[VerdictJob], cache: CacheThread) -> None:
        self.rest: list[VerdictJob] = []
        self._cache = cache
        self._open: dict[bytes, list[VerdictJob]] = {}
        for job in jobs:
            self._open.setdefault(job.request.key, []).append(job)

    def read_cache(self) -> None:
        """Answers what the cache holds."""
        keys = [key for key, (first, *_) in self._open.items() if not first.afresh]
        for key, kept in self._cache.get_many(keys).result().items():
            self._settle(key, Answer.of(kept))

    def missing_by_sampling(self) -> list[list[VerdictJob]]:
        """Returns one job of each open request, grouped by sampling parameters."""
        groups: dict[str, list[VerdictJob]] = {}
        for first, *_ in self._open.values():
            groups.setdefault(repr(sorted(first.request.sampling.items())), []).append(first)
        return list(groups.values())

    def arrived(self, job: VerdictJob, completion: Completion, attempts: int) -> None:
        """Stores a completion and answers with it, the first time it is reported."""
        key = job.request.key
        if key in self._open and job in self._open[key]:
            self._cache.put([job.row(completion)])
            self._settle(key, Answer(completion, attempts=attempts))

    def fail(self, jobs: Sequence[VerdictJob], reason: str) -> None:
        """Ends the open requests among these without a completion."""
        for job in jobs:
            if job in self._open.get(job.request.key, []):
                self._settle(job.request.key, Answer(Failure("failed", reason)))

    def _settle(self, key: bytes, answer: Answer) -> None:
        first, *followers = self._open.pop(key)
        self.rest += [] if first.take(answer) else [first]
        self.rest += [job for job in followers if not job.take(answer._replace(attempts=0))]


class _Flushing(Progress):
    """Grades everything before it waits."""

    def __init__(self, name: str, judge: InProcessJudge) -> None:
        super().__init__(name)
        self._judge = judge

    def waiting(self, event: threading.Event) -> None:
        """Grades all that was submitted, unless another thread has just done so."""
        self._judge.flush()
        event.wait()
