"""``culture-tasks data check blend``: the questions of all regions, counted beside the authors' release."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from culture_tasks.benchmarks.blend.documents import (
    ANNOTATION_ALIASES,
    CHOICE_ALIASES,
    CHOICE_SOURCE,
    QUESTION_ALIASES,
    QUESTIONS,
    WORDINGS,
    AnnotationRow,
    ChoiceRow,
    QuestionRow,
    annotation_source,
    choice_tables,
    local_prompt,
    question_source,
    region_name,
    without_topic,
)
from culture_tasks.benchmarks.blend.regions import LANGUAGES, REGIONS, Region
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import RowTable, unique, usable_rows
from culture_tasks.errors import DataError


def check(data_folder: Path | None) -> DataReport:
    """Checks the short-answer questions of all regions, their prompts and the multiple-choice questions.

    How many questions are valid is compared with the authors' release of December 2024, by the paper's rule.
    See :func:`~culture_tasks.data.checking.check_tables`.
    """
    regions = [
        TableCheck(
            source=annotation_source(region),
            model=AnnotationRow,
            aliases=ANNOTATION_ALIASES,
            id="ID",
            problems=partial(_topics_and_prompts, region, data_folder),
            counts=partial(_region_counts, region),
        )
        for region in REGIONS
    ]
    choices = TableCheck(
        source=CHOICE_SOURCE, model=ChoiceRow, aliases=CHOICE_ALIASES, tables=choice_tables, counts=_choice_counts
    )
    report = check_tables("blend", data_folder, [*regions, choices])
    report.problems = list(dict.fromkeys(report.problems))  # without its file, both prompts say the same
    return report


def _region_counts(region: Region, rows: Sequence[AnnotationRow]) -> Iterator[Count]:
    valid = [row for row in rows if row.valid]
    yield Count(f"{region.label}: questions", str(len(rows)), str(QUESTIONS))
    yield Count(f"{region.label}: valid", str(len(valid)), str(region.valid))
    if blank := sum(not row.question.strip() for row in valid):
        yield Count(f"{region.label}: valid, without a text in {LANGUAGES[region.language]}", str(blank))


def _topics_and_prompts(
    region: Region, data_folder: Path | None, table: RowTable, rows: Mapping[int, AnnotationRow]
) -> Iterator[str]:
    try:
        questions = read_source(question_source(region), data_folder)
        topics, problems = usable_rows(questions, QuestionRow, QUESTION_ALIASES)
        yield from problems
        known = set(unique(questions.part(list(topics)), (row.id for row in topics.values()), "ID"))
    except DataError as error:
        yield str(error)
    else:
        for index, row in rows.items():
            if row.id not in known:
                yield without_topic(table, index, row.id, questions.origin)
    for wording in WORDINGS if region.language != "en" else ():
        try:
            local_prompt(region, wording, data_folder)
        except DataError as error:
            yield str(error)


def _choice_counts(rows: Sequence[ChoiceRow]) -> Iterator[Count]:
    counts = Counter(region_name(row.country) for row in rows)
    for region in REGIONS:
        yield Count(f"{region.label}: multiple choice", str(counts[region.name]))
