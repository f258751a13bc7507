"""The rubric of CrossCult-KIBench: ``{"score": n, "reason": "…"}`` with an integer n from 0 to 10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from culture_tasks.judges.rubric.rubrics import Rubric

# The reply's form as a schema. The scores are listed: strict schemas of some endpoints take no minimum and maximum.
_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"score": {"type": "integer", "enum": list(range(11))}, "reason": {"type": "string"}},
            "required": ["score", "reason"],
            "additionalProperties": False,
        },
    },
}

CROSSCULT = Rubric(
    name="crosscult",
    package=__package__,
    system="crosscult_system.v1",
    user="crosscult_user.v1",
    reminder="crosscult_reminder.v1",
    lowest=0,
    highest=10,
    asks_for="score",
    rationale="reason",
    pattern=r'\{"reason": "[^"\\\n]+", "score": RATING\}',
    model="gpt-5.4-mini",
    sampling={"temperature": 0.0, "max_tokens": 256, "reasoning_effort": "none", "response_format": _FORMAT},
    source="CrossCult-KIBench (2026), Figure 10",
)

RUBRICS: tuple[Rubric, ...] = (CROSSCULT,)
