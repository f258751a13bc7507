"""Documents as the harnesses want them: a ``datasets.Dataset``, checked; and the check of the judge that grades them.

They are two steps, since a harness says only after loading that a run predicts without grading (``--predict_only``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.interface import Documents
from culture_tasks.benchmarks.registry import benchmark_of, check_revisions, task_named
from culture_tasks.harness.records import OWN_DATA, scorer_of
from culture_tasks.harness.session import current_session, renew_session
from culture_tasks.harness.subsets import Subset, draw_subset
from culture_tasks.judges.selection import refuse_in_a_run
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    import datasets

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LoadedTask:
    """The documents of a task, or of its subset, and the settings that they were loaded with."""

    settings: Settings
    documents: Documents
    data: datasets.Dataset  # the same documents
    all_data: datasets.Dataset  # all of the task's, among which few-shot examples are
    subset: Subset | None
    needs_judge: bool  # whether a judge grades them and still has to be checked
    is_ahead: bool = False  # whether load_ahead has loaded them


_tasks: dict[str, LoadedTask] = {}


def load_ahead(names: Iterable[str]) -> None:
    """Loads and checks the documents of a run before its model is loaded; :func:`load_for_evaluation` then has them."""
    for task in _tasks.values():
        task.is_ahead = False
    for name in dict.fromkeys(names):
        load_for_evaluation(name)
        _tasks[name].is_ahead = True


def load_for_evaluation(name: str) -> datasets.Dataset:
    """Loads and checks the documents of a task, or of the subset of it that the settings name.

    Documents that :func:`load_ahead` has loaded with the same settings stay.
    """
    from culture_tasks.harness.decoded import DecodedDataset

    settings = renew_session().settings
    if name in _tasks and _tasks[name].is_ahead and _tasks[name].settings == settings:
        return _tasks[name].data
    check_revisions(settings)
    documents = task_named(name).data.load(settings)
    if differences := documents.reading.differences:
        _warn_of_own_data(benchmark_of(name).name, settings.data_folder, *next(iter(differences.items())))
        documents = replace(documents, rows=[{**row, OWN_DATA: True} for row in documents.rows])
    all_data = data = DecodedDataset(documents.rows, documents.images)
    subset = None
    if settings.subset is not None:
        documents, subset = draw_subset(name, documents, *settings.subset)
        data = DecodedDataset(documents.rows, documents.images)
    _tasks[name] = LoadedTask(
        settings=settings,
        documents=documents,
        data=data,
        all_data=all_data,
        subset=subset,
        needs_judge=scorer_of(name).is_judged,
    )
    return data


@cache
def _warn_of_own_data(benchmark: str, folder: Path | None, file: str, difference: str) -> None:
    """Says once for each benchmark, data folder and first file that the data aren't the benchmark's release."""
    del folder
    _log.warning("%s: own data, not the benchmark's release (%s: %s)", benchmark, file, difference)


def loaded_task(name: str | None) -> LoadedTask | None:
    """Returns the documents of a task that this process has loaded last; None if it has loaded none, and for others."""
    return _tasks.get(name or "")


def check_judge(name: str | None) -> None:
    """Makes sure, before any inference, that the session's judge can grade a task that needs one; once a loading."""
    task = loaded_task(name)
    if name is None or task is None or not task.needs_judge:
        return
    rows, scorer, session = task.documents.rows, scorer_of(name), current_session()
    refuse_in_a_run(session.settings)
    for model in dict.fromkeys(rubric.model for rubric in benchmark_of(name).rubrics()):
        # One after the other, since a judge without an endpoint looks at none of them.
        items = (item for doc in rows if (item := scorer.expected(doc)) and item[0].model == model)
        if first := next(items, None):
            session.judge(model).check(chain([first], items))
    task.needs_judge = False
