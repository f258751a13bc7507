"""What lmms-eval loads through its entry points: makes our tasks and our model known to it.

lmms-eval has entry points for models, which it loads before it builds its task index, and none for tasks. So the hook
of a model entry point extends three methods of its ``TaskManager``, which all call the original:

* ``initialize_tasks`` adds our tasks to the index.
* ``match_tasks``, which lmms-eval's commands alone call, checks the data before the model is loaded, and has
  ``simple_evaluate`` check engine and judge then. For an exception these commands print a traceback and end with status
  0, so ours end the process: one message, status 1.
* ``load_task_or_group`` extends lmms-eval's results, its tasks and its vLLM models, and checks the data where a program
  calls ``simple_evaluate``, which gets the exception. A task checks the judge before it builds its requests.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from culture_tasks.benchmarks.interface import Group, Tag
from culture_tasks.benchmarks.registry import entries, in_harness, task_file, tasks_below
from culture_tasks.errors import CultureTasksError, SettingsError

_VLLM = {"lmms_eval.models.chat.vllm": "VLLM", "lmms_eval.models.chat.vllm_generate": "VLLMGenerate"}
_KNOWLEDGE_INSERTION = "culture_tasks.harness.lmms_eval.knowledge_insertion.KnowledgeInsertion"


def register() -> list[Any]:
    """Extends lmms-eval's task manager, once, and returns the models that this package adds."""
    from lmms_eval.models.registry_v2 import ModelManifest
    from lmms_eval.tasks import TaskManager

    if not hasattr(TaskManager, "__culture_tasks__"):
        TaskManager.initialize_tasks = _with_our_tasks(TaskManager.initialize_tasks)
        TaskManager.match_tasks = _with_checks_ahead(TaskManager.match_tasks)
        TaskManager.load_task_or_group = _with_checks(TaskManager.load_task_or_group)
        TaskManager.__culture_tasks__ = True
    return [ModelManifest("knowledge_insertion", chat_class_path=_KNOWLEDGE_INSERTION)]


def _with_our_tasks(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def initialize_tasks(self: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {**task_index(), **original(self, *args, **kwargs)}

    return initialize_tasks


def _with_checks_ahead(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    @functools.wraps(original)
    def match_tasks(self: Any, *args: Any, **kwargs: Any) -> list[str]:
        from lmms_eval import evaluator

        from culture_tasks.harness.loading import load_ahead
        from culture_tasks.harness.result_rows import extend

        global _in_a_command  # the exception that lmms-eval doesn't catch has to be told from a program's own
        names = original(self, *args, **kwargs)
        _in_a_command = True
        with one_message():
            load_ahead(our_tasks(names))
            extend(evaluator, "simple_evaluate", _with_checks_of_the_run)
        return names

    return match_tasks


def _with_checks_of_the_run(original: Callable[..., Any]) -> Callable[..., Any]:
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        from culture_tasks.harness.engines import check_engine
        from culture_tasks.harness.loading import check_judge

        names = our_tasks(name for name in kwargs.get("tasks") or () if isinstance(name, str))
        if _in_a_command and names:
            with one_message():
                check_engine(kwargs.get("model"), kwargs.get("batch_size"), advice="256")
                for name in [] if kwargs.get("predict_only") else names:
                    check_judge(name)
        return original(*args, **kwargs)

    return simple_evaluate


_in_a_command = False


@contextlib.contextmanager
def one_message() -> Iterator[None]:
    """Ends a command of lmms-eval with one message and status 1 where an error of ours comes up inside.

    A program that calls lmms-eval as a library gets the error itself.
    """
    try:
        yield
    except CultureTasksError as error:
        if not _in_a_command:
            raise
        raise SystemExit(f"culture-tasks: error: {error}") from None


def _with_checks(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def load_task_or_group(self: Any, task_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        from lmms_eval.api.task import ConfigurableTask

        from culture_tasks.harness.lmms_eval.results import extend_results
        from culture_tasks.harness.loading import load_for_evaluation
        from culture_tasks.harness.result_rows import extend

        names = [task_list] if isinstance(task_list, str) else list(task_list or [])
        with one_message():
            extend_results()
            extend(ConfigurableTask, "build_all_requests", _with_checks_of_a_task)
            extend(ConfigurableTask, "override_metric", _with_records)
            for name, of_vllm in _VLLM.items():
                if loaded := sys.modules.get(name):  # by now, if it is the model's
                    extend(getattr(loaded, of_vllm), "make_one_request", _with_limit_of_the_task)
            for task in our_tasks(name for name in names if isinstance(name, str)):
                load_for_evaluation(task)
        tasks = original(self, task_list, *args, **kwargs)
        with one_message():
            _name_shards(tasks)
        return tasks

    return load_task_or_group


def _name_shards(tasks: Mapping[Any, Any]) -> None:
    from culture_tasks.harness.hooks import name_shard

    for task in tasks.values():
        if isinstance(task, Mapping):
            _name_shards(task)
        else:
            name_shard(task)


def _with_limit_of_the_task(original: Callable[..., Any]) -> Callable[..., Any]:
    """Has a request of ours end at its task's limit, where lmms-eval's vLLM takes the larger of this and its own 4,096.

    A limit that the user gives to the model is kept.
    """

    def make_one_request(self: Any, request: Any) -> Any:
        from culture_tasks.harness.hooks import name_of

        made, sampling = original(self, request)
        task, options = getattr(request.args[1], "__self__", None), request.args[2]
        default = inspect.signature(type(self)).parameters["max_new_tokens"].default
        if task is not None and name_of(task) and self.max_new_tokens == default:
            sampling["max_tokens"] = options["max_new_tokens"]
        return made, sampling

    return make_one_request


def _with_checks_of_a_task(original: Callable[..., None]) -> Callable[..., None]:
    def build_all_requests(self: Any, *args: Any, **kwargs: Any) -> None:
        from culture_tasks.harness.hooks import name_of, refuse_kept_requests
        from culture_tasks.harness.loading import check_judge

        name = name_of(self)
        with one_message():
            refuse_kept_requests(self, cache_requests=bool(kwargs.get("cache_requests")))
            if name and self.config.num_fewshot:
                raise SettingsError(
                    f"{self.config.task}: num_fewshot={self.config.num_fewshot}, but lmms-eval gives no examples to "
                    "a task that writes its own messages. Write num_fewshot: 0 in its file."
                )
            check_judge(name)
        original(self, *args, **kwargs)

    return build_all_requests


def _with_records(original: Callable[..., None]) -> Callable[..., None]:
    """Has nobody grade a task of ours where ``--predict_only`` would take its metrics away: they read the records."""

    def override_metric(self: Any, *args: Any, **kwargs: Any) -> None:
        from culture_tasks.harness.hooks import name_of
        from culture_tasks.harness.session import start_prediction

        if name_of(self):
            start_prediction()
        else:
            original(self, *args, **kwargs)

    return override_metric


def task_index() -> dict[str, dict[str, Any]]:
    """Returns our entries of lmms-eval's task index, made from the benchmarks: no file is read at start-up."""
    index: dict[str, dict[str, Any]] = {}
    for name, entry in entries().items():
        if not in_harness(entry, "lmms_eval"):
            continue
        if isinstance(entry, Tag):
            index[name] = {"type": "tag", "task": list(entry.members), "yaml_path": -1}
        else:
            kind = {"type": "group", "task": -1} if isinstance(entry, Group) else {"type": "task"}
            index[name] = {**kind, "yaml_path": str(task_file(entry, "lmms_eval"))}
    return index


def our_tasks(names: Iterable[str]) -> list[str]:
    """Returns the tasks below those names that are ours, each once."""
    return list(dict.fromkeys(task.name for name in names if name in entries() for task in tasks_below(name)))
