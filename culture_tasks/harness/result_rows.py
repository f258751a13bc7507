"""The parts that the results of both harnesses lack for our tasks, worked out from the records.

A harness works out a task's values from its records by our aggregations. Then it leaves every standard error at "N/A",
makes a group's values from its tasks' values, and repeats the task file's whole metric list, although a run has no more
than some of it: one name of a judged score, a spread only over repeats, a submission only where answers are withheld.
Its loggers look for every listed metric in every sample. So once the values are there, a task's standard errors, the
values of groups and the listed metrics are put right here; tasks and groups of others are left as they are.
"""

from __future__ import annotations

import atexit
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Run
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.costs.prices import read_prices
from culture_tasks.harness.aggregation import Aggregation, unjudged
from culture_tasks.harness.hooks import name_of
from culture_tasks.harness.judge_costs import KEY, judge_costs, judged_records
from culture_tasks.harness.loading import LoadedTask, loaded_task
from culture_tasks.harness.scoring import OWN_DATA
from culture_tasks.harness.session import current_session
from culture_tasks.judges.endpoint.budget import refused_requests
from culture_tasks.text import failure_in, frequent_mark, opening_mark

_log = logging.getLogger(__name__)

COMMITS = "hub_commits"
"""Entry of a task's metadata: the commit of each of the Hub's data sets that the documents were read from."""

Key = str
"""A metric and a filter, with a comma between them, as both harnesses name the entries of a row."""


class MetricRecords(NamedTuple):
    """The records of a metric, one for each sample of a task, and the aggregation, or None if it isn't ours.

    Of a subset, ``size`` is the number of all documents of the task.
    """

    aggregation: Aggregation | None
    records: Sequence[Any]
    size: int | None = None


TaskMetrics = Mapping[Key, MetricRecords]


class EvaluatedTask(NamedTuple):
    """A task that a harness has evaluated: its metrics, none if it isn't ours, and its documents."""

    metrics: TaskMetrics
    loaded: LoadedTask | None


OF_OTHERS = EvaluatedTask({}, None)


def evaluated_task(task: Any, records: Mapping[tuple[str, str], Sequence[Any]]) -> EvaluatedTask:
    """Returns a harness's task; a user's variant has the documents of the task that it includes."""
    loaded = loaded_task(name_of(task))
    size = loaded.subset.of_documents if loaded and loaded.subset else None
    return EvaluatedTask(metric_records(task.aggregation(), records, size), loaded)


def metric_records(
    aggregations: Mapping[str, Any], records: Mapping[tuple[str, str], Sequence[Any]], size: int | None = None
) -> TaskMetrics:
    """Returns the metrics of a task with their records, by metric and filter; none if the task isn't ours."""
    ours = {name: aggregation for name, aggregation in aggregations.items() if isinstance(aggregation, Aggregation)}
    metrics = {
        f"{name},{filter_name}": MetricRecords(ours.get(name), values, size)
        for (name, filter_name), values in records.items()
    }
    return metrics if ours else {}


def complete_row(row: dict[str, Any], task: TaskMetrics) -> None:
    """Adds the standard errors to the row of a task of ours, and drops metrics that concern none of its documents."""
    for key, (aggregation, records, _) in task.items():
        if aggregation is not None:
            row[_with_ending(key, "_stderr")] = aggregation.stderr(records)
            for name, of_group in aggregation.by_group(records):
                of_number = f"{name},{key.partition(',')[2]}"
                row |= {
                    of_number: aggregation(of_group),
                    _with_ending(of_number, "_stderr"): aggregation.stderr(of_group),
                }
            of_documents = _with_ending(key, "_stderr_clt")  # which lmms-eval takes over documents
            if of_documents in row:
                row[of_documents] = row[_with_ending(key, "_stderr")]
        _drop_irrelevant(row, key, records)


def _concerns_any(records: Iterable[Any]) -> bool:
    """Whether a metric concerns any document: a scope that no question has is no part of a run."""
    return any(record is not None for record in records)


def _drop_irrelevant(row: dict[str, Any], key: Key, records: Iterable[Any]) -> None:
    for ending in () if _concerns_any(records) else ("", "_stderr", "_stderr_clt", "_stderr_clustered"):
        row.pop(_with_ending(key, ending), None)


def _with_ending(key: Key, ending: str) -> Key:
    return key.replace(",", f"{ending},", 1)


def complete_group_row(row: dict[str, Any], tasks: Sequence[TaskMetrics], weight_by_size: Mapping[Key, bool]) -> None:
    """Corrects the values and standard errors of a group's row that are over our tasks alone.

    ``weight_by_size`` says of the keys of the row whether the items weigh the same, rather than the tasks.
    """
    for key, by_size in weight_by_size.items():
        metrics = [task[key] for task in tasks if key in task]
        aggregations = [metric.aggregation for metric in metrics if metric.aggregation is not None]
        if not metrics or len(aggregations) < len(tasks) or len({function.name for function in aggregations}) > 1:
            continue
        records = [metric.records for metric in metrics]
        sizes = [len(metric.records) if metric.size is None else metric.size for metric in metrics]
        has_subset = any(metric.size is not None for metric in metrics)
        row[key], row[_with_ending(key, "_stderr")] = aggregations[0].group_value(
            records, weight_by_size=by_size, sizes=sizes if has_subset else None
        )
        _drop_irrelevant(row, key, chain.from_iterable(records))


def mark(row: dict[str, Any], tasks: Iterable[EvaluatedTask]) -> None:
    """Adds to the name that a harness's table shows that a row is of the user's own data, or of subsets."""
    tasks = list(tasks)
    loaded = [task.loaded for task in tasks if task.loaded is not None]
    if any(task.reading.differences for task in loaded):
        row["alias"] += " (own data)"
    if subsets := [task.subset for task in loaded if task.subset is not None]:
        row["alias"] += f" ({subsets[0] if len(tasks) == 1 else 'subsets'})"
    responses = [response for task in tasks for response in _responses(task.metrics)]
    if failed := sum(map(bool, map(failure_in, responses))):
        row["alias"] += f" ({failed} of {len(responses)} responses failed)"
    if unknown := frequent_mark(Counter(map(opening_mark, responses))):
        row["alias"] += f" (unknown mark {unknown.mark!r:.30})"


def _responses(task: TaskMetrics) -> list[str]:
    """Returns all responses to a task's documents: those in the records of its main metric."""
    records = ([record for record in metric.records if isinstance(record, dict)] for metric in task.values())
    runs = ([run for record in of_metric for run in record.get("runs") or ()] for of_metric in records)
    return [run["response"] for run in next(filter(None, runs), [])]


def _warn_of_responses(task: str, responses: Sequence[str]) -> None:
    """Says, once for a task, how many of its responses failed, or begin with the same mark that isn't known."""
    if failures := list(filter(None, map(failure_in, responses))):
        _log.warning(
            "%s: %d of %d responses failed, the first with %r. They aren't graded and count in no score. Run again "
            "where the endpoint answers, with --use_cache for the others, or raise the limit of tokens where thinking "
            "used it up.",
            *(task, len(failures), len(responses), failures[0][:120]),
        )
    if unknown := frequent_mark(Counter(map(opening_mark, responses))):
        _log.warning(
            "%s: %d of %d responses begin with %r, which is no known mark. If thinking follows it, the thinking was "
            "graded as the answer: have the harness cut it, with think_end_token in lm-eval's --model_args or "
            "lmms-eval's --reasoning_tags.",
            *(task, unknown.responses, len(responses), unknown.mark),
        )


def finish(
    tasks: Mapping[str, EvaluatedTask],
    *,
    rows: Mapping[str, dict[str, Any]],
    configs: dict[str, Any],
    better: dict[str, Any],
) -> None:
    """Corrects a harness's results of our tasks, and lets their metrics finish, such as write a file.

    The settings name commits and own data; they and the directions leave out metrics that the samples don't have.
    """
    harness_run = _harness_run.get(None) or HarnessRun("", None)
    for name, task in tasks.items():
        if not task.metrics:
            continue
        run = Run(harness_run.model, harness_run.output, current_session().settings)
        mark(rows[name], [task])
        _warn_of_responses(name, _responses(task.metrics))
        loaded = task.loaded
        names = {key.partition(",")[0] for key, metric in task.metrics.items() if _concerns_any(metric.records)}
        config = configs[name]
        configs[name] = config | {"metric_list": [entry for entry in config["metric_list"] if entry["metric"] in names]}
        better[name] = {metric: better[name][metric] for metric in better[name] if metric in names}
        facts = {COMMITS: loaded.reading.commits, OWN_DATA: loaded.reading.differences} if loaded else {}
        if metadata := {key: dict(texts) for key, texts in facts.items() if texts}:
            configs[name]["metadata"] = (config.get("metadata") or {}) | metadata
        for aggregation, records, _ in task.metrics.values():
            harness_run.judged[name] = harness_run.judged.get(name) or judged_records(records)
            if aggregation is not None:
                aggregation.finish(records, name, run)


@dataclass
class HarnessRun:
    """A run of a harness: its model, its output folder, if it has one, and the tasks that it has evaluated."""

    model: str
    output: Path | None
    tasks: dict[str, EvaluatedTask] = field(default_factory=dict)
    judged: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)


_harness_run: ContextVar[HarnessRun] = ContextVar("running")


def evaluated_tasks() -> dict[str, EvaluatedTask]:
    """Returns the tasks that the current run of a harness has evaluated so far, by name."""
    harness_run = _harness_run.get(None)
    return {} if harness_run is None else harness_run.tasks


command_output: ContextVar[str | None] = ContextVar("command_output")
"""The output folder of lm-eval's command, which lm-eval's ``evaluate`` isn't told."""


def _ungraded(tasks: Iterable[Sequence[Mapping[str, Any]]], path: str | None, *, is_logged: bool) -> str:
    """Says how many responses no judge has graded yet, and what to do; empty without any."""
    records = list(chain.from_iterable(tasks))
    if not (waiting := unjudged(records)):
        return ""
    are = "response is" if waiting == 1 else "responses are"
    if not is_logged:
        return f"{waiting:,} {are} neither graded nor recorded. Run again with --log_samples, or with a judge."
    judge = rubric_named(records[0]["judge"]["rubric"]).model
    command = f"culture-tasks rejudge {shlex.quote(str(path or 'RESULTS'))} --judge openai:{judge}"
    return f"{waiting:,} {are} recorded and not graded: `{command}`, or another judge, grades them."


def with_run(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a harness's ``evaluate``: the run is known while it lasts, and its results say what the judge cost."""

    def evaluate_and_count(*args: Any, **kwargs: Any) -> Any:
        model, command = kwargs.get("lm", args[0] if args else None), kwargs.get("cli_args")
        output = getattr(command, "output_path", None)
        harness_run = HarnessRun(_name_of(model, command), Path(output) if output else None)
        token = _harness_run.set(harness_run)
        try:
            results = evaluate(*args, **kwargs)
        finally:
            _harness_run.reset(token)
            if refused := refused_requests():
                _log.warning("%s", refused)
        if isinstance(results, dict) and any(harness_run.judged.values()):
            costs = judge_costs(harness_run.judged, read_prices(current_session().settings.prices_file))
            results |= {KEY: costs} if costs else {}
            path = getattr(command, "output_path", None) or command_output.get(None)
            if text := _ungraded(harness_run.judged.values(), path, is_logged="samples" in results):
                if path:  # of a command, whose tables are still to come
                    atexit.register(_log.warning, "%s", text)
                else:
                    _log.warning("%s", text)
        return results

    return evaluate_and_count


_NAMES = ("pretrained", "model", "model_version", "model_name")


def _name_of(model: Any, command: Any) -> str:
    """Returns a model's name as its command line gives it, or as the model itself does, or the name of its class."""
    arguments = getattr(command, "model_args", None) or ""
    if not isinstance(arguments, Mapping):
        arguments = dict(part.split("=", 1) for part in str(arguments).split(",") if "=" in part)
    attributes = {name: getattr(model, name, None) for name in _NAMES}
    inner = getattr(model, "model_args", None)  # vllm's in lm-eval
    sources = (arguments, attributes, inner if isinstance(inner, Mapping) else {})
    names = (source.get(name) for source in sources for name in _NAMES)
    return next((name for name in names if isinstance(name, str) and name), type(model).__name__)
