"""CARE: five ways of asking 150 questions in each of three languages, graded by the rubric of their category."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Annotated

from culture_tasks.benchmarks.care.rubrics import RUBRIC_FOR, RUBRICS
from culture_tasks.benchmarks.fields import spelled
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    Group,
    JudgedScore,
    Prompt,
    Scale,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.own_culture import CultureBenchmark, CultureFile, LikeBenchmark, Line, Ratings
from culture_tasks.benchmarks.reporting import BenchmarkReport, Groups, ScoreUnit, in_two_languages
from culture_tasks.benchmarks.tables import BenchmarkNumbers, Column, Figure, series_of
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.checking import count, tally
from culture_tasks.data.rows import Label, OptionalIdentifier, OptionalLabel, OptionalText, TableRow, Text
from culture_tasks.data.tables import Release, Table
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings

QUESTIONS, QUESTIONS_PER_CATEGORY = 150, 30  # in the test of each culture (section 5)

# In the order of the paper's tables, and what its role-play prompt (Figure 8) calls a native speaker.
LANGUAGE_NAMES: Mapping[str, str] = {"zh": "Chinese", "ar": "Arabic", "ja": "Japanese"}
PEOPLE: Mapping[str, str] = {"ar": "Arab", "ja": "Japanese", "zh": "Chinese"}

RELEASED_NAMES: Mapping[str, str] = {
    "entities": "Cultural entities",
    "opinion": "Opinion",
    "norms": "Social norms",
    "commonsense": "Cultural commonsense",
    "literacy": "Literacy",
}
"""The categories as in the paper's tables, and how the released data spell each."""

CATEGORIES = tuple(RELEASED_NAMES)
_SCOPES = {
    "Sub-nationwide": "sub_nationwide",
    "Sub-nationalwide": "sub_nationwide",
    "Nationwide": "nationwide",
    "National-wide": "nationwide",
    "Continent-wide": "continent_wide",
    "Worldwide": "worldwide",
}
"""The scopes, as data and paper spell them."""
SCOPES = tuple(dict.fromkeys(_SCOPES.values()))

GROUPS = {
    "language": Groups(dict(sorted(LANGUAGE_NAMES.items())), places={"zh": "CN", "ar": "arab", "ja": "JP"}),
    "category": Groups(CATEGORIES),
    "scope": Groups(SCOPES),
}
"""The groups of questions; a language is that of the people whose culture is asked about (Figure 8)."""

# Data


class CareRow(TableRow):
    """One row as released: Hub ``geyang627/CARE-eval`` or the JSON files of the authors' repository."""

    question: Text
    answer: Text
    culture_type: Annotated[str, spelled({released: category for category, released in RELEASED_NAMES.items()})]
    associated_culture: Label
    geographic_scope: Annotated[str, spelled(_SCOPES)]
    id: OptionalIdentifier = None
    source: OptionalLabel = None
    question_en: OptionalText = None
    answer_en: OptionalText = None


def _table(language: str) -> Table[CareRow]:
    name = LANGUAGE_NAMES[language]
    return Table(
        model=CareRow,
        folder="care",
        stems=(f"{name}-test",),
        hub="geyang627/CARE-eval",
        config=name.lower(),
        aliases={"cul_type": "culture_type"},
        id="id",
        release=Release(QUESTIONS, questions=20),  # 40 of each language are known
        counts=lambda rows: [
            count(f"{language}: questions", len(rows), QUESTIONS),
            *tally(f"{language}: {{}}", (row.culture_type for row in rows), CATEGORIES, QUESTIONS_PER_CATEGORY),
        ],
    )


TABLES: Mapping[str, Table[CareRow]] = {language: _table(language) for language in PEOPLE}


def load(table: Table[CareRow], language: str, settings: Settings, *, english: bool) -> Documents:
    """Loads the test questions of a table, which are in a language, or their English translations (section 5.2)."""
    found = table.rows(settings)
    if english:
        found.require(
            "The care_en_… tasks show it: add the column, or run the tasks in the culture's own language.",
            question_en="question_en",
            answer_en="answer_en",
        )
    data = found.fingerprint()
    documents = [
        {
            "id": f"{language}-{identifier}",
            "language": language,
            "prompt_language": "en" if english else language,
            "question": row.question_en if english else row.question,
            "answer": row.answer_en if english else row.answer,
            "category": row.culture_type,
            "culture": row.associated_culture,
            "scope": row.geographic_scope,
            "data": data,
        }
        for identifier, row in found
    ]
    return Documents(documents, reading=found.reading)


# Prompts and scores


def render(prompt: str, doc: Doc, *, people: str) -> Prompt:
    """Returns the prompt for a question (section 4 and Appendix B), which every chat template takes: a user message.

    The paper shows each template as one block, and doesn't say which lines are a system message.
    """
    return Prompt((prompt_file(__package__, prompt).fill({"people": people, "question": doc["question"]}),))


RATING = JudgedScore(
    name="care_rating",
    title="rating",
    scale=Scale("rating", 1.0, 10.0),
    groups={name: GROUPS[name] for name in ("category", "scope")},
)
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that only the number of questions has as a divisor."""


def score(doc: Doc, responses: Sequence[str]) -> Score:
    """Has the answers to a question graded by the rubric of its category (Appendix C.1)."""
    return Score.of(
        doc,
        responses,
        {**GROUPS, "culture": Groups(), "prompt_language": Groups()},
        question=doc["question"],
        references=(doc["answer"],),
        rubric=RUBRIC_FOR[doc["category"]],
    )


# Tasks

SAMPLED, GREEDY = Decoding(max_tokens=1024, temperature=0.7, top_p=1.0), Decoding(max_tokens=1024)  # Appendix B
VARIANTS = (
    Variant("", "", "plain.v1", SAMPLED, about="question alone, sampled (App. B)"),
    Variant("_greedy", "greedy decoding", "plain.v1", GREEDY, about="question alone, greedy decoding"),
    Variant("_roleplay", "role-play prompt", "roleplay.v1", SAMPLED, about="role-play prompt (Figure 8)"),
    Variant("_cot", "chain-of-thought prompt", "cot.v1", SAMPLED, about="chain-of-thought prompt (Figure 9)"),
    Variant("_en", "asked in English", "plain.v1", SAMPLED, about="asked and graded in English (section 5.2)"),
)


def task_of(variant: Variant, *, name: str, title: str, language: str, people: str, table: Table[CareRow]) -> Task:
    """Returns the task that asks the questions of a culture, a table in the language of its people, in one way."""
    english = variant.suffix == "_en"
    return Task(
        name=name,
        about=variant.about,
        title=title,
        languages=("en" if english else language,),
        metrics=lambda: [RATING],
        data=DataSet((table,), partial(load, table, language, english=english)),
        prompt=partial(render, variant.prompt, people=people),
        score=score,
        decoding=variant.decoding,
        target=lambda doc: doc["answer"],
    )


# Reports

_RATING = "Mean rating (1 poor, 10 excellent)"
_CATEGORY_LABELS = {category: category.title() for category in CATEGORIES} | {"commonsense": "C. sense"}
_SCOPE_LABELS = {scope: scope.replace("_", "-").capitalize() for scope in SCOPES}


class _AskedAsInCare(Benchmark):
    """What CARE and cultures like it share: how they are reported."""

    groups, culture_field = GROUPS, "language"

    def report(self) -> BenchmarkReport:
        """Returns the numbers by culture, category and scope, and natively beside English (Figure 6a)."""
        in_english = in_two_languages(
            native="the culture's own language",
            key=f"{self.name}_languages",
            title=f"{self.title} asked in English and natively",
            source="CARE, Figure 6a",
            splits=(("language",), ("language", "category")),
            values={"score": _RATING},
            groups="category",
            rows=("language", "Culture"),
        )
        report = super().report()
        splits = (*(report.splits or ()), ("language", "category"), ("language", "scope"))
        return replace(report, splits=splits, contrasts=(in_english,))

    def _columns(
        self, numbers: BenchmarkNumbers, unit: ScoreUnit, field: str, labels: Mapping[str, str], total: str = ""
    ) -> dict[str, list[Column]]:
        """Returns a unit's columns of a field by the name of the culture; all cultures for a user's task."""
        cultures = self.groups["language"]
        in_order = [code for code in dict.fromkeys((*LANGUAGE_NAMES, *cultures)) if code in cultures]
        asked = [code for code in in_order if any(task.endswith(f"_{code}") for task in unit.tasks)]
        columns = {}
        for code in asked or in_order:
            name = cultures.name_of(code)
            columns[name] = numbers.by(
                field,
                unit.key,
                groups=labels,
                within=(("language", code),),
                over=name,
                prefix=f"{code}_",
                printed={"language": code},
                total=total,
            )
        return columns

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields the ratings by culture and category, and by culture and geographic scope, of each unit."""
        for unit in numbers.units.values():
            subject = f"{unit.title}: mean rating (1 poor, 10 excellent) by culture and"
            is_published = set(unit.tasks) <= {f"care_{language}" for language in PEOPLE}
            yield numbers.table(
                f"{unit.key}_table_3",
                f"{subject} category",
                chain(*self._columns(numbers, unit, "category", _CATEGORY_LABELS, "Average").values()),
                source="CARE, Tables 3 and 6",
                notes=("Average: the mean over all scored questions, not over the categories.",),
                papers=("care_table_3", "care_table_6") if is_published else (),
            )
            yield numbers.table(
                f"{unit.key}_table_13",
                f"{subject} geographic scope",
                chain(*self._columns(numbers, unit, "scope", _SCOPE_LABELS).values()),
                source="CARE, Table 13",
                papers=("care_table_13",) if is_published else (),
            )

    def figures(self, numbers: BenchmarkNumbers) -> Iterator[Figure]:
        """Yields the ratings by category: a panel for each unit and culture."""
        yield Figure(
            key=f"{self.name}_category",
            title=f"{self.title} by category",
            panels={
                f"{unit.title} · {culture}": series_of(columns)
                for unit in numbers.units.values()
                for culture, columns in self._columns(numbers, unit, "category", _CATEGORY_LABELS).items()
            },
            value=_RATING,
            groups="category",
            source="CARE, Figure 6a",
        )


class CareFile(CultureFile):
    """What ``culture.toml`` says of a culture like CARE; ``people`` are what the role-play prompt calls a native."""

    people: Line | None = None


class CareCulture(_AskedAsInCare, CultureBenchmark):
    """The questions about a culture of the user's."""

    file_model = CareFile
    ratings = Ratings(  # Table 2, which doesn't name alpha's level
        level="ordinal",
        scale=(1, 10),
        measures={"Pearson's r": "pearson", "Spearman's rho": "spearman", "Kendall's tau": "kendall_tau_b"},
    )

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking; role-play needs to know what the people are called."""
        file, people = self.file, getattr(self.file, "people", "")
        table = TABLES["zh"].of_culture(self.folder, counts=lambda rows: [count("questions", len(rows))])
        return [
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
        ]


class Care(_AskedAsInCare, LikeBenchmark, OffersHumanRatings):
    """CARE (Guo et al., 2025)."""

    name, title, paper = "care", "CARE", "Guo et al., 2025"
    judge, data = "three rubrics, GPT-4o", "Hub geyang627/CARE-eval"
    made_from = ("Aya", "CIDAR", "CultureBank", "CulturalBench", "GeoMLAMA", "FORK")
    culture = CareCulture

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group of three tasks for each way of asking."""
        return [entry for variant in VARIANTS for entry in self._asked(variant)]

    def _asked(self, variant: Variant) -> Iterator[Entry]:
        name, title = f"care{variant.suffix}", variant.titled(self.title)
        members = tuple(f"{name}_{language}" for language in PEOPLE)
        yield Group(name=name, about=variant.about, title=title, members=members, means=(RATING.name,))
        for language, people in PEOPLE.items():
            yield task_of(
                variant,
                name=f"{name}_{language}",
                title=f"{title}, {people} culture",
                language=language,
                people=people,
                table=TABLES[language],
            )

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def human_ratings(self) -> HumanRatings:
        """Returns the responses that native annotators rated."""
        from culture_tasks.benchmarks.care.ratings import HUMAN_RATINGS

        return HUMAN_RATINGS


BENCHMARK = Care()
