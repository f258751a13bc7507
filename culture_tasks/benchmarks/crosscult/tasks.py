"""The tasks of CrossCult-KIBench and their groups, as data: what each is named, asks and measures.

A chain's steps are tasks of their own, and not documents of one task: with a document for each chain in each task, in
the same order, everything about a chain stays on one rank, and ``--limit`` keeps whole chains.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Release
from culture_tasks.benchmarks.crosscult.vocabulary import (
    ORDERS,
    ORIGINAL_ORDER,
    PARTITIONS,
    SEQUENTIAL_ROLES,
    SINGLE_ROLES,
    Order,
    Partition,
)


class Task(NamedTuple):
    """One task.

    Attributes:
        about: What it measures together with the tasks that it belongs to, in a few words.
        languages: Languages of its requests.
        build: Gives its documents.
    """

    about: str
    languages: tuple[Partition, ...]
    build: Callable[[Release], Iterable[CrossCultDoc]]


class Group(NamedTuple):
    """Tasks, or groups of them, whose mean counts.

    Attributes:
        about: What the mean measures, in a few words.
        members: Names of tasks or groups.
    """

    about: str
    members: tuple[str, ...]


_DIAGNOSTIC = "each partition's question, nothing inserted (Figure 1b)"
_SINGLE = "four roles after one insertion; their mean is Overall (Table 2)"
_SEQUENTIAL = "three roles of each step after a chain of insertions; their mean is Overall (Table 3)"
_RETENTION = "reliability of what was inserted, after each step of a chain (Figures 6, 11-13)"


def _tasks() -> Iterator[tuple[str, Task]]:
    yield "crosscult_diagnostic", Task(_DIAGNOSTIC, PARTITIONS, Release.diagnostic)
    for role in SINGLE_ROLES:
        yield f"crosscult_single_{role}", Task(_SINGLE, PARTITIONS, partial(Release.single, role=role))
    for final, partition in itertools.product(SEQUENTIAL_ROLES, ORIGINAL_ORDER):
        build = partial(Release.sequential, role=final, partition=partition)
        yield f"crosscult_sequential_{final}_{partition}", Task(_SEQUENTIAL, (partition,), build)
    for order in ORDERS:
        yield from _retention_tasks(order)


def _retention_tasks(order: Order) -> Iterator[tuple[str, Task]]:
    for after in range(1, len(order) + 1):
        for partition in order[:after]:
            build = partial(Release.retention, order=order, partition=partition, after=after)
            name = f"{_retention_group(order)}_{partition}_after_{after}"
            yield name, Task(_RETENTION, (partition,), build)


def _retention_group(order: Order) -> str:
    return f"crosscult_retention_{'_'.join(order)}"


def _groups(tasks: Iterable[str]) -> Iterator[tuple[str, Group]]:
    names = tuple(tasks)
    finals = tuple(f"crosscult_sequential_{role}" for role in SEQUENTIAL_ROLES)
    orders = tuple(_retention_group(order) for order in ORDERS)
    yield "crosscult_single", Group(_SINGLE, _below("crosscult_single", names))
    for about, group, parts in (
        (_SEQUENTIAL, "crosscult_sequential", finals),
        (_RETENTION, "crosscult_retention", orders),
    ):
        yield group, Group(about, parts)
        for part in parts:
            yield part, Group(about, _below(part, names))


def _below(group: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name.startswith(f"{group}_"))


TASKS: Mapping[str, Task] = dict(_tasks())
"""Every task, by name."""

GROUPS: Mapping[str, Group] = dict(_groups(TASKS))
"""Every group, by name. The mean of the tasks of ``crosscult_single`` and ``crosscult_sequential``, with equal weight,
is Overall (equations 8 and 12)."""


def tasks_of(name: str) -> tuple[str, ...]:
    """Returns the tasks of a group, those of its groups included; of a task, itself."""
    if name in TASKS:
        return (name,)
    return tuple(task for member in GROUPS[name].members for task in tasks_of(member))
