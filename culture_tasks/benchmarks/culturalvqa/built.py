"""The benchmark of a culture like CulturalVQA that people added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from culture_tasks.benchmarks.culturalvqa.benchmark import WAYS, task_of
from culture_tasks.benchmarks.culturalvqa.documents import check_rows
from culture_tasks.benchmarks.culturalvqa.report import report_of
from culture_tasks.benchmarks.culturalvqa.rubrics import RUBRICS
from culture_tasks.benchmarks.cultures import BuiltCulture
from culture_tasks.benchmarks.interface import Benchmark, Entry
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport
from culture_tasks.judges.rubric.rubrics import Rubric

TEST = "test"
"""Name of its table of questions."""


class CulturalVqaCulture(Benchmark):
    """The questions about images of a culture that people added."""

    paper = "made like Nayak et al., 2024"
    judge = "LAVE, GPT-4o"
    data = "own culture"

    def __init__(self, built: BuiltCulture) -> None:
        self.name, self.title = built.benchmark, f"CulturalVQA, {built.title}"
        self.marks, self.task_files = built.marks, built.task_files
        self._built = built

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns the tasks for which the culture has the data; nobody named visual entities."""
        built = self._built
        missing = {"lens": True, "fewshot": not built.facts["fewshot"]}
        return tuple(
            task_of(
                way,
                name=f"{self.name}{way.suffix}",
                benchmark_title=self.title,
                language=built.language,
                source=built.source(TEST, "image"),
                countries=(built.name,),
                country_named=lambda _: built.name,
            )
            for way in WAYS
            if not missing.get(way.variant)
        )

    def rubrics(self) -> Sequence[Rubric]:
        """Returns LAVE's rubric as the paper changed it, and LAVE's own."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of CulturalVQA, with the culture as its one country."""
        built = self._built
        report = report_of(self.name, self.title, {built.name: built.title}, {built.name: built.place})
        return replace(report, as_published=())

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks questions, answers and images."""
        return check_rows(self.name, data_folder, self._built.source(TEST, "image"))
