"""Finding, reading and writing the files of a finished run, in the layout of either harness."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from culture_tasks.errors import DataError
from culture_tasks.result_files import GRADED_FROM, Harness, parse_result_name, result_name, samples_name

__all__ = ["GRADED_FROM", "Harness", "Run", "find_runs", "new_run", "read_samples", "write_results", "write_samples"]


@dataclass(frozen=True, slots=True)
class Run:
    """The files of one run.

    Attributes:
        harness: Which harness wrote them.
        results_file: The result file.
        stamp: What its name and the names of its sample files share.
        results: Content of the result file.
    """

    harness: Harness
    results_file: Path
    stamp: str
    results: dict[str, Any]

    @property
    def graded_from(self) -> str | None:
        """Name of the result file that this grading started from, or None for a run of the harness itself."""
        name = self.results.get("config", {}).get(GRADED_FROM)
        return name if isinstance(name, str) else None

    def samples_file(self, task: str) -> Path:
        """Returns the file of a task's samples."""
        return self.results_file.parent / samples_name(self.harness, task, self.stamp)

    def tasks(self) -> Iterator[str]:
        """Yields the tasks of the run whose samples were logged."""
        for task in self.results.get("configs", {}):
            if self.samples_file(task).is_file():
                yield task


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Finds the runs that result files or folders name.

    Of a run that was graded again, a folder stands for the newest grading alone.

    Raises:
        DataError: If a path does not exist, holds no result file, or a result file can't be read.
    """
    runs = [_read(path) for path in dict.fromkeys(file for path in paths for file in _result_files(path))]
    named = {path for path in paths if path.is_file()}
    superseded = {run.results_file.with_name(run.graded_from) for run in runs if run.graded_from}
    return [run for run in runs if run.results_file in named or run.results_file not in superseded]


def _result_files(path: Path) -> list[Path]:
    if path.is_file():
        if parse_result_name(path) is None:
            raise DataError(
                f"{path}: not the name of a result file. Needed is results_<date>.json (lm-eval) or "
                "<date>_results.json (lmms-eval), or a folder that holds such files."
            )
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder. Needed is a result file, or a folder that holds some.")
    found = sorted(file for file in path.rglob("*.json") if parse_result_name(file) is not None)
    if not found:
        raise DataError(
            f"{path}: holds no result file. Needed are results_<date>.json (lm-eval) or <date>_results.json "
            "(lmms-eval), written with --output_path."
        )
    return found


def _read(path: Path) -> Run:
    name = parse_result_name(path)
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: not readable JSON ({error}). The run may have been cut off: run it again.") from None
    if name is None or not isinstance(results, dict) or not isinstance(results.get("results"), dict):
        raise DataError(f"{path}: not a harness's result file: it has no 'results'.")
    return Run(name.harness, path, name.stamp, results)


def read_samples(path: Path) -> list[dict[str, Any]]:
    """Reads logged samples.

    Raises:
        DataError: If a line is not a JSON object.
    """
    samples: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                sample = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{path}, line {number}: not JSON ({error.msg}). The file may be cut off.") from None
            if not isinstance(sample, dict):
                raise DataError(f"{path}, line {number}: found {type(sample).__name__}. Needed is an object.")
            samples.append(sample)
    return samples


def new_run(old: Run, results: dict[str, Any], now: datetime) -> Run:
    """Returns a run beside an old one, named by the time as its harness does; nothing is written yet."""
    folder = old.results_file.parent
    while True:
        stamp = now.strftime("%Y%m%d_%H%M%S") if old.harness == "lmms_eval" else now.isoformat().replace(":", "-")
        name = result_name(old.harness, stamp)
        if not (folder / name).exists():
            return Run(old.harness, folder / name, stamp, results)
        now += timedelta(seconds=1)


def write_samples(path: Path, samples: Iterable[Mapping[str, Any]]) -> None:
    """Writes samples, one JSON object a line; the file appears whole or not at all."""
    _write(path, "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples))


def write_results(run: Run) -> None:
    """Writes a run's result file, last of its files."""
    _write(run.results_file, json.dumps(run.results, indent=2, ensure_ascii=False))


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
