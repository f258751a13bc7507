"""Documents as the harnesses want them: a ``datasets.Dataset``, checked; and the check of the judge that grades them.

They are two steps, since a harness says only after loading that a run predicts and nobody grades (``--predict_only``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.benchmarks.registry import DataRead, benchmark_of, reading_data, task_named
from culture_tasks.harness.scoring import OWN_DATA, scorer_of
from culture_tasks.harness.session import current_session, renew_session
from culture_tasks.harness.shards import TaskShard, task_shard
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    import datasets

_log = logging.getLogger(__name__)

_loaded: dict[tuple[str, Path | None], datasets.Dataset] = {}
_whole: dict[tuple[str, Path | None], datasets.Dataset] = {}
_shards: dict[str, TaskShard | None] = {}
_read: dict[str, DataRead] = {}
_ahead: dict[str, tuple[Settings, datasets.Dataset]] = {}
_to_grade: dict[str, Documents] = {}
_own_data_told: set[tuple[str, Path | None]] = set()
"""The benchmarks and data folders whose own data a warning has named already."""

_lock = threading.Lock()


def load_ahead(names: Iterable[str]) -> None:
    """Loads and checks the documents of a run before its model is loaded; :func:`load_for_evaluation` then has them.

    Args:
        names: The tasks; each is loaded once. Those of an earlier run are forgotten.

    Raises:
        CultureTasksError: As ``load_for_evaluation``, for the first that can't be used.
    """
    _ahead.clear()
    loaded_ahead = {}
    for name in dict.fromkeys(names):
        data = load_for_evaluation(name)
        loaded_ahead[name] = (current_session().settings, data)
    _ahead.update(loaded_ahead)


def load_for_evaluation(name: str) -> datasets.Dataset:
    """Loads and checks the documents of a task. What :func:`load_ahead` has loaded with the same settings stays.

    Returns:
        The documents of the shard that ``CULTURE_SHARD`` names; all of the task's if it names none.

    Raises:
        DataError: If the data can't be used.
        SettingsError: If an environment variable has a value that is not allowed, or a task has too few clusters for
            so many shards.
    """
    session = renew_session()
    task = task_named(name)
    settings, data = _ahead.get(name, (None, None))
    if data is not None and settings == session.settings:
        return data
    with reading_data(session.settings) as read:
        documents = task.data.load(session.settings)
    if read.own:
        place = benchmark_of(name).name, session.settings.data_folder
        if place not in _own_data_told:
            _own_data_told.add(place)
            _log.warning("%s: own data, not the benchmark's release (%s: %s)", place[0], *next(iter(read.own.items())))
        documents = replace(documents, rows=[{**row, OWN_DATA: True} for row in documents.rows])
    whole = data = _as_dataset(documents)
    shard = None
    if session.settings.shard is not None:
        number, of = session.settings.shard
        shard = task_shard(name, documents.rows, number=number, of=of)
        images = None if documents.images is None else documents.images.select(shard.places)
        documents = Documents([documents.rows[place] for place in shard.places], images)
        data = _as_dataset(documents)
    key = name, session.settings.data_folder
    with _lock:
        if scorer_of(name).is_judged:
            _to_grade[name] = documents
        _loaded[key], _whole[key] = data, whole
        _shards[name], _read[name] = shard, read
    return data


def data_read(name: str) -> DataRead:
    """Returns what a task's documents were last made of."""
    return _read.get(name, DataRead({}, {}))


def shard_of(name: str) -> TaskShard | None:
    """Returns the shard that a task's documents are; None where they are all of them."""
    return _shards.get(name)


def loaded(name: str) -> datasets.Dataset:
    """Returns the documents of a task that this process has loaded, loading them if it hasn't."""
    key = (name, current_session().settings.data_folder)
    return _loaded[key] if key in _loaded else load_for_evaluation(name)


def all_documents(name: str) -> datasets.Dataset:
    """Returns all documents of a task, those of other shards too: few-shot examples are among them."""
    loaded(name)
    return _whole[name, current_session().settings.data_folder]


def _as_dataset(documents: Documents) -> datasets.Dataset:
    from culture_tasks.harness.decoded import DecodedDataset

    return DecodedDataset(documents.rows, documents.images)


def check_judge(name: str | None) -> None:
    """Makes sure, before any inference, that the session's judge can grade a task; once for each loading.

    Args:
        name: The task; None, and one that no judge grades, needs no judge.

    Raises:
        JudgeError: If nobody can grade.
    """
    if name is None or name not in _to_grade:
        return
    documents, session = _to_grade[name], current_session()
    for model in dict.fromkeys(rubric.model for rubric in benchmark_of(name).rubrics()):
        # One after the other, since a judge without an endpoint looks at none of them.
        items = (item for doc in documents.rows if (item := scorer_of(name).expected(doc)) and item[0].model == model)
        if first := next(items, None):
            session.judge(model).check(chain([first], items))
    del _to_grade[name]
