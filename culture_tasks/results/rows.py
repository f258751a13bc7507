"""The rows of a result file, worked out again from records with other verdicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Group
from culture_tasks.benchmarks.registry import entries
from culture_tasks.harness.result_rows import TaskMetrics, complete_group_row, complete_row
from culture_tasks.harness.scoring import LEXICAL
from culture_tasks.harness.subsets import Subset
from culture_tasks.results.finding import Harness

FILTER = "none"
"""The filter of our task files, as the keys of a row name it."""


class TaskRecords(NamedTuple):
    """A task with its main metric, the names of the metrics to work out again, and the records of those that it has."""

    metric: str
    names: Sequence[str]
    records: TaskMetrics


def task_row(old: Mapping[str, Any], task: TaskRecords, harness: Harness) -> dict[str, Any]:
    """Returns the row of a task as its harness would write it; other entries of the old row stay."""
    row = {key: value for key, value in old.items() if metric_of(key) not in task.names}
    for key, (aggregation, records, _) in task.records.items():
        if aggregation is not None:
            row[key] = aggregation(records)
            if harness == "lmms_eval":
                metric, _, filter_name = key.partition(",")
                row |= {f"{metric}_stderr_{kind},{filter_name}": "N/A" for kind in ("clt", "clustered")}
    complete_row(row, task.records)
    return row


def renew_groups(content: dict[str, Any], tasks: Mapping[str, TaskRecords]) -> list[str]:
    """Renews the rows of the groups whose tasks were all worked out again, and returns these groups."""
    subtasks = content.get("group_subtasks", {})
    renewed_groups = []
    for group in subtasks:
        names_below = list(dict.fromkeys(_tasks_below(group, subtasks)))
        members = [_with_size(tasks[name], content, name) for name in names_below if name in tasks]
        if not members or len(members) < len(names_below):
            continue
        renewed_groups.append(group)
        entry = entries().get(group)
        by_size = entry.weight_by_size if isinstance(entry, Group) else True
        names = dict.fromkeys(name for task in members for name in task.names)
        for part in ("results", "groups"):
            if group in content.get(part, {}):
                old = content[part][group]
                reported = {metric_of(key) for key in old}
                row = {key: value for key, value in old.items() if metric_of(key) not in names}
                weights = {
                    f"{name},{FILTER}": by_size
                    for name in names
                    if not reported.isdisjoint((name, _renamed(name, members[0].metric)))
                }
                complete_group_row(row, [task.records for task in members], weights)
                content[part][group] = row
    return renewed_groups


def _with_size(task: TaskRecords, content: Mapping[str, Any], name: str) -> TaskRecords:
    """Returns a task with the number of documents that its records are a subset of, if they are one."""
    subset = Subset.read(content.get("configs", {}).get(name, {}).get("metadata"))
    size = None if subset is None else subset.of_documents
    return task._replace(records={key: metric._replace(size=size) for key, metric in task.records.items()})


def _tasks_below(name: str, subtasks: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yields the tasks of a group, also in its groups; a name without members is a task's."""
    for member in subtasks[name]:
        if subtasks.get(member):
            yield from _tasks_below(member, subtasks)
        else:
            yield member


_PARTS_BY_TASK = (
    *("results", "groups", "group_subtasks", "configs", "versions"),
    *("n-shot", "n-samples", "higher_is_better", "task_hashes"),
)
"""The parts of a result file that have an entry for each task or group."""


def keep_tasks(content: dict[str, Any], names: Collection[str]) -> None:
    """Leaves only these tasks and groups in the content of a result file."""
    for part in _PARTS_BY_TASK:
        if isinstance(content.get(part), dict):
            content[part] = {name: value for name, value in content[part].items() if name in names}


def metric_of(key: str) -> str:
    """Returns the metric that a key of a row is about."""
    return re.sub("_stderr(_clt|_clustered)?$", "", key.partition(",")[0])


def _renamed(name: str, metric: str) -> str:
    """Returns the name that a judged metric, or a part of it, has with text overlap for a judge, or had with it."""
    lexical = f"{metric}{LEXICAL}"
    if name.startswith(lexical):
        return f"{metric}{name.removeprefix(lexical)}"
    return f"{lexical}{name.removeprefix(metric)}"
