"""CrossCult-KIBench as a benchmark: its tasks, one for each role, and their groups.

A chain's steps are tasks of their own, and not documents of one task: with a document for each chain in each task, in
the same order, everything about a chain stays on one rank, and ``--limit`` keeps whole chains.
"""

from __future__ import annotations

import argparse
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Release, draw_file, load_release
from culture_tasks.benchmarks.crosscult.prompts import render
from culture_tasks.benchmarks.crosscult.raw_cases import SOURCE, Pictures
from culture_tasks.benchmarks.crosscult.rubrics import RUBRICS
from culture_tasks.benchmarks.crosscult.scoring import JUDGED, OVERLAP, Insertions, metrics, score
from culture_tasks.benchmarks.crosscult.training import training_cases
from culture_tasks.benchmarks.crosscult.vocabulary import (
    ORDERS,
    ORIGINAL_ORDER,
    PARTITIONS,
    SEQUENTIAL_ROLES,
    SINGLE_ROLES,
    Order,
    Setting,
)
from culture_tasks.benchmarks.interface import (
    HARNESSES,
    Benchmark,
    DataSet,
    Decoding,
    Documents,
    Entry,
    Group,
    Harness,
    Task,
)
from culture_tasks.benchmarks.training_cases import OffersTraining, TrainingCases
from culture_tasks.data.checking import DataReport
from culture_tasks.data.releases import check_release
from culture_tasks.data.sources import local_file
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.settings import Settings

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import BenchmarkReport

_DIAGNOSTIC = "each partition's question, nothing inserted (Figure 1b)"
_SINGLE = "four roles after one insertion; their mean is Overall (Table 2)"
_SEQUENTIAL = "three roles of each step after a chain of insertions; their mean is Overall (Table 3)"
_RETENTION = "reliability of what was inserted, after each step of a chain (Figures 6, 11-13); no mean in the paper"

_INSERTING: tuple[Harness, ...] = ("lmms_eval",)
"""The harness that has a model that inserts."""


class CrossCult(Benchmark, OffersTraining):
    """CrossCult-KIBench (2026)."""

    name = "crosscult"
    title = "CrossCult-KIBench"
    paper = "2026"
    judge = "Figure 10, gpt-5.4-mini"
    data = f"Hub {SOURCE.name}"

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the groups and then the tasks.

        The means of ``crosscult_single`` and ``crosscult_sequential`` over their tasks, each weighing the same, are
        Overall (equations 8 and 12).
        """
        tasks = tuple(_tasks())
        return (*_groups([task.name for task in tasks]), *tasks)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubric of Figure 10."""
        return RUBRICS

    def training_cases(self, data_folder: Path | None, limit: int | None = None) -> TrainingCases:
        """Loads the single-insert training cases."""
        return training_cases(data_folder, limit)

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.crosscult.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the raw cases."""
        from culture_tasks.benchmarks.crosscult.checking import check

        return check(data_folder)

    def add_data_commands(self, actions: argparse._SubParsersAction[Any]) -> None:
        """Adds ``culture-tasks data draw``."""
        from culture_tasks.benchmarks.crosscult.draw_command import register

        register(actions)


def _groups(tasks: Sequence[str]) -> Iterator[Group]:
    finals = [f"crosscult_sequential_{role}" for role in SEQUENTIAL_ROLES]
    orders = [_retention_group(order) for order in ORDERS]
    yield _group("crosscult_single", _SINGLE, _below("crosscult_single", tasks))
    for about, group, parts in (
        (_SEQUENTIAL, "crosscult_sequential", finals),
        (_RETENTION, "crosscult_retention", orders),
    ):
        yield _group(group, about, parts)
        for part in parts:
            yield _group(part, about, _below(part, tasks))


def _group(name: str, about: str, members: Iterable[str]) -> Group:
    return Group(
        name=name,
        about=about,
        members=tuple(members),
        means=(OVERLAP, JUDGED),
        weight_by_size=False,
        harnesses=_INSERTING,
    )


def _below(group: str, names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if name.startswith(f"{group}_"))


def _retention_group(order: Order) -> str:
    return f"crosscult_retention_{'_'.join(order)}"


_Build = Callable[[Release], Iterable[CrossCultDoc]]


def _tasks() -> Iterator[Task]:
    yield _task("crosscult_diagnostic", _DIAGNOSTIC, "diagnostic", PARTITIONS, Release.diagnostic, HARNESSES)
    for role in SINGLE_ROLES:
        build: _Build = partial(Release.single, role=role)
        yield _task(f"crosscult_single_{role}", _SINGLE, "single", PARTITIONS, build)
    for final, partition in itertools.product(SEQUENTIAL_ROLES, ORIGINAL_ORDER):
        build = partial(Release.sequential, role=final, partition=partition)
        yield _task(f"crosscult_sequential_{final}_{partition}", _SEQUENTIAL, "sequential", (partition,), build)
    for order in ORDERS:
        for after in range(1, len(order) + 1):
            for partition in order[:after]:
                build = partial(Release.retention, order=order, partition=partition, after=after)
                name = f"{_retention_group(order)}_{partition}_after_{after}"
                yield _task(name, _RETENTION, "retention", (partition,), build)


def _task(
    name: str,
    about: str,
    setting: Setting,
    languages: tuple[str, ...],
    build: _Build,
    harnesses: tuple[Harness, ...] = _INSERTING,
) -> Task:
    return Task(
        name=name,
        about=about,
        languages=languages,
        metric=JUDGED,
        metrics=partial(metrics, setting),
        data=DataSet((SOURCE,), partial(_documents, build)),
        prompt=render,
        score=score,
        decoding=Decoding(max_tokens=64),
        shows_images=True,
        target=lambda doc: doc["reference"],
        responses=Insertions,
        harnesses=harnesses,
        note="Decoding: Appendix E.2.",
    )


def _documents(build: _Build, settings: Settings) -> Documents:
    opened = open_release(settings.data_folder)
    return with_images(opened, list(build(opened.release)))


class Opened(NamedTuple):
    """A release with its images."""

    release: Release
    pictures: Pictures


_opened: dict[tuple[object, ...], Opened] = {}
_lock = threading.Lock()


def open_release(data_folder: Path | None) -> Opened:
    """Returns the release of a data folder (None: the Hub's), read once as long as its files stay as they are.

    All tasks are made of one release; an image is checked when the first task needs it.

    Raises:
        DataError: If the data or the draw can't be used.
    """
    files = (local_file(SOURCE, data_folder), draw_file(data_folder))
    key = tuple((path, path.stat().st_mtime_ns, path.stat().st_size) if path else None for path in files)
    with _lock:
        if key not in _opened:
            release = load_release(data_folder)
            _opened.clear()
            _opened[key] = Opened(release, Pictures(release.raw))
        opened = _opened[key]
    raw = opened.release.raw
    check_release(SOURCE.release, raw.table, raw.table.rows)
    return opened


def with_images(opened: Opened, docs: list[CrossCultDoc]) -> Documents:
    """Returns documents with their two image columns.

    ``image`` is decoded when a document is read. ``insertion_image`` is not, since most models have no use for it: it
    is a mapping with the image's file at ``path``.
    """
    import datasets

    release, pictures = opened
    shown = pictures.files(release.rows_of(doc["image_id"] for doc in docs))
    inserted = pictures.files(release.rows_of(doc["insertion_image_id"] for doc in docs))
    images = datasets.Dataset.from_dict({"image": shown, "insertion_image": inserted})
    images = images.cast_column("image", datasets.Image()).cast_column("insertion_image", datasets.Image(decode=False))
    return Documents(docs, images)


BENCHMARK = CrossCult()
