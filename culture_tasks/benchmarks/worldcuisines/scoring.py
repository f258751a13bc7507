"""How WorldCuisines' answers are scored: the option that a reply chooses, or an answer that a reply contains.

All scores are shares here, as the harnesses have them, and percent in the report, as in the paper. The paper's mean is
one over languages; every language has the same questions, so it is the mean over documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.interface import Answered, Doc, MeanScore, Scale
from culture_tasks.benchmarks.worldcuisines.documents import options_of
from culture_tasks.benchmarks.worldcuisines.vocabulary import LANGUAGES, Format
from culture_tasks.text import answer_in

PERCENT = Scale("percent", 0.0, 100.0, digits=2, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=2, times=100.0)

AUTHORS, UNPARSED = "acc_authors", "unparsed"
DUAL, SINGLE = "contains_dual", "contains_single"


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
    """Reads which option the responses choose: by ``read_choice``, and by the authors' reader."""
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
    """Looks in the responses for the answer in any language, in the question's or English, and in the question's."""
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


class Form(NamedTuple):
    """How answers of a form are scored: the metrics, the main one first, and what scores them."""

    metrics: tuple[MeanScore, ...]
    score: Callable[[Doc, Sequence[str]], Answered]


_GROUPS = {"language": tuple(LANGUAGES)}
FORMS: Mapping[Format, Form] = {
    "choices": Form(
        (
            MeanScore(name="acc", title="accuracy", scale=PERCENT, groups=_GROUPS),
            MeanScore(name=AUTHORS, title="accuracy by the authors' reader", scale=PERCENT),  # the published values
            MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
        ),
        score_choice,
    ),
    "open": Form(
        (
            MeanScore(
                name="contains", title="replies with the answer in any language", scale=PERCENT, groups=_GROUPS
            ),  # the published values
            MeanScore(name=DUAL, title="replies with the answer in the question's language or English", scale=PERCENT),
            MeanScore(name=SINGLE, title="replies with the answer in the question's language", scale=PERCENT),
        ),
        score_open,
    ),
}
