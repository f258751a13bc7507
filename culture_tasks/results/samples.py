"""The one reader of sample files: their lines, each with its record, which is checked when it is asked for.

A harness logs one JSON object per document. A task of ours logs its record there under its main metric (see
:mod:`culture_tasks.harness.records`). The record has all that is needed to show a sample, to count it, and to grade it
again. Anybody may have written the file: a line with another layout raises an error that names file, line and field.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import from_json

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.errors import DataError
from culture_tasks.harness.records import RECORD_VERSION
from culture_tasks.judges.rubric.verdicts import Outcome, Usage, Verdict
from culture_tasks.plain_files import open_plain
from culture_tasks.text import failure_in

_Count = Annotated[int, Field(ge=0, le=10**8)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Name = Annotated[str, Field(coerce_numbers_to_str=True)]  # a benchmark's data may number items and groups


class _Logged(BaseModel):
    model_config = ConfigDict(frozen=True)


class GradedResponse(_Logged):
    """A response, with a judge's verdict or the label that was read from it.

    Attributes:
        outcome: How grading ended; without a judge ``scored``, or ``unparsable`` where nothing could be read.
        completion: The judge's reply where it couldn't be read.
        reply_model: The model that the endpoint named, where it isn't the one that was asked for.
        tokens: Tokens that the judge read and wrote.
        kept: Whether the verdict was there before the run.
    """

    response: str
    outcome: Outcome
    rating: _Number | None = None
    rationale: str | None = None
    error: str | None = None
    completion: str | None = None
    label: str | None = None
    reply_model: str | None = None
    endpoint: str | None = None
    asked_again: bool = False
    tokens: tuple[_Count, _Count] = (0, 0)
    discounts: dict[Literal["cached_tokens", "batch_prompt_tokens", "batch_completion_tokens"], _Count] = Field(
        default_factory=dict
    )
    kept: bool = False

    @property
    def usage(self) -> Usage:
        """Tokens of the judge's reply."""
        return Usage(*self.tokens, **self.discounts)

    def verdict(self) -> Verdict:
        """Returns the verdict as the judge gave it."""
        return Verdict(
            self.outcome,
            self.rating,
            rationale=self.rationale,
            usage=self.usage,
            asked_again=self.asked_again,
            reply_model=self.reply_model,
            endpoint=self.endpoint,
        )


class LoggedJudge(_Logged):
    """The judge in a record: see :class:`~culture_tasks.judges.rubric.verdicts.JudgeIdentity`."""

    backend: str
    model: str = ""
    rubric: str = ""
    prompt: str = ""
    prompt_sha256: str = ""
    delimiters: bool = False
    sampling: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The judge as ``CULTURE_JUDGE`` names it."""
        return f"{self.backend}:{self.model}"


class Record(_Logged):
    """The record of a document that a task of ours logs (see :mod:`culture_tasks.harness.records`).

    ``item`` is the question, the same for every model and harness; ``score`` is as the harness counts, and
    ``run_scores`` are those of several responses; ``values`` are for further metrics.
    """

    benchmark: str
    metric: str
    scale: Scale
    item: _Name
    cluster: _Name
    groups: dict[str, _Name | None] = {}
    data: dict[str, _Name] = {}
    question: str = ""
    references: tuple[_Name, ...] = ()
    prompt: str = ""
    prompt_sha256: str = ""
    image: _Name = ""
    judge_language: str = ""
    values: dict[str, _Number | None] = {}
    facts: dict[str, Any] = {}
    judge: LoggedJudge | None = None
    runs: Annotated[tuple[GradedResponse, ...], Field(min_length=1)]
    outcomes: dict[str, _Count]
    score: _Number | None = None
    run_scores: tuple[_Number | None, ...] = ()

    @field_validator("scale")
    @classmethod
    def _is_usable(cls, scale: Scale) -> Scale:
        ends = [end for end in (scale.low, scale.high, scale.neutral, scale.times) if end is not None]
        ordered = scale.low is None or scale.high is None or scale.low < scale.high
        if not (ordered and all(map(math.isfinite, ends)) and scale.times > 0.0 and 0 <= scale.digits <= 10):
            raise ValueError("expected finite ends in order, a positive factor and 0 to 10 digits")
        return scale


class LoggedSample:
    """A line of a sample file, from number 1 on, which begins at an offset; parsed when asked for, with a DataError."""

    def __init__(self, path: Path, number: int, offset: int, text: bytes) -> None:
        self.path, self.number, self.offset = path, number, offset
        self._text = text
        self._content: dict[str, Any] | None = None

    @property
    def where(self) -> str:
        """The file and the line, for messages."""
        return f"{self.path}, line {self.number}"

    @property
    def content(self) -> dict[str, Any]:
        """The sample as the harness logged it."""
        if self._content is not None:  # a cached_property takes a lock, which a million lines feel
            return self._content
        try:
            content = parse_json(self._text)
        except ValueError as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else error
            raise DataError(f"{self.where}: not JSON ({reason}). The file may be cut off: leave it out.") from None
        if not isinstance(content, dict):
            raise DataError(f"{self.where}: expected an object, found {type(content).__name__}.")
        self._text, self._content = b"", content
        return content

    @property
    def document(self) -> tuple[str, Any]:
        """The filter, which lm-eval names, and what tells its document from others: its number, or that of the line."""
        number = self.content.get("doc_id")
        return str(self.content.get("filter")), number if isinstance(number, int | str) else ("line", self.number)

    @property
    def logged(self) -> Mapping[str, Any]:
        """The record as it is; empty without one. Older versions log it under its metric's name."""
        records = (value for value in self.content.values() if isinstance(value, dict) and "record" in value)
        return next(map(without_failures, records), {})

    @cached_property
    def record(self) -> Record:
        """The record."""
        logged = self.logged
        if logged.get("record") != RECORD_VERSION:
            raise DataError(
                f"{self.where}: the record has layout {logged.get('record')!r:.40}; this version reads "
                f"{RECORD_VERSION}. Use the version of culture-tasks that wrote it."
            )
        try:
            return Record.model_validate(logged)
        except ValidationError as error:
            raise DataError(f"{self.where}, {damage(error)}. The record is damaged, or not ours.") from None

    @property
    def prompt(self) -> str | None:
        """The model's input where the harness logged it; messages of a chat as JSON, None without any."""
        prompt = self.content.get("input")
        if prompt is None:  # lm-eval logs every request of a document, each with its arguments
            requests = self.content.get("arguments")
            first = requests.get("gen_args_0") if isinstance(requests, dict) else None
            prompt = first.get("arg_0") if isinstance(first, dict) else None
        if prompt is None or isinstance(prompt, str):
            return prompt
        return json.dumps(prompt, ensure_ascii=False, indent=1, default=str)


def without_failures(record: dict[str, Any]) -> dict[str, Any]:
    """Returns a logged record in which responses that failed are graded by nobody, as runs of this version log it."""
    runs = record.get("runs")
    if not isinstance(runs, list) or not all(isinstance(run, dict) for run in runs):
        return record
    failures = [failure_in(run["response"]) if isinstance(run.get("response"), str) else "" for run in runs]
    if not [run for failure, run in zip(failures, runs, strict=True) if failure and run.get("outcome") != "failed"]:
        return record
    graded = [
        {"response": run["response"], "outcome": "failed", "error": failure} if failure else run
        for failure, run in zip(failures, runs, strict=True)
    ]
    scores = record.get("run_scores") or [None] * len(runs)
    kept = [None if failure else score for failure, score in zip(failures, scores, strict=False)]
    numbers = [score for score in kept if isinstance(score, (int, float))]
    counts = dict(Counter(str(run.get("outcome")) for run in graded))
    score = sum(numbers) / len(numbers) if numbers else None
    renewed = {**record, "runs": graded, "outcomes": counts, "score": score, "values": {}}
    return renewed | ({"run_scores": kept} if "run_scores" in record else {})


def samples_of(path: Path, expected: int | None) -> Iterator[LoggedSample]:
    """Yields the lines of a sample file that are not blank, with their offsets, which ``jsonlines`` doesn't have.

    After the last one, a DataError says so if there isn't one for each document of the run: as many as ``expected``, or
    None where its result file doesn't say. Where a task has several filters, each has its lines.
    """
    offset = lines = broken = 0
    documents: dict[str, set[Any]] = {}
    with open_plain(path) as file:
        for number, text in enumerate(file, start=1):
            if not text.isspace():
                sample = LoggedSample(path, number, offset, text)
                yield sample
                lines += 1
                try:
                    name, document = sample.document
                    documents.setdefault(name, set()).add(document)
                except DataError:  # whoever reads the line says so
                    broken += 1
            offset += len(text)
    sizes = [len(of_filter) + broken for of_filter in documents.values()] or [broken]
    wanted = expected if expected is not None else sizes[0] or 1
    if lines > sum(sizes) or any(size != wanted for size in sizes):
        by_file = "" if expected is None else f" ({expected:,}, by its result file)"
        several = f" for {min(sizes):,} documents" if lines != min(sizes) else ""
        raise DataError(
            f"{path}: expected a line for each document of the run{by_file}, found {lines:,}{several}. The "
            "file was cut off, copied in part, or is of several runs: copy it again, or run the task again."
        )


def parse_json(text: bytes) -> Any:
    """Parses JSON in UTF-8; a text that the fast parser refuses, such as half of a surrogate pair, is tried again."""
    try:
        return from_json(text, cache_strings="keys")
    except ValueError:
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def damage(error: ValidationError) -> str:
    """Returns the first field that isn't as it should be, and its value."""
    problem = error.errors(include_url=False)[0]
    field = ".".join(map(str, problem["loc"]))
    value = "nothing" if problem["type"] == "missing" else f"{problem['input']!r:.80}"
    return f"{field and f'field {field!r}: '}found {value} ({problem['msg']})"
