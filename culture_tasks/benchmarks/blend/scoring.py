"""How the answers to a question of BLEnD are scored: SEM-B and SEM-W for short answers, accuracy for choices.

All are fractions here, as the harnesses have them, and percent in the report, as in the paper. Over repeated runs a
score is the mean of the runs'.

SEM is the paper's soft exact match of a response with what people answered. The answers are tried from the one with
most votes to the one with fewest: those in the region's language first, then their English versions. The first that is
in the response is the hit. SEM-B counts a hit as 1, SEM-W as its votes divided by those of the answer with most.

What it means to be in the response differs. The paper compares lemmas, with another package for each language, some of
which need Java or are not on PyPI. The matcher here is the same for all languages: an answer is in a response as a part
of it, or if each of its tokens is among those of the response. Both are folded first (see
:func:`culture_tasks.text.tokens`), so that case, width, Arabic diacritics and punctuation don't matter. Different forms
of a word stay different, so that a response in another form than the annotators' may be missed; the module
``official`` has the paper's own rule.

Compared on local answers of the release: of 1,000 answers to other questions, which are wrong, both rules accept the
same in Chinese, Korean and Assamese, while the paper's accepts 3 more in Hausa and 5 more in Arabic.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

from culture_tasks.benchmarks.blend.documents import BlendDoc, ChoiceDoc
from culture_tasks.benchmarks.blend.official import official_match
from culture_tasks.benchmarks.blend.regions import TOPICS
from culture_tasks.benchmarks.choices import PERCENT, chosen, read_choice
from culture_tasks.benchmarks.interface import Answered, MeanScore
from culture_tasks.prompt_files import PromptFile
from culture_tasks.text import answer_in, tokens

SEM_B, SEM_W = "sem_b", "sem_w"
OFFICIAL = "_official"  # ends the names of both where the paper's own matcher found the answers

_TITLES = {SEM_B: "SEM-B", SEM_W: "SEM-W"}
_TITLES |= {name + OFFICIAL: f"{title} by the paper's matcher" for name, title in _TITLES.items()}

Matcher: TypeAlias = Callable[[str, str, str], bool]
"""Says whether an answer, as released, is in a response after :func:`cleaned`, by the code of the answer's language."""


class Hit(NamedTuple):
    """An answer in a response, and its votes divided by those of the answer with most: above 0, at most 1."""

    answer: str
    weight: float


def first_hit(annotations: Sequence[Mapping[str, Any]], response: str, language: str, matches: Matcher) -> Hit | None:
    """Returns the answer that counts for a response after :func:`cleaned`, or None; an empty response has no hit.

    SEM-B of a set of questions is the share that has a hit, SEM-W the mean of the hits' weights, where a question
    without one counts 0. Both are from 0 to 1 here (the paper prints percent); higher is better; SEM-W <= SEM-B.
    """
    for votes in annotations if response else ():
        for answers, of_language in ((votes["answers"], language), (votes["en_answers"], "en")):
            for answer in answers:
                if matches(answer, response, of_language):
                    return Hit(answer, votes["count"] / annotations[0]["count"])
    return None


_FULL_WIDTH = str.maketrans("：、，。", ":,,.")
_LABEL = re.compile(r"\w+:(?=\s)")  # such as "answer:" or "jawaban:" at the start of a response


def cleaned(response: str, prompt: str) -> str:
    """Returns a response without reasoning blocks as the paper compares it.

    The prompt is cut out where the model repeats it; four full-width marks become ASCII; all is in lower case; a label
    at the start goes wherever it stands, if the prompt has that word ("Answer:"); then the full stops around the rest.
    """
    text = response.replace(prompt, "").translate(_FULL_WIDTH).lower()
    label = _LABEL.match(text)
    if label and label.group().removesuffix(":") in prompt.translate(_FULL_WIDTH).lower():
        text = text.replace(label.group(), "")
    return text.strip().strip(".")


def token_match(answer: str, response: str, language: str) -> bool:  # noqa: ARG001
    """Whether an answer is a part of a response, or all of its tokens are among those of the response.

    Hyphens and blanks are one. An answer without a letter or digit is in no response.
    """
    wanted = _tokens(answer)
    return bool(wanted) and (_folded(answer) in _folded(response) or wanted <= _tokens(response))


_ASSAMESE = re.compile("[\u0980-\u09ff\u200c\u200d]+")
"""A word in the Bengali script. ``tokens`` would take its vowel signs for punctuation, and find one word in another."""


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.replace("-", " ").split())


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    folded = _folded(text)
    return frozenset((*_ASSAMESE.findall(folded), *tokens(_ASSAMESE.sub(" ", folded))))


@cache
def metrics(*, official: bool) -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with short answers; with the paper's matcher, those of the other one come too."""
    main, others = (SEM_B + OFFICIAL, (SEM_W + OFFICIAL, SEM_B, SEM_W)) if official else (SEM_B, (SEM_W,))
    by_topic = MeanScore(name=main, title=_TITLES[main], scale=PERCENT, groups={"topic": tuple(TOPICS)})
    return by_topic, *(MeanScore(name=name, title=_TITLES[name], scale=PERCENT) for name in others)


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
    """Reads which choice the responses name."""
    labels = [read_choice(response, dict(doc["choices"])) for response in responses]
    return chosen(
        doc,
        responses,
        labels,
        doc["answer"],
        question=doc["prompt"],
        references=(doc["answer"],),
        groups={"region": doc["region"], "language": "en"},
        cluster=doc["question_id"],
    )
