"""The item that a judge grades, who the judge is, the scale that it is offered, and its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

Outcome = Literal["scored", "unparsable", "refused", "failed", "unjudged"]
"""How a request for a verdict ended.

``scored``: read and valid. ``unparsable``: the judge replied, not in its format. ``refused``: the judge or its
provider declined. ``failed``: no usable reply. ``unjudged``: no judge was asked (``CULTURE_JUDGE=none``).
Only scored verdicts enter a mean.
"""


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """One response to grade."""

    question: str  # what the evaluated model was asked
    references: tuple[str, ...]  # answers that count as right, at least one
    response: str  # what the evaluated model said
    language: str = ""  # name of the language, for prompts that tell the judge; else empty


@dataclass(frozen=True)
class JudgeIdentity:
    """Who graded, with what prompt and settings: two scores compare only where these agree.

    The address is no part of it: the same model on another port is the same judge (see :attr:`Verdict.endpoint`).
    """

    backend: str  # ``openai``, ``lm_eval``, ``lexical`` or ``none``
    model: str  # model name as asked for, or model arguments
    rubric: str
    prompt: str  # name and version of its prompt file
    prompt_sha256: str  # hash of everything in the prompt that isn't the item
    delimiters: bool  # whether texts to grade were wrapped in delimiters
    # Sampling parameters as the endpoint takes them, with the limit of tokens that was meant: a limit that had to grow
    # makes no other judge (see :attr:`Verdict.max_tokens`).
    sampling: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def json(self) -> Mapping[str, Any]:
        """The identity as plain JSON data, made once: ten thousand records hold it."""
        return {**vars(self), "sampling": dict(self.sampling)}


class OfferedScale(NamedTuple):
    """What a prompt offers."""

    lowest: int  # lowest rating
    highest: int  # highest rating
    label: Literal["rating", "score"]  # the word that the prompt asks for before the rating


class Reading(NamedTuple):
    """A reply that was understood."""

    rating: int  # on the scale that the prompt offers
    rationale: str  # the reply without the verdict


# Names of the numbers of tokens that cost less.
DISCOUNTS = frozenset(("cached_tokens", "batch_prompt_tokens", "batch_completion_tokens"))


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or several requests; the numbers with a discount are parts of the first two."""

    prompt_tokens: int = 0  # tokens that the judge read
    completion_tokens: int = 0  # tokens that it wrote
    cached_tokens: int = 0  # tokens that it read from the endpoint's prompt cache
    batch_prompt_tokens: int = 0  # tokens that it read in batches
    batch_completion_tokens: int = 0  # tokens that it wrote in batches

    def __add__(self, other: Usage) -> Usage:
        """Adds tokens up."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.batch_prompt_tokens + other.batch_prompt_tokens,
            self.batch_completion_tokens + other.batch_completion_tokens,
        )

    @property
    def in_a_batch(self) -> Usage:
        """The same tokens of requests in a batch, whose discount is the only one that counts."""
        return Usage(self.prompt_tokens, self.completion_tokens, 0, self.prompt_tokens, self.completion_tokens)

    @property
    def discounts(self) -> dict[str, int]:
        """The numbers of tokens with a discount by name, without zeros."""
        return {name: number for name in sorted(DISCOUNTS) if (number := getattr(self, name))}


def discounts_of(usage: Usage) -> str:
    """Returns in words how many tokens had a discount, in parentheses; empty where there are none."""
    in_batches = usage.batch_prompt_tokens + usage.batch_completion_tokens
    parts = [f"{usage.cached_tokens:,} from the endpoint's prompt cache"] if usage.cached_tokens else []
    parts += [f"{in_batches:,} in batches"] if in_batches else []
    return f" ({', '.join(parts)})" if parts else ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One graded response."""

    outcome: Outcome
    # The rating on the rubric's own scale (see :class:`~culture_tasks.judges.rubric.rubrics.Rubric`); None unless
    # scored.
    score: float | None = None
    rationale: str | None = None  # the judge's reasons, as text; None without a reply
    completion: str | None = None  # the raw reply; None without one
    error: str | None = None  # why there is no score, in one line without secrets; None when scored
    usage: Usage = Usage()
    attempts: int = 0  # how often the judge was asked for this verdict in this run; 0 from the cache
    asked_again: bool = False  # whether the reply came after a reminder of the format
    reply_model: str | None = None  # model name that the endpoint reported, where it differs from what was asked for
    # Where the judge was asked: base URL without user, password and query, or ``lm_eval:<backend>``; None for a judge
    # without one.
    endpoint: str | None = None
    max_tokens: int | None = None  # most tokens as sent, where thinking needed more than were meant; else None

    def __post_init__(self) -> None:
        if (self.outcome == "scored") != (self.score is not None):
            raise ValueError(f"Verdict: outcome {self.outcome!r} does not go with score {self.score!r}")
