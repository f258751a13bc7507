"""The outcome of one request to a judge: a completion or a problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.text import without_reasoning

# Why replies end, by the names that endpoints give, in small letters. One that ends for another reason is asked again.
WHOLE = frozenset(("stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete", "completed"))
CUT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"))
_FILTERS = "content_filter|content_filtered|safety|recitation|sensitive|refusal|blocklist|prohibited_content|spii"
REFUSED = frozenset((*_FILTERS.split("|"), "image_safety", "language", "guardrail_intervened"))


class Completion(NamedTuple):
    """A reply, not yet read, with the model that the endpoint reported and the sampling parameters as sent."""

    text: str
    finish_reason: str | None = None  # why it ended: ``stop``, ``length``, …
    model: str | None = None
    usage: Usage = Usage()
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
    def is_redirect(self) -> bool:
        """Whether the endpoint sends elsewhere; between good replies, that may be a proxy's doing."""
        return self.status is not None and 300 <= self.status < 400


class Answer(NamedTuple):
    """How a request ended."""

    reply: Completion | Problem  # the completion, or why there is none
    attempts: int = 0  # how often the endpoint was asked; 0 for a completion from the cache or shared with another one
    # When a completion from the cache came, in seconds since 1970; None for one that was just asked for.
    kept_since: float | None = None
