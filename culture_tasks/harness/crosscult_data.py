"""CrossCult-KIBench's data sets, one a task.

All of them are made of one release, which is read once; an image is checked when the first task needs it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from culture_tasks.benchmarks.crosscult.documents import CrossCultDoc, Release, draw_file, load_release
from culture_tasks.benchmarks.crosscult.raw_cases import SOURCE, Pictures
from culture_tasks.benchmarks.crosscult.tasks import TASKS
from culture_tasks.data.sources import local_file
from culture_tasks.harness import crosscult
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem

if TYPE_CHECKING:
    import datasets

Loader = Callable[[Path | None], tuple["datasets.Dataset", Iterable[tuple[Rubric, JudgeItem]]]]


class Opened(NamedTuple):
    """A release with its images."""

    release: Release
    pictures: Pictures


_opened: dict[tuple[object, ...], Opened] = {}
_lock = threading.Lock()


def open_release(data_folder: Path | None) -> Opened:
    """Returns the release of a data folder (None: the Hub's), read once as long as its files stay as they are.

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
        return _opened[key]


def loader(name: str) -> Loader:
    """Returns the loader of a data set (see :data:`culture_tasks.harness.loading.LOADERS`)."""

    def load(data_folder: Path | None) -> tuple[datasets.Dataset, Iterable[tuple[Rubric, JudgeItem]]]:
        opened = open_release(data_folder)
        docs = list(TASKS[name].build(opened.release))
        return with_images(opened, docs), crosscult.expected(docs)

    return load


def with_images(opened: Opened, docs: list[CrossCultDoc]) -> datasets.Dataset:
    """Returns documents as a data set with their two image columns.

    ``image`` is decoded when a document is read. ``insertion_image`` is not, since most models have no use for it: it
    is a mapping with the image's file at ``path``.
    """
    import datasets

    release, pictures = opened
    shown = pictures.files(release.rows_of(doc["image_id"] for doc in docs))
    inserted = pictures.files(release.rows_of(doc["insertion_image_id"] for doc in docs))
    data = datasets.Dataset.from_list([dict(doc) for doc in docs])
    images = datasets.Dataset.from_dict({"image": shown, "insertion_image": inserted})
    images = images.cast_column("image", datasets.Image()).cast_column("insertion_image", datasets.Image(decode=False))
    return datasets.concatenate_datasets([data, images], axis=1)
