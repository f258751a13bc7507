"""One chat request, its name in the cache, and its outcome: a completion or a problem."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from culture_tasks.judges.rubric.rubrics import Message
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import without_reasoning

# Why replies end, by the names that endpoints give, in small letters. One that ends for another reason is asked again.
WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"))
CUT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"))
_FILTERS = "content_filter|content_filtered|safety|recitation|sensitive|refusal|blocklist|prohibited_content|spii"
REFUSED = frozenset((*_FILTERS.split("|"), "image_safety", "language", "guardrail_intervened"))
_MODEL_CODES = ("model_not_found", "DeploymentNotFound", "model_not_available")


@dataclass(slots=True, eq=False)
class ChatRequest:
    """Everything that changes a judge's answer.

    Delimiters are made from a secret of the run, so messages differ from run to run. A request is named by the texts
    that its messages are made of, without the secret, so that runs share completions.
    """

    endpoint: str  # who is asked, without secrets: a base URL, or ``lm_eval:<backend>``
    model: str  # model name, or model arguments
    messages: Callable[[], Sequence[Message]]  # makes the messages as sent, when they are needed
    sampling: Mapping[str, Any]  # as meant; an endpoint that refuses a parameter is sent others, always the same ones
    _: KW_ONLY
    texts: InitVar[object]  # texts that the messages are made of
    sample: int = 0  # counts fresh samples for one verdict: 0, then 1 for the first time of asking again
    place: str = ""  # fingerprint of whatever else tells the endpoint's model from another of that name
    most_tokens: int = 0  # how far the limit of tokens may grow where thinking uses it up; no part of the key
    key: bytes = field(init=False)  # SHA-256 of its canonical JSON: the name of the completion in the cache

    def __post_init__(self, texts: object) -> None:
        name = _json([self.endpoint, self.place, self.model, texts, self.sampling, self.sample])
        self.key = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()

    def body(self, sampling: Mapping[str, Any]) -> bytes:
        """The request as an OpenAI-compatible endpoint reads it, with the sampling parameters that it accepts."""
        messages = [
            _wording(message["content"]) if message["role"] == "system" else _encode(message)
            for message in self.messages()
        ]
        parameters = _json({"model": self.model, **sampling})
        return f'{{"messages":[{",".join(messages)}],{parameters[1:]}'.encode()


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, not yet read, with the model that the endpoint reported and the sampling parameters as sent."""

    text: str
    finish_reason: str | None = None  # why it ended: ``stop``, ``length``, …
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    sampling: Mapping[str, Any] | None = None
    thought: bool = False  # whether the judge thought before it wrote, as the endpoint tells

    @property
    def is_whole(self) -> bool:
        """Whether the reply ended where the judge meant it to, as far as the endpoint tells."""
        return self.finish_reason is None or self.finish_reason.lower() in WHOLE

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply ended at the largest number of tokens, and not where the judge meant it to."""
        return (self.finish_reason or "").lower() in CUT

    @property
    def is_cut_off_by_thinking(self) -> bool:
        """Whether thinking used up the tokens: the endpoint reports some, or the reply holds nothing else."""
        return self.is_cut_off and (self.thought or not without_reasoning(self.text).strip())


@dataclass(frozen=True, slots=True)
class Problem:
    """A request that brought no completion."""

    message: str  # why, in one line without secrets
    retry: bool = False  # whether the same request may work later
    overload: bool = False  # whether the endpoint asks for fewer requests at a time
    refused: bool = False  # whether the judge or its provider declined
    status: int | None = None  # HTTP status, or None where there was no reply
    code: str | None = None  # the endpoint's own name for the error
    param: str | None = None  # the parameter that it complains about

    @property
    def is_stray(self) -> bool:
        """Whether it is a redirect, which between good replies may be a proxy's."""
        return self.status is not None and self.status < 400 and not (self.retry or self.refused)

    @property
    def says_unknown_model(self) -> bool:
        """Whether the endpoint doesn't know the model, or there is no endpoint at the address."""
        return self.status == 404 or self.code in _MODEL_CODES


class Answer(NamedTuple):
    """How a request ended."""

    reply: Completion | Problem  # the completion, or why there is none
    attempts: int = 0  # how often the endpoint was asked; 0 for a completion from the cache or shared with another job
    # When a completion from the cache came, in seconds since 1970; None for one that was just asked for.
    kept_since: float | None = None


@lru_cache(maxsize=64)
def _wording(content: str) -> str:
    """Encodes a system message, which is the same for all items of a rubric, once."""
    return _encode({"role": "system", "content": content})


def _encode(message: Message) -> str:
    return f'{{"role":"{message["role"]}","content":{_json(message["content"])}}}'


_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
