"""Published predictions scored again: lm-eval runs our tasks on a model that gives the published replies.

So prompts, scores, result files and samples are those of any other run. The images are blank, since nobody looks at
them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from culture_tasks.benchmarks.predictions import OffersPredictions, PublishedPredictions
from culture_tasks.benchmarks.registry import benchmarks, task_folders, task_named, tasks_below
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.harness.loading import load_ahead
from culture_tasks.published import number
from culture_tasks.selftest.findings import Finding
from culture_tasks.settings import Settings


def replays_of(folder: Path, output: Path | None, scratch: Path) -> list[tuple[str, Callable[[], Finding]]]:
    """Returns the models of published predictions, each with the look that scores its predictions again.

    Args:
        folder: A copy of the repository of a benchmark's authors.
        output: A folder for result and sample files; None writes none.
        scratch: An empty folder for the questions, which is needed until the last look.

    Raises:
        DataError: If the folder has no predictions of any benchmark.
        SettingsError: If the settings would score a part of the questions.
    """
    settings = Settings.from_environment()
    if set_ := [name for name in ("shard", "subset") if getattr(settings, name)]:
        raise SettingsError(f"selftest: predictions are scored whole. Unset {set_[0]} ({getattr(settings, set_[0])}).")
    looks: list[tuple[str, Callable[[], Finding]]] = []
    for benchmark in benchmarks().values():
        if isinstance(benchmark, OffersPredictions):
            replays = _Replays(benchmark, folder, output, scratch)
            by_group = sorted(benchmark.predictions(folder), key=lambda predictions: predictions.group)
            looks += [(predictions.model, partial(replays.score, predictions)) for predictions in by_group]
    if not looks:
        raise DataError(
            f"{folder}: found no predictions. Expected a copy of a benchmark's repository, such as of "
            "https://github.com/worldcuisines/worldcuisines."
        )
    return looks


class _Replays:
    """The predictions of a benchmark, whose questions are read once for each group."""

    def __init__(self, benchmark: OffersPredictions, folder: Path, output: Path | None, scratch: Path) -> None:
        self._benchmark, self._folder, self._output, self._scratch = benchmark, folder, output, scratch
        self._loaded = ""

    def score(self, predictions: PublishedPredictions) -> Finding:
        """Scores predictions again, and compares the scores with the published ones."""
        if not self._loaded:
            self._benchmark.write_questions(self._folder, self._scratch)
        with patch.dict(os.environ, CULTURE_TASKS_DATA=str(self._scratch)):
            tasks = tasks_below(predictions.group)
            if self._loaded != predictions.group:
                load_ahead(task.name for task in tasks)
                self._loaded = predictions.group
            rows = _evaluate(predictions, self._output)
        times = {metric.name: metric.scale.times for metric in tasks[0].metrics()}
        scores = {key: times[key[1]] * rows[key[0]][f"{key[1]},none"] for key in predictions.scores}
        return _compare(predictions, scores)


def _compare(predictions: PublishedPredictions, scores: Mapping[tuple[str, str], float]) -> Finding:
    facts = {
        f"{unit} {metric}": {"score": scores[unit, metric], "published": printed}
        for (unit, metric), printed in predictions.scores.items()
    }
    differences = [
        f"{unit} has {scores[unit, metric]:.2f}, published {printed}"
        for (unit, metric), printed in predictions.scores.items()
        if abs(scores[unit, metric] - number(printed).value) > predictions.within
    ]
    if differences:
        remedy = "Compare the files with the authors' repository: another version of it has other predictions."
        return Finding("fix", "; ".join(differences), remedy, facts)
    (unit, metric), printed = next(iter(predictions.scores.items()))
    more = f", and {len(scores) - 1} parts of it as published" if len(scores) > 1 else ""
    return Finding("ok", f"{unit}: {metric} {scores[unit, metric]:.2f}, published {printed}{more}", facts=facts)


def _evaluate(predictions: PublishedPredictions, output: Path | None) -> Mapping[str, Mapping[str, Any]]:
    """Returns the rows of lm-eval's results by task and group; its files are written where an output is named."""
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    tracker = EvaluationTracker(output_path=None if output is None else str(output))
    with redirect_stderr(io.StringIO()):  # progress bars of lm-eval for every task
        results = simple_evaluate(
            model=_model_giving(predictions.replies()),
            model_args=f"model={predictions.model}",
            tasks=[predictions.group],
            task_manager=TaskManager(include_path=list(map(str, task_folders("lm_eval"))), include_defaults=False),
            evaluation_tracker=tracker,
        )
    assert results is not None
    samples = results.pop("samples")
    if output is not None:
        tracker.save_results_aggregated(results=results, samples=samples)
        for task, of_task in samples.items():
            tracker.save_results_samples(task_name=task, samples=of_task)
    return {**results["results"], **results.get("groups", {})}


def _model_giving(replies: Mapping[str, str]) -> Any:
    """Returns a model of lm-eval that gives each item's reply."""
    from lm_eval.models.dummy import DummyLM

    class Published(DummyLM):  # type: ignore[misc]
        MULTIMODAL = True

        def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
            del disable_tqdm
            return [self._reply(request) for request in requests]

        def _reply(self, request: Any) -> str:
            list(request.args[2]["visual"] if len(request.args) > 2 else ())  # images that nobody looks at are an error
            item = task_named(request.task_name).score(request.doc, [""]).item
            if item not in replies:
                raise DataError(f"{request.task_name}: found no prediction for the question {item}. Copy all files.")
            return replies[item]

    return Published()
