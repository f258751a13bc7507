"""Part of :mod:`culture_tasks.report.model`: numbers, their scales, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from culture_tasks.benchmarks.interface import Scale

Flag = Literal[
    "other_judge",
    "other_judge_prompt",
    "other_task_version",
    "other_prompt",
    "other_data",
    "other_decoding",
    "other_limit",
    "low_coverage",
    "lexical_judge",
    "unjudged",
    "mixed_settings",
    "incomplete",
    "from_result_file",
    "published",
]
"""What a reader must know of a cell.

The ``other_…`` flags, ``low_coverage``, ``mixed_settings``, ``incomplete`` and ``unjudged`` mean that the cell is
neither ranked nor tested against others, unless the user asked for it. ``lexical_judge`` is a score by text overlap,
``from_result_file`` a number that a harness worked out, and ``published`` a paper's own.
"""

FLAG_TEXT: Mapping[Flag, str] = {
    "other_judge": "another judge than the other rows of this column",
    "other_judge_prompt": "another version of the judge's prompt",
    "other_task_version": "another version of the task",
    "other_prompt": "another prompt variant",
    "other_data": "another revision of the data",
    "other_decoding": "other decoding settings",
    "other_limit": "another limit on the number of items",
    "low_coverage": "too few of the responses were scored",
    "lexical_judge": "scored by text overlap, not by a judge",
    "unjudged": "responses were recorded, and not judged yet",
    "mixed_settings": "its parts were run under settings that differ from each other",
    "incomplete": "parts or items of it are missing",
    "from_result_file": "from the harness's result file; there are no usable samples",
    "published": "published by the paper, with the paper's own judge",
}
"""What each flag means, in words for a legend."""

NOT_COMPARABLE: frozenset[Flag] = frozenset(
    flag for flag in FLAG_TEXT if flag.startswith("other_") or flag in {"low_coverage", "mixed_settings", "incomplete"}
) | {"unjudged"}
"""Flags that keep a cell out of ranks and tests."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number.

    Attributes:
        value: The number; None where there is none.
        low: Lower end of its interval; None without one.
        high: Upper end.
        n: Number of scored items behind it.
        coverage: Scored items over items; None where that isn't known.
        scale: The scale that it is on.
        flags: What a reader must know.
        runs: Keys of the runs behind it.
        where: Which of their samples are behind it: (group field, value) pairs that must all hold, such as
            ``(("country", "brazil"),)``.
        rank: Place in its column, from 1, shared by cells that are equal; None where it isn't ranked.
        note: More about it, in one line; may be empty.
    """

    value: float | None
    scale: Scale
    low: float | None = None
    high: float | None = None
    n: int = 0
    coverage: float | None = None
    flags: tuple[Flag, ...] = ()
    runs: tuple[str, ...] = ()
    where: tuple[tuple[str, str], ...] = ()
    rank: int | None = None
    note: str = ""

    @property
    def comparable(self) -> bool:
        """Whether the cell may be ranked and tested against others of its column."""
        return self.value is not None and not NOT_COMPARABLE.intersection(self.flags)
