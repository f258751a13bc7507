"""The metric lists of the task files, which would be long and alike as YAML.

A judged metric ``x`` comes with ``x_coverage`` and the counts of the verdicts that were not scored. With the lexical
judge its name is ``x_lexical``, so that text overlap never passes for a judge's score; both names are registered, and a
run reports one of them.

The harnesses give no standard error to an aggregation that isn't theirs: they leave the entry ``x_stderr`` at "N/A".
A metric named ``x_stderr`` over the same records, listed after ``x``, takes that entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Literal

from culture_tasks.harness import aggregation
from culture_tasks.harness.judged import JudgedDocument

Metric = dict[str, Any]

LEXICAL = "_lexical"
_COUNTED = ("unparsable", "refused", "failed")


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
            for outcome in (*_COUNTED, "unjudged")
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


def judged_results(name: str, document: JudgedDocument, groups: Mapping[str, bool]) -> dict[str, Any]:
    """Returns one document's records for the metrics of :func:`judged_metrics`.

    Every document has every metric, with None where the metric doesn't concern it: lmms-eval takes the length of the
    last list for the number of documents, and lm-eval warns about lists of different lengths.

    Args:
        name: Name of the overall metric.
        document: The judged document.
        groups: For each part of the data whether the document belongs to it.
    """
    base = f"{name}{LEXICAL}" if document.identity.backend == "lexical" else name
    scores, outcomes = document.scores(), document.outcomes()
    results: dict[str, Any] = {base: document.record()}
    results |= {f"{base}_{group}": scores if belongs else None for group, belongs in groups.items()}
    results |= {f"{mean}_stderr": scores if record is not None else None for mean, record in results.items()}
    if document.runs > 1:
        results[f"{base}_run_sd"] = scores
    counted = (*_COUNTED, "unjudged") if document.identity.backend == "none" else _COUNTED
    return results | {f"{name}_{part}": outcomes for part in ("coverage", "coverage_stderr", *counted)}
