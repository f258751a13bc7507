"""Logged samples whose records say who is to be asked what, and the new samples that come of new verdicts.

A record says all that is needed: what was asked, the references, the responses, the rubric and the scale. Which metrics
a sample has is read from the sample. Anybody may have written the file, so that each record is checked first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.harness.scoring import (
    LEXICAL,
    OF_VERDICTS,
    RECORD_VERSION,
    JudgedDocument,
    item_of,
    judged_metrics,
    judged_results,
)
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem, Outcome, Usage, Verdict

_NO_PART = ("coverage", "unscored", "run_sd", LEXICAL.removeprefix("_"))
"""What may follow a metric's name and an underscore, beside a part of the data."""

_Count = Annotated[int, Field(ge=0)]


class _Discounts(BaseModel):
    cached_tokens: _Count = 0
    batch_prompt_tokens: _Count = 0
    batch_completion_tokens: _Count = 0


class LoggedRun(BaseModel):
    """A response with its verdict, as a record holds it; other fields don't matter here."""

    response: str
    outcome: Outcome
    rating: Annotated[float, Field(allow_inf_nan=False)] | None = None
    rationale: str | None = None
    reply_model: str | None = None
    endpoint: str | None = None
    asked_again: bool = False
    tokens: tuple[_Count, _Count] = (0, 0)
    discounts: _Discounts = _Discounts()

    def verdict(self) -> Verdict:
        """Returns the verdict as the judge gave it."""
        return Verdict(
            self.outcome,
            self.rating,
            rationale=self.rationale,
            usage=Usage(*self.tokens, **self.discounts.model_dump()),
            asked_again=self.asked_again,
            reply_model=self.reply_model,
            endpoint=self.endpoint,
        )


class _LoggedJudge(BaseModel):
    rubric: str
    backend: str


class _LoggedRecord(BaseModel):
    metric: str
    scale: Scale
    question: str
    references: list[str]
    judge: _LoggedJudge
    judge_language: str = ""
    runs: Annotated[list[LoggedRun], Field(min_length=1)]

    @field_validator("scale")
    @classmethod
    def _has_ends(cls, scale: Scale) -> Scale:
        if scale.low is None or scale.high is None or scale.times <= 0.0:
            raise ValueError("needed are both ends and a positive factor")
        return scale


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """A logged sample that a judge grades.

    Attributes:
        sample: The sample as logged.
        record: Its judged record, as logged.
        rubric: The rubric that it is graded by.
        scale: The scale that ratings are mapped to.
        parts: The parts of its task's data with a mean of their own, and whether the sample belongs to each.
        scored: The runs that have a scored verdict, which may be kept, by number.
    """

    sample: Mapping[str, Any]
    record: Mapping[str, Any]
    rubric: Rubric
    scale: Scale
    parts: Mapping[str, bool]
    scored: Mapping[int, LoggedRun]

    @property
    def metric(self) -> str:
        """The metric that is the mean of the judge's scores."""
        return str(self.record["metric"])

    @property
    def prompt_order(self) -> tuple[object, ...]:
        """Sorts samples so that those whose judge's prompts begin alike are together."""
        return self.rubric.prompt_order(item_of(self.record, ""))

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The judged metrics that a run of its task can have."""
        return judged_metrics(self.metric, self.parts)

    def expected(self, *, failed_only: bool) -> list[tuple[Rubric, JudgeItem]]:
        """Returns what the judge will be asked.

        Args:
            failed_only: Keep the verdicts that were scored, and ask for the others alone.
        """
        kept = self.scored if failed_only else {}
        runs = enumerate(self.record["runs"])
        return [(self.rubric, item_of(self.record, run["response"])) for number, run in runs if number not in kept]

    def submit(self, *, failed_only: bool) -> JudgedDocument:
        """Submits its responses to the session's judge; ``failed_only`` is that of :meth:`expected`."""
        return JudgedDocument(
            {name: value for name, value in self.record.items() if name not in OF_VERDICTS},
            rubric=self.rubric,
            responses=[run["response"] for run in self.record["runs"]],
            scale=self.scale,
            kept={number: run.verdict() for number, run in self.scored.items()} if failed_only else None,
            kept_judge=self.record["judge"],
        )

    def regraded(self, document: JudgedDocument) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the sample with new records in place of the old ones, and these records by metric."""
        belongs = [part for part, is_in in self.parts.items() if is_in]
        records = judged_results(self.metric, document, groups=tuple(self.parts), belongs=belongs)
        old = {each["metric"] for each in self.metrics}
        sample = {name: value for name, value in self.sample.items() if name not in old} | records
        if isinstance(sample.get("metrics"), list):
            sample["metrics"] = [name for name in sample["metrics"] if name not in old] + list(records)
        return sample, records


def judged_samples(samples: Sequence[dict[str, Any]], path: Path) -> list[JudgedSample]:
    """Returns the samples of a task that a judge grades, or none if it isn't such a task.

    Raises:
        DataError: If some samples have a judged record and others have none, or one that can't be used.
    """
    records = [_judged_record(sample) for sample in samples]
    if not any(records):
        return []
    judged: list[JudgedSample] = []
    for number, (sample, record) in enumerate(zip(samples, records, strict=True), start=1):
        where = f"{path}, line {number}"
        if record is None:
            raise DataError(f"{where}: no judged record, while others have one. The file may be mixed.")
        judged.append(_checked(sample, record, where))
    return judged


def _judged_record(sample: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((each for each in sample.values() if isinstance(each, dict) and {"record", "judge"} <= set(each)), None)


def _checked(sample: Mapping[str, Any], record: Mapping[str, Any], where: str) -> JudgedSample:
    if record["record"] != RECORD_VERSION:
        raise DataError(
            f"{where}: the record has layout {record['record']!r}; this version reads {RECORD_VERSION}. "
            "Use the version of culture-tasks that wrote it."
        )
    try:
        read = _LoggedRecord.model_validate(record)
        rubric = rubric_named(read.judge.rubric)
    except ValidationError as error:
        raise DataError(f"{where}, {damage(error)}. The record is damaged, or not ours.") from None
    except JudgeError as error:
        raise DataError(f"{where}: {error} Install the package that the benchmark comes from.") from None
    scored = {number: run for number, run in enumerate(read.runs) if run.outcome == "scored"}
    for run in scored.values():
        if run.rating is None or not rubric.lowest <= run.rating <= rubric.highest:
            raise DataError(
                f"{where}: found the rating {run.rating}. Needed is one from {rubric.lowest} to {rubric.highest}. "
                "The record is damaged, or not ours."
            )
    return JudgedSample(
        sample=sample,
        record=record,
        rubric=rubric,
        scale=read.scale,
        parts=_parts(sample, read),
        scored=scored,
    )


def damage(error: ValidationError) -> str:
    """Returns the first field that isn't as it should be, and what was found there."""
    problem = error.errors(include_url=False)[0]
    field = ".".join(map(str, problem["loc"]))
    found = "nothing" if problem["type"] == "missing" else f"{problem['input']!r:.80}"
    return f"field {field!r}: found {found} ({problem['msg']})"


def _parts(sample: Mapping[str, Any], record: _LoggedRecord) -> dict[str, bool]:
    """Returns the parts of the data that the sample has a metric for: ``{}`` where it belongs to one, else null."""
    prefix = f"{record.metric}{LEXICAL}_" if record.judge.backend == "lexical" else f"{record.metric}_"
    found = {name.removeprefix(prefix): value for name, value in sample.items() if name.startswith(prefix)}
    return {part: value is not None for part, value in found.items() if part not in _NO_PART and not value}


def check_same_judge(old: Mapping[str, Any], new: Mapping[str, Any], *, asking: bool) -> None:
    """Makes sure that new verdicts may stand beside kept ones; where the judge was asked doesn't matter.

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
