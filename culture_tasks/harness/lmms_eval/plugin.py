"""What lmms-eval loads through its entry points: makes our tasks and our model known to it.

lmms-eval has entry points for models, which it loads before it builds its task index, and none for tasks. So the hook
of a model entry point extends two methods of its ``TaskManager``: ``initialize_tasks``, to add our tasks to the index,
and ``load_task_or_group``, to check the data and the judge of what was asked for once, before anything else. Both call
the original.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from culture_tasks.catalog import TaskEntry, entries, is_available, task_file

_log = logging.getLogger(__name__)
_MARK = "_culture_tasks_extended"
_KNOWLEDGE_INSERTION = "culture_tasks.insertion.lmms_eval_model.KnowledgeInsertion"


def register() -> list[Any]:
    """Extends lmms-eval's task manager; safe to call again.

    Returns:
        The models that this package adds.
    """
    from lmms_eval.models.registry_v2 import ModelManifest
    from lmms_eval.tasks import TaskManager

    if not getattr(TaskManager, _MARK, False):
        TaskManager.initialize_tasks = _with_our_tasks(TaskManager.initialize_tasks)
        TaskManager.load_task_or_group = _with_checks(TaskManager.load_task_or_group)
        setattr(TaskManager, _MARK, True)
    return [ModelManifest("knowledge_insertion", chat_class_path=_KNOWLEDGE_INSERTION)]


def _with_our_tasks(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def initialize_tasks(self: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        index = original(self, *args, **kwargs)
        return {**task_index(), **index}

    return initialize_tasks


def _with_checks(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_task_or_group(self: Any, task_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        names = [task_list] if isinstance(task_list, str) else list(task_list or [])
        check_before_inference(name for name in names if isinstance(name, str))
        return original(self, task_list, *args, **kwargs)

    return load_task_or_group


def task_index() -> dict[str, dict[str, Any]]:
    """Returns our entries of lmms-eval's task index, made from the catalogue: no file is read at start-up."""
    return {name: _index_entry(entry) for name, entry in entries().items() if is_available(entry, "lmms_eval")}


def _index_entry(entry: TaskEntry) -> dict[str, Any]:
    if entry.kind == "tag":
        return {"type": "tag", "task": list(entry.members), "yaml_path": -1}
    path = str(task_file(entry, "lmms_eval"))
    return (
        {"type": "group", "task": -1, "yaml_path": path}
        if entry.kind == "group"
        else {"type": "task", "yaml_path": path}
    )


def check_before_inference(names: Iterable[str]) -> None:
    """Loads and checks the data sets of those names that are ours, each once.

    Raises:
        CultureTasksError: With one clear message, if anything asked for can't be run or graded.
    """
    from culture_tasks.harness.loading import load_for_evaluation

    known: Mapping[str, TaskEntry] = entries()
    datasets = (dataset for name in names if name in known for dataset in known[name].datasets)
    for dataset in dict.fromkeys(datasets):
        load_for_evaluation(dataset)
