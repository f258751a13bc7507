"""The benchmark of a culture like CARE that people added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from culture_tasks.benchmarks.care.annotations import HUMAN_RATINGS
from culture_tasks.benchmarks.care.benchmark import VARIANTS, task_of
from culture_tasks.benchmarks.care.documents import table_check
from culture_tasks.benchmarks.care.report import report_of
from culture_tasks.benchmarks.care.rubrics import RUBRICS
from culture_tasks.benchmarks.cultures import BuiltCulture
from culture_tasks.benchmarks.human_ratings import HumanRatings, OffersHumanRatings
from culture_tasks.benchmarks.interface import Benchmark, Entry
from culture_tasks.benchmarks.reporting import BenchmarkReport
from culture_tasks.data.checking import DataReport, check_tables
from culture_tasks.judges.rubric.rubrics import Rubric

TEST, RATINGS = "test", "ratings"
"""Names of its tables."""


class CareCulture(Benchmark):
    """The questions about a culture that people added."""

    paper = "made like Guo et al., 2025"
    judge = "three rubrics, GPT-4o"

    def __init__(self, built: BuiltCulture) -> None:
        self.name, self.title, self.data = built.benchmark, f"CARE, {built.title}", "own culture"
        self.made_from, self.marks, self.task_files = built.facts["made_from"], built.marks, built.task_files
        self._built = built

    @cache  # noqa: B019 - one object a process
    def entries(self) -> Sequence[Entry]:
        """Returns a task for each way of asking for which the culture has the data."""
        built, people = self._built, self._built.facts["people"]
        missing = {"roleplay": not people}
        return tuple(
            task_of(
                variant,
                name=f"{self.name}{variant.suffix}",
                title=f"{variant.title}, {built.title}",
                language=built.language,
                people=people,
                source=built.source(TEST),
            )
            for variant in VARIANTS
            if not missing.get(variant.prompt) and (built.facts["english"] or not variant.english)
        )

    def rubrics(self) -> Sequence[Rubric]:
        """Returns the rubrics of Figures 11-13."""
        return RUBRICS

    def report(self) -> BenchmarkReport:
        """Returns the numbers, tables and figures of CARE, with the culture in the place of the languages."""
        built, native = self._built, {f"{self.name}_en": self.name}
        languages, places = {built.language: built.title}, {built.language: built.place}
        return report_of(self.name, self.title, languages, places, native)

    def check(self, data_folder: Path | None) -> DataReport:
        """Checks the questions."""
        return check_tables(self.name, data_folder, [table_check(self._built.source(TEST), self._built.language)])


class RatedCareCulture(CareCulture, OffersHumanRatings):
    """A culture whose people rated responses, too."""

    def human_ratings(self) -> HumanRatings:
        """Returns the rated responses to the questions outside of the test."""
        return replace(
            HUMAN_RATINGS,
            about=f"the rated responses of {self.title}",
            source=self._built.source(RATINGS),
            tests=(self.name,),
            published=(),
            published_in="",
        )


def benchmark_of(built: BuiltCulture) -> Benchmark:
    """Returns the benchmark of a built culture."""
    return RatedCareCulture(built) if built.facts["ratings"] else CareCulture(built)
