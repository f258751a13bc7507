"""What the report reads of each benchmark's logged records, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from culture_tasks.harness.care import METRIC as CARE_METRIC
from culture_tasks.harness.crosscult import JUDGED, OVERLAP
from culture_tasks.harness.metric_lists import LEXICAL
from culture_tasks.report.model import Scale

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
        cluster: Gives what a record shares with others: an image, a scene or a scenario.
        item: Gives the item, the same for every model and harness.
        data: Fields that hold fingerprints of the data.
        extra: A second score in the record, or None.
        unit: What 1 of the harnesses' scores is on the scale: 100 where they have fractions and the paper percent.
    """

    benchmark: str
    metric: str
    keys: tuple[str, ...]
    scale: Scale
    groups: tuple[str, ...]
    cluster: Callable[[Record], str]
    item: Callable[[Record], str]
    data: tuple[str, ...] = ("data",)
    extra: str | None = None
    unit: float = 1.0


def _own(record: Record) -> str:
    return str(record["id"])


def _image(record: Record) -> str:
    """The image, where the question has one: questions about one image are not independent."""
    return str(record.get("image_id") or record["id"])


def _scene(record: Record) -> str:
    return f"{record['modality']} {record['id']}"


def _scenario(record: Record) -> str:
    return str(record["scenario"])


def _in_language(record: Record) -> str:
    return f"{record['language']} {record['id']}"


def _judged(*metrics: str) -> tuple[str, ...]:
    return (*metrics, *(f"{metric}{LEXICAL}" for metric in metrics))


LAYOUTS: Mapping[str, Layout] = {
    layout.benchmark: layout
    for layout in (
        Layout("culturalvqa", "lave", _judged("lave", "lave3"), SHARE, ("country", "facet"), _image, _own),
        Layout(
            "care",
            CARE_METRIC,
            _judged(CARE_METRIC),
            Scale("rating", 1.0, 10.0),
            ("language", "category", "scope", "culture"),
            _own,
            _own,
        ),
        Layout(
            "cedar",
            "acc",
            ("acc",),
            PERCENT,
            ("language", "prompt_language", "gold", "prediction", "supported"),
            _scene,
            _in_language,
            unit=100.0,
        ),
        Layout(
            "crosscult",
            JUDGED,
            _judged(JUDGED),
            Scale("score", 0.0, 10.0),
            ("role", "topic", "partition", "language", "after"),
            _scenario,
            _own,
            ("data", "draw"),
            OVERLAP,
        ),
    )
}
"""The layouts, by benchmark."""
