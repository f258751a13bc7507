"""``culture-tasks lm-eval …``: lm-eval's own command, with our tasks added and checked first.

lm-eval has no entry points for tasks and takes one ``--include_path``, which the user may need. So this command adds
our folders to those that lm-eval's task manager reads, and passes the arguments on unchanged. A folder that is there
already isn't read twice: lm-eval may come to read the entry point of the group ``lm_eval.tasks`` that we declare.

lm-eval loads the model before the data. As soon as it knows what ``--tasks`` (or ``--config``) selects, this command
makes sure that the model's engine is installed and takes images where tasks have some, loads and checks the data sets
of our tasks, and makes sure that a judge can grade.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from culture_tasks.benchmarks.interface import Task
from culture_tasks.benchmarks.registry import entries, task_folders, task_named
from culture_tasks.cli.options import AddParser
from culture_tasks.errors import ImagesNotShownError, SettingsError, nearest
from culture_tasks.harness.hooks import NAME
from culture_tasks.harness.task_files import write_task_files_of_cultures


def register(add_parser: AddParser) -> None:
    """Adds the command, which passes all arguments on."""
    parser = add_parser(
        description="Passes everything on to lm_eval: culture-tasks lm-eval run --model hf …",
        add_help=False,
        prefix_chars="\0",  # nothing counts as an option, so everything is passed on
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    parser.set_defaults(handler=_run)


def _run(options: argparse.Namespace) -> int:
    from lm_eval.__main__ import cli_evaluate
    from lm_eval.config.evaluate_config import EvaluatorConfig
    from lm_eval.tasks._index import TaskIndex

    with (
        patch.object(sys, "argv", ["lm_eval", *options.arguments]),
        patch.object(TaskIndex, "build", _with_our_folders(TaskIndex.build)),
        patch.object(EvaluatorConfig, "process_tasks", _with_checks(EvaluatorConfig.process_tasks)),
    ):
        cli_evaluate()
    return 0


def _with_our_folders(original: Callable[..., Any]) -> staticmethod[..., Any]:
    @functools.wraps(original)
    def build(paths: Iterable[Path], **options: Any) -> Any:
        folders = list(paths)
        places = {path.resolve() for path in folders}
        write_task_files_of_cultures()
        ours = [folder for folder in task_folders("lm_eval") if folder.resolve() not in places]
        return original([*folders, *ours], **options)

    return staticmethod(build)


def _with_checks(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def process_tasks(self: Any, *args: Any, **kwargs: Any) -> Any:
        from lm_eval.api.registry import get_model

        from culture_tasks.harness.lm_eval.task import refuse_examples
        from culture_tasks.harness.loading import check_judge, load_ahead
        from culture_tasks.harness.results import command_output

        command_output.set(self.output_path)
        try:
            manager = original(self, *args, **kwargs)
        except ValueError as error:
            problem, _, unknown = str(error).partition(": ")
            if problem != "Tasks not found":
                raise
            raise SettingsError(
                f"lm-eval: no task or group {unknown}.{nearest(unknown.split(', ')[0], entries())} "
                "`culture-tasks tasks` lists ours, `lm_eval ls tasks` lm-eval's."
            ) from None
        tasks = dict(_ours(manager.task_index, self.tasks))
        with_images = {name: config for name, config in tasks.items() if _task(config).shows_images}
        if with_images and isinstance(self.model, str) and not getattr(get_model(self.model), "MULTIMODAL", False):
            image_tasks = ", ".join([*with_images][:3]) + (", …" if len(with_images) > 3 else "")
            raise ImagesNotShownError(  # which lm-eval itself does only once the model is loaded
                f"{image_tasks}: the model type {self.model!r} takes no images. Use hf-multimodal, vllm-vlm or an API "
                "model of chat completions, or leave these tasks out."
            )
        for name, config in with_images.items():
            shots = config.get("num_fewshot", 0)  # 0 in a task's file, and none there, overrides the command's
            refuse_examples(name, shots if shots == 0 or self.num_fewshot is None else self.num_fewshot)
        names = [_task(config).name for config in tasks.values()]
        load_ahead(names)
        for name in [] if self.predict_only else names:
            check_judge(name)
        return manager

    return process_tasks


def _ours(index: Mapping[str, Any], selections: Iterable[Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields name and content of the selected tasks that load our data: our own, and variants of them.

    ``index`` has lm-eval's tasks, groups and tags by name; what is selected is a name, or the content of a file or of a
    group's entry, which may refer to a name.
    """
    from lm_eval.tasks._yaml_loader import load_yaml

    for selection in selections:
        name = selection if isinstance(selection, str) else selection.get("task", selection.get("group"))
        entry = index.get(name) if isinstance(name, str) else None
        content: Mapping[str, Any] = {} if isinstance(selection, str) else selection
        if entry is not None and entry.yaml_path is None:
            yield from _ours(index, sorted(entry.tags))
            continue
        if entry is not None:
            content = {**load_yaml(entry.yaml_path, resolve_func=False), **content}
        if isinstance(content.get("task"), list):
            yield from _ours(index, content["task"])
        elif NAME in (content.get("metadata") or {}):
            yield str(name), content


def _task(config: Mapping[str, Any]) -> Task:
    """Returns the task of ours that a file names."""
    return task_named(str(config["metadata"][NAME]))
