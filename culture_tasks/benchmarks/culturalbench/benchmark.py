"""CulturalBench as a benchmark: Easy, one question with four options, and Hard, four judgements a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.choices import by_likelihood, read_choice
from culture_tasks.benchmarks.culturalbench.documents import (
    COUNTRIES,
    EASY,
    HARD,
    OPTIONS,
    QUESTIONS,
    EasyRow,
    HardRow,
    contradictory,
    load_easy,
    load_hard,
    prompt_of,
)
from culture_tasks.benchmarks.interface import (
    Answered,
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Entry,
    MeanScore,
    Prompt,
    Scale,
    Task,
)
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport

PERCENT = Scale("percent", 0.0, 100.0, digits=1, times=100.0)
UNREAD = Scale("percent", 0.0, 100.0, better="lower", digits=1, times=100.0)
SHARE = Scale("percent", 0.0, 100.0, better=None, neutral=25.0, digits=1, times=100.0)

ACCURACY = "acc"
"""Share of the questions that are answered right: in Hard those of which all four options are judged right."""

OF_ROWS = "row_acc"
"""Share of Hard's options that are judged right: 75 % for a model that always says "False"."""

SAID_TRUE = "said_true"
"""Share of Hard's options that the model calls true; one in four is."""

UNPARSED = "unparsed"

_BY_COUNTRY = {"country": COUNTRIES}
_DECODING = Decoding(max_tokens=256)
_CUE = "\nAnswer:"
_NOTE = "Prompts as public re-implementations have them; decoding isn't known: greedy."


class CulturalBench(Benchmark):
    """CulturalBench (Chiu et al., 2024)."""

    name = "culturalbench"
    title = "CulturalBench"
    paper = "Chiu et al., 2024"
    data = "Hub kellycyy/CulturalBench"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the two tasks, and both by log-likelihood."""
        easy = Task(
            name="culturalbench_easy",
            title="CulturalBench Easy",
            about="customs and everyday life, four options",
            languages=("en",),
            metric=ACCURACY,
            metrics=_easy_metrics,
            data=DataSet((EASY,), load_easy),
            prompt=ask_easy,
            score=score_easy,
            decoding=_DECODING,
            target=lambda doc: doc["answer"],
            note=_NOTE,
        )
        hard = Task(
            name="culturalbench_hard",
            title="CulturalBench Hard",
            about="the same questions, each option judged true or false",
            languages=("en",),
            metric=ACCURACY,
            metrics=_hard_metrics,
            data=DataSet((HARD,), load_hard),
            prompt=ask_hard,
            score=score_hard,
            decoding=_DECODING,
            target=lambda doc: doc["answer"],
            note=_NOTE,
        )
        return (
            easy,
            hard,
            by_likelihood(easy, lambda _: OPTIONS, cue=_CUE),
            by_likelihood(hard, lambda _: ("True", "False"), cue=_CUE),
        )

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions of both forms."""
        easy = TableCheck(source=EASY, model=EasyRow, counts=_easy_counts)
        hard = TableCheck(source=HARD, model=HardRow, problems=contradictory, counts=_hard_counts)
        return check_tables(self.name, data_folder, [easy, hard])

    def report(self) -> BenchmarkReport:
        """Returns how it is reported."""
        from culture_tasks.benchmarks.culturalbench.report import REPORT

        return REPORT


@cache
def _easy_metrics() -> tuple[MeanScore, ...]:
    return (
        MeanScore(name=ACCURACY, title="accuracy", scale=PERCENT, groups=_BY_COUNTRY),
        MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
    )


@cache
def _hard_metrics() -> tuple[MeanScore, ...]:
    return (
        MeanScore(name=ACCURACY, title="accuracy", scale=PERCENT, groups=_BY_COUNTRY, per_cluster=min),
        MeanScore(name=OF_ROWS, title="accuracy of single options", scale=PERCENT),
        MeanScore(name=SAID_TRUE, title="options called true", scale=SHARE),
        MeanScore(name=UNPARSED, title="replies without a choice", scale=UNREAD),
    )


def ask_easy(doc: Doc) -> Prompt:
    """Returns the prompt of a question with four options."""
    options = dict(zip("abcd", doc["options"], strict=True))
    return Prompt((prompt_of("easy").fill({"question": doc["question"], **options}),))


def ask_hard(doc: Doc) -> Prompt:
    """Returns the prompt of an option."""
    return Prompt((prompt_of("hard").fill({"question": doc["question"], "option": doc["option"]}),))


def score_easy(doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads which option the responses choose. One that chooses none for certain is wrong, and counted too."""
    options = dict(zip(OPTIONS, doc["options"], strict=True))
    read = [read_choice(response, options) for response in responses]
    return _answered(doc, responses, f"{doc['answer']}. {options[doc['answer']]}", read, {})


def score_hard(doc: Doc, responses: Sequence[str]) -> Answered:
    """Reads whether the responses call an option true."""
    read = [read_choice(response, {"True": "", "False": ""}) for response in responses]
    values = {
        OF_ROWS: sum(label == doc["answer"] for label in read) / len(read),
        SAID_TRUE: sum(label == "True" for label in read) / len(read),
    }
    return _answered(doc, responses, doc["answer"], read, values)


def _answered(
    doc: Doc, responses: Sequence[str], reference: str, read: Sequence[str | None], values: Mapping[str, float]
) -> Answered:
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"] + (f"\n{doc['option']}" if "option" in doc else ""),
        references=(reference,),
        groups={"country": doc["country"]},
        cluster=doc["question_id"],
        data={"data": doc["data"]},
        prompt=prompt_of("hard" if "option" in doc else "easy"),
        labels=tuple(read),
        score=sum(label == doc["answer"] for label in read) / len(read),
        values={**values, UNPARSED: sum(label is None for label in read) / len(read)},
    )


def _easy_counts(rows: Sequence[EasyRow]) -> Iterator[Count]:
    yield Count("Easy: questions", str(len(rows)), str(QUESTIONS))
    yield Count("Easy: countries and regions", str(len({row.country for row in rows})), str(len(COUNTRIES)))


def _hard_counts(rows: Sequence[HardRow]) -> Iterator[Count]:
    options = Counter(row.question_idx for row in rows if row.prompt_option is not None)
    yield Count("Hard: rows", str(len(rows)), str(QUESTIONS * len(OPTIONS)))
    yield Count("Hard: questions", str(len({row.question_idx for row in rows})), str(QUESTIONS))
    yield Count("Hard: rows without an option", str(sum(row.prompt_option is None for row in rows)))
    whole = sum(count == len(OPTIONS) for count in options.values())
    yield Count("Hard: questions with four options, which are asked", str(whole))


BENCHMARK = CulturalBench()
