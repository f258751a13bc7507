"""The record of a document: all that a harness logs of it, and all that numbers are made of.

A task of ours has one metric in a harness, :data:`RECORD`. A record describes itself: the question, its item, in which
groups, on which scale, with which answers and verdicts. Harnesses ask for it before its verdicts are there, and keep it
in two places, the list that they aggregate and the logged sample. :meth:`JudgedDocument.record` waits for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any, Self

from culture_tasks.benchmarks.interface import JudgedScore, MeanScore, Scale, Score, Task, responses_of
from culture_tasks.benchmarks.registry import benchmark_of, task_named
from culture_tasks.harness.session import current_session
from culture_tasks.judges.judge import ReadyTicket, Ticket
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict
from culture_tasks.text import answer_in, failure_in, storable

RECORD = "record"
"""The metric of our tasks in both harnesses."""

RECORD_VERSION = 2
"""Version of the layout of logged records; readers refuse versions that they don't know."""

VERDICT_FIELDS = frozenset({"judge", "runs", "outcomes", "score", "run_scores"})
"""Fields of a record that come with the verdicts; all others describe the document."""

OWN_DATA = "own_data"
"""Field of the documents and records of a task whose data aren't the benchmark's release."""

PROBABILITY = "probability"
"""Field of the documents and records of a subset: the chance that each had to be drawn."""


class JudgedDocument(dict[str, Any]):
    """The record of a document whose responses were submitted to the judge, and whose verdicts may be on their way.

    Two threads that wait for them get the same. ``judge`` is as in records.
    """

    __slots__ = ("_pending", "judge")

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

        ``described`` is what the record says of the document: all fields but :data:`VERDICT_FIELDS`.
        """
        super().__init__({"record": RECORD_VERSION})
        judge = current_session().judge(rubric.model)
        verdicts, tickets = dict(verdicts or {}), list[Ticket]()
        responses = list(map(storable, responses))
        for run, response in enumerate(responses):
            if failure := failure_in(response):  # no judge is asked
                verdicts[run] = Verdict("failed", error=f"the response failed: {failure}")
            ready = verdicts.get(run)
            tickets.append(judge.submit(rubric, item_of(described, response)) if ready is None else ReadyTicket(ready))
        self.judge: Mapping[str, Any] = judge.identity(rubric).json
        if verdicts_judge is not None and len(verdicts) == len(responses):
            self.judge = verdicts_judge
        self._pending: tuple[Any, ...] | None = (described, rubric, responses, scale, tickets)
        if all(isinstance(ticket, ReadyTicket) for ticket in tickets):
            self.record()

    def wait(self) -> None:
        """Waits until every verdict is there."""
        for ticket in self._pending[-1] if self._pending else ():
            ticket.verdict()

    def record(self) -> Self:
        """Waits for the verdicts, and returns the record: all that is needed to read and to repeat the grading."""
        if (pending := self._pending) is not None:
            described, rubric, responses, scale, tickets = pending
            verdicts: list[Verdict] = [ticket.verdict() for ticket in tickets]
            runs = list(map(_judged_run, responses, verdicts))
            self.update(described, judge=self.judge, runs=runs, outcomes=_outcomes(runs))
            scores = [
                None if verdict.score is None else on_scale(verdict.score, rubric, scale) / scale.times
                for verdict in verdicts
            ]
            if scored := [score for score in scores if score is not None]:
                self["score"] = sum(scored) / len(scored)
            if len(scores) > 1:
                self["run_scores"] = scores
            self._pending = None  # lets go of the prompts, the tickets and the verdicts
        return self

    def __contains__(self, name: object) -> bool:
        self.record()  # lmms-eval looks for a score in each of several repeats
        return super().__contains__(name)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self.record()),)  # on its way to another rank


def completed(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns records with their verdicts."""
    return [record.record() if isinstance(record, JudgedDocument) else record for record in records]


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
            "record": RECORD_VERSION,
            "benchmark": benchmark_of(task.name).name,
            "metric": task.metric,
            "scale": asdict(self._scale),
        }

    def __call__(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Scores the responses to a document, or submits them to the judge, and returns its record.

        Where there is nothing to grade, such as without reference answers, it has no version, so that no reader takes
        it for a graded one.
        """
        responses = responses_of(results)
        score = self.task.score(doc, responses)
        is_graded = score.rubric is not None or bool(score.labels) or score.score is not None
        if any(map(failure_in, responses)):
            score = self._without_failures(doc, responses, score)
        record = self._description(score)
        for name in (OWN_DATA, PROBABILITY):
            if doc.get(name):
                record[name] = doc[name]
        if score.rubric is not None:
            return JudgedDocument(record, score.rubric, score.responses, self._scale)
        if not is_graded:
            del record["record"]
            return record
        runs: list[dict[str, Any]] = [{"response": response, "outcome": "scored"} for response in score.responses]
        for run, label in zip(runs, score.labels, strict=True) if score.labels else ():
            run |= {"outcome": "unparsable" if label is None else "scored", "label": label}
        for run in runs:
            if failure := failure_in(run["response"]):
                run |= {"outcome": "failed", "error": failure}
        record |= {"runs": runs, "outcomes": _outcomes(runs)}
        return record if score.score is None else record | {"score": score.score}

    def _without_failures(self, doc: Mapping[str, Any], responses: list[str], score: Score) -> Score:
        """Scores the responses that didn't fail alone; a run of several responses fails with one of them."""
        runs = len(score.responses)
        size = len(responses) // runs
        parts = [responses[run * size : (run + 1) * size] for run in range(runs)]
        failures = [next(filter(failure_in, part), "") for part in parts]
        usable = [text for part, failure in zip(parts, failures, strict=True) if not failure for text in part]
        nothing = replace(score, labels=[None] * runs, score=None, values=dict.fromkeys(score.values))
        scored = self.task.score(doc, usable) if usable else nothing
        labels = iter(scored.labels or [None] * runs)
        return replace(
            scored,
            responses=[failure or text for failure, text in zip(failures, score.responses, strict=True)],
            labels=[None if failure else next(labels) for failure in failures] if score.labels else (),
        )

    def expected(self, doc: Mapping[str, Any]) -> tuple[Rubric, JudgeItem] | None:
        """Returns the request to a judge for a document, but for the response; None if no judge grades it."""
        score = self.task.score(doc, [""])
        return None if score.rubric is None else (score.rubric, item_of(self._description(score), ""))

    def _description(self, score: Score) -> dict[str, Any]:
        """Returns the fields of a record that describe the document: all but the verdicts."""
        fields: dict[str, Any] = {
            **self._described,
            "item": score.item,
            "cluster": score.cluster or score.item,
            "groups": score.groups,
            "data": score.data,
            "question": score.question,
            "references": score.references if isinstance(score.references, list) else list(score.references),
        }
        if score.prompt is not None:
            fields |= {"prompt": score.prompt.name, "prompt_sha256": score.prompt.sha256}
        if score.image:
            fields["image"] = score.image
        if score.judge_language:
            fields["judge_language"] = score.judge_language
        for name, value in score.values.items():
            fields.setdefault("values" if name in self._means else "inputs", {})[name] = value
        if score.facts:
            fields["facts"] = score.facts
        return fields


@cache
def scorer_of(task: str) -> Scorer:
    """Returns the scorer of a task, made once."""
    return Scorer(task_named(task))


def on_scale(rating: float, rubric: Rubric, scale: Scale) -> float:
    """Maps a rating from the rubric's range to the scale's, end to end."""
    low, high = scale.low or 0.0, scale.high or 0.0
    return low + (rating - rubric.lowest) * (high - low) / (rubric.highest - rubric.lowest)


def item_of(described: Mapping[str, Any], response: str) -> JudgeItem:
    """Returns a response to a document as the judge gets it, with the question of the document's record."""
    references, language = tuple(described["references"]), described.get("judge_language", "")
    return JudgeItem(described["question"], references, answer_in(response), language)


def _outcomes(runs: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Returns how many runs have each outcome."""
    outcomes: dict[str, int] = {}
    for run in runs:
        outcomes[run["outcome"]] = outcomes.get(run["outcome"], 0) + 1
    return outcomes


def _judged_run(response: str, verdict: Verdict) -> dict[str, Any]:
    run: dict[str, Any] = {"response": response, "outcome": verdict.outcome, "rating": verdict.score}
    for name in ("rationale", "error", "endpoint", "reply_model"):
        if text := getattr(verdict, name):
            run[name] = storable(text)
    if verdict.asked_again:
        run["asked_again"] = True
    if verdict.max_tokens:
        run["max_tokens"] = verdict.max_tokens
    if verdict.outcome == "unparsable" and verdict.completion:
        run["completion"] = storable(verdict.completion)
    tokens = _NO_TOKENS
    if verdict.usage.prompt_tokens or verdict.usage.completion_tokens:
        tokens = [verdict.usage.prompt_tokens, verdict.usage.completion_tokens]
        if discounts := verdict.usage.discounts:
            run["discounts"] = discounts
        if verdict.attempts == 0:
            run["kept"] = True
    run["tokens"] = tokens
    return run


_NO_TOKENS = [0, 0]
"""The same list for all: Python's garbage collector visits every list of a run."""
