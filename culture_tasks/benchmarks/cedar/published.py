"""The paper's own numbers, and whether a label distribution is the paper's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import cast

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, Emotion, Language, Modality
from culture_tasks.published import load

LabelCounts = Mapping[Language, Mapping[Emotion, int]]


_GEPP_TABLES: Mapping[Modality, str] = {"multimodal": "cedar_table_7", "text": "cedar_table_8"}


@cache
def gold_counts(modality: Modality) -> LabelCounts:
    """Returns Table 4: the number of gold labels by language and emotion (400 items a language, or 1,166 for text)."""
    file = resources.files(__package__) / "published" / "gold_counts.json"
    return cast("dict[Modality, LabelCounts]", json.loads(file.read_text(encoding="utf-8"))["counts"])[modality]


@cache
def published_gepp(modality: Modality) -> Mapping[str, Mapping[Emotion, float]]:
    """Returns Table 7 (multimodal) or 8 (text): GEPP by model and emotion, rounded to two digits."""
    gepp: dict[str, dict[Emotion, float]] = {}
    for cell in load(_GEPP_TABLES[modality]).cells():
        if cell.number:
            gepp.setdefault(cell.keys["model"], {})[cast("Emotion", cell.keys["emotion"])] = cell.number.value
    return gepp


@dataclass(frozen=True, slots=True)
class Difference:
    """One cell in which the data differ from Table 4.

    Attributes:
        language: The data's language.
        emotion: The gold label.
        found: How many items of the data carry it.
        published: How many Table 4 counts.
    """

    language: Language
    emotion: Emotion
    found: int
    published: int


@dataclass(frozen=True, slots=True)
class Table4Comparison:
    """How a data set's gold labels compare with Table 4.

    Attributes:
        modality: The half of the table that was compared.
        items: Items found in each language that has any.
        missing: Languages of Table 4 of which there is no item.
        differences: Every cell that differs, for the languages that were found.
    """

    modality: Modality
    items: Mapping[Language, int]
    missing: tuple[Language, ...]
    differences: tuple[Difference, ...]

    @property
    def complete(self) -> bool:
        """Whether all seven languages are there and every cell agrees."""
        return not self.missing and not self.differences

    def lines(self) -> list[str]:
        """Returns the report as text, one line a language and one a differing cell."""
        report = []
        for language in LANGUAGES:
            if language in self.missing:
                report.append(f"{self.modality} {language}: no items; Table 4 has {_total(self.modality, language)}")
                continue
            cells = [cell for cell in self.differences if cell.language == language]
            verdict = f"{len(cells)} of {len(EMOTIONS)} labels differ" if cells else "as in Table 4"
            total = _total(self.modality, language)
            report.append(f"{self.modality} {language}: {self.items[language]} items of {total}, {verdict}")
            report += [f"  {cell.emotion}: {cell.found}, Table 4 has {cell.published}" for cell in cells]
        return report


def _total(modality: Modality, language: Language) -> int:
    return sum(gold_counts(modality)[language].values())


def count_labels(golds: Iterable[Emotion], languages: Iterable[Language]) -> dict[Language, dict[Emotion, int]]:
    """Counts gold labels by language, as :func:`compare_with_table4` takes them."""
    counts: dict[Language, dict[Emotion, int]] = {}
    for gold, language in zip(golds, languages, strict=True):
        of_language = counts.setdefault(language, dict.fromkeys(EMOTIONS, 0))
        of_language[gold] += 1
    return counts


def compare_with_table4(counts: LabelCounts, modality: Modality) -> Table4Comparison:
    """Compares the gold labels of a data set with Table 4.

    Args:
        counts: Items by language and English gold label; a label without items may be absent.
        modality: Which half of the table the data belong to.
    """
    items = {language: sum(counts[language].values()) for language in LANGUAGES if language in counts}
    items = {language: number for language, number in items.items() if number}
    differences = [
        Difference(language, emotion, counts[language].get(emotion, 0), gold_counts(modality)[language][emotion])
        for language in items
        for emotion in EMOTIONS
        if counts[language].get(emotion, 0) != gold_counts(modality)[language][emotion]
    ]
    missing = tuple(language for language in LANGUAGES if language not in items)
    return Table4Comparison(modality, items, missing, tuple(differences))
