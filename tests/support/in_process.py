"""Both harnesses, run in this process, without what takes them seconds and isn't our subject.

Our tasks alone are indexed, and by lm-eval once. lm-eval doesn't list the machine's packages in its result, and what
the harnesses' imports leave in memory isn't searched for garbage after each run.
"""

from __future__ import annotations

import functools
import gc
from pathlib import Path
from typing import Any

import pytest
import yaml

from culture_tasks.benchmarks.interface import Harness
from culture_tasks.benchmarks.registry import task_file, task_named


def variant(folder: Path, harness: Harness, task: str, **keys: Any) -> list[str]:
    """Writes a user's variant of one of our tasks, and returns its name as a list of tasks."""
    content = {"include": str(task_file(task_named(task), harness)), "task": "variant", **keys}
    (folder / "variant.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return ["variant"]


def run_lmms_eval(model: Any, tasks: list[str], include: Path | None = None, **options: Any) -> dict[str, Any]:
    """Runs lmms-eval with the plug-in that its entry point would load."""
    import lmms_eval.models  # noqa: F401 - loads the plug-in
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    _freeze()
    manager = TaskManager(include_path=str(include) if include else None, include_defaults=False)
    return simple_evaluate(model=model, tasks=tasks, task_manager=manager, log_samples=True, **options)


def run_lm_eval(
    model: Any, tasks: list[str], include: Path | None = None, metadata: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Runs lm-eval with our folder, and one more, as its include paths."""
    import lm_eval.evaluator

    _freeze()
    manager = _own_tasks() if include is None and metadata is None else _task_manager(include, metadata)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lm_eval.evaluator, "add_env_info", lambda results: None)
        return lm_eval.evaluator.simple_evaluate(
            model=model, tasks=tasks, task_manager=manager, log_samples=True, **options
        )


def _task_manager(include: Path | None, metadata: dict[str, Any] | None) -> Any:
    from lm_eval.tasks import TaskManager

    from culture_tasks.benchmarks.registry import task_folder

    folders = [str(task_folder("lm_eval")), *([str(include)] if include else [])]
    return TaskManager(include_path=folders, include_defaults=False, metadata=metadata)


@functools.cache
def _own_tasks() -> Any:
    return _task_manager(None, None)


@functools.cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
