"""The checks of ``culture-tasks data check``, by benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from culture_tasks.benchmarks.cedar import checking as cedar
from culture_tasks.benchmarks.crosscult import checking as crosscult
from culture_tasks.data.report import Report

CHECKS: Mapping[str, Callable[[Path | None], Report]] = {
    "cedar": cedar.check,
    "crosscult": crosscult.check,
}
"""Maps a benchmark to the function that checks its data in a folder (None: the Hub's)."""
