"""From the logged samples of a task to new ones, with new verdicts.

A logged record tells all that is needed: what was asked, the references, the responses, the rubric and the scale.
Which metrics a sample has is read from the sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import rubric_named
from culture_tasks.errors import DataError
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
from culture_tasks.judges.verdicts import JudgeItem, Usage, Verdict

Record = Mapping[str, Any]

_NEEDED = ("benchmark", "metric", "scale", "question", "references", "judge", "runs")
_NO_GROUP = ("coverage", "unscored", "run_sd", LEXICAL.removeprefix("_"))
"""What may follow a metric's name and a low line, beside a group."""


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """A logged sample that a judge grades.

    Attributes:
        sample: The sample as logged.
        record: Its judged record.
    """

    sample: dict[str, Any]
    record: Record

    @property
    def rubric(self) -> Rubric:
        """The rubric that it is graded by."""
        return rubric_named(self.record["judge"]["rubric"])

    @property
    def metric(self) -> str:
        """The metric that the judge's scores are averaged to."""
        return str(self.record["metric"])

    @property
    def groups(self) -> dict[str, bool]:
        """The parts of its task's data with a mean of their own, and whether the sample belongs to each."""
        logged = f"{self.metric}{LEXICAL}" if self.record["judge"]["backend"] == "lexical" else self.metric
        parts = {
            name.removeprefix(f"{logged}_"): value
            for name, value in self.sample.items()
            if name.startswith(f"{logged}_")
        }
        return {group: value is not None for group, value in parts.items() if group not in _NO_GROUP}

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The judged metrics that a run of its task can have."""
        return judged_metrics(self.metric, self.groups)

    def expected(self, *, failed_only: bool) -> list[tuple[Rubric, JudgeItem]]:
        """Returns what the judge will be asked."""
        kept = self.kept() if failed_only else {}
        runs = enumerate(self.record["runs"])
        return [(self.rubric, item_of(self.record, run["response"])) for number, run in runs if number not in kept]

    def kept(self) -> dict[int, Verdict]:
        """Returns the verdicts that were scored, by run: unparsable, refused, failed and unjudged ones are missing."""
        runs = enumerate(self.record["runs"])
        return {number: _verdict(run) for number, run in runs if run["outcome"] == "scored"}

    def submit(self, *, failed_only: bool) -> JudgedDocument:
        """Submits its responses to the session's judge.

        Args:
            failed_only: Keep the verdicts that were scored, and ask for the others alone.
        """
        return JudgedDocument(
            {name: value for name, value in self.record.items() if name not in OF_VERDICTS},
            self.rubric,
            [run["response"] for run in self.record["runs"]],
            Scale(**self.record["scale"]),
            kept=self.kept() if failed_only else None,
            kept_judge=self.record["judge"],
        )

    def regraded(self, document: JudgedDocument) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the sample with new records in place of the old ones, and these records by metric."""
        belongs = [group for group, is_in in self.groups.items() if is_in]
        records = judged_results(self.metric, document, tuple(self.groups), belongs)
        old = {each["metric"] for each in self.metrics}
        sample = {name: value for name, value in self.sample.items() if name not in old} | records
        if isinstance(sample.get("metrics"), list):
            sample["metrics"] = [name for name in sample["metrics"] if name not in old] + list(records)
        return sample, records


def judged_samples(samples: Sequence[dict[str, Any]], path: Path) -> list[JudgedSample]:
    """Returns the samples of a task that a judge grades, or none if it isn't such a task.

    Raises:
        DataError: If some samples have a judged record and others have none, or one of an unknown layout.
    """
    found = [_judged_record(sample) for sample in samples]
    if not any(found):
        return []
    judged: list[JudgedSample] = []
    for number, (sample, record) in enumerate(zip(samples, found, strict=True), start=1):
        if record is None:
            raise DataError(f"{path}, line {number}: no judged record, while others have one. The file may be mixed.")
        _check(record, f"{path}, line {number}")
        judged.append(JudgedSample(sample, record))
    return judged


def _judged_record(sample: Mapping[str, Any]) -> Record | None:
    records = (value for value in sample.values() if isinstance(value, dict) and "record" in value)
    return next((record for record in records if "judge" in record or "metric" not in record), None)


def _check(record: Record, where: str) -> None:
    if record.get("record") != RECORD_VERSION:
        raise DataError(
            f"{where}: the record has layout {record.get('record')!r}; this version reads {RECORD_VERSION}. "
            "Use the version of culture-tasks that wrote it."
        )
    missing = [name for name in _NEEDED if name not in record]
    if missing:
        raise DataError(f"{where}: the judged record has no field {missing[0]!r}. It is damaged, or not ours.")


def grade(judged: Iterable[JudgedSample], *, failed_only: bool) -> list[JudgedDocument]:
    """Submits samples to the session's judge.

    Args:
        judged: The samples.
        failed_only: Keep the verdicts that were scored, and ask for the others alone.
    """
    return [sample.submit(failed_only=failed_only) for sample in judged]


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


def _verdict(run: Mapping[str, Any]) -> Verdict:
    prompt_tokens, completion_tokens = run.get("tokens", (0, 0))
    return Verdict(
        "scored",
        float(run["rating"]),
        rationale=run.get("rationale"),
        usage=Usage(prompt_tokens, completion_tokens),
        asked_again=bool(run.get("asked_again")),
        reply_model=run.get("reply_model"),
        endpoint=run.get("endpoint"),
    )
