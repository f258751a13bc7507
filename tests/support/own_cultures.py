"""Folders of own cultures, one like each benchmark."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from culture_tasks.benchmarks.care.benchmark import CATEGORIES
from culture_tasks.benchmarks.cedar.labels import EMOTIONS

WORDS = {emotion: [f"{emotion}o"] for emotion in EMOTIONS} | {"fear": ["ፍርሃት", "ፈራ"]}
_PROMPT = "ትረካ: {narrative}\nጥያቄ: {question}\nመልስ:"
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "care": {"people": "Korean"},
    "cedar": {"words": WORDS, "prompts": {"text": _PROMPT, "multimodal": _PROMPT}},
    "crosscult": {"system": "한 문장으로 대답해 주세요.", "contrasts": ["en"]},
}
_CARE = {"associated_culture": "Native (Korea)", "geographic_scope": "Nationwide"}
_VQA = {"facet": "food", "all_answers": "['kimchi', '김치']"}
_SCENE = {"narrative": "ውሻ", "question": "ምን ተሰማህ?"}
_CASE = {"question_en": "Fine?", "answer_us_en": "Yes.", "question_ko": "괜찮아요?", "answer_korea_ko": "아니요."}
_TOPICS, _TWENTY = ("social", "religious", "ethical"), range(20)
_CARE_ROWS = [{"question": f"질문 {n}?", "answer": f"답 {n}", "culture_type": CATEGORIES[n % 5]} for n in _TWENTY]
_CASES = [{"scenario": f"s{n % 6}", "topic": _TOPICS[n % 3], "image": f"p{n % 4}.png"} for n in range(12)]
_TABLES: Mapping[str, Mapping[str, list[dict[str, Any]]]] = {
    "care": {"questions": [row | _CARE for row in _CARE_ROWS]},
    "culturalvqa": {"all": [{"u_id": n, "question": f"What {n}?", "image": f"p{n}.png"} | _VQA for n in range(4)]},
    "cedar": {
        "text": [{"id": "1", "answer": "ፍርሃት"} | _SCENE, {"id": "2", "answer": "Relief"} | _SCENE],
        "multimodal": [{"id": "1", "answer": "reliefo", "image": "p1.png"} | _SCENE],
    },
    "crosscult": {"c": [row | _CASE for row in _CASES]},
}


def make(folder: Path, like: str, **keys: Any) -> Path:
    """Makes the folder of a culture named ``korea``; ``keys`` replace those of its ``culture.toml``."""
    for name in ("data", "images"):
        (folder / name).mkdir(parents=True)
    write_toml(folder, like=like, **keys)
    for number in range(4):
        Image.new("RGB", (12, 8), (60 * number, 9, 9)).save(folder / "images" / f"p{number}.png")
    for name, rows in _TABLES[like].items():
        write_csv(folder / "data" / f"{name}.csv", rows)
    return folder


def write_toml(folder: Path, **keys: Any) -> None:
    """Writes ``culture.toml``; a key with the value None is left out."""
    facts = {"name": "korea", "title": "Korea", "like": None, "language": "ko", "place": "KR"}
    lines: list[str] = []
    for key, value in {**facts, **_KEYS.get(keys.get("like", ""), {}), **keys}.items():
        if isinstance(value, Mapping):
            lines += [f"[{key}]", *(f"{name} = {json.dumps(entry)}" for name, entry in value.items())]
        elif value is not None:
            lines.append(f"{key} = {json.dumps(value)}")
    (folder / "culture.toml").write_text("\n".join(lines), "utf-8")


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], encoding: str = "utf-8") -> None:
    """Writes rows that have the same columns."""
    with path.open("w", encoding=encoding, newline="") as file:
        rows = list(rows)
        csv.writer(file).writerows([rows[0].keys(), *(row.values() for row in rows)])
