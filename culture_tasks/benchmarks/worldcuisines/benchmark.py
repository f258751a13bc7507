"""WorldCuisines: four types of questions about dishes, with options and without, in a small and a large set.

The questions of both sets are on the Hub and, as a file for each language, in the authors' repository. They name their
images by address. The authors read the images from the knowledge base, which has them beside the same addresses. The
paper's mean is one over languages; every language has the same questions, so it is the mean over documents.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from operator import itemgetter
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, ValidationInfo, field_validator

from culture_tasks.benchmarks import choices
from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, score_options
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    Group,
    MeanScore,
    Picture,
    Prompt,
    Score,
    Task,
    Variant,
)
from culture_tasks.benchmarks.reporting import Groups, names_in
from culture_tasks.benchmarks.tables import BenchmarkNumbers
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.benchmarks.worldcuisines.dishes import KNOWLEDGE_BASE, Dishes
from culture_tasks.data.checking import DataReport, check_tables, count
from culture_tasks.data.rows import Identifier, Label, OptionalIdentifier, OptionalLabel, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings
from culture_tasks.text import answer_in
from culture_tasks.vocabulary import countries

SetName = Literal["small", "large"]  # the large set has all questions of the small one
SETS: tuple[SetName, ...] = get_args(SetName)

QUESTIONS: Mapping[tuple[SetName, str], int] = {
    ("small", "task1"): 300,
    ("small", "task2"): 100,
    ("large", "task1"): 1_500,
    ("large", "task2"): 500,
}
"""Questions in each language, by set and part of the data."""

LANGUAGES = names_in(__package__, "languages.txt")
"""The 30 languages and registers, by their codes in the data. Each weighs the same in the paper's means."""

Format = Literal["choices", "open"]


class QuestionType(NamedTuple):
    """A type of question: its names here and in the paper's tables, its part of the data, and its number there."""

    name: str
    title: str
    config: str
    code: str


TYPES = (
    QuestionType("dish", "Dish Name (No-Context)", "task1", "1"),
    QuestionType("dish_context", "Dish Name (Contextualized)", "task1", "3"),
    QuestionType("dish_adversarial", "Dish Name (Adversarial)", "task1", "4"),
    QuestionType("origin", "Regional Cuisine", "task2", "2"),
)


# Data

_OPTION = re.compile(r"^([1-5])\. (.*)$", re.MULTILINE)


def options_of(prompt: str) -> dict[str, str]:
    r"""Returns the texts of the options that a prompt ends with, by their number.

    Examples:
        >>> options_of("What is this?\n1. Naan\n2. Pita\n\nPrint only the answer.")
        {'1': 'Naan', '2': 'Pita'}
    """
    return dict(_OPTION.findall(prompt.rpartition("\n\nPrint only the answer")[0]))


class CuisineRow(TableRow):
    """A question in one language."""

    qa_id: Identifier
    lang: Annotated[Label, one_of(LANGUAGES)]
    prompt_type: Annotated[Identifier, Field(pattern="^[1-4]$")]
    multi_choice_prompt: Text
    open_ended_prompt: Text
    multi_choice_answer: int
    answer: Text
    image_url: OptionalLabel = None
    image: OptionalLabel = None
    food_id: OptionalIdentifier = None
    prompt_id: OptionalIdentifier = None
    task: OptionalLabel = None
    lang_status: OptionalLabel = None

    @field_validator("multi_choice_answer")
    @classmethod
    def _is_an_option(cls, number: int, info: ValidationInfo) -> int:
        options = options_of(info.data.get("multi_choice_prompt", ""))
        if str(number) not in options:
            raise ValueError(f"Expected the number of an option in 'multi_choice_prompt', which has {len(options)}")
        return number

    @property
    def picture(self) -> str:
        """The name of its image: the user's file, else the address."""
        return self.image or self.image_url or ""


@cache
def question_table(set_name: SetName, config: str) -> Table[CuisineRow]:
    """Returns the table of a set's questions: one file, the authors' file for each language, or the Hub's."""
    files, size = f"*_{set_name}_eval_{config}", QUESTIONS[set_name, config] * len(LANGUAGES)
    return Table(
        model=CuisineRow,
        folder="worldcuisines",
        stems=(f"{set_name}_{config}", files),
        hub="worldcuisines/vqa",
        config=config,
        split=f"test_{set_name}",
        additions=("food-kb",),
        id="qa_id",
        id_of=lambda row: f"{row.qa_id} in {row.lang}",
        release=Release(rows=size),
        counts=lambda rows: [count(f"{set_name} set, {config}: rows", len(rows), size)],
    )


# Documents


def load(set_name: SetName, question_type: QuestionType, form: Format, settings: Settings) -> Documents:
    """Loads the questions of a type with their images; raises DataError if either can't be used."""
    found = question_table(set_name, question_type.config).rows(settings)
    data = found.fingerprint(exclude={"image", "image_url"})
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for row in found.rows:
        answers[row.qa_id][row.lang] = row.answer
    questions = {found.where(at): row for at, row in enumerate(found.rows) if row.prompt_type == question_type.code}
    if not questions:
        raise DataError(f"{found.origin}: found no row of type {question_type.code}, {question_type.title}.")
    dishes = Dishes.of(settings, found.folder, own=any(row.image for row in questions.values()))

    def asked(row: CuisineRow) -> dict[str, Any]:
        if form == "choices":
            return {"prompt": row.multi_choice_prompt, "answer": str(row.multi_choice_answer)}
        by_language = answers[row.qa_id]
        references = list(dict.fromkeys([row.answer, *by_language.values()]))
        english = by_language.get("en", row.answer)
        return {"prompt": row.open_ended_prompt, "answer": row.answer, "english": english, "references": references}

    documents = [
        {
            "id": f"{row.qa_id}-{row.lang}",
            "language": row.lang,
            "dish": row.food_id or row.picture,  # the same for all questions about it
            "image_id": row.picture,
            **asked(row),
            "type": question_type.name,
            "country": dishes.countries.get(row.picture, ""),
            "data": data,
        }
        for row in questions.values()
    ]
    images = dishes.images({where: row.picture for where, row in questions.items()}, settings.image_pixels)
    return Documents(documents, images, found.reading | dishes.reading)


# Scores

GROUPS = {
    "language": Groups(LANGUAGES),
    "question": Groups({kind.name: kind.title for kind in TYPES}, of=itemgetter("type"), shown=False),
    # "Korea" of the knowledge base is none of them: it may be either
    "country": Groups(places=lambda _: countries(), shown=False),
}
_PERCENT, _GROUPS = replace(PERCENT, digits=2), {"language": GROUPS["language"]}
_CHOICES = replace(ACCURACY, scale=_PERCENT, groups=_GROUPS)
AUTHORS = MeanScore(name="acc_authors", title="accuracy by the authors' reader", scale=_PERCENT)
UNPARSED = replace(choices.UNPARSED, scale=replace(_PERCENT, better="lower"))
ANY = MeanScore(name="contains", title="replies with the answer in any language", scale=_PERCENT, groups=_GROUPS)
DUAL = MeanScore(
    name="contains_dual", title="replies with the answer in the question's language or English", scale=_PERCENT
)
SINGLE = MeanScore(name="contains_single", title="replies with the answer in the question's language", scale=_PERCENT)
PUBLISHED: Mapping[Format, MeanScore] = {"choices": AUTHORS, "open": ANY}
"""The metrics that the authors publish, by form of answer."""


def authors_choice(reply: str) -> int | None:
    """Returns the option that the authors' script reads, the reply as a number or its first digits, offered or not.

    Where a reply has no digits, the script looks for its text among the options and compares the option's number, as a
    character, with an integer: so such a reply never counts (``evaluation/score/score.py``).

    Examples:
        >>> authors_choice(" 3 "), authors_choice("Option 2. Naan"), authors_choice("Naan")
        (3, 2, None)
    """
    try:
        return int(reply)
    except ValueError:
        digits = re.search(r"\d{1,4300}", reply)  # int() takes no more
        return int(digits.group()) if digits else None


def score_choice(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose: by ``read_choice``, and by the authors' reader."""
    by_authors = [authors_choice(answer_in(response)) == int(doc["answer"]) for response in responses]
    return score_options(
        doc,
        responses,
        options_of(doc["prompt"]),
        GROUPS,
        values=lambda _: {AUTHORS.name: sum(by_authors) / len(by_authors)},
        question=doc["prompt"],
        cluster=doc["dish"],
        image=doc["image_id"],
    )


def score_open(doc: Doc, responses: Sequence[str]) -> Score:
    """Looks in the responses for the answer in any language, in the question's or English, and in the question's."""
    texts = [answer_in(response).lower() for response in responses]

    def share(*answers: str) -> float:
        return sum(any(answer.lower() in text for answer in answers) for text in texts) / len(texts)

    return Score.of(
        doc,
        responses,
        GROUPS,
        question=doc["prompt"],
        references=doc["references"],
        cluster=doc["dish"],
        image=doc["image_id"],
        score=share(*doc["references"]),
        values={DUAL.name: share(doc["answer"], doc["english"]), SINGLE.name: share(doc["answer"])},
    )


# Tasks

_DECODING = Decoding(max_tokens=50)  # the authors' code
VARIANTS: Mapping[Format, Variant] = {
    "choices": Variant("", "options", "", _DECODING, metrics=(_CHOICES, AUTHORS, UNPARSED), score=score_choice),
    "open": Variant("_open", "open answers", "", _DECODING, metrics=(ANY, DUAL, SINGLE), score=score_open),
}
"""The forms of answer. The prompts are in the data."""


def group_name(set_name: SetName, form: Format) -> str:
    """Returns the name of the group of a set's tasks with a form of answer."""
    return f"worldcuisines{'_large' if set_name == 'large' else ''}{VARIANTS[form].suffix}"


def _entries(set_name: SetName, form: Format) -> Iterator[Entry]:
    name, variant = group_name(set_name, form), VARIANTS[form]
    about = f"dishes and where they are from; {variant.title}, {set_name} set"
    title, metrics = f"WorldCuisines, {set_name} set, {variant.title}", variant.facts["metrics"]
    yield Group(
        name=name,
        about=about,
        title=title,
        members=tuple(f"{name}_{kind.name}" for kind in TYPES),
        means=tuple(metric.name for metric in metrics),
        weight_by_size=False,  # as in the paper, each type weighs the same
    )
    for kind in TYPES:
        yield Task(
            name=f"{name}_{kind.name}",
            about=about,
            title=f"{title}: {kind.title}",
            languages=tuple(dict.fromkeys(code.partition("_")[0] for code in LANGUAGES)),  # registers aside
            metrics=lambda: metrics,
            data=DataSet((question_table(set_name, kind.config), KNOWLEDGE_BASE), partial(load, set_name, kind, form)),
            prompt=lambda doc: Prompt((Picture(), doc["prompt"])),
            score=variant.facts["score"],
            decoding=variant.decoding,
            shows_images=True,
            target=lambda doc: doc["answer"],
        )


class WorldCuisines(Benchmark):
    """WorldCuisines (Winata et al., 2025)."""

    name, title, paper = "worldcuisines", "WorldCuisines", "Winata et al., 2025"
    data = "Hub worldcuisines/vqa, images from worldcuisines/food-kb"
    made_from = ("Wikipedia", "Wikimedia Commons")
    groups, culture_field = GROUPS, "language"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a group for each set and form of answer, with a task for each type of question."""
        return [entry for set_name in SETS for form in VARIANTS for entry in _entries(set_name, form)]

    def check(self, settings: Settings) -> DataReport:
        """Checks the questions of both sets. Images, which all rows of a dish share, are checked by each run."""
        return check_tables(self.name, settings, [question_table(*part) for part in QUESTIONS])

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields each metric by type of question, as in the paper's tables, and the score by language."""
        for unit in numbers.units.values():
            form: Format = "open" if "_open" in unit.key else "choices"
            printed = {"form": form, "set": "large" if "_large" in unit.key else "small"}
            for statistic, metric in self.metrics_of(unit).items():
                is_published = metric is PUBLISHED[form] and len(unit.tasks) == len(TYPES)
                yield numbers.table(
                    f"{unit.key}_{statistic}_by_question",
                    f"{unit.title}: {metric.in_words}, by type of question",
                    numbers.by("question", unit.key, statistic, printed=printed, total="Average"),
                    notes=("Average: the mean over the types, each of which weighs the same.",),
                    papers=("worldcuisines_scores",) if is_published else (),
                )
        yield from super().tables(numbers)


BENCHMARK = WorldCuisines()
