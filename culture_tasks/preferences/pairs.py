"""The pairs of a build: the rule that makes them of ratings, and the selection of questions before it.

The rule is best against worst, one pair per question (CARE, section 4), or a variant. Every draw depends on the seed
and on the text that is drawn, and on nothing else: adding a question changes no other question's pair, and the order of
the sources changes no draw.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from culture_tasks.benchmarks.overlaps import Question
from culture_tasks.errors import DataError, nearest
from culture_tasks.people.rated_responses import UNKNOWN
from culture_tasks.preferences.held_out import Overlap, overlap
from culture_tasks.preferences.rated_questions import RatedAnswer, RatedQuestion, RatedQuestions
from culture_tasks.results.training_manifest import Rule

SPLITS = ("train", "dev")


class PreferencePair(NamedTuple):
    """Two responses to a question, the better one first."""

    question: RatedQuestion
    chosen: RatedAnswer
    rejected: RatedAnswer

    @property
    def gap(self) -> float:
        """By how much the ratings differ."""
        return self.chosen.rating - self.rejected.rating


def random_number(seed: int, purpose: str, *texts: str) -> int:
    """Returns a pseudorandom number, which depends on the arguments alone."""
    text = "\x1f".join((str(seed), purpose, *texts))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def pairs_of(questions: Iterable[RatedQuestion], rule: Rule, seed: int) -> tuple[list[PreferencePair], Counter[str]]:
    """Makes pairs by a rule; of several equally good or bad responses, one is drawn.

    Returns:
        The pairs, those of a question together, in the order of the questions; and how many questions have no pair, by
        reason.
    """
    pairs: list[PreferencePair] = []
    without: Counter[str] = Counter()
    for question in questions:
        ratings = {answer.rating for answer in question.answers}
        if len(question.answers) < 2:
            without["questions_with_one_response"] += 1
        elif len(ratings) == 1:
            without["ties"] += 1
        elif question_pairs := [pair for pair in _pairs(question, rule, seed) if pair.gap >= rule.min_gap]:
            pairs += question_pairs
        else:
            without["questions_below_min_gap"] += 1
    return pairs, without


def _pairs(question: RatedQuestion, rule: Rule, seed: int) -> Iterator[PreferencePair]:
    """Yields every two responses with different ratings; or the best against the worst, drawn where several are."""
    if rule.pairs == "all":
        for first, second in itertools.combinations(question.answers, 2):
            if first.rating != second.rating:
                yield PreferencePair(question, *sorted((first, second), key=lambda answer: -answer.rating))
        return
    order = sorted(
        question.answers, key=lambda answer: random_number(seed, "response", question.fingerprint, answer.text.strip())
    )
    by_rating = attrgetter("rating")
    yield PreferencePair(question, max(order, key=by_rating), min(order, key=by_rating))


def questions_of_culture(questions: Sequence[RatedQuestion], rule: Rule, seed: int) -> list[RatedQuestion]:
    """Draws questions about native, foreign or both cultures (section 4.5), in equal numbers whichever it is.

    In each language there are as many as the rarer of the two has questions; ``mixed`` has half of each, the odd one
    being foreign. Other questions, such as general ones, are left out.
    """
    if rule.culture is None:
        return list(questions)
    fingerprints: set[str] = set()
    for language in {question.language for question in questions}:
        order = _in_drawn_order((question for question in questions if question.language == language), "culture", seed)
        native = [question for question in order if question.culture == "native"]
        foreign = [question for question in order if question.culture == "foreign"]
        number = min(len(native), len(foreign))
        natives = {"native": number, "foreign": 0, "mixed": number // 2}[rule.culture]
        fingerprints |= {question.fingerprint for question in (*native[:natives], *foreign[: number - natives])}
    return [question for question in questions if question.fingerprint in fingerprints]


def split(questions: Sequence[RatedQuestion], rule: Rule, seed: int) -> dict[str, frozenset[str]]:
    """Sets questions apart for development, and keeps a fraction of the others in each language.

    Those for development are the same for every fraction, and a smaller fraction's questions are all in a larger one's.
    Of the others, at least one question of each language is kept. Where ``dev`` isn't 0, at least one of two or more
    questions is for development.

    Returns:
        Fingerprints of the questions of ``train`` and of ``dev``.
    """
    order = _in_drawn_order(questions, "dev", seed)
    number = min(max(round(rule.dev * len(order)), 1), len(order) - 1) if rule.dev else 0
    train: set[str] = set()
    for language in {question.language for question in order[number:]}:
        of_language = (question for question in order[number:] if question.language == language)
        candidates = _in_drawn_order(of_language, "fraction", seed)
        train |= {question.fingerprint for question in candidates[: max(round(rule.fraction * len(candidates)), 1)]}
    return {"train": frozenset(train), "dev": frozenset(question.fingerprint for question in order[:number])}


def _in_drawn_order(questions: Iterable[RatedQuestion], purpose: str, seed: int) -> list[RatedQuestion]:
    return sorted(questions, key=lambda question: random_number(seed, purpose, question.fingerprint))


class PairSelection(NamedTuple):
    """The pairs of a build by split, the questions that they were made of, and counts.

    ``overlap`` is of all questions with tests, before any were held out.
    """

    rated: RatedQuestions
    pairs: Mapping[str, Sequence[PreferencePair]]
    counts: Mapping[str, int]
    overlap: Overlap


def choose(rated: RatedQuestions, rule: Rule, seed: int, tests: Sequence[Question]) -> PairSelection:
    """Makes the pairs of a build, and looks for the questions of tests."""
    counts: Counter[str] = Counter({"questions": len(rated.questions)})
    counts["responses"] = sum(len(question.answers) for question in rated.questions)
    counts["questions_of_unknown_language"] = sum(question.language == UNKNOWN for question in rated.questions)
    counts.update(rated.left_out)
    questions = select_questions(rated.questions, rule, counts)
    shared = overlap(questions, tests)
    held_out = {name for name, items in shared.same.items() if any(task in rule.hold_out for task, _ in items)}
    counts["questions_held_out"] = len(held_out)
    questions = [question for question in questions if question.fingerprint not in held_out]
    all_pairs, without = pairs_of(questions, rule, seed)
    counts.update(without)
    paired = list({pair.question.fingerprint: pair.question for pair in all_pairs}.values())
    of_one_culture = questions_of_culture(paired, rule, seed)
    counts["questions_not_drawn_for_culture"] = len(paired) - len(of_one_culture)
    if not of_one_culture:
        raise DataError(_why_no_pair(counts, rule))
    parts = split(of_one_culture, rule, seed)
    counts["questions_beyond_fraction"] = len(of_one_culture) - len(parts["train"]) - len(parts["dev"])
    pairs = {name: [pair for pair in all_pairs if pair.question.fingerprint in parts[name]] for name in SPLITS}
    for name in SPLITS:
        counts[f"{name}_questions"] = len(parts[name])
        counts[f"{name}_pairs"] = len(pairs[name])
    return PairSelection(rated, pairs, dict(counts), shared)


def select_questions(questions: Iterable[RatedQuestion], rule: Rule, counts: Counter[str]) -> list[RatedQuestion]:
    """Returns the questions of a rule's languages and categories, and counts the others."""
    selection = list(questions)
    for name, values in (("language", rule.languages), ("category", rule.categories)):
        sizes = Counter(getattr(question, name) for question in selection)
        for value in values:
            if value not in sizes:
                there = ", ".join(f"{label or 'none'} ({count})" for label, count in sizes.most_common())
                raise DataError(
                    f"preferences: --{name} {value}: no question has it.{nearest(value, sizes)} There are: {there}."
                )
        if values:
            before = len(selection)
            selection = [question for question in selection if getattr(question, name) in values]
            counts[f"questions_of_another_{name}"] = before - len(selection)
    return selection


def _why_no_pair(counts: Counter[str], rule: Rule) -> str:
    reasons = {
        "questions_held_out": "of tests",
        "questions_with_one_response": "with one response (equal texts count as one)",
        "ties": "with responses that are all rated alike",
        "questions_below_min_gap": f"without two ratings that are {rule.min_gap:g} apart (--min-gap)",
        "questions_not_drawn_for_culture": (
            "that --culture leaves out, since no language has both native and foreign ones"
        ),
    }
    why = ", ".join(f"{counts[name]} {reason}" for name, reason in reasons.items() if counts[name])
    return (
        f"preferences: no pair is left of {counts['questions']} questions: {why}. Expected at least one question "
        "with two responses that are rated differently."
    )
