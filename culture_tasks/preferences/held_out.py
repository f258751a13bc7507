"""Questions of tests, which a model must not be trained on: the same ones are left out, those much like one are listed.

Two questions are the same if they are so without case, punctuation and width
(:func:`~culture_tasks.results.training_manifest.normalised`). They are near duplicates if at least 70 % of their words
and pairs of neighbouring words, taken together, are in both (Jaccard's index); a character is a word in scripts without
spaces.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import benchmark_of, entries, tasks_below
from culture_tasks.errors import DataError, DataUnavailableError, SettingsError, nearest
from culture_tasks.people.rated_responses import offered
from culture_tasks.preferences.rated_questions import RatedQuestion
from culture_tasks.results.training_manifest import NearDuplicate, Rule, normalised, question_fingerprint
from culture_tasks.settings import Settings
from culture_tasks.text import tokens

NOTHING = "none"
"""In place of a task's name: nothing is held out."""

LEAST_SIMILARITY = 0.7

_AT_ONCE = 500
"""Questions that are compared with those of tests together: the product of matrices has a cell for each two."""


class HeldOut(NamedTuple):
    """A question of a test, with the task that asks it and its item, as records name it."""

    task: str
    item: str
    text: str


class Overlap(NamedTuple):
    """What training questions and tests share.

    ``same`` has tasks and items that ask the same question, by its fingerprint; ``near`` the questions that are much
    like one of a test, with the nearest of each test, the most alike first; ``tests`` the tests' questions, by task and
    item.
    """

    same: Mapping[str, frozenset[tuple[str, str]]]
    near: Sequence[NearDuplicate]
    tests: Mapping[tuple[str, str], str]


def held_out_by(names: Sequence[str], rule: Rule, settings: Settings) -> tuple[tuple[str, ...], list[HeldOut]]:
    """Returns the tasks whose questions are held out, and the questions of all tests that are looked for.

    The names are of tasks and groups that the user wants held out, beside the default; ``none`` is nothing at all.
    """
    if NOTHING in names:
        if len(names) > 1:
            raise SettingsError(f"preferences: --hold-out {NOTHING} and another task. Leave out one of them.")
        return (), []
    always = _tasks(names)
    usual = _tasks(name for each in offered().values() for name in each.tests)
    tasks = always | usual
    held_out = always if rule.test_questions else tasks
    return tuple(held_out), [question for task in tasks.values() for question in questions_of(task, settings)]


def _tasks(names: Iterable[str]) -> dict[str, Task]:
    """Returns the tasks that are named, those of groups included."""
    found: dict[str, Task] = {}
    for name in names:
        if name not in entries():
            raise SettingsError(
                f"preferences: --hold-out {name}: no such task or group.{nearest(name, entries())} "
                "`culture-tasks tasks` lists them."
            )
        found |= {task.name: task for task in tasks_below(name)}
    return found


def questions_of(task: Task, settings: Settings) -> Iterator[HeldOut]:
    """Yields the questions of a task."""
    try:
        documents = task.data.load(settings).rows
    except DataUnavailableError as error:
        raise DataUnavailableError(
            f"preferences: can't tell whether questions of {task.name} are among those to train on: {error} "
            f"(--hold-out {NOTHING} builds without looking.)"
        ) from None
    except DataError as error:
        raise DataError(f"preferences: questions of {task.name} are held out, but: {error}") from None
    for document in documents:
        record = task.score(document, [""])
        text = record.question or " ".join(part for part in task.prompt(document).parts if isinstance(part, str))
        yield HeldOut(task.name, record.item, text)


def overlap(questions: Sequence[RatedQuestion], tests: Sequence[HeldOut]) -> Overlap:
    """Compares training questions with those of tests."""
    items: dict[str, set[tuple[str, str]]] = {}
    for test in tests:
        items.setdefault(question_fingerprint(test.text), set()).add((test.task, test.item))
    asked = {question.fingerprint for question in questions}
    same = {fingerprint: frozenset(items[fingerprint]) for fingerprint in asked & items.keys()}
    others = [question for question in questions if question.fingerprint not in same]
    near = sorted(_near(others, tests), key=lambda each: (-each.similarity, each.question, each.task, each.item))
    return Overlap(same, near, {(test.task, test.item): test.text for test in tests})


def _near(questions: Sequence[RatedQuestion], tests: Sequence[HeldOut]) -> Iterator[NearDuplicate]:
    """Yields near duplicates, of each question the nearest in each test.

    Parts are counted by products of matrices with a row per question and a column per part.
    """
    if not questions or not tests:
        return
    import numpy as np

    test_parts = [_parts(test.text) for test in tests]
    columns = {part: column for column, part in enumerate(dict.fromkeys(itertools.chain(*test_parts)))}
    test_rows = _matrix(test_parts, columns).T.tocsc()
    test_sizes = np.array([len(parts) for parts in test_parts])
    _, tasks = np.unique([test.task for test in tests], return_inverse=True)
    for start in range(0, len(questions), _AT_ONCE):
        some = questions[start : start + _AT_ONCE]
        some_parts = [_parts(question.text) for question in some]
        shared = (_matrix(some_parts, columns) @ test_rows).tocoo()
        sizes = np.array([len(parts) for parts in some_parts])
        similarity = shared.data / (sizes[shared.row] + test_sizes[shared.col] - shared.data)
        near = np.flatnonzero(similarity >= LEAST_SIMILARITY)
        near = near[np.lexsort((shared.col[near], -similarity[near]))]
        pairs = shared.row[near].astype(np.int64) * len(tests) + tasks[shared.col[near]]
        for place in near[np.unique(pairs, return_index=True)[1]]:
            test, question = tests[shared.col[place]], some[shared.row[place]].fingerprint
            alike = round(float(similarity[place]), 3)
            yield NearDuplicate(question=question, task=test.task, item=test.item, similarity=alike)


def _parts(text: str) -> set[str]:
    words = tokens(text) or [normalised(text)]
    return {*words, *(f"{one} {after}" for one, after in itertools.pairwise(words))}


def _matrix(rows: Sequence[set[str]], columns: Mapping[str, int]) -> Any:
    from scipy.sparse import csr_matrix

    places = [[columns[part] for part in parts if part in columns] for parts in rows]
    indices = list(itertools.chain(*places))
    ends = [0, *itertools.accumulate(map(len, places))]
    return csr_matrix(([1] * len(indices), indices, ends), shape=(len(rows), len(columns)))


def items_by_task(items: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Returns items of tests by task, with those of every task of the benchmark that asks of the same data."""
    found: dict[str, set[str]] = {}
    for task, item in items:
        for name in _of_same_data(task):
            found.setdefault(name, set()).add(item)
    return {task: tuple(sorted(found[task])) for task in sorted(found)}


@cache
def _of_same_data(name: str) -> list[str]:
    task = entries().get(name)
    if not isinstance(task, Task):
        return [name]
    tasks = [each for each in benchmark_of(name).entries() if isinstance(each, Task)]
    return [each.name for each in tasks if set(each.data.sources) & set(task.data.sources)]
