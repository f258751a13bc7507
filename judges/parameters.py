"""The sampling parameters that a model takes, as its replies tell.

A 400 or 422 that names a parameter which was sent changes or drops that parameter, for this model, as long as the
process lives. In the same way the limit of tokens grows, for all requests that follow, where thinking used it up.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from culture_tasks.judges.completions import Problem
from culture_tasks.text import may_be_cut

logger = logging.getLogger(__name__)

LIMITS = ("max_tokens", "max_completion_tokens")
MOST_TOKENS = 32_768  # how far a limit grows by itself
_GROWTH = 4
_SUCCESSORS = {"max_tokens": "max_completion_tokens"}
_SIMPLER_VALUES: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
# Endpoints name a form of the reply by the parameter or by its value, and refuse it in many words.
_FORM = re.compile(r"\b(?:response_format|json_schema|json_object|schema)\b")
# What endpoints say of a parameter that they don't take.
_COMPLAINT = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|not (?:allowed|permitted)|extra inputs|deprecated",
    re.IGNORECASE,
)


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

    def warn_of_a_cut(self, characters: int, tokens: int) -> None:
        """Says, once, that an endpoint reports too few tokens to have read all of a prompt."""
        if may_be_cut(characters, tokens) and not self._has_warned:
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


def _refused_parameter(problem: Problem, sampling: Mapping[str, Any]) -> str | None:
    if problem.status not in (400, 422) or problem.refused:
        return None
    if "response_format" in sampling and _FORM.search(f"{problem.param} {problem.message}"):
        return "response_format"
    if not _COMPLAINT.search(problem.message):  # such as "max_tokens=9999 cannot be greater than max_model_len=4096"
        return None
    if problem.param in sampling:
        return problem.param
    names = [name for name in sampling if re.search(rf"\b{re.escape(name)}\b", problem.message)]
    return names[0] if names else None
