"""Questions of tests, which a model must not be trained on: the same ones are left out, near duplicates are listed.

Two questions are the same if they are so without case, punctuation and width
(:func:`~culture_tasks.results.trained_on.question_fingerprint`), and near duplicates by
:mod:`culture_tasks.metrics.near_duplicates`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.overlaps import Question, questions_of
from culture_tasks.benchmarks.registry import benchmark_of, entries, tasks_below
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError
from culture_tasks.metrics.near_duplicates import near_duplicates
from culture_tasks.people.rated_responses import offered
from culture_tasks.preferences.ratings import RatedQuestion
from culture_tasks.results.trained_on import question_fingerprint
from culture_tasks.settings import Settings


class NearDuplicate(NamedTuple):
    """A question, by its fingerprint, that is much like an item of a test: the similarity is from 0.7 to 1."""

    question: str
    task: str
    item: str
    similarity: float


class Overlap(NamedTuple):
    """Questions that training data and tests share."""

    same: Mapping[str, frozenset[tuple[str, str]]]  # tasks and items that ask a question, by its fingerprint
    near: Sequence[NearDuplicate]  # of each question the nearest of each test, the most alike first


def usual_tests() -> list[Task]:
    """Returns the tests of the benchmarks whose rated responses models learn from."""
    names = dict.fromkeys(name for ratings in offered().values() for name in ratings.tests)
    return list(dict.fromkeys(task for name in names for task in tasks_below(name)))


def questions_of_tests(tasks: Iterable[Task], settings: Settings) -> tuple[list[Question], DataReading]:
    """Returns the questions of tests, and what these were read from."""
    questions: list[Question] = []
    reading = DataReading()
    for task in tasks:
        try:
            of_task, read_from = questions_of(task, settings)
        except DataError as error:
            raise type(error)(
                f"preferences: can't tell whether questions of {task.name} are among the training data: {error} "
                "(--hold-out none builds without looking.)"
            ) from None
        questions += of_task
        reading |= read_from
    return questions, reading


def overlap(questions: Sequence[RatedQuestion], tests: Sequence[Question]) -> Overlap:
    """Compares training questions with those of tests."""
    items: dict[str, set[tuple[str, str]]] = {}
    for test in tests:
        items.setdefault(question_fingerprint(test.text), set()).add((test.task, test.item))
    fingerprints = {question.fingerprint for question in questions}
    same = {fingerprint: frozenset(items[fingerprint]) for fingerprint in fingerprints & items.keys()}
    unmatched = [question for question in questions if question.fingerprint not in same]
    # The matches of a question come by their similarity, so that the first in a test is the nearest.
    nearest: dict[tuple[str, str], NearDuplicate] = {}
    for match in near_duplicates([question.text for question in unmatched], [test.text for test in tests]):
        name, test = unmatched[match.first].fingerprint, tests[match.second]
        nearest.setdefault((name, test.task), NearDuplicate(name, test.task, test.item, round(match.similarity, 3)))
    near = sorted(nearest.values(), key=lambda near: (-near.similarity, near.question, near.task, near.item))
    return Overlap(same, near)


def items_by_task(items: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Returns items of tests by task, with those of every task of the benchmark that asks of the same data."""
    items_of_tasks: dict[str, set[str]] = {}
    for name, of_task in itertools.groupby(sorted(items), itemgetter(0)):
        numbers, task = {item for _, item in of_task}, entries().get(name)
        tasks = [entry for entry in benchmark_of(name).entries() if isinstance(entry, Task)] if task else []
        sources = set(task.data.sources) if isinstance(task, Task) else set()
        for other in [entry.name for entry in tasks if sources & set(entry.data.sources)] or [name]:
            items_of_tasks.setdefault(other, set()).update(numbers)
    return {task: sorted(items_of_tasks[task]) for task in sorted(items_of_tasks)}
