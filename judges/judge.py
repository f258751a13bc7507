"""The interface that every judge has, and the two judges that ask no model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.text import best_token_f1, without_reasoning


class Ticket(Protocol):
    """A verdict that was asked for and may still be on its way."""

    def verdict(self) -> Verdict:
        """Waits for the verdict; never raises for a judge that failed."""
        ...  # pragma: no cover


class Judge(ABC):
    """Grades responses.

    ``submit`` returns at once and may be called from any thread; the verdicts are waited for together, later. A judge
    that fails gives verdicts that say so: it never raises from :meth:`Ticket.verdict`, and never invents a score.
    """

    @abstractmethod
    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns who grades by this rubric, without secrets."""

    @abstractmethod
    def submit(self, rubric: Rubric, item: JudgeItem) -> Ticket:
        """Asks for a verdict on one item. Identical requests may be answered by one reply."""

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> Verdict | None:
        """Makes sure, before any inference, that the judge can be used. A run of verdicts begins here.

        Where the responses are known, too, a judge with a cache need not be reached if it holds all of these verdicts.
        Returns the verdict on a reference answer, if it was asked for one; a judge that can't be used is a JudgeError.
        """
        del expected, responses_known
        return None

    def close(self) -> None:  # noqa: B027 - most judges hold nothing
        """Releases what the judge holds: connections, files, a loaded model."""


@dataclass(frozen=True, slots=True)
class ReadyTicket:
    """A ticket whose verdict is there already."""

    answer: Verdict

    def verdict(self) -> Verdict:
        """Returns the verdict."""
        return self.answer


@cache
def _identity(backend: str, model: str, rubric: str) -> JudgeIdentity:
    return JudgeIdentity(backend, model, rubric, prompt="none", prompt_sha256="", delimiters=False)


class LexicalJudge(Judge):
    """Grades by text overlap, offline: a stand-in for trials, never a substitute for a paper's judge.

    The rating is ``lowest + round((highest - lowest) * F1)``, F1 being the best token F1 of the response with any
    reference (:func:`culture_tasks.text.token_f1`); halves round up.
    """

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns the lexical judge's identity, which names no prompt."""
        return _identity("lexical", "token_f1", rubric.name)

    def submit(self, rubric: Rubric, item: JudgeItem) -> ReadyTicket:
        """Grades at once."""
        f1 = best_token_f1(without_reasoning(item.response), item.references)
        rating = rubric.lowest + int((rubric.highest - rubric.lowest) * f1 + 0.5)
        return ReadyTicket(Verdict("scored", float(rating), rationale=f"best token F1 with a reference: {f1:.4f}"))


_UNGRADED = ReadyTicket(Verdict("unjudged", error="no judge was asked (CULTURE_JUDGE=none)"))


class NoJudge(Judge):
    """Records responses without grading them, for ``culture-tasks rejudge``."""

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns an identity that names no model."""
        return _identity("none", "none", rubric.name)

    def submit(self, rubric: Rubric, item: JudgeItem) -> ReadyTicket:  # noqa: ARG002
        """Leaves the item ungraded."""
        return _UNGRADED
