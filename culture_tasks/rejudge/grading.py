"""From the logged samples of a task to new ones, with new verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.rubrics import rubric_named
from culture_tasks.errors import DataError
from culture_tasks.harness.judged import RECORD_VERSION, JudgedDocument, Subject
from culture_tasks.harness.judged_benchmarks import JUDGED_BENCHMARKS, JudgedBenchmark, Record, benchmark_of
from culture_tasks.harness.metric_lists import judged_results
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem, Usage, Verdict

_NOT_ABOUT = {
    *("record", "benchmark", "question", "references", "judge", "judge_language"),
    *("runs", "outcomes", "score", "run_scores"),
}


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """A logged sample that a judge grades.

    Attributes:
        sample: The sample as logged.
        benchmark: Its benchmark.
        record: Its judged record.
    """

    sample: dict[str, Any]
    benchmark: JudgedBenchmark
    record: Record

    @property
    def rubric(self) -> Rubric:
        """The rubric that it is graded by."""
        return rubric_named(self.record["judge"]["rubric"])

    @property
    def groups(self) -> tuple[str, ...]:
        """The parts of its task's data with a mean of their own."""
        return self.benchmark.groups(self.record)

    def subject(self) -> Subject:
        """Returns what is graded, as it was when the sample was logged."""
        record = self.record
        return Subject(
            benchmark=record["benchmark"],
            question=record["question"],
            references=tuple(record["references"]),
            rubric=self.rubric,
            score=self.benchmark.score,
            about={name: value for name, value in record.items() if name not in _NOT_ABOUT},
            judge_language=record.get("judge_language", ""),
        )

    def expected(self, *, failed_only: bool) -> list[tuple[Rubric, JudgeItem]]:
        """Returns what the judge will be asked."""
        subject, kept = self.subject(), self.kept() if failed_only else {}
        runs = enumerate(self.record["runs"])
        return [(self.rubric, subject.item(run["prediction"])) for number, run in runs if number not in kept]

    def kept(self) -> dict[int, Verdict]:
        """Returns the verdicts that were scored, by run: unparsable, refused, failed and unjudged ones are missing."""
        runs = enumerate(self.record["runs"])
        return {number: _verdict(run) for number, run in runs if run["outcome"] == "scored"}


def judged_samples(samples: Sequence[dict[str, Any]], path: Path) -> list[JudgedSample]:
    """Returns the samples of a task that a judge grades, or none if it isn't such a task.

    Raises:
        DataError: If some samples have a judged record and others have none, or one of an unknown layout.
    """
    found = [benchmark_of(sample) for sample in samples]
    if not any(found):
        return []
    judged: list[JudgedSample] = []
    for number, (sample, one) in enumerate(zip(samples, found, strict=True), start=1):
        if one is None:
            raise DataError(f"{path}, line {number}: no judged record, while others have one. The file may be mixed.")
        _check(one[1], f"{path}, line {number}")
        judged.append(JudgedSample(sample, *one))
    return judged


def _check(record: Record, where: str) -> None:
    if record.get("record") != RECORD_VERSION:
        raise DataError(
            f"{where}: the record has layout {record.get('record')!r}; this version reads {RECORD_VERSION}. "
            "Use the version of culture-tasks that wrote it."
        )
    missing = {"benchmark", "question", "references", "judge", "runs"} - set(record)
    if missing or record["benchmark"] not in JUDGED_BENCHMARKS:
        what = f"no field {sorted(missing)[0]!r}" if missing else f"unknown benchmark {record['benchmark']!r}"
        raise DataError(f"{where}: the judged record has {what}. It is damaged, or not ours.")


def grade(judged: Iterable[JudgedSample], *, failed_only: bool) -> list[JudgedDocument]:
    """Submits samples to the session's judge.

    Args:
        judged: The samples.
        failed_only: Keep the verdicts that were scored, and ask for the others alone.
    """
    return [
        JudgedDocument(
            sample.subject(),
            [run["prediction"] for run in sample.record["runs"]],
            sample.kept() if failed_only else None,
            sample.record["judge"],
        )
        for sample in judged
    ]


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


def regraded(judged: JudgedSample, document: JudgedDocument) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns a sample with its new records in place of the old ones, and these records by metric."""
    metric = judged.benchmark.metric
    records = judged_results(metric, document, judged.groups, judged.benchmark.belongs(judged.record))
    old = {each["metric"] for each in judged.benchmark.metrics(judged.groups)}
    sample = {name: value for name, value in judged.sample.items() if name not in old} | records
    if isinstance(sample.get("metrics"), list):
        sample["metrics"] = [name for name in sample["metrics"] if name not in old] + list(records)
    return sample, records
