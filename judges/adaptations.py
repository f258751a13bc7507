"""Sampling parameters that an endpoint's model does not take, or needs more of, learnt from its own replies.

Reasoning models want ``max_completion_tokens`` instead of ``max_tokens``, and no temperature; other servers lack
other parameters, or take a simpler value. Names of models say nothing reliable about that, so the rule is the error
alone: a 400 or 422 that names a parameter which was sent changes that parameter, for this model, as long as the process
lives. In the same way the limit of tokens grows, for all requests that follow, where thinking used it up.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from culture_tasks.judges.replies import Problem

logger = logging.getLogger(__name__)

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the limit of tokens."""

MOST_TOKENS = 32_768
"""How far a limit grows by itself."""

_GROWTH = 4
_SUCCESSORS = {"max_tokens": "max_completion_tokens"}
_SIMPLER_VALUES: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
# Endpoints name a form of the reply by the parameter or by its value, and refuse it in many words.
_ALIASES = {"response_format": r"\b(?:response_format|json_schema|json_object|schema)\b"}
_COMPLAINT = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|not (?:allowed|permitted)|extra inputs|deprecated",
    re.IGNORECASE,
)


def limit_of(sampling: Mapping[str, Any]) -> int | None:
    """Returns the limit of tokens among sampling parameters, or None."""
    return next((value for name in LIMITS if isinstance(value := sampling.get(name), int)), None)


class Adaptations:
    """What one model takes in place of the parameters that were meant."""

    def __init__(self) -> None:
        self._instead: dict[str, str | None] = {}
        self._simpler: set[str] = set()
        self._limit = 0
        self._largest = MOST_TOKENS

    def apply(self, sampling: Mapping[str, Any], most_tokens: int = 0) -> dict[str, Any]:
        """Returns the parameters to send for those that are meant.

        Args:
            sampling: The parameters as meant.
            most_tokens: How far their limit of tokens may grow; by default not at all, as in a judge's identity.
        """
        sent: dict[str, Any] = {}
        for meant, value in sampling.items():
            name: str | None = meant
            while name in self._instead:
                name = self._instead[name]
            if name is None:
                continue
            if name in LIMITS and isinstance(value, int):
                value = max(value, min(self._limit, most_tokens))
            sent[name] = _SIMPLER_VALUES[name] if name in self._simpler else value
        return sent

    def learn(self, problem: Problem, sent: Mapping[str, Any]) -> bool:
        """Learns from an endpoint's complaint.

        Args:
            problem: What came back.
            sent: Sampling parameters as sent.

        Returns:
            Whether the request is worth sending again with other parameters.
        """
        name = _complained_about(problem, sent)
        if name is None:
            return False
        if name in _SIMPLER_VALUES and sent[name] != _SIMPLER_VALUES[name]:
            self._simpler.add(name)
        elif name not in self._instead:
            self._instead[name] = _SUCCESSORS.get(name)
            if name not in _SUCCESSORS:
                logger.warning("judge: the endpoint takes no %s, so it is left out: %s", name, problem.message)
        return True

    def grow(self, sent: Mapping[str, Any], most_tokens: int) -> bool:
        """Raises the limit of tokens that thinking used up, for this request and all that follow.

        Args:
            sent: Sampling parameters as sent.
            most_tokens: How far the limit may grow.

        Returns:
            Whether the request is worth sending again with a larger limit.
        """
        limit = limit_of(sent)
        if limit is None or limit >= min(most_tokens, self._largest):
            return False
        if self._limit <= limit:
            self._limit = min(_GROWTH * limit, self._largest)
        return True

    def shrink(self, accepted: int) -> None:
        """Learns that the endpoint refuses a limit which had grown, and took this one before."""
        self._largest = max(accepted, 1)
        self._limit = min(self._limit, self._largest)

    def adopt(self, meant: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
        """Learns from parameters that were sent in an earlier run, as the cache holds them."""
        for name in meant.keys() - sent.keys():
            successor = _SUCCESSORS.get(name)
            self._instead.setdefault(name, successor)
            if successor is not None and successor not in sent:
                self._instead.setdefault(successor, None)
        self._simpler |= {name for name, value in _SIMPLER_VALUES.items() if sent.get(name) == value != meant.get(name)}
        before, after = limit_of(meant), limit_of(sent)
        if before is not None and after is not None and after > before:
            self._limit = max(self._limit, min(after, self._largest))


def _complained_about(problem: Problem, sent: Mapping[str, Any]) -> str | None:
    if problem.status not in (400, 422) or problem.refused:
        return None
    if problem.param in sent:
        return problem.param
    for name, alias in _ALIASES.items():
        if name in sent and re.search(alias, f"{problem.param} {problem.message}"):
            return name
    if not _COMPLAINT.search(problem.message):
        return None
    named = [name for name in sent if re.search(rf"\b{re.escape(name)}\b", problem.message)]
    return named[0] if named else None
