"""Metrics whose value is known at once, with parts and standard errors as the judged ones have them.

A record is a number, or None where the metric does not concern the document.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import numpy as np

from culture_tasks.harness.aggregation import Aggregation
from culture_tasks.harness.metric_lists import Metric, metric


def mean_of_values(records: Iterable[float | None]) -> float:
    """Mean over the documents that the metric concerns; NaN without any."""
    values = _values(records)
    return float(values.mean()) if len(values) else math.nan


def stderr_of_values(records: Iterable[float | None]) -> float:
    """Standard error of :func:`mean_of_values`: the sample standard deviation over the square root of n.

    NaN with fewer than two documents.
    """
    values = _values(records)
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def _values(records: Iterable[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([record for record in records if record is not None], dtype=np.float64)


MEAN = Aggregation("mean", mean_of_values, stderr_of_values)


def plain_metrics(name: str, groups: Iterable[str]) -> list[Metric]:
    """Returns the metrics of a score: overall and for parts of the data."""
    return [metric(mean, MEAN, higher_is_better=True) for mean in (name, *(f"{name}_{group}" for group in groups))]


def plain_results(name: str, value: float, groups: Iterable[str], belongs: Collection[str]) -> dict[str, float | None]:
    """Returns one document's records for the metrics of :func:`plain_metrics`.

    Args:
        name: Name of the overall metric.
        value: The document's score.
        groups: All parts of the data with a mean of their own.
        belongs: The parts that the document belongs to.
    """
    return {name: value} | {f"{name}_{group}": value if group in belongs else None for group in groups}
