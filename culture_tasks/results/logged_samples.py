"""Logged samples that a judge grades: the requests to the judge, and the samples with new verdicts.

A record has all that is needed: the question, the references, the responses, the rubric and the scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.harness.records import RECORD, VERDICT_FIELDS, JudgedDocument, item_of
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.results.samples import GradedResponse, LoggedJudge, LoggedSample, Record
from culture_tasks.text import failure_in


@dataclass(frozen=True)
class JudgedSample:
    """A logged sample that a judge graded by a rubric."""

    logged: LoggedSample
    judge: LoggedJudge
    rubric: Rubric

    @property
    def record(self) -> Record:
        """Its record."""
        return self.logged.record

    @cached_property
    def as_logged(self) -> Mapping[str, Any]:
        """Its record as it is in the file, with a question and references that were checked."""
        record = self.record
        return {**self.logged.logged, "question": record.question, "references": list(record.references)}

    @cached_property
    def scored(self) -> Mapping[int, GradedResponse]:
        """The responses that have a scored verdict, which may be kept, by number."""
        return {number: run for number, run in enumerate(self.record.runs) if run.outcome == "scored"}

    @property
    def prompt_order(self) -> tuple[object, ...]:
        """Sorts samples so that judges' prompts with the same beginning are together."""
        return self.rubric.prompt_order(item_of(self.as_logged, ""))

    def expected(self, *, failed_only: bool) -> list[tuple[Rubric, JudgeItem]]:
        """Returns the requests to the judge; ``failed_only`` keeps the verdicts that were scored."""
        return [
            (self.rubric, item_of(self.as_logged, run.response))
            for number, run in enumerate(self.record.runs)
            if not (failed_only and number in self.scored) and not failure_in(run.response)
        ]

    def submit(self, *, failed_only: bool, more: Mapping[str, Any] | None = None) -> JudgedDocument:
        """Submits its responses to the session's judge as in :meth:`expected`; ``more`` go into its new record."""
        return JudgedDocument(
            {name: value for name, value in self.as_logged.items() if name not in VERDICT_FIELDS} | dict(more or {}),
            rubric=self.rubric,
            responses=[run.response for run in self.record.runs],
            scale=self.record.scale,
            verdicts={number: run.verdict() for number, run in self.scored.items()} if failed_only else None,
            verdicts_judge=self.as_logged["judge"],
        )

    def regraded(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the sample with a new record in place of the old one, and of what older versions log beside it."""
        metric = self.record.metric
        old = [name for name in self.logged.content if name in (RECORD, metric) or name.startswith(f"{metric}_")]
        sample = {name: value for name, value in self.logged.content.items() if name not in old} | {RECORD: record}
        if isinstance(sample.get("metrics"), list):
            sample["metrics"] = [*(name for name in sample["metrics"] if name not in old), RECORD]
        return sample


def judged_samples(logged: Iterable[LoggedSample]) -> list[JudgedSample]:
    """Returns the samples of a task that a judge grades, or none if it isn't a judged task; refuses a mixed file."""
    samples = list(logged)
    unjudged = [sample for sample in samples if not is_judged(sample)]
    if unjudged and len(unjudged) < len(samples):
        raise DataError(f"{unjudged[0].where}: no judged record, while others have one. The file may be mixed.")
    judged = [] if unjudged else [judged_sample(sample) for sample in samples]
    for sample in judged:
        if sample.record.scale != judged[0].record.scale:
            raise DataError(
                f"{sample.logged.where}: not on the scale of the file's first record. The file may be mixed."
            )
    return judged


def is_judged(sample: LoggedSample) -> bool:
    """Whether a judge grades a sample."""
    return "judge" in sample.logged


def judged_sample(sample: LoggedSample) -> JudgedSample:
    """Returns a sample that a judge grades; a DataError says that its record can't be used."""
    record, where = sample.record, sample.where
    if record.judge is None or record.scale.low is None or record.scale.high is None:
        raise DataError(f"{where}: expected a judge, and a scale with both ends. The record is damaged, or not ours.")
    try:
        rubric = rubric_named(record.judge.rubric)
    except JudgeError as error:
        raise DataError(f"{where}: {error} Install the package that the benchmark comes from.") from None
    judged = JudgedSample(sample, record.judge, rubric)
    for run in judged.scored.values():
        if run.rating is None or not rubric.lowest <= run.rating <= rubric.highest:
            raise DataError(
                f"{where}: expected a rating from {rubric.lowest} to {rubric.highest}, found {run.rating}. "
                "The record is damaged, or not ours."
            )
    return judged


def check_same_judge(old: Mapping[str, Any], new: Mapping[str, Any], *, asking: bool) -> None:
    """Refuses to mix new verdicts with another judge's; sampling is compared where anything will be asked."""
    names = ("backend", "model", "prompt_sha256", "delimiters", *(["sampling"] if asking else []))
    different = [name for name in names if old.get(name) != new[name]]
    if different:
        raise DataError(
            f"rejudge: --failed-only keeps verdicts of {old.get('backend')}:{old.get('model')}, and the judge now is "
            f"{new['backend']}:{new['model']} (another {different[0].replace('_', ' ')}). Name the same judge with the "
            "same settings, or leave out --failed-only to grade everything again."
        )
