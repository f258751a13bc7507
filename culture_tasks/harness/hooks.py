"""What our task classes of both harnesses share: how a task answers a harness, and what is checked before a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from culture_tasks.benchmarks.interface import Picture, Prompt, Task
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.data.images import as_rgb
from culture_tasks.errors import SettingsError
from culture_tasks.harness.loading import check_judge, loaded_task
from culture_tasks.harness.records import RECORD, Records
from culture_tasks.harness.subsets import Subset

if TYPE_CHECKING:
    from PIL.Image import Image

_log = logging.getLogger(__name__)

Doc = Mapping[str, Any]

NAME = "culture_task"
"""Entry of a task file's metadata: the task that it is, also in a user's variant of its file."""


class Hook:
    """A function that a harness calls, bound to its task.

    Its logged text is always the same: of a dataclass, harnesses log all fields, with addresses of functions.
    """

    __slots__ = ("function", "task")

    def __init__(self, task: Task, function: Callable[..., Any]) -> None:
        self.task, self.function = task, function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Calls the function for the task."""
        return self.function(self.task, *arguments, **options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Hook:
        return self

    def __repr__(self) -> str:
        return f"culture_tasks: {self.function.__name__} of {self.task.name}"


def with_defaults(config: Mapping[str, Any], defaults: Callable[[Task], Mapping[str, Any]]) -> dict[str, Any]:
    """Returns a task file's entries with those that it leaves to the task that its metadata name."""
    metadata = config.get("metadata") or {}
    if NAME not in metadata:
        raise SettingsError(
            f"{config.get('task')}: its file names no task of culture-tasks. Write metadata: {{{NAME}: …}} as in the "
            "file that it includes."
        )
    task = task_named(str(metadata[NAME]))
    shared = {
        "test_split": "test",
        "num_fewshot": 0,
        "doc_to_target": Hook(task, target),
        "metric_list": [{"metric": RECORD, "aggregation": Records(), "higher_is_better": True}],
        # lm-eval's own filter takes the log-likelihoods.
        **({} if task.choices else {"filter_list": [{"name": "none", "filter": [{"function": task.responses}]}]}),
    }
    return {
        **shared,
        **defaults(task),
        **{name: value for name, value in config.items() if name != "class"},
        "metadata": {"version": task.version, **metadata},
    }


def target(task: Task, doc: Doc) -> str | list[str]:
    """Returns a document's right answer, or answers."""
    return task.target(doc)


def name_of(task: Any) -> str | None:
    """Returns the name of the task of ours that a harness's task scores like; None if it scores by other code.

    A user's variant of a task has another name, and the documents of the task that it includes.
    """
    hook = task.config.process_results
    return hook.task.name if isinstance(hook, Hook) else None


def images_of(task: Task, doc: Doc, prompt: Prompt) -> list[Image]:
    """Returns the images that a document's prompt shows, in order; other documents may show the same objects."""
    loaded = loaded_task(task.name)
    rows = [part.row for part in prompt.parts if isinstance(part, Picture)]
    return [as_rgb((doc if row is None or loaded is None else loaded.all_data[row])["image"]) for row in rows]


def describe_documents(task: Any) -> None:
    """Names the subset of a harness's task in its metadata.

    The metadata are logged with the results, and lmms-eval's response cache tells tasks apart by them.
    """
    loaded = loaded_task(name_of(task))
    if loaded is None or loaded.subset is None:
        return
    if len(task.eval_docs) != (expected := len(loaded.data)):
        raise SettingsError(
            f"{task.config.task}: its process_docs leaves {len(task.eval_docs)} of the {expected} documents of the "
            "subset. CULTURE_SUBSET needs all of them: unset it, or leave process_docs out of the task's file."
        )
    task.config.metadata = {**(task.config.metadata or {}), Subset.key: loaded.subset.model_dump()}


def check_requests(task: Any, options: Mapping[str, Any]) -> None:
    """Makes sure, before a harness's task builds requests, that its options make sense and that somebody can grade."""
    if options.get("cache_requests") and name_of(task):
        raise SettingsError(
            f"{task.config.task}: --cache_requests keeps requests by the task's name, and would ask an earlier "
            "version's questions where the data or the subset have changed. Leave the option out."
        )
    check_judge(name_of(task))
