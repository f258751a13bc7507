"""CrossCult-KIBench as a benchmark: its tasks, one for each role, and their groups.

A chain's steps are tasks of their own, and not documents of one task: with a document for each chain in each task, in
the same order, everything about a chain stays on one rank, and ``--limit`` keeps whole chains.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.crosscult import documents, draw
from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Release
from culture_tasks.benchmarks.crosscult.raw_cases import SOURCE
from culture_tasks.benchmarks.crosscult.rubrics import RUBRICS
from culture_tasks.benchmarks.crosscult.scoring import JUDGED, OVERLAP, Insertions, metrics, score
from culture_tasks.benchmarks.crosscult.vocabulary import (
    LANGUAGE_NAMES,
    ORDERS,
    ORIGINAL_ORDER,
    PARTITIONS,
    SEQUENTIAL_ROLES,
    SINGLE_ROLES,
    Order,
    Role,
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
    Picture,
    Prompt,
    Task,
)
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.benchmarks.training_cases import OffersTraining, TrainingCases
from culture_tasks.data.checking import DataReport
from culture_tasks.data.releases import check_release
from culture_tasks.data.sources import local_file
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.settings import Settings

_SETTINGS: Mapping[Setting, tuple[str, str]] = {
    "diagnostic": ("nothing inserted", "each partition's question, nothing inserted (Figure 1b)"),
    "single": ("one insertion", "four roles after one insertion; their mean is Overall (Table 2)"),
    "sequential": (
        "a chain of insertions",
        "three roles of each step after a chain of insertions; their mean is Overall (Table 3)",
    ),
    "retention": (
        "retention",
        "reliability of what was inserted, after each step of a chain (Figures 6, 11-13); no mean in the paper",
    ),
}
"""Title of each setting, and what it is about."""

_INSERTING: tuple[Harness, ...] = ("lmms_eval",)  # it has a model that inserts


class CrossCult(Benchmark, OffersTraining):
    """CrossCult-KIBench (2026)."""

    name = "crosscult"
    title = "CrossCult-KIBench"
    paper = "2026"
    judge = "Figure 10, gpt-5.4-mini"
    data = f"Hub {SOURCE.name}"
    made_from = ("HaGRID", "Fashionpedia", "ChineseFoodNet", "VireoFood172", "SVHN", "CCPD", "Open Images V7")

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the groups and then the tasks.

        The means of ``crosscult_single`` and ``crosscult_sequential`` over their tasks, each weighing the same, are
        Overall (equations 8 and 12).
        """
        single = [
            _task(f"_{role}", f": {_words(role)}", "single", PARTITIONS, partial(Release.single, role=role))
            for role in SINGLE_ROLES
        ]
        groups = [_group("", "", "single", single)]
        tasks = [_task("", "", "diagnostic", PARTITIONS, Release.diagnostic), *single]
        sequential = [(f"_{role}", f": {_words(role)}", list(_sequential(role))) for role in SEQUENTIAL_ROLES]
        retention = [(f"_{'_'.join(order)}", _in_order(order), list(_retention(order))) for order in ORDERS]
        chains: tuple[tuple[Setting, list[tuple[str, str, list[Task]]]], ...]
        chains = ("sequential", sequential), ("retention", retention)
        for setting, parts in chains:
            below = [_group(ending, title, setting, members) for ending, title, members in parts]
            groups += [_group("", "", setting, below), *below]
            tasks += chain(*(members for _, _, members in parts))
        return (*groups, *tasks)

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubric of Figure 10."""
        return RUBRICS

    def training_cases(self, data_folder: Path | None, limit: int | None = None) -> TrainingCases:
        """Loads the single-insert training cases."""
        return documents.training_cases(data_folder, limit)

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of the paper."""
        from culture_tasks.benchmarks.crosscult.report import REPORT

        return REPORT

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the raw cases."""
        return documents.check(data_folder)

    def add_data_commands(self, actions: argparse._SubParsersAction[Any]) -> None:
        """Adds ``culture-tasks data draw``."""
        draw.register(actions)


def _sequential(role: Role) -> Iterator[Task]:
    for each in ORIGINAL_ORDER:
        title = f": {_words(role)}, {LANGUAGE_NAMES[each]}"
        build = partial(Release.sequential, role=role, partition=each)
        yield _task(f"_{role}_{each}", title, "sequential", (each,), build)


def _retention(order: Order) -> Iterator[Task]:
    for after in range(1, len(order) + 1):
        for partition in order[:after]:
            ending = f"_{'_'.join(order)}_{partition}_after_{after}"
            title = f"{_in_order(order)}: {LANGUAGE_NAMES[partition]} after step {after}"
            build = partial(Release.retention, order=order, partition=partition, after=after)
            yield _task(ending, title, "retention", (partition,), build)


def _words(role: Role) -> str:
    return role.replace("cross_", "cross-").replace("_", " ")


def _in_order(order: Order) -> str:
    return f" in the order {', '.join(LANGUAGE_NAMES[partition] for partition in order)}"


def _group(ending: str, title: str, setting: Setting, members: Iterable[Task | Group]) -> Group:
    return Group(
        name=f"crosscult_{setting}{ending}",
        about=_SETTINGS[setting][1],
        title=f"{CrossCult.title}, {_SETTINGS[setting][0]}{title}",
        members=tuple(member.name for member in members),
        means=(OVERLAP, JUDGED),
        weight_by_size=False,
        harnesses=_INSERTING,
    )


def _task(
    ending: str,
    title: str,
    setting: Setting,
    languages: tuple[str, ...],
    build: Callable[[Release], Iterable[CrossCultDoc]],
) -> Task:
    return Task(
        name=f"crosscult_{setting}{ending}",
        about=_SETTINGS[setting][1],
        title=f"{CrossCult.title}, {_SETTINGS[setting][0]}{title}",
        languages=languages,
        metric=JUDGED,
        metrics=partial(metrics, setting),
        data=DataSet((SOURCE,), partial(_documents, build)),
        prompt=_prompt,
        score=score,
        decoding=Decoding(max_tokens=64),
        shows_images=True,
        target=lambda doc: doc["reference"],
        responses=Insertions,
        harnesses=HARNESSES if setting == "diagnostic" else _INSERTING,
        note="Decoding: Appendix E.2.",
    )


def _prompt(doc: CrossCultDoc) -> Prompt:
    """Returns the prompt for a request: image and question, with the system prompt of its language (Figure 9)."""
    return Prompt((Picture(), doc["question"]), system=documents.system_prompt(doc["language"]))


def _documents(build: Callable[[Release], Iterable[CrossCultDoc]], settings: Settings) -> Documents:
    """Returns the documents of a task with their two image columns, of which ``insertion_image`` is never decoded."""
    import datasets

    release = open_release(settings.data_folder)
    docs = list(build(release))
    shown = release.raw.images(doc["image_id"] for doc in docs)
    inserted = release.raw.images(doc["insertion_image_id"] for doc in docs)
    images = datasets.Dataset.from_dict({"image": shown, "insertion_image": inserted})
    images = images.cast_column("image", datasets.Image()).cast_column("insertion_image", datasets.Image(decode=False))
    return Documents(docs, images)


_lock = threading.Lock()


def open_release(data_folder: Path | None) -> Release:
    """Returns the release that all tasks are made of, read once as long as its files stay as they are."""
    files = [path for path in (local_file(SOURCE, data_folder), draw.draw_file(data_folder)) if path]
    with _lock:
        release = _read(data_folder, tuple((path, path.stat().st_mtime_ns, path.stat().st_size) for path in files))
    check_release(SOURCE.release, release.raw.table, release.raw.table.rows)
    return release


@lru_cache(maxsize=1)
def _read(data_folder: Path | None, state: object) -> Release:  # noqa: ARG001 - the state of the files
    return documents.load_release(data_folder)


BENCHMARK = CrossCult()
