"""The plug-in that lmms-eval loads through its entry points: makes our tasks and our model known to it.

lmms-eval has entry points for models, which it loads before it builds its task index, and none for tasks. So the hook
of a model entry point extends three methods of its ``TaskManager``, which all call the original:

* ``initialize_tasks`` adds our tasks to the index.
* ``match_tasks``, which lmms-eval's commands alone call, checks the data before the model is loaded, and has
  ``simple_evaluate`` check engine and judge then. For an exception these commands print a traceback and end with status
  0, so ours end the process: one message, status 1.
* ``load_task_or_group`` extends lmms-eval's results and its vLLM models, and tells our task class the model's type. A
  program that calls it gets the exception of a task whose data can't be used.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

from culture_tasks.benchmarks.interface import Group, Tag
from culture_tasks.benchmarks.registry import cultures, entries, in_harness, task_file, tasks_below
from culture_tasks.errors import CultureTasksError
from culture_tasks.harness.extending import extend

_KNOWLEDGE_INSERTION = "culture_tasks.harness.lmms_eval.knowledge_insertion.KnowledgeInsertionModel"


def register() -> list[Any]:
    """Extends lmms-eval's task manager, once, and returns the models that this package adds."""
    from lmms_eval.models.registry_v2 import ModelManifest
    from lmms_eval.tasks import TaskManager

    extend(TaskManager, "initialize_tasks", _with_our_tasks)
    extend(TaskManager, "match_tasks", _with_data_loaded_ahead)
    extend(TaskManager, "load_task_or_group", _with_task_type)
    return [ModelManifest("knowledge_insertion", chat_class_path=_KNOWLEDGE_INSERTION)]


def _with_our_tasks(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def initialize_tasks(self: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        ours: dict[str, dict[str, Any]] = {}
        with contextlib.suppress(CultureTasksError):  # it comes up again when tasks are matched or loaded
            ours = task_index()
        return {**ours, **original(self, *args, **kwargs)}

    return initialize_tasks


def _with_data_loaded_ahead(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def match_tasks(self: Any, *args: Any, **kwargs: Any) -> list[str]:
        from culture_tasks.harness.lmms_eval.extensions import extend_commands
        from culture_tasks.harness.loading import load_ahead

        global _in_a_command  # the exception that lmms-eval doesn't catch has to be told from a program's own
        _in_a_command = True
        with exit_on_error():
            entries()
            names = original(self, *args, **kwargs)
            load_ahead(our_tasks(names))
            extend_commands()
        return names

    return match_tasks


_in_a_command = False


def in_a_command() -> bool:
    """Whether lmms-eval's own command runs in this process, rather than a program that calls it as a library."""
    return _in_a_command


@contextlib.contextmanager
def exit_on_error() -> Iterator[None]:
    """Ends a command of lmms-eval with one message and status 1 where an error of ours comes up inside.

    A program that calls lmms-eval as a library gets the error itself.
    """
    try:
        yield
    except CultureTasksError as error:
        if not _in_a_command:
            raise
        raise SystemExit(f"culture-tasks: error: {error}") from None


task_type: ContextVar[str] = ContextVar("task_type", default="simple")
"""The type of model that lmms-eval is loading tasks for, which it doesn't tell a task's class."""


def _with_task_type(original: Callable[..., Any]) -> Callable[..., Any]:
    def load_task_or_group(self: Any, task_list: Any = None, kind: str = "simple", **kwargs: Any) -> Any:
        from culture_tasks.harness.lmms_eval.extensions import extend_evaluation

        token = task_type.set(kwargs.pop("task_type", kind))
        try:
            with exit_on_error():
                extend_evaluation()
                return original(self, task_list, task_type.get(), **kwargs)
        finally:
            task_type.reset(token)

    return load_task_or_group


def task_index() -> dict[str, dict[str, Any]]:
    """Returns our entries of lmms-eval's task index, made from the benchmarks: no task file is read at start-up."""
    index: dict[str, dict[str, Any]] = {}
    if cultures():
        from culture_tasks.harness.task_files import write_task_files_of_cultures

        write_task_files_of_cultures()
    for name, entry in entries().items():
        if not in_harness(entry, "lmms_eval"):
            continue
        if isinstance(entry, Tag):
            index[name] = {"type": "tag", "task": list(entry.members), "yaml_path": -1}
        else:
            kind = {"type": "group", "task": -1} if isinstance(entry, Group) else {"type": "task"}
            index[name] = {**kind, "yaml_path": str(task_file(entry, "lmms_eval"))}
    return index


def our_tasks(names: Iterable[Any]) -> list[str]:
    """Returns our tasks below these names, each once; a program may give tasks that aren't names."""
    ours = [name for name in names if isinstance(name, str) and name in entries()]
    return list(dict.fromkeys(task.name for name in ours for task in tasks_below(name)))
