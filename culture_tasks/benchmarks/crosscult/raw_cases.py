"""Reading raw multilingual cases: one image, and for each partition a question with its own answer (section 3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from culture_tasks.benchmarks.crosscult.raw_rows import ALIASES, ANSWER_FIELDS, QUESTION_FIELDS, RawCaseRow
from culture_tasks.benchmarks.crosscult.vocabulary import PARTITIONS, Part, Partition, Topic
from culture_tasks.data.fingerprint import fingerprint
from culture_tasks.data.sources import Source, local_file, read_source
from culture_tasks.data.tables import Table, unique, validated
from culture_tasks.errors import DataError

SOURCE = Source(
    folder="crosscult",
    stems=("cases", "raw_cases", "crosscult", "crosscult_kibench", "data"),
    hub="crosscult-kibench/CrossCult-KIBench",
    split="all",
    image_column="image",
)


@dataclass(frozen=True, slots=True)
class Sample:
    """Question and answer of one partition."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class RawCase:
    """One raw multilingual case, its image aside.

    Attributes:
        id: Different in each case.
        scenario: The scenario.
        topic: The scenario's topic.
        samples: The sample of each partition.
        part: Part of the data that the release puts the scenario into; None where it doesn't say.
        generality: The release's own pairing: a case of the same scenario; None where it has none.
        cross_language: Its own pairing: the partition of the cross-language locality item.
        cross_scenario: Its own pairing: a case of another scenario.
        locality: Its own pairing for a chain: a case of another scenario for each step; empty where it has none.
    """

    id: str
    scenario: str
    topic: Topic
    samples: Mapping[Partition, Sample]
    part: Part | None = None
    generality: str | None = None
    cross_language: Partition | None = None
    cross_scenario: str | None = None
    locality: tuple[str, ...] = ()


@dataclass(frozen=True)
class RawCases:
    """All raw cases of a release, with what is needed to find their images.

    Attributes:
        table: The rows as read.
        cases: The cases, in the same order.
        image_names: Image file of each case; None where images are embedded in the table.
        folder: Folder of the local file; the current one for the Hub's data.
        fingerprint: Fingerprint of the rows, images aside.
    """

    table: Table
    cases: Sequence[RawCase]
    image_names: Sequence[str | None]
    folder: Path
    fingerprint: str


def load(data_folder: Path | None) -> RawCases:
    """Loads all raw cases.

    Args:
        data_folder: The user's data folder, or None.

    Raises:
        DataError: If the data can't be used.
    """
    table = read_table(data_folder)
    rows = validated(table, RawCaseRow, ALIASES)
    ids = list(unique(table, (row.id or str(index) for index, row in enumerate(rows)), "id"))
    cases = [_case(identifier, row) for identifier, row in zip(ids, rows, strict=True)]
    _check_scenarios(table, cases)
    path = local_file(SOURCE, data_folder)
    return RawCases(
        table=table,
        cases=cases,
        image_names=[row.image for row in rows],
        folder=path.parent if path else Path(),
        fingerprint=fingerprint(row.model_dump(exclude={"image"}) for row in rows),
    )


def read_table(data_folder: Path | None) -> Table:
    """Reads the rows without checking them; the object ``qa`` of Figure 8 is taken apart into its fields."""
    table = read_source(SOURCE, data_folder)
    return replace(table, rows=[_flat(row) for row in table.rows])


def _flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = row.get("qa")
    if not isinstance(inner, Mapping):
        return row
    return {name: value for name, value in row.items() if name != "qa"} | dict(inner)


def _case(identifier: str, row: RawCaseRow) -> RawCase:
    values = row.model_dump()
    samples = {code: Sample(values[QUESTION_FIELDS[code]], values[ANSWER_FIELDS[code]]) for code in PARTITIONS}
    return RawCase(
        id=identifier,
        scenario=row.scenario,
        topic=values["topic"],
        samples=samples,
        part=values["split"],
        generality=row.generality,
        cross_language=values["cross_language"],
        cross_scenario=row.cross_scenario,
        locality=tuple(row.locality),
    )


def _check_scenarios(table: Table, cases: Sequence[RawCase]) -> None:
    """Makes sure that all cases of a scenario agree on its topic and its part."""
    first: dict[str, int] = {}
    for index, case in enumerate(cases):
        other = cases[first.setdefault(case.scenario, index)]
        for field, ours, theirs in (("topic", case.topic, other.topic), ("split", case.part, other.part)):
            if ours != theirs:
                raise DataError(
                    f"{table.where(index)}, field {field!r}: found {ours!r}, while {table.where(first[case.scenario])} "
                    f"of the same scenario {case.scenario!r} has {theirs!r}. Needed is one for the whole scenario."
                )
