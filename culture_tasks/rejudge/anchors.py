"""Has a judge behind the same name changed? An anchor set of responses with their ratings, and the judge asked again.

The sampling model, which ``docs/drift.md`` explains: in a round, the judge rates each response of the set once, in an
order fixed beforehand. As long as it is the same, the difference of the new and the old rating has mean 0. So the
differences of a round have a confidence sequence (:mod:`culture_tasks.metrics.confidence_sequences`), which may be
looked at any day; round k gives a false alarm with a chance of at most 0.05 / (k (k + 1)), which is 0.05 over all
rounds.

Two things would break this: responses that are chosen by their rating, whose new ratings tend towards the mean, and
several responses to one question, whose ratings may change together. The draw gives every response the same chance,
and takes one of each cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from culture_tasks.benchmarks.registry import benchmarks, rubric_named
from culture_tasks.errors import DataError, JudgeError
from culture_tasks.harness.scoring import item_of
from culture_tasks.judges.judge import Judge
from culture_tasks.judges.rubric.rubrics import Rubric
from culture_tasks.judges.rubric.verdicts import JudgeItem, Verdict
from culture_tasks.metrics.confidence_sequences import sequence_interval
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.subsets import draw
from culture_tasks.rejudge.rejudging import find_runs, judged_tasks
from culture_tasks.results.samples import LoggedJudge, damage
from culture_tasks.text import storable

_MADE_BY = "Expected a file that `culture-tasks anchor` has written."
_TRIES = 2
_Row = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
_Rating = Annotated[float, Field(allow_inf_nan=False)]


class _Identity(LoggedJudge, extra="forbid"):
    """Who gave a rating."""


class AnchorRow(BaseModel, extra="forbid", frozen=True):
    """One response of an anchor set."""

    format: Literal[1] = 1
    row: _Row  # hash of all the rest
    task: str
    culture: str
    judge: _Identity  # who gave the rating, with rubric, hash of the prompt, sampling and delimiters
    question: str
    references: Annotated[tuple[str, ...], Field(min_length=1)]
    response: str  # as the judge is shown it, before a very long one is cut
    language: str  # as the judge is told; mostly empty
    rating: _Rating
    reply_model: str | None  # the model that the endpoint named, where it isn't the one that was asked for
    rated: datetime  # time in the names of the files with the rating

    @property
    def item(self) -> JudgeItem:
        """The response as the judge reads it."""
        return JudgeItem(self.question, self.references, self.response, self.language)


class NewVerdict(BaseModel, extra="forbid", frozen=True):
    """One line of the history: the verdict of one look on one response."""

    row: _Row
    round: Annotated[int, Field(ge=1, le=10**6)]
    date: AwareDatetime
    outcome: Literal["scored", "unparsable", "refused", "failed"]
    rating: _Rating | None
    reply_model: str | None


@dataclass(frozen=True)
class Anchor:
    """An anchor set: its file, and its rows in the order in which they are asked."""

    path: Path
    rows: tuple[AnchorRow, ...]

    @property
    def history_file(self) -> Path:
        """The file beside it with the new verdicts."""
        return self.path.with_suffix(".history.jsonl")

    @property
    def judge_name(self) -> str:
        """Its judge, as ``CULTURE_JUDGE`` names it."""
        return self.rows[0].judge.name

    @cached_property
    def rubrics(self) -> Mapping[str, Rubric]:
        """Its rubrics by name, all of one scale."""
        return {name: rubric_named(name) for name in dict.fromkeys(row.judge.rubric for row in self.rows)}

    @property
    def scale(self) -> tuple[int, int]:
        """Lowest and highest rating."""
        first = next(iter(self.rubrics.values()))
        return first.lowest, first.highest

    @cached_property
    def rows_by_name(self) -> Mapping[str, AnchorRow]:
        """Its rows by their names."""
        return {row.row: row for row in self.rows}


# Making one


def make_anchor(
    results: Sequence[Path], path: Path, *, size: int, judge: str | None = None, tasks: Sequence[str] = ()
) -> Anchor:
    """Draws an anchor set from judged runs and writes it: the same set from the same runs.

    Args:
        results: Result files, folders or patterns.
        path: The file to write, which mustn't be there yet.
        size: Number of responses; all that there are, one per cluster, where these are fewer.
        judge: Whose verdicts, as ``CULTURE_JUDGE`` names it; None where the runs have one judge.
        tasks: Names or patterns of the tasks to draw from; all without any.

    Raises:
        DataError: If the runs have no scored verdicts, or those of several judges, or the file can't be written.
    """
    rated_rows = [
        (cluster, row)
        for cluster, row in _rated_rows(results)
        if judge in (None, row.judge.name, row.judge.backend)
        if not tasks or any(fnmatchcase(row.task, name) for name in tasks)
    ]
    if not rated_rows:
        raise DataError(
            "anchor: no rating by a judge in these results. Expected runs of a judged benchmark with --log_samples and "
            "--output_path; --judge and --tasks must name a judge and tasks of theirs."
        )
    if conflict := _conflict([row for _, row in rated_rows]):
        raise DataError(f"anchor: {conflict}. Choose with --judge and --tasks, or name fewer results.")
    # One response of each cluster, whatever its rating, and of several ratings of it the newest; and of responses that
    # are the same to the judge, which it rates once, one.
    by_cluster = dict(sorted(rated_rows, key=lambda pair: _hash_of([pair[1].task, pair[1].question, pair[1].response])))
    distinct = {(row.judge.rubric, row.item): cluster for cluster, row in by_cluster.items()}
    clusters, rows = list(distinct.values()), [by_cluster[cluster] for cluster in distinct.values()]
    strata = [f"{row.task}\n{row.culture}\n{row.rating:+020.6f}" for row in rows]
    selection = {rows[place].row: rows[place] for place in draw(size, clusters, clusters, strata)}
    anchor = Anchor(path, tuple(sorted(selection.values(), key=lambda row: row.row)))
    lines = (json.dumps(row.model_dump(mode="json")) + "\n" for row in anchor.rows)
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
    except FileExistsError:
        raise DataError(f"anchor: {path} is there already. Choose another file with -o.") from None
    except OSError as error:
        raise DataError(f"anchor: {path} can't be written ({error.strerror}). Choose another file with -o.") from None
    return anchor


def _rated_rows(results: Sequence[Path]) -> Iterator[tuple[str, AnchorRow]]:
    """Yields the cluster and the row of each response that a judge rated, the oldest run first."""
    for run in find_runs(results):
        for task in judged_tasks(run.files):
            benchmark = benchmarks().get(task.samples[0].record.benchmark)
            for sample in task.samples:
                record = sample.record
                culture = record.groups.get(benchmark.report().culture) if benchmark else None
                for grading in sample.scored.values():
                    item = item_of(sample.as_logged, grading.response)
                    content = {
                        "format": 1,
                        "task": task.name,
                        "culture": storable(culture or ""),
                        "judge": sample.judge.model_dump(mode="json"),
                        "question": storable(item.question),
                        "references": [storable(reference) for reference in item.references],
                        "response": storable(item.response),
                        "language": storable(item.language),
                        "rating": grading.rating,
                        "reply_model": grading.reply_model and storable(grading.reply_model),
                        "rated": run.files.time.isoformat(),
                    }
                    if item.references:
                        row = AnchorRow.model_validate({**content, "row": _hash_of(content)})
                        yield f"{record.benchmark}\n{record.cluster}", row


def _hash_of(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _conflict(rows: Iterable[AnchorRow]) -> str:
    """Says why rows have no common judge or scale; empty where they have."""
    judges = {_hash_of(row.judge.model_dump(mode="json")): row.judge for row in rows}
    if len(names := sorted({judge.name for judge in judges.values()})) > 1:
        return f"verdicts of {len(names)} judges ({', '.join(names)})"
    rubrics = sorted(judge.rubric for judge in judges.values())
    if twice := next((name for name in rubrics if rubrics.count(name) > 1), None):
        return f"verdicts of {names[0]} by {twice} with different prompts, sampling or delimiters"
    scales = {name: (rubric_named(name).lowest, rubric_named(name).highest) for name in rubrics}
    if len(set(scales.values())) > 1:
        ranges = ", ".join(f"{name} ({lowest} to {highest})" for name, (lowest, highest) in scales.items())
        return f"rubrics with different scales: {ranges}"
    return ""


# Reading its files


def read_anchor(path: Path) -> Anchor:
    """Reads an anchor set.

    Raises:
        DataError: If it can't be read, or isn't as it was written.
    """
    content = _content(path)
    if not content:
        raise DataError(f"anchor: {path}: {'no such file' if content is None else 'it is empty'}. {_MADE_BY}")
    rows: list[AnchorRow] = []
    for place, row in _lines(path, content, AnchorRow):
        if row.row != _hash_of(row.model_dump(mode="json", exclude={"row"})):
            raise DataError(f"{place}, field 'row': not the hash of the rest, which was changed. {_MADE_BY}")
        try:
            rubric_named(row.judge.rubric)
        except JudgeError as error:
            raise DataError(f"{place}: {error} Install the package that the benchmark comes from.") from None
        rows.append(row)
    if len({row.row for row in rows}) < len(rows):
        raise DataError(f"anchor: {path}: the same response twice. {_MADE_BY}")
    if conflict := _conflict(rows):
        raise DataError(f"anchor: {path}: {conflict}. {_MADE_BY}")
    return Anchor(path, tuple(sorted(rows, key=lambda row: row.row)))


def read_history(anchor: Anchor) -> list[NewVerdict]:
    """Reads the new verdicts on an anchor set; none where it was never checked.

    Raises:
        DataError: If a line can't be used. The last one, which a crash has cut off, is left out.
    """
    path = anchor.history_file
    history: list[NewVerdict] = []
    for place, line in _lines(path, _complete_lines(_content(path) or b""), NewVerdict):
        if line.row not in anchor.rows_by_name:
            raise DataError(f"{place}, field 'row': {line.row} isn't in {anchor.path}. Move it elsewhere.")
        history.append(line)
    return history


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"anchor: {path} can't be read ({error.strerror}). {_MADE_BY}") from None


def _complete_lines(content: bytes) -> bytes:
    return content[: content.rfind(b"\n") + 1]


_Kind = TypeVar("_Kind", AnchorRow, NewVerdict)


def _lines(path: Path, content: bytes, kind: type[_Kind]) -> Iterator[tuple[str, _Kind]]:
    """Yields the place of each line, for messages, with its content."""
    for number, line in enumerate(content.splitlines(), start=1):
        place = f"anchor: {path}, line {number}"
        try:
            yield place, kind.model_validate_json(line)
        except ValidationError as error:
            raise DataError(f"{place}, {damage(error)}. {_MADE_BY}") from None


# Asking again


def check_identity(anchor: Anchor, judge: Judge, *, sampling: bool) -> None:
    """Refuses a judge other than the anchor set's; its sampling is known once it was asked something.

    Raises:
        DataError: If model, prompt, delimiters or, where it is compared, sampling differ.
    """
    names = ["backend", "model", "prompt_sha256", "delimiters", *(["sampling"] if sampling else [])]
    for expected in {row.judge.rubric: row.judge for row in anchor.rows}.values():
        current = judge.identity(anchor.rubrics[expected.rubric]).json
        for name in names:
            if (value := getattr(expected, name)) != current[name]:
                raise DataError(
                    f"anchor: {anchor.path} has verdicts of {expected.name} by {expected.rubric}. The judge now is "
                    f"{current['backend']}:{current['model']}, and its {name} is {current[name]!r:.80}, not "
                    f"{value!r:.80}. That is another judge, no drift. Name the same judge with --judge and use the "
                    "same settings, or make a new anchor set."
                )


def open_rows(anchor: Anchor, history: Sequence[NewVerdict]) -> tuple[int, list[AnchorRow]]:
    """Returns the round that a look now belongs to, and its rows that weren't asked yet: at least one.

    A response whose verdict failed is asked once more in another look.
    """
    number = max((line.round for line in history), default=1)
    tries = dict.fromkeys(anchor.rows_by_name, 0)
    for line in history:
        if line.round == number:
            tries[line.row] += 1 if line.outcome == "failed" else _TRIES
    rows = [row for row in anchor.rows if tries[row.row] < _TRIES]
    return (number, rows) if rows else (number + 1, list(anchor.rows))


def ask_again(
    anchor: Anchor, rows: Sequence[AnchorRow], judge: Judge, *, round_number: int, date: datetime
) -> Iterator[Verdict]:
    """Asks for new verdicts, all together, and yields each once it is in the history file.

    Raises:
        DataError: If the file can't be written.
    """
    path = anchor.history_file
    try:
        with path.open("ab+") as file:  # before anything is asked, and paid for
            tickets = [judge.submit(anchor.rubrics[row.judge.rubric], row.item) for row in rows]
            file.seek(0)
            file.truncate(len(_complete_lines(file.read())))
            for row, ticket in zip(rows, tickets, strict=True):
                verdict = ticket.verdict()
                line = NewVerdict(
                    row=row.row,
                    round=round_number,
                    date=date,
                    outcome="failed" if verdict.outcome == "unjudged" else verdict.outcome,
                    rating=verdict.score,
                    reply_model=verdict.reply_model and storable(verdict.reply_model),
                )
                file.write(line.model_dump_json().encode() + b"\n")
                file.flush()
                yield verdict
    except OSError as error:
        raise DataError(f"anchor: {path} can't be written ({error.strerror}).") from None


# Deciding


class Round(NamedTuple):
    """What one round found, after its last look."""

    number: int
    asked: int  # number of verdicts that were asked for, those without a rating too
    differences: tuple[float, ...]  # new less old ratings, in the order in which they came
    difference: Interval  # their mean on the rubric's scale, as far as each counts, with its interval; NaN without any
    # The same after the last look at which it excluded 0, and the time of that look; None if there was none.
    alarm: tuple[datetime, Interval] | None

    @property
    def identical(self) -> int:
        """Number of ratings that are the same as the old ones."""
        return self.differences.count(0.0)

    @property
    def limit(self) -> float:
        """The largest mean difference, up or down, that the round still allows; NaN without a rating."""
        return max(-self.difference.low, self.difference.high)


def confidence_of(number: int) -> float:
    """Returns the confidence of the interval of a round, from 1 on; all rounds together err in 5 % of cases."""
    return 1.0 - 0.05 / (number * (number + 1))


def most_points(lowest: float, highest: float) -> float:
    """Returns the most points of a rubric's scale that a difference counts."""
    return max((highest - lowest) / 4.0, 1.0)


def rounds(anchor: Anchor, history: Sequence[NewVerdict]) -> list[Round]:
    """Returns the rounds of a history, each with its confidence sequence, looked at after each look."""
    cap = most_points(*anchor.scale)
    results = []
    for number in dict.fromkeys(line.round for line in history):
        lines = [line for line in history if line.round == number]
        ratings: dict[str, float] = {}
        alarm = None
        for date in dict.fromkeys(line.date for line in lines):
            for line in lines:
                if line.date == date and line.rating is not None:
                    ratings.setdefault(line.row, line.rating)  # two looks at the same time may both ask
            differences = tuple(rating - anchor.rows_by_name[row].rating for row, rating in ratings.items())
            current = sequence_interval(np.clip(differences, -cap, cap), -cap, cap, confidence_of(number))
            if current.low > 0.0 or current.high < 0.0:
                alarm = (date, current)
        results.append(Round(number, len(lines), differences, current, alarm))
    return results
