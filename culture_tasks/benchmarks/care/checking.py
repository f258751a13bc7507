"""``culture-tasks data check care``: all that is wrong with the test questions at once, and the counts of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.benchmarks.care.documents import (
    ALIASES,
    LANGUAGES,
    QUESTIONS,
    SCOPES,
    SOURCES,
    CareRow,
    Language,
    repeated,
)
from culture_tasks.data.releases import contradictions
from culture_tasks.data.report import Line, Report
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import Table, unique, usable_rows
from culture_tasks.errors import DataError, DataUnavailableError

QUESTIONS_PER_CATEGORY = 30


def check(data_folder: Path | None) -> Report:
    """Checks the questions of all three cultures, without stopping at the first problem.

    A culture without data is a problem, since the groups can't run. Counts that differ from the paper's are none.

    Args:
        data_folder: The user's data folder, or None for the Hub's data.

    Raises:
        DataError: If there are no data of any culture.
    """
    report = Report(f"care: {data_folder / 'care' if data_folder else 'the Hub'}")
    absent: list[DataUnavailableError] = []
    for language in LANGUAGES:
        try:
            table = read_source(SOURCES[language], data_folder)
        except DataUnavailableError as error:
            absent.append(error)
        except DataError as error:
            report.problems.append(str(error))
        else:
            rows, problems = usable_rows(table, CareRow, ALIASES)
            report.problems += [*problems, *_between_rows(table, rows)]
            values = {index: vars(row) for index, row in rows.items()}
            report.problems += contradictions(SOURCES[language].release, table, values)
            report.lines += _lines(language, rows)
    if len(absent) == len(LANGUAGES):
        raise absent[0]
    report.problems += map(str, absent)
    return report


def _between_rows(table: Table, rows: dict[int, CareRow]) -> Iterator[str]:
    """Says which ids come twice, and which questions do. On the Hub the latter are none of the user's business."""
    part = table.part(list(rows))
    try:
        list(unique(part, (row.id for row in rows.values()), "id"))
    except DataError as error:
        yield str(error)
    if table.local:
        yield from (problem for _, problem in repeated(part, rows.values()))


def _lines(language: Language, rows: dict[int, CareRow]) -> Iterator[Line]:
    yield Line(f"{language}: questions", str(len(rows)), str(QUESTIONS))
    categories = Counter(row.culture_type for row in rows.values())
    for category in CATEGORIES:
        yield Line(f"{language}: {category}", str(categories[category]), str(QUESTIONS_PER_CATEGORY))
    scopes = Counter(row.geographic_scope for row in rows.values())
    for scope in SCOPES:
        yield Line(f"{language}: {scope}", str(scopes[scope]))
    translated = sum(row.question_en is not None and row.answer_en is not None for row in rows.values())
    yield Line(f"{language}: with English translations, for care_en", str(translated))
