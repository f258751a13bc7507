"""The checks of ``culture-tasks data check``, by benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from culture_tasks.benchmarks.care import checking as care
from culture_tasks.benchmarks.cedar import checking as cedar
from culture_tasks.benchmarks.crosscult import checking as crosscult
from culture_tasks.benchmarks.culturalvqa import checking as culturalvqa
from culture_tasks.data.report import Report

CHECKS: Mapping[str, Callable[[Path | None], Report]] = {
    "care": care.check,
    "cedar": cedar.check,
    "crosscult": crosscult.check,
    "culturalvqa": culturalvqa.check,
}
"""Maps a benchmark to the function that checks its data in a folder (None: the Hub's)."""
