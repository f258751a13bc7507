"""The rule that makes pairs of ratings: best against worst, one pair a question (CARE, section 4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from culture_tasks.preferences.rated_answers import Answer, Question


class Pair(NamedTuple):
    """Two responses to a question, the better one first."""

    question: Question
    chosen: Answer
    rejected: Answer

    @property
    def gap(self) -> float:
        """By how much the ratings differ."""
        return self.chosen.rating - self.rejected.rating


def drawn(seed: int, purpose: str, *texts: str) -> int:
    """Returns a number that looks random and depends on these alone, so that no other row changes a draw."""
    text = "\x1f".join((str(seed), purpose, *texts))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def best_and_worst(question: Question, seed: int) -> Pair | None:
    """Returns the highest-rated against the lowest-rated response, equal ones drawn; None where all are rated alike."""
    ratings = [answer.rating for answer in question.answers]
    if min(ratings) == max(ratings):
        return None
    chosen, rejected = (
        min(
            (answer for answer in question.answers if answer.rating == rating),
            key=lambda answer: drawn(seed, "answer", question.fingerprint, answer.text),
        )
        for rating in (max(ratings), min(ratings))
    )
    return Pair(question, chosen, rejected)


def set_apart(questions: Sequence[Question], share: float, seed: int) -> frozenset[str]:
    """Returns the fingerprints of a share of the questions, drawn; those of a smaller share are among them."""
    order = sorted(questions, key=lambda question: drawn(seed, "dev", question.fingerprint))
    return frozenset(question.fingerprint for question in order[: round(share * len(order))])
