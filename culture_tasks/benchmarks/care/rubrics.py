"""The rubrics of CARE (Appendix C.1), one for each kind of question, which ask for ``Rating: [[1 to 10]]``."""

from __future__ import annotations

from culture_tasks.judges.rubric.rubrics import Rubric

RUBRICS = tuple(
    Rubric(
        name=f"care_{categories}",
        package=__package__,
        user=f"care_{categories}.v1",
        reminder="care_reminder.v1",
        lowest=1,
        highest=10,
        pattern=r"[^\n]+\nRating: \[\[RATING\]\]",
        model="gpt-4o",
        sampling={"temperature": 0.0, "max_tokens": 1024},
        source=f"CARE (Guo et al., 2025), Figure {figure}",
    )
    for categories, figure in (("entities_opinion", 11), ("norms_commonsense", 12), ("literacy", 13))
)

RUBRIC_FOR = {category: rubric for rubric in RUBRICS for category in rubric.name.split("_")[1:]}
"""The rubric of each category, which its name has."""

LITERACY = RUBRIC_FOR["literacy"]
