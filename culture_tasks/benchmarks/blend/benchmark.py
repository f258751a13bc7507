"""BLEnD as a benchmark: 16 regions, asked in their language and in English, by two prompts, and multiple choice.

SEM is the paper's soft exact match of a response with what people answered. The answers are tried from the one with
most votes to the one with fewest: those in the region's language first, then their English versions. The first that is
in the response is the hit. SEM-B counts a hit as 1, SEM-W as its votes divided by those of the answer with most.

The paper compares lemmas, with one package for each language (:mod:`official`). The matcher here is the same for all
languages: an answer is in a response as a part of it, or if each of its tokens is among those of the response. Both are
folded first (see :func:`culture_tasks.text.tokens`). Of 1,000 answers to other questions, which are wrong, both rules
accept the same in Chinese, Korean and Assamese, while the paper's accepts 3 more in Hausa and 5 more in Arabic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

from culture_tasks import vocabulary
from culture_tasks.benchmarks.blend.official import OFFICIAL_LANGUAGES, official_match, require
from culture_tasks.benchmarks.blend.questions import (
    CHOICES,
    LABELS,
    REGIONS,
    TOPICS,
    load_choices,
    load_questions,
    regions_at_hand,
    table,
)
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, score_options
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    MeanScore,
    Prompt,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import BenchmarkReport, Groups, in_two_languages
from culture_tasks.benchmarks.tables import BenchmarkNumbers
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.prompt_files import PromptFile
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in, folded, tokens

SEM_B, SEM_W = "sem_b", "sem_w"
OFFICIAL = "_official"  # ends the names of both where the paper's own matcher found the answers

_TITLES = {SEM_B: "SEM-B", SEM_W: "SEM-W"}
_TITLES |= {name + OFFICIAL: f"{title} by the paper's matcher" for name, title in _TITLES.items()}

Matcher: TypeAlias = Callable[[str, str, str], bool]
"""Says whether an answer, as released, is in a response after :func:`cleaned`, by the code of the answer's language."""

# The north of Nigeria isn't a part of it in ISO 3166-2, so its questions count as Nigeria's.
_CODES = {"Assam": "IN-AS", "Northern Nigeria": "NG", "West Java": "ID-JB"}
GROUPS = {
    "region": Groups(LABELS, places=partial(vocabulary.places, group_codes=_CODES)),
    "topic": Groups({topic: topic.replace("_", " ").capitalize() for topic in TOPICS.values()}),
}
_BY_REGION: Mapping[str, Any] = {"groups": {"region": LABELS}, "equal_groups": "region"}  # as in the paper


class Blend(Benchmark):
    """BLEnD (Myung et al., 2024)."""

    name, title, paper = "blend", "BLEnD", "Myung et al., 2024"
    data = "Hub nayeon212/BLEnD; prompts from the authors' repository; not for training"
    groups, culture_field = GROUPS, "region"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking, two of multiple choice, and the ways with the paper's matcher."""
        choice = _multiple_choice()
        likelihood = by_likelihood(choice, lambda doc: [letter for letter, _ in doc["choices"]])
        tasks = [_short_answers(variant, official=False) for variant in VARIANTS]
        official = [_short_answers(variant, official=True) for variant in VARIANTS]
        return (*tasks, choice, likelihood, *official)

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields the standard tables, and SEM-W or unread replies by region; multiple choice has no topics."""
        choices = {key for key in numbers.units if key.startswith("blend_mcq")}
        yield from (table for table in super().tables(numbers) if table.key.removesuffix("_by_topic") not in choices)
        for key, unit in numbers.units.items():
            name = SEM_W + OFFICIAL * key.startswith(f"blend{OFFICIAL}")
            shown, quantity = (UNPARSED.name, UNPARSED.title) if key in choices else (SEM_W, _TITLES[name])
            columns = numbers.by("region", key, shown if key in choices else name, total="All")
            yield numbers.table(f"{key}_{shown}_by_region", f"{unit.title}: {quantity} in percent, by region", columns)

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the numbers by region and topic, and in the region's language beside English."""
        languages = in_two_languages(
            native="the region's language",
            key="blend_languages",
            title="BLEnD asked in English and in the region's language",
            splits=(("region",),),
            values={"score": "SEM-B (percent)"},
            groups="region",
        )
        return replace(super().report(), contrasts=(languages,))


# Tasks

_DECODING = Decoding(max_tokens=512, top_p=1.0)  # the authors' code
_NATIVE, _ENGLISH, _PERSON = "asked in the region's language", "asked in English", " as a person from the region"
VARIANTS = (
    Variant("", _NATIVE, "inst-4", _DECODING, about=f"{_NATIVE} (inst-4)", english=False),
    Variant("_pers", _NATIVE + _PERSON, "pers-3", _DECODING, about=f"{_NATIVE} (pers-3)", english=False),
    Variant("_en", _ENGLISH, "inst-4", _DECODING, about=f"{_ENGLISH} (inst-4)", english=True),
    Variant("_en_pers", _ENGLISH + _PERSON, "pers-3", _DECODING, about=f"{_ENGLISH} (pers-3)", english=True),
)
"""The ways of asking for short answers, each by one of the paper's prompts."""


def _short_answers(variant: Variant, *, official: bool) -> Task:
    """Returns the task in English, or in the regions' languages: with the paper's matcher, in those that it knows."""
    english, matcher = variant.facts["english"], ["the paper's matcher"] * official
    if english:
        regions = [region for region in REGIONS if region.language != "en"]
    else:
        regions = [region for region in REGIONS if not official or region.language in OFFICIAL_LANGUAGES]
    tables = [table(region, kind) for region in regions for kind in ("annotations", "short-answer-questions")]
    tables += [table(region, "prompts") for region in regions if not english and region.language != "en"]

    def load(settings: Settings) -> Documents:
        there = regions_at_hand(regions, settings)
        for language in {"en" if english else region.language for region in there} if official else ():
            require(language)
        return load_questions(there, variant.prompt, settings, english=english)

    return Task(
        name=f"blend{OFFICIAL * official}{variant.suffix}",
        title=", ".join((Blend.title, variant.title, *matcher)),
        about="; ".join((f"short answers on everyday life, {variant.about}", *matcher)),
        languages=("en",) if english else tuple(dict.fromkeys(region.language for region in regions)),
        metrics=partial(metrics, official=official),
        data=DataSet(tuple(tables), load),
        prompt=_prompt,
        score=partial(score, official=official),
        decoding=_DECODING,
        target=_best_answer,
    )


def _prompt(doc: Doc) -> Prompt:
    return Prompt((doc["prompt"],))


def _best_answer(doc: Doc) -> str:
    """Returns an answer with most votes; empty where the data count votes without an answer."""
    best = doc["annotations"][0]
    return next(iter(best["answers"] or best["en_answers"]), "")


def _multiple_choice() -> Task:
    return Task(
        name="blend_mcq",
        title=f"{Blend.title}, multiple choice",
        about="multiple choice on everyday life, in English",
        languages=("en",),
        metrics=lambda: tuple(replace(metric, **_BY_REGION) for metric in (ACCURACY, UNPARSED)),
        data=DataSet((CHOICES,), load_choices),
        prompt=_prompt,
        score=score_choice,
        decoding=_DECODING,
        target=lambda doc: doc["answer"],
    )


# Scores


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
        for answers, answer_language in ((votes["answers"], language), (votes["en_answers"], "en")):
            for answer in answers:
                if matches(answer, response, answer_language):
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
    answer_tokens = _tokens(answer)
    is_part = _folded(answer) in _folded(response)
    return bool(answer_tokens) and (is_part or answer_tokens <= _tokens(response))


_ASSAMESE = re.compile("[\u0980-\u09ff\u200c\u200d]+")
"""A word in the Bengali script. ``tokens`` would take its vowel signs for punctuation, and find one word in another."""


@lru_cache(maxsize=4096)
def _folded(text: str) -> str:
    return " ".join(folded(text).replace("-", " ").split())


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    plain = _folded(text)
    return frozenset((*_ASSAMESE.findall(plain), *tokens(_ASSAMESE.sub(" ", plain))))


@cache
def metrics(*, official: bool) -> tuple[MeanScore, ...]:
    """Returns the metrics of a task with short answers; with the paper's matcher, also the default matcher's."""
    names = [SEM_B + OFFICIAL, SEM_W + OFFICIAL, SEM_B, SEM_W] if official else [SEM_B, SEM_W]
    main, *further = (MeanScore(name=name, title=_TITLES[name], scale=PERCENT, **_BY_REGION) for name in names)
    return replace(main, groups={**main.groups, "topic": tuple(GROUPS["topic"])}), *further


def score(doc: Doc, responses: Sequence[str], *, official: bool) -> Score:
    """Looks for the people's answers in the responses to a question."""
    texts = [cleaned(answer_in(response), doc["prompt"]) for response in responses]
    annotations, values = doc["annotations"], {}
    for ending, matches in (("", token_match), *([(OFFICIAL, official_match)] if official else ())):
        hits = [first_hit(annotations, text, doc["language"], matches) for text in texts]
        values[SEM_B + ending] = sum(hit is not None for hit in hits) / len(hits)
        values[SEM_W + ending] = sum(hit.weight for hit in hits if hit) / len(hits)
    return Score.of(
        doc,
        responses,
        {**GROUPS, "language": Groups()},
        question=doc["question"],
        references=tuple(dict.fromkeys(chain(*((*votes["answers"], *votes["en_answers"]) for votes in annotations)))),
        cluster=doc["question_id"],
        prompt=PromptFile(doc["prompt_name"], doc["template"]),
        labels=tuple("" if hit is None else hit.answer for hit in hits),
        score=values.pop(SEM_B + ending),
        values=values,
    )


def score_choice(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which choice the responses name."""
    return score_options(
        doc,
        responses,
        dict(doc["choices"]),
        {"region": GROUPS["region"], "language": Groups(of=lambda _: "en")},
        question=doc["prompt"],
        references=(doc["answer"],),
        cluster=doc["question_id"],
    )


BENCHMARK = Blend()
