"""The samples of runs: one pass over their files for the numbers.

The pass keeps columns of numbers, some forty bytes a sample, and where each line begins; texts stay in the file, where
:mod:`culture_tasks.report.sample_store` finds them again.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from culture_tasks.benchmarks.interface import ComputedScore, Metric, Scale
from culture_tasks.benchmarks.reporting import NO_GROUP, Codes, Floats, FurtherScore, Mask, Texts
from culture_tasks.harness.scoring import LEXICAL, RECORD_VERSION
from culture_tasks.report.runs import Judge
from culture_tasks.report.sample_facts import SampleFacts
from culture_tasks.report.text.wording import counted
from culture_tasks.results.finding import Kind, Problem
from culture_tasks.results.run_files import parse_json, sample_lines
from culture_tasks.results.task_results import Asked, Spent

Record = Mapping[str, Any]

Codebook = dict[str, int]
"""Names, numbered from 0 on in the order in which they come; shared by files, so that equal names are one number."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The samples of one run.

    Attributes:
        items: The item of each sample, numbered alike in all runs.
        scores: Its score on the metric's scale; NaN without one.
        scored: Number of its verdicts that were scored.
        verdicts: Number of its verdicts.
        clusters: What it shares with others, numbered alike in all runs.
        offsets: Where its line begins in the file.
        groups: Its groups, by field.
        further: Its further scores, by name; NaN without one.
        repeats: Its score in each repeat, a column each; NaN without one. None unless every item was asked equally
            often, and more than once.
        records: Its whole record, where the metric is computed from records; else None.
    """

    items: Codes
    scores: Floats
    scored: NDArray[np.int16]
    verdicts: NDArray[np.int16]
    clusters: Codes
    offsets: NDArray[np.int64]
    groups: Mapping[str, Texts]
    further: Mapping[str, Floats]
    repeats: Floats | None = None
    records: NDArray[np.object_] | None = None

    def where(self, pairs: Sequence[tuple[str, str]]) -> Mask:
        """Returns which samples belong to all of these groups; none where a field isn't there."""
        mask = np.ones(self.items.size, dtype=np.bool_)
        for name, value in pairs:
            mask &= self.groups[name].equals(value) if name in self.groups else False
        return mask


@dataclass(frozen=True, slots=True)
class RecordKind:
    """What is expected of the records of a task, and what is kept of them.

    Attributes:
        benchmark: Their benchmark.
        metric: Name of their metric.
        scale: The scale of their scores.
        further: Further scores to keep.
        metrics: The task's metrics, by name; empty where the package that defines them isn't installed. A sample that
            has another one and no record couldn't be scored.
    """

    benchmark: str
    metric: str
    scale: Scale
    further: tuple[FurtherScore, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedSamples:
    """A sample file that was read.

    Attributes:
        columns: Its columns.
        judges: Who graded.
        prompts: Prompt templates and their hashes, where the record names them.
        data: Fingerprints of the data.
        outcomes: How many verdicts ended how.
        lexical: Whether the score is text overlap.
        asked: The prompts, as one hash.
        spent: Tokens, and lengths of responses.
        problems: What was left out.
    """

    columns: Columns
    judges: tuple[Judge, ...]
    prompts: tuple[str, ...]
    data: tuple[str, ...]
    outcomes: Mapping[str, int]
    lexical: bool
    asked: Asked | None
    spent: Spent
    problems: tuple[Problem, ...]


def record_of(sample: Any) -> tuple[str, Record] | None:
    """Returns the record of a sample with the metric under which it was logged, or None without one."""
    for name, value in sample.items():
        if isinstance(value, dict) and "record" in value:
            return name, value
    return None


def first_record(path: Path) -> Record | None:
    """Returns the record of a file's first sample, where there is one that can be read."""
    try:
        _, _, line = next(sample_lines(path))
        sample = parse_json(line)
    except (OSError, ValueError, StopIteration):
        return None
    found = record_of(sample) if isinstance(sample, dict) else None
    return None if found is None else found[1]


def scale_of(record: Record) -> Scale | None:
    """Returns the scale that a record names, or None where it names none that numbers can be shown on."""
    try:
        scale = _SCALE.validate_python(record.get("scale"))
    except ValidationError:
        return None
    ends = [each for each in (scale.low, scale.high, scale.neutral, scale.times) if each is not None]
    ordered = scale.low is None or scale.high is None or scale.low < scale.high
    return scale if ordered and all(map(math.isfinite, ends)) and 0 <= scale.digits <= _MOST_DIGITS else None


_SCALE = TypeAdapter(Scale)
_MOST_DIGITS = 10


class SampleReader:
    """Reads sample files of one report, with one numbering of items and clusters for all."""

    def __init__(self) -> None:
        self._items: dict[str, Codebook] = {}
        self._clusters: dict[str, Codebook] = {}

    def read(self, path: Path, kind: RecordKind) -> LoadedSamples:
        """Reads the samples of a task; lines that can't be used are counted and left out.

        An item has the same number in all tasks of its benchmark.

        Raises:
            OSError: If the file can't be read.
        """
        items = self._items.setdefault(kind.benchmark, {})
        clusters = self._clusters.setdefault(kind.benchmark, {})
        return _Pass(kind, items, clusters).over(path)

    def count(self, columns: Columns, benchmark: str, items: Iterable[str]) -> int:
        """Returns how many samples of a benchmark are of some of its items, by name."""
        known = self._items.get(benchmark, {})
        return int(np.isin(columns.items, [known[name] for name in items if name in known]).sum())


@dataclass(slots=True)
class _Row:
    """What is kept of a record."""

    item: str
    cluster: str
    groups: Mapping[str, str]
    score: float
    further: Sequence[float]
    outcomes: Mapping[str, int]
    judge: Any
    data: Sequence[str]


class _Pass:
    """The one pass over the lines of a file."""

    def __init__(self, kind: RecordKind, items: Codebook, clusters: Codebook) -> None:
        self._kind = kind
        self._items, self._clusters = items, clusters
        self._seen: set[int] = set()
        self._numbers: dict[str, array[Any]] = {name: array(code) for name, (code, _) in _TYPES.items()}
        self._further: dict[str, array[float]] = {each.name: array("d") for each in kind.further}
        self._columns = [*self._numbers.values(), *self._further.values()]
        self._groups: dict[str, tuple[Codebook, array[int]]] = {}
        self._judges: dict[str, Mapping[str, Any]] = {}
        self._prompts: dict[str, None] = {}
        self._data: dict[str, None] = {}
        self._outcomes: dict[str, int] = {}
        self._left_out: dict[str, list[int]] = {}
        self._lexical = False
        self._facts = SampleFacts()
        self._repeats: array[float] | None = array("d")
        self._records: list[Record] | None = [] if isinstance(kind.metrics.get(kind.metric), ComputedScore) else None
        self._many = 0
        # Most records of a file say the same of these: only what differs from the last record is looked into.
        self._last_scale: Any = object()
        self._last_judge: Any = None
        self._last_prompt: Any = None
        self._last_data: Any = None

    def over(self, path: Path) -> LoadedSamples:
        for place, (_, offset, line) in enumerate(sample_lines(path), start=1):
            reason = self._take(line, offset)
            if reason is not None:
                self._left_out.setdefault(reason, []).append(place)
        return self._loaded(path)

    def _take(self, line: bytes, offset: int) -> str | None:
        """Takes a line in, or says why it can't be used."""
        try:
            sample = parse_json(line)
            found = record_of(sample)
            if found is None:
                others = self._kind.metrics.keys() - {self._kind.metric}
                return "withheld" if any(sample.get(name) is not None for name in others) else "foreign"
            key, record = found
            row = self._row(record) if self._is_expected(record) else None
        except ValueError:
            return "damaged"
        except (KeyError, TypeError, AttributeError, OverflowError):
            return "unknown_record"
        if row is None:
            return "unknown_record"
        if not self._kind.scale.allows(row.score):
            return "off_scale"
        item = _code(self._items, row.item)
        if item in self._seen:
            return "duplicate"
        try:
            self._facts.add(row.item, sample, record)
        except (KeyError, TypeError, ValueError, AttributeError):
            return "unknown_record"
        self._seen.add(item)
        self._append(row, item, offset)
        self._note(key, record, row)
        return None

    def _row(self, record: Record) -> _Row | None:
        """Returns what is kept of a record, or None where it can't be."""
        outcomes: dict[str, int] = record["outcomes"]
        for count in outcomes.values():
            if type(count) is not int or not 0 < count <= _MOST_RUNS:
                return None
        groups: dict[str, Any] = record["groups"]
        if groups.keys() != self._groups.keys() and len(self._groups.keys() | groups.keys()) > _MOST_FIELDS:
            return None
        values = record.get("values", {}) if self._further else {}
        judge = record.get("judge")
        if judge is not None:
            if judge != self._last_judge and not _is_judge(judge):
                return None
            if record.get("score") is None and outcomes.get("scored"):
                return None
        return _Row(
            item=str(record["item"]),
            cluster=str(record["cluster"]),
            groups={field: group if type(group) is str else _name(group) for field, group in groups.items()},
            score=self._kind.scale.times * _float(record.get("score")),
            further=[
                each.scale.times * _float(each.read(record) if each.read else values.get(each.name))
                for each in self._kind.further
            ],
            outcomes=outcomes,
            judge=judge,
            data=[*map(str, record["data"].values())],
        )

    def _is_expected(self, record: Record) -> bool:
        kind = self._kind
        names = (record["record"], record.get("benchmark"), record.get("metric"))
        return names == (RECORD_VERSION, kind.benchmark, kind.metric) and self._has_scale(record)

    def _has_scale(self, record: Record) -> bool:
        """Whether a record is on the scale that is expected; records of one file mostly say the same."""
        if record["scale"] == self._last_scale:
            return True
        if scale_of(record) != self._kind.scale:
            return False
        self._last_scale = record["scale"]
        return True

    def _append_groups(self, groups: Mapping[str, str]) -> None:
        """Appends the groups of a sample; a field that it doesn't have, or the first to have, is an empty text."""
        if groups.keys() != self._groups.keys():
            before = len(self._numbers["items"])
            for field in groups:
                if field not in self._groups:
                    self._groups[field] = ({"": 0} if before else {}, array("i", [0] * before))
        for field, (codes, column) in self._groups.items():
            column.append(codes.setdefault(groups.get(field, ""), len(codes)))

    def _append(self, row: _Row, item: int, offset: int) -> None:
        self._append_groups(row.groups)
        verdicts = sum(row.outcomes.values())
        # Without a judge, a reply that can't be read is a wrong answer, and no verdict is missing.
        scored = verdicts if row.judge is None else row.outcomes.get("scored", 0)
        cluster = _code(self._clusters, row.cluster)
        values = (item, row.score, scored, verdicts, cluster, offset, *row.further)  # as in _TYPES
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def _note(self, key: str, record: Record, row: _Row) -> None:
        if self._records is not None:
            self._records.append(record)
        self._lexical |= key.endswith(LEXICAL)
        for outcome, count in row.outcomes.items():
            self._outcomes[outcome] = self._outcomes.get(outcome, 0) + count
        if row.judge is not None and row.judge != self._last_judge:
            self._last_judge = row.judge
            self._judges.setdefault(repr(row.judge), row.judge)
        prompt = record.get("prompt"), record.get("prompt_sha256")
        if prompt != self._last_prompt and "prompt_sha256" in record:
            self._last_prompt = prompt
            self._prompts[f"{prompt[0]} {str(prompt[1])[:12]}"] = None
        if row.data != self._last_data:
            self._last_data = row.data
            self._data.update(dict.fromkeys(row.data))
        if self._repeats is not None:
            self._keep_repeats(record.get("run_scores"))

    def _keep_repeats(self, scores: Any) -> None:
        """Keeps a sample's score in each repeat; none of the file's where it has one alone, or more or fewer."""
        repeats, self._repeats = self._repeats, None
        if not isinstance(scores, list) or not 1 < len(scores) <= _MOST_REPEATS:
            return
        if repeats is None or (repeats and len(scores) != self._many):
            return
        try:
            own = [self._kind.scale.times * _float(score) for score in scores]
        except (TypeError, ValueError, OverflowError):
            return
        if all(map(self._kind.scale.allows, own)):
            repeats.extend(own)
            self._repeats, self._many = repeats, len(own)

    def _loaded(self, path: Path) -> LoadedSamples:
        groups = {
            field: Texts(np.array(column, dtype=np.int32), tuple(codes))
            for field, (codes, column) in self._groups.items()
        }
        numbers: dict[str, Any] = {
            name: np.array(self._numbers[name], dtype=dtype) for name, (_, dtype) in _TYPES.items()
        }
        further = {name: np.array(values, dtype=np.float64) for name, values in self._further.items()}
        return LoadedSamples(
            columns=Columns(
                **numbers,
                groups=groups,
                further=further,
                repeats=np.array(self._repeats, dtype=np.float64).reshape(-1, self._many) if self._repeats else None,
                records=None if self._records is None else np.fromiter(self._records, dtype=np.object_),
            ),
            judges=judges_of(self._judges.values()),
            prompts=tuple(sorted(self._prompts)),
            data=tuple(sorted(self._data)),
            outcomes=dict(self._outcomes),
            lexical=self._lexical,
            asked=self._facts.asked,
            spent=self._facts.spent,
            problems=tuple(_problem(path, reason, lines) for reason, lines in self._left_out.items()),
        )


_TYPES: Mapping[str, tuple[str, type[np.generic]]] = {
    "items": ("i", np.int32),
    "scores": ("d", np.float64),
    "scored": ("h", np.int16),
    "verdicts": ("h", np.int16),
    "clusters": ("i", np.int32),
    "offsets": ("q", np.int64),
}
"""Columns of numbers: code of the array that collects them, and type of the column."""

_MOST_FIELDS = 40
"""Most fields of groups that the records of a file may have together: each is a column."""

_MOST_REPEATS = 100
"""Most repeats of an item of which each has a column."""

_MOST_RUNS = 4_000
"""Most verdicts of one outcome that a sample may have: with those of all outcomes, they are counted in 16 bits."""

_REASONS: Mapping[str, tuple[Kind, str]] = {
    "damaged": ("damaged", "not JSON; the run may have been cut off"),
    "foreign": ("foreign", "without a record of this benchmark"),
    "withheld": ("foreign", "of data whose answers are withheld: there is nothing to score"),
    "unknown_record": (
        "unknown_record",
        f"with a record of another version than {RECORD_VERSION}, of another benchmark or metric, on another scale, "
        "without a field, or with a value that makes no sense",
    ),
    "off_scale": ("damaged", "with a score that its scale doesn't have"),
    "duplicate": ("duplicate", "with an item that an earlier line has; the first counts"),
}


def _problem(path: Path, reason: str, lines: Sequence[int]) -> Problem:
    kind, meaning = _REASONS[reason]
    shown = ", ".join(map(str, lines[:3])) + (", …" if len(lines) > 3 else "")
    return Problem(
        str(path), kind, detail=f"{counted(len(lines), 'line')} left out ({shown}): {meaning}", lines=len(lines)
    )


def _code(codes: Codebook, name: str) -> int:
    """Returns the number of a name, a new one where it has none yet."""
    return codes.setdefault(name, len(codes))


def _is_judge(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("sampling", {}), dict)


def _name(value: Any) -> str:
    return NO_GROUP if value is None else str(value)


def _float(value: Any) -> float:
    """Returns a number, NaN for none.

    Raises:
        ValueError: If it is infinite or no number.
    """
    number = math.nan if value is None else float(value)
    if math.isinf(number):
        raise ValueError("infinite")
    return number


def judges_of(identities: Any) -> tuple[Judge, ...]:
    """Returns the judges of records, each with the prompts of all its rubrics."""
    prompts: dict[tuple[str, str, bool, str], set[tuple[str, str, str]]] = {}
    for each in identities:
        sampling = json.dumps(each.get("sampling") or {}, sort_keys=True)
        who = (str(each.get("backend")), str(each.get("model")), bool(each.get("delimiters")), sampling)
        prompt = (str(each.get("rubric")), str(each.get("prompt")), str(each.get("prompt_sha256")))
        prompts.setdefault(who, set()).add(prompt)
    return tuple(
        Judge(backend, model, delimiters=delimiters, sampling=sampling, prompts=tuple(sorted(found)))
        for (backend, model, delimiters, sampling), found in sorted(prompts.items(), key=repr)
    )
