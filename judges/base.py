"""The interface that every judge has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Protocol

from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeIdentity, JudgeItem, Verdict


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

    def check(self, expected: Iterable[tuple[Rubric, JudgeItem]], *, responses_known: bool = False) -> None:
        """Makes sure, before any inference, that the judge can be used. A run of verdicts begins here.

        Args:
            expected: What will be graded.
            responses_known: Whether that includes the responses, which aren't there before inference: a judge with a
                cache need not be reached if it holds all of these verdicts.

        Raises:
            JudgeError: If the judge can't be used.
        """
        del expected, responses_known

    def close(self) -> None:  # noqa: B027 - most judges hold nothing
        """Releases what the judge holds: connections, files, a loaded model."""
