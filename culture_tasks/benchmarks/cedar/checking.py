"""``culture-tasks data check cedar``: all that is wrong with the data at once, and the counts of Table 4."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple, cast

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
from culture_tasks.data.images import image_column
from culture_tasks.data.releases import contradictions
from culture_tasks.data.report import Line, Report
from culture_tasks.data.sources import read_source
from culture_tasks.data.tables import Table, unique, validated
from culture_tasks.errors import DataError, DataUnavailableError


@cache
def gold_counts(modality: Modality) -> Mapping[Language, Mapping[Emotion, int]]:
    """Returns Table 4: the number of gold labels by language and emotion (400 items a language, or 1,166 for text)."""
    file = resources.files(__package__) / "gold_counts.json"
    return cast(
        "dict[Modality, Mapping[Language, Mapping[Emotion, int]]]",
        json.loads(file.read_text(encoding="utf-8"))["counts"],
    )[modality]


class Difference(NamedTuple):
    """One cell in which the data differ from Table 4.

    Attributes:
        emotion: The gold label.
        found: How many items of the data carry it.
        published: How many Table 4 counts.
    """

    emotion: Emotion
    found: int
    published: int


def differences(golds: Iterable[Emotion], modality: Modality, language: Language) -> list[Difference]:
    """Compares the gold labels of a language's items with Table 4."""
    found, published = Counter(golds), gold_counts(modality)[language]
    return [
        Difference(emotion, found[emotion], published[emotion])
        for emotion in EMOTIONS
        if found[emotion] != published[emotion]
    ]


@dataclass
class _Language:
    """What one language's file holds.

    Attributes:
        table: The rows as read.
        rows: Those that can be used, with their places in the table.
        golds: Gold label of each of them.
        problems: What is wrong with the others.
    """

    table: Table
    rows: dict[int, CedarRow] = field(default_factory=dict)
    golds: dict[int, Emotion] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


_Found = Mapping[Language, _Language]


def check(data_folder: Path | None) -> Report:
    """Checks whichever modalities are there, without stopping at the first problem.

    A language without a file is a problem, since the pooled tasks can't run; a modality without any is none. Counts
    that differ from Table 4 are reported and are no problem: the public sample has a part of the items.

    Args:
        data_folder: The user's data folder; CEDAR is not on the Hub.

    Raises:
        DataError: If there is no file of either modality.
    """
    folder = (data_folder or Path()) / FOLDER
    report = Report(f"cedar: {folder}")
    absent: list[DataUnavailableError] = []
    for modality in MODALITIES:
        found, missing, problems = _read_all(modality, data_folder)
        if len(missing) == len(LANGUAGES):
            report.lines.append(Line(f"{modality}: files", "0", str(len(LANGUAGES))))
            absent.append(missing[0])
            continue
        report.problems += [*map(str, missing), *problems, *(line for one in found.values() for line in one.problems)]
        report.lines += _lines(modality, found) if found else ()
        if modality == "multimodal":
            broken = list(_broken_images(found, folder))
            report.lines.append(Line("multimodal: images missing or broken", str(len(broken)), "0"))
            report.problems += broken
    if len(absent) == len(MODALITIES):
        raise absent[0]
    return report


class _Files(NamedTuple):
    """The files of a modality: what those hold that can be read, and what is wrong with the others."""

    found: dict[Language, _Language]
    missing: list[DataUnavailableError]
    problems: list[str]


def _read_all(modality: Modality, data_folder: Path | None) -> _Files:
    files = _Files({}, [], [])
    for language in LANGUAGES:
        try:
            table = read_source(SOURCES[modality, language], data_folder)
        except DataUnavailableError as error:
            files.missing.append(error)
        except DataError as error:
            files.problems.append(str(error))
        else:
            files.found[language] = _read(table, language)
            values = {index: vars(row) for index, row in files.found[language].rows.items()}
            files.problems.extend(contradictions(SOURCES[modality, language].release, table, values))
    return files


def _read(table: Table, language: Language) -> _Language:
    read = _Language(table)
    for index in range(len(table.rows)):
        try:
            (row,) = validated(table.part([index]), CedarRow, ALIASES)
            read.golds[index] = gold_label(row, language, table.where(index))
            read.rows[index] = row
            minority_label(row, language, table.where(index))
        except DataError as error:
            read.problems.append(str(error))
    read.problems = list(dict.fromkeys(read.problems))  # a column that is wrong is so in every row
    try:
        list(unique(table.part(list(read.rows)), (row.id for row in read.rows.values()), "id"))
    except DataError as error:
        read.problems.append(str(error))
    return read


def _lines(modality: Modality, found: _Found) -> Iterator[Line]:
    for language, one in found.items():
        yield from _table4_lines(list(one.golds.values()), modality, language)
    different = [_where(one, language, contradicting=True) for language, one in found.items()]
    unknown = [_where(one, language, contradicting=False) for language, one in found.items()]
    yield _counted(f"{modality}: answers that are another label than english_ver_answer", different)
    yield _counted(f"{modality}: answers that are none of the paper's words", unknown)
    ids = {language: {row.id for row in one.rows.values()} for language, one in found.items()}
    everywhere = set.intersection(*ids.values())
    uneven = [[f"{one!r} in {language}" for one in sorted(ids[language] - everywhere)] for language in ids]
    yield _counted(f"{modality}: ids that not every language has", uneven)


def _table4_lines(golds: Sequence[Emotion], modality: Modality, language: Language) -> Iterator[Line]:
    """Compares a language with Table 4: all labels of complete data, else those that the paper has fewer of."""
    published = ITEMS[modality]
    yield Line(f"{modality}: {FILE_NAMES[language]} items", str(len(golds)), str(published))
    for cell in differences(golds, modality, language):
        if len(golds) >= published or cell.found > cell.published:
            yield Line(f"{modality}: {FILE_NAMES[language]} {cell.emotion}", str(cell.found), str(cell.published))


def _where(one: _Language, language: Language, *, contradicting: bool) -> list[str]:
    """Returns the places of rows whose answer contradicts the gold label, or is an unknown word."""
    return [
        one.table.where(index)
        for index, row in one.rows.items()
        if (contradicts(row, one.golds[index], language) if contradicting else translated(row.answer, language) is None)
    ]


def _counted(name: str, places: Sequence[Sequence[str]]) -> Line:
    together = [place for some in places for place in some]
    first = f" (first: {together[0]})" if together else ""
    return Line(name, f"{len(together)}{first}", "0")


def _broken_images(found: _Found, folder: Path) -> Iterator[str]:
    """Checks each image once, at the row that shows it first, and says what is wrong with it."""
    shown: dict[str, tuple[Table, int]] = {}
    for one in found.values():
        for index, row in one.rows.items():
            shown.setdefault(image_name(folder, row), (one.table, index))
    for name, (table, index) in shown.items():
        try:
            image_column(table.part([index]), [name], folder)
        except DataError as error:
            yield str(error)
