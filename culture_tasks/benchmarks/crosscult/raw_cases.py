"""The table of raw multilingual cases: one image, and for each partition a question and its answer (section 3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, create_model

from culture_tasks.benchmarks.crosscult.editions import PAPER, Edition, Partition
from culture_tasks.benchmarks.crosscult.vocabulary import TOPIC_NAMES, TOPICS, Part, Topic
from culture_tasks.benchmarks.fields import spelled
from culture_tasks.data.checking import Count, count
from culture_tasks.data.files import Rows
from culture_tasks.data.rows import Label, OptionalIdentifier, TableRow, Text, none_if_blank
from culture_tasks.data.tables import Release, Table

RAW_CASES = 9_800  # this and the next two in Table 1
SCENARIOS: Mapping[Topic, int] = {"social": 16, "religious": 19, "ethical": 14}
_PARTS: Mapping[str, Part] = {
    "Single-insert / Train": "train",
    "Single-insert / Test": "single",
    "Sequential-insert / Test": "sequential",
}


class QuestionAnswer(NamedTuple):
    """Question and answer of one partition."""

    question: str
    answer: str


def _a_topic(text: str) -> Topic:
    """Reads a topic by its first word, as in ``Religious Values``."""
    if topic := next((topic for topic in TOPICS if text.strip().casefold().startswith(topic[:5])), None):
        return topic
    raise ValueError(f"Expected one of {', '.join(TOPIC_NAMES.values())}, or {', '.join(TOPIC_NAMES)}")


class RawCase(TableRow):
    """One row: scenario, topic and image, and columns that a release may add; :func:`row_model` adds the partitions."""

    scenario: Label
    topic: Annotated[str, AfterValidator(_a_topic)]
    id: OptionalIdentifier = None
    image: str | None = None
    split: Annotated[Annotated[str, spelled(_PARTS)] | None, BeforeValidator(none_if_blank)] = None
    description: str | None = None
    is_match: bool | None = None
    has_obvious_error: bool | None = None
    reason: str | None = None

    def sample(self, partition: Partition) -> QuestionAnswer:
        """Returns question and answer of a partition."""
        return QuestionAnswer(getattr(self, partition.question), getattr(self, partition.answer))


@cache
def row_model(edition: Edition) -> type[RawCase]:
    """Returns the model of an edition's rows, with question, answer and English gloss of each partition (Figure 8).

    An own culture's may have those of the paper's partitions that it leaves out.
    """
    fields: dict[str, Any] = {}
    for partition in dict.fromkeys((*PAPER.partitions, *edition.partitions)):
        required: Any = (Text, ...) if partition in edition.partitions else (str | None, None)
        fields |= {partition.question: required, partition.answer: required}
        if partition.code != "en":
            fields[f"{partition.answer}_en"] = (str | None, None)
    return create_model("RawCaseRow", __base__=RawCase, **fields)


def _without_qa(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Takes the object ``qa`` of Figure 8 apart into its fields."""
    if isinstance(row.get("qa"), Mapping):
        return {name: row[name] for name in row if name != "qa"} | dict(row["qa"])
    return row


def _uneven_scenarios(found: Rows[RawCase]) -> Iterator[str]:
    """Yields the cases that disagree with the first of their scenario on its topic or its part."""
    first: dict[str, RawCase] = {}
    for index, row in enumerate(found.rows):
        expected = first.setdefault(row.scenario, row)
        if (row.topic, row.split) != (expected.topic, expected.split):
            yield (
                f"{found.where(index)}, fields 'topic' and 'split': found {row.topic!r} and {row.split!r}, while "
                f"another row of the scenario {row.scenario!r} has {expected.topic!r} and {expected.split!r}. Give "
                "the whole scenario one value of each."
            )


def _counts(rows: Sequence[RawCase]) -> Iterator[Count]:
    topics = {row.scenario: row.topic for row in rows}
    yield count("raw cases", len(rows), RAW_CASES)
    yield count("scenarios", len(topics), sum(SCENARIOS.values()))
    for topic in TOPICS:
        yield count(f"scenarios of {TOPIC_NAMES[topic]}", list(topics.values()).count(topic), SCENARIOS[topic])


@cache
def table_of(edition: Edition) -> Table[RawCase]:
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
