"""From the answers to a document to its records, and the metric lists of the task files.

A task's main metric gets the document's whole record, which describes itself: the question, its item, in which
groups, on which scale, with which answers and verdicts. A judged metric ``x`` comes with ``x_coverage`` and
``x_unscored``. With the lexical judge its name is ``x_lexical``, so that text overlap never passes for a judge's score.
A task file lists what a run can have; a run's results list what it has (see
:mod:`culture_tasks.harness.result_rows`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, NamedTuple

from culture_tasks.benchmarks.interface import Answered, JudgedScore, MeanScore, Metric, Scale, Task, responses_of
from culture_tasks.benchmarks.registry import benchmark_of, task_named
from culture_tasks.harness import aggregation
from culture_tasks.harness.aggregation import Aggregation, aggregation_of
from culture_tasks.harness.records import (
    ClusteredLabels,
    ClusteredValue,
    CompleteRecord,
    CountedRecord,
    PartRecord,
    PendingRecord,
)
from culture_tasks.harness.session import current_session
from culture_tasks.judges.judge import ReadyTicket, Ticket
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage, Verdict
from culture_tasks.text import answer_in, failure_in, storable

RECORD_VERSION = 2
"""Version of the layout of logged records; readers refuse versions that they don't know."""

LEXICAL = "_lexical"

OF_VERDICTS = frozenset({"judge", "runs", "outcomes", "score", "run_scores"})
"""Fields of a record that come with the verdicts; all others describe the document."""

OWN_DATA = "own_data"
"""Field of the documents and records of a task whose data aren't the benchmark's release."""

PROBABILITY = "probability"
"""Field of the documents and records of a subset: the chance that each had to be drawn."""

_KNOWN = {"record": RECORD_VERSION}


# The metric lists of task files


def metric_list(task: Task) -> list[dict[str, Any]]:
    """Returns a task's metrics as a task file lists them."""
    listed: list[dict[str, Any]] = []
    for metric in task.metrics():
        function, parts = aggregation_of(metric, is_main=metric.name == task.metric), _parts_of_mean(metric)
        if isinstance(metric, JudgedScore):
            listed += judged_metrics(metric.name, [part.group for part in parts], function)
        else:
            better = None if metric.scale.better is None else metric.scale.better == "higher"
            listed += [_entry(name, function, better) for name in (metric.name, *(part.metric for part in parts))]
    return listed


def judged_metrics(
    name: str, groups: Iterable[str], function: Aggregation = aggregation.MEAN_OF_SCORED
) -> list[dict[str, Any]]:
    """Returns the metrics of a judged score, such as ``lave``, with the means of groups, such as ``brazil``."""
    endings = ["", *(f"_{group}" for group in groups)]
    listed: list[dict[str, Any]] = []
    for base in (name, f"{name}{LEXICAL}"):
        listed += [_entry(f"{base}{ending}", function, True) for ending in endings]
        listed.append(_entry(f"{base}_run_sd", aggregation.SPREAD_OVER_RUNS, False))
    listed.append(_entry(f"{name}_coverage", aggregation.COVERAGE, True))
    listed.append(_entry(f"{name}_unscored", aggregation.UNSCORED, False))
    return listed


def _entry(name: str, function: Aggregation, better: bool | None) -> dict[str, Any]:
    """Returns an entry of a metric list; ``better`` is None where a value in between is neutral."""
    return {"metric": name, "aggregation": function, "higher_is_better": better}


class Part(NamedTuple):
    """A part of the data that has its own mean: a group, the field that it belongs to, and the mean's name."""

    field: str
    group: str
    metric: str


def parts_of(metric: Metric) -> list[Part]:
    """Returns the parts of the data that have their own mean."""
    return [Part(field, name, f"{metric.name}_{name}") for field, names in metric.groups.items() for name in names]


def _parts_of_mean(metric: Metric) -> list[Part]:
    """Returns the parts with a mean in the metric list; a number that is no mean is worked out of its parts' values."""
    return parts_of(metric) if isinstance(metric, MeanScore) else []


# The records of a document


class Scorer:
    """Makes the records of one task's documents."""

    def __init__(self, task: Task) -> None:
        self.task = task
        metrics = {metric.name: metric for metric in task.metrics()}
        self._parts = {name: _parts_of_mean(metric) for name, metric in metrics.items()}
        self._group_fields = {field for metric in metrics.values() for field in metric.groups}
        self._groups = tuple(part.group for part in self._parts[task.metric])
        self._means = [name for name, metric in metrics.items() if isinstance(metric, MeanScore)]
        self._scale = metrics[task.metric].scale
        self.is_judged = isinstance(metrics[task.metric], JudgedScore)
        self._described = {
            "benchmark": benchmark_of(task.name).name,
            "metric": task.metric,
            "scale": asdict(self._scale),
        }

    def __call__(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores the responses to a document, or submits them to the judge, and returns its records by metric."""
        answered, has_record = self._answered(doc, responses_of(results))
        flags = {name: doc[name] for name in (OWN_DATA, PROBABILITY) if doc.get(name)}
        main = self.task.metric
        records: dict[str, Any] = {}
        cluster = (str(self._described["benchmark"]), answered.cluster or answered.item)
        values = {main: answered.score, **answered.values}
        groups = {name: answered.groups.get(name) for name in self._group_fields}
        values |= {
            name: ClusteredValue(values[name], cluster, groups) for name in self._means if values.get(name) is not None
        }
        labels = {
            id(value): ClusteredLabels(value, cluster, groups) for value in values.values() if isinstance(value, tuple)
        }
        values = {name: labels.get(id(value), value) for name, value in values.items()}
        score = values.pop(main)
        if answered.rubric is not None:
            described = self._fields(answered) | flags
            document = JudgedDocument(described, answered.rubric, answered.responses, self._scale)
            belongs = [part.group for part in self._parts[main] if answered.groups.get(part.field) == part.group]
            records |= judged_results(main, document, self._groups, belongs)
        elif has_record:
            records[main] = self._record(answered) | flags
            records |= self._part_values(main, score, answered)
        records |= values
        for name, value in values.items():
            records |= self._part_values(name, value, answered)
        return records

    def _answered(self, doc: Mapping[str, Any], responses: list[str]) -> tuple[Answered, bool]:
        """Scores the responses that didn't fail, and returns the document with all, and whether it has a record."""
        answered = self.task.score(doc, responses)
        has_record, runs = answered.has_record, len(answered.responses)
        if not any(map(failure_in, responses)):
            return answered, has_record
        texts = len(responses) // runs  # of each run
        parts = [responses[run * texts : (run + 1) * texts] for run in range(runs)]
        failures = [next(filter(failure_in, part), None) for part in parts]
        usable = [text for part, failure in zip(parts, failures, strict=True) if failure is None for text in part]
        nothing = replace(answered, labels=[None] * runs, score=None, values=dict.fromkeys(answered.values))
        scored = self.task.score(doc, usable) if usable else nothing
        labels = iter(scored.labels or [None] * runs)
        return replace(
            scored,
            responses=[failure or text for failure, text in zip(failures, answered.responses, strict=True)],
            labels=[None if failure else next(labels) for failure in failures] if answered.labels else (),
        ), has_record

    def _part_values(self, name: str, value: Any, answered: Answered) -> dict[str, Any]:
        """Returns a document's value for the mean of each part: None for those that it doesn't belong to."""
        return {
            part.metric: value if answered.groups.get(part.field) == part.group else None
            for part in self._parts.get(name, ())
        }

    def expected(self, doc: Mapping[str, Any]) -> tuple[Rubric, JudgeItem] | None:
        """Returns the request to a judge for a document, but for the response; None if no judge grades it."""
        answered = self.task.score(doc, [""])
        if answered.rubric is None:
            return None
        return answered.rubric, item_of(self._fields(answered), "")

    def cluster_of(self, doc: Mapping[str, Any]) -> str:
        """Returns the cluster of a document; its item where it has none."""
        answered = self.task.score(doc, [""])
        return answered.cluster or answered.item

    def _fields(self, answered: Answered) -> dict[str, Any]:
        """Returns the fields of a record that describe the document: all but the verdicts."""
        fields = {
            **self._described,
            "item": answered.item,
            "cluster": answered.cluster or answered.item,
            "groups": answered.groups,
            "data": answered.data,
            "question": answered.question,
            "references": list(answered.references),
        }
        if answered.prompt is not None:
            fields |= {"prompt": answered.prompt.name, "prompt_sha256": answered.prompt.sha256}
        optional = {
            "image": answered.image,
            "judge_language": answered.judge_language,
            "values": {name: answered.values[name] for name in self._means if name in answered.values},
            "facts": answered.facts,
        }
        return fields | {name: value for name, value in optional.items() if value}

    def _record(self, answered: Answered) -> dict[str, Any]:
        """Returns the record of a document that no judge grades: the label of each response, or the score alone."""
        runs: list[dict[str, Any]] = [{"response": response, "outcome": "scored"} for response in answered.responses]
        for run, label in zip(runs, answered.labels, strict=True) if answered.labels else ():
            run |= {"outcome": "unparsable" if label is None else "scored", "label": label}
        for run in runs:
            if failure := failure_in(run["response"]):
                run |= {"outcome": "failed", "error": failure}
        outcomes = dict(Counter(run["outcome"] for run in runs))
        record = {**_KNOWN, **self._fields(answered), "runs": runs, "outcomes": outcomes}
        return record if answered.score is None else record | {"score": answered.score}


@cache
def scorer_of(task: str) -> Scorer:
    """Returns the scorer of a task, made once."""
    return Scorer(task_named(task))


def judged_results(
    name: str, document: JudgedDocument, groups: tuple[str, ...], belongs: Collection[str]
) -> dict[str, Any]:
    """Returns one document's records for the metrics of :func:`judged_metrics`.

    Every document has every metric, with None for the means of parts of the data that it doesn't belong to: lmms-eval
    takes the length of the last list for the number of documents, and lm-eval warns about lists of different lengths.
    """
    base = f"{name}{LEXICAL}" if document.judge["backend"] == "lexical" else name
    record = document.record()
    part, counts = PartRecord(record), CountedRecord(record)
    results: dict[str, Any] = {base: record, **_empty_parts(base, groups)}
    results |= {f"{base}_{group}": part for group in belongs}
    if document.runs > 1:
        results[f"{base}_run_sd"] = counts
    return results | {f"{name}_coverage": counts, f"{name}_unscored": counts}


@cache
def _empty_parts(base: str, groups: tuple[str, ...]) -> Mapping[str, None]:
    return dict.fromkeys(f"{base}_{group}" for group in groups)


class JudgedDocument:
    """The responses to one document, submitted to the judge at once and read later; ``judge`` is as in records."""

    __slots__ = ("_described", "_responses", "_rubric", "_scale", "_tickets", "judge")

    def __init__(
        self,
        described: Mapping[str, Any],
        rubric: Rubric,
        responses: Sequence[str],
        scale: Scale,
        *,
        verdicts: Mapping[int, Verdict] | None = None,
        verdicts_judge: Mapping[str, Any] | None = None,
    ) -> None:
        """Submits every response but those of the runs that have ``verdicts``, which ``verdicts_judge`` gave.

        ``described`` is what the record says of the document: all fields but :data:`OF_VERDICTS`.
        """
        judge = current_session().judge(rubric.model)
        self._described, self._rubric, self._scale = described, rubric, scale
        self._responses = [storable(response) for response in responses]
        verdicts = {**(verdicts or {}), **failed_verdicts(self._responses)}
        self.judge: Mapping[str, Any] = judge.identity(rubric).json
        if verdicts_judge is not None and len(verdicts) == len(responses):
            self.judge = verdicts_judge
        self._tickets: list[Ticket] = [
            ReadyTicket(verdicts[run]) if run in verdicts else judge.submit(rubric, item_of(described, response))
            for run, response in enumerate(self._responses)
        ]

    def record(self) -> PendingRecord | CompleteRecord:
        """Returns the record: all that is needed to read the verdict, and to grade the responses again."""
        if all(isinstance(ticket, ReadyTicket) for ticket in self._tickets):
            return CompleteRecord({**_KNOWN, **self._complete()})  # and lets go of this object at once
        return PendingRecord(_KNOWN, self._complete)

    def wait(self) -> None:
        """Waits until every verdict is there."""
        for ticket in self._tickets:
            ticket.verdict()

    @property
    def runs(self) -> int:
        """Number of responses to the document."""
        return len(self._responses)

    def _complete(self) -> dict[str, Any]:
        verdicts = [ticket.verdict() for ticket in self._tickets]
        scores = [self._score(verdict) for verdict in verdicts]
        outcomes = dict(Counter(verdict.outcome for verdict in verdicts))
        runs = [
            {"response": response, **_verdict_fields(verdict)}
            for response, verdict in zip(self._responses, verdicts, strict=True)
        ]
        record = {**self._described, "judge": self.judge, "runs": runs, "outcomes": outcomes}
        if scored := [score for score in scores if score is not None]:
            record["score"] = sum(scored) / len(scored)
        if len(scores) > 1:
            record["run_scores"] = scores
        return record

    def _score(self, verdict: Verdict) -> float | None:
        return None if verdict.score is None else on_scale(verdict.score, self._rubric, self._scale) / self._scale.times


def failed_verdicts(responses: Sequence[str]) -> dict[int, Verdict]:
    """Returns the verdicts on the responses that failed, by number: no judge is asked for them."""
    failures = {run: failure for run, response in enumerate(responses) if (failure := failure_in(response))}
    return {run: Verdict("failed", error=f"the response failed: {failure}") for run, failure in failures.items()}


def on_scale(rating: float, rubric: Rubric, scale: Scale) -> float:
    """Maps a rating from the rubric's range to the scale's, end to end."""
    low, high = scale.low or 0.0, scale.high or 0.0
    return low + (rating - rubric.lowest) * (high - low) / (rubric.highest - rubric.lowest)


def item_of(described: Mapping[str, Any], response: str) -> JudgeItem:
    """Returns a response to a document as the judge gets it, with the question of the document's record."""
    references, language = tuple(described["references"]), described.get("judge_language", "")
    return JudgeItem(described["question"], references, answer_in(response), language)


def _verdict_fields(verdict: Verdict) -> dict[str, Any]:
    fields: dict[str, Any] = {"outcome": verdict.outcome, "rating": verdict.score}
    optional = {
        "rationale": verdict.rationale,
        "error": verdict.error,
        "endpoint": verdict.endpoint,
        "reply_model": verdict.reply_model,
        "asked_again": verdict.asked_again or None,
        "max_tokens": verdict.max_tokens,
        "completion": verdict.completion if verdict.outcome == "unparsable" else None,
        "discounts": verdict.usage.discounts,
        "kept": verdict.attempts == 0 and verdict.usage != Usage(),
    }
    fields.update(
        {name: storable(value) if isinstance(value, str) else value for name, value in optional.items() if value}
    )
    fields["tokens"] = [verdict.usage.prompt_tokens, verdict.usage.completion_tokens]
    return fields
