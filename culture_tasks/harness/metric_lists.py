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
from typing import Any, Literal, NamedTuple

from culture_tasks.harness import aggregation
from culture_tasks.harness.judged import JudgedDocument
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


class _Names(NamedTuple):
    """The names under which one document's records are returned, in order.

    Attributes:
        base: The overall metric.
        groups: Metric and metric of the standard error of each group.
        counted: Metrics over the outcomes.
    """

    base: str
    groups: Mapping[str, tuple[str, str]]
    counted: tuple[str, ...]


@cache
def _names(name: str, backend: str, groups: tuple[str, ...]) -> _Names:
    base = f"{name}{LEXICAL}" if backend == "lexical" else name
    outcomes = (*_COUNTED, _UNJUDGED) if backend == "none" else _COUNTED
    return _Names(
        base,
        {group: (f"{base}_{group}", f"{base}_{group}_stderr") for group in groups},
        tuple(f"{name}_{part}" for part in ("coverage", "coverage_stderr", *outcomes)),
    )


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
    names = _names(name, document.identity.backend, groups)
    scores, outcomes = document.scores(), document.outcomes()
    results: dict[str, Any] = {names.base: document.record(), f"{names.base}_stderr": scores}
    for group, (mean, stderr) in names.groups.items():
        results[mean] = results[stderr] = scores if group in belongs else None
    if document.runs > 1:
        results[f"{names.base}_run_sd"] = scores
    for counted in names.counted:
        results[counted] = outcomes
    return results
