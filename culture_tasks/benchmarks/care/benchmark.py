"""CARE as a benchmark: five ways of asking 150 questions in each of three languages, graded by category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path

from culture_tasks.benchmarks.care.documents import (
    CATEGORIES,
    HUMAN_RATINGS,
    LANGUAGE_NAMES,
    LANGUAGES,
    PEOPLE,
    RELEASED_SCOPES,
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
    Benchmark,
    DataSet,
    Decoding,
    Entry,
    Group,
    JudgedScore,
    Prompt,
    Scale,
    Task,
    Variant,
)
from culture_tasks.benchmarks.own_culture import (
    CultureBenchmark,
    CultureFile,
    LikeBenchmark,
    Line,
    Ratings,
    by_statistic,
)
from culture_tasks.benchmarks.reporting import (
    BenchmarkReport,
    ColumnSpec,
    ContrastSpec,
    Groups,
    RunFacts,
    ScoreUnit,
    TableSpec,
    bars_by,
    columns_by,
    groups_of,
)
from culture_tasks.data.tables import Table
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file

GROUPS = {
    "language": Groups(dict(sorted(LANGUAGE_NAMES.items())), places={"zh": "CN", "ar": "arab", "ja": "JP"}),
    "category": Groups(CATEGORIES),
    "scope": Groups(SCOPES),
}
"""The groups of questions; a language is that of the people whose culture is asked about (Figure 8)."""

RATING = JudgedScore(
    name="care_rating",
    title="rating",
    scale=Scale("rating", 1.0, 10.0),
    groups={name: GROUPS[name] for name in ("category", "scope")},
)
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that only the number of questions has as a divisor."""

SAMPLED = Decoding(max_tokens=1024, temperature=0.7, top_p=1.0)
VARIANTS = (
    Variant("", "", "plain.v1", SAMPLED, about="question alone, sampled (App. B)"),
    Variant(
        "_greedy", "greedy decoding", "plain.v1", Decoding(max_tokens=1024), about="question alone, greedy decoding"
    ),
    Variant("_roleplay", "role-play prompt", "roleplay.v1", SAMPLED, about="role-play prompt (Figure 8)"),
    Variant("_cot", "chain-of-thought prompt", "cot.v1", SAMPLED, about="chain-of-thought prompt (Figure 9)"),
    Variant(
        "_en", "asked in English", "plain.v1", SAMPLED, about="asked and graded in English (section 5.2)", english=True
    ),
)

_RATING = "Mean rating (1 poor, 10 excellent)"
_LABELS = {"commonsense": "C. sense", **RELEASED_SCOPES}
_PRINTED_SCOPES = {"sub_nationwide": "sub-nationalwide", "continent_wide": "continent-wide"}


class _AskedAsInCare(Benchmark):
    """What CARE and cultures like it share: how they are reported."""

    groups = GROUPS
    culture_field = "language"

    def report(self) -> BenchmarkReport:
        """Returns the numbers by culture, category and scope, and natively beside English (Figure 6a)."""

        def beside(first: RunFacts, second: RunFacts) -> bool:
            """Whether one run asks in English the questions that another run asks in the culture's own language."""
            return first.task == second.task.replace(self.name, f"{self.name}_en", 1) and first.row == second.row

        by_category = bars_by(
            "category",
            key=f"{self.name}_category",
            title=f"{self.title} by category",
            source="CARE, Figure 6a",
            value=_RATING,
            fixed=("language",),
        )
        in_english = ContrastSpec(
            kind="language",
            key=f"{self.name}_languages",
            title=f"{self.title} asked in English and natively",
            source="CARE, Figure 6a",
            beside=beside,
            splits=(("language",), ("language", "category")),
            words=("asked in English", "asked in the culture's own language"),
            parts=("English", "Native"),
            values={"score": _RATING},
            groups="category",
            series="asked in",
            rows=("language", "Culture"),
            panel=lambda number: f"{number.model} · {number.fixed.get('language', number.title)}",
        )
        report = super().report()
        splits = (*(report.splits or ()), ("language", "category"), ("language", "scope"))
        return replace(report, splits=splits, figures=(by_category,), contrasts=(in_english,), as_published=())

    def tables(self, units: Sequence[ScoreUnit]) -> Iterator[TableSpec]:
        """Yields the ratings by culture and category, and by culture and geographic scope, of each unit."""
        named = self.groups["language"]
        in_order = dict.fromkeys(name for name in (*LANGUAGE_NAMES, *named) if name in named)
        for unit in units:
            languages = [name for name in in_order if any(task.endswith(f"_{name}") for task in unit.tasks)]
            columns: dict[str, list[ColumnSpec]] = {"category": [], "scope": []}
            # All of them for a user's task, which ends in none of the languages.
            for (name, groups), language in product(columns.items(), languages or in_order):
                groups += columns_by(
                    name,
                    {group: _LABELS.get(group, group.title()) for group in self.groups[name]},
                    unit.key,
                    within=(("language", language),),
                    over=named.name_of(language),
                    prefix=f"{language}_",
                    printed={"language": language},
                    total="Average" if name == "category" else "",
                )
            subject = f"{unit.key}: mean rating (1 poor, 10 excellent) by culture and"
            yield self.table(
                f"{unit.key}_table_3",
                f"{subject} category",
                columns["category"],
                source="CARE, Tables 3 and 6",
                notes=("Average: the mean over all scored questions, not over the categories.",),
                papers=("care_table_3", "care_table_6"),
            )
            yield self.table(
                f"{unit.key}_table_13",
                f"{subject} geographic scope",
                [_as_printed(column) for column in columns["scope"]],
                source="CARE, Table 13",
                papers=("care_table_13",),
            )


def _as_printed(column: ColumnSpec) -> ColumnSpec:
    """Returns a column of a scope with the scope as the paper spells it."""
    scope = column.printed["scope"]
    return replace(column, printed={**column.printed, "scope": _PRINTED_SCOPES.get(scope, scope)})


class CareFile(CultureFile):
    """What ``culture.toml`` says of a culture like CARE; ``people`` are what the role-play prompt calls a native."""

    people: Line | None = None


class CareCulture(_AskedAsInCare, CultureBenchmark):
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

    def __init__(self, folder: Path, file: CultureFile, like: Benchmark) -> None:
        super().__init__(folder, file, like)
        language = Groups({file.language: file.title}, places={file.language: file.place})
        self.groups = {**GROUPS, "language": language}

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking; role-play needs to know what the people are called."""
        file, people = self.file, getattr(self.file, "people", "")
        table = culture_table(self.folder, file.language)
        return tuple(
            task_of(
                variant,
                name=f"{self.name}{variant.suffix}",
                title=f"{variant.titled('CARE')}, {file.title}",
                language=file.language,
                people=people,
                table=table,
            )
            for variant in VARIANTS
            if people or variant.suffix != "_roleplay"
        )


class Care(_AskedAsInCare, LikeBenchmark, OffersHumanRatings):
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
            name, title = f"care{variant.suffix}", variant.titled(self.title)
            tasks = [
                task_of(
                    variant,
                    name=f"{name}_{language}",
                    title=f"{title}, {PEOPLE[language]} culture",
                    language=language,
                    people=PEOPLE[language],
                    table=TABLES[language],
                )
                for language in LANGUAGES
            ]
            members = tuple(task.name for task in tasks)
            entries.append(Group(name=name, about=variant.about, title=title, members=members, means=(RATING.name,)))
            entries += tasks
        return tuple(entries)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    @cache  # noqa: B019 - one object a process
    def report(self) -> BenchmarkReport:
        """Returns the report with the published numbers beside it."""
        as_published = tuple(f"{self.name}_{language}" for language in LANGUAGES)
        return replace(super().report(), as_published=as_published)

    def human_ratings(self) -> HumanRatings:
        """Returns the responses that native annotators rated."""
        return HUMAN_RATINGS


def task_of(variant: Variant, *, name: str, title: str, language: str, people: str, table: Table[CareRow]) -> Task:
    """Returns the task that asks the questions of a culture, a table in the language of its people, in one way."""
    english = bool(variant.facts.get("english"))
    return Task(
        name=name,
        about=variant.about,
        title=title,
        languages=("en" if english else language,),
        metrics=lambda: [RATING],
        data=DataSet((table,), partial(load, table, language, english=english)),
        prompt=partial(render, variant.prompt, people=people),
        score=_score,
        decoding=variant.decoding,
        target=lambda doc: doc["answer"],
        note="Decoding: Appendix B.",
    )


def render(prompt: str, doc: CareDoc, *, people: str) -> Prompt:
    """Returns the prompt for a question (section 4 and Appendix B): one user message, as every chat template takes it.

    The paper shows each template as one block, and doesn't say which lines are a system message.
    """
    values = {"people": people, "question": doc["question"]}
    return Prompt((prompt_file(__package__, prompt).fill(values),))


def _score(doc: CareDoc, responses: Sequence[str]) -> Answered:
    """Has the answers to a question graded by the rubric of its category (Appendix C.1)."""
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=(doc["answer"],),
        groups={**groups_of(doc, GROUPS), "culture": doc["culture"], "prompt_language": doc["prompt_language"]},
        data={"data": doc["data"]},
        rubric=RUBRIC_FOR[doc["category"]],
    )


BENCHMARK = Care()
