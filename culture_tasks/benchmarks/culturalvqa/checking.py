"""``culture-tasks data check culturalvqa``: all that is wrong with the data at once, and the counts of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from culture_tasks.data.images import broken_images
from culture_tasks.data.releases import contradictions
from culture_tasks.data.report import Line, Report
from culture_tasks.data.sources import addition, local_file, read_source
from culture_tasks.data.tables import usable_rows
from culture_tasks.errors import DataError

ANSWERS = 7_206
"""Answers in all (section 3 and conclusion)."""


def check(data_folder: Path | None) -> Report:
    """Checks questions, answers and images, without stopping at the first problem.

    Answers that are withheld in all rows are no problem: the tasks then write predictions for submission.

    Args:
        data_folder: The user's data folder, or None for the Hub's data.

    Raises:
        DataError: If there is nothing that can be read.
    """
    table = read_source(SOURCE, data_folder)
    report = Report(f"culturalvqa: {table.origin}")
    rows, report.problems = usable_rows(table, CulturalVqaRow, ALIASES)
    report.problems += _answer_problems(data_folder)
    report.problems += contradictions(SOURCE.release, table, {index: vars(row) for index, row in rows.items()})
    path = local_file(SOURCE, data_folder)
    part = table.part(list(rows))
    broken = list(broken_images(part, [row.image for row in rows.values()], path.parent if path else Path()))
    if report.usable:
        report.problems += _other_problems(data_folder, report)
    if not report.lines:
        report.lines = [Line("questions", str(len(rows)), str(QUESTIONS))]
    report.lines.append(Line("images missing or broken", str(len(broken)), "0"))
    report.problems += [problem for problem in broken if problem not in report.problems]
    return report


def _answer_problems(data_folder: Path | None) -> list[str]:
    """Says what is wrong with the rows of the answers file, where there is one."""
    path = addition(SOURCE, data_folder)
    if path is None:
        return []
    try:
        _, problems = usable_rows(read_answers(path), AnswerRow, ALIASES)
    except DataError as error:
        return [str(error)]
    return problems


def _other_problems(data_folder: Path | None, report: Report) -> Iterator[str]:
    """Loads the questions as a task of text does, which counts them, or says what it refuses first."""
    try:
        report.lines = list(_lines(load("blind", data_folder).documents))
    except DataError as error:
        yield str(error)


def _lines(documents: Sequence[CulturalVqaDoc]) -> Iterator[Line]:
    yield Line("questions", str(len(documents)), str(QUESTIONS))
    yield Line("answers", str(sum(len(doc["references"]) for doc in documents)), str(ANSWERS))
    yield from _groups("country", COUNTRIES, Counter(doc["country"] for doc in documents))
    yield from _groups("facet", FACETS, Counter(doc["facet"] for doc in documents))


def _groups(name: str, known: Sequence[str], counts: Mapping[str, int]) -> Iterator[Line]:
    for group in known:
        yield Line(f"{name} {group}", str(counts.get(group, 0)))
    yield Line(f"{name}: none of the paper's", str(counts.get("", 0)), "0")
