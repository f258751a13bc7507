"""The metric lists of the task files, which would be long and alike as YAML.

A judged metric ``x`` comes with ``x_coverage`` and the counts of the verdicts that were not scored. With the lexical
judge its name is ``x_lexical``, so that text overlap never passes for a judge's score; both names are registered, and a
run reports one of them.

The harnesses give no standard error to an aggregation of one's own. lmms-eval works one out from records with a
``score``; for lm-eval a metric ``x_stderr`` over the same records fills the place that lm-eval leaves empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from culture_tasks.harness import aggregation
from culture_tasks.harness.judged import JudgedDocument

Harness = Literal["lm_eval", "lmms_eval"]
Metric = dict[str, Any]

_COUNTED = ("unparsable", "refused", "failed", "unjudged")
LEXICAL = "_lexical"


def judged_metrics(harness: Harness, name: str, groups: Iterable[str]) -> list[Metric]:
    """Returns the metrics of a judged benchmark.

    Args:
        harness: For which harness.
        name: Name of the overall metric, such as ``lave``.
        groups: Parts of the data with a mean of their own, such as ``brazil``.
    """
    metrics: list[Metric] = []
    for base in (name, f"{name}{LEXICAL}"):
        for mean in (base, *(f"{base}_{group}" for group in groups)):
            metrics.append(_metric(mean, aggregation.mean_of_scored, better="higher"))
            if harness == "lm_eval":
                metrics.append(_metric(f"{mean}_stderr", aggregation.stderr_of_scored, better="lower"))
        metrics.append(_metric(f"{base}_run_sd", aggregation.spread_over_runs, better="lower"))
    metrics.append(_metric(f"{name}_coverage", aggregation.coverage, better="higher"))
    metrics += [
        _metric(f"{name}_{outcome}", partial(aggregation.outcome_count, outcome=outcome), better="lower")
        for outcome in _COUNTED
    ]
    return metrics


def _metric(name: str, function: Any, better: Literal["higher", "lower"]) -> Metric:  # noqa: ANN401 - any callable
    return {"metric": name, "aggregation": function, "higher_is_better": better == "higher"}


def judged_results(
    harness: Harness, name: str, document: JudgedDocument, groups: Mapping[str, bool], runs: int
) -> dict[str, Any]:
    """Returns one document's records for the metrics of :func:`judged_metrics`.

    Every document has every metric, with None where the metric doesn't concern it: lmms-eval takes the length of the
    last list for the number of documents, and lm-eval warns about lists of different lengths.

    Args:
        harness: For which harness.
        name: Name of the overall metric.
        document: The judged document.
        groups: For each part of the data whether the document belongs to it.
        runs: Number of responses.
    """
    view = document.view()
    base = f"{name}{LEXICAL}" if document.identity.backend == "lexical" else name
    results: dict[str, Any] = {base: document.record()}
    results |= {f"{base}_{group}": view if belongs else None for group, belongs in groups.items()}
    if harness == "lm_eval":
        results |= {f"{mean}_stderr": view if record is not None else None for mean, record in list(results.items())}
    if runs > 1:
        results[f"{base}_run_sd"] = view
    counted: Sequence[str] = [f"{name}_{outcome}" for outcome in _COUNTED]
    return results | {f"{name}_coverage": view} | dict.fromkeys(counted, view)
