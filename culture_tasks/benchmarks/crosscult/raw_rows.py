"""What a row of raw cases must be: the fields of Figure 8, their other names, and what a release may add."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    partition_of,
    topic_of,
)
from culture_tasks.data.tables import Label, Text

ALIASES = {
    "case_id": "id",
    "raw_id": "id",
    "scenario_name": "scenario",
    "topic_group": "topic",
    "image_file": "image",
    "image_file_name": "image",
    "image_path": "image",
    "answer_en": "answer_us_en",
    "answer_zh": "answer_china_zh",
    "answer_ar": "answer_arab_ar",
    "answer_zh_en": "answer_china_zh_en",
    "answer_ar_en": "answer_arab_ar_en",
    "part": "split",
    "generality_id": "generality",
    "cross_language_locality": "cross_language",
    "cross_scenario_locality": "cross_scenario",
    "cross_scenario_id": "cross_scenario",
    "locality_ids": "locality",
}

QUESTION_FIELDS: Mapping[Partition, str] = {"en": "question_en", "zh": "question_zh", "ar": "question_ar"}
ANSWER_FIELDS: Mapping[Partition, str] = {"en": "answer_us_en", "zh": "answer_china_zh", "ar": "answer_arab_ar"}


def _a_topic(text: str) -> Topic:
    topic = topic_of(text)
    if topic is None:
        raise ValueError(f"Allowed are {', '.join(TOPIC_NAMES.values())}, or {', '.join(TOPIC_NAMES)}")
    return topic


def _a_part(text: str | None) -> Part | None:
    if text is None or not text.strip():
        return None
    part = part_of(text)
    if part is None:
        raise ValueError(f"Allowed are {', '.join(PARTS)}, for example 'single-insert test'")
    return part


def _a_partition(text: str | None) -> Partition | None:
    if text is None or not text.strip():
        return None
    partition = partition_of(text)
    if partition is None:
        raise ValueError(f"Allowed are {', '.join(PARTITIONS)}")
    return partition


def _as_text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else (value or None)


def _as_list(value: Any) -> Any:
    """Turns what CSV files write for a list (its JSON form, or nothing) into one; numbers become texts."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = json.loads(text) if text.startswith("[") else ([text] if text else [])
        except json.JSONDecodeError:
            raise ValueError('Needed is a list of case ids, such as ["12", "40", "7"]') from None
    return [_as_text(each) for each in value] if isinstance(value, (list, tuple)) else (value or [])


CaseId = Annotated[str | None, BeforeValidator(_as_text)]


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
    id: CaseId = None
    image: str | None = None
    split: Annotated[str | None, AfterValidator(_a_part)] = None
    generality: CaseId = None
    cross_language: Annotated[str | None, AfterValidator(_a_partition)] = None
    cross_scenario: CaseId = None
    locality: Annotated[list[str], BeforeValidator(_as_list)] = []
    description: str | None = None
    is_match: bool | None = None
    has_obvious_error: bool | None = None
    reason: str | None = None
