"""One chat request and its raw reply: what is sent, how it is named in the cache, and what comes back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from culture_tasks.judges.rubrics import Message
from culture_tasks.judges.verdicts import Usage


class ChatRequest:
    """All that changes a judge's answer.

    Attributes:
        endpoint: Who is asked, without secrets: a base URL, or ``lm_eval:<backend>``.
        model: Model name, or model arguments.
        messages: Chat messages.
        sampling: Sampling parameters as meant; an endpoint that refuses one is sent others (see
            :mod:`culture_tasks.judges.adaptations`), always the same ones.
        place: Fingerprint of what else tells the endpoint's model from another of that name.
        sample: Counts fresh samples for one verdict: 0, then 1 for the first time of asking again.
        key: SHA-256 of canonical JSON of all this: the name of the completion in the cache.
    """

    __slots__ = ("_body", "endpoint", "key", "messages", "model", "place", "sample", "sampling")

    def __init__(
        self,
        endpoint: str,
        model: str,
        messages: Sequence[Message],
        sampling: Mapping[str, Any],
        *,
        sample: int = 0,
        place: str = "",
    ) -> None:
        self.endpoint = endpoint
        self.model = model
        self.messages = messages
        self.sampling = sampling
        self.sample = sample
        self.place = place
        self._body = _json({"model": model, "messages": messages, **sampling})
        self.key = _digest(f"[{_json([endpoint, place])},{self._body},{sample}]")

    def body(self, sampling: Mapping[str, Any]) -> bytes:
        """The request as an OpenAI-compatible endpoint reads it, with the sampling parameters that it accepts."""
        if sampling == self.sampling:
            return self._body.encode("utf-8")
        return _json({"model": self.model, "messages": self.messages, **sampling}).encode("utf-8")


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, not yet read.

    Attributes:
        text: What the judge wrote.
        finish_reason: Why it stopped: ``stop``, ``length``, …
        model: Model name that the endpoint reported.
        usage: Tokens used.
        sampling: Sampling parameters as sent.
    """

    text: str
    finish_reason: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    sampling: Mapping[str, Any] | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the reply ended at the largest number of tokens, and not where the judge meant it to."""
        return self.finish_reason == "length"


@dataclass(frozen=True, slots=True)
class Failure:
    """No reply that could be read.

    Attributes:
        outcome: Whether the judge declined, or did not answer.
        error: Why, in one line without secrets.
    """

    outcome: Literal["refused", "failed"]
    error: str


_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
