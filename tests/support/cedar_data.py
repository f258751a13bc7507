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
from culture_tasks.harness.aggregation import aggregation_of
from culture_tasks.harness.records import ClusteredLabels
from culture_tasks.harness.scoring import parts_of

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
    """Works metrics out again from logged records alone, with their standard errors."""
    groups = [record["groups"] for record in records]
    read = [[run["label"] for run in record["runs"]] for record in records]
    labels = [
        ClusteredLabels((group["language"], group["gold"], *runs), (record["benchmark"], record["cluster"]), group)
        for record, group, runs in zip(records, groups, read, strict=True)
    ]
    values: dict[str, Sequence[Any]] = {ACC: records, TOP2: []}
    if any("minority" in group for group in groups):
        minorities = [None if group["minority"] == "none" else group["minority"] for group in groups]
        pairs = zip(groups, minorities, read, strict=True)
        values[TOP2] = [(group["gold"], minority, *runs) for group, minority, runs in pairs]
    scores = {}
    for metric in metrics("pooled" if is_pooled else "language"):
        metric_values = values.get(metric.name, labels)
        aggregation = aggregation_of(metric, is_main=metric.name == ACC)
        chosen = {metric.name: metric_values} if metric_values or metric.name != TOP2 else {}
        for part in parts_of(metric):
            of_part = [
                value for value, group in zip(metric_values, groups, strict=True) if group[part.field] == part.group
            ]
            chosen |= {part.metric: of_part} if of_part else {}
        for name, some in chosen.items():
            scores[name] = aggregation(some)
            if isinstance(metric, MeanScore) or metric.stderr is not None:
                scores[f"{name}_stderr"] = aggregation.stderr(some)
    return scores


def counted(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the records that a task counts: those with a score."""
    return [record for record in records if "score" in record]
