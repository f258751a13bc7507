"""Sampling parameters that an endpoint's model does not take, learnt from its own complaint.

Reasoning models want ``max_completion_tokens`` instead of ``max_tokens``, and no temperature; other servers lack
other parameters. Names of models say nothing reliable about that, so the rule is the error alone: a 400 or 422 that
names a parameter which was sent changes that parameter, for this model, as long as the process lives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from culture_tasks.judges.replies import Problem

_SUCCESSORS = {"max_tokens": "max_completion_tokens"}
_COMPLAINT = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|not (?:allowed|permitted)|extra inputs|deprecated",
    re.IGNORECASE,
)


class Adaptations:
    """What one model takes in place of the parameters that were meant."""

    def __init__(self) -> None:
        self._instead: dict[str, str | None] = {}

    def apply(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the parameters to send for those that are meant."""
        sent: dict[str, Any] = {}
        for meant, value in sampling.items():
            name: str | None = meant
            while name in self._instead:
                name = self._instead[name]
            if name is not None:
                sent[name] = value
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
        self._instead.setdefault(name, _SUCCESSORS.get(name))
        return True

    def adopt(self, meant: Mapping[str, Any], sent: Mapping[str, Any]) -> None:
        """Learns from parameters that were sent in an earlier run, as the cache holds them."""
        for name in meant.keys() - sent.keys():
            successor = _SUCCESSORS.get(name)
            self._instead.setdefault(name, successor)
            if successor is not None and successor not in sent:
                self._instead.setdefault(successor, None)


def _complained_about(problem: Problem, sent: Mapping[str, Any]) -> str | None:
    if problem.status not in (400, 422) or problem.refused:
        return None
    if problem.param in sent:
        return problem.param
    if not _COMPLAINT.search(problem.message):
        return None
    named = [name for name in sent if re.search(rf"\b{name}\b", problem.message)]
    return named[0] if named else None
