"""The metric lists of the task files, which would be long and alike as YAML.

A judged metric ``x`` comes with ``x_coverage`` and ``x_unscored``. With the lexical judge its name is ``x_lexical``, so
that text overlap never passes for a judge's score. A task file lists what a run can have; a run's results list what it
has (see :mod:`culture_tasks.harness.result_rows`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from culture_tasks.harness import aggregation
from culture_tasks.harness.aggregation import Aggregation
from culture_tasks.harness.judged import JudgedDocument
from culture_tasks.harness.records import CountedRecord, PartRecord

Metric = dict[str, Any]

LEXICAL = "_lexical"


def judged_metrics(name: str, groups: Iterable[str]) -> list[Metric]:
    """Returns the metrics of a judged benchmark.

    Args:
        name: Name of the overall metric, such as ``lave``.
        groups: Parts of the data with a mean of their own, such as ``brazil``.
    """
    parts = list(groups)
    return [
        *_means(name, parts),
        *_means(f"{name}{LEXICAL}", parts),
        metric(f"{name}_coverage", aggregation.COVERAGE, higher_is_better=True),
        metric(f"{name}_unscored", aggregation.UNSCORED, higher_is_better=False),
    ]


def _means(base: str, groups: list[str]) -> list[Metric]:
    means = [base, *(f"{base}_{group}" for group in groups)]
    return [
        *(metric(mean, aggregation.MEAN_OF_SCORED, higher_is_better=True) for mean in means),
        metric(f"{base}_run_sd", aggregation.SPREAD_OVER_RUNS, higher_is_better=False),
    ]


def metric(name: str, function: Aggregation, *, higher_is_better: bool | None) -> Metric:
    """Returns an entry of a metric list; ``higher_is_better`` is None where a value in between is neutral."""
    return {"metric": name, "aggregation": function, "higher_is_better": higher_is_better}


class _Places(NamedTuple):
    """Where one document's record goes.

    Attributes:
        empty: Every metric with None, in the order of the results.
        base: The overall metric, which gets the record itself.
        counts: Metrics over all documents that are no mean of scores.
        groups: The metric of each part of the data.
    """

    empty: Mapping[str, None]
    base: str
    counts: tuple[str, ...]
    groups: Mapping[str, str]


@cache
def _places(name: str, backend: str, groups: tuple[str, ...], repeated: bool) -> _Places:
    base = f"{name}{LEXICAL}" if backend == "lexical" else name
    of_groups = {group: f"{base}_{group}" for group in groups}
    spread = (f"{base}_run_sd",) if repeated else ()
    counts = (*spread, f"{name}_coverage", f"{name}_unscored")
    return _Places(dict.fromkeys((base, *of_groups.values(), *counts)), base, counts, of_groups)


def judged_results(
    name: str, document: JudgedDocument, groups: tuple[str, ...], belongs: Collection[str]
) -> dict[str, Any]:
    """Returns one document's records for the metrics of :func:`judged_metrics`.

    Every document has every metric, with None where the metric doesn't concern it: lmms-eval takes the length of the
    last list for the number of documents, and lm-eval warns about lists of different lengths.

    Args:
        name: Name of the overall metric.
        document: The judged document.
        groups: All parts of the data with a mean of their own.
        belongs: The parts that the document belongs to.
    """
    places = _places(name, document.judge["backend"], groups, document.runs > 1)
    record = document.record()
    part, counted = PartRecord(record), CountedRecord(record)
    results: dict[str, Any] = {**places.empty}
    results[places.base] = record
    for place in places.counts:
        results[place] = counted
    for group in belongs:
        if group in places.groups:
            results[places.groups[group]] = part
    return results
