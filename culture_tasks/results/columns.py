"""The samples of runs as columns: one pass over their files for the numbers.

The pass keeps some forty bytes per sample, and where each line begins; texts stay in the file, where
:mod:`culture_tasks.results.sample_store` finds them again.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import ComputedScore, Metric, Scale
from culture_tasks.benchmarks.reporting import NO_GROUP, Codes, Floats, FurtherScore, Mask, Texts
from culture_tasks.errors import DataError
from culture_tasks.harness.scoring import LEXICAL, RECORD_VERSION
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.results.finding import Kind, UnusedFile
from culture_tasks.results.runs import Grader, PromptHash, Spent
from culture_tasks.results.samples import LoggedJudge, LoggedSample, Record, samples_of

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
    scored: Codes
    verdicts: Codes
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
        asked: The prompts, as one hash; None where a sample doesn't have its own.
        spent: Tokens, and lengths of responses.
        problems: What was left out.
    """

    columns: Columns
    judges: tuple[Grader, ...]
    prompts: tuple[str, ...]
    data: tuple[str, ...]
    outcomes: Mapping[str, int]
    lexical: bool
    asked: PromptHash | None
    spent: Spent
    problems: tuple[UnusedFile, ...]


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
        gathering = _Gathering(kind, items, clusters)
        left_out: dict[str, list[int]] = {}
        for sample in samples_of(path):
            if reason := gathering.take(sample):
                left_out.setdefault(reason, []).append(sample.number)
        return gathering.loaded([_problem(path, reason, numbers) for reason, numbers in left_out.items()])

    def count(self, columns: Columns, benchmark: str, items: Iterable[str]) -> int:
        """Returns how many samples of a benchmark are of some of its items, by name."""
        known = self._items.get(benchmark, {})
        return int(np.isin(columns.items, [known[name] for name in items if name in known]).sum())


class _Gathering:
    """What the samples of one file add up to."""

    def __init__(self, kind: RecordKind, items: Codebook, clusters: Codebook) -> None:
        self._kind = kind
        self._items, self._clusters = items, clusters
        self._seen: set[int] = set()
        self._numbers: dict[str, array[Any]] = {name: array(code) for name, (code, _) in _TYPES.items()}
        self._further = {score.name: array("d") for score in kind.further}
        self._groups: dict[str, tuple[Codebook, array[int]]] = {}
        self._judges: list[LoggedJudge] = []
        self._prompts: dict[str, None] = {}
        self._data: dict[str, None] = {}
        self._outcomes: Counter[str] = Counter()
        self._lexical = False
        self._repeats: list[tuple[float | None, ...]] = []
        self._records: list[Mapping[str, Any]] = []
        self._facts = _Facts()

    def take(self, sample: LoggedSample) -> str:
        """Takes a sample in, or says why it can't be used."""
        kind = self._kind
        try:
            key, logged = sample.logged
        except DataError:
            return "damaged"
        if not logged:
            others = kind.metrics.keys() - {kind.metric}
            return "withheld" if any(sample.content.get(name) is not None for name in others) else "foreign"
        try:
            record = sample.record
            further = [score.read(logged) if score.read else record.values.get(score.name) for score in kind.further]
            tokens = _tokens(sample, record)
        except (DataError, KeyError, TypeError, ValueError, AttributeError):
            return "unknown_record"
        if (record.benchmark, record.metric, record.scale) != (kind.benchmark, kind.metric, kind.scale):
            return "unknown_record"
        score = _on_scale(record.score, kind.scale)
        if not kind.scale.allows(score):
            return "off_scale"
        item = self._items.setdefault(record.item, len(self._items))
        if item in self._seen:
            return "duplicate"
        self._seen.add(item)
        verdicts = sum(record.outcomes.values())
        # Without a judge, a reply that can't be read is a wrong answer, and no verdict is missing.
        scored = verdicts if record.judge is None else record.outcomes.get("scored", 0)
        cluster = self._clusters.setdefault(record.cluster, len(self._clusters))
        self._append_groups(record.groups)
        values = (item, score, scored, verdicts, cluster, sample.offset)  # as in _TYPES
        for column, value in zip(self._numbers.values(), values, strict=True):
            column.append(value)
        for wanted, number in zip(kind.further, further, strict=True):
            self._further[wanted.name].append(_on_scale(number, wanted.scale))
        self._note(key, record)
        if isinstance(kind.metrics.get(kind.metric), ComputedScore):
            self._records.append(logged)
        self._facts.add(sample, record, tokens)
        return ""

    def _append_groups(self, groups: Mapping[str, str | None]) -> None:
        """Appends the groups of a sample; a field that it doesn't have, or the first to have, is an empty text."""
        if groups.keys() != self._groups.keys():
            before = len(self._numbers["items"])
            for name in groups:
                if name not in self._groups:
                    self._groups[name] = ({"": 0} if before else {}, array("i", [0] * before))
        for name, (codes, column) in self._groups.items():
            group = groups.get(name, "")
            column.append(codes.setdefault(NO_GROUP if group is None else group, len(codes)))

    def _note(self, key: str, record: Record) -> None:
        self._lexical |= key.endswith(LEXICAL)
        for outcome, count in record.outcomes.items():
            self._outcomes[outcome] += count
        if record.judge is not None and record.judge not in self._judges:
            self._judges.append(record.judge)
        if record.prompt_sha256:
            self._prompts[f"{record.prompt} {record.prompt_sha256[:12]}"] = None
        for fingerprint in record.data.values():
            self._data[fingerprint] = None
        self._repeats.append(record.run_scores)

    def _repeated(self) -> Floats | None:
        """Returns the scores of each repeat; None where an item has one alone, or more or fewer than another."""
        many = {len(scores) for scores in self._repeats}
        if len(many) != 1 or many <= {0, 1}:
            return None
        scale = self._kind.scale
        repeats = np.array([[_on_scale(score, scale) for score in scores] for scores in self._repeats])
        return repeats if all(map(scale.allows, repeats.flat)) else None

    def loaded(self, problems: Sequence[UnusedFile]) -> LoadedSamples:
        """Returns what was read."""
        numbers: dict[str, Any] = {
            name: np.array(self._numbers[name], dtype=dtype) for name, (_, dtype) in _TYPES.items()
        }
        return LoadedSamples(
            columns=Columns(
                **numbers,
                groups={
                    name: Texts(np.array(column, dtype=np.int32), tuple(codes))
                    for name, (codes, column) in self._groups.items()
                },
                further={name: np.array(values, dtype=np.float64) for name, values in self._further.items()},
                repeats=self._repeated(),
                records=np.fromiter(self._records, dtype=np.object_) if self._records else None,
            ),
            judges=_judges_of(self._judges),
            prompts=tuple(sorted(self._prompts)),
            data=tuple(sorted(self._data)),
            outcomes=self._outcomes,
            lexical=self._lexical,
            asked=self._facts.asked,
            spent=self._facts.spent,
            problems=tuple(problems),
        )


_TYPES: Mapping[str, tuple[str, type[np.generic]]] = {
    "items": ("i", np.int32),
    "scores": ("d", np.float64),
    "scored": ("i", np.int32),
    "verdicts": ("i", np.int32),
    "clusters": ("i", np.int32),
    "offsets": ("q", np.int64),
}
"""Columns of numbers: code of the array that collects them, and type of the column."""


class _Facts:
    """What the samples of a file took, and their prompts as one hash."""

    def __init__(self) -> None:
        self._samples = self._responses = self._characters = 0
        self._prompts: int | None = 0
        self._tokens: tuple[int | None, int | None] = (0, 0)
        self._judge = self._judge_kept = Usage()

    def add(self, sample: LoggedSample, record: Record, tokens: tuple[int | None, int | None]) -> None:
        self._samples += 1
        for run in record.runs:
            self._responses += 1
            self._characters += len(run.response)
            if run.tokens != (0, 0) or run.discounts:
                usage = run.usage
                self._judge += usage
                if run.kept:
                    self._judge_kept += usage
        before, now = self._tokens, tokens
        self._tokens = (_sum(before[0], now[0]), _sum(before[1], now[1]))
        # lm-eval logs the prompt's hash, lmms-eval the prompt. The sum is the same in any order of the samples.
        prompt = sample.content.get("prompt_hash") or sample.content.get("input")
        if self._prompts is not None:
            if not isinstance(prompt, str):
                self._prompts = None
            else:
                text = f"{record.item}\0{prompt}".encode("utf-8", "surrogatepass")
                self._prompts += int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    @property
    def asked(self) -> PromptHash | None:
        return PromptHash(self._samples, f"{self._prompts % 2**64:016x}", "report") if self._prompts else None

    @property
    def spent(self) -> Spent:
        has_usage = self._judge != Usage()
        return Spent(
            responses=self._responses,
            characters=self._characters,
            tokens_in=self._tokens[0] if self._samples else None,
            tokens_out=self._tokens[1] if self._samples else None,
            judge=self._judge if has_usage else None,
            judge_kept=self._judge_kept if has_usage else None,
        )


def _tokens(sample: LoggedSample, record: Record) -> tuple[int | None, int | None]:
    """Returns the tokens that the model read and wrote for a sample; None where a request of it doesn't say."""
    counts = sample.content.get("token_counts")
    if not counts or not any(counts):  # lmms-eval logs none for a response that is a list
        counts = [record.facts]
    numbers: list[list[Any]] = [
        [(entry or {}).get(name) for entry in counts] for name in ("input_tokens", "output_tokens")
    ]
    found = [None if None in own else sum(own) for own in numbers]
    return found[0], found[1]


def _sum(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two


def _on_scale(score: float | None, scale: Scale) -> float:
    return math.nan if score is None else scale.times * score


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


def _problem(path: Path, reason: str, numbers: Sequence[int]) -> UnusedFile:
    kind, meaning = _REASONS[reason]
    shown = ", ".join(map(str, numbers[:3])) + (", …" if len(numbers) > 3 else "")
    lines = f"{len(numbers):,} line{'s' if len(numbers) != 1 else ''}"
    return UnusedFile(str(path), kind, detail=f"{lines} left out ({shown}): {meaning}", lines=len(numbers))


def _judges_of(identities: Iterable[LoggedJudge]) -> tuple[Grader, ...]:
    """Returns the judges of records, each with the prompts of all its rubrics."""
    prompts: dict[tuple[str, str, bool, str], set[tuple[str, str, str]]] = {}
    for judge in identities:
        identity = (judge.backend, judge.model, judge.delimiters, json.dumps(judge.sampling, sort_keys=True))
        prompts.setdefault(identity, set()).add((judge.rubric, judge.prompt, judge.prompt_sha256))
    return tuple(
        Grader(backend, model, delimiters=delimiters, sampling=sampling, prompts=tuple(sorted(found)))
        for (backend, model, delimiters, sampling), found in sorted(prompts.items(), key=repr)
    )
