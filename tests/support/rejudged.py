"""Result and sample files as tests of ``culture-tasks rejudge`` look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.written_runs import content as content
from support.written_runs import samples_of, write_lm_eval, write_lmms_eval


def write(harness: str, folder: Path, *tasks: str) -> Path:
    """Runs a harness, writes its files with its tracker, and returns the result file."""
    if harness == "lm_eval":
        return write_lm_eval(folder, tasks, lambda prompt, _: prompt)
    return write_lmms_eval(folder, tasks)


def result_files(folder: Path) -> list[Path]:
    """Returns the result files of a folder, the oldest first."""
    return sorted(folder.rglob("*results*.json"), key=lambda path: path.stat().st_mtime_ns)


def verdicts_of(path: Path) -> list[dict[str, Any]]:
    """Returns the verdicts on the samples of ``care_zh``."""
    return [sample["record"]["runs"][0] for sample in samples_of(path)]
