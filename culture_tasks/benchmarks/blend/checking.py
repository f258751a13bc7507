"""``culture-tasks data check blend``: all that is wrong with the questions at once, and the counts of the release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from culture_tasks.benchmarks.blend.documents import (
    ANNOTATION_ALIASES,
    CHOICE_ALIASES,
    CHOICE_SOURCE,
    QUESTION_ALIASES,
    QUESTIONS,
    AnnotationRow,
    ChoiceRow,
    QuestionRow,
    annotation_table,
    choice_tables,
    of_region,
    question_source,
)
from culture_tasks.benchmarks.blend.prompts import WORDINGS, local_prompt
from culture_tasks.benchmarks.blend.regions import LANGUAGES, REGIONS, Region
from culture_tasks.data.releases import contradictions
from culture_tasks.data.report import Line, Report
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import Table, unique, usable_rows
from culture_tasks.errors import DataError, DataUnavailableError


def check(data_folder: Path | None) -> Report:
    """Checks the short-answer questions of all regions, their prompts and the multiple-choice questions.

    A region without data is a problem, since the groups can't run. How many questions are valid is compared with the
    authors' release of December 2024, by the paper's rule.

    Args:
        data_folder: The user's data folder, or None for the Hub's data.

    Raises:
        DataError: If there are no data of any region.
    """
    report = Report(f"blend: {data_folder / 'blend' if data_folder else 'the Hub'}")
    absent: list[DataUnavailableError] = []
    for region in REGIONS:
        try:
            table = annotation_table(region, data_folder)
        except DataUnavailableError as error:
            absent.append(error)
        except DataError as error:
            report.problems.append(str(error))
        else:
            _add_region(report, region, table, data_folder)
    _add_choices(report, data_folder, absent)
    if len(absent) > len(REGIONS):
        raise absent[0]
    report.problems += map(str, absent)
    return report


def _add_region(report: Report, region: Region, table: Table, data_folder: Path | None) -> None:
    rows, problems = usable_rows(table, AnnotationRow, ANNOTATION_ALIASES)
    report.problems += [*problems, *_repeated(table, rows, "ID")]
    report.lines.append(Line(f"{region.label}: questions", str(len(rows)), str(QUESTIONS)))
    valid = [row for row in rows.values() if row.valid]
    report.lines.append(Line(f"{region.label}: valid", str(len(valid)), str(region.valid)))
    if blank := sum(not row.question.strip() for row in valid):
        report.lines.append(Line(f"{region.label}: valid, without a text in {LANGUAGES[region.language]}", str(blank)))
    try:
        questions = read_source(question_source(region), data_folder)
    except DataError as error:
        report.problems.append(str(error))
    else:
        topics, problems = usable_rows(questions, QuestionRow, QUESTION_ALIASES)
        report.problems += [*problems, *_repeated(questions, topics, "ID")]
        known = {row.id for row in topics.values()}
        report.problems += [
            f"{table.where(index)}, field 'ID': {row.id!r} is not among the questions of {questions.origin}. Needed is "
            "a row there that gives its topic."
            for index, row in rows.items()
            if row.id not in known
        ]
    if region.language != "en":
        for wording in WORDINGS:
            try:
                local_prompt(region, wording, data_folder)
            except DataError as error:
                if str(error) not in report.problems:  # without the file, both prompts say the same
                    report.problems.append(str(error))


def _repeated(table: Table, rows: Mapping[int, AnnotationRow] | Mapping[int, QuestionRow], field: str) -> Iterator[str]:
    try:
        list(unique(table.part(list(rows)), (row.id for row in rows.values()), field))
    except DataError as error:
        yield str(error)


def _add_choices(report: Report, data_folder: Path | None, absent: list[DataUnavailableError]) -> None:
    counts: Counter[str] = Counter()
    try:
        for table in choice_tables(data_folder):
            rows, problems = usable_rows(table, ChoiceRow, CHOICE_ALIASES)
            report.problems += problems
            report.problems += contradictions(CHOICE_SOURCE.release, table, dict(enumerate(table.rows)))
            counts.update(region.label for index in rows for region in REGIONS if of_region(table.rows[index], region))
    except DataUnavailableError as error:
        absent.append(error)
    except DataError as error:
        report.problems.append(str(error))
    report.lines += [
        Line(f"{region.label}: multiple choice", str(counts[region.label])) for region in REGIONS if counts
    ]
