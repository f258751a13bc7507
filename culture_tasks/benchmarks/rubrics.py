"""The rubrics of all benchmarks, by name."""

from __future__ import annotations

from collections.abc import Mapping

from culture_tasks.benchmarks.care import rubrics as care
from culture_tasks.benchmarks.crosscult import rubrics as crosscult
from culture_tasks.benchmarks.culturalvqa import rubrics as culturalvqa
from culture_tasks.errors import JudgeError, nearest
from culture_tasks.judges.rubrics import Rubric

RUBRICS: Mapping[str, Rubric] = {
    rubric.name: rubric for rubric in (*culturalvqa.RUBRICS, *care.RUBRICS, *crosscult.RUBRICS)
}


def rubric_named(name: str) -> Rubric:
    """Returns the rubric of that name.

    Raises:
        JudgeError: If there is none.
    """
    try:
        return RUBRICS[name]
    except KeyError:
        raise JudgeError(
            f"judges: no rubric {name!r}.{nearest(name, RUBRICS)} Known are {', '.join(RUBRICS)}."
        ) from None
