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
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from culture_tasks.judges.cache import Row, VerdictCache, make_row
from culture_tasks.judges.completions import Answer, Completion, Problem
from culture_tasks.judges.endpoint.addresses import Secrets
from culture_tasks.judges.parameters import MOST_TOKENS, Adaptations, limit_of
from culture_tasks.judges.rubric.rubrics import LONGEST_TEXT, Message, Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Outcome, Usage, Verdict
from culture_tasks.settings import Settings
from culture_tasks.text import without_reasoning

_GRADINGS_PER_LOOKUP = 1_000
_ANY_ITEM = JudgeItem("question", ("reference", "another"), "response" * LONGEST_TEXT, language="language")
_NO_USAGE = Usage()


logger = logging.getLogger(__name__)


class Wording(NamedTuple):
    """The constant parts of a judge's requests by one rubric."""

    sampling: Mapping[str, Any]  # the sampling parameters that are meant: the rubric's, unless the user sets others
    sha256: str  # hash of all wording besides the item
    key_begins: str  # the name of a request in the cache before and after the texts of its item, as JSON
    key_ends: str


@dataclass(slots=True)
class Grader:
    """Who grades, and how, besides the rubric."""

    backend: str  # ``openai`` or ``lm_eval``
    endpoint: str  # the endpoint's name without secrets: a base URL, or ``lm_eval:<backend>``
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
    secret: str = field(default_factory=lambda: secrets.token_hex(16), init=False, repr=False)
    _wordings: dict[str, Wording] = field(default_factory=dict, init=False, repr=False)
    _encoded: tuple[Mapping[str, Any], str, str] = field(default=({}, "{}", ""), init=False, repr=False)

    def __post_init__(self) -> None:
        self.delimiters = self.settings.judge_delimiters == "on"
        self.most_tokens = 0 if "max_tokens" in self.settings.judge_parameters else MOST_TOKENS

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters that the model took so far."""
        wording = self.wording(rubric)
        return JudgeIdentity(
            backend=self.backend,
            model=self.model,
            rubric=rubric.name,
            prompt=rubric.user,
            prompt_sha256=wording.sha256,
            delimiters=self.delimiters,
            sampling=self.adaptations.apply(wording.sampling),
        )

    def wording(self, rubric: Rubric) -> Wording:
        """Returns the constant parts of requests by a rubric, made once."""
        if (wording := self._wordings.get(rubric.name)) is None:
            # What the user sets to None leaves a parameter of the rubric's out.
            sampling = {**rubric.sampling, **rubric.form(self.settings.judge_form), **self.settings.judge_parameters}
            sampling = {
                name: value
                for name, value in sampling.items()
                if value is not None and (self.takes is None or name in self.takes)
            }
            # How an item's texts become messages: the wording, the delimiters and the place of each text.
            layout = json.dumps(rubric.messages(_ANY_ITEM, delimiters=self.delimiters))
            begins = _json([self.endpoint, self.place, self.model, [hashlib.sha256(layout.encode()).hexdigest()]])
            sha256 = rubric.prompt_sha256(delimiters=self.delimiters)
            wording = self._wordings[rubric.name] = Wording(sampling, sha256, begins[:-2], f"],{_json(sampling)},")
        return wording

    def encoded(self, sampling: Mapping[str, Any]) -> tuple[str, str]:
        """Returns parameters as JSON, for the cache and as the end of a request; requests in a row have the same."""
        last, for_cache, for_request = self._encoded
        if last != sampling or not for_request:
            for_cache, for_request = _json(sampling), _json({"model": self.model, **sampling})[1:]
            self._encoded = sampling, for_cache, for_request
        return for_cache, for_request


@dataclass(slots=True, eq=False)
class Grading:
    """One verdict in the making, and the ticket of who waits for it.

    A reply that was cut off, or holds no verdict without doubt, is asked again once with a reminder of the format; each
    reply is read on its own. Completions of an earlier run are used, unless they add up to no verdict: then the judge
    is asked as if they weren't there, and its new completions take their place.

    Delimiters are made from a secret of the run, so messages differ from run to run. A request is named by the texts
    that its messages are made of, without the secret, so that runs share completions.
    """

    grader: Grader
    rubric: Rubric
    item: JudgeItem
    wait: Callable[[Grading], None] | None = None  # waits until this verdict is there
    result: Verdict | None = field(default=None, init=False)  # the verdict, None until an answer brings it
    attempts: int = field(default=0, init=False)  # how often the judge was asked for it so far
    ignores_cache: bool = field(default=False, init=False)  # whether completions of earlier runs don't count any more
    _saw_new_reply: bool = field(default=False, init=False)
    _sample: int = field(default=0, init=False)  # counts fresh samples: 0, then 1 for the first time of asking again
    _reminder: Sequence[Message] = field(default=(), init=False)
    _was_cut: bool = field(default=False, init=False)  # whether the reminder follows a reply that was cut off
    _usage: Usage = field(default=_NO_USAGE, init=False)
    _key: bytes | None = field(default=None, init=False)

    def verdict(self) -> Verdict:
        """Waits for the verdict."""
        if self.result is None and self.wait is not None:
            self.wait(self)
        assert self.result is not None
        return self.result

    @property
    def key(self) -> bytes:
        """The name in the cache of the request to answer next: SHA-256 of the canonical JSON of what changes it."""
        if self._key is None:
            item, wording, text = self.item, self.grader.wording(self.rubric), encode_basestring
            references, reminder = (
                ",".join(map(text, item.references)),
                _json(self._reminder) if self._reminder else "[]",
            )
            texts = f"{text(item.question)},[{references}],{text(item.response)},{text(item.language)},{reminder}"
            name = f"{wording.key_begins},{texts}{wording.key_ends}{self._sample}]"
            self._key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        return self._key

    @property
    def sampling(self) -> Mapping[str, Any]:
        """The sampling parameters that are meant; an endpoint that refuses one is sent others, always the same ones."""
        return self.grader.wording(self.rubric).sampling

    def messages(self) -> list[Message]:
        """Returns the messages of the request to answer next."""
        first = self.rubric.messages(self.item, delimiters=self.grader.delimiters, secret=self.grader.secret)
        return [*first, *(self.rubric.after_a_cut(self._reminder) if self._was_cut else self._reminder)]

    def body(self, sampling: Mapping[str, Any]) -> bytes:
        """The request as an OpenAI-compatible endpoint reads it, with the sampling parameters that it accepts."""
        messages = ",".join([_encoded_message(message["role"], message["content"]) for message in self.messages()])
        return f'{{"messages":[{messages}],{self.grader.encoded(sampling)[1]}'.encode()

    def row(self, completion: Completion) -> Row:
        """Returns a completion of the request as the cache keeps it."""
        grader, sampling = self.grader, completion.sampling
        parameters = None if sampling is None else grader.encoded(sampling)[0]
        return make_row(self.key, grader.endpoint, grader.model, self.rubric.name, self._sample, completion, parameters)

    def take(self, answer: Answer) -> bool:
        """Takes the answer to the request; False where there is another request to answer."""
        try:
            self._take(answer)
        except Exception as error:  # noqa: BLE001  # broad: no bug, of any rubric, may leave a caller waiting for ever
            self.abandon(f"the judge broke down: {type(error).__name__}: {error}")
        return self.result is not None

    def _take(self, answer: Answer) -> None:
        reply, meant = answer.reply, self.sampling
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
            self._sample, self._reminder, self._was_cut, self.attempts, self._usage = 0, (), False, 0, _NO_USAGE
        self._key = None
        if verdict is None:
            return
        if sampling is not None and sampling != meant and (limit := limit_of(sampling)) not in (None, limit_of(meant)):
            verdict = replace(verdict, max_tokens=limit)
        self._end(verdict)

    def _read(self, reply: Completion | Problem) -> Verdict | None:
        """Returns the verdict, or None where the judge is to be asked again."""
        if isinstance(reply, Problem):
            return self._make_verdict("refused" if reply.refused else "failed", error=reply.message)
        self._usage = reply.usage if self._usage is _NO_USAGE else self._usage + reply.usage
        # A reply that was cut off may have been about to say something else: it is no verdict.
        reading = self.rubric.read(reply.text) if reply.is_whole else None
        if reading is None and self._sample == 0:
            text = without_reasoning(reply.text)
            # An endpoint may refuse an empty message: without a reply to remind of, the question gets a fresh sample.
            self._reminder = self.rubric.reminder_messages(text) if text.strip() else ()
            self._was_cut = bool(self._reminder) and reply.is_cut_off
            self._sample = 1
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
        if self.result is None:
            self._end(Verdict("failed", error=error, endpoint=self.grader.endpoint))

    def _end(self, verdict: Verdict) -> None:
        if verdict.error is not None:
            verdict = replace(verdict, error=self.grader.hides.hidden(verdict.error))
        self.result = verdict


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
        cached = cache.get_many(list({grading.key for grading in waiting}))
        next_ones = []
        for grading in waiting:
            reply = answer(grading, None if grading.ignores_cache else cached.get(grading.key))
            if reply is None:
                open_.setdefault(grading.key, []).append(grading)
            elif not grading.take(reply):
                next_ones.append(grading)
        waiting = next_ones
    return open_


def is_at_hand(cache: VerdictCache, grader: Grader, expected: Sequence[tuple[Rubric, JudgeItem]]) -> bool:
    """Whether the cache holds a score for each response; takes over what it tells of the endpoint's parameters."""
    for start in range(0, len(expected), _GRADINGS_PER_LOOKUP):
        some = [Grading(grader, rubric, item) for rubric, item in expected[start : start + _GRADINGS_PER_LOOKUP]]
        if open_requests(some, cache) or any(it.result is None or it.result.outcome != "scored" for it in some):
            return False
    logger.info("judge %s: every verdict is in the cache, so the judge is not asked", grader.model)
    return True


def _encoded_message(role: str, content: str) -> str:
    # A system message is the same for all items of a rubric.
    text = _encoded_once(content) if role == "system" else encode_basestring(content)
    return f'{{"role":"{role}","content":{text}}}'


_encoded_once = lru_cache(maxsize=64)(encode_basestring)
_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
