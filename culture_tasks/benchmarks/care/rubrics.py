"""The rubrics of CARE (Appendix C.1), one for each kind of question, which ask for ``Rating: [[1 to 10]]``."""

from __future__ import annotations

from collections.abc import Mapping

from culture_tasks.judges.rubric.rubrics import Rubric


def _rubric(name: str, figure: int) -> Rubric:
    return Rubric(
        name=f"care_{name}",
        package=__package__,
        user=f"care_{name}.v1",
        reminder="care_reminder.v1",
        lowest=1,
        highest=10,
        pattern=r"[^\n]+\nRating: \[\[RATING\]\]",
        model="gpt-4o",
        sampling={"temperature": 0.0, "max_tokens": 1024},
        source=f"CARE (Guo et al., 2025), Figure {figure}",
    )


ENTITIES_OPINION = _rubric("entities_opinion", figure=11)
NORMS_COMMONSENSE = _rubric("norms_commonsense", figure=12)
LITERACY = _rubric("literacy", figure=13)

RUBRICS: tuple[Rubric, ...] = (ENTITIES_OPINION, NORMS_COMMONSENSE, LITERACY)

RUBRIC_FOR: Mapping[str, Rubric] = {
    **dict.fromkeys(("entities", "opinion"), ENTITIES_OPINION),
    **dict.fromkeys(("norms", "commonsense"), NORMS_COMMONSENSE),
    "literacy": LITERACY,
}
