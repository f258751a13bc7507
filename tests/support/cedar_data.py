"""CEDAR data made on the spot, and what a scripted model says to them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from culture_tasks.benchmarks.cedar.benchmark import ACC, TOP2, metrics
from culture_tasks.benchmarks.cedar.labels import FILE_NAMES, LANGUAGES, OPTION_WORDS, Emotion, Language
from culture_tasks.benchmarks.interface import MeanScore
from culture_tasks.harness.rows import TaskRecords, statistics_of

GOLDS: Mapping[Language, Sequence[Emotion]] = {
    **dict.fromkeys(LANGUAGES, ("happiness", "sadness")),
    "ja": ("happiness", "embarrassment"),
    "zh": ("happiness", "sadness", "fear"),
}
"""Gold labels of 15 rows, with which the metrics can be worked out by hand."""

RUBBISH = "I can't say."

SAID: Mapping[Language, Sequence[Emotion | None]] = {
    "ar": ("happiness", "happiness"),
    "en": ("happiness", "sadness"),
    "es": ("happiness", "sadness"),
    "hi": ("happiness", None),
    "ja": ("anger", "anger"),
    "sw": (None, None),
    "zh": ("happiness", "sadness", "surprise"),
}
"""What the scripted model says to each row; None is :data:`RUBBISH`."""


def row(number: int, language: Language, gold: Emotion, **more: Any) -> dict[str, Any]:
    """Returns a row as released."""
    word = OPTION_WORDS[language][gold]
    return {
        "id": number,
        "narrative": f"N {language} {number}.",
        "question": f"Q {language} {number}?",
        "answer": word,
        "english_ver_answer": gold,
        **more,
    }


def rows(golds: Mapping[Language, Sequence[Emotion]] = GOLDS) -> dict[Language, list[dict[str, Any]]]:
    """Returns rows of each language, numbered from 1."""
    return {
        language: [row(number, language, gold) for number, gold in enumerate(labels, start=1)]
        for language, labels in golds.items()
    }


def write_folder(
    folder: Path, content: Mapping[Language, Sequence[Mapping[str, Any]]] | None = None, *, images: bool = False
) -> Path:
    """Writes rows as a data folder, as the text-only files or as the multimodal ones with their images; returns it."""
    place = folder / "cedar" / ("multilingual" if images else "text")
    place.mkdir(parents=True, exist_ok=True)
    for language, of_language in (rows() if content is None else content).items():
        name = f"{FILE_NAMES[language]}_{'inq_sample' if images else 'nq'}.json"
        (place / name).write_text(json.dumps(of_language, ensure_ascii=False), encoding="utf-8")
        for number, doc in enumerate(of_language if images else ()):
            (folder / "cedar" / "images").mkdir(exist_ok=True)
            Image.new("RGB", (12, 8), (20 * number, 99, 7)).save(folder / "cedar" / "images" / f"{doc['id']}.png")
    return folder


def said(doc: Mapping[str, Any]) -> str:
    """Returns the scripted reply to a document: the emotion in the prompt's language, in a sentence."""
    emotion = SAID[doc["language"]][int(doc["id"]) - 1]
    return RUBBISH if emotion is None else f"**{OPTION_WORDS[doc['prompt_language']][emotion]}**"


def gold(doc: Mapping[str, Any]) -> str:
    """Returns a reply that is right."""
    return OPTION_WORDS[doc["prompt_language"]][doc["gold"]] + "."


def worked_out(records: Sequence[Mapping[str, Any]], *, is_pooled: bool) -> dict[str, float]:
    """Works metrics out again from the labels of logged records, with their standard errors."""
    kinds, plain = metrics("pooled" if is_pooled else "language"), []
    for record in records:
        group, read = record["groups"], [run["label"] for run in record["runs"]]
        labels = (group["language"], group["gold"], *read)
        inputs: dict[str, Any] = {metric.name: labels for metric in kinds}
        inputs.pop(TOP2, None)
        if "minority" in group:
            inputs[TOP2] = (group["gold"], None if group["minority"] == "none" else group["minority"], *read)
        plain.append({**record, "inputs": inputs})
    scores = {}
    task = TaskRecords(statistics_of(kinds, ACC, plain), plain)
    for number in task.statistics:
        of_number = task.of(number)
        if any(map(number.concerns, of_number)):
            scores[number.name], error = number.measured(of_number)
            if isinstance(number.metric, MeanScore) or number.metric.stderr is not None:
                scores[f"{number.name}_stderr"] = error
    return scores


def counted(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the records that a task counts: those with a score."""
    return [record for record in records if "score" in record]
