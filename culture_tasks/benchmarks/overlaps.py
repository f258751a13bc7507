"""Questions that benchmarks share: the same ones, and ones that are much alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of
from culture_tasks.data.reading import DataReading
from culture_tasks.metrics.near_duplicates import near_duplicates
from culture_tasks.settings import Settings
from culture_tasks.text import tokens


class Question(NamedTuple):
    """A question of a task, with the item that records name."""

    task: str
    item: str
    text: str


class Overlap(NamedTuple):
    """The questions that two benchmarks share, with the numbers of different questions that each has."""

    benchmarks: tuple[str, str]
    sizes: tuple[int, int]
    same: Sequence[tuple[Question, Question]]  # but for case and punctuation
    alike: Sequence[tuple[Question, Question, float]]  # with their similarity, below 1


def questions_of(task: Task, settings: Settings) -> tuple[list[Question], DataReading]:
    """Returns the questions of a task, and what they were read from; raises DataError if its data can't be read."""
    documents = task.data.load(settings)
    questions = []
    for document in documents.rows:
        answered = task.score(document, [""])
        texts = [part for part in task.prompt(document).parts if isinstance(part, str)]
        questions.append(Question(task.name, answered.item, answered.question or " ".join(texts)))
    return questions, documents.reading


def shared_questions(tasks: Sequence[Task], settings: Settings) -> Iterator[Overlap]:
    """Yields the questions that each two benchmarks share; a question counts once, however many tasks ask it."""
    by_benchmark: dict[str, dict[str, Question]] = {}
    for task in tasks:
        questions = by_benchmark.setdefault(benchmark_of(task.name).name, {})
        for question in questions_of(task, settings)[0]:
            questions.setdefault(" ".join(tokens(question.text)) or question.text, question)
    for (first_name, first), (second_name, second) in itertools.combinations(by_benchmark.items(), 2):
        first_texts, second_texts = list(first), list(second)
        alike = [
            (first[first_texts[pair.first]], second[second_texts[pair.second]], min(round(pair.similarity, 3), 0.999))
            for pair in near_duplicates(first_texts, second_texts)
            if first_texts[pair.first] != second_texts[pair.second]
        ]
        same = [(first[text], second[text]) for text in first if text in second]
        yield Overlap((first_name, second_name), (len(first), len(second)), same, alike)
