"""CARE on a harness: what a task asks, and how its responses become records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from culture_tasks.benchmarks.care.categories import CATEGORIES, category_of, rubric_for
from culture_tasks.benchmarks.care.documents import SCOPES, CareDoc
from culture_tasks.harness.filters import responses_of
from culture_tasks.harness.judged import JudgedDocument, Subject
from culture_tasks.harness.metric_lists import Metric, judged_metrics, judged_results
from culture_tasks.judges.rubrics import Rubric
from culture_tasks.judges.verdicts import JudgeItem

METRIC = "care_rating"
"""Mean rating, 1 (poor) to 10 (excellent). The paper's Average is the mean over all scored questions: its Table 4 has
values such as 5.331 that are fractions of the number of questions, and of no other."""

GROUPS = (*CATEGORIES, *SCOPES)


def metrics() -> list[Metric]:
    """Returns the metric list of a CARE task."""
    return judged_metrics(METRIC, GROUPS)


def results(doc: CareDoc, responses: Sequence[Any]) -> dict[str, Any]:
    """Submits a document's responses to the judge and returns its records."""
    document = JudgedDocument(_subject(doc), responses_of(responses))
    return judged_results(METRIC, document, GROUPS, (doc["category"], doc["scope"]))


def expected(docs: Sequence[CareDoc]) -> Iterator[tuple[Rubric, JudgeItem]]:
    """Yields what will be graded, without responses."""
    for doc in docs:
        yield rubric_for(category_of(doc["category"])), JudgeItem(doc["question"], (doc["answer"],), "")


def _subject(doc: CareDoc) -> Subject:
    return Subject(
        benchmark="care",
        question=doc["question"],
        references=(doc["answer"],),
        rubric=rubric_for(category_of(doc["category"])),
        score=float,
        about={
            name: doc[name] for name in ("id", "language", "prompt_language", "category", "scope", "culture", "data")
        },
    )
