"""How the answers to a question of CARE are scored: by the rubric of its category (Appendix C.1)."""

from __future__ import annotations

from collections.abc import Sequence

from culture_tasks.benchmarks.care.categories import CATEGORIES, category_of, rubric_for
from culture_tasks.benchmarks.care.documents import SCOPES, CareDoc
from culture_tasks.benchmarks.interface import Answered, JudgedScore, Scale

RATING = JudgedScore(
    name="care_rating", scale=Scale("rating", 1.0, 10.0), groups={"category": CATEGORIES, "scope": SCOPES}
)
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that are fractions of the number of questions, and of no other."""


def metrics() -> list[JudgedScore]:
    """Returns the metrics of a task."""
    return [RATING]


def score(doc: CareDoc, responses: Sequence[str]) -> Answered:
    """Has the answers to a question graded."""
    return Answered(
        item=doc["id"],
        responses=responses,
        question=doc["question"],
        references=(doc["answer"],),
        groups={name: doc[name] for name in ("language", "category", "scope", "culture", "prompt_language")},
        data={"data": doc["data"]},
        rubric=rubric_for(category_of(doc["category"])),
    )
