"""CARE as a benchmark: five ways of asking 150 questions in each of three languages, graded by category."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Literal, NamedTuple

from culture_tasks.benchmarks.care.documents import (
    CATEGORIES,
    HUMAN_RATINGS,
    LANGUAGES,
    PEOPLE,
    SCOPES,
    TABLES,
    CareDoc,
    CareRow,
    culture_table,
    load,
)
from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR, RUBRICS
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import (
    Answered,
    DataSet,
    Decoding,
    Entry,
    Group,
    JudgedScore,
    Prompt,
    Scale,
    Task,
)
from culture_tasks.benchmarks.own_culture import (
    CultureBenchmark,
    CultureFile,
    LikeBenchmark,
    Line,
    Ratings,
    by_statistic,
)
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.tables import Table
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file

PromptName = Literal["plain", "roleplay", "cot"]  # the question alone, Figure 8, or Figure 9

SAMPLED = Decoding(max_tokens=1024, temperature=0.7, top_p=1.0)
_GREEDY = Decoding(max_tokens=1024)


class Variant(NamedTuple):
    """A way of asking the questions of a culture.

    Attributes:
        suffix: The end of its tasks' names, after the benchmark's name.
        about: The quantity that it measures.
        english: Whether questions and answers are the English translations.
    """

    suffix: str
    title: str
    prompt: PromptName
    decoding: Decoding
    about: str
    english: bool = False


VARIANTS = (
    Variant("", "CARE", "plain", SAMPLED, "question alone, sampled (App. B)"),
    Variant("_greedy", "CARE, greedy decoding", "plain", _GREEDY, "question alone, greedy decoding"),
    Variant("_roleplay", "CARE, role-play prompt", "roleplay", SAMPLED, "role-play prompt (Figure 8)"),
    Variant("_cot", "CARE, chain-of-thought prompt", "cot", SAMPLED, "chain-of-thought prompt (Figure 9)"),
    Variant(
        "_en", "CARE, asked in English", "plain", SAMPLED, "asked and graded in English (section 5.2)", english=True
    ),
)

RATING = JudgedScore(
    name="care_rating",
    title="rating",
    scale=Scale("rating", 1.0, 10.0),
    groups={"category": CATEGORIES, "scope": SCOPES},
)
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that only the number of questions has as a divisor."""


class CareFile(CultureFile):
    """What ``culture.toml`` says of a culture like CARE; ``people`` are what the role-play prompt calls a native."""

    people: Line | None = None


class CareCulture(CultureBenchmark):
    """The questions about a culture of the user's."""

    file_model = CareFile
    ratings = Ratings(  # Table 2, which doesn't name alpha's level
        level="ordinal",
        scale=(1, 10),
        measures={
            "Pearson's r": by_statistic("pearson"),
            "Spearman's rho": by_statistic("spearman"),
            "Kendall's tau": by_statistic("kendall_tau_b"),
        },
    )

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking; role-play needs to know what the people are called."""
        file, people = self.file, getattr(self.file, "people", "")
        table = culture_table(self.folder, file.language)
        return tuple(
            task_of(
                variant,
                name=f"{self.name}{variant.suffix}",
                title=f"{variant.title}, {file.title}",
                language=file.language,
                people=people,
                table=table,
            )
            for variant in VARIANTS
            if people or variant.prompt != "roleplay"
        )

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of CARE, with the culture in the place of the languages."""
        from culture_tasks.benchmarks.care.report import report_of

        file, native = self.file, {f"{self.name}_en": self.name}
        languages, places = {file.language: file.title}, {file.language: file.place}
        return report_of(self.name, self.title, languages, places, native)


class Care(LikeBenchmark, OffersHumanRatings):
    """CARE (Guo et al., 2025)."""

    name = "care"
    title = "CARE"
    paper = "Guo et al., 2025"
    judge = "three rubrics, GPT-4o"
    data = "Hub geyang627/CARE-eval"
    made_from = ("Aya", "CIDAR", "CultureBank", "CulturalBench", "GeoMLAMA", "FORK")
    culture = CareCulture

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group of three tasks for each way of asking."""
        entries: list[Entry] = []
        for variant in VARIANTS:
            name = f"care{variant.suffix}"
            tasks = [
                task_of(
                    variant,
                    name=f"{name}_{language}",
                    title=f"{variant.title}, {PEOPLE[language]} culture",
                    language=language,
                    people=PEOPLE[language],
                    table=TABLES[language],
                )
                for language in LANGUAGES
            ]
            members = tuple(task.name for task in tasks)
            entries.append(
                Group(name=name, about=variant.about, title=variant.title, members=members, means=(RATING.name,))
            )
            entries += tasks
        return tuple(entries)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.care.report import REPORT

        return REPORT

    def human_ratings(self) -> HumanRatings:
        """Returns the responses that native annotators rated."""
        return HUMAN_RATINGS


def task_of(variant: Variant, *, name: str, title: str, language: str, people: str, table: Table[CareRow]) -> Task:
    """Returns the task that asks the questions of a culture, a table in the language of its people, in one way."""
    return Task(
        name=name,
        about=variant.about,
        title=title,
        languages=("en" if variant.english else language,),
        metric=RATING.name,
        metrics=lambda: [RATING],
        data=DataSet((table,), partial(load, table, language, english=variant.english)),
        prompt=partial(render, variant.prompt, people=people),
        score=_score,
        decoding=variant.decoding,
        target=lambda doc: doc["answer"],
        note="Decoding: Appendix B.",
    )


def render(prompt: PromptName, doc: CareDoc, *, people: str) -> Prompt:
    """Returns the prompt for a question (section 4 and Appendix B): one user message, as every chat template takes it.

    The paper shows each template as one block, and doesn't say which lines are a system message.
    """
    values = {"people": people, "question": doc["question"]}
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
