"""The tasks of CrossCult-KIBench and their groups, as data: what each is named, asks and measures.

A chain's steps are tasks of their own, and not documents of one task: with a document for each chain in each task, in
the same order, everything about a chain stays on one rank, and ``--limit`` keeps whole chains.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from culture_tasks.benchmarks.crosscult.construction import Release
from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc
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
        about: What it measures, in a few words.
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


def _tasks() -> Iterator[tuple[str, Task]]:
    plain = "each partition's question, nothing inserted (Figure 1b)"
    yield "crosscult_diagnostic", Task(plain, PARTITIONS, Release.diagnostic)
    for role in SINGLE_ROLES:
        build = partial(Release.single, role=role)
        yield f"crosscult_single_{role}", Task(f"{role} after one insertion (Table 2)", PARTITIONS, build)
    for final, partition in itertools.product(SEQUENTIAL_ROLES, ORIGINAL_ORDER):
        about = f"final {final} of {partition} (Table 3)"
        build = partial(Release.sequential, role=final, partition=partition)
        yield f"crosscult_sequential_{final}_{partition}", Task(about, (partition,), build)
    for order in ORDERS:
        yield from _retention_tasks(order)


def _retention_tasks(order: Order) -> Iterator[tuple[str, Task]]:
    for after in range(1, len(order) + 1):
        for partition in order[:after]:
            about = f"reliability of {partition} after step {after} of {'-'.join(order)} (Figures 6, 11-13)"
            build = partial(Release.retention, order=order, partition=partition, after=after)
            yield f"{_retention_group(order)}_{partition}_after_{after}", Task(about, (partition,), build)


def _retention_group(order: Order) -> str:
    return f"crosscult_retention_{'_'.join(order)}"


def _groups(tasks: Iterable[str]) -> Iterator[tuple[str, Group]]:
    names = tuple(tasks)

    def below(group: str) -> tuple[str, ...]:
        return tuple(name for name in names if name.startswith(f"{group}_"))

    yield "crosscult_single", Group("after one insertion (Table 2)", below("crosscult_single"))
    finals = {f"crosscult_sequential_{role}": f"final {role} (Table 3)" for role in SEQUENTIAL_ROLES}
    yield "crosscult_sequential", Group("after a chain of three insertions (Table 3)", tuple(finals))
    orders = {_retention_group(order): f"inserted in the order {'-'.join(order)}" for order in ORDERS}
    yield "crosscult_retention", Group("reliability after each step of a chain (Figures 6, 11-13)", tuple(orders))
    for group, about in (finals | orders).items():
        yield group, Group(about, below(group))


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
