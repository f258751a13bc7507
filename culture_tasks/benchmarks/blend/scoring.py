"""How the answers to a question of BLEnD are scored: SEM-B and SEM-W for short answers, accuracy for choices.

All are fractions here, as the harnesses have them, and percent in the report, as in the paper. Over repeated runs a
score is the mean of the runs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from culture_tasks.benchmarks.blend.documents import BlendDoc, ChoiceDoc
from culture_tasks.benchmarks.blend.matching import Hit, Matcher, cleaned, first_hit, token_match
from culture_tasks.benchmarks.blend.official import official_match
from culture_tasks.benchmarks.blend.regions import TOPICS
from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.interface import Answered, MeanScore, Scale
from culture_tasks.prompt_files import PromptFile
from culture_tasks.text import answer_in

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=1, times=100.0)

SEM_B = "sem_b"
"""Share of the valid questions whose response has one of the people's answers in it; 0 to 1, higher is better."""

SEM_W = "sem_w"
"""The same, where a hit counts as its votes divided by those of the answer with most; 0 to 1, at most SEM-B."""

OFFICIAL = "_official"
"""Ends the names of both where the paper's own matcher found the answers."""

ACCURACY = "acc"
UNPARSED = "unparsed"


@cache
def metrics(*, official: bool) -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with short answers; with the paper's matcher, those of the other one come too."""
    topics = {"topic": tuple(TOPICS)}
    own = (MeanScore(name=SEM_B, scale=PERCENT, groups=topics), MeanScore(name=SEM_W, scale=PERCENT))
    if not official:
        return own
    return (
        MeanScore(name=SEM_B + OFFICIAL, scale=PERCENT, groups=topics),
        MeanScore(name=SEM_W + OFFICIAL, scale=PERCENT),
        MeanScore(name=SEM_B, scale=PERCENT),
        MeanScore(name=SEM_W, scale=PERCENT),
    )


@cache
def choice_metrics() -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with multiple choice."""
    return MeanScore(name=ACCURACY, scale=PERCENT), MeanScore(name=UNPARSED, scale=UNREAD)


def score(doc: BlendDoc, responses: Sequence[str], *, official: bool) -> Answered:
    """Looks for the people's answers in the responses to a question."""
    texts = [cleaned(answer_in(response), doc["prompt"]) for response in responses]
    hits = _hits(doc, texts, token_match)
    binary, weighted = _means(hits)
    values = {SEM_B: binary, SEM_W: weighted}
    if official:
        hits = _hits(doc, texts, official_match)
        binary, weighted = _means(hits)
        values[SEM_W + OFFICIAL] = weighted
    main = SEM_B + OFFICIAL if official else SEM_B
    values.pop(main, None)
    votes = doc["annotations"]
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=tuple(dict.fromkeys(text for each in votes for text in (*each["answers"], *each["en_answers"]))),
        groups={name: doc[name] for name in ("region", "topic", "language")},
        cluster=doc["question_id"],
        data={"data": doc["data"]},
        prompt=PromptFile(doc["prompt_name"], doc["template"]),
        labels=tuple("" if hit is None else hit.answer for hit in hits),
        score=binary,
        values=values,
    )


def _hits(doc: BlendDoc, texts: Sequence[str], matches: Matcher) -> list[Hit | None]:
    return [first_hit(doc["annotations"], text, doc["language"], matches) for text in texts]


def _means(hits: Sequence[Hit | None]) -> tuple[float, float]:
    """Returns SEM-B and SEM-W of one question over its runs."""
    binary = sum(hit is not None for hit in hits) / len(hits)
    return binary, sum(hit.weight for hit in hits if hit) / len(hits)


def score_choice(doc: ChoiceDoc, responses: Sequence[str]) -> Answered:
    """Reads which choice the responses name. One that names none for certain is wrong, and counted as unparsed too."""
    read = [read_choice(response, dict(doc["choices"])) for response in responses]
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["prompt"],
        references=(doc["answer"],),
        groups={"region": doc["region"], "language": "en"},
        cluster=doc["question_id"],
        data={"data": doc["data"]},
        labels=tuple(read),
        score=sum(letter == doc["answer"] for letter in read) / len(read),
        values={UNPARSED: sum(letter is None for letter in read) / len(read)},
    )
