"""How the harnesses name the files of a finished run: the one place that knows.

lm-eval writes ``results_<date>.json`` and ``samples_<task>_<date>.jsonl``, lmms-eval ``<date>_results.json`` and
``<date>_samples_<task>.jsonl``. The files of one run share a folder and the date, its stamp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Harness = Literal["lm_eval", "lmms_eval"]

GRADED_FROM = "rejudged_from"
"""Key in the configuration of a result file that was written by grading another one again."""

_LM_EVAL_STAMP = r"(?P<stamp>\d{4}-\d\d-\d\dT[\d\-.]+)"
_LMMS_EVAL_STAMP = r"(?P<stamp>\d{8}_\d{6})"
_RESULT_NAME: Mapping[Harness, re.Pattern[str]] = {
    "lm_eval": re.compile(rf"results_{_LM_EVAL_STAMP}\.json"),
    "lmms_eval": re.compile(rf"{_LMMS_EVAL_STAMP}_results\.json"),
}
_SAMPLES_NAME: Mapping[Harness, re.Pattern[str]] = {
    "lm_eval": re.compile(rf"samples_(?P<task>.+)_{_LM_EVAL_STAMP}\.jsonl"),
    "lmms_eval": re.compile(rf"{_LMMS_EVAL_STAMP}_samples_(?P<task>.+)\.jsonl"),
}


class ResultName(NamedTuple):
    """What the name of a result file says.

    Attributes:
        harness: Which harness wrote it.
        stamp: The date that the run's files share.
    """

    harness: Harness
    stamp: str


class SamplesName(NamedTuple):
    """What the name of a sample file says.

    Attributes:
        harness: Which harness wrote it.
        stamp: The date that the run's files share.
        task: The task.
    """

    harness: Harness
    stamp: str
    task: str


def parse_result_name(path: Path) -> ResultName | None:
    """Returns what the name of a result file says, or None for the name of any other file."""
    for harness, pattern in _RESULT_NAME.items():
        if found := pattern.fullmatch(path.name):
            return ResultName(harness, found["stamp"])
    return None


def parse_samples_name(path: Path) -> SamplesName | None:
    """Returns what the name of a sample file says, or None for the name of any other file."""
    for harness, pattern in _SAMPLES_NAME.items():
        if found := pattern.fullmatch(path.name):
            return SamplesName(harness, found["stamp"], found["task"])
    return None


def result_name(harness: Harness, stamp: str) -> str:
    """Returns the name of a run's result file."""
    return f"results_{stamp}.json" if harness == "lm_eval" else f"{stamp}_results.json"


def samples_name(harness: Harness, task: str, stamp: str) -> str:
    """Returns the name of the file of a task's samples."""
    return f"samples_{task}_{stamp}.jsonl" if harness == "lm_eval" else f"{stamp}_samples_{task}.jsonl"
