"""One pass over a sample file: what the numbers need, as columns; texts stay in the file until they are asked for.

A million samples take some forty bytes each. Nothing else of a line is kept.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from culture_tasks.benchmarks.culturalvqa.scoring import SUBMISSION
from culture_tasks.harness.scoring import LEXICAL, RECORD_VERSION
from culture_tasks.report.benchmarks import NOTHING_READ, Layout, Record
from culture_tasks.report.columns import Coded, Columns, Vocabulary
from culture_tasks.report.model import Judge, Kind, Problem
from culture_tasks.results.run_files import parse_json, sample_lines


@dataclass(frozen=True, slots=True)
class Loaded:
    """A sample file that was read.

    Attributes:
        columns: Its columns.
        judges: Who graded.
        endpoints: Where they were asked, sorted.
        prompts: Prompt templates and their hashes, where the record names them.
        data: Fingerprints of the data.
        outcomes: How many verdicts ended how.
        lexical: Whether the score is text overlap.
        problems: What was left out.
    """

    columns: Columns
    judges: tuple[Judge, ...]
    endpoints: tuple[str, ...]
    prompts: tuple[str, ...]
    data: tuple[str, ...]
    outcomes: Mapping[str, int]
    lexical: bool
    problems: tuple[Problem, ...]


def record_of(sample: Any, keys: Sequence[str]) -> tuple[str, Record] | None:
    """Returns the name and the content of a sample's record, or None."""
    for key in keys:
        record = sample.get(key)
        if isinstance(record, dict) and "record" in record:
            return key, record
    return None


class SampleReader:
    """Reads sample files of one report, with one numbering of items and clusters for all."""

    def __init__(self) -> None:
        self._items: dict[str, Vocabulary] = {}
        self._clusters: dict[str, Vocabulary] = {}

    def read(self, path: Path, layout: Layout) -> Loaded:
        """Reads the samples of a task; lines that can't be used are counted and left out.

        An item has the same number in all tasks of its benchmark.

        Raises:
            OSError: If the file can't be read.
        """
        items = self._items.setdefault(layout.benchmark, Vocabulary())
        clusters = self._clusters.setdefault(layout.benchmark, Vocabulary())
        return _Pass(layout, items, clusters).over(path)


class _Pass:
    """The one pass over the lines of a file."""

    def __init__(self, layout: Layout, items: Vocabulary, clusters: Vocabulary) -> None:
        self._layout = layout
        self._items, self._clusters = items, clusters
        self._seen: set[int] = set()
        self._numbers: dict[str, array[Any]] = {name: array(code) for name, code in _TYPES.items()}
        self._groups = {name: (Vocabulary(), array("i")) for name in layout.groups}
        self._judges: dict[str, Mapping[str, Any]] = {}
        self._endpoints: set[str] = set()
        self._prompts: dict[str, None] = {}
        self._data: dict[str, None] = {}
        self._outcomes: dict[str, int] = {}
        self._left_out: dict[str, list[int]] = {}
        self._lexical = False

    def over(self, path: Path) -> Loaded:
        for number, offset, line in sample_lines(path):
            reason = self._take(line, offset)
            if reason is not None:
                self._left_out.setdefault(reason, []).append(number)
        return self._loaded(path)

    def _take(self, line: bytes, offset: int) -> str | None:
        """Takes a line in, or says why it can't be used."""
        try:
            sample = parse_json(line)
            found = record_of(sample, self._layout.keys)
            if found is None:
                return "withheld" if SUBMISSION in sample else "foreign"
            key, record = found
            if record["record"] != RECORD_VERSION or record.get("benchmark") != self._layout.benchmark:
                return "unknown_record"
            groups = [_name(record["groups"].get(field, "")) for field in self._groups]
            item, cluster = str(record["item"]), str(record["cluster"])
            score, extra, outcomes = self._measured(record)
        except ValueError:
            return "damaged"
        except (KeyError, TypeError, AttributeError):
            return "unknown_record"
        if not self._layout.scale.allows(score):
            return "off_scale"
        item_code = self._items.code(item)
        if item_code in self._seen:
            return "duplicate"
        self._seen.add(item_code)
        self._append(item_code, self._clusters.code(cluster), offset, score, extra, outcomes)
        for (names, codes), value in zip(self._groups.values(), groups, strict=True):
            codes.append(names.code(value))
        self._note(key, record)
        return None

    def _measured(self, record: Record) -> tuple[float, float, Mapping[str, int]]:
        score = record.get("score")
        extra = record.get("values", {}).get(self._layout.extra) if self._layout.extra else None
        outcomes = record["outcomes"]
        return self._layout.unit * _float(score), _float(extra), outcomes

    def _append(
        self, item: int, cluster: int, offset: int, score: float, extra: float, outcomes: Mapping[str, int]
    ) -> None:
        numbers = self._numbers
        numbers["items"].append(item)
        numbers["clusters"].append(cluster)
        numbers["offsets"].append(offset)
        numbers["scores"].append(score)
        numbers["extra"].append(extra)
        verdicts = sum(outcomes.values())
        numbers["verdicts"].append(verdicts)
        numbers["scored"].append(outcomes.get("scored", 0) if self._layout.benchmark != "cedar" else verdicts)
        for outcome, count in outcomes.items():
            self._outcomes[outcome] = self._outcomes.get(outcome, 0) + count

    def _note(self, key: str, record: Record) -> None:
        self._lexical |= key.endswith(LEXICAL)
        judge = record.get("judge")
        if judge is not None:
            self._judges.setdefault(repr(judge), judge)
            self._endpoints.update(str(run["endpoint"]) for run in record.get("runs", ()) if run.get("endpoint"))
        if "prompt_sha256" in record:
            self._prompts[f"{record.get('prompt')} {str(record['prompt_sha256'])[:12]}"] = None
        for fingerprint in record["data"].values():
            self._data[str(fingerprint)] = None

    def _loaded(self, path: Path) -> Loaded:
        groups = {
            name: Coded(np.array(codes, dtype=np.int32), tuple(names.names))
            for name, (names, codes) in self._groups.items()
        }
        numbers = {name: np.array(values, dtype=_DTYPES[name]) for name, values in self._numbers.items()}
        return Loaded(
            Columns(**numbers, groups=groups),
            judges_of(self._judges.values()),
            tuple(sorted(self._endpoints)),
            tuple(sorted(self._prompts)),
            tuple(sorted(self._data)),
            dict(self._outcomes),
            self._lexical,
            tuple(_problem(path, reason, lines) for reason, lines in self._left_out.items()),
        )


_TYPES = {
    "items": "i",
    "clusters": "i",
    "offsets": "q",
    "scores": "d",
    "extra": "d",
    "scored": "h",
    "verdicts": "h",
}
_DTYPES = {
    "items": np.int32,
    "clusters": np.int32,
    "offsets": np.int64,
    "scores": np.float64,
    "extra": np.float64,
    "scored": np.int16,
    "verdicts": np.int16,
}
_REASONS: Mapping[str, tuple[Kind, str]] = {
    "damaged": ("damaged", "not JSON; the run may have been cut off"),
    "foreign": ("foreign", "without a record of this benchmark"),
    "withheld": ("foreign", "of data whose answers are withheld: there is nothing to score"),
    "unknown_record": (
        "unknown_record",
        f"with a record of another version than {RECORD_VERSION}, or of another benchmark, or without a field",
    ),
    "off_scale": ("damaged", "with a score that its scale doesn't have"),
    "duplicate": ("duplicate", "with an item that an earlier line has; the first counts"),
}


def _problem(path: Path, reason: str, lines: Sequence[int]) -> Problem:
    kind, meaning = _REASONS[reason]
    shown = ", ".join(map(str, lines[:3])) + (", …" if len(lines) > 3 else "")
    return Problem(str(path), kind, f"{len(lines)} lines left out ({shown}): {meaning}", len(lines))


def _name(value: Any) -> str:
    return NOTHING_READ if value is None else value if isinstance(value, str) else str(value)


def _float(value: Any) -> float:
    return float("nan") if value is None else float(value)


def judges_of(identities: Any) -> tuple[Judge, ...]:
    """Returns the judges of records, each with the prompts of all its rubrics."""
    prompts: dict[tuple[str, str, bool, str], set[tuple[str, str, str]]] = {}
    for each in identities:
        sampling = json.dumps(each.get("sampling") or {}, sort_keys=True)
        who = (str(each.get("backend")), str(each.get("model")), bool(each.get("delimiters")), sampling)
        prompt = (str(each.get("rubric")), str(each.get("prompt")), str(each.get("prompt_sha256")))
        prompts.setdefault(who, set()).add(prompt)
    return tuple(Judge(*who, tuple(sorted(found))) for who, found in sorted(prompts.items(), key=repr))
