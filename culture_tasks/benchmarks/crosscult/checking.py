"""``culture-tasks data check crosscult``: the raw cases and their images, counted beside Table 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from culture_tasks.benchmarks.crosscult.documents import load_release
from culture_tasks.benchmarks.crosscult.raw_cases import RAW_CASES, SOURCE, RawCaseRow, load, read_table
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, TOPICS, Topic
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images
from culture_tasks.data.sources import folder_of
from culture_tasks.data.tables import RowTable
from culture_tasks.errors import DataError

SCENARIOS: Mapping[Topic, int] = {"social": 16, "religious": 19, "ethical": 14}
"""Scenarios of each topic (Table 1)."""

CASES_PER_SCENARIO = 200
TASK_CASES = {"single-insert train": 11_600, "single-insert test": 4_000, "sequential-insert test": 2_000}
"""Task cases of each part (Table 1)."""


def check(data_folder: Path | None) -> DataReport:
    """Checks the raw cases (:func:`~culture_tasks.data.checking.check_tables`), and whether they can be paired."""
    cases = TableCheck(
        source=SOURCE,
        model=RawCaseRow,
        id="id",
        tables=lambda folder: [read_table(folder)],
        problems=partial(_images, data_folder),
        counts=_counts,
    )
    report = check_tables("crosscult", data_folder, [cases])
    if report.usable:
        try:
            load(data_folder)
        except DataError as error:
            report.problems.append(str(error))
        else:
            report.counts += _part_counts(data_folder)
    return report


def _images(data_folder: Path | None, table: RowTable, rows: Mapping[int, RawCaseRow]) -> Iterator[str]:
    names = [row.image for row in rows.values()]
    return broken_images(table.part(list(rows)), names, folder_of(SOURCE, data_folder))


def _counts(rows: Sequence[RawCaseRow]) -> Iterator[Count]:
    scenarios = Counter(row.scenario for row in rows)
    topics = Counter({row.scenario: row.topic for row in rows}.values())
    yield Count("raw cases", str(len(rows)), str(RAW_CASES))
    yield Count("scenarios", str(len(scenarios)), str(sum(SCENARIOS.values())))
    for topic in TOPICS:
        yield Count(f"scenarios of {TOPIC_NAMES[topic]}", str(topics[topic]), str(SCENARIOS[topic]))
    if scenarios:
        fewest, most = min(scenarios.values()), max(scenarios.values())
        sizes = str(fewest) if fewest == most else f"{fewest} to {most}"
        yield Count("cases of a scenario", sizes, str(CASES_PER_SCENARIO))


def _part_counts(data_folder: Path | None) -> list[Count]:
    try:
        release = load_release(data_folder)
    except DataError as error:
        return [Count("split and pairing", f"not possible ({error})")]
    parts = Counter(release.draw.split[case.scenario] for case in release.raw.cases)
    cases = zip(TASK_CASES.items(), (2 * parts["train"], 2 * parts["single"], parts["sequential"]), strict=True)
    return [Count(f"task cases, {name}", str(found), str(paper)) for (name, paper), found in cases]
