"""The numbers of a result file, worked out again from new records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from culture_tasks.harness.aggregation import Aggregation
from culture_tasks.harness.result_rows import concerns_any
from culture_tasks.results.finding import Harness

_FILTER = "none"


def task_values(
    harness: Harness, metrics: Iterable[Mapping[str, Any]], records: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the entries of a task in a result file for judged metrics.

    Args:
        harness: Whose layout to follow.
        metrics: The metric list.
        records: For each document its records by metric.
    """
    functions = _functions(metrics)
    values: dict[str, Any] = {}
    for name in records[0] if records else ():
        found = [record[name] for record in records]
        if not concerns_any(found):
            continue
        values[f"{name},{_FILTER}"] = functions[name](found)
        values[f"{name}_stderr,{_FILTER}"] = stderr = functions[name].stderr(found)
        if harness == "lmms_eval":
            values[f"{name}_stderr_clt,{_FILTER}"] = stderr if functions[name].is_score else "N/A"
            values[f"{name}_stderr_clustered,{_FILTER}"] = "N/A"
    return values


def _functions(metrics: Iterable[Mapping[str, Any]]) -> dict[str, Aggregation]:
    return {metric["metric"]: metric["aggregation"] for metric in metrics}


def without_metrics(entry: Mapping[str, Any], metrics: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns a task's entry without what belongs to these metrics."""
    names = {metric["metric"] for metric in metrics}
    return {key: value for key, value in entry.items() if _metric_of(key) not in names}


def _metric_of(key: str) -> str:
    name = key.partition(",")[0]
    for suffix in ("_stderr_clt", "_stderr_clustered", "_stderr"):
        name = name.removesuffix(suffix)
    return name


def group_values(
    old: Mapping[str, Any],
    metrics: Iterable[Mapping[str, Any]],
    tasks: Sequence[Sequence[Mapping[str, Any]]],
    *,
    weight_by_size: bool,
) -> dict[str, Any]:
    """Returns a group's entry with the judged metrics worked out again.

    Args:
        old: The group's old entry.
        metrics: The judged metrics of its tasks.
        tasks: For each task, for each of its documents, the new records by metric.
        weight_by_size: Whether every item of the group weighs the same, rather than every task.
    """
    functions = _functions(metrics)
    reported = {_metric_of(key) for key in old}
    new = {key: value for key, value in old.items() if _metric_of(key) not in functions}
    for name, function in functions.items():
        if (name in reported or _renamed(name) in reported) and all(name in task[0] for task in tasks):
            records = [[document[name] for document in task] for task in tasks]
            if not any(map(concerns_any, records)):
                continue
            value, stderr = function.of_group(records, weight_by_size=weight_by_size)
            new |= {f"{name},{_FILTER}": value, f"{name}_stderr,{_FILTER}": stderr}
    return new


def _renamed(name: str) -> str:
    """Returns the name that a metric had, or has, with the lexical judge."""
    base = name.replace("_lexical", "", 1)
    return base if base != name else f"{name}_lexical"
