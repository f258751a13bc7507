"""Labels of the sheets in the language of the people who fill them in: ``labels.json`` of a project.

A label is known by its text in English. A group translates what it likes; the rest stays English.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from culture_tasks.benchmarks.culture_forms import Step
from culture_tasks.errors import DataError
from culture_tasks.pages.markup import asset

LABELS = "labels.json"

_DIRECTIONS = ("ltr", "rtl")
# ISO 639 codes of languages that are mostly written in Arabic, Hebrew, Thaana, Syriac or N'Ko letters.
_RIGHT_TO_LEFT = frozenset(
    (
        *("ar", "ara", "arb", "acm", "aeb", "afb", "apc", "apd", "ars", "ary", "arz", "azb", "bal", "ckb", "dv", "fa"),
        *("glk", "he", "ks", "lrc", "mzn", "nqo", "pes", "pnb", "prs", "ps", "sd", "skr", "syr", "ug", "ur", "yi"),
    )
)
# A label in the page's template: label("…").
_IN_TEMPLATE = re.compile(r'label\("([^"]+)"\)')
# A place that a number or a name is put into.
_SLOT = re.compile(r"\{\w+\}")


@dataclass(frozen=True)
class Labels:
    """The labels of a project, with the translation of each English one; empty where there is none yet."""

    direction: str  # ``ltr`` or ``rtl``
    texts: Mapping[str, str] = field(default_factory=dict)
    overrides: Mapping[str, str] = field(default_factory=dict)  # made at a step, which come before those in the file

    def __call__(self, label: str) -> str:
        """Returns the translation of an English label, or the label itself."""
        return self.overrides.get(label) or self.texts.get(label, "").strip() or label

    @property
    def translated(self) -> bool:
        """Whether any label is."""
        return any(text.strip() for text in self.texts.values())


def read_labels(folder: Path, language: str) -> Labels:
    """Reads the labels of a project; all are English where it has no such file.

    Raises:
        DataError: If the file can't be read, or a translation lacks a slot of its label.
    """
    path = folder / LABELS
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return Labels("rtl" if language in _RIGHT_TO_LEFT else "ltr")
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: can't be read ({error}). Correct it there.") from None
    texts = content.get("labels") if isinstance(content, dict) else None
    if not isinstance(texts, dict) or content.get("direction") not in _DIRECTIONS:
        raise DataError(f"{path}: Expected an object with 'direction' ('ltr' or 'rtl') and 'labels'.")
    for label, text in texts.items():
        if not isinstance(text, str):
            raise DataError(f"{path}, label {label!r:.60}: found {text!r:.60}. Expected a text.")
        if text.strip() and sorted(_SLOT.findall(text)) != sorted(_SLOT.findall(label)):
            slots = " and ".join(_SLOT.findall(label)) or "no braces"
            raise DataError(f"{path}, label {label!r:.60}: found {text!r:.60}. Expected {slots} in it, as in English.")
    return Labels(content["direction"], texts)


def write_labels(folder: Path, labels: Labels, english: Iterable[str]) -> int:
    """Adds the labels that the project's file lacks, without a translation, and returns how many it lacked."""
    missing = dict.fromkeys(label for label in english if label and label not in {**labels.texts, **labels.overrides})
    if missing:
        texts = {**labels.texts, **dict.fromkeys(missing, "")}
        content = {"direction": labels.direction, "labels": texts}
        (folder / LABELS).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return len(missing)


def labels_of(steps: Iterable[Step]) -> Iterator[str]:
    """Yields the labels that pages of these steps have, those of their rows aside."""
    yield from _IN_TEMPLATE.findall(asset("culture_tasks.cultures", "page/sheet.html"))
    for step in steps:
        yield from (step.title, step.about)
        for column in step.columns:
            yield from (column.title, column.about, *column.choices.values())
