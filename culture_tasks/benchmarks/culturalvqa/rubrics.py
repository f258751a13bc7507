"""The rubrics of CulturalVQA: LAVE as its authors grade, and on LAVE's own scale; both ask for ``rating=X``."""

from __future__ import annotations

from dataclasses import replace

from culture_tasks.judges.rubric.rubrics import Rubric

LAVE = Rubric(
    name="lave",
    package=__package__,
    system="lave_system.v1",
    user="lave_user.v1",
    reminder="lave_reminder.v1",
    lowest=1,
    highest=2,
    pattern=r"[^\n]+\nrating=RATING",
    model="gpt-4o",
    sampling={"temperature": 0.0, "max_tokens": 512},
    source="CulturalVQA (Nayak et al., 2024), Appendix F",
)

LAVE3 = replace(
    LAVE,
    name="lave3",
    system="lave3_system.v1",
    reminder="lave3_reminder.v1",
    highest=3,
    source="LAVE (Mañas et al., 2024), its scale of 1-3; score (rating - 1) / 2",
)

RUBRICS: tuple[Rubric, ...] = (LAVE, LAVE3)
