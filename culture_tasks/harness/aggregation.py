"""From the records of one metric to its value and standard error.

A record is a dictionary with ``outcomes`` (how many of its verdicts ended how) and, if any was scored, ``score``; or
None, where the metric does not concern the document (a question about Brazil says nothing about India).
Every function takes the records of one metric, in any order, and is registered with both harnesses.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from culture_tasks.harness.session import current_session
from culture_tasks.judges.verdicts import Outcome

Record = Mapping[str, Any]

_log = logging.getLogger(__name__)


def _concerned(records: Iterable[Record | None]) -> list[Record]:
    return [record for record in records if record is not None]


def _scores(records: Sequence[Record]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([record["score"] for record in records if "score" in record], dtype=np.float64)


def coverage(records: Iterable[Record | None]) -> float:
    """Share of verdicts that were scored, of all that were asked for.

    Range 0-1; 1 is best. Without any verdict asked for, NaN.
    """
    concerned = _concerned(records)
    asked = sum(sum(record["outcomes"].values()) for record in concerned)
    return sum(record["outcomes"].get("scored", 0) for record in concerned) / asked if asked else math.nan


def coverage_stderr(records: Iterable[Record | None]) -> float:
    """Standard error of :func:`coverage`: the square root of p (1 - p) / n over n verdicts; NaN without any."""
    concerned = _concerned(records)
    asked = sum(sum(record["outcomes"].values()) for record in concerned)
    share = coverage(concerned)
    return math.sqrt(share * (1.0 - share) / asked) if asked else math.nan


def outcome_count(records: Iterable[Record | None], outcome: Outcome) -> int:
    """How many verdicts ended this way. Range 0 and up; for every outcome but ``scored``, 0 is best."""
    return sum(record["outcomes"].get(outcome, 0) for record in _concerned(records))


def mean_of_scored(records: Iterable[Record | None]) -> float:
    """Mean score over the documents with a scored verdict.

    A verdict that failed is left out, never counted as a zero. With a coverage under
    ``CULTURE_JUDGE_MIN_COVERAGE``, or without any scored verdict, the mean is NaN: what is missing may be what is hard.
    """
    concerned = _concerned(records)
    return math.nan if _too_little(concerned) else float(_scores(concerned).mean())


def stderr_of_scored(records: Iterable[Record | None]) -> float:
    """Standard error of :func:`mean_of_scored`: the sample standard deviation over the square root of n.

    NaN where the mean is NaN, or with a single document.
    """
    concerned = _concerned(records)
    scores = _scores(concerned)
    if _too_little(concerned) or len(scores) < 2:
        return math.nan
    return float(scores.std(ddof=1) / math.sqrt(len(scores)))


def spread_over_runs(records: Iterable[Record | None]) -> float:
    """Standard deviation (n - 1) of the mean score over repeated runs (CARE, Table 15).

    The mean of run r is taken over the documents whose r-th verdict was scored. NaN with fewer than two runs.
    """
    runs = [record["run_scores"] for record in _concerned(records) if "run_scores" in record]
    if not runs:
        return math.nan
    table = np.array(runs, dtype=np.float64)
    table = table[:, ~np.all(np.isnan(table), axis=0)]
    return float(np.nanmean(table, axis=0).std(ddof=1)) if table.shape[1] > 1 else math.nan


def _too_little(records: Sequence[Record]) -> bool:
    share = coverage(records)
    return math.isnan(share) or share == 0.0 or share < current_session().settings.judge_min_coverage
