"""What the report reads of each benchmark's logged records, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.harness.scoring import LEXICAL

CARE_METRIC, JUDGED, OVERLAP = "care_rating", "judge_score", "rouge_l"

Record = Mapping[str, Any]

PERCENT = Scale("percent", 0.0, 100.0)
SHARE = Scale("share", 0.0, 1.0, digits=3)
RATIO = Scale("ratio", 0.0, None, better=None, neutral=1.0)
BIAS = Scale("percent", -100.0, 100.0, better=None, neutral=0.0)
VARIANCE = Scale("squared percent", 0.0, None, better="lower", digits=1)
NOTHING_READ = "(none)"
"""Stands for the prediction of a CEDAR reply from which no emotion could be read."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read one benchmark's records.

    Attributes:
        benchmark: Its name.
        metric: The metric that the score is, unless the task's catalog entry names another.
        keys: Names under which a sample has the record, the judge's before the text overlap's.
        scale: The scale of the score.
        groups: Fields that samples are grouped by.
        extra: A second score in the record, or None.
        unit: What 1 of the harnesses' scores is on the scale: 100 where they have fractions and the paper percent.
    """

    benchmark: str
    metric: str
    keys: tuple[str, ...]
    scale: Scale
    groups: tuple[str, ...]
    extra: str | None = None
    unit: float = 1.0


def _judged(*metrics: str) -> tuple[str, ...]:
    return (*metrics, *(f"{metric}{LEXICAL}" for metric in metrics))


LAYOUTS: Mapping[str, Layout] = {
    layout.benchmark: layout
    for layout in (
        Layout("culturalvqa", "lave", _judged("lave", "lave3"), SHARE, ("country", "facet")),
        Layout(
            "care",
            CARE_METRIC,
            _judged(CARE_METRIC),
            Scale("rating", 1.0, 10.0),
            ("language", "category", "scope", "culture"),
        ),
        Layout(
            "cedar",
            "acc",
            ("acc",),
            PERCENT,
            ("language", "prompt_language", "gold", "prediction", "supported"),
            unit=100.0,
        ),
        Layout(
            "crosscult",
            JUDGED,
            _judged(JUDGED),
            Scale("score", 0.0, 10.0),
            ("role", "topic", "partition", "language", "after"),
            OVERLAP,
        ),
    )
}
"""The layouts, by benchmark."""
