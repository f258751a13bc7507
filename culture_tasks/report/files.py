"""Finding the result and sample files that paths, folders and patterns name."""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from culture_tasks.report.model import Problem
from culture_tasks.result_files import parse_result_name, parse_samples_name, result_name

_SUFFIXES = frozenset((".json", ".jsonl"))


class Found(NamedTuple):
    """The files to read.

    Attributes:
        results: Result files, each once, in order.
        only: Tasks that are asked for, by result file, where a sample file was named rather than its result file.
        problems: What was found and can't be used.
    """

    results: tuple[Path, ...]
    only: dict[Path, frozenset[str]]
    problems: tuple[Problem, ...]


def find(named: Sequence[str]) -> Found:
    """Finds result files.

    Args:
        named: Files, folders (searched at any depth) and glob patterns (``**`` crosses folders).
    """
    whole: dict[Path, None] = {}
    parts: dict[Path, set[str]] = {}
    problems: list[Problem] = []
    for path, from_folder in _expanded(named, problems):
        problem = _sort(path, whole, parts, from_folder=from_folder)
        if problem is not None:
            problems.append(problem)
    results, repeated = _without_copies([*whole, *(path for path in parts if path not in whole)])
    only = {path: frozenset(tasks) for path, tasks in parts.items() if path not in whole}
    return Found(tuple(results), only, (*dict.fromkeys(problems), *repeated))


def _expanded(named: Sequence[str], problems: list[Problem]) -> Iterator[tuple[Path, bool]]:
    """Yields files, each with whether it was found in a folder rather than named."""
    for name in named:
        paths = _matches(name)
        if not paths:
            problems.append(Problem(name, "missing", "no such file, folder or match of a pattern"))
        for path in paths:
            if path.is_dir():
                inside = [file for file in sorted(path.rglob("*")) if file.suffix in _SUFFIXES and file.is_file()]
                if not inside:
                    problems.append(Problem(str(path), "empty", "the folder holds no JSON file"))
                yield from ((file, True) for file in inside)
            else:
                yield path, False


def _matches(name: str) -> list[Path]:
    path = Path(name).expanduser()
    if path.exists():
        return [path]
    return [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 - takes absolute ones


def _sort(path: Path, whole: dict[Path, None], parts: dict[Path, set[str]], *, from_folder: bool) -> Problem | None:
    if parse_result_name(path) is not None:
        whole[path] = None
        return None
    samples = parse_samples_name(path)
    if samples is None:
        return Problem(str(path), "foreign", "not the name of a result or sample file of lm-eval or lmms-eval")
    results = path.with_name(result_name(samples.harness, samples.stamp))
    if not results.is_file():
        return Problem(
            str(path),
            "partial",
            f"its result file {results.name} isn't there: the run was cut off, or only half copied",
        )
    if not from_folder:
        parts.setdefault(results, set()).add(samples.task)
    return None


def _without_copies(paths: Iterable[Path]) -> tuple[list[Path], list[Problem]]:
    """Drops result files that are the same file, or a copy of another."""
    seen: dict[str, Path] = {}
    kept: list[Path] = []
    problems: list[Problem] = []
    for path in paths:
        key = _fingerprint(path)
        if key in seen:
            if seen[key].resolve() != path.resolve():
                problems.append(Problem(str(path), "duplicate", f"a copy of {seen[key]}"))
            continue
        seen[key] = path
        kept.append(path)
    return kept, problems


def _fingerprint(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError:
        return f"unreadable {path.resolve()}"
    return f"{path.name} {hashlib.sha256(content).hexdigest()}" if content.strip() else f"empty {path.resolve()}"
