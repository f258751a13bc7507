"""The samples of runs as columns: one pass over their files for the numbers.

The pass keeps some forty bytes per sample, and where each line begins; texts stay in the file, where
:class:`FileSamples` finds them again.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import ComputedScore, Metric, Scale
from culture_tasks.benchmarks.reporting import NO_GROUP, Codes, Floats, FurtherScore, Mask, Texts
from culture_tasks.errors import DataError
from culture_tasks.harness.records import RECORD, RECORD_VERSION
from culture_tasks.judges.rubric.verdicts import Usage
from culture_tasks.plain_files import open_plain
from culture_tasks.results.finding import Kind, UnusedFile
from culture_tasks.results.runs import PromptHash, RunJudge, RunRows, RunSettings, RunUsage, Sample
from culture_tasks.results.samples import LoggedJudge, LoggedSample, Record, samples_of
from culture_tasks.text import failure_in, opening_mark

Codebook = dict[str, int]
"""Names, numbered from 0 on in the order in which they come; shared by files, so that equal names are one number."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The samples of one run; items and clusters are numbered alike in all runs.

    Attributes:
        scores: The score of each on the metric's scale; NaN without one.
        scored: Number of its verdicts that were scored.
        verdicts: Number of its verdicts.
        offsets: Where its line begins in the file.
        groups: Its groups, by field.
        further: Its further scores, by name; NaN without one.
        repeats: Its score in each repeat, a column each; NaN without one. None unless every item was asked equally
            often, and more than once.
        records: Its whole record, where the metric is computed from records; else None.
        main_choice: The label that most of all replies choose, their number, and that of all that choose one.
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
    main_choice: tuple[str, int, int] = ("", 0, 0)

    def where(self, pairs: Sequence[tuple[str, str]]) -> Mask:
        """Returns which samples belong to all of these groups; none where a field isn't there."""
        mask = np.ones(self.items.size, dtype=np.bool_)
        for name, value in pairs:
            mask &= self.groups[name].equals(value) if name in self.groups else False
        return mask


@dataclass(frozen=True, slots=True)
class RecordKind:
    """The records expected of a task; no metrics where the package that defines them isn't installed."""

    benchmark: str
    metric: str
    scale: Scale
    further: tuple[FurtherScore, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)


class SampleReader:
    """Reads sample files of one report, with one numbering of items and clusters for all tasks of a benchmark."""

    def __init__(self) -> None:
        self._items: dict[str, Codebook] = {}
        self._clusters: dict[str, Codebook] = {}

    def read(self, path: Path, kind: RecordKind, expected: int | None) -> LoadedSamples:
        """Reads the samples of a task; lines that can't be used are counted and left out, lines that lack are named."""
        items = self._items.setdefault(kind.benchmark, {})
        loaded = LoadedSamples(kind, items, self._clusters.setdefault(kind.benchmark, {}))
        left_out: dict[str, list[int]] = {}
        try:
            for sample in samples_of(path, expected):
                if reason := loaded.take(sample):
                    left_out.setdefault(reason, []).append(sample.number)
        except DataError as error:  # the file isn't whole
            loaded.problems.append(UnusedFile(str(path), "partial", str(error).removeprefix(f"{path}: ")))
        for reason, numbers in left_out.items():
            kind_of_problem, meaning = _REASONS[reason]
            examples = ", ".join(map(str, numbers[:3])) + (", …" if len(numbers) > 3 else "")
            lines = f"{len(numbers):,} line{'s' if len(numbers) != 1 else ''} left out ({examples}): {meaning}"
            loaded.problems.append(UnusedFile(str(path), kind_of_problem, detail=lines, lines=len(numbers)))
        return loaded

    def count(self, columns: Columns, benchmark: str, items: Iterable[str]) -> int:
        """Returns how many samples of a benchmark are of some of its items, by name."""
        codebook = self._items.get(benchmark, {})
        return int(np.isin(columns.items, [codebook[name] for name in items if name in codebook]).sum())


_CODES = {"items": "i", "scores": "d", "scored": "i", "verdicts": "i", "clusters": "i", "offsets": "q"}
"""Columns of numbers, each with its type code."""


class LoadedSamples:
    """The samples of one file, added up.

    Attributes:
        outcomes: Number of verdicts by outcome.
        lexical: Whether the score is text overlap.
        failed: Number of responses that the harness's model failed to give.
        marks: Number of responses by the unknown mark that they begin with; empty for none.
        problems: The lines that were left out.
    """

    def __init__(self, kind: RecordKind, items: Codebook, clusters: Codebook) -> None:
        self.outcomes: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self.lexical = False
        self.failed = 0
        self.marks: Counter[str] = Counter()
        self.problems: list[UnusedFile] = []
        self._kind, self._items, self._clusters = kind, items, clusters
        self._read_items: set[int] = set()
        self._numbers: dict[str, array[Any]] = {name: array(code) for name, code in _CODES.items()}
        self._further = {score.name: array("d") for score in kind.further}
        self._groups: dict[str, tuple[Codebook, array[int]]] = {}
        self._repeats: list[tuple[float | None, ...]] = []
        self._records: list[Mapping[str, Any]] = []
        self._judges: list[LoggedJudge] = []
        self._prompts: set[str] = set()
        self._data: set[str] = set()
        self._prompt_sum: int | None = 0
        self._responses = self._characters = 0
        self._tokens: tuple[int | None, int | None] = (0, 0)
        self._judge_usage = self._kept_usage = Usage()

    def take(self, sample: LoggedSample) -> str:
        """Takes a sample in, or returns why it can't be used."""
        kind = self._kind
        try:
            logged = sample.logged
        except DataError:
            return "damaged"
        if not logged:
            fields = sample.content.get(RECORD)
            others = {**sample.content, **(fields.get("inputs") or {} if isinstance(fields, dict) else {})}
            other_metrics = kind.metrics.keys() - {kind.metric}
            return "withheld" if any(others.get(name) is not None for name in other_metrics) else "foreign"
        try:
            record = sample.record
            further = {
                score.name: _on_scale(score.read(logged) if score.read else record.values.get(score.name), score.scale)
                for score in kind.further
            }
            tokens = _tokens(sample, record)
        except (DataError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return "unknown_record"
        if (record.benchmark, record.metric, record.scale) != (kind.benchmark, kind.metric, kind.scale):
            return "unknown_record"
        score = _on_scale(record.score, kind.scale)
        if not kind.scale.allows(score):
            return "off_scale"
        item = self._items.setdefault(record.item, len(self._items))
        if item in self._read_items:
            return "duplicate"
        self._read_items.add(item)
        self._append_groups(record.groups)
        verdicts = sum(record.outcomes.values())
        # Without a judge, a reply that can't be read is a wrong answer, and no verdict is missing.
        scored = record.outcomes.get("scored", 0) + (0 if record.judge else record.outcomes.get("unparsable", 0))
        cluster = self._clusters.setdefault(record.cluster, len(self._clusters))
        values = (item, score, scored, verdicts, cluster, sample.offset)  # as in _CODES
        for column, value in zip(self._numbers.values(), values, strict=True):
            column.append(value)
        for name, number in further.items():
            self._further[name].append(number)
        self._repeats.append(record.run_scores)
        if isinstance(kind.metrics.get(kind.metric), ComputedScore):
            self._records.append(logged)
        self.lexical |= record.judge is not None and record.judge.backend == "lexical"
        self._note(sample, record, tokens)
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

    def _note(self, sample: LoggedSample, record: Record, tokens: tuple[int | None, int | None]) -> None:
        for outcome, count in record.outcomes.items():
            self.outcomes[outcome] += count
        if record.judge is not None and record.judge not in self._judges:
            self._judges.append(record.judge)
        if record.prompt_sha256:
            self._prompts.add(f"{record.prompt} {record.prompt_sha256[:12]}")
        self._data.update(record.data.values())
        for run in record.runs:
            self._responses += 1
            self._characters += len(run.response)
            if run.label is not None:
                self._labels[run.label] += 1
            self.failed += bool(failure_in(run.response))
            self.marks[opening_mark(run.response)] += 1
            if run.tokens != (0, 0) or run.discounts:
                usage = run.usage
                self._judge_usage += usage
                if run.kept:
                    self._kept_usage += usage
        before, now = self._tokens, tokens
        self._tokens = (_sum(before[0], now[0]), _sum(before[1], now[1]))
        # lm-eval logs the prompt's hash, lmms-eval the prompt. The sum is the same in any order of the samples.
        prompt = sample.content.get("prompt_hash") or sample.content.get("input")
        if not isinstance(prompt, str):
            self._prompt_sum = None
        elif self._prompt_sum is not None:
            text = f"{record.item}\0{prompt}".encode("utf-8", "surrogatepass")
            self._prompt_sum += int.from_bytes(blake2b(text, digest_size=8).digest(), "big")

    @cached_property
    def columns(self) -> Columns:
        """The columns, once all samples are in."""
        numbers: dict[str, Any] = {name: np.array(column) for name, column in self._numbers.items()}
        groups = {name: Texts(np.array(column), tuple(codes)) for name, (codes, column) in self._groups.items()}
        further = {name: np.array(values) for name, values in self._further.items()}
        records = np.fromiter(self._records, dtype=np.object_) if self._records else None
        label, count = max(self._labels.items(), key=lambda item: item[1], default=("", 0))
        return Columns(
            **numbers,
            groups=groups,
            further=further,
            repeats=self._repeated(),
            records=records,
            main_choice=(label, count, self._labels.total()),
        )

    def _repeated(self) -> Floats | None:
        lengths = {len(scores) for scores in self._repeats}
        if len(lengths) != 1 or lengths <= {0, 1}:
            return None
        scale = self._kind.scale
        repeats = np.array([[_on_scale(score, scale) for score in scores] for scores in self._repeats])
        return repeats if all(map(scale.allows, repeats.flat)) else None

    def settings(self, file_settings: RunSettings) -> RunSettings:
        """Returns the settings of the result file with the judges, prompts and data of the samples."""
        items = len(self._numbers["items"])
        prompts: dict[tuple[str, str, bool, str], set[tuple[str, str, str]]] = {}  # of the rubrics of each judge
        for judge in self._judges:
            identity = (judge.backend, judge.model, judge.delimiters, json.dumps(judge.sampling, sort_keys=True))
            prompts.setdefault(identity, set()).add((judge.rubric, judge.prompt, judge.prompt_sha256))
        return replace(
            file_settings,
            judges=tuple(RunJudge(*key, tuple(sorted(triples))) for key, triples in sorted(prompts.items(), key=repr)),
            prompt=", ".join(part for part in (*sorted(self._prompts), file_settings.prompt) if part),
            data=tuple(sorted(self._data)),
            asked=PromptHash(items, f"{self._prompt_sum % 2**64:016x}", "report") if self._prompt_sum else None,
        )

    @property
    def spent(self) -> RunUsage:
        """Tokens, and lengths of responses."""
        tokens_in, tokens_out = self._tokens if self._read_items else (None, None)
        judge, judge_kept = (self._judge_usage, self._kept_usage) if self._judge_usage != Usage() else (None, None)
        return RunUsage(self._responses, self._characters, tokens_in, tokens_out, judge, judge_kept)


def _tokens(sample: LoggedSample, record: Record) -> tuple[int | None, int | None]:
    """Returns the tokens that the model read and wrote for a sample; None where a request of it doesn't say."""
    counts = sample.content.get("token_counts")
    if not counts or not any(counts):  # lmms-eval logs none for a response that is a list
        counts = [record.facts]
    columns: list[list[Any]] = [
        [(entry or {}).get(name) for entry in counts] for name in ("input_tokens", "output_tokens")
    ]
    totals = [None if None in column else sum(column) for column in columns]
    return totals[0], totals[1]


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def _on_scale(score: Any, scale: Scale) -> float:
    """Returns a score as the metric's scale has it; other values raise ValueError, TypeError or OverflowError."""
    return math.nan if score is None else scale.times * float(score)


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


class FileSamples:
    """The samples of runs in their files, by run, each with the columns that were read of it."""

    def __init__(self, files: Mapping[str, tuple[Path, Columns]]) -> None:
        self._files = {run: (path.absolute(), columns) for run, (path, columns) in files.items()}

    def main_choice(self, run: str) -> tuple[str, int, int]:
        """Returns :attr:`Columns.main_choice` of a run; no label without its samples."""
        return self._files[run][1].main_choice if run in self._files else ("", 0, 0)

    def rows(self, run: str, where: Sequence[tuple[str, str]] = ()) -> RunRows:
        """Returns the samples of a run that belong to these groups, without opening a file."""
        if run not in self._files:
            return RunRows(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0))
        columns = self._files[run][1]
        mask = columns.where(where)
        return RunRows(np.flatnonzero(mask), columns.items[mask], columns.scores[mask])

    def read(self, run: str, places: Iterable[int] | None = None) -> Iterator[Sample]:
        """Yields samples of a run by their places in its file, all of them in the file's order for None.

        A line that has changed since the report was made is left out. A file that has gone raises OSError.
        """
        if run not in self._files:
            return
        path, columns = self._files[run]
        with open_plain(path) as file:
            for place in range(columns.items.size) if places is None else places:
                offset = int(columns.offsets[place])
                file.seek(offset)
                try:
                    yield _sample(run, LoggedSample(path, place + 1, offset, file.readline()), columns, place)
                except DataError:
                    continue


def _sample(run: str, logged: LoggedSample, columns: Columns, place: int) -> Sample:
    record = logged.record
    first = record.runs[0]
    groups = {field: texts.names[texts.codes[place]] for field, texts in columns.groups.items()}
    score = float(columns.scores[place])
    return Sample(
        run=run,
        place=place,
        item=record.item,
        question=record.question,
        references=record.references,
        response=first.response,
        outcome=first.outcome,
        score=None if np.isnan(score) else score,
        rationale=first.rationale or first.error or first.completion or first.label,
        groups={field: group for field, group in groups.items() if group},
        image=record.image or None,
        prompt=logged.prompt,
        doubt="; ".join(_doubts(record)),
    )


def _doubts(record: Record) -> Iterator[str]:
    """Yields reasons to look at a judge's verdict twice; nothing where no judge graded."""
    if record.judge is None:
        return
    if missing := sorted({run.outcome for run in record.runs} - {"scored", "unjudged"}):
        yield f"no verdict: {', '.join(missing)}"
    if any(run.asked_again for run in record.runs):
        yield "the judge was reminded of the format"
    ratings = [run.rating for run in record.runs if run.rating is not None]
    if len(set(ratings)) > 1:
        yield f"ratings from {min(ratings):g} to {max(ratings):g} over {len(record.runs)} responses"
