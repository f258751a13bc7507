"""Logged samples that a judge grades: the requests to the judge, and the new samples that come of new verdicts.

A record says all that is needed: the question, the references, the responses, the rubric and the scale. Which metrics a
sample has is read from the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.harness.scoring import LEXICAL, OF_VERDICTS, JudgedDocument, item_of, judged_metrics, judged_results
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.results.samples import GradedResponse, LoggedJudge, LoggedSample, Record, samples_of

_NO_PART = ("coverage", "unscored", "run_sd", LEXICAL.removeprefix("_"))
"""What may follow a metric's name and an underscore, beside a part of the data."""


@dataclass(frozen=True)
class JudgedSample:
    """A logged sample that a judge grades.

    Attributes:
        logged: The sample as logged.
        judge: Who graded it.
        rubric: The rubric that it is graded by.
    """

    logged: LoggedSample
    judge: LoggedJudge
    rubric: Rubric

    @property
    def record(self) -> Record:
        """Its record."""
        return self.logged.record

    @property
    def as_logged(self) -> Mapping[str, Any]:
        """Its record as it is in the file."""
        return self.logged.logged[1]

    @property
    def metric(self) -> str:
        """The metric that is the mean of the judge's scores."""
        return self.record.metric

    @property
    def scale(self) -> Scale:
        """The scale that ratings are mapped to."""
        return self.record.scale

    @cached_property
    def scored(self) -> Mapping[int, GradedResponse]:
        """The responses that have a scored verdict, which may be kept, by number."""
        return {number: run for number, run in enumerate(self.record.runs) if run.outcome == "scored"}

    @cached_property
    def parts(self) -> Mapping[str, bool]:
        """The parts of its task's data that have their own mean, and whether the sample belongs to each.

        A sample has a metric for each part: ``{}`` where it belongs to the part, else null.
        """
        prefix = f"{self.metric}{LEXICAL}_" if self.judge.backend == "lexical" else f"{self.metric}_"
        found = {
            name.removeprefix(prefix): value
            for name, value in self.logged.content.items()
            if name.startswith(prefix) and not value
        }
        return {part: value is not None for part, value in found.items() if part not in _NO_PART}

    @property
    def prompt_order(self) -> tuple[object, ...]:
        """Sorts samples so that those whose judge's prompts begin alike are together."""
        return self.rubric.prompt_order(self._item(""))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The judged metrics that a run of its task can have."""
        return judged_metrics(self.metric, self.parts)

    def _item(self, response: str) -> JudgeItem:
        return item_of(self.as_logged, response)

    def expected(self, *, failed_only: bool) -> list[tuple[Rubric, JudgeItem]]:
        """Returns the requests to the judge.

        Args:
            failed_only: Keep the verdicts that were scored, and ask for the others alone.
        """
        kept = self.scored if failed_only else {}
        runs = enumerate(self.record.runs)
        return [(self.rubric, self._item(run.response)) for number, run in runs if number not in kept]

    def submit(self, *, failed_only: bool) -> JudgedDocument:
        """Submits its responses to the session's judge; ``failed_only`` is that of :meth:`expected`."""
        return JudgedDocument(
            {name: value for name, value in self.as_logged.items() if name not in OF_VERDICTS},
            rubric=self.rubric,
            responses=[run.response for run in self.record.runs],
            scale=self.scale,
            kept={number: run.verdict() for number, run in self.scored.items()} if failed_only else None,
            kept_judge=self.as_logged["judge"],
        )

    def regraded(self, document: JudgedDocument) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the sample with new records in place of the old ones, and these records by metric."""
        belongs = [part for part, is_in in self.parts.items() if is_in]
        records = judged_results(self.metric, document, groups=tuple(self.parts), belongs=belongs)
        old = {metric["metric"] for metric in self.metrics}
        sample = {name: value for name, value in self.logged.content.items() if name not in old} | records
        if isinstance(sample.get("metrics"), list):
            sample["metrics"] = [name for name in sample["metrics"] if name not in old] + list(records)
        return sample, records


def judged_samples(path: Path) -> list[JudgedSample]:
    """Returns the samples of a task that a judge grades, or none if it isn't a judged task.

    Raises:
        DataError: If some samples have a judged record and others have none, or one that can't be used.
        OSError: If the file can't be read.
    """
    judged: list[JudgedSample] = []
    others: list[LoggedSample] = []
    for sample in samples_of(path):
        if is_judged(sample):
            judged.append(judged_sample(sample))
        else:
            others.append(sample)
    if judged and others:
        raise DataError(f"{others[0].where}: no judged record, while others have one. The file may be mixed.")
    return judged


def is_judged(sample: LoggedSample) -> bool:
    """Whether a judge grades a sample."""
    return "judge" in sample.logged[1]


def judged_sample(sample: LoggedSample) -> JudgedSample:
    """Returns a sample that a judge grades.

    Raises:
        DataError: If its record can't be used.
    """
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
    """Makes sure that new verdicts may be mixed with kept ones; where the judge was asked doesn't matter.

    Args:
        old: The judge of the kept verdicts, as recorded.
        new: The judge now.
        asking: Whether anything will be asked of it, so that its sampling parameters are known.

    Raises:
        DataError: If another judge gave the kept ones.
    """
    names = ("backend", "model", "prompt_sha256", "delimiters", *(["sampling"] if asking else []))
    different = [name for name in names if old.get(name) != new[name]]
    if different:
        raise DataError(
            f"rejudge: --failed-only keeps verdicts of {old.get('backend')}:{old.get('model')}, and the judge now is "
            f"{new['backend']}:{new['model']} (another {different[0].replace('_', ' ')}). Name the same judge with the "
            "same settings, or leave out --failed-only to grade everything again."
        )
