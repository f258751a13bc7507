"""How WorldCuisines' answers are scored: the option that a reply chooses, or an answer that a reply contains.

All scores are shares here, as the harnesses have them, and percent in the report, as in the paper. The paper's mean is
one over languages; every language has the same questions, so it is the mean over documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.interface import Answered, Doc, MeanScore, Scale
from culture_tasks.benchmarks.worldcuisines.documents import options_of
from culture_tasks.benchmarks.worldcuisines.vocabulary import LANGUAGES
from culture_tasks.text import answer_in

PERCENT = Scale("percent", 0.0, 100.0, digits=2, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=2, times=100.0)

CHOICE = "acc"
"""Share of the questions whose right option the reply chooses, by :func:`read_choice`."""

AUTHORS = "acc_authors"
"""The same by the authors' reader, :func:`authors_choice`: the published values."""

UNPARSED = "unparsed"

CONTAINS = "contains"
"""Share of the questions whose reply contains the answer in any of the languages: the published values (multi)."""

DUAL = "contains_dual"
"""The same with the answer in the question's language or in English."""

SINGLE = "contains_single"
"""The same with the answer in the question's language alone."""


@cache
def choice_metrics() -> tuple[MeanScore, ...]:
    """Returns the metrics of questions with options."""
    return (
        MeanScore(name=CHOICE, title="accuracy", scale=PERCENT, groups={"language": tuple(LANGUAGES)}),
        MeanScore(name=AUTHORS, title="accuracy by the authors' reader", scale=PERCENT),
        MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
    )


@cache
def open_metrics() -> tuple[MeanScore, ...]:
    """Returns the metrics of questions without options."""
    return (
        MeanScore(name=CONTAINS, title="answer in any language", scale=PERCENT, groups={"language": tuple(LANGUAGES)}),
        MeanScore(name=DUAL, title="answer in the question's language or English", scale=PERCENT),
        MeanScore(name=SINGLE, title="answer in the question's language", scale=PERCENT),
    )


def authors_choice(reply: str) -> int | None:
    """Returns the option that the authors' script reads, whether or not there is such an option.

    The reply as a number, or else its first digits. Where a reply has no digits, the script looks for its text among
    the options and stores the option's number as a character, which it then compares with an integer: so such a reply
    never counts (``evaluation/score/score.py``).

    Examples:
        >>> authors_choice(" 3 "), authors_choice("Option 2. Naan"), authors_choice("Naan")
        (3, 2, None)
    """
    try:
        return int(reply)
    except ValueError:
        digits = re.search(r"\d+", reply)
        return int(digits.group()) if digits else None


def contains(reply: str, answer: str) -> bool:
    """Whether a reply contains an answer, in lower case both (``evaluation/score/score.py``)."""
    return answer.lower() in reply.lower()


def score_choice(doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads which option the responses choose. One that chooses none for certain is wrong, and counted too."""
    options = options_of(doc["prompt"])
    read = [read_choice(response, options) for response in responses]
    by_authors = [authors_choice(answer_in(response)) == int(doc["answer"]) for response in responses]
    return _answered(
        doc,
        responses,
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        labels=tuple(read),
        score=sum(number == doc["answer"] for number in read) / len(read),
        values={
            AUTHORS: sum(by_authors) / len(by_authors),
            UNPARSED: sum(number is None for number in read) / len(read),
        },
    )


def score_open(doc: Doc, responses: Sequence[str]) -> Answered:
    """Looks for the answers in the responses."""
    texts = [answer_in(response) for response in responses]

    def share(is_right: Callable[[str], bool]) -> float:
        return sum(map(is_right, texts)) / len(texts)

    return _answered(
        doc,
        responses,
        references=doc["references"],
        score=share(lambda text: any(contains(text, answer) for answer in doc["references"])),
        values={
            DUAL: share(lambda text: contains(text, doc["answer"]) or contains(text, doc["english"])),
            SINGLE: share(lambda text: contains(text, doc["answer"])),
        },
    )


def _answered(doc: Doc, responses: Sequence[str], **scores: object) -> Answered:
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["prompt"],
        groups={"language": doc["language"], "question": doc["type"], "country": doc["country"]},
        cluster=doc["dish"],
        image=doc["image_id"],
        data={"data": doc["data"]},
        **scores,  # type: ignore[arg-type]
    )
