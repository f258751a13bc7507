"""Judges that ask nobody: text overlap with the references, and none at all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from culture_tasks.judges.base import Judge
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.text import best_token_f1, without_reasoning


@dataclass(frozen=True, slots=True)
class Ready:
    """A ticket whose verdict is there already."""

    answer: Verdict

    def verdict(self) -> Verdict:
        """Returns the verdict."""
        return self.answer


@cache
def _identity(backend: str, model: str, rubric: str) -> JudgeIdentity:
    return JudgeIdentity(backend=backend, model=model, rubric=rubric, prompt="none", prompt_sha256="", delimiters=False)


class LexicalJudge(Judge):
    """Grades by text overlap, offline: a stand-in for trials, never a substitute for a paper's judge.

    The rating is ``lowest + round((highest - lowest) * F1)``, F1 being the best token F1 of the response with any
    reference (:func:`culture_tasks.text.token_f1`); halves round up.
    """

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns the lexical judge's identity, which names no prompt."""
        return _identity("lexical", "token_f1", rubric.name)

    def submit(self, rubric: Rubric, item: JudgeItem) -> Ready:
        """Grades at once."""
        f1 = best_token_f1(without_reasoning(item.response), item.references)
        rating = rubric.lowest + int((rubric.highest - rubric.lowest) * f1 + 0.5)
        return Ready(Verdict("scored", float(rating), rationale=f"best token F1 with a reference: {f1:.4f}"))


_UNGRADED = Ready(Verdict("unjudged", error="no judge was asked (CULTURE_JUDGE=none)"))


class NoJudge(Judge):
    """Records responses without grading them, for ``culture-tasks rejudge``."""

    def identity(self, rubric: Rubric) -> JudgeIdentity:
        """Returns an identity that names nobody."""
        return _identity("none", "none", rubric.name)

    def submit(self, rubric: Rubric, item: JudgeItem) -> Ready:  # noqa: ARG002
        """Leaves the item ungraded."""
        return _UNGRADED
