"""``culture-tasks data check crosscult``: all that is wrong with raw cases at once, and the counts of Table 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.crosscult.documents import load_release
from culture_tasks.benchmarks.crosscult.raw_cases import (
    ALIASES,
    ANSWER_FIELDS,
    QUESTION_FIELDS,
    RAW_CASES,
    SOURCE,
    load,
    read_table,
)
from culture_tasks.benchmarks.crosscult.vocabulary import PARTITIONS, TOPIC_NAMES, TOPICS, Topic, topic_of
from culture_tasks.data.images import broken_images
from culture_tasks.data.report import Line, Report
from culture_tasks.data.sources import local_file
from culture_tasks.data.tables import Table
from culture_tasks.errors import DataError

SCENARIOS: Mapping[Topic, int] = {"social": 16, "religious": 19, "ethical": 14}
"""Scenarios of each topic (Table 1)."""

CASES_PER_SCENARIO = 200
TASK_CASES = {"single-insert train": 11_600, "single-insert test": 4_000, "sequential-insert test": 2_000}
"""Task cases of each part (Table 1)."""

_Row = Mapping[str, Any]


def check(data_folder: Path | None) -> Report:
    """Checks raw cases without stopping at the first problem.

    Args:
        data_folder: The user's data folder, or None for the Hub's data.

    Raises:
        DataError: If there is nothing that can be read.
    """
    table = read_table(data_folder)
    rows = [{ALIASES.get(name, name): value for name, value in row.items()} for row in table.rows]
    report = Report(f"crosscult: {table.origin}")
    report.lines = [*_scenario_lines(rows), *_language_lines(rows)]
    empty = list(_empty_fields(table, rows))
    path = local_file(SOURCE, data_folder)
    broken = list(broken_images(table, [row.get("image") for row in rows], path.parent if path else Path()))
    report.lines += [Line("missing questions and answers", str(len(empty)), "0")]
    report.lines += [Line("broken images", str(len(broken)), "0")]
    report.problems = empty + broken or list(_other_problems(data_folder))
    if report.usable:
        report.lines += _part_lines(data_folder)
    return report


def _scenario_lines(rows: Sequence[_Row]) -> Iterator[Line]:
    topics = {row.get("scenario"): topic_of(str(row.get("topic") or "")) for row in rows}
    counted = Counter(topics.values())
    yield Line("raw cases", str(len(rows)), str(RAW_CASES))
    yield Line("scenarios", str(len(topics)), str(sum(SCENARIOS.values())))
    for topic in TOPICS:
        yield Line(f"scenarios of {TOPIC_NAMES[topic]}", str(counted[topic]), str(SCENARIOS[topic]))
    sizes = sorted(Counter(row.get("scenario") for row in rows).values())
    shown = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    yield Line("cases of a scenario", shown, str(CASES_PER_SCENARIO))


def _language_lines(rows: Sequence[_Row]) -> Iterator[Line]:
    for partition in PARTITIONS:
        fields = (QUESTION_FIELDS[partition], ANSWER_FIELDS[partition])
        complete = sum(all(_filled(row.get(name)) for name in fields) for row in rows)
        yield Line(f"cases with question and answer in {partition}", str(complete), str(RAW_CASES))


def _filled(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _empty_fields(table: Table, rows: Sequence[_Row]) -> Iterator[str]:
    fields = [*QUESTION_FIELDS.values(), *ANSWER_FIELDS.values()]
    for index, row in enumerate(rows):
        for name in fields:
            if not _filled(row.get(name)):
                yield f"{table.where(index)}, field {name!r}: found nothing. Needed is a text."


def _other_problems(data_folder: Path | None) -> Iterator[str]:
    """Says what else would stop a task: what the loader itself refuses first."""
    try:
        load(data_folder)
    except DataError as error:
        yield str(error)


def _part_lines(data_folder: Path | None) -> list[Line]:
    try:
        release = load_release(data_folder)
    except DataError as error:
        return [Line("split and pairing", f"not possible ({error})")]
    parts = [release.draw.split[case.scenario] for case in release.raw.cases]
    found = {
        "single-insert train": 2 * parts.count("train"),
        "single-insert test": 2 * parts.count("single"),
        "sequential-insert test": parts.count("sequential"),
    }
    return [Line(f"task cases, {name}", str(found[name]), str(count)) for name, count in TASK_CASES.items()]
