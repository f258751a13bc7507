"""Raw cases of CrossCult made on the spot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image

from culture_tasks.benchmarks.crosscult.editions import PAPER
from culture_tasks.benchmarks.crosscult.raw_cases import RawCase, row_model
from culture_tasks.benchmarks.crosscult.vocabulary import TOPICS
from culture_tasks.data.files import Rows


def raw_cases(scenarios: dict[str, str], cases: int, **fields: Any) -> Rows[RawCase]:
    """Returns cases without images; ``scenarios`` maps names to topics."""
    ids = [f"{scenario}-{number}" for scenario in scenarios for number in range(cases)]
    made = []
    for identifier in ids:
        scenario, _, number = identifier.rpartition("-")
        row = {"scenario": scenario, "topic": scenarios[scenario], **fields}
        for partition in PAPER.partitions:
            row[partition.question] = f"q {partition.code} {scenario} {number}"
            row[partition.answer] = f"a {partition.code} {scenario} {number}"
        made.append(row_model(PAPER).model_validate(row))
    return Rows("made up", made, ids=ids)


def paper_sized() -> Rows[RawCase]:
    """Returns as many scenarios and cases as Table 1 has."""
    sizes = zip(TOPICS, (16, 19, 14), strict=True)
    return raw_cases({f"{topic} {number:02}": topic for topic, size in sizes for number in range(size)}, 200)


def rows(scenarios: int = 6, cases: int = 2) -> list[dict[str, Any]]:
    """Returns rows as a release may have them, with the names of Figure 8."""
    topics = ("Social Values, Attitudes & Stereotypes", "Religious Values", "Ethical Values and Norms")
    return [
        {
            "id": f"{scenario}-{number}",
            "scenario": f"scenario {scenario}",
            "topic": topics[scenario % 3],
            "image": f"{scenario}_{number}.png",
            "question_en": f"Is this one fine, {scenario} {number}?",
            "question_zh": f"这个可以吗，{scenario} {number}？",
            "question_ar": f"هل هذا مقبول، {scenario} {number}؟",
            "answer_us_en": f"Yes, it is fine {scenario} {number}.",
            "answer_china_zh": f"不可以 {scenario} {number}。",
            "answer_arab_ar": f"نعم مقبول {scenario} {number}.",
        }
        for scenario in range(scenarios)
        for number in range(cases)
    ]


def write_folder(folder: Path, content: list[dict[str, Any]]) -> Path:
    """Writes rows and their images into a data folder; returns it."""
    home = folder / "crosscult"
    home.mkdir(parents=True, exist_ok=True)
    for index, row in enumerate(content):
        if isinstance(row.get("image"), str):
            Image.new("RGB", (12, 8), (index * 9 % 256, index, 99)).save(home / row["image"])
    (home / "cases.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return folder
