"""Raw multilingual cases: one image, and for each partition a question with its own answer (section 3.1).

The fields of a row come first (those of Figure 8 with scenario, topic, image and part), then the reading of a release,
then its images as checked files.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from culture_tasks.benchmarks.crosscult.vocabulary import (
    PARTITIONS,
    PARTS,
    TOPIC_NAMES,
    Part,
    Partition,
    Topic,
    part_of,
    topic_of,
)
from culture_tasks.data.images import image_column
from culture_tasks.data.releases import ReleaseFacts
from culture_tasks.data.sources import Source, folder_of, read_source
from culture_tasks.data.tables import (
    Label,
    OptionalIdentifier,
    RowTable,
    Text,
    fingerprint,
    none_if_blank,
    unique,
    validated,
)
from culture_tasks.errors import DataError

RAW_CASES = 9_800
"""Raw cases (Table 1)."""

SOURCE = Source(
    folder="crosscult",
    stems=("cases", "raw_cases", "crosscult", "crosscult_kibench", "data"),
    hub="crosscult-kibench/CrossCult-KIBench",
    split="all",
    image_column="image",
    release=ReleaseFacts(rows=RAW_CASES),
)

_IMAGES_FOLDER = "culture-tasks-images"

# Columns that were read once. They are still part of the fingerprint, so that runs of then and now compare.
_FORMER_COLUMNS: Mapping[str, Any] = {
    "generality": None,
    "cross_language": None,
    "cross_scenario": None,
    "locality": [],
}

QUESTION_FIELDS: Mapping[Partition, str] = {"en": "question_en", "zh": "question_zh", "ar": "question_ar"}
ANSWER_FIELDS: Mapping[Partition, str] = {"en": "answer_us_en", "zh": "answer_china_zh", "ar": "answer_arab_ar"}


def _a_topic(text: str) -> Topic:
    topic = topic_of(text)
    if topic is None:
        raise ValueError(f"Allowed are {', '.join(TOPIC_NAMES.values())}, or {', '.join(TOPIC_NAMES)}")
    return topic


def _a_part(text: str) -> Part:
    part = part_of(text)
    if part is None:
        raise ValueError(f"Allowed are {', '.join(PARTS)}, for example 'single-insert test'")
    return part


class RawCaseRow(BaseModel):
    """One row: the fields of Figure 8 with scenario, topic and image, and what a release may add."""

    model_config = ConfigDict(extra="forbid")

    scenario: Label
    topic: Annotated[str, AfterValidator(_a_topic)]
    question_en: Text
    question_zh: Text
    question_ar: Text
    answer_us_en: Text
    answer_china_zh: Text
    answer_arab_ar: Text
    answer_china_zh_en: str | None = None
    answer_arab_ar_en: str | None = None
    id: OptionalIdentifier = None
    image: str | None = None
    split: Annotated[Annotated[str, AfterValidator(_a_part)] | None, BeforeValidator(none_if_blank)] = None
    description: str | None = None
    is_match: bool | None = None
    has_obvious_error: bool | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """Question and answer of one partition."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class RawCase:
    """One raw multilingual case, without its image.

    Attributes:
        id: Different in each case.
        scenario: The scenario.
        topic: The scenario's topic.
        samples: The sample of each partition.
        part: Part of the data that the release puts the scenario into; None where it doesn't say.
    """

    id: str
    scenario: str
    topic: Topic
    samples: Mapping[Partition, QuestionAnswer]
    part: Part | None = None


@dataclass(frozen=True)
class RawCases:
    """All raw cases of a release, and where their images are.

    Attributes:
        table: The rows as read.
        cases: The cases, in the same order.
        image_names: Image file of each case; None where images are embedded in the table.
        folder: Folder of the local file; the current one for the Hub's data.
        fingerprint: Fingerprint of the rows, images aside.
    """

    table: RowTable
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
    rows = validated(table, RawCaseRow)
    ids = list(unique(table, (row.id or str(index) for index, row in enumerate(rows)), "id"))
    cases = [_case(identifier, row) for identifier, row in zip(ids, rows, strict=True)]
    _check_scenarios(table, cases)
    return RawCases(
        table=table,
        cases=cases,
        image_names=[row.image for row in rows],
        folder=folder_of(SOURCE, data_folder),
        fingerprint=fingerprint(row.model_dump(exclude={"image"}) | dict(_FORMER_COLUMNS) for row in rows),
    )


def read_table(data_folder: Path | None) -> RowTable:
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
    samples = {code: QuestionAnswer(values[QUESTION_FIELDS[code]], values[ANSWER_FIELDS[code]]) for code in PARTITIONS}
    return RawCase(
        id=identifier,
        scenario=row.scenario,
        topic=values["topic"],
        samples=samples,
        part=values["split"],
    )


def _check_scenarios(table: RowTable, cases: Sequence[RawCase]) -> None:
    """Makes sure that all cases of a scenario agree on its topic and its part."""
    first: dict[str, int] = {}
    for index, case in enumerate(cases):
        other = cases[first.setdefault(case.scenario, index)]
        for field, ours, theirs in (("topic", case.topic, other.topic), ("split", case.part, other.part)):
            if ours != theirs:
                raise DataError(
                    f"{table.where(index)}, field {field!r}: found {ours!r}, while {table.where(first[case.scenario])} "
                    f"of the same scenario {case.scenario!r} has {theirs!r}. Give the whole scenario one value."
                )


class Pictures:
    """Finds and checks the images of raw cases, each once, when a task needs it.

    A raw case's image is shown by dozens of documents. Images embedded in a table are therefore written out once, under
    the hash of their content, instead of being copied into each document.
    """

    def __init__(self, raw: RawCases) -> None:
        """Takes the raw cases; no image is checked yet."""
        self._raw = raw
        self._files: dict[int, str] = {}

    def files(self, rows: Iterable[int]) -> list[str]:
        """Returns the image files of these raw cases, in the same order.

        Raises:
            DataError: For the first one that is missing or broken.
        """
        wanted = list(rows)
        new = sorted(set(wanted) - self._files.keys())
        if new:
            self._files |= dict(zip(new, self._checked(new), strict=True))
        return [self._files[row] for row in wanted]

    def _checked(self, rows: list[int]) -> list[str]:
        import datasets

        names = [self._raw.image_names[row] for row in rows]
        images = image_column(self._raw.table.part(rows), names, self._raw.folder)
        cells = images.cast_column("image", datasets.Image(decode=False))
        return [_file(cell["image"]["bytes"], cell["image"]["path"]) for cell in cells]


def _file(content: bytes | None, path: str) -> str:
    if content is None:
        return path
    import datasets

    folder = Path(os.fspath(datasets.config.HF_DATASETS_CACHE)) / _IMAGES_FOLDER
    file = folder / hashlib.sha256(content).hexdigest()
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{file.name}.{uuid.uuid4().hex}"
        unfinished.write_bytes(content)
        unfinished.replace(file)
    return str(file)
