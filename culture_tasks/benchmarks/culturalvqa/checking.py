"""``culture-tasks data check culturalvqa``: questions, answers and images, counted beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from culture_tasks.benchmarks.culturalvqa.documents import (
    ALIASES,
    QUESTIONS,
    SOURCE,
    AnswerRow,
    CulturalVqaDoc,
    CulturalVqaRow,
    load,
    read_answers,
)
from culture_tasks.benchmarks.culturalvqa.vocabulary import COUNTRIES, FACETS
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images
from culture_tasks.data.sources import addition, folder_of
from culture_tasks.data.tables import RowTable, usable_rows
from culture_tasks.errors import DataError

ANSWERS = 7_206
"""Answers in all (section 3 and conclusion)."""


def check(data_folder: Path | None) -> DataReport:
    """Checks questions, answers and images (:func:`~culture_tasks.data.checking.check_tables`).

    Answers that are withheld in all rows are no problem: the tasks then write predictions for submission.
    """
    questions = TableCheck(
        source=SOURCE,
        model=CulturalVqaRow,
        aliases=ALIASES,
        problems=partial(_answers_and_images, data_folder),
        counts=lambda rows: [Count("questions", str(len(rows)), str(QUESTIONS))],
    )
    report = check_tables("culturalvqa", data_folder, [questions])
    if report.usable:
        try:
            report.counts = list(_counts(load("blind", data_folder).documents))
        except DataError as error:
            report.problems.append(str(error))
    return report


def _answers_and_images(data_folder: Path | None, table: RowTable, rows: Mapping[int, CulturalVqaRow]) -> Iterator[str]:
    answers = addition(SOURCE, data_folder)
    if answers is not None:
        try:
            yield from usable_rows(read_answers(answers), AnswerRow, ALIASES)[1]
        except DataError as error:
            yield str(error)
    names = [row.image for row in rows.values()]
    yield from broken_images(table.part(list(rows)), names, folder_of(SOURCE, data_folder))


def _counts(documents: Sequence[CulturalVqaDoc]) -> Iterator[Count]:
    yield Count("questions", str(len(documents)), str(QUESTIONS))
    yield Count("answers", str(sum(len(doc["references"]) for doc in documents)), str(ANSWERS))
    yield from _groups("country", COUNTRIES, Counter(doc["country"] for doc in documents))
    yield from _groups("facet", FACETS, Counter(doc["facet"] for doc in documents))


def _groups(name: str, known: Sequence[str], counts: Mapping[str, int]) -> Iterator[Count]:
    for group in known:
        yield Count(f"{name} {group}", str(counts.get(group, 0)))
    yield Count(f"{name}: none of the paper's", str(counts.get("", 0)), "0")
