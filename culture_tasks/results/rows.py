"""The rows of a result file, worked out again from records with other verdicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Group
from culture_tasks.benchmarks.registry import entries
from culture_tasks.harness.rows import LEXICAL, TaskRecords, write_group_row, write_row
from culture_tasks.harness.subsets import Subset


class Regraded(NamedTuple):
    """A task whose judged metric is worked out again, with the records that it is worked out from."""

    metric: str
    records: TaskRecords

    def is_about(self, key: str) -> bool:
        """Whether a key of a row belongs to the metric."""
        return key.partition(",")[0] == self.metric or key.startswith(f"{self.metric}_")

    def ending(self, key: str) -> str:
        """Returns what a key says behind the metric's name, whether or not text overlap took the judge's place."""
        name = re.sub("_stderr(_clt|_clustered)?$", "", key.partition(",")[0])
        return name.removeprefix(self.metric).removeprefix(LEXICAL)


def task_row(old: Mapping[str, Any], task: Regraded) -> dict[str, Any]:
    """Returns the row of a task as its harness would write it; other entries of the old row stay."""
    row = {key: value for key, value in old.items() if not task.is_about(key)}
    write_row(row, task.records)
    return row


def renew_groups(content: dict[str, Any], tasks: Mapping[str, Regraded]) -> list[str]:
    """Renews the rows of the groups whose tasks were all worked out again, and returns these groups."""
    subtasks = content.get("group_subtasks", {})
    renewed_groups = []
    for group in subtasks:
        names_below = list(dict.fromkeys(_tasks_below(group, subtasks)))
        members = [_with_size(tasks[name], content, name) for name in names_below if name in tasks]
        if not members or len(members) < len(names_below):
            continue
        renewed_groups.append(group)
        entry, first = entries().get(group), members[0]
        by_size = entry.weight_by_size if isinstance(entry, Group) else True
        for part in ("results", "groups"):
            if group in content.get(part, {}):
                old = content[part][group]
                row = {key: value for key, value in old.items() if not first.is_about(key)}
                reported = {first.ending(key) for key in old if first.is_about(key)}
                names = [name for name in first.records.numbers if first.ending(name) in reported]
                write_group_row(row, [task.records for task in members], dict.fromkeys(names, by_size))
                content[part][group] = row
    return renewed_groups


def _with_size(task: Regraded, content: Mapping[str, Any], name: str) -> Regraded:
    """Returns a task with the number of documents that its records are a subset of, if they are one."""
    subset = Subset.read(content.get("configs", {}).get(name, {}).get("metadata"))
    size = None if subset is None else subset.of_documents
    return task._replace(records=replace(task.records, size=size))


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
