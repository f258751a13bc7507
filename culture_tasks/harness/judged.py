"""Grading one document's responses by a judge, as records of a harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from culture_tasks.harness.records import PendingRecord
from culture_tasks.harness.session import current_session
from culture_tasks.judges.judge import Ready, Ticket
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem, Verdict
from culture_tasks.text import answer_in, storable

RECORD_VERSION = 1
"""Version of the layout of logged records; readers refuse versions that they don't know."""

_KNOWN = {"record": RECORD_VERSION}


class Subject(NamedTuple):
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

    def item(self, response: str) -> JudgeItem:
        """Returns what the judge is shown of a response."""
        return JudgeItem(self.question, self.references, answer_in(response), self.judge_language)


class JudgedDocument:
    """The responses to one document, submitted to the judge at once and read later.

    Attributes:
        judge: Who grades, as the record says it.
    """

    __slots__ = ("_responses", "_subject", "_tickets", "judge")

    def __init__(
        self,
        subject: Subject,
        responses: Sequence[str],
        kept: Mapping[int, Verdict] | None = None,
        kept_judge: Mapping[str, Any] | None = None,
    ) -> None:
        """Submits every response.

        Args:
            subject: What is graded.
            responses: One response a run; several where the harness repeats a request.
            kept: Verdicts that are there already, by run: these aren't asked for.
            kept_judge: Who gave them, as recorded: stays in the record where nothing is asked.
        """
        judge = current_session().judge(subject.rubric.model)
        self._subject = subject
        self._responses = [storable(response) for response in responses]
        have = {} if kept is None else kept
        self.judge: Mapping[str, Any] = judge.identity(subject.rubric).json
        if kept_judge is not None and len(have) == len(responses):
            self.judge = kept_judge
        self._tickets: list[Ticket] = [
            Ready(have[run]) if run in have else judge.submit(subject.rubric, subject.item(text))
            for run, text in enumerate(self._responses)
        ]

    def record(self) -> PendingRecord:
        """Returns the record: all that is needed to read the verdict, and to grade the responses again."""
        return PendingRecord(_KNOWN, self._fields)

    def wait(self) -> None:
        """Waits until every verdict is there."""
        for ticket in self._tickets:
            ticket.verdict()

    @property
    def runs(self) -> int:
        """Number of responses to the document."""
        return len(self._responses)

    def _fields(self) -> dict[str, Any]:
        subject = self._subject
        verdicts = [ticket.verdict() for ticket in self._tickets]
        fields = {
            "benchmark": subject.benchmark,
            **subject.about,
            "question": subject.question,
            "references": list(subject.references),
            "judge": self.judge,
        }
        if subject.judge_language:
            fields["judge_language"] = subject.judge_language
        fields["runs"] = [
            {"prediction": response, **_verdict_fields(verdict)}
            for response, verdict in zip(self._responses, verdicts, strict=True)
        ]
        return fields | _summary(verdicts, subject.score)


def _summary(verdicts: Sequence[Verdict], score: Callable[[float], float]) -> dict[str, Any]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
    scores = [None if verdict.score is None else score(verdict.score) for verdict in verdicts]
    scored = [each for each in scores if each is not None]
    summary: dict[str, Any] = {"outcomes": counts}
    if scored:
        summary["score"] = sum(scored) / len(scored)
    if len(scores) > 1:
        summary["run_scores"] = scores
    return summary


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
    }
    fields.update(
        {name: storable(value) if isinstance(value, str) else value for name, value in optional.items() if value}
    )
    fields["tokens"] = [verdict.usage.prompt_tokens, verdict.usage.completion_tokens]
    return fields
