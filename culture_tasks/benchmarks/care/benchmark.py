"""CARE as a benchmark: five ways of asking 150 questions in each of three languages, graded by category."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Literal

from culture_tasks.benchmarks.care import documents
from culture_tasks.benchmarks.care.annotations import HUMAN_RATINGS
from culture_tasks.benchmarks.care.documents import CATEGORIES, LANGUAGES, PEOPLE, SCOPES, SOURCES, CareDoc, Language
from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR, RUBRICS
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    DataSet,
    Decoding,
    Documents,
    Entry,
    Group,
    JudgedScore,
    Prompt,
    Scale,
    Task,
)
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings

PromptName = Literal["plain", "roleplay", "cot"]  # the question alone, Figure 8, or Figure 9

_SAMPLED = Decoding(max_tokens=1024, temperature=0.7, top_p=1.0)
_GREEDY = Decoding(max_tokens=1024)

_VARIANTS: tuple[tuple[str, str, PromptName, Decoding, str], ...] = (
    ("care", "CARE", "plain", _SAMPLED, "question alone, sampled (App. B)"),
    ("care_greedy", "CARE, greedy decoding", "plain", _GREEDY, "question alone, greedy decoding"),
    ("care_roleplay", "CARE, role-play prompt", "roleplay", _SAMPLED, "role-play prompt (Figure 8)"),
    ("care_cot", "CARE, chain-of-thought prompt", "cot", _SAMPLED, "chain-of-thought prompt (Figure 9)"),
    ("care_en", "CARE, asked in English", "plain", _SAMPLED, "asked and graded in English (section 5.2)"),
)
"""Name, title, prompt, decoding and what it is about of each way of asking."""

_RATING = JudgedScore(
    name="care_rating",
    title="rating",
    scale=Scale("rating", 1.0, 10.0),
    groups={"category": CATEGORIES, "scope": SCOPES},
)
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that are fractions of the number of questions, and of no other."""


class Care(Benchmark, OffersHumanRatings):
    """CARE (Guo et al., 2025)."""

    name = "care"
    title = "CARE"
    paper = "Guo et al., 2025"
    judge = "three rubrics, GPT-4o"
    data = "Hub geyang627/CARE-eval"
    made_from = ("Aya", "CIDAR", "CultureBank", "CulturalBench", "GeoMLAMA", "FORK")

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group of three tasks for each way of asking."""
        entries: list[Entry] = []
        for variant, title, prompt, decoding, about in _VARIANTS:
            tasks = [_task(variant, title, language, prompt, decoding, about) for language in LANGUAGES]
            members = tuple(task.name for task in tasks)
            group = Group(name=variant, about=about, title=title, members=members, means=(_RATING.name,))
            entries += [group, *tasks]
        return tuple(entries)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.care.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions of all three cultures."""
        return documents.check(data_folder)

    def human_ratings(self) -> HumanRatings:
        """Returns the responses that native annotators rated."""
        return HUMAN_RATINGS


def _task(variant: str, title: str, language: Language, prompt: PromptName, decoding: Decoding, about: str) -> Task:
    english = variant == "care_en"

    def load(settings: Settings) -> Documents:
        return Documents(documents.load(language, settings.data_folder, english=english))

    return Task(
        name=f"{variant}_{language}",
        about=about,
        title=f"{title}, {PEOPLE[language]} culture",
        languages=("en" if english else language,),
        metric=_RATING.name,
        metrics=lambda: [_RATING],
        data=DataSet((SOURCES[language],), load),
        prompt=partial(asked, prompt),
        score=_score,
        decoding=decoding,
        target=lambda doc: doc["answer"],
        note="Decoding: Appendix B.",
    )


def asked(prompt: PromptName, doc: CareDoc) -> Prompt:
    """Returns the prompt for a question (section 4 and Appendix B): one user message, as every chat template takes it.

    The paper shows each template as one block, and doesn't say which lines are a system message.
    """
    values = {"people": PEOPLE[doc["language"]], "question": doc["question"]}
    return Prompt((prompt_file(__package__, f"{prompt}.v1").fill(values),))


def _score(doc: CareDoc, responses: Sequence[str]) -> Answered:
    """Has the answers to a question graded by the rubric of its category (Appendix C.1)."""
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=(doc["answer"],),
        groups={name: doc[name] for name in ("language", "category", "scope", "culture", "prompt_language")},
        data={"data": doc["data"]},
        rubric=RUBRIC_FOR[doc["category"]],
    )


BENCHMARK = Care()
