"""Questions of tests, which a model must not be trained on: the same ones are left out, near duplicates are listed.

Two questions are the same if they are so without case, punctuation and width
(:func:`~culture_tasks.results.training_manifest.normalised`), and near duplicates by
:mod:`culture_tasks.metrics.near_duplicates`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.overlaps import Question, questions_of
from culture_tasks.benchmarks.registry import benchmark_of, entries, tasks_below
from culture_tasks.data.reading import DataReading
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError, nearest
from culture_tasks.metrics.near_duplicates import near_duplicates
from culture_tasks.people.rated_responses import offered
from culture_tasks.preferences.rated_questions import RatedQuestion
from culture_tasks.results.training_manifest import NearDuplicate, Rule, question_fingerprint
from culture_tasks.settings import Settings

NOTHING = "none"
"""In place of a task's name: nothing is held out."""


class Overlap(NamedTuple):
    """Questions that training data and tests share.

    ``same`` has tasks and items that ask the same question, by its fingerprint; ``near`` the questions that are much
    like one of a test, with the nearest of each test, the most alike first; ``tests`` the tests' questions, by task and
    item.
    """

    same: Mapping[str, frozenset[tuple[str, str]]]
    near: Sequence[NearDuplicate]
    tests: Mapping[tuple[str, str], str]


def hold_out_tests(
    names: Sequence[str], rule: Rule, settings: Settings
) -> tuple[tuple[str, ...], list[Question], DataReading]:
    """Returns the tasks whose questions are held out, the questions of all tests, and what these were read from.

    The names are of tasks and groups that the user wants held out, beside the default; ``none`` is nothing at all.
    """
    if NOTHING in names:
        if len(names) > 1:
            raise SettingsError(f"preferences: --hold-out {NOTHING} and another task. Leave out one of them.")
        return (), [], DataReading()
    always = _tasks(names)
    usual = _tasks(name for ratings in offered().values() for name in ratings.tests)
    tasks = always | usual
    questions: list[Question] = []
    reading = DataReading()
    for task in tasks.values():
        try:
            of_task, read_from = questions_of(task, settings)
        except DataUnavailableError as error:
            raise DataUnavailableError(
                f"preferences: can't tell whether questions of {task.name} are among the training data: {error} "
                f"(--hold-out {NOTHING} builds without looking.)"
            ) from None
        except DataError as error:
            raise DataError(f"preferences: questions of {task.name} are held out, but: {error}") from None
        questions += of_task
        reading |= read_from
    return tuple(always if rule.test_questions else tasks), questions, reading


def _tasks(names: Iterable[str]) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for name in names:
        fitting = fnmatch.filter(entries(), name)
        if not fitting:
            raise SettingsError(
                f"preferences: --hold-out {name}: no such task or group.{nearest(name, entries())} "
                "`culture-tasks tasks` lists them."
            )
        tasks |= {task.name: task for entry in fitting for task in tasks_below(entry)}
    return tasks


def overlap(questions: Sequence[RatedQuestion], tests: Sequence[Question]) -> Overlap:
    """Compares training questions with those of tests."""
    items: dict[str, set[tuple[str, str]]] = {}
    for test in tests:
        items.setdefault(question_fingerprint(test.text), set()).add((test.task, test.item))
    fingerprints = {question.fingerprint for question in questions}
    same = {fingerprint: frozenset(items[fingerprint]) for fingerprint in fingerprints & items.keys()}
    unmatched = [question for question in questions if question.fingerprint not in same]
    # The matches of a question come by their similarity, so that the first in a test is the nearest.
    duplicates: dict[tuple[str, str], NearDuplicate] = {}
    for match in near_duplicates([question.text for question in unmatched], [test.text for test in tests]):
        question, test, similarity = unmatched[match.first].fingerprint, tests[match.second], round(match.similarity, 3)
        duplicate = NearDuplicate(question=question, task=test.task, item=test.item, similarity=similarity)
        duplicates.setdefault((question, test.task), duplicate)
    near = sorted(duplicates.values(), key=lambda near: (-near.similarity, near.question, near.task, near.item))
    return Overlap(same, near, {(test.task, test.item): test.text for test in tests})


def items_by_task(items: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Returns items of tests by task, with those of every task of the benchmark that asks of the same data."""
    items_of_tasks: dict[str, set[str]] = {}
    for task, item in items:
        for name in _tasks_with_same_data(task):
            items_of_tasks.setdefault(name, set()).add(item)
    return {task: tuple(sorted(items_of_tasks[task])) for task in sorted(items_of_tasks)}


@cache
def _tasks_with_same_data(name: str) -> list[str]:
    task = entries().get(name)
    if not isinstance(task, Task):
        return [name]
    tasks = [entry for entry in benchmark_of(name).entries() if isinstance(entry, Task)]
    return [entry.name for entry in tasks if set(entry.data.sources) & set(task.data.sources)]
