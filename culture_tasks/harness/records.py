"""The record of a document: all that a harness logs of it, and all that numbers are made of.

A task of ours has one metric in a harness, :data:`RECORD`. A record describes itself: the question, its item, in which
groups, on which scale, with which answers and verdicts. Harnesses ask for it before its verdicts are there, and keep it
in two places, the list that they aggregate and the logged sample. :meth:`PendingRecord.complete` waits for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, Self

from culture_tasks.benchmarks.interface import JudgedScore, MeanScore, Scale, Score, Task, responses_of
from culture_tasks.benchmarks.registry import benchmark_of, task_named
from culture_tasks.harness.session import current_session
from culture_tasks.judges.judge import ReadyTicket, Ticket
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Usage, Verdict
from culture_tasks.text import answer_in, failure_in, storable

RECORD = "record"
"""The metric of our tasks in both harnesses."""

RECORD_VERSION = 2
"""Version of the layout of logged records; readers refuse versions that they don't know."""

OF_VERDICTS = frozenset({"judge", "runs", "outcomes", "score", "run_scores"})
"""Fields of a record that come with the verdicts; all others describe the document."""

OWN_DATA = "own_data"
"""Field of the documents and records of a task whose data aren't the benchmark's release."""

PROBABILITY = "probability"
"""Field of the documents and records of a subset: the chance that each had to be drawn."""

_KNOWN = {"record": RECORD_VERSION}


class PendingRecord(dict[str, Any]):
    """A record whose verdicts may be on their way; two threads that complete it get the same."""

    __slots__ = ("_document",)

    def __init__(self, document: JudgedDocument) -> None:
        super().__init__(_KNOWN)
        self._document: JudgedDocument | None = document

    def complete(self) -> Self:
        """Waits for the verdicts, and returns the record with them."""
        if (document := self._document) is not None:
            self.update(document.record())
            self._document = None  # lets go of the prompts, the tickets and the verdicts
        return self

    def __contains__(self, name: object) -> bool:
        self.complete()  # lmms-eval looks for a score in each of several repeats
        return super().__contains__(name)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self.complete()),)  # on its way to another rank


def completed(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns records with their verdicts."""
    return [record.complete() if isinstance(record, PendingRecord) else record for record in records]


class Records:
    """The aggregation of our one metric: it waits for all verdicts. A harness logs its text."""

    def __call__(self, records: Sequence[Mapping[str, Any]]) -> float:
        """Completes the records, and returns their number, which no row keeps."""
        return len(completed(records))

    def __repr__(self) -> str:
        return "culture_tasks: records"


class Scorer:
    """Makes the records of one task's documents."""

    def __init__(self, task: Task) -> None:
        self.task = task
        metrics = {metric.name: metric for metric in task.metrics()}
        self._means = frozenset(name for name, metric in metrics.items() if isinstance(metric, MeanScore))
        self._scale = metrics[task.metric].scale
        self.is_judged = isinstance(metrics[task.metric], JudgedScore)
        self._described = {
            "benchmark": benchmark_of(task.name).name,
            "metric": task.metric,
            "scale": asdict(self._scale),
        }

    def __call__(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores the responses to a document, or submits them to the judge, and returns its record.

        Where there is nothing to grade, such as without reference answers, it has no version, so that no reader takes
        it for a graded one.
        """
        answered, has_record = self._answered(doc, responses_of(results))
        flags = {name: doc[name] for name in (OWN_DATA, PROBABILITY) if doc.get(name)}
        fields = self._fields(answered) | flags
        if answered.rubric is not None:
            return JudgedDocument(fields, answered.rubric, answered.responses, self._scale).pending()
        return self._record(answered, fields) if has_record else fields

    def _answered(self, doc: Mapping[str, Any], responses: list[str]) -> tuple[Score, bool]:
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

    def _fields(self, answered: Score) -> dict[str, Any]:
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
            "values": {name: value for name, value in answered.values.items() if name in self._means},
            "inputs": {name: value for name, value in answered.values.items() if name not in self._means},
            "facts": answered.facts,
        }
        return fields | {name: value for name, value in optional.items() if value}

    def _record(self, answered: Score, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the record of a document that no judge grades: the label of each response, or the score alone."""
        runs: list[dict[str, Any]] = [{"response": response, "outcome": "scored"} for response in answered.responses]
        for run, label in zip(runs, answered.labels, strict=True) if answered.labels else ():
            run |= {"outcome": "unparsable" if label is None else "scored", "label": label}
        for run in runs:
            if failure := failure_in(run["response"]):
                run |= {"outcome": "failed", "error": failure}
        record = {**_KNOWN, **fields, "runs": runs, "outcomes": dict(Counter(run["outcome"] for run in runs))}
        return record if answered.score is None else record | {"score": answered.score}


@cache
def scorer_of(task: str) -> Scorer:
    """Returns the scorer of a task, made once."""
    return Scorer(task_named(task))


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

    def pending(self) -> dict[str, Any]:
        """Returns the record, to be completed; at once where all verdicts are there."""
        if all(isinstance(ticket, ReadyTicket) for ticket in self._tickets):
            return self.record()
        return PendingRecord(self)

    def wait(self) -> None:
        """Waits until every verdict is there."""
        for ticket in self._tickets:
            ticket.verdict()

    def record(self) -> dict[str, Any]:
        """Waits for the verdicts, and returns the record: all that is needed to read and to repeat the grading."""
        verdicts = [ticket.verdict() for ticket in self._tickets]
        scores = [self._score(verdict) for verdict in verdicts]
        outcomes = dict(Counter(verdict.outcome for verdict in verdicts))
        runs = [
            {"response": response, **_verdict_fields(verdict)}
            for response, verdict in zip(self._responses, verdicts, strict=True)
        ]
        record = {**_KNOWN, **self._described, "judge": self.judge, "runs": runs, "outcomes": outcomes}
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
