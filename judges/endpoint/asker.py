"""Asks one endpoint for one completion: paced, repeated while patience lasts, with parameters that it accepts.

Reasoning models want ``max_completion_tokens`` instead of ``max_tokens``, and no temperature; other servers lack
other parameters, or take a simpler value. Names of models say nothing reliable about that, so the rule is the error
alone: a 400 or 422 that names a parameter which was sent changes that parameter, for this model, as long as the process
lives. In the same way the limit of tokens grows, for all requests that follow, where thinking used it up.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from culture_tasks.judges.completions import Answer, ChatRequest, Completion, Problem
from culture_tasks.judges.endpoint.budget import USED_UP, Budget
from culture_tasks.judges.endpoint.client import Client
from culture_tasks.judges.endpoint.pacing import NO_ANSWERS, Gate, Kind, Patience, Silence
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import may_be_cut, without_reasoning

logger = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429
# How often a redirect or an over-long body is asked again.
_STRAYS = 2
# Names of the limit of tokens.
LIMITS = ("max_tokens", "max_completion_tokens")
# How far a limit grows by itself.
MOST_TOKENS = 32_768
_GROWTH = 4
_SUCCESSORS = {"max_tokens": "max_completion_tokens"}
# Parameters that hold a reply to a form.
_FORMS = ("response_format", "structured_outputs")
_SIMPLER_VALUES: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
# Endpoints name a form of the reply by the parameter or by its value, and refuse it in many words.
_ALIASES = {"response_format": r"\b(?:response_format|json_schema|json_object|schema)\b"}
# What endpoints say of a parameter that they don't take.
_COMPLAINT = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|not (?:allowed|permitted)|extra inputs|deprecated",
    re.IGNORECASE,
)


@dataclass(eq=False)
class Asker:
    """The way to one endpoint's model, which connects with the first request. To be used inside the event loop."""

    connect: Callable[[], Client]
    _: KW_ONLY
    name: str  # who is asked, without secrets, for the log
    concurrency: int
    patience: Patience
    budget: Budget | None = None
    adaptations: Adaptations = field(default_factory=lambda: Adaptations())
    resting: int = field(default=0, init=False)  # requests that wait after a fault, and let others go first
    _client: Client | None = field(default=None, init=False)
    _last_problem: Problem = field(default=Problem("the judge was closed", retry=False), init=False)
    _news: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.gate = Gate(self.concurrency, self.patience)

    async def ask(
        self, request: ChatRequest, *, patience: Patience | None = None, on_rest: Callable[[], None] | None = None
    ) -> Answer:
        """Asks the endpoint until there is a completion, or patience ends.

        All requests share the time that an endpoint without answers is given. A request that fails while others are
        answered is asked again for just as long, counted by itself; one that only came too early for a known limit of
        the rate is never given up. With less patience, no further attempt begins after that long.

        ``on_rest`` is called whenever this request begins to wait after a fault, so that others are asked meanwhile: a
        request that always fails must not keep the endpoint from showing that it answers.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + patience.longest if patience else float("inf")
        patience = patience or self.patience
        exchange = _Exchange(request, self.adaptations, patience, request.most_tokens)
        gate = self.gate
        attempts = strays = 0
        began = await self._admit(exchange)
        while began is not None:
            reply = await self._send(exchange, began)
            attempts += 1
            result = exchange.outcome_of(reply)
            if result is None:
                began = await self._admit(exchange)
                continue
            if isinstance(result, Completion):
                return Answer(result, attempts)
            now = loop.time()
            is_slowed = _kind(result) == "limited" and gate.rate.value is not None
            wait = 0.0 if is_slowed else exchange.pause_after_fault(began, now, gate.silence)
            next_attempt = now + max(wait, gate.delay(now) or 0.0)
            hopeless = exchange.seconds_of_faults > patience.longest or next_attempt > ends
            strays += result.is_stray
            may_pass = result.retry or (result.is_stray and strays <= _STRAYS)
            if not may_pass or (hopeless and gate.silence.given_up is None):
                return Answer(result, attempts)
            began = await (self._admit(exchange) if is_slowed else self._rest(exchange, wait, on_rest))
        why, last = gate.silence.given_up, self._last_problem
        refusal = Problem("the judge was closed before it answered")
        if exchange.unaffordable and self.budget is not None:
            refusal = Problem(self.budget.reason, code=USED_UP)
        elif why is not None:
            refusal = replace(last, message=f"{why}. Its last reply: {last.message}", retry=False)
        return Answer(refusal, attempts)

    async def close(self) -> None:
        """Closes all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _admit(self, exchange: _Exchange) -> float | None:
        """Waits until a request may be sent, and returns when that is; None where it may not."""
        if self.budget is None:
            return await self.gate.enter()
        # Made before it may be sent, so that the amount set aside for it fits.
        exchange.encode()
        exchange.most = self.budget.most(exchange.request.model, exchange.body, limit_of(exchange.sampling))
        exchange.unaffordable = not await self.budget.reserve(exchange.most)
        if exchange.unaffordable:
            return None
        began: float | None = None
        try:
            began = await self.gate.enter()
        finally:
            if began is None:
                self.budget.settle(exchange.most, 0.0)
        return began

    async def _send(self, exchange: _Exchange, began: float) -> Completion | Problem:
        if self._client is None:
            self._client = self.connect()
        kind: Kind | None = None
        pause = 0.0
        result: Completion | Problem | None = None
        try:
            if self.budget is None:
                exchange.encode()
            result, wait = await self._client.post(exchange.body)
            kind, pause = _kind(result), wait or 0.0
            if isinstance(result, Problem) and kind != "answer":
                self._last_problem = result
        finally:
            self.gate.leave(began, kind, pause)
            if self.budget is not None:
                cost = self.budget.charge_of(exchange.request.model, result, exchange.most)
                self.budget.settle(exchange.most, cost)
        self._tell()
        return result

    async def _rest(self, exchange: _Exchange, seconds: float, on_rest: Callable[[], None] | None) -> float | None:
        self.resting += 1
        try:
            if on_rest is not None:
                on_rest()
            await asyncio.sleep(seconds)
            return await self._admit(exchange)
        finally:
            self.resting -= 1

    def _tell(self) -> None:
        """Logs, once each, that the endpoint has stopped answering, that it is given up, and that it is back."""
        silence = self.gate.silence
        news = silence.given_up
        if news is None and silence.out:
            news = f"{NO_ANSWERS} {self.patience.longest:g} s at most"
        if news != self._news:
            self._news = news
            message = f"{news}. Its last reply: {self._last_problem.message}" if news else "the endpoint answers again"
            logger.warning("%s: %s", self.name, message)


def _kind(result: Completion | Problem) -> Kind:
    if isinstance(result, Completion) or not (result.retry or result.overload):
        return "answer"
    if result.status == _TOO_MANY_REQUESTS:
        return "limited"
    return "overload" if result.overload else "fault"


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request with its replies: the parameters that it is sent with, which they change, and its faults."""

    request: ChatRequest
    adaptations: Adaptations
    patience: Patience
    most_tokens: int
    sampling: Mapping[str, Any] = field(default_factory=dict)
    body: bytes = b""
    most: float = 0.0  # its highest cost, where there is a budget
    unaffordable: bool = False
    seconds_of_faults: float = 0.0  # how long it has failed while others were answered
    usage: Usage | None = None
    cut_off: Completion | None = None
    faults: int = 0
    last_fault: float = float("inf")

    def encode(self) -> None:
        """Makes the request as it is to be sent now."""
        self.sampling = self.adaptations.apply(self.request.sampling, self.most_tokens)
        self.body = self.request.body(self.sampling)

    def outcome_of(self, reply: Completion | Problem) -> Completion | Problem | None:
        """Returns the outcome of the request; None if it is to be sent again at once, with other parameters."""
        size, self.body = len(self.body), b""
        if isinstance(reply, Completion):
            if may_be_cut(size, reply.usage.prompt_tokens):
                self.adaptations.warn_of_a_cut(self.request, reply.usage.prompt_tokens)
            self.usage = reply.usage if self.usage is None else self.usage + reply.usage
            if reply.is_whole:
                self.adaptations.see_form(reply.text, self.sampling)
            sampling = self.adaptations.without_ignored(self.sampling)
            reply = Completion(reply.text, reply.finish_reason, reply.model, self.usage, sampling, reply.thought)
            if not (reply.is_cut_off_by_thinking and self.adaptations.grow(self.sampling, self.most_tokens)):
                return reply
            self.cut_off = reply
            return None
        has_grown = (limit_of(self.sampling) or 0) > (limit_of(self.request.sampling) or 0)
        if reply.status in (400, 422) and has_grown:
            # The endpoint takes no larger limit, or has no room for it beside this prompt.
            if self.cut_off is not None and self.cut_off.sampling is not None:
                self.adaptations.shrink(limit_of(self.cut_off.sampling) or 0)
                return self.cut_off
            self.most_tokens = 0
            return None
        return None if self.adaptations.learn(reply, self.sampling) else reply

    def pause_after_fault(self, began: float, now: float, silence: Silence) -> float:
        """Counts a fault, and returns the seconds to wait before the request is sent again."""
        self.faults += 1
        longest = min(self.patience.cap, self.patience.first * 2.0 ** min(self.faults - 1, 60))
        wait = 0.0 if silence.out else longest * random.uniform(0.5, 1.0)  # noqa: S311
        # A fault is the request's own, and not the endpoint's, where others were answered since the last one.
        if silence.answered_at >= min(began, self.last_fault):
            self.seconds_of_faults += now - began + wait
        self.last_fault = now
        return wait


def limit_of(sampling: Mapping[str, Any]) -> int | None:
    """Returns the limit of tokens among sampling parameters, or None."""
    return next((value for name in LIMITS if isinstance(value := sampling.get(name), int)), None)


class Adaptations:
    """The parameters that one model takes in place of others."""

    def __init__(self) -> None:
        self._instead: dict[str, str | None] = {}
        self._simpler: set[str] = set()
        self._limit = 0
        self._largest = MOST_TOKENS
        self._has_seen_a_form = False
        self._has_warned = False

    def apply(self, sampling: Mapping[str, Any], most_tokens: int = 0) -> Mapping[str, Any]:
        """Returns the parameters to send in place of these; their limit of tokens may grow to ``most_tokens``."""
        if not (self._instead or self._simpler or self._limit):
            return sampling
        parameters: dict[str, Any] = {}
        for meant, value in sampling.items():
            name: str | None = meant
            while name in self._instead:
                name = self._instead[name]
            if name is None:
                continue
            if name in LIMITS and isinstance(value, int):
                value = max(value, min(self._limit, most_tokens))
            parameters[name] = _SIMPLER_VALUES[name] if name in self._simpler else value
        return parameters

    def learn(self, problem: Problem, sampling: Mapping[str, Any]) -> bool:
        """Learns from an endpoint's complaint; True where the request is worth sending again with other parameters."""
        name = _refused_parameter(problem, sampling)
        if name is None:
            return False
        if name in _SIMPLER_VALUES and sampling[name] != _SIMPLER_VALUES[name]:
            self._simpler.add(name)
        elif name not in self._instead:
            self._instead[name] = _SUCCESSORS.get(name)
            if name not in _SUCCESSORS:
                logger.warning("judge: the endpoint takes no %s, so it is left out: %s", name, problem.message)
        return True

    def grow(self, sampling: Mapping[str, Any], most_tokens: int) -> bool:
        """Raises the limit of tokens that thinking used up, for this request and all that follow, if it may grow."""
        limit = limit_of(sampling)
        if limit is None or limit >= min(most_tokens, self._largest):
            return False
        if self._limit <= limit:
            self._limit = min(_GROWTH * limit, self._largest)
        return True

    def shrink(self, accepted: int) -> None:
        """Learns that the endpoint refuses a limit which had grown, and took this one before."""
        self._largest = max(accepted, 1)
        self._limit = min(self._limit, self._largest)

    def see_form(self, text: str, sampling: Mapping[str, Any]) -> None:
        """Leaves a form out, and says so, where the first reply to a request with one doesn't have it."""
        name = next((name for name in _FORMS if name in sampling), None)
        answer = without_reasoning(text).strip()
        if name is None or self._has_seen_a_form or not answer:
            return
        self._has_seen_a_form = True
        if not _has_form(answer, sampling[name]):
            self._instead[name] = None
            logger.warning(
                "judge: the endpoint ignores %s: its first reply is not in the form that was asked for. The parameter "
                "is left out of the requests and of who the judge is",
                name,
            )

    def without_ignored(self, sampling: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns parameters that were sent without a form that the endpoint ignores."""
        ignored = [name for name in _FORMS if name in sampling and self._instead.get(name, "") is None]
        return {name: value for name, value in sampling.items() if name not in ignored} if ignored else sampling

    def warn_of_a_cut(self, request: ChatRequest, tokens: int) -> None:
        """Says, once, that an endpoint reports too few tokens to have read all of a prompt."""
        if self._has_warned:
            return
        characters = sum(len(message["content"]) for message in request.messages())
        if may_be_cut(characters, tokens):
            self._has_warned = True
            logger.warning(
                "judge: the endpoint reports %d tokens of a prompt of %d characters, so it may have cut the prompt. "
                "Give its model a longer context, such as by OLLAMA_CONTEXT_LENGTH=16384 for Ollama",
                tokens,
                characters,
            )

    def adopt(self, meant: Mapping[str, Any], sampling: Mapping[str, Any]) -> None:
        """Learns from parameters that were sent in an earlier run, as the cache holds them."""
        for name in meant.keys() - sampling.keys():
            successor = _SUCCESSORS.get(name)
            self._instead.setdefault(name, successor)
            if successor is not None and successor not in sampling:
                self._instead.setdefault(successor, None)
        self._simpler |= {
            name for name, value in _SIMPLER_VALUES.items() if sampling.get(name) == value != meant.get(name)
        }
        before, after = limit_of(meant), limit_of(sampling)
        if before is not None and after is not None and after > before:
            self._limit = max(self._limit, min(after, self._largest))


def _has_form(answer: str, form: Mapping[str, Any]) -> bool:
    """Whether a reply is in the form that a parameter asked for: an object, or a text by a pattern."""
    if "regex" in form:
        return re.fullmatch(form["regex"], answer) is not None
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    required = form.get("json_schema", {}).get("schema", {}).get("required", ())
    return isinstance(content, dict) and all(name in content for name in required)


def _refused_parameter(problem: Problem, sampling: Mapping[str, Any]) -> str | None:
    if problem.status not in (400, 422) or problem.refused:
        return None
    for name, alias in _ALIASES.items():
        if name in sampling and re.search(alias, f"{problem.param} {problem.message}"):
            return name
    if not _COMPLAINT.search(problem.message):  # such as "max_tokens=9999 cannot be greater than max_model_len=4096"
        return None
    if problem.param in sampling:
        return problem.param
    names = [name for name in sampling if re.search(rf"\b{re.escape(name)}\b", problem.message)]
    return names[0] if names else None
