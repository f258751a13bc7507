"""The numbers of a result file, worked out again from new records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from culture_tasks.harness.metric_lists import Metric
from culture_tasks.rejudge.runs import Harness

_FILTER = "none"


def task_values(harness: Harness, metrics: Iterable[Metric], records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the entries of a task in a result file for judged metrics.

    Args:
        harness: Whose layout to follow.
        metrics: The metric list.
        records: For each document its records by metric.
    """
    present = list(records[0]) if records else []
    functions = {metric["metric"]: metric["aggregation"] for metric in metrics}
    values: dict[str, Any] = {}
    for name in present:
        values[f"{name},{_FILTER}"] = functions[name]([record[name] for record in records])
    for name in present:
        values.setdefault(f"{name}_stderr,{_FILTER}", "N/A")
        if harness == "lmms_eval":
            values[f"{name}_stderr_clt,{_FILTER}"] = _finite(values[f"{name}_stderr,{_FILTER}"])
            values[f"{name}_stderr_clustered,{_FILTER}"] = "N/A"
    return values


def _finite(value: Any) -> Any:
    return "N/A" if isinstance(value, float) and math.isnan(value) else value


def without_metrics(entry: Mapping[str, Any], metrics: Iterable[Metric]) -> dict[str, Any]:
    """Returns a task's entry without what belongs to these metrics."""
    names = {metric["metric"] for metric in metrics}
    return {key: value for key, value in entry.items() if _metric_of(key) not in names}


def _metric_of(key: str) -> str:
    name = key.partition(",")[0]
    for suffix in ("_stderr_clt", "_stderr_clustered", "_stderr"):
        name = name.removesuffix(suffix)
    return name


def group_values(
    members: Sequence[Mapping[str, Any]], old: Mapping[str, Any], metrics: Iterable[Metric]
) -> dict[str, Any]:
    """Returns a group's entry with the judged metrics worked out again.

    Args:
        members: The new entries of its tasks.
        old: The group's old entry.
        metrics: The judged metrics of its tasks.
    """
    metrics = list(metrics)
    names = {metric["metric"] for metric in metrics}
    reported = {_metric_of(key) for key in old}
    present = dict.fromkeys(_metric_of(key) for member in members for key in member)
    new = without_metrics(old, metrics)
    for name in present:
        wanted = name in names and (name in reported or _renamed(name) in reported)
        if wanted and all(f"{name},{_FILTER}" in member for member in members):
            new |= _mean_over_tasks(name, members)
    return new


def _mean_over_tasks(name: str, members: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns a group's value, each task weighing the same, and the standard error of a mean of independent means."""
    key, stderr = f"{name},{_FILTER}", f"{name}_stderr,{_FILTER}"
    errors = [member[stderr] for member in members if isinstance(member.get(stderr), float)]
    complete = len(errors) == len(members)
    return {
        key: sum(member[key] for member in members) / len(members),
        stderr: math.hypot(*errors) / len(members) if complete else "N/A",
    }


def _renamed(name: str) -> str:
    """Returns the name that a metric had, or has, with the lexical judge."""
    base = name.replace("_lexical", "", 1)
    return base if base != name else f"{name}_lexical"
