"""The benchmark of a built culture."""

from __future__ import annotations

from pathlib import Path

from culture_tasks.benchmarks.crosscult.benchmark import KnowledgeInsertion, TrainsInsertion
from culture_tasks.benchmarks.crosscult.culture_entries import TABLE
from culture_tasks.benchmarks.crosscult.culture_options import PARTITION
from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Partition
from culture_tasks.benchmarks.cultures import MANIFEST, BuiltCulture
from culture_tasks.data.checking import DataReport
from culture_tasks.errors import DataError


class OwnCulture(KnowledgeInsertion):
    """A built culture."""

    def __init__(self, built: BuiltCulture, edition: Edition) -> None:
        self.edition = edition
        self.name, self.title = edition.name, edition.title
        self.paper = "made like Zeng et al., 2026"
        self.data = f"own culture ({built.way})"
        self.made_from = (PAPER.title,) if built.way == PARTITION else ()
        self.marks = built.marks
        self.task_files = built.task_files
        self._folder = built.folder

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the raw cases in its folder."""
        report = super().check(data_folder)
        report.title = f"{self.name}: {self._folder}"
        return report


class OwnTrainingCulture(OwnCulture, TrainsInsertion):
    """A built culture with cases to train on."""


def benchmark_of(built: BuiltCulture) -> OwnCulture:
    """Returns the benchmark of a built culture; raises DataError for a manifest that isn't of this benchmark."""
    try:
        edition = Edition(
            name=built.benchmark,
            title=f"{PAPER.title}, {built.title}",
            source=built.source(TABLE, image_column="image"),
            partitions=tuple(Partition(**partition) for partition in built.facts["partitions"]),
            targets=tuple(built.facts["targets"]),
            orders=tuple(tuple(order) for order in built.facts["orders"]),
            diagnostic=built.benchmark,
            seed=built.facts["seed"],
        )
        trains = built.facts["has_training"]
    except (KeyError, TypeError) as error:
        raise DataError(f"{built.folder / MANIFEST}, field 'facts': {error}. Build the culture again.") from None
    return (OwnTrainingCulture if trains else OwnCulture)(built, edition)
