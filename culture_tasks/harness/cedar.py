"""CEDAR on a harness: how responses become records, and records metrics.

Every metric but ``acc`` gets the same small record of a document, ``[language, gold, prediction]``, from which all of
them can be worked out; the full record stands under ``acc``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from culture_tasks.benchmarks.cedar import bootstrap, metrics
from culture_tasks.benchmarks.cedar.counts import CountTable, tabulate
from culture_tasks.benchmarks.cedar.documents import NO_MINORITY, CedarDoc, check_languages
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, QUADRANT_NAMES, Emotion, Language, Quadrant
from culture_tasks.benchmarks.cedar.prompts import prompt_file
from culture_tasks.benchmarks.cedar.replies import read_reply
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import RECORD_VERSION
from culture_tasks.harness.metric_lists import Metric
from culture_tasks.harness.session import current_session
from culture_tasks.text import storable

Triple = Sequence[Any]
"""Language, gold label and prediction of a document; the prediction is None where none could be read."""

Aggregation = Callable[[Sequence[Any]], float]


def table_of(records: Iterable[Triple]) -> CountTable:
    """Counts the records of a metric."""
    columns = list(zip(*records, strict=True)) or [(), (), ()]
    languages, golds, predictions = columns
    return tabulate(predictions, golds, languages)


def _of_table(function: Callable[[CountTable], float]) -> Aggregation:
    return partial(_apply, function)


def _apply(function: Callable[[CountTable], float], records: Sequence[Triple]) -> float:
    return function(table_of(records))


def _supported() -> tuple[Language, ...] | None:
    return check_languages(current_session().settings.languages)


def _accuracy_in(language: Language, table: CountTable) -> float:
    return metrics.accuracy_by_language(table).get(language, math.nan)


def _accuracy_stderr_in(language: Language, table: CountTable) -> float:
    return metrics.accuracy_stderr(table.limited_to([language]))


def _acc_avg(table: CountTable) -> float:
    return metrics.acc_avg(table, _supported())


def _acc_avg_stderr(table: CountTable) -> float:
    return metrics.acc_avg_stderr(table, _supported())


def _acc_var(table: CountTable) -> float:
    return metrics.acc_var(table, _supported())


def _propensity(emotion: Emotion, table: CountTable) -> float:
    return metrics.gepp(table)[emotion]


def _bias(quadrant: Quadrant, table: CountTable) -> float:
    return metrics.grqb(table)[quadrant]


@lru_cache(maxsize=8)
def _bootstrapped(counts: bytes, shape: tuple[int, ...]) -> bootstrap.StandardErrors:
    return bootstrap.by_record(CountTable(np.frombuffer(counts, dtype=np.int64).reshape(shape)))


def _errors(table: CountTable) -> bootstrap.StandardErrors:
    counts = np.ascontiguousarray(table.counts, dtype=np.int64)
    return _bootstrapped(counts.tobytes(), counts.shape)


def _propensity_stderr(emotion: Emotion, table: CountTable) -> float:
    return _errors(table).epp[emotion]


def _bias_stderr(quadrant: Quadrant, table: CountTable) -> float:
    return _errors(table).rqb[quadrant]


def _unparsed_stderr(table: CountTable) -> float:
    total = int(table.counts.sum())
    share = metrics.unparsed_share(table) / 100
    return 100 * math.sqrt(share * (1 - share) / (total - 1)) if total > 1 else math.nan


def accuracy(records: Sequence[dict[str, Any]]) -> float:
    """Standard accuracy in percent, from the full records (section 3.3)."""
    return metrics.accuracy(_full_table(records))


def accuracy_stderr(records: Sequence[Triple]) -> float:
    """Standard error of the accuracy, in percentage points."""
    return metrics.accuracy_stderr(table_of(records))


def _full_table(records: Sequence[dict[str, Any]]) -> CountTable:
    return table_of([(record["language"], record["gold"], record["prediction"]) for record in records])


def top2(records: Sequence[Sequence[Any]]) -> float:
    """Macro F1 against the two most frequent annotations (Appendix B), from records with the minority label added."""
    _, golds, predictions, minority = zip(*records, strict=True)
    return metrics.top2_macro_f1(predictions, golds, minority)


def pooled_metrics() -> list[Metric]:
    """Returns the metric list of ``cedar_text`` and ``cedar_multimodal``: accuracies, GEPP and GRQB."""
    listed = _accuracy_metrics()
    for language in LANGUAGES:
        value, stderr = partial(_accuracy_in, language), partial(_accuracy_stderr_in, language)
        listed += _pair(f"acc_{language}", value, stderr, higher_is_better=True)
    listed += _pair("acc_avg", _acc_avg, _acc_avg_stderr, higher_is_better=True)
    listed.append(_metric("acc_var", _of_table(_acc_var), higher_is_better=False))
    return listed + _bias_metrics("gepp", "grqb")


def language_metrics() -> list[Metric]:
    """Returns the metric list of the tasks of one language: accuracy, LSEPP and LSRQB."""
    return _accuracy_metrics() + _bias_metrics("lsepp", "lsrqb")


def _accuracy_metrics() -> list[Metric]:
    return [
        _metric("acc", accuracy, higher_is_better=True),
        _metric("acc_stderr", accuracy_stderr, higher_is_better=False),
        *_pair("unparsed", metrics.unparsed_share, _unparsed_stderr, higher_is_better=False),
        _metric("top2_macro_f1", top2, higher_is_better=True),
    ]


def _bias_metrics(propensity: str, bias: str) -> list[Metric]:
    listed: list[Metric] = []
    for emotion in EMOTIONS:
        value, stderr = partial(_propensity, emotion), partial(_propensity_stderr, emotion)
        listed += _pair(f"{propensity}_{emotion}", value, stderr, higher_is_better=None)
    for number, quadrant in enumerate(QUADRANT_NAMES, start=1):
        value, stderr = partial(_bias, quadrant), partial(_bias_stderr, quadrant)
        listed += _pair(f"{bias}_q{number}", value, stderr, higher_is_better=None)
    return listed


def _pair(
    name: str,
    value: Callable[[CountTable], float],
    stderr: Callable[[CountTable], float],
    *,
    higher_is_better: bool | None,
) -> list[Metric]:
    return [
        _metric(name, _of_table(value), higher_is_better=higher_is_better),
        _metric(f"{name}_stderr", _of_table(stderr), higher_is_better=False),
    ]


def _metric(name: str, function: Aggregation | Callable[..., float], *, higher_is_better: bool | None) -> Metric:
    """Returns a metric; ``higher_is_better`` is None where a value in between is neutral."""
    return {"metric": name, "aggregation": function, "higher_is_better": higher_is_better}


@lru_cache
def _names(pooled: bool) -> tuple[str, ...]:
    listed = pooled_metrics() if pooled else language_metrics()
    return tuple(metric["metric"] for metric in listed if metric["metric"] not in ("acc", "top2_macro_f1"))


def results(doc: CedarDoc, responses: Sequence[Any], *, pooled: bool) -> dict[str, Any]:
    """Returns a document's records.

    The tasks decode greedily, so of repeated responses the first counts.
    """
    response = storable(responses_of(responses)[0])
    prediction = read_reply(response)
    triple = [doc["language"], doc["gold"], prediction]
    records: dict[str, Any] = {"acc": _record(doc, response, prediction)}
    records |= dict.fromkeys(_names(pooled), triple)
    if doc["minority"]:
        records["top2_macro_f1"] = [*triple, None if doc["minority"] == NO_MINORITY else doc["minority"]]
    return records


def _record(doc: CedarDoc, response: str, prediction: Emotion | None) -> dict[str, Any]:
    prompt = prompt_file(doc["prompt_language"], doc["modality"])  # type: ignore[arg-type]
    return {
        "record": RECORD_VERSION,
        "benchmark": "cedar",
        **doc,
        "prompt": prompt.name,
        "prompt_sha256": prompt.sha256,
        "response": response,
        "prediction": prediction,
        "score": 100.0 * (prediction == doc["gold"]),
    }
