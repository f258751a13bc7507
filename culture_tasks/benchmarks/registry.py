"""Which benchmarks there are, and which names they give to ``--tasks``.

A benchmark is a folder of :mod:`culture_tasks.benchmarks` with a ``benchmark.py``, or an entry point of the group
``culture_tasks.benchmarks`` that another package has. Nothing else has to be edited to add one.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

from culture_tasks import benchmarks as package
from culture_tasks.benchmarks.human_ratings import OffersHumanRatings
from culture_tasks.benchmarks.interface import Benchmark, Entry, Group, Harness, Metric, Tag, Task
from culture_tasks.data.reading import reading
from culture_tasks.errors import CultureTasksError, JudgeError, SettingsError, nearest
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.settings import Settings

ENTRY_POINTS = "culture_tasks.benchmarks"
"""Group of entry points by which another package adds benchmarks: each names a :class:`Benchmark`."""


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Returns every benchmark by name, those of this package first.

    Raises:
        CultureTasksError: If one of them doesn't keep the interface's rules.
    """
    found: dict[str, Benchmark] = {}
    taken: dict[tuple[str, str], str] = {}
    for where, benchmark in (*_own(), *_of_other_packages()):
        if not isinstance(benchmark, Benchmark):
            raise CultureTasksError(f"{where}: found {type(benchmark).__name__}. Expected a Benchmark.")
        names = [("benchmark", benchmark.name)]
        names += [("task, group or tag", entry.name) for entry in benchmark.entries()]
        names += [("rubric", rubric.name) for rubric in benchmark.rubrics()]
        for kind, name in names:
            if (kind, name) in taken:
                raise CultureTasksError(
                    f"{where}: the {kind} {name!r} is one of {taken[kind, name]}'s already. Give it another name."
                )
            taken[kind, name] = benchmark.name
        found[benchmark.name] = benchmark
    return found


def _own() -> Iterator[tuple[str, object]]:
    for module in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{module.name}"
        if module.ispkg and importlib.util.find_spec(f"{name}.benchmark"):
            yield f"{name}.benchmark", importlib.import_module(f"{name}.benchmark").BENCHMARK


def _of_other_packages() -> Iterator[tuple[str, object]]:
    for point in entry_points(group=ENTRY_POINTS):
        yield f"the entry point {point.name!r} ({point.value})", point.load()


@cache
def entries() -> Mapping[str, Entry]:
    """Returns every task, group and tag, by name, in the order of the task table."""
    return {entry.name: entry for benchmark in benchmarks().values() for entry in benchmark.entries()}


@cache
def benchmark_of(name: str) -> Benchmark:
    """Returns the benchmark that a task, group or tag belongs to; KeyError for a name that isn't ours."""
    return {entry.name: benchmark for benchmark in benchmarks().values() for entry in benchmark.entries()}[name]


def task_named(name: str) -> Task:
    """Returns a task.

    Raises:
        CultureTasksError: If there is no task of that name.
    """
    entry = entries().get(name)
    if not isinstance(entry, Task):
        raise CultureTasksError(f"culture-tasks: no task {name!r}.{nearest(name, entries())}")
    return entry


@cache
def metrics_of(task: str, benchmark: str, metric: str) -> Mapping[str, Metric]:
    """Returns the metrics of a task, by name; nothing where the package that defines them isn't installed.

    Args:
        task: The task. A user's own has those of the first task of its benchmark with the same main metric.
        benchmark: Its benchmark.
        metric: Its main metric.
    """
    known = entries().get(task)
    alike = benchmarks()[benchmark].entries() if benchmark in benchmarks() else ()
    for each in (known, *alike):
        if isinstance(each, Task) and (each is known or each.metric == metric):
            return {one.name: one for one in each.metrics()}
    return {}


@cache
def tasks_below(name: str) -> tuple[Task, ...]:
    """Returns the tasks of a group or tag, those of its groups included; of a task, itself."""
    entry = entries()[name]
    if isinstance(entry, Task):
        return (entry,)
    return tuple(task for member in entry.members for task in tasks_below(member))


def in_harness(entry: Entry, harness: Harness) -> bool:
    """Returns whether a harness has this task, group or tag."""
    if isinstance(entry, Tag):
        return any(in_harness(entries()[member], harness) for member in entry.members)
    return harness in entry.harnesses


def task_folder(harness: Harness, benchmark: Benchmark | None = None) -> Path:
    """Returns the folder of a harness's task files: what its ``--include_path`` takes.

    Args:
        harness: The harness.
        benchmark: A benchmark, which may have a folder of its own; None means the folder of this package.
    """
    own = None if benchmark is None else benchmark.task_files
    return (own or Path(str(resources.files("culture_tasks.task_yamls")))) / harness


def task_folders(harness: Harness) -> list[Path]:
    """Returns the folders of all benchmarks' task files for a harness, each once."""
    return list(dict.fromkeys(task_folder(harness, benchmark) for benchmark in benchmarks().values()))


def task_file(entry: Task | Group, harness: Harness) -> Path:
    """Returns the YAML file of a task or group; a tag has none."""
    benchmark = benchmark_of(entry.name)
    return task_folder(harness, benchmark) / benchmark.name / f"{entry.name}.yaml"


@cache
def hub_names() -> tuple[str, ...]:
    """Returns the names of all data sets of the Hub that a benchmark reads."""
    sources = [source for name in entries() for task in tasks_below(name) for source in task.data.sources]
    sources += [each.human_ratings().source for each in benchmarks().values() if isinstance(each, OffersHumanRatings)]
    return tuple(dict.fromkeys(source.hub for source in sources if source.hub))


class DataRead(NamedTuple):
    """What a block of code has read.

    Attributes:
        commits: The commits of the Hub's data sets, by data set.
        own: The user's files that aren't the release, each with what differs.
    """

    commits: Mapping[str, str]
    own: Mapping[str, str]


@contextmanager
def reading_data(settings: Settings) -> Iterator[DataRead]:
    """Applies what the user chose to the reading of data in a block of code.

    Yields:
        What is read, as it is read.

    Raises:
        SettingsError: If a revision was chosen of a data set that no benchmark reads.
    """
    for name, _ in settings.revisions:
        if name not in hub_names():
            raise SettingsError(
                f"CULTURE_TASKS_REVISION: no benchmark reads a data set {name!r}.{nearest(name, hub_names())} "
                f"Known are {', '.join(hub_names())}."
            )
    with reading(settings) as block:
        yield DataRead(block.commits, block.differences)


@cache
def rubrics() -> Mapping[str, Rubric]:
    """Returns the rubrics of all benchmarks, by name."""
    return {rubric.name: rubric for benchmark in benchmarks().values() for rubric in benchmark.rubrics()}


def rubric_named(name: str) -> Rubric:
    """Returns the rubric of that name.

    Raises:
        JudgeError: If no benchmark has one.
    """
    if name not in rubrics():
        raise JudgeError(f"judges: no rubric {name!r}.{nearest(name, rubrics())} Known are {', '.join(rubrics())}.")
    return rubrics()[name]
