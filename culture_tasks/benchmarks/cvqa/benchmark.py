"""CVQA as a benchmark: in the local language and in English, by the prompts of two suites."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Literal

from culture_tasks.benchmarks.choices import read_choice
from culture_tasks.benchmarks.cvqa.documents import (
    ALIASES,
    LANGUAGES,
    OPTIONS,
    PAIRS,
    QUESTIONS,
    SOURCE,
    QuestionRow,
    load,
)
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    ComputedScore,
    DataSet,
    Decoding,
    Doc,
    Entry,
    MeanScore,
    Metric,
    Picture,
    Prompt,
    Scale,
    Task,
)
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images
from culture_tasks.data.sources import folder_of
from culture_tasks.data.tables import RowTable
from culture_tasks.prompt_files import PromptFile
from culture_tasks.prompt_files import load as prompt_file

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=1, times=100.0)

ACCURACY = "acc"
MACRO = "acc_macro"
"""Mean of the accuracies of the pairs of language and country: the published values are of this kind."""

UNPARSED = "unparsed"

Suite = Literal["pangea", "vlmevalkit"]

_TASKS: tuple[tuple[str, Suite, bool, str], ...] = (
    ("cvqa", "pangea", False, "asked in the local language"),
    ("cvqa_en", "pangea", True, "asked in English"),
    ("cvqa_vlmevalkit", "vlmevalkit", False, "asked in the local language, VLMEvalKit's prompt"),
    ("cvqa_en_vlmevalkit", "vlmevalkit", True, "asked in English, VLMEvalKit's prompt"),
)
"""Name, suite of the prompt, whether it asks in English, and what it is about of each task."""


class Cvqa(Benchmark):
    """CVQA (Romero et al., 2024)."""

    name = "cvqa"
    title = "CVQA"
    paper = "Romero et al., 2024"
    data = "Hub afaji/cvqa"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks."""
        return tuple(
            Task(
                name=name,
                about=f"four options about an image, {about}",
                title=f"{self.title}, {about}",
                languages=("en",) if english else LANGUAGES,
                metric=ACCURACY,
                metrics=_metrics,
                data=DataSet((SOURCE,), partial(load, english=english)),
                prompt=partial(ask, suite),
                score=partial(score, suite),
                decoding=Decoding(max_tokens=16),
                shows_images=True,
                target=lambda doc: doc["answer"],
                note="Decoding: Pangea's suite.",
            )
            for name, suite, english, about in _TASKS
        )

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions and their images."""

        def problems(table: RowTable, rows: Mapping[int, QuestionRow]) -> Iterator[str]:
            names = [row.image for row in rows.values()]
            yield from broken_images(table.part(list(rows)), names, folder_of(SOURCE, data_folder))

        questions = TableCheck(
            source=SOURCE, model=QuestionRow, aliases=ALIASES, id="id", problems=problems, counts=_counts
        )
        return check_tables(self.name, data_folder, [questions])

    def report(self) -> BenchmarkReport:
        """Returns how it is reported."""
        from culture_tasks.benchmarks.cvqa.report import REPORT

        return REPORT


@cache
def _metrics() -> tuple[Metric, ...]:
    return (
        MeanScore(name=ACCURACY, title="accuracy", scale=PERCENT),
        ComputedScore(name=MACRO, title="accuracy, mean over pairs", scale=PERCENT, value=macro),
        MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
    )


def macro(values: Sequence[tuple[str, float]]) -> float:
    """Returns the mean over pairs of their mean scores, from pairs and scores."""
    by_pair: dict[str, list[float]] = defaultdict(list)
    for pair, value in values:
        by_pair[pair].append(value)
    return fmean(map(fmean, by_pair.values())) if by_pair else float("nan")


def prompt_of(suite: Suite) -> PromptFile:
    """Returns the template of a suite."""
    return prompt_file(__package__, f"{suite}.v1")


def ask(suite: Suite, doc: Doc) -> Prompt:
    """Returns the prompt of a question, behind its image."""
    options = dict(zip("abcd", doc["options"], strict=True))
    return Prompt((Picture(), prompt_of(suite).fill({"question": doc["question"], **options})))


def score(suite: Suite, doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads which option the responses choose. One that chooses none for certain is wrong, and counted too."""
    options = dict(zip(OPTIONS, doc["options"], strict=True))
    labels = [read_choice(response, options) for response in responses]
    right = sum(label == doc["answer"] for label in labels) / len(labels)
    pair = f"{doc['language']} ({doc['country']})"
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=(f"{doc['answer']}. {options[doc['answer']]}",),
        groups={
            "pair": pair,
            "language": doc["language"],
            "country": doc["country"],
            "category": doc["category"],
        },
        cluster=doc["image_id"],
        image=doc["image_id"],
        data={"data": doc["data"]},
        prompt=prompt_of(suite),
        facts={"license": doc["license"]} if doc["license"] else {},
        labels=tuple(labels),
        score=right,
        values={MACRO: [pair, right], UNPARSED: sum(label is None for label in labels) / len(labels)},
    )


def _counts(rows: Sequence[QuestionRow]) -> Iterator[Count]:
    yield Count("questions", str(len(rows)), str(QUESTIONS))
    yield Count("pairs of language and country", str(len({row.subset for row in rows})), str(PAIRS))
    for number, letter in enumerate(OPTIONS):
        yield Count(f"right answer {letter}", str(sum(row.label == number for row in rows)))
    for name, count in Counter(row.license or "none" for row in rows).most_common():
        yield Count(f"licence {name}", str(count))


BENCHMARK = Cvqa()
