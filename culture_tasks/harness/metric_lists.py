"""The metric lists of the task files, which would be long and alike as YAML.

A judged metric ``x`` comes with ``x_coverage`` and the counts of the verdicts that were not scored. With the lexical
judge its name is ``x_lexical``, so that text overlap never passes for a judge's score; both names are registered, and a
run reports one of them.

The harnesses give no standard error to an aggregation that isn't theirs: they leave the entry ``x_stderr`` at "N/A".
A metric named ``x_stderr`` over the same records, listed after ``x``, takes that entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache, partial
from itertools import chain
from typing import Any, Literal, NamedTuple

from culture_tasks.harness import aggregation
from culture_tasks.harness.judged import JudgedDocument
from culture_tasks.harness.records import CountedRecord, PartRecord
from culture_tasks.judges.verdicts import Outcome

Metric = dict[str, Any]

LEXICAL = "_lexical"
_UNJUDGED: Outcome = "unjudged"
_COUNTED: tuple[Outcome, ...] = ("unparsable", "refused", "failed")


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
        _metric(f"{name}_coverage", aggregation.coverage, "higher"),
        _metric(f"{name}_coverage_stderr", aggregation.coverage_stderr, "lower"),
        *(
            _metric(f"{name}_{outcome}", partial(aggregation.outcome_count, outcome=outcome), "lower")
            for outcome in (*_COUNTED, _UNJUDGED)
        ),
    ]


def _means(base: str, groups: list[str]) -> list[Metric]:
    means = [base, *(f"{base}_{group}" for group in groups)]
    return [
        *(_metric(mean, aggregation.mean_of_scored, "higher") for mean in means),
        *(_metric(f"{mean}_stderr", aggregation.stderr_of_scored, "lower") for mean in means),
        _metric(f"{base}_run_sd", aggregation.spread_over_runs, "lower"),
    ]


def _metric(name: str, function: Any, better: Literal["higher", "lower"]) -> Metric:
    return {"metric": name, "aggregation": function, "higher_is_better": better == "higher"}


class _Places(NamedTuple):
    """Where one document's record goes.

    Attributes:
        empty: Every metric with None, in the order of the results.
        base: The overall metric, which gets the record itself.
        scores: Metrics over every document's score.
        counts: Metrics over the outcomes.
        groups: Metric and metric of the standard error of each group.
    """

    empty: Mapping[str, None]
    base: str
    scores: tuple[str, ...]
    counts: tuple[str, ...]
    groups: Mapping[str, tuple[str, str]]


@cache
def _places(name: str, backend: str, groups: tuple[str, ...], repeated: bool) -> _Places:
    base = f"{name}{LEXICAL}" if backend == "lexical" else name
    outcomes = (*_COUNTED, _UNJUDGED) if backend == "none" else _COUNTED
    of_groups = {group: (f"{base}_{group}", f"{base}_{group}_stderr") for group in groups}
    spread = [f"{base}_run_sd"] if repeated else []
    counts = tuple(f"{name}_{part}" for part in ("coverage", "coverage_stderr", *outcomes))
    order = [base, f"{base}_stderr", *chain.from_iterable(of_groups.values()), *spread, *counts]
    return _Places(dict.fromkeys(order), base, (f"{base}_stderr", *spread), counts, of_groups)


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
    for metric in places.scores:
        results[metric] = part
    for metric in places.counts:
        results[metric] = counted
    for group in belongs:
        for metric in places.groups.get(group, ()):
            results[metric] = part
    return results
