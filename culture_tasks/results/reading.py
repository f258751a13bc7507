"""The samples of all runs as one frame: a single pass over their files, which keeps no text.

The frame has a row per run and item, and the rows of a run are contiguous. Its columns are :data:`NUMBERS`, a category
for each field of the records' groups, and a number for each further score. Texts stay in the files, where a row's
``offset`` finds them again (:mod:`~culture_tasks.results.file_samples`).
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import ComputedScore, Scale
from culture_tasks.benchmarks.reporting import NO_GROUP, Codes, Floats, Texts, Where
from culture_tasks.errors import DataError
from culture_tasks.harness.records import RECORD, RECORD_VERSION
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.results.finding import Kind, UnusedFile
from culture_tasks.results.runs import PromptHash, RecordKind, Run, RunJudge, RunSamples, RunUsage
from culture_tasks.results.samples import GradedResponse, LoggedJudge, LoggedSample, samples_of
from culture_tasks.text import failure_in, frequent_mark, opening_mark

NUMBERS = {"item": "i", "cluster": "i", "score": "d", "scored": "i", "verdicts": "i", "offset": "q"}
"""Columns of numbers, with their type codes: items and clusters are numbered alike in all runs; the score is on the
metric's scale, NaN without one; then how many of its verdicts were scored, how many there are, and where its line
begins in its file."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of all runs as columns (:data:`NUMBERS`); the code of a group is -1 where there is no such field."""

    item: Codes
    cluster: Codes
    score: Floats
    scored: Codes
    verdicts: Codes
    offset: NDArray[np.int64]
    groups: Mapping[str, Texts]
    values: Mapping[str, Floats]

    def where(self, rows: slice, groups: Where) -> NDArray[np.intp]:
        """Returns which of some rows belong to all of these groups; none where a field isn't there."""
        mask = np.ones(rows.stop - rows.start, np.bool_)
        for name, group in groups:
            texts = self.groups.get(name)
            mask &= texts.codes[rows] == texts.names.index(group) if texts and group in texts.names else False
        chosen: NDArray[np.intp] = rows.start + np.flatnonzero(mask)
        return chosen

    def present(self, name: str, runs: Iterable[Run]) -> set[str]:
        """Returns the groups of a field that the samples of some runs have, but not an empty text."""
        texts = self.groups.get(name)
        if texts is None:
            return set()
        codes = {code for run in runs if run.samples for code in np.unique(texts.codes[run.samples.rows]).tolist()}
        return {texts.names[code] for code in codes if code >= 0} - {""}


class SampleReader:
    """Reads sample files into one frame, with one numbering of items and clusters for each benchmark."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str, str], int] = {}
        self._numbers: dict[str, array[Any]] = {name: array(code) for name, code in NUMBERS.items()}
        self._values: dict[str, array[float]] = defaultdict(lambda: array("d"))
        self._groups: dict[str, tuple[dict[str, int], array[int]]] = defaultdict(lambda: ({}, array("i")))

    @property
    def size(self) -> int:
        """Number of samples so far."""
        return len(self._numbers["item"])

    def count(self, rows: slice, benchmark: str, items: Iterable[str]) -> int:
        """Returns how many of some rows are of some items of a benchmark, by name."""
        known = {self._codes.get(("item", benchmark, item)) for item in items}
        return sum(code in known for code in self._numbers["item"][rows])

    @cached_property
    def samples(self) -> Samples:
        """The samples of all files that were read, which share its memory; none can be read after it."""
        size = self.size
        return Samples(
            **{name: np.asarray(self._numbers.pop(name)) for name in NUMBERS},
            groups={
                name: Texts(np.asarray(_padded(codes, size, -1)), tuple(names))
                for name, (names, codes) in self._groups.items()
            },
            values={name: np.asarray(_padded(column, size, math.nan)) for name, column in self._values.items()},
        )

    def read(self, path: Path, kind: RecordKind, expected: int | None) -> RunSamples:
        """Reads the samples of a run. Lines that can't be used are counted, named, and left out."""
        sums, start, left_out = _Sums(kind), self.size, dict[str, list[int]]()
        problems: list[UnusedFile] = []
        items: set[int] = set()
        try:
            for sample in samples_of(path, expected):
                if reason := self._take(sample, kind, sums, items):
                    left_out.setdefault(reason, []).append(sample.number)
        except DataError as error:  # the file isn't whole
            problems.append(UnusedFile(str(path), "partial", str(error).removeprefix(f"{path}: ")))
        for reason, numbers in left_out.items():
            kind_of_problem, meaning = _REASONS[reason]
            examples = ", ".join(map(str, numbers[:3])) + (", …" if len(numbers) > 3 else "")
            lines = f"{len(numbers):,} line{'s' if len(numbers) != 1 else ''} left out ({examples}): {meaning}"
            problems.append(UnusedFile(str(path), kind_of_problem, detail=lines, lines=len(numbers)))
        return sums.summary(slice(start, self.size), problems)

    def _take(self, sample: LoggedSample, kind: RecordKind, sums: _Sums, items: set[int]) -> str:
        """Adds a row for a sample, or returns why it can't be used."""
        try:
            logged = sample.logged
        except DataError:
            return "damaged"
        if not logged:
            return "withheld" if _has_inputs(sample.content, kind) else "foreign"
        try:
            if logged["record"] != RECORD_VERSION or not sums.fits(logged):
                return "unknown_record"
            score = _on_scale(logged.get("score"), kind.scale)
            values = logged.get("values") or {}
            further = {
                score.name: _on_scale(score.read(logged) if score.read else values.get(score.name), score.scale)
                for score in kind.further
            }
            outcomes = {str(name): _count(count) for name, count in logged["outcomes"].items()}
            item = self._code("item", kind.benchmark, logged["item"])
            cluster = self._code("cluster", kind.benchmark, logged["cluster"])
            groups = {name: NO_GROUP if group is None else _name(group) for name, group in logged["groups"].items()}
            if not kind.scale.allows(score):
                return "off_scale"
            if item in items:
                return "duplicate"
            sums.add(sample, logged, outcomes)
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return "unknown_record"
        items.add(item)
        # Without a judge, a reply that can't be read is a wrong answer, and no verdict is missing.
        scored = outcomes.get("scored", 0) + (0 if logged.get("judge") else outcomes.get("unparsable", 0))
        before, row = self.size, (item, cluster, score, scored, sum(outcomes.values()), sample.offset)  # as in NUMBERS
        for column, number in zip(self._numbers.values(), row, strict=True):
            column.append(number)
        for name, group in groups.items():
            names, codes = self._groups[name]
            _padded(codes, before, -1).append(names.setdefault(group, len(names)))
        for name, number in further.items():
            _padded(self._values[name], before, math.nan).append(number)
        return ""

    def _code(self, kind: str, benchmark: str, name: object) -> int:
        return self._codes.setdefault((kind, benchmark, _name(name)), len(self._codes))


def _name(value: object) -> str:
    """Returns a name; a benchmark's data may number items and groups."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):
        raise TypeError(f"expected a name, found {value!r:.40}")
    return str(value)


def _count(value: Any) -> int:
    if not 0 <= value <= 10**8:
        raise ValueError(f"expected a count, found {value!r:.40}")
    return int(value)


def _padded(column: array[Any], size: int, value: float) -> array[Any]:
    """Returns a column that is filled up to a size."""
    if len(column) < size:
        column.extend([value] * (size - len(column)))
    return column


def _has_inputs(content: Mapping[str, Any], kind: RecordKind) -> bool:
    fields = content.get(RECORD)
    others = {**content, **(fields.get("inputs") or {} if isinstance(fields, dict) else {})}
    return any(others.get(name) is not None for name in kind.metrics.keys() - {kind.metric})


def _on_scale(score: Any, scale: Scale) -> float:
    """Returns a score as the metric's scale has it; another value raises ValueError, TypeError or OverflowError."""
    if score is None:
        return math.nan
    if isinstance(score, str) or not math.isfinite(score):
        raise ValueError(f"expected a number, found {score!r:.40}")
    return scale.times * float(score)


class _Sums:
    """What the samples of a file add up to so far."""

    def __init__(self, kind: RecordKind) -> None:
        self._kind = kind
        self._is_computed = isinstance(kind.metrics.get(kind.metric), ComputedScore)
        self._scored = self._responses = self._failed = 0
        self._outcomes, self._marks = Counter[str](), Counter[str]()
        self._scale: Mapping[str, Any] = {}
        self._judge: object = None  # as the last sample has it
        self._judges: list[LoggedJudge] = []
        self._prompts, self._data = set[str](), set[str]()
        self._prompt_sum: int | None = 0
        self._tokens: list[int | None] = [0, 0]
        self._usage, self._kept = Usage(), Usage()
        self._records: list[Mapping[str, Any]] = []

    def fits(self, logged: Mapping[str, Any]) -> bool:
        """Whether a record is of the benchmark and metric, on the metric's scale."""
        kind, scale = self._kind, logged["scale"]
        if scale != self._scale:
            if Scale(**scale) != kind.scale:
                return False
            self._scale = scale
        return (logged["benchmark"], logged["metric"]) == (kind.benchmark, kind.metric)

    def add(self, sample: LoggedSample, logged: Mapping[str, Any], outcomes: Mapping[str, int]) -> None:
        """Adds a sample, or raises an error before anything is added."""
        runs = [GradedResponse.model_validate(run) for run in logged["runs"]]
        tokens, data, judge = _tokens(sample, logged), logged.get("data", {}).values(), logged.get("judge")
        sha = logged.get("prompt_sha256")
        prompts = {f"{logged['prompt']} {sha[:12]}"} if sha else set()
        if not runs:
            raise ValueError("no response")
        if judge is not None and judge != self._judge:
            self._judge, checked = judge, LoggedJudge.model_validate(judge)
            self._judges += [] if checked in self._judges else [checked]
        for outcome, verdicts in outcomes.items():
            self._outcomes[outcome] += verdicts
        self._scored += logged.get("score") is not None
        self._prompts.update(prompts)
        self._data.update(map(str, data))
        for run in runs:
            self._responses += 1
            self._failed += bool(failure_in(run.response))
            self._marks[opening_mark(run.response)] += 1
            if run.tokens != (0, 0) or run.discounts:
                usage = run.usage
                self._usage += usage
                if run.kept:
                    self._kept += usage
        for place, count in enumerate(tokens):
            before = self._tokens[place]
            self._tokens[place] = None if before is None or count is None else before + count
        if self._is_computed:
            self._records.append(logged)
        # lm-eval logs the prompt's hash, lmms-eval the prompt. The sum is the same in any order of the samples.
        prompt = sample.content.get("prompt_hash") or sample.content.get("input")
        if not isinstance(prompt, str):
            self._prompt_sum = None
        elif self._prompt_sum is not None:
            self._prompt_sum += _hash(f"{logged['item']}\0{prompt}")

    def summary(self, rows: slice, problems: Sequence[UnusedFile]) -> RunSamples:
        """Returns the sums."""
        prompts: dict[tuple[str, str, bool, str], set[tuple[str, str, str]]] = {}  # of the rubrics of each judge
        for judge in self._judges:
            identity = (judge.backend, judge.model, judge.delimiters, json.dumps(judge.sampling, sort_keys=True))
            prompts.setdefault(identity, set()).add((judge.rubric, judge.prompt, judge.prompt_sha256))
        size = rows.stop - rows.start
        tokens = self._tokens if size else (None, None)
        usage = (self._usage, self._kept) if self._usage != Usage() else (None, None)
        return RunSamples(
            rows=rows,
            scored=self._scored,
            judges=tuple(RunJudge(*key, tuple(sorted(triples))) for key, triples in sorted(prompts.items(), key=repr)),
            prompts=tuple(sorted(self._prompts)),
            data=tuple(sorted(self._data)),
            asked=PromptHash(size, f"{self._prompt_sum % 2**64:016x}") if self._prompt_sum else None,
            spent=RunUsage(self._responses, *tokens, *usage),
            outcomes=dict(sorted(self._outcomes.items())),
            failed=self._failed,
            mark=frequent_mark(self._marks),
            is_lexical=any(judge.backend == "lexical" for judge in self._judges),
            records=self._records,
            problems=tuple(problems),
        )


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def _tokens(sample: LoggedSample, logged: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Returns the tokens that the model read and wrote for a sample; None where a request of it doesn't say."""
    counts = sample.content.get("token_counts")
    if not counts or not any(counts):  # lmms-eval logs none for a response that is a list
        counts = [logged.get("facts") or {}]
    return _total(counts, "input_tokens"), _total(counts, "output_tokens")


def _total(counts: Iterable[Mapping[str, Any] | None], name: str) -> int | None:
    numbers: list[Any] = [(entry or {}).get(name) for entry in counts]
    return None if None in numbers else sum(numbers)


_REASONS: Mapping[str, tuple[Kind, str]] = {
    "damaged": ("damaged", "not a JSON object; the run may have been cut off"),
    "foreign": ("foreign", "without a record of this benchmark"),
    "withheld": ("foreign", "of data whose answers are withheld: there is nothing to score"),
    "unknown_record": (
        "unknown_record",
        f"with a record of a version other than {RECORD_VERSION}, of another benchmark or metric, on another scale, "
        "without a field, or with a value that makes no sense",
    ),
    "off_scale": ("damaged", "with a score that its scale doesn't have"),
    "duplicate": ("duplicate", "with an item that an earlier line has; the first counts"),
}
