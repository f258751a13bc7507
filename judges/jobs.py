"""Who grades and how, and one verdict that the engine asks for."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from culture_tasks.judges.adaptations import MOST_TOKENS, Adaptations, limit_of
from culture_tasks.judges.cache_files import Row
from culture_tasks.judges.completions import ChatRequest, Completion
from culture_tasks.judges.engine import Answer
from culture_tasks.judges.grading import Grading
from culture_tasks.judges.progress import Progress
from culture_tasks.judges.redaction import Secrets
from culture_tasks.judges.rubrics import LONGEST_TEXT, Rubric
from culture_tasks.judges.tickets import PendingTicket
from culture_tasks.judges.verdicts import JudgeIdentity, JudgeItem, Verdict

_ANY_ITEM = JudgeItem("question", ("reference", "another"), "response" * LONGEST_TEXT, "language")


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """Who grades, and how, besides the rubric.

    Attributes:
        backend: ``openai`` or ``lm_eval``.
        endpoint: The endpoint's name without secrets.
        model: Model name as asked for, or model arguments, without secrets.
        place: Fingerprint of all else that tells one model from another of that name: the whole URL, or the files of a
            local model. It is part of the cache's key, and shown nowhere.
        delimiters: Whether texts to grade are wrapped in delimiters.
        ask_again: How often an unreadable reply is asked again.
        hides: What no verdict's error may show, whatever broke down.
        parameters: Sampling parameters that the user sets; None leaves one of the rubric's out.
        takes: Names of the sampling parameters that the backend takes; None means all.
        secret: What delimiters are made from, new in each run and part of no key: nobody who wrote a text to be graded
            can know it.
    """

    backend: str
    endpoint: str
    model: str
    place: str
    delimiters: bool
    ask_again: int
    hides: Secrets
    parameters: Mapping[str, Any] = field(default_factory=dict)
    takes: Collection[str] | None = None
    secret: str = field(default_factory=lambda: secrets.token_hex(16), init=False, repr=False, compare=False)
    _prompt_hashes: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _layouts: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _samplings: dict[str, Mapping[str, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def sampling(self, rubric: Rubric) -> Mapping[str, Any]:
        """Returns the sampling parameters that are meant: the rubric's, and in their place those that the user sets."""
        if rubric.name not in self._samplings:
            both = {**rubric.sampling, **self.parameters}
            self._samplings[rubric.name] = {
                name: value
                for name, value in both.items()
                if value is not None and (self.takes is None or name in self.takes)
            }
        return self._samplings[rubric.name]

    @property
    def most_tokens(self) -> int:
        """How far the limit of tokens may grow where thinking uses it up: not at all where the user sets it."""
        return 0 if "max_tokens" in self.parameters else MOST_TOKENS

    def identity(self, rubric: Rubric, sampling: Mapping[str, Any]) -> JudgeIdentity:
        """Returns who grades by this rubric, with the sampling parameters as sent."""
        return JudgeIdentity(
            backend=self.backend,
            model=self.model,
            rubric=rubric.name,
            prompt=rubric.user,
            prompt_sha256=self.prompt_sha256(rubric),
            delimiters=self.delimiters,
            sampling=sampling,
        )

    def prompt_sha256(self, rubric: Rubric) -> str:
        """Hash of all wording that the judge sees by this rubric, besides the item."""
        if rubric.name not in self._prompt_hashes:
            self._prompt_hashes[rubric.name] = rubric.prompt_sha256(delimiters=self.delimiters)
        return self._prompt_hashes[rubric.name]

    def grading(self, rubric: Rubric, item: JudgeItem) -> Grading:
        """Begins a verdict on the item."""
        return Grading(rubric, item, endpoint=self.endpoint, delimiters=self.delimiters, ask_again=self.ask_again)

    def request(self, grading: Grading) -> ChatRequest:
        """Returns what a verdict needs to ask now."""
        return ChatRequest(
            self.endpoint,
            self.model,
            partial(grading.messages, self.secret),
            self.sampling(grading.rubric),
            named_by=[self._layout(grading.rubric), *grading.texts()],
            sample=grading.sample,
            place=self.place,
            most_tokens=self.most_tokens,
        )

    def _layout(self, rubric: Rubric) -> str:
        """Hash of how an item's texts become messages: the wording, the delimiters and where each text stands."""
        if rubric.name not in self._layouts:
            messages = rubric.messages(_ANY_ITEM, delimiters=self.delimiters)
            self._layouts[rubric.name] = hashlib.sha256(json.dumps(messages).encode()).hexdigest()
        return self._layouts[rubric.name]


class VerdictJob:
    """Asks for one verdict until its ticket is resolved. Prompts are made when the engine gets to it, not before.

    Completions that an earlier run kept are used, unless they add up to no verdict: then the judge is asked afresh,
    once, and its new completions take their place.

    Attributes:
        ticket: Where the verdict arrives.
        afresh: Whether what earlier runs kept doesn't count any more.
    """

    __slots__ = (
        *("_adaptations", "_by", "_grading", "_item", "_progress", "_request", "_rubric", "_run_began"),
        *("_used_others", "afresh", "ticket"),
    )

    def __init__(
        self,
        by: JudgedBy,
        rubric: Rubric,
        item: JudgeItem,
        *,
        progress: Progress,
        adaptations: Adaptations,
        run_began: float,
    ) -> None:
        self.ticket = PendingTicket(progress)
        self.afresh = False
        self._run_began = run_began
        self._used_others = False
        self._by = by
        self._rubric = rubric
        self._item = item
        self._progress = progress
        self._adaptations = adaptations
        self._grading: Grading | None = None
        self._request: ChatRequest | None = None

    @property
    def request(self) -> ChatRequest:
        """What to ask now."""
        if self._request is None:
            self._grading = self._grading or self._by.grading(self._rubric, self._item)
            self._request = self._by.request(self._grading)
        return self._request

    def row(self, completion: Completion) -> Row:
        """Returns a completion of that request as the cache keeps it."""
        return Row(self.request, self._rubric.name, completion, replaces=self.afresh)

    def take(self, answer: Answer) -> bool:
        """Takes an answer; False where there is another request to answer first."""
        reply, meant = answer.reply, self.request.sampling
        is_old = answer.kept_since is not None and answer.kept_since <= self._run_began
        if is_old and self.afresh:
            return False
        if isinstance(reply, Completion) and reply.sampling is not None and reply.sampling != meant:
            self._adaptations.adopt(meant, reply.sampling)
        assert self._grading is not None
        verdict = self._grading.take(reply, self._by.model, answer.attempts, cached=answer.kept_since is not None)
        self._used_others |= not is_old
        if verdict is not None and verdict.outcome == "unparsable" and not self._used_others:
            self.afresh, self._grading, verdict = True, None, None
        if verdict is None:
            self._request = None
            return False
        sent = limit_of(reply.sampling) if isinstance(reply, Completion) and reply.sampling is not None else None
        self._resolve(verdict if sent in (None, limit_of(meant)) else replace(verdict, max_tokens=sent))
        return True

    def abandon(self, error: str) -> None:
        """Ends without an answer, if it hasn't ended yet."""
        self._resolve(Verdict("failed", error=error, endpoint=self._by.endpoint))

    def _resolve(self, verdict: Verdict) -> None:
        if verdict.error is not None:
            verdict = replace(verdict, error=self._by.hides.hidden(verdict.error))
        if self.ticket.resolve(verdict):
            self._progress.given(verdict)
