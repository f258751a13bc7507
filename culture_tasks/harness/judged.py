"""Grading one document's responses by a judge, as records of a harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from culture_tasks.harness.records import PendingRecord
from culture_tasks.harness.session import current_session
from culture_tasks.judges.base import Ticket
from culture_tasks.judges.offline import Ready
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeIdentity, JudgeItem, Verdict
from culture_tasks.text import storable, without_reasoning

RECORD_VERSION = 1
"""Version of the layout of logged records; readers refuse versions that they don't know."""


@dataclass(frozen=True)
class Subject:
    """What is graded, apart from the responses.

    Attributes:
        benchmark: Name of the benchmark.
        question: The question as the judge sees it.
        references: The reference answers.
        rubric: The rubric to grade by.
        score: Maps a rating to the metric's scale.
        about: What else the record says of the document: id, language, category, country, data fingerprint.
        judge_language: Name of the language, where the rubric's prompt tells the judge; else empty.
    """

    benchmark: str
    question: str
    references: tuple[str, ...]
    rubric: Rubric
    score: Callable[[float], float]
    about: Mapping[str, Any]
    judge_language: str = ""


class JudgedDocument:
    """The responses to one document, submitted to the judge at once and read later."""

    def __init__(self, subject: Subject, responses: Sequence[str], kept: Mapping[int, Verdict] | None = None) -> None:
        """Submits every response.

        Args:
            subject: What is graded.
            responses: One response a run; several where the harness repeats a request.
            kept: Verdicts that are there already, by run: these aren't asked for.
        """
        judge = current_session().judge(subject.rubric.model)
        self._subject = subject
        self._responses = [storable(response) for response in responses]
        self.identity: JudgeIdentity = judge.identity(subject.rubric)
        have = {} if kept is None else kept
        self._tickets: list[Ticket] = [
            Ready(have[run]) if run in have else judge.submit(subject.rubric, self._item(text))
            for run, text in enumerate(self._responses)
        ]

    def _item(self, response: str) -> JudgeItem:
        subject = self._subject
        answer = without_reasoning(response).strip()
        return JudgeItem(subject.question, subject.references, answer, subject.judge_language)

    @cached_property
    def _verdicts(self) -> list[Verdict]:
        return [ticket.verdict() for ticket in self._tickets]

    def record(self) -> PendingRecord:
        """Returns the full record: all that is needed to read the verdict, and to grade the responses again."""
        known = {
            "record": RECORD_VERSION,
            "benchmark": self._subject.benchmark,
            **self._subject.about,
            "question": self._subject.question,
            "references": list(self._subject.references),
            "judge": self.identity.to_json(),
        }
        if self._subject.judge_language:
            known["judge_language"] = self._subject.judge_language
        return PendingRecord(known, lambda: {"runs": self._run_fields(), **self._summary()})

    def scores(self) -> PendingRecord:
        """Returns the little that a mean over a part of the documents needs."""
        return PendingRecord({"id": self._subject.about.get("id")}, self._summary)

    def outcomes(self) -> PendingRecord:
        """Returns how the verdicts ended, without a score."""
        return PendingRecord({"id": self._subject.about.get("id")}, lambda: {"outcomes": self._counts()})

    def wait(self) -> None:
        """Waits until every verdict is there."""
        _ = self._verdicts

    @property
    def runs(self) -> int:
        """Number of responses to the document."""
        return len(self._responses)

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for verdict in self._verdicts:
            counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
        return counts

    def _summary(self) -> dict[str, Any]:
        scores = [self._score(verdict) for verdict in self._verdicts]
        scored = [score for score in scores if score is not None]
        summary: dict[str, Any] = {"outcomes": self._counts()}
        if scored:
            summary["score"] = sum(scored) / len(scored)
        if len(scores) > 1:
            summary["run_scores"] = scores
        return summary

    def _score(self, verdict: Verdict) -> float | None:
        return None if verdict.score is None else self._subject.score(verdict.score)

    def _run_fields(self) -> list[dict[str, Any]]:
        return [
            {"prediction": response, **_verdict_fields(verdict)}
            for response, verdict in zip(self._responses, self._verdicts, strict=True)
        ]


def _verdict_fields(verdict: Verdict) -> dict[str, Any]:
    fields: dict[str, Any] = {"outcome": verdict.outcome, "rating": verdict.score}
    optional = {
        "rationale": verdict.rationale,
        "error": verdict.error,
        "reply_model": verdict.reply_model,
        "asked_again": verdict.asked_again or None,
        "completion": verdict.completion if verdict.outcome == "unparsable" else None,
    }
    fields.update(
        {name: storable(value) if isinstance(value, str) else value for name, value in optional.items() if value}
    )
    fields["tokens"] = [verdict.usage.prompt_tokens, verdict.usage.completion_tokens]
    return fields
