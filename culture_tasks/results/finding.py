"""How the harnesses name the files of a run, and finding the files that paths, folders and patterns name.

lm-eval writes ``results_<date>.json`` and ``samples_<task>_<date>.jsonl``, lmms-eval ``<date>_results.json`` and
``<date>_samples_<task>.jsonl``. The files of one run share a folder and the date, its stamp.
"""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from culture_tasks.benchmarks.interface import Harness as Harness
from culture_tasks.plain_files import read_plain
from culture_tasks.settings import with_home

_LM_EVAL_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[\d.]*)"  # 2026-01-31T12-30-59.123456
_LMMS_EVAL_STAMP = r"(?P<stamp>\d{8}_\d{6})"  # 20260131_123059
_NAMES: Sequence[tuple[Harness, re.Pattern[str]]] = (
    ("lm_eval", re.compile(rf"results_{_LM_EVAL_STAMP}\.json")),
    ("lm_eval", re.compile(rf"samples_(?P<task>.+)_{_LM_EVAL_STAMP}\.jsonl")),
    ("lmms_eval", re.compile(rf"{_LMMS_EVAL_STAMP}_results\.json")),
    ("lmms_eval", re.compile(rf"{_LMMS_EVAL_STAMP}_samples_(?P<task>.+)\.jsonl")),
)

Kind = Literal[
    "missing", "empty", "damaged", "partial", "foreign", "duplicate", "superseded", "unknown_record", "unknown_layout"
]
"""The fault of a file or of a part of one."""

LOSSES: frozenset[Kind] = frozenset(("missing", "empty", "damaged", "partial", "unknown_record", "unknown_layout"))
"""Kinds of faults that lose results, unlike older runs and copies."""


@dataclass(frozen=True, slots=True)
class UnusedFile:
    """A file that was not used, or some ``lines`` of one; the detail is one line."""

    path: str
    kind: Kind
    detail: str
    lines: int = 0


class FileName(NamedTuple):
    """The parts of a file's name: the harness, the stamp of its run, and the task of a sample file."""

    harness: Harness
    stamp: str
    task: str = ""


def parse_name(path: Path) -> FileName | None:
    """Returns the parts of the name of a result or sample file, or None for the name of any other file."""
    for harness, pattern in _NAMES:
        if match := pattern.fullmatch(path.name):
            return FileName(harness, **match.groupdict())
    return None


def result_name(harness: Harness, stamp: str) -> str:
    """Returns the name of a run's result file."""
    return f"results_{stamp}.json" if harness == "lm_eval" else f"{stamp}_results.json"


def samples_name(harness: Harness, task: str, stamp: str) -> str:
    """Returns the name of the file of a task's samples."""
    return f"samples_{task}_{stamp}.jsonl" if harness == "lm_eval" else f"{stamp}_samples_{task}.jsonl"


class ResultFiles(NamedTuple):
    """Result files; the tasks to read, by result file, where a sample file was named; and the files of no use."""

    results: tuple[Path, ...]
    only: Mapping[Path, frozenset[str]]
    problems: tuple[UnusedFile, ...]


def find(names: Iterable[str | Path]) -> ResultFiles:
    """Finds the result files of files, folders (searched at any depth) and glob patterns (``**`` crosses folders)."""
    run_files: dict[Path, None] = {}
    parts: dict[Path, frozenset[str]] = {}
    problems: list[UnusedFile] = []
    foreign: dict[Path, None] = {}
    for path, from_folder in _expanded(names, problems):
        name = parse_name(path)
        if name is None:
            foreign[path] = None
        elif not name.task:
            run_files[path] = None
        elif not (results := path.with_name(result_name(name.harness, name.stamp))).is_file():
            reason = f"its result file {results.name} isn't there: the run was cut off, or only half copied"
            problems.append(UnusedFile(str(path), "partial", reason))
        elif not from_folder:
            parts[results] = parts.get(results, frozenset()) | {name.task}
    if foreign:  # one problem for all of them: the folder of a model has many
        file_names = list(dict.fromkeys(path.name for path in foreign))
        where = f"{len(foreign)} files ({', '.join(file_names[:3])}{', …' if len(file_names) > 3 else ''})"
        where = where if len(foreign) > 1 else str(next(iter(foreign)))
        reason = "not the name of a result or sample file of lm-eval or lmms-eval"
        problems.append(UnusedFile(where, "foreign", reason))
    only = {path: tasks for path, tasks in parts.items() if path not in run_files}
    return ResultFiles((*run_files, *only), only, tuple(dict.fromkeys(problems)))


def _expanded(names: Iterable[str | Path], problems: list[UnusedFile]) -> Iterator[tuple[Path, bool]]:
    """Yields files, each with whether it was found in a folder rather than named."""
    for name in names:
        pattern = with_home(name)
        matches = [str(pattern)] if pattern.exists() else sorted(glob.glob(str(pattern), recursive=True))  # noqa: PTH207
        if not matches:
            problems.append(UnusedFile(str(name), "missing", "no such file, folder or match of a pattern"))
        for path in map(Path, matches):
            if not path.is_dir():
                yield path, False
                continue
            inside = [file for file in sorted(path.rglob("*.json*")) if file.suffix in (".json", ".jsonl")]
            if not inside:
                problems.append(UnusedFile(str(path), "empty", "the folder holds no JSON file"))
            yield from ((file, True) for file in inside if not file.is_dir())


def without_copies(paths: Sequence[Path]) -> tuple[list[Path], list[UnusedFile]]:
    """Drops result files that are the same file as an earlier one, or a copy of it, and names the copies."""
    originals: dict[str, Path] = {}
    problems: list[UnusedFile] = []
    for path in paths:
        try:
            content = read_plain(path).strip()
        except OSError:
            content = b""
        # Files that are empty or can't be read aren't compared.
        key = f"{path.name} {hashlib.sha256(content).hexdigest()}" if content else str(path.resolve())
        first = originals.setdefault(key, path)
        if first.resolve() != path.resolve():
            problems.append(UnusedFile(str(path), "duplicate", f"a copy of {first}"))
    return list(originals.values()), problems
