"""CEDAR data made on the spot, and what a scripted model says to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from culture_tasks.benchmarks.cedar.labels import FILE_NAMES, LANGUAGES, OPTION_WORDS, Emotion, Language

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
