"""Which benchmarks there are, and which names they give to ``--tasks``.

A benchmark is a folder of :mod:`culture_tasks.benchmarks` with a ``benchmark.py``, an entry point of the group
``culture_tasks.benchmarks`` that another package has, or a culture in a folder of the user's. Nothing else has to be
edited to add one.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path

from culture_tasks import benchmarks as package
from culture_tasks.benchmarks.human_ratings import OffersHumanRatings
from culture_tasks.benchmarks.interface import Benchmark, Entry, Group, Harness, Metric, Tag, Task
from culture_tasks.benchmarks.own_culture import CultureBenchmark, LikeBenchmark, read_culture
from culture_tasks.errors import CultureTasksError, JudgeError, SettingsError, nearest
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.settings import Settings, culture_folders

ENTRY_POINTS = "culture_tasks.benchmarks"
"""Group of entry points by which another package adds benchmarks: each names a :class:`Benchmark`."""


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Returns every benchmark by name, those of this package first.

    Raises:
        CultureTasksError: If one of them doesn't keep the interface's rules.
    """
    offers = [*_offers(), *((str(culture.folder), culture) for culture in cultures().values())]
    by_name: dict[str, Benchmark] = {}
    owners: dict[tuple[str, str], str] = {}
    for where, benchmark in offers:
        if not isinstance(benchmark, Benchmark):
            raise CultureTasksError(f"{where}: found {type(benchmark).__name__}. Expected a Benchmark.")
        names = [("benchmark", benchmark.name)]
        names += [("task, group or tag", entry.name) for entry in benchmark.entries()]
        if not isinstance(benchmark, CultureBenchmark):  # which has the rubrics of the benchmark that it is like
            names += [("rubric", rubric.name) for rubric in benchmark.rubrics()]
        for kind, name in names:
            if owner := owners.get((kind, name)):
                raise CultureTasksError(
                    f"{where}: the {kind} {name!r} is one of {owner}'s already. Give it another name."
                )
            owners[kind, name] = benchmark.name
        by_name[benchmark.name] = benchmark
    return by_name


def _offers() -> list[tuple[str, object]]:
    """Returns what this package and others offer as benchmarks, each with where it comes from."""
    modules = [module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg]
    names = [f"{package.__name__}.{module}.benchmark" for module in modules]
    points = entry_points(group=ENTRY_POINTS)
    return [
        *((name, importlib.import_module(name).BENCHMARK) for name in names),
        *((f"the entry point {point.name!r} ({point.value})", point.load()) for point in points),
    ]


@cache
def cultures() -> Mapping[str, CultureBenchmark]:
    """Returns the benchmarks of the cultures in the user's folders, by name."""
    by_name: dict[str, CultureBenchmark] = {}
    for folder in dict.fromkeys(folder.resolve() for folder in culture_folders()):
        culture = culture_in(folder)
        if by_name.setdefault(culture.name, culture) is not culture:
            raise CultureTasksError(
                f"{folder}: its name {culture.file.name!r} is that of {by_name[culture.name].folder}. Give it another."
            )
    return by_name


def culture_in(folder: Path) -> CultureBenchmark:
    """Returns the benchmark of the culture in a folder, whether or not the user's settings name it."""
    return read_culture(folder, {like.name: like for _, like in _offers() if isinstance(like, LikeBenchmark)})


@cache
def entries() -> Mapping[str, Entry]:
    """Returns every task, group and tag, by name, in the order of the task table."""
    return {entry.name: entry for benchmark in benchmarks().values() for entry in benchmark.entries()}


@cache
def benchmark_of(name: str) -> Benchmark:
    """Returns the benchmark that a task, group or tag belongs to; KeyError for a name that isn't ours."""
    return {entry.name: benchmark for benchmark in benchmarks().values() for entry in benchmark.entries()}[name]


def title_of(name: str) -> str:
    """Returns the name in reports of a task or group; that of another task is its own name."""
    entry = entries().get(name)
    return entry.title or name if isinstance(entry, (Task, Group)) else name


def task_named(name: str) -> Task:
    """Returns a task; raises CultureTasksError for a name that isn't one."""
    entry = entries().get(name)
    if not isinstance(entry, Task):
        raise CultureTasksError(
            f"culture-tasks: no task {name!r}.{nearest(name, entries())} If it is of an own culture, name its folder "
            "with CULTURE_TASKS_CULTURES."
        )
    return entry


@cache
def metrics_of(task: str, benchmark: str, metric: str) -> Mapping[str, Metric]:
    """Returns the metrics of a task, by name; nothing where the package that defines them isn't installed.

    A user's task has the metrics of the first task of its benchmark with the same main metric.
    """
    own = entries().get(task)
    tasks = [own] if isinstance(own, Task) else []
    if benchmark in benchmarks():
        tasks += [other for other in benchmarks()[benchmark].tasks() if other.metric == metric]
    return {definition.name: definition for definition in tasks[0].metrics()} if tasks else {}


@cache
def tasks_below(name: str) -> tuple[Task, ...]:
    """Returns the tasks of a group or tag, also in its groups; of a task, itself."""
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
    """Returns the folder of a harness's task files, for its ``--include_path``.

    A benchmark may have another folder than this package's.
    """
    folder = None if benchmark is None else benchmark.task_files
    return (folder or Path(str(resources.files("culture_tasks.task_yamls")))) / harness


def task_folders(harness: Harness) -> list[Path]:
    """Returns the folders of all benchmarks' task files for a harness, each once."""
    return list(dict.fromkeys(task_folder(harness, benchmark) for benchmark in benchmarks().values()))


def task_file(entry: Task | Group, harness: Harness) -> Path:
    """Returns the YAML file of a task or group; a tag has none."""
    benchmark = benchmark_of(entry.name)
    return task_folder(harness, benchmark) / benchmark.name / f"{entry.name}.yaml"


def check_revisions(settings: Settings) -> None:
    """Raises SettingsError if a revision was chosen of a data set that no benchmark reads."""
    if not settings.revisions:
        return
    tables = [table for benchmark in benchmarks().values() for task in benchmark.tasks() for table in task.data.sources]
    offers = (benchmark for benchmark in benchmarks().values() if isinstance(benchmark, OffersHumanRatings))
    tables += [offer.human_ratings().source for offer in offers]
    data_sets = dict.fromkeys(table.hub for table in tables if table.hub)
    for name, _ in settings.revisions:
        if name not in data_sets:
            raise SettingsError(
                f"CULTURE_TASKS_REVISION: no benchmark reads a data set {name!r}.{nearest(name, data_sets)} "
                f"Expected one of {', '.join(data_sets)}."
            )


@cache
def rubrics() -> Mapping[str, Rubric]:
    """Returns the rubrics of all benchmarks, by name."""
    return {rubric.name: rubric for benchmark in benchmarks().values() for rubric in benchmark.rubrics()}


def rubric_named(name: str) -> Rubric:
    """Returns the rubric of that name; raises JudgeError if no benchmark has one."""
    if name not in rubrics():
        raise JudgeError(
            f"judges: no rubric {name!r}.{nearest(name, rubrics())} Expected one of {', '.join(rubrics())}."
        )
    return rubrics()[name]
