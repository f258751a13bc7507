"""Raw multilingual cases: one image, and for each partition a question with its own answer (section 3.1)."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, create_model

from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, TOPICS, Part, Topic
from culture_tasks.benchmarks.fields import spelled
from culture_tasks.data.checking import Count, count
from culture_tasks.data.files import Rows
from culture_tasks.data.images import Images
from culture_tasks.data.reading import fingerprint
from culture_tasks.data.rows import (
    Label,
    OptionalIdentifier,
    TableRow,
    Text,
    none_if_blank,
)
from culture_tasks.data.tables import Release, Table
from culture_tasks.settings import Settings

RAW_CASES = 9_800  # this and the next in Table 1
_PARTS: Mapping[str, Part] = {
    "Single-insert / Train": "train",
    "Single-insert / Test": "single",
    "Sequential-insert / Test": "sequential",
}
"""The parts of the data, as Table 1 writes them."""
SCENARIOS: Mapping[Topic, int] = {"social": 16, "religious": 19, "ethical": 14}

# Columns that were read once. They are still part of the fingerprint, so that runs of then and now compare.
_FORMER_COLUMNS: dict[str, Any] = {"generality": None, "cross_language": None, "cross_scenario": None, "locality": []}


def _a_topic(text: str) -> Topic:
    """Reads a topic by its first word, as in ``Religious Values``."""
    if topic := next((topic for topic in TOPICS if text.strip().casefold().startswith(topic[:5])), None):
        return topic
    raise ValueError(f"Expected one of {', '.join(TOPIC_NAMES.values())}, or {', '.join(TOPIC_NAMES)}")


class RawCaseRow(TableRow):
    """One row without the fields of its partitions: scenario, topic and image, and columns that a release may add."""

    scenario: Label
    topic: Annotated[str, AfterValidator(_a_topic)]
    id: OptionalIdentifier = None
    image: str | None = None
    split: Annotated[Annotated[str, spelled(_PARTS)] | None, BeforeValidator(none_if_blank)] = None
    description: str | None = None
    is_match: bool | None = None
    has_obvious_error: bool | None = None
    reason: str | None = None


@cache
def row_model(edition: Edition) -> type[RawCaseRow]:
    """Returns the model of an edition's rows, with question, answer and gloss of each partition (Figure 8).

    An own culture's may have those of the paper's partitions that it leaves out.
    """
    left_out = () if edition is PAPER else PAPER.partitions
    fields: dict[str, Any] = {name: (str | None, None) for part in left_out for name in part.fields.values()}
    for kind, validation in (("question", (Text, ...)), ("answer", (Text, ...)), ("gloss", (str | None, None))):
        fields |= {partition.fields[kind]: validation for partition in edition.partitions if kind in partition.fields}
    return create_model("RawCaseRow", __base__=RawCaseRow, **fields)


class QuestionAnswer(NamedTuple):
    """Question and answer of one partition."""

    question: str
    answer: str


class RawCase(NamedTuple):
    """One raw multilingual case."""

    id: str
    scenario: str
    topic: str
    samples: Mapping[str, QuestionAnswer]  # of each partition
    part: Part | None = None  # of the data, where the release says so
    image: str | None = None  # a file; None where images are embedded in the table


@dataclass(frozen=True)
class RawCases:
    """All raw cases of a release, with their table."""

    table: Rows[RawCaseRow]
    cases: Sequence[RawCase]  # in the order of the table
    fingerprint: str  # of the rows, images aside
    edition: Edition = PAPER
    settings: Settings = field(default_factory=Settings)  # of its loading
    _images: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def cases_by_id(self) -> Mapping[str, RawCase]:
        """The cases by their id."""
        return {case.id: case for case in self.cases}

    def images(self, ids: Iterable[str]) -> list[str]:
        """Returns the image files of cases, each checked when it is first asked for.

        Dozens of documents show one image, so embedded images are written out once, under their hash.
        """
        import datasets

        identifiers = list(ids)
        unchecked = set(identifiers) - self._images.keys()
        if rows := [row for row, case in enumerate(self.cases) if case.id in unchecked]:
            names = [self.cases[row].image for row in rows]
            images = Images(self.table.part(rows), names)
            cells = images.column(self.settings.image_pixels).cast_column("image", datasets.Image(decode=False))
            for row, cell in zip(rows, cells, strict=True):
                content, path = cell["image"]["bytes"], cell["image"]["path"]
                self._images[self.cases[row].id] = path if content is None else _file_of(content)
        return [self._images[identifier] for identifier in identifiers]


def _file_of(content: bytes) -> str:
    import datasets

    folder = Path(datasets.config.HF_DATASETS_CACHE) / "culture-tasks-images"
    file = folder / hashlib.sha256(content).hexdigest()
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{file.name}.{uuid.uuid4().hex}"
        unfinished.write_bytes(content)
        unfinished.replace(file)
    return str(file)


def _without_qa(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Takes the object ``qa`` of Figure 8 apart into its fields."""
    if isinstance(row.get("qa"), Mapping):
        return {name: row[name] for name in row if name != "qa"} | dict(row["qa"])
    return row


def _uneven_scenarios(found: Rows[RawCaseRow]) -> Iterator[str]:
    """Yields the cases that disagree with the first of their scenario on its topic or its part."""
    first: dict[str, RawCaseRow] = {}
    for index, row in enumerate(found.rows):
        expected = first.setdefault(row.scenario, row)
        if (row.topic, row.split) != (expected.topic, expected.split):
            yield (
                f"{found.where(index)}, fields 'topic' and 'split': found {row.topic!r} and {row.split!r}, while "
                f"another row of the scenario {row.scenario!r} has {expected.topic!r} and {expected.split!r}. Give "
                "the whole scenario one value of each."
            )


def _counts(rows: Sequence[RawCaseRow]) -> Iterator[Count]:
    topics = {row.scenario: row.topic for row in rows}
    yield count("raw cases", len(rows), RAW_CASES)
    yield count("scenarios", len(topics), sum(SCENARIOS.values()))
    for topic in TOPICS:
        yield count(f"scenarios of {TOPIC_NAMES[topic]}", list(topics.values()).count(topic), SCENARIOS[topic])


@cache
def table_of(edition: Edition) -> Table[RawCaseRow]:
    """Returns the table of an edition's raw cases."""
    table = Table(
        model=row_model(edition),
        folder="crosscult",
        stems=("cases", "raw_cases", "crosscult", "crosscult_kibench", "data"),
        hub="crosscult-kibench/CrossCult-KIBench",
        split="all",
        unpack=_without_qa,
        id="id",
        image_column="image",
        release=Release(rows=RAW_CASES),
        rules=_uneven_scenarios,
        counts=_counts,
    )
    if edition.root:
        return table.of_culture(edition.root, counts=lambda rows: [count("raw cases", len(rows))])
    return table


def load(settings: Settings, edition: Edition = PAPER) -> RawCases:
    """Loads all raw cases of an edition; raises DataError if they can't be used."""
    found = table_of(edition).rows(settings)
    cases = []
    for identifier, row in found:
        values = row.model_dump()
        samples = {
            partition.code: QuestionAnswer(values[partition.fields["question"]], values[partition.fields["answer"]])
            for partition in edition.partitions
        }
        cases.append(RawCase(identifier, row.scenario, row.topic, samples, values["split"], row.image))
    return RawCases(
        table=found,
        cases=cases,
        fingerprint=fingerprint(row.model_dump(exclude={"image"}) | _FORMER_COLUMNS for row in found.rows),
        edition=edition,
        settings=settings,
    )
