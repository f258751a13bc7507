"""The rule that makes pairs of ratings: best against worst, one pair a question (CARE, section 4), and what varies it.

Every draw depends on the seed and on the text that is drawn, and on nothing else: adding a question changes no other
question's pair, and the order of the sources changes no draw.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from culture_tasks.errors import DataError
from culture_tasks.preferences.manifest import Rule
from culture_tasks.preferences.rated_questions import Answer, Question

_MOST_ANSWERS = 200
"""Most responses to a question of which every two may make a pair."""


class Pair(NamedTuple):
    """Two responses to a question, the better one first."""

    question: Question
    chosen: Answer
    rejected: Answer

    @property
    def gap(self) -> float:
        """By how much the ratings differ."""
        return self.chosen.rating - self.rejected.rating


class Paired(NamedTuple):
    """Pairs, and why other questions have none.

    Attributes:
        pairs: The pairs, those of a question together, in the order of the questions.
        without: How many questions have no pair, by reason.
    """

    pairs: list[Pair]
    without: Counter[str]


def drawn(seed: int, purpose: str, *texts: str) -> int:
    """Returns a number that is as good as random and depends on these alone."""
    text = "\x1f".join((str(seed), purpose, *texts))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def pairs_of(questions: Iterable[Question], rule: Rule, seed: int) -> Paired:
    """Makes pairs by a rule.

    Args:
        questions: Questions with their rated responses.
        rule: Whether all pairs are made or one a question, and the smallest gap.
        seed: Seed by which one of several equally good or bad responses is drawn.

    Raises:
        DataError: If a question has too many responses for all pairs.
    """
    made = _every_pair if rule.pairs == "all" else _best_and_worst
    pairs: list[Pair] = []
    without: Counter[str] = Counter()
    for question in questions:
        ratings = [answer.rating for answer in question.answers]
        if len(ratings) < 2:
            without["questions_with_one_response"] += 1
        elif min(ratings) == max(ratings):
            without["ties"] += 1
        elif found := [pair for pair in made(question, seed) if pair.gap >= rule.min_gap]:
            pairs += found
        else:
            without["questions_below_min_gap"] += 1
    return Paired(pairs, without)


def _best_and_worst(question: Question, seed: int) -> Iterator[Pair]:
    """Yields the highest-rated against the lowest-rated response; of equal ones, the one that is drawn."""
    ratings = [answer.rating for answer in question.answers]
    chosen, rejected = (
        min(
            (answer for answer in question.answers if answer.rating == rating),
            key=lambda answer: drawn(seed, "response", question.fingerprint, answer.text.strip()),
        )
        for rating in (max(ratings), min(ratings))
    )
    yield Pair(question, chosen, rejected)


def _every_pair(question: Question, seed: int) -> Iterator[Pair]:  # noqa: ARG001 - nothing is drawn
    """Yields every two responses with different ratings."""
    if len(question.answers) > _MOST_ANSWERS:
        raise DataError(
            f"preferences: {question.text!r:.80} has {len(question.answers)} responses. --pairs all is for at most "
            f"{_MOST_ANSWERS} to a question. Leave it out, for one pair a question."
        )
    for one, other in itertools.combinations(question.answers, 2):
        if one.rating != other.rating:
            yield Pair(question, *sorted((one, other), key=lambda answer: -answer.rating))


def of_culture(questions: Sequence[Question], rule: Rule, seed: int) -> list[Question]:
    """Draws questions about native, foreign or both cultures (section 4.5), in equal numbers whichever it is.

    In each language there are as many as the rarer of the two has questions; ``mixed`` has half of each, the odd one
    being foreign. Other questions, such as general ones, are left out.
    """
    if rule.culture is None:
        return list(questions)
    kept: set[str] = set()
    for language in {question.language for question in questions}:
        native, foreign = (
            _in_drawn_order(
                (each for each in questions if each.language == language and each.culture == kind), "culture", seed
            )
            for kind in ("native", "foreign")
        )
        number = min(len(native), len(foreign))
        natives = {"native": number, "foreign": 0, "mixed": number // 2}[rule.culture]
        kept |= {each.fingerprint for each in (*native[:natives], *foreign[: number - natives])}
    return [question for question in questions if question.fingerprint in kept]


class Split(NamedTuple):
    """Fingerprints of the questions to train on, and for development."""

    train: frozenset[str]
    dev: frozenset[str]


def split(questions: Sequence[Question], rule: Rule, seed: int) -> Split:
    """Sets questions apart for development, and keeps a fraction of the others in each language.

    Those for development are the same for every fraction, and a smaller fraction's questions are all in a larger one's.
    Of the others, at least one question of each language is kept. Where ``dev`` isn't 0, at least one of two or more
    questions is for development.
    """
    order = _in_drawn_order(questions, "dev", seed)
    number = min(max(round(rule.dev * len(order)), 1), len(order) - 1) if rule.dev else 0
    train: set[str] = set()
    rest = order[number:]
    for language in {question.language for question in rest}:
        some = _in_drawn_order((each for each in rest if each.language == language), "fraction", seed)
        train |= {each.fingerprint for each in some[: max(round(rule.fraction * len(some)), 1)]}
    return Split(frozenset(train), frozenset(each.fingerprint for each in order[:number]))


def _in_drawn_order(questions: Iterable[Question], purpose: str, seed: int) -> list[Question]:
    return sorted(questions, key=lambda question: drawn(seed, purpose, question.fingerprint))
