"""``culture-tasks data check cedar``: the questions of both modalities, counted beside Table 4."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import cast

from culture_tasks.benchmarks.cedar.documents import (
    ALIASES,
    FOLDER,
    ITEMS,
    SOURCES,
    CedarRow,
    contradicts,
    gold_label,
    image_name,
    minority_label,
    translated,
)
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    FILE_NAMES,
    LANGUAGES,
    MODALITIES,
    Emotion,
    Language,
    Modality,
)
from culture_tasks.data.checking import Count, DataReport, TableCheck, check_tables
from culture_tasks.data.images import broken_images
from culture_tasks.data.tables import RowTable
from culture_tasks.errors import DataError, DataUnavailableError


@cache
def gold_counts(modality: Modality) -> Mapping[Language, Mapping[Emotion, int]]:
    """Returns Table 4: the number of gold labels by language and emotion (400 items a language, or 1,166 for text)."""
    file = resources.files(__package__) / "gold_counts.json"
    counts = json.loads(file.read_text(encoding="utf-8"))["counts"]
    return cast("Mapping[Language, Mapping[Emotion, int]]", counts[modality])


def check(data_folder: Path | None) -> DataReport:
    """Checks both modalities (:func:`~culture_tasks.data.checking.check_tables`).

    A modality without any file is no problem. Counts that differ from Table 4 are reported and are no problem: the
    public sample has a part of the items.
    """
    folder = (data_folder or Path()) / FOLDER
    report = DataReport(f"cedar: {folder}")
    missing: list[DataUnavailableError] = []
    for modality in MODALITIES:
        questions: dict[Language, Sequence[CedarRow]] = {}
        shown: set[str] = set()
        checks = [
            TableCheck(
                source=SOURCES[modality, language],
                model=CedarRow,
                aliases=ALIASES,
                id="id",
                problems=partial(_problems, language, folder, shown if modality == "multimodal" else None),
                counts=partial(_collect, questions, language),
            )
            for language in LANGUAGES
        ]
        try:
            part = check_tables("cedar", data_folder, checks)
        except DataUnavailableError as error:
            missing.append(error)
            report.counts.append(Count(f"{modality}: files", "0", str(len(LANGUAGES))))
        else:
            report.problems += part.problems
            report.counts += _counts(modality, questions)
    if len(missing) == len(MODALITIES):
        raise missing[0]
    return report


def _problems(
    language: Language, folder: Path, shown: set[str] | None, table: RowTable, rows: Mapping[int, CedarRow]
) -> Iterator[str]:
    """Yields rows with an unknown label, and broken images at the row that shows them first."""
    for index, row in rows.items():
        for label in (gold_label, minority_label):
            try:
                label(row, language, table.where(index))
            except DataError as error:
                yield str(error)
    if shown is not None:
        names = {index: image_name(folder, row) for index, row in rows.items()}
        new = {index: name for index, name in names.items() if name not in shown}
        shown.update(new.values())
        yield from broken_images(table.part(list(new)), list(new.values()), folder)


def _collect(
    questions: dict[Language, Sequence[CedarRow]], language: Language, rows: Sequence[CedarRow]
) -> Sequence[Count]:
    questions[language] = rows
    return ()


def _counts(modality: Modality, questions: Mapping[Language, Sequence[CedarRow]]) -> Iterator[Count]:
    different, unknown, uneven = [], [], []
    everywhere = set.intersection(*({row.id for row in rows} for rows in questions.values()))
    for language, rows in questions.items():
        golds: dict[str, Emotion] = {}
        for row in rows:
            place = f"{row.id!r} in {language}"
            try:
                gold = gold_label(row, language, place)
            except DataError:
                pass
            else:
                golds[row.id] = gold
                different += [place] if contradicts(row, gold, language) else []
            unknown += [place] if translated(row.answer, language) is None else []
            uneven += [place] if row.id not in everywhere else []
        yield from _beside_table_4(list(golds.values()), modality, language)
    for name, places in (
        ("answers that are another label than english_ver_answer", different),
        ("answers that are none of the paper's words", unknown),
        ("ids that not every language has", uneven),
    ):
        yield Count(f"{modality}: {name}", f"{len(places)}{f' (first: id {places[0]})' if places else ''}", "0")


def _beside_table_4(golds: Sequence[Emotion], modality: Modality, language: Language) -> Iterator[Count]:
    """Compares a language with Table 4: all labels of complete data, else those that the paper has fewer of."""
    items, published, name = Counter(golds), gold_counts(modality)[language], f"{modality}: {FILE_NAMES[language]}"
    yield Count(f"{name} items", str(len(golds)), str(ITEMS[modality]))
    for emotion in EMOTIONS:
        is_comparable = len(golds) >= ITEMS[modality] or items[emotion] > published[emotion]
        if is_comparable and items[emotion] != published[emotion]:
            yield Count(f"{name} {emotion}", str(items[emotion]), str(published[emotion]))
