"""Result and sample files as the harnesses' own trackers write them, of runs in this process that took 1.5 seconds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from support.in_process import run_lm_eval, run_lmms_eval

from culture_tasks.results.run_files import read_run

Script = Callable[[str, int], str]


def write_lm_eval(
    folder: Path, tasks: Sequence[str], script: Script | None, model: str = "toy", lm: Any = None, **options: Any
) -> Path:
    """Runs lm-eval with a model that answers by a script, writes its files, and returns the result file."""
    from lm_eval.loggers import EvaluationTracker
    from support.scripted_lm import ScriptedLM

    tracker = EvaluationTracker(output_path=str(folder))
    results = run_lm_eval(lm or ScriptedLM(script), list(tasks), evaluation_tracker=tracker, **options)
    return _save(tracker, results, model)


def write_lmms_eval(
    folder: Path,
    tasks: Sequence[str],
    model: str = "toy",
    stamp: str = "20260101_000000",
    lmms: Any = None,
    **options: Any,
) -> Path:
    """Runs lmms-eval with a model that answers at once, writes its files, and returns the result file."""
    from lmms_eval.loggers import EvaluationTracker
    from support.lmms_models import ChatEcho

    tracker = EvaluationTracker(output_path=str(folder))
    results = run_lmms_eval(lmms or ChatEcho(), list(tasks), evaluation_tracker=tracker, **options)
    return _save(tracker, results, model, datetime_str=stamp)


def _save(tracker: Any, results: dict[str, Any], model: str, **options: Any) -> Path:
    samples = results.pop("samples")
    tracker.general_config_tracker.model_name = model
    tracker.general_config_tracker.model_name_sanitized = model.replace("/", "__")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # lmms-eval leaves it to Python to close its result file
        tracker.save_results_aggregated(results=results, samples=samples, **options)
    for task in results["configs"]:
        tracker.save_results_samples(task_name=task, samples=samples[task])
    path = max(Path(tracker.output_path).rglob("*results*.json"), key=lambda path: path.stat().st_mtime_ns)
    data = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(data | {"total_evaluation_time_seconds": "1.5"}), encoding="utf-8")
    return path


def at(results: Path, stamp: str, date: float) -> Path:
    """Gives a run of lm-eval another date, in its file names and in its result file, and returns the result file."""
    old = results.stem.removeprefix("results_")
    data = json.loads(results.read_text(encoding="utf-8"))
    results.write_text(json.dumps(data | {"date": date}), encoding="utf-8")
    for path in list(results.parent.glob(f"*{old}*")):
        path.rename(path.with_name(path.name.replace(old, stamp)))
    return results.with_name(f"results_{stamp}.json")


def content(path: Path) -> dict[str, Any]:
    """Returns the content of a result file."""
    read: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return read


def samples_of(path: Path, task: str = "care_zh") -> list[dict[str, Any]]:
    """Returns the samples of a task that belong to a result file."""
    lines = read_run(path).samples_file(task).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]
