"""CulturalBench: Easy, one question with four options, and Hard, four judgements a question."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

from culture_tasks.benchmarks.choices import ACCURACY, PERCENT, UNPARSED, filled, lettered, score_options, share
from culture_tasks.benchmarks.interface import (
    Benchmark,
    DataSet,
    Decoding,
    Doc,
    Documents,
    Entry,
    MeanScore,
    Score,
    Task,
)
from culture_tasks.benchmarks.likelihood import by_likelihood
from culture_tasks.benchmarks.reporting import Groups, names_in
from culture_tasks.benchmarks.tables import BenchmarkNumbers, metric_columns
from culture_tasks.benchmarks.tables import Table as ReportTable
from culture_tasks.data.checking import Count, count
from culture_tasks.data.rows import Identifier, Label, OptionalIdentifier, OptionalText, TableRow, Text, one_of
from culture_tasks.data.tables import Release, Table
from culture_tasks.errors import DataError
from culture_tasks.prompt_files import load as prompt_file
from culture_tasks.settings import Settings
from culture_tasks.vocabulary import places

_log = logging.getLogger(__name__)

QUESTIONS, OPTIONS = 1_227, 4
"""Questions of the released data (the paper's second version speaks of 1,696), and the options of each."""

COUNTRIES = Groups(names_in(__package__, "countries.txt"), places=places)
GROUPS = {"country": COUNTRIES}


class _QuestionRow(TableRow):
    data_idx: OptionalIdentifier = None
    question_idx: Identifier
    prompt_question: Text
    country: Annotated[Label, one_of(COUNTRIES)]

    def document(self, number: str, data: str, **fields: Any) -> dict[str, Any]:
        """Returns the row as a document with further fields."""
        question = {"question_id": self.question_idx, "country": self.country, "question": self.prompt_question}
        return {"id": f"{self.question_idx}{number}", **question, **fields, "data": data}


class EasyRow(_QuestionRow):
    """A question with its options."""

    prompt_option_a: Text
    prompt_option_b: Text
    prompt_option_c: Text
    prompt_option_d: Text
    answer: Annotated[Label, one_of("ABCD")]


class HardRow(_QuestionRow):
    """One option of a question, right or wrong. Some rows of the release have no option."""

    prompt_option: OptionalText = None
    answer: bool


def _options_of(rows: Sequence[HardRow]) -> Counter[str]:
    """Returns how many options each question has."""
    return Counter(row.question_idx for row in rows if row.prompt_option is not None)


def _hard_counts(rows: Sequence[HardRow]) -> Iterator[Count]:
    yield count("Hard: rows", len(rows), QUESTIONS * OPTIONS)
    yield count("Hard: rows without an option", sum(row.prompt_option is None for row in rows))
    complete = sum(number == OPTIONS for number in _options_of(rows).values())
    yield count("Hard: questions with four options, which are asked", complete)


EASY = Table(
    model=EasyRow,
    folder="culturalbench",
    stems=("CulturalBench-Easy", "easy"),
    hub="kellycyy/CulturalBench",
    config="CulturalBench-Easy",
    id="question_idx",
    release=Release(QUESTIONS),
    counts=lambda rows: [count("Easy: questions", len(rows), QUESTIONS)],
)
HARD = Table(
    model=HardRow,
    folder="culturalbench",
    stems=("CulturalBench-Hard", "hard"),
    hub="kellycyy/CulturalBench",
    config="CulturalBench-Hard",
    release=Release(QUESTIONS * OPTIONS),
    counts=_hard_counts,
)


def load_easy(settings: Settings) -> Documents:
    """Loads the questions with four options; raises DataError if they can't be used."""
    easy = EASY.rows(settings)
    data, letters = easy.fingerprint(), "abcd"
    documents = [
        row.document(
            "", data, options=[getattr(row, f"prompt_option_{letter}") for letter in letters], answer=row.answer
        )
        for row in easy.rows
    ]
    return Documents(documents, reading=easy.reading)


def load_hard(settings: Settings) -> Documents:
    """Loads the options of all questions that have four, each to be judged; raises DataError if they can't be used."""
    hard, documents = HARD.rows(settings), []
    data, options, numbers = hard.fingerprint(), _options_of(hard.rows), Counter[str]()
    for row in hard.rows:
        if options[row.question_idx] == OPTIONS:
            numbers[row.question_idx] += 1
            number = f"-{numbers[row.question_idx]}"
            documents.append(row.document(number, data, option=row.prompt_option, answer=str(row.answer)))
    if incomplete := {row.question_idx for row in hard.rows} - set(numbers):
        _log.warning(
            "%s: %d questions don't have four options and are left out: right judgements of fewer are easier.",
            *(hard.origin, len(incomplete)),
        )
    if not documents:
        raise DataError(f"{hard.origin}: found no question with four rows that have an option. Add the rows.")
    return Documents(documents, reading=hard.reading)


def all_right(scores: Sequence[float]) -> float:
    """Returns the lowest score of a question's options; NaN, which is none, where one of them has no score.

    Examples:
        >>> all_right([1.0, 1.0, 0.0, 1.0]), all_right([1.0, 1.0])
        (0.0, nan)
    """
    return min(scores) if len(scores) >= OPTIONS else math.nan


OF_QUESTIONS = replace(ACCURACY, groups=GROUPS)
"""Share of the questions that are answered right: in Hard, with all four options judged right."""

OF_ROWS = MeanScore(name="row_acc", title="accuracy of single options", scale=PERCENT)
"""Share of Hard's options that are judged right: 75 % for a model that always says "False"."""

SAID_TRUE = MeanScore(name="said_true", title="options called true", scale=replace(PERCENT, better=None, neutral=25.0))
"""Share of Hard's options that the model calls true; one in four is."""


def score_easy(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads which option the responses choose."""
    return score_options(
        doc,
        responses,
        lettered(doc["options"]),
        GROUPS,
        question=doc["question"],
        cluster=doc["question_id"],
        prompt=prompt_file(__package__, "easy.v1"),
    )


def score_hard(doc: Doc, responses: Sequence[str]) -> Score:
    """Reads whether the responses call an option true."""
    return score_options(
        doc,
        responses,
        {"True": "", "False": ""},
        GROUPS,
        values=lambda labels: {OF_ROWS.name: share(labels, doc["answer"]), SAID_TRUE.name: share(labels, "True")},
        question=f"{doc['question']}\n{doc['option']}",
        cluster=doc["question_id"],
        prompt=prompt_file(__package__, "hard.v1"),
    )


_EASY = Task(
    name="culturalbench_easy",
    title="CulturalBench Easy",
    about="customs and everyday life, four options",
    languages=("en",),
    metrics=lambda: (OF_QUESTIONS, UNPARSED),
    data=DataSet((EASY,), load_easy),
    prompt=filled(__package__, "easy.v1"),
    score=score_easy,
    decoding=Decoding(max_tokens=256),
    target=lambda doc: doc["answer"],
)
_HARD = replace(
    _EASY,
    name="culturalbench_hard",
    title="CulturalBench Hard",
    about="the same questions, each option judged true or false",
    metrics=lambda: (replace(OF_QUESTIONS, per_cluster=all_right), OF_ROWS, SAID_TRUE, UNPARSED),
    data=DataSet((HARD,), load_hard),
    prompt=filled(__package__, "hard.v1"),
    score=score_hard,
)
_CUE = "\nAnswer:"
TASKS = (
    _EASY,
    _HARD,
    by_likelihood(_EASY, lambda _: tuple("ABCD"), cue=_CUE),
    by_likelihood(_HARD, lambda _: ("True", "False"), cue=_CUE),
)


class CulturalBench(Benchmark):
    """CulturalBench (Chiu et al., 2024)."""

    name, title, paper, data = "culturalbench", "CulturalBench", "Chiu et al., 2024", "Hub kellycyy/CulturalBench"
    groups, culture_field = GROUPS, "country"

    def entries(self) -> Sequence[Entry]:
        """Returns the two tasks, and both by log-likelihood."""
        return TASKS

    def tables(self, numbers: BenchmarkNumbers) -> Iterator[ReportTable]:
        """Yields a table by country for each unit, and Easy beside Hard."""
        yield from super().tables(numbers)
        labels = {
            "score": "Questions",
            OF_ROWS.name: "Options",
            SAID_TRUE.name: "Called true",
            UNPARSED.name: "Unparsed",
        }
        yield numbers.table(
            "culturalbench",
            "CulturalBench: questions answered right in percent",
            metric_columns(self, numbers, labels, printed={"culturalbench_hard_score": {"form": "Hard"}}),
            papers=("culturalbench_abstract",),
            notes=(
                "Hard: a question counts if all of its four options are judged right. Options: the share of single "
                'options that are, which is 75 for a model that always says "False". One in four options is true.',
            ),
        )


BENCHMARK = CulturalBench()
