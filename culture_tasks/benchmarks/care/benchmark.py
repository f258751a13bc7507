"""CARE as a benchmark: five ways of asking 150 questions in each of three languages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.care.annotations import HUMAN_RATINGS
from culture_tasks.benchmarks.care.documents import LANGUAGES, PEOPLE, SOURCES, CareDoc, Language, PromptName, load
from culture_tasks.benchmarks.care.rubrics import RUBRICS
from culture_tasks.benchmarks.care.scoring import RATING, metrics, score
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import Benchmark, DataSet, Decoding, Documents, Entry, Group, Prompt, Task
from culture_tasks.data.checking import DataReport
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport

_SAMPLED = Decoding(max_tokens=1024, temperature=0.7, top_p=1.0)
_GREEDY = Decoding(max_tokens=1024)

_VARIANTS: tuple[tuple[str, PromptName, Decoding, str], ...] = (
    ("care", "plain", _SAMPLED, "question alone, sampled (App. B)"),
    ("care_greedy", "plain", _GREEDY, "question alone, greedy decoding"),
    ("care_roleplay", "roleplay", _SAMPLED, "role-play prompt (Figure 8)"),
    ("care_cot", "cot", _SAMPLED, "chain-of-thought prompt (Figure 9)"),
    ("care_en", "plain", _SAMPLED, "asked and graded in English (section 5.2)"),
)
"""Name, prompt, decoding and what it is about of each way of asking."""


class Care(Benchmark, OffersHumanRatings):
    """CARE (Guo et al., 2025)."""

    name = "care"
    title = "CARE"
    paper = "Guo et al., 2025"
    judge = "three rubrics, GPT-4o"
    data = "Hub geyang627/CARE-eval"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group of three tasks for each way of asking."""
        found: list[Entry] = []
        for variant, prompt, decoding, about in _VARIANTS:
            tasks = [_task(variant, language, prompt, decoding, about) for language in LANGUAGES]
            found.append(
                Group(name=variant, about=about, members=tuple(task.name for task in tasks), means=(RATING.name,))
            )
            found += tasks
        return tuple(found)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.care.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions of all three cultures."""
        from culture_tasks.benchmarks.care.checking import check

        return check(data_folder)

    def human_ratings(self) -> HumanRatings:
        """Returns the responses that native annotators rated."""
        return HUMAN_RATINGS


def _task(variant: str, language: Language, prompt: PromptName, decoding: Decoding, about: str) -> Task:
    english = variant == "care_en"
    return Task(
        name=f"{variant}_{language}",
        about=about,
        languages=("en" if english else language,),
        metric=RATING.name,
        metrics=metrics,
        data=DataSet((SOURCES[language],), partial(_documents, language, english=english)),
        prompt=partial(asked, prompt),
        score=score,
        decoding=decoding,
        target=lambda doc: doc["answer"],
        note="Decoding: Appendix B.",
    )


def asked(prompt: PromptName, doc: CareDoc) -> Prompt:
    """Returns the prompt for a question (section 4 and Appendix B): one user message.

    The paper shows each template as one block and doesn't say which lines are a system message; all of it is sent as
    the user's message, so that it works with every chat template.
    """
    people = {str(language): name for language, name in PEOPLE.items()}[doc["language"]]
    return Prompt((prompt_file(__package__, f"{prompt}.v1").fill({"people": people, "question": doc["question"]}),))


def _documents(language: Language, settings: Settings, *, english: bool) -> Documents:
    return Documents(load(language, settings.data_folder, english=english))


BENCHMARK = Care()
