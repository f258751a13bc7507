"""How the answers to a question of BLEnD are scored: SEM-B and SEM-W for short answers, accuracy for choices.

All are fractions here, as the harnesses have them, and percent in the report, as in the paper. Over repeated runs a
score is the mean of the runs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from culture_tasks.benchmarks.blend.documents import BlendDoc, ChoiceDoc
from culture_tasks.benchmarks.blend.matching import cleaned, first_hit, token_match
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
    main, others = (SEM_B + OFFICIAL, (SEM_W + OFFICIAL, SEM_B, SEM_W)) if official else (SEM_B, (SEM_W,))
    by_topic = MeanScore(name=main, scale=PERCENT, groups={"topic": tuple(TOPICS)})
    return by_topic, *(MeanScore(name=name, scale=PERCENT) for name in others)


@cache
def choice_metrics() -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with multiple choice."""
    return MeanScore(name=ACCURACY, scale=PERCENT), MeanScore(name=UNPARSED, scale=UNREAD)


def score(doc: BlendDoc, responses: Sequence[str], *, official: bool) -> Answered:
    """Looks for the people's answers in the responses to a question."""
    texts = [cleaned(answer_in(response), doc["prompt"]) for response in responses]
    votes, values = doc["annotations"], {}
    for ending, matches in (("", token_match), *([(OFFICIAL, official_match)] if official else ())):
        hits = [first_hit(votes, text, doc["language"], matches) for text in texts]
        values[SEM_B + ending] = sum(hit is not None for hit in hits) / len(hits)
        values[SEM_W + ending] = sum(hit.weight for hit in hits if hit) / len(hits)
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=tuple(dict.fromkeys(text for one in votes for text in (*one["answers"], *one["en_answers"]))),
        groups={name: doc[name] for name in ("region", "topic", "language")},
        cluster=doc["question_id"],
        data={"data": doc["data"]},
        prompt=PromptFile(doc["prompt_name"], doc["template"]),
        labels=tuple("" if hit is None else hit.answer for hit in hits),
        score=values.pop(SEM_B + ending),
        values=values,
    )


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
