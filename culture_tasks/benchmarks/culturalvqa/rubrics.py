"""The rubric of CulturalVQA: LAVE as its authors changed it, which asks for ``rating=X``."""

from __future__ import annotations

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
