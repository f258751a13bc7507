"""One verdict on its way: the grader, the next request, and the verdict that a caller waits for."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

from tqdm import tqdm

from culture_tasks.judges.cache.cache_files import CachedRow
from culture_tasks.judges.cache.verdict_cache import CacheThread
from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Secrets
from culture_tasks.judges.endpoint.asker import MOST_TOKENS, Adaptations, limit_of
from culture_tasks.judges.rubric.rubrics import LONGEST_TEXT, Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Outcome, Usage, Verdict
from culture_tasks.settings import Settings
from culture_tasks.text import without_reasoning

logger = logging.getLogger(__name__)

_SECONDS_WITHOUT_A_LINE = 3.0
_SECONDS_BETWEEN_UPDATES = 1.0
_ANY_ITEM = JudgeItem("question", ("reference", "another"), "response" * LONGEST_TEXT, language="language")
_handing_over = threading.Lock()


class Wording(NamedTuple):
    """The wording of a judge's requests by one rubric."""

    sampling: Mapping[str, Any]  # the sampling parameters that are meant: the rubric's, unless the user sets others
    sha256: str  # hash of all wording besides the item
    layout: str  # hash of how an item's texts become messages: the wording, the delimiters and the place of each text


@dataclass(slots=True)
class Grader:
    """Who grades, and how, besides the rubric."""

    backend: str  # ``openai`` or ``lm_eval``
    endpoint: str  # the endpoint's name without secrets
    model: str  # model name as asked for, or model arguments, without secrets
    # Fingerprint of the whole URL, or of the files of a local model: it tells two models of one name apart. It is part
    # of the cache's key, and shown nowhere.
    place: str
    hides: Secrets  # secrets that no verdict's error may show, whatever broke down
    settings: Settings = field(repr=False)
    takes: Collection[str] | None = None  # names of the sampling parameters that the backend takes; None means all
    delimiters: bool = field(init=False)  # whether texts to grade are wrapped in delimiters
    most_tokens: int = field(init=False)  # how far the limit of tokens may grow where thinking uses it up
    adaptations: Adaptations = field(default_factory=Adaptations, init=False)
    run_began: float = field(default_factory=time.time, init=False)  # in seconds since 1970
    # The source of the delimiters' codes, new in each run and part of no key: no author of a graded text can know it.
    secret: str = field(default_factory=lambda: secrets.token_hex(16), init=False, repr=False, compare=False)
    _wordings: dict[str, Wording] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.delimiters = self.settings.judge_delimiters == "on"
        self.most_tokens = 0 if "max_tokens" in self.settings.judge_parameters else MOST_TOKENS

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters that the model took so far."""
        return JudgeIdentity(
            backend=self.backend,
            model=self.model,
            rubric=rubric.name,
            prompt=rubric.user,
            prompt_sha256=self.wording(rubric).sha256,
            delimiters=self.delimiters,
            sampling=self.adaptations.apply(self.wording(rubric).sampling),
        )

    def wording(self, rubric: Rubric) -> Wording:
        """Returns the wording of requests by a rubric, made once."""
        if rubric.name not in self._wordings:
            # What the user sets to None leaves a parameter of the rubric's out.
            sampling = {**rubric.sampling, **rubric.form(self.settings.judge_form), **self.settings.judge_parameters}
            messages = rubric.messages(_ANY_ITEM, delimiters=self.delimiters)
            self._wordings[rubric.name] = Wording(
                sampling={
                    name: value
                    for name, value in sampling.items()
                    if value is not None and (self.takes is None or name in self.takes)
                },
                sha256=rubric.prompt_sha256(delimiters=self.delimiters),
                layout=hashlib.sha256(json.dumps(messages).encode()).hexdigest(),
            )
        return self._wordings[rubric.name]


@dataclass(slots=True, eq=False)
class VerdictJob:
    """Asks for one verdict until it is there; it is the ticket of the caller who waits.

    A reply that was cut off, or holds no verdict without doubt, is asked again with a reminder of the format; each
    reply is read on its own. Completions that an earlier run kept are used, unless they add up to no verdict: then the
    judge is asked afresh, once, and its new completions take their place.

    Jobs are many and prompts are long: these are made when they are sent, and an event is made only for a job that
    somebody waits for.
    """

    grader: Grader
    rubric: Rubric
    item: JudgeItem
    _: KW_ONLY
    progress: JudgingProgress | None = None  # counts the verdicts; None for a question that is no part of a run
    afresh: bool = field(default=False, init=False)  # whether completions of earlier runs don't count any more
    attempts: int = field(default=0, init=False)  # how often the judge was asked for it so far
    _used_others: bool = field(default=False, init=False)
    _sample: int = field(default=0, init=False)
    _reminder: Sequence[Message] = field(default=(), init=False)
    _was_cut: bool = field(default=False, init=False)  # whether the reminder follows a reply that was cut off
    _usage: Usage = field(default=Usage(), init=False)
    _request: ChatRequest | None = field(default=None, init=False)
    _pid: int = field(default_factory=os.getpid, init=False)
    _verdict: Verdict | None = field(default=None, init=False)
    _event: threading.Event | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.progress is not None:
            self.progress.submitted += 1

    @property
    def request(self) -> ChatRequest:
        """The next request."""
        if self._request is None:
            grader, item, wording = self.grader, self.item, self.grader.wording(self.rubric)
            self._request = ChatRequest(
                endpoint=grader.endpoint,
                model=grader.model,
                messages=self._messages,
                sampling=wording.sampling,
                texts=[wording.layout, item.question, item.references, item.response, item.language, self._reminder],
                sample=self._sample,
                place=grader.place,
                most_tokens=grader.most_tokens,
            )
        return self._request

    def _messages(self) -> list[Message]:
        first = self.rubric.messages(self.item, delimiters=self.grader.delimiters, secret=self.grader.secret)
        return [*first, *(self.rubric.after_a_cut(self._reminder) if self._was_cut else self._reminder)]

    def row(self, completion: Completion) -> CachedRow:
        """Returns a completion of the request as the cache keeps it."""
        return CachedRow(self.request, self.rubric.name, completion, replaces=self.afresh)

    def take(self, answer: Answer) -> bool:
        """Takes an answer; False where there is another request to answer first."""
        try:
            return self._take(answer)
        except Exception as error:  # noqa: BLE001  # broad: no bug, of any rubric, may leave a caller waiting for ever
            self.abandon(f"the judge broke down: {type(error).__name__}: {error}")
            return True

    def _take(self, answer: Answer) -> bool:
        reply, meant = answer.reply, self.request.sampling
        is_old = answer.kept_since is not None and answer.kept_since <= self.grader.run_began
        if is_old and self.afresh:
            return False
        sampling = reply.sampling if isinstance(reply, Completion) else None
        if sampling is not None and sampling != meant:
            self.grader.adaptations.adopt(meant, sampling)
        self.attempts += answer.attempts
        self._used_others |= not is_old
        verdict = self._read(reply)
        if verdict is not None and verdict.outcome == "unparsable" and not self._used_others:
            self.afresh, verdict = True, None
            self._sample, self._reminder, self._was_cut, self.attempts, self._usage = 0, (), False, 0, Usage()
        if verdict is None:
            self._request = None
            return False
        limit = None if sampling is None else limit_of(sampling)
        self._resolve(verdict if limit in (None, limit_of(meant)) else replace(verdict, max_tokens=limit))
        return True

    def _read(self, reply: Completion | Problem) -> Verdict | None:
        """Returns the verdict, or None where the judge is to be asked again."""
        if isinstance(reply, Problem):
            return self._make_verdict("refused" if reply.refused else "failed", error=reply.message)
        self._usage += reply.usage
        # A reply that was cut off may have been about to say something else: it is no verdict.
        reading = self.rubric.read(reply.text) if reply.is_whole else None
        if reading is None and self._sample < 1:
            text = without_reasoning(reply.text)
            # An endpoint may refuse an empty message: without a reply to remind of, the question gets a fresh sample.
            self._reminder = self.rubric.reminder_messages(text) if text.strip() else ()
            self._was_cut = bool(self._reminder) and reply.is_cut_off
            self._sample += 1
            return None
        completion: dict[str, Any] = {
            "completion": reply.text,
            "reply_model": reply.model if reply.model != self.grader.model else None,
        }
        if reading is not None:
            return self._make_verdict("scored", score=float(reading.rating), rationale=reading.rationale, **completion)
        error = "the reply holds no rating that can be read without doubt"
        if reply.is_cut_off:
            error = "the reply was cut off at the largest number of tokens"
        elif not reply.is_whole:
            error = f"the reply broke off (finish reason {reply.finish_reason!r})"
        return self._make_verdict("unparsable", rationale=reply.text.strip(), error=error, **completion)

    def _make_verdict(self, outcome: Outcome, **reply: Any) -> Verdict:
        return Verdict(
            outcome,
            usage=self._usage,
            attempts=self.attempts,
            asked_again=self._sample > 0,
            endpoint=self.grader.endpoint,
            **reply,
        )

    def abandon(self, error: str, *, quietly: bool = False) -> None:
        """Ends without an answer, if it has not ended yet; quietly where nobody waits for it."""
        self._resolve(Verdict("failed", error=error, endpoint=self.grader.endpoint), quietly=quietly)

    def _resolve(self, verdict: Verdict, *, quietly: bool = False) -> None:
        if verdict.error is not None:
            verdict = replace(verdict, error=self.grader.hides.hidden(verdict.error))
        with _handing_over:
            if self._verdict is not None:
                return
            self._verdict, self._request = verdict, None
        if self._event is not None:
            self._event.set()
        if self.progress is not None and not quietly:
            self.progress.count(verdict)

    @property
    def is_resolved(self) -> bool:
        """Whether the verdict is there."""
        return self._verdict is not None

    def verdict(self) -> Verdict:
        """Waits for the verdict."""
        if self._verdict is None:
            if self._pid != os.getpid():
                return Verdict("failed", error="asked before this process was forked: no answer will come here")
            self._wait()
        assert self._verdict is not None
        return self._verdict

    def _wait(self) -> None:
        with _handing_over:
            event = self._event = self._event or threading.Event()
            if self._verdict is not None:
                event.set()
        if self.progress is not None:
            self.progress.waiting(event)
        event.wait()


def open_requests(
    jobs: Sequence[VerdictJob],
    cache: CacheThread,
    answer: Callable[[VerdictJob, Answer | None], Answer | None] = lambda _, cached: cached,
) -> dict[bytes, list[VerdictJob]]:
    """Answers jobs as far as answers are at hand, and returns the others by the key of the request that is open.

    ``answer`` returns the answer to a job, or None; it gets the cache's, unless the job is to be asked afresh.
    """
    open_: dict[bytes, list[VerdictJob]] = {}
    while jobs:
        answers = cache.get_many(list({job.request.key for job in jobs})).result()
        next_jobs = []
        for job in jobs:
            key = job.request.key
            if (reply := answer(job, None if job.afresh else answers.get(key))) is None:
                open_.setdefault(key, []).append(job)
            elif not job.take(reply):
                next_jobs.append(job)
        jobs = next_jobs
    return open_


class JudgingProgress:
    """How far a judge is: a progress line during a long wait, and warnings that count instead of repeating."""

    def __init__(self, name: str, before_waiting: Callable[[], None] | None = None) -> None:
        self.submitted = 0
        self._name = name
        self._before_waiting = before_waiting
        self._lock = threading.Lock()
        self._verdicts = 0
        self._without_score: dict[str, int] = {}

    def count(self, verdict: Verdict) -> None:
        """Counts a verdict that is there, and warns at the first, tenth, hundredth, … without a score."""
        self._verdicts += 1
        if verdict.outcome == "scored":
            return
        count = self._without_score[verdict.outcome] = self._without_score.get(verdict.outcome, 0) + 1
        if count == 10 ** (len(str(count)) - 1):
            logger.warning("%s: %d %s so far; the last: %s", self._name, count, verdict.outcome, verdict.error)

    def waiting(self, event: threading.Event) -> None:
        """Waits for the event; shows a line if that takes long."""
        if self._before_waiting is not None:
            self._before_waiting()
        if event.wait(_SECONDS_WITHOUT_A_LINE):
            return
        # One line at a time; without a terminal there is none.
        with self._lock, tqdm(desc=self._name, unit="verdict", file=sys.stderr, leave=False, disable=None) as line:
            while not event.wait(_SECONDS_BETWEEN_UPDATES):
                line.total = self.submitted
                line.update(self._verdicts - line.n)
