"""The benchmarks that a judge grades, as far as their logged records tell: for grading them again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from culture_tasks.harness import care, crosscult, culturalvqa
from culture_tasks.harness.metric_lists import LEXICAL, Metric, judged_metrics

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JudgedBenchmark:
    """How records of one benchmark become metrics.

    Attributes:
        metric: Name of the overall judged metric.
        groups: Gives the parts of the data with a mean of their own, from any record of a task.
        belongs: Gives the parts that a record belongs to.
        score: Maps a rating to the metric's scale.
        weight_by_size: Whether every item of a group of its tasks weighs the same, as the group's file says, rather
            than every task.
    """

    metric: str
    groups: Callable[[Record], tuple[str, ...]]
    belongs: Callable[[Record], Collection[str]]
    score: Callable[[float], float]
    weight_by_size: bool = True

    def record_of(self, sample: Mapping[str, Any]) -> Record | None:
        """Returns the judged record of a logged sample, or None."""
        for name in (self.metric, f"{self.metric}{LEXICAL}"):
            record = sample.get(name)
            if isinstance(record, dict) and "runs" in record:
                return record
        return None

    def metrics(self, groups: tuple[str, ...]) -> list[Metric]:
        """Returns the metric list for these parts."""
        return judged_metrics(self.metric, groups)


def _culturalvqa(rubric: culturalvqa.VqaRubric) -> JudgedBenchmark:
    return JudgedBenchmark(
        rubric,
        lambda _: culturalvqa.GROUPS,
        lambda record: (record["country"], record["facet"]),
        partial(culturalvqa.fraction_of, rubric),
    )


JUDGED_BENCHMARKS: Mapping[str, JudgedBenchmark] = {
    "care": JudgedBenchmark(
        care.METRIC, lambda _: care.GROUPS, lambda record: (record["category"], record["scope"]), float
    ),
    "culturalvqa": _culturalvqa("lave"),
    "culturalvqa_lave3": _culturalvqa("lave3"),
    "crosscult": JudgedBenchmark(
        crosscult.JUDGED,
        lambda record: crosscult.GROUPS[record["setting"]],
        lambda record: (record["topic"], record["partition"]),
        float,
        weight_by_size=False,
    ),
}


def benchmark_of(sample: Mapping[str, Any]) -> tuple[JudgedBenchmark, Record] | None:
    """Returns the judged benchmark of a logged sample and its record, or None if no judge graded it."""
    for benchmark in JUDGED_BENCHMARKS.values():
        record = benchmark.record_of(sample)
        if record is not None:
            return benchmark, record
    return None
