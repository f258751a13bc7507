"""CEDAR on a harness: how responses become records, and records metrics.

Under ``acc`` stands the full record of a document. Every other metric gets a triple, ``(language, gold, prediction)``,
from which all of them can be worked out.

Where ``CULTURE_TASKS_LANGUAGES`` names the languages that the model officially supports, the pooled tasks leave the
documents of all others out of every metric, as the hyphens of Table 1 do: ``acc``, ``unparsed``, ``acc_avg``,
``acc_var``, GEPP and GRQB are those of the supported languages, and ``acc_<language>`` of another one is NaN. The
other documents are asked and logged all the same. The tasks of one language report it either way.

The harnesses' own columns see none of this. lmms-eval's ``acc_stderr_clt`` is taken over the records with a ``score``;
those that a task leaves out have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from culture_tasks.benchmarks.cedar.documents import NO_MINORITY, CedarDoc, check_languages
from culture_tasks.benchmarks.cedar.labels import Emotion
from culture_tasks.benchmarks.cedar.metrics import CountTable, table_of, top2_macro_f1
from culture_tasks.benchmarks.cedar.prompts import prompt_file
from culture_tasks.benchmarks.cedar.reading.choice import read_reply
from culture_tasks.benchmarks.cedar.reported import Reported, TableMetric, of_language, pooled
from culture_tasks.harness.aggregation import Aggregation
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import RECORD_VERSION
from culture_tasks.harness.metric_lists import Metric, metric
from culture_tasks.harness.session import current_session
from culture_tasks.text import storable

_TOP2 = "top2_macro_f1"


def pooled_metrics() -> list[Metric]:
    """Returns the metric list of ``cedar_text`` and ``cedar_multimodal``."""
    return _metrics(pooled())


def language_metrics() -> list[Metric]:
    """Returns the metric list of the tasks of one language."""
    return _metrics(of_language())


def _metrics(reported: Sequence[Reported]) -> list[Metric]:
    listed = [metric(each.name, _aggregation(each), higher_is_better=each.higher_is_better) for each in reported]
    return [*listed, metric(_TOP2, Aggregation("macro F1", top2), higher_is_better=True)]


def _aggregation(reported: Reported) -> Aggregation:
    """Returns how a metric's records become its value and standard error: full records for ``acc``, else triples."""
    table = _table_of_records if reported.name == "acc" else table_of
    stderr = None if reported.stderr is None else partial(_worked_out, reported.stderr, table)
    return Aggregation(reported.name, partial(_worked_out, reported.value, table), stderr)


def _worked_out(function: TableMetric, table: Callable[[Sequence[Any]], CountTable], records: Sequence[Any]) -> float:
    return function(table(records))


def _table_of_records(records: Sequence[Mapping[str, Any]]) -> CountTable:
    """Counts those full records that have a score."""
    scored = [record for record in records if "score" in record]
    return table_of((record["language"], record["gold"], record["prediction"]) for record in scored)


def top2(pairs: Sequence[Sequence[Any] | None]) -> float:
    """Macro F1 against the two most frequent annotations (Appendix B), from gold label, prediction and minority."""
    columns = list(zip(*(pair for pair in pairs if pair is not None), strict=True)) or [(), (), ()]
    golds, predictions, minority = columns
    return top2_macro_f1(predictions, golds, minority)


@cache
def _names(*, pooled: bool) -> tuple[str, ...]:
    """Returns the metrics that a triple stands under."""
    listed = pooled_metrics() if pooled else language_metrics()
    return tuple(each["metric"] for each in listed if each["metric"] not in ("acc", _TOP2))


def results(doc: CedarDoc, responses: Sequence[Any], *, pooled: bool) -> dict[str, Any]:
    """Returns a document's records.

    The tasks decode greedily, so of repeated responses the first counts. Every document has every metric, with None
    where it is left out: the harnesses expect lists of one length.
    """
    response = storable(responses_of(responses)[0])
    prediction = read_reply(response)
    supported = _is_supported(doc)
    counts = supported or not pooled
    record = _record(doc, response, prediction) | {"supported": supported}
    if counts:
        record["score"] = float(prediction == doc["gold"])
    triple = (doc["language"], doc["gold"], prediction) if counts else None
    found: dict[str, Any] = {"acc": record, **dict.fromkeys(_names(pooled=pooled), triple)}
    if doc["minority"]:
        minority = None if doc["minority"] == NO_MINORITY else doc["minority"]
        found[_TOP2] = (doc["gold"], prediction, minority) if counts else None
    return found


def _is_supported(doc: CedarDoc) -> bool:
    languages = check_languages(current_session().settings.languages)
    return languages is None or doc["language"] in languages


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
    }
