"""Runs of CARE with a judge that is biased, and people who rate their responses as the truth is."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.sample_files import JUDGE, care_sample, rewrite, write_run

QUESTIONS = {
    "zh": "图中的人正在庆祝哪个传统节日?",
    "ar": "ما هي الملابس التقليدية التي يرتديها الرجل؟",
    "ja": "この着物はどんな場面で着ますか。",
}


def truth(item: str) -> int:
    """Returns what people think of the response to an item, from 1 to 10."""
    return max(1, min(10, round(random.Random(item).gauss(6.0, 1.8))))


def judged(item: str, bias: float = 1.0) -> float:
    """Returns the judge's rating."""
    return float(max(1, min(10, round(truth(item) + bias + random.Random(f"judge {item}").gauss(0.0, 0.8)))))


def sample(
    language: str, number: int, judge: str = "judge-1", response: str | None = None, bias: float = 1.0
) -> dict[str, Any]:
    """A sample of CARE with a rating and a response of its own."""
    made = care_sample(number, 0.0, language)
    record = made["record"]
    item = record["item"]
    rating = judged(item, bias)
    text = f"{QUESTIONS[language]} {number}" if response is None else response
    record |= {
        "question": f"{number}: {QUESTIONS[language]}",
        "judge": JUDGE | {"rubric": "care_norms_commonsense", "model": judge},
        "runs": [{"response": text, "outcome": "scored", "rating": rating, "tokens": [1, 1]}],
        "outcomes": {"scored": 1},
        "score": rating,
    }
    return made


def samples(sizes: Mapping[str, int], judge: str = "judge-1", **changes: Any) -> dict[str, list[dict[str, Any]]]:
    """Samples of CARE's tasks, by task."""
    return {
        f"care_{language}": [sample(language, number, judge, **changes) for number in range(size)]
        for language, size in sizes.items()
    }


def write_care(
    folder: Path, sizes: Mapping[str, int], stamp: str = "20260101_000000", graded_from: str = "", **changes: Any
) -> Path:
    """Writes a run of CARE and returns its result file."""
    path = write_run(folder, "toy/model", samples(sizes, **changes), stamp)
    if graded_from:
        rewrite(path, config={"rejudged_from": graded_from})
    return path


def write_ratings(sheet: Path, path: Path, most: int | None = None, **by_row: Any) -> Path:
    """Fills in ratings by the truth, or what a row is given, as a rater's file."""
    design = json.loads((sheet / "spotcheck.json").read_text())
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "rating", "comment", "rater"])
        for row in design["rows"][:most]:
            writer.writerow([row["row"], by_row.get(row["row"], truth(row["item"])), "", ""])
    return path


def write_sample(whole: Path, model: str, samples: Mapping[str, Sequence[dict[str, Any]]], stamp: str) -> Path:
    """Writes what ``rejudge --sample`` does: a better judge's grading of some responses of another run."""
    path = write_run(whole.parent, model, {task: list(own) for task, own in samples.items()}, stamp)
    sizes = json.loads(whole.read_text(encoding="utf-8"))["n-samples"]
    subsets = {
        task: {"documents": len(own), "of_documents": sizes[task]["original"], "items": sizes[task]["original"]}
        for task, own in samples.items()
    }
    metadata = {task: {"metadata": {"subset": one | {"spread": 0.01, "seed": 0}}} for task, one in subsets.items()}
    counts = {task: {"original": len(own), "effective": len(own)} for task, own in samples.items()}
    rewrite(path, **{"config": {"rejudged_from": whole.name}, "configs": metadata, "n-samples": counts})
    return path
