"""The pairs of a build: the rule that makes them of ratings, and the choice of questions before it.

The rule is best against worst, one pair per question (CARE, section 4). Every draw depends on the seed
and on the text that is drawn, and on nothing else: adding a question changes no other question's pair, and the order of
the sources changes no draw.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple

from culture_tasks.errors import DataError
from culture_tasks.people.rated_responses import UNKNOWN
from culture_tasks.preferences.held_out import Overlap
from culture_tasks.preferences.ratings import RatedAnswer, RatedQuestion, Ratings

SPLITS = ("train", "dev")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How pairs are made of ratings; no languages, categories or culture mean all."""

    languages: Sequence[str] = ()
    categories: Sequence[str] = ()
    culture: Literal["native", "foreign", "mixed"] | None = None  # drawn in equal numbers (CARE, section 4.5)
    fraction: float = 1.0  # share of the training questions that is kept
    dev: float = 0.1  # share of the questions that is set apart for development
    hold_out: Sequence[str] = ()  # tasks whose questions are left out
    test_questions: bool = False  # whether questions of tests are kept, as the user asked


class PreferencePair(NamedTuple):
    """Two responses to a question, the better one first."""

    question: RatedQuestion
    chosen: RatedAnswer
    rejected: RatedAnswer


def random_number(seed: int, purpose: str, *texts: str) -> int:
    """Returns a pseudorandom number, which depends on the arguments alone."""
    text = "\x1f".join((str(seed), purpose, *texts))
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def pairs_of(questions: Iterable[RatedQuestion], seed: int) -> tuple[list[PreferencePair], Counter[str]]:
    """Makes a pair of the best and the worst response of each question; of several equally good or bad, one is drawn.

    Returns the pairs, in the order of the questions, and how many questions have no pair, by reason.
    """
    pairs: list[PreferencePair] = []
    without: Counter[str] = Counter()
    by_rating = attrgetter("rating")
    for question in questions:
        order = sorted(
            question.answers,
            key=lambda answer: random_number(seed, "response", question.fingerprint, answer.text.strip()),
        )
        chosen, rejected = max(order, key=by_rating), min(order, key=by_rating)
        if len(order) < 2:
            without["questions_with_one_response"] += 1
        elif chosen.rating == rejected.rating:
            without["ties"] += 1
        else:
            pairs.append(PreferencePair(question, chosen, rejected))
    return pairs, without


def questions_of_culture(questions: Sequence[RatedQuestion], rule: Rule, seed: int) -> list[RatedQuestion]:
    """Draws questions about native, foreign or both cultures (section 4.5), in equal numbers whichever it is.

    In each language there are as many as the rarer of the two has questions; ``mixed`` has half of each, the odd one
    being foreign. Other questions, such as general ones, are left out.
    """
    if rule.culture is None:
        return list(questions)
    fingerprints: set[str] = set()
    for of_language in _grouped(questions, "language").values():
        order = _in_drawn_order(of_language, "culture", seed)
        native = [question for question in order if question.culture == "native"]
        foreign = [question for question in order if question.culture == "foreign"]
        number = min(len(native), len(foreign))
        natives = {"native": number, "foreign": 0, "mixed": number // 2}[rule.culture]
        fingerprints |= {question.fingerprint for question in (*native[:natives], *foreign[: number - natives])}
    return [question for question in questions if question.fingerprint in fingerprints]


def split(questions: Sequence[RatedQuestion], rule: Rule, seed: int) -> dict[str, frozenset[str]]:
    """Returns the fingerprints of the questions of ``train`` and of ``dev``.

    Those for development are the same for every fraction, and a smaller fraction's questions are all in a larger one's.
    At least one question of each language is for training, and at least one of two or more for development, unless
    ``dev`` is 0.
    """
    order = _in_drawn_order(questions, "dev", seed)
    number = min(max(round(rule.dev * len(order)), 1), len(order) - 1) if rule.dev else 0
    train: set[str] = set()
    for of_language in _grouped(order[number:], "language").values():
        candidates = _in_drawn_order(of_language, "fraction", seed)
        train |= {question.fingerprint for question in candidates[: max(round(rule.fraction * len(candidates)), 1)]}
    return {"train": frozenset(train), "dev": frozenset(question.fingerprint for question in order[:number])}


def _grouped(questions: Iterable[RatedQuestion], field: str) -> dict[str, list[RatedQuestion]]:
    groups: dict[str, list[RatedQuestion]] = {}
    for question in questions:
        groups.setdefault(getattr(question, field) or "none", []).append(question)
    return groups


def _in_drawn_order(questions: Iterable[RatedQuestion], purpose: str, seed: int) -> list[RatedQuestion]:
    return sorted(questions, key=lambda question: random_number(seed, purpose, question.fingerprint))


def select_questions(questions: Iterable[RatedQuestion], rule: Rule, counts: Counter[str]) -> list[RatedQuestion]:
    """Returns the questions of a rule's languages and categories, and counts the others."""
    selection = list(questions)
    for name, values in (("language", rule.languages), ("category", rule.categories)):
        groups = _grouped(selection, name)
        for value in values:
            if value not in groups:
                there = ", ".join(sorted(groups))
                raise DataError(f"preferences: --{name} {value}: no question has it. Expected one of {there}.")
        if values:
            kept = {question.fingerprint for value in values for question in groups[value]}
            counts[f"questions_of_another_{name}"] = len(selection) - len(kept)
            selection = [question for question in selection if question.fingerprint in kept]
    return selection


def choose(
    ratings: Ratings, rule: Rule, seed: int, overlap: Overlap
) -> tuple[Mapping[str, Sequence[PreferencePair]], Mapping[str, int]]:
    """Makes the pairs of a build, by split, and counts what was used and what was left out."""
    counts: Counter[str] = Counter({"questions": len(ratings.questions)})
    counts["responses"] = sum(len(question.answers) for question in ratings.questions)
    counts["questions_of_unknown_language"] = sum(question.language == UNKNOWN for question in ratings.questions)
    counts.update(ratings.left_out)
    questions = select_questions(ratings.questions, rule, counts)
    held_out = {name for name, items in overlap.same.items() if any(task in rule.hold_out for task, _ in items)}
    kept = [question for question in questions if question.fingerprint not in held_out]
    counts["questions_held_out"] = len(questions) - len(kept)
    all_pairs, without = pairs_of(kept, seed)
    counts.update(without)
    paired = [pair.question for pair in all_pairs]
    of_one_culture = questions_of_culture(paired, rule, seed)
    counts["questions_not_drawn_for_culture"] = len(paired) - len(of_one_culture)
    if not of_one_culture:
        found = ", ".join(f"{count} {in_words(name)}" for name, count in counts.items() if count)
        raise DataError(
            f"preferences: no pair is left of {found}. Expected a question with two responses that are rated "
            "differently."
        )
    parts = split(of_one_culture, rule, seed)
    counts["questions_beyond_fraction"] = len(of_one_culture) - len(parts["train"]) - len(parts["dev"])
    pairs = {name: [pair for pair in all_pairs if pair.question.fingerprint in parts[name]] for name in SPLITS}
    for name in SPLITS:
        counts[f"{name}_questions"], counts[f"{name}_pairs"] = len(parts[name]), len(pairs[name])
    return pairs, dict(counts)


def in_words(count: str) -> str:
    """Returns the name of a count as the commands print it."""
    return count.replace("_", " ")
