"""Who grades, and one verdict in the making: a request, the answer to it, and so on until the verdict is there.

Nothing here waits or asks: an endpoint, a batch or a model in this process answers the requests.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from culture_tasks.judges.cache import CachedRow, VerdictCache
from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Secrets
from culture_tasks.judges.parameters import MOST_TOKENS, Adaptations, limit_of
from culture_tasks.judges.rubric.rubrics import LONGEST_TEXT, Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Outcome, Usage, Verdict
from culture_tasks.settings import Settings
from culture_tasks.text import without_reasoning

_TIMES_ASKED_AGAIN = 1  # after a reply that no verdict can be read from
_GRADINGS_PER_LOOKUP = 1_000
_ANY_ITEM = JudgeItem("question", ("reference", "another"), "response" * LONGEST_TEXT, language="language")


logger = logging.getLogger(__name__)


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
class Grading:
    """One verdict in the making.

    A reply that was cut off, or holds no verdict without doubt, is asked again with a reminder of the format; each
    reply is read on its own. Completions of an earlier run are used, unless they add up to no verdict: then the judge
    is asked as if they weren't there, and its new completions take their place.
    """

    grader: Grader
    rubric: Rubric
    item: JudgeItem
    verdict: Verdict | None = field(default=None, init=False)  # None until an answer brings it
    attempts: int = field(default=0, init=False)  # how often the judge was asked for it so far
    ignores_cache: bool = field(default=False, init=False)  # whether completions of earlier runs don't count any more
    _saw_new_reply: bool = field(default=False, init=False)
    _sample: int = field(default=0, init=False)
    _reminder: Sequence[Message] = field(default=(), init=False)
    _was_cut: bool = field(default=False, init=False)  # whether the reminder follows a reply that was cut off
    _usage: Usage = field(default=Usage(), init=False)
    _request: ChatRequest | None = field(default=None, init=False)

    @property
    def request(self) -> ChatRequest:
        """The request to answer next."""
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
        return CachedRow(self.request, self.rubric.name, completion, replaces=self.ignores_cache)

    def take(self, answer: Answer) -> bool:
        """Takes the answer to the request; False where there is another request to answer."""
        try:
            self._take(answer)
        except Exception as error:  # noqa: BLE001  # broad: no bug, of any rubric, may leave a caller waiting for ever
            self.abandon(f"the judge broke down: {type(error).__name__}: {error}")
        return self.verdict is not None

    def _take(self, answer: Answer) -> None:
        reply, meant = answer.reply, self.request.sampling
        is_from_earlier_run = answer.kept_since is not None and answer.kept_since <= self.grader.run_began
        if is_from_earlier_run and self.ignores_cache:
            return
        sampling = reply.sampling if isinstance(reply, Completion) else None
        if sampling is not None and sampling != meant:
            self.grader.adaptations.adopt(meant, sampling)
        self.attempts += answer.attempts
        self._saw_new_reply |= not is_from_earlier_run
        verdict = self._read(reply)
        if verdict is not None and verdict.outcome == "unparsable" and not self._saw_new_reply:
            self.ignores_cache, verdict = True, None
            self._sample, self._reminder, self._was_cut, self.attempts, self._usage = 0, (), False, 0, Usage()
        self._request = None
        if verdict is not None:
            limit = None if sampling is None else limit_of(sampling)
            self._end(verdict if limit in (None, limit_of(meant)) else replace(verdict, max_tokens=limit))

    def _read(self, reply: Completion | Problem) -> Verdict | None:
        """Returns the verdict, or None where the judge is to be asked again."""
        if isinstance(reply, Problem):
            return self._make_verdict("refused" if reply.refused else "failed", error=reply.message)
        self._usage = reply.usage if self._usage == Usage() else self._usage + reply.usage
        # A reply that was cut off may have been about to say something else: it is no verdict.
        reading = self.rubric.read(reply.text) if reply.is_whole else None
        if reading is None and self._sample < _TIMES_ASKED_AGAIN:
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

    def abandon(self, error: str) -> None:
        """Ends without an answer, if it has not ended yet."""
        if self.verdict is None:
            self._end(Verdict("failed", error=error, endpoint=self.grader.endpoint))

    def _end(self, verdict: Verdict) -> None:
        if verdict.error is not None:
            verdict = replace(verdict, error=self.grader.hides.hidden(verdict.error))
        self.verdict = verdict


def open_requests(
    gradings: Iterable[Grading],
    cache: VerdictCache,
    answer: Callable[[Grading, Answer | None], Answer | None] = lambda _, cached: cached,
) -> dict[bytes, list[Grading]]:
    """Answers gradings as far as answers are at hand, and returns the others by the key of the request that is open.

    ``answer`` returns the answer to a grading's request, or None; it gets the cache's, unless that is to be ignored.
    """
    open_: dict[bytes, list[Grading]] = {}
    waiting = list(gradings)
    while waiting:
        cached = cache.get_many(list({grading.request.key for grading in waiting}))
        next_ones = []
        for grading in waiting:
            key = grading.request.key
            reply = answer(grading, None if grading.ignores_cache else cached.get(key))
            if reply is None:
                open_.setdefault(key, []).append(grading)
            elif not grading.take(reply):
                next_ones.append(grading)
        waiting = next_ones
    return open_


def is_at_hand(cache: VerdictCache, grader: Grader, expected: Sequence[tuple[Rubric, JudgeItem]]) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _GRADINGS_PER_LOOKUP):
        some = [Grading(grader, rubric, item) for rubric, item in expected[start : start + _GRADINGS_PER_LOOKUP]]
        if open_requests(some, cache) or any(it.verdict is None or it.verdict.outcome != "scored" for it in some):
            return False
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", grader.model)
    return True


@dataclass(frozen=True, slots=True)
class DeferredTicket:
    """The ticket of a judge that ends all its gradings at the first verdict that is waited for."""

    grading: Grading
    grade_all: Callable[[], None]

    def verdict(self) -> Verdict:
        """Returns the verdict."""
        if self.grading.verdict is None:
            self.grade_all()
        assert self.grading.verdict is not None
        return self.grading.verdict
