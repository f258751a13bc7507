"""Both harnesses, run in this process with our tasks alone indexed: their own index takes seconds to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def run_lmms_eval(model: Any, tasks: list[str], **options: Any) -> dict[str, Any]:
    """Runs lmms-eval with the plug-in that its entry point would load."""
    import lmms_eval.models  # noqa: F401 - loads the plug-in
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False)
    return simple_evaluate(model=model, tasks=tasks, task_manager=manager, log_samples=True, **options)


def run_lm_eval(
    model: Any, tasks: list[str], include: Path | None = None, metadata: dict[str, Any] | None = None, **options: Any
) -> dict[str, Any]:
    """Runs lm-eval with our folder, and one more, as its include paths."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    from culture_tasks.catalog import task_folder

    folders = [str(task_folder("lm_eval")), *([str(include)] if include else [])]
    manager = TaskManager(include_path=folders, include_defaults=False, metadata=metadata)
    return simple_evaluate(model=model, tasks=tasks, task_manager=manager, log_samples=True, **options)
