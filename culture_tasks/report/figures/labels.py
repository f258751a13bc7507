"""Names of rows, panels, series and groups in figures."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.cedar.labels import QUADRANT_NAMES
from culture_tasks.report.figures.names import cleaned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culture_tasks.report.model import GroupValue, Report

_CODES = frozenset({"language", "partition", "pair"})
_ABBREVIATIONS = frozenset({"usa", "us", "uk"})
QUADRANTS: dict[str, str] = {name: f"Q{number}" for number, name in enumerate(QUADRANT_NAMES, start=1)}
"""How the paper's figures call the quadrants."""
_STEP = re.compile(r"_(?P<partition>[a-z]{2})_after_(?P<after>\d+)$")
_MARK = " †"


class Labels:
    """Names of what a figure's numbers belong to."""

    def __init__(self, report: Report, values: Sequence[GroupValue]) -> None:
        """Looks for rows that can't be compared.

        Args:
            report: The report.
            values: The figure's numbers.
        """
        self._report = report
        self._marked = {value.entrant for value in values if not value.cell.comparable}
        drawn = {value.entrant for value in values}
        rows = {key: row for key, row in report.entrants.items() if key in drawn or not row.published}
        self._names = _told_apart({key: cleaned(row.label) for key, row in rows.items()})

    def entrant(self, value: GroupValue) -> str:
        """Returns the name of the number's row, marked where some of the row's numbers can't be compared."""
        return self._names[value.entrant] + (_MARK if value.entrant in self._marked else "")

    def unit(self, value: GroupValue) -> str:
        """Returns the title of the number's unit."""
        return cleaned(self._report.units[value.unit].title)

    def unit_and_held(self, value: GroupValue) -> str:
        """Returns the unit's title, with what else is held fixed."""
        return " · ".join((self.unit(value), *_held(value).values()))

    def dimension(self, value: GroupValue) -> str:
        """Returns what the groups are."""
        return f"By {value.dimension}"

    def modality(self, value: GroupValue) -> str:
        """Returns the subset of CEDAR that the number belongs to."""
        return "Multimodal" if "multimodal" in value.unit else "Text-only"

    def modality_and_group(self, value: GroupValue) -> str:
        """Returns the subset of CEDAR, with the group."""
        return f"{self.modality(value)} · {self.group(value)}"

    def entrant_and_language(self, value: GroupValue) -> str:
        """Returns the row's name, with the language that is held fixed."""
        return f"{self.entrant(value)} · {self.language(value)}"

    def entrant_and_modality(self, value: GroupValue) -> str:
        """Returns the row's name, with the subset of CEDAR."""
        return f"{self.entrant(value)} · {self.modality(value).lower()}"

    def entrant_and_chain(self, value: GroupValue) -> str:
        """Returns the row's name, with the chain of insertions that the unit's key names."""
        chain = _STEP.sub("", value.unit).removeprefix("crosscult_retention").strip("_")
        return " · ".join(filter(None, (self.entrant(value), chain.replace("_", "→").upper())))

    def partition(self, value: GroupValue) -> str:
        """Returns the partition that was inserted: what is held fixed, or what the unit's key names."""
        step = _STEP.search(value.unit)
        return _held(value).get("partition") or (step["partition"].upper() if step else self.unit(value))

    def language(self, value: GroupValue) -> str:
        """Returns the language that is held fixed, or the unit's title."""
        return _held(value).get("language") or self.unit(value)

    def group(self, value: GroupValue) -> str:
        """Returns the group's name."""
        return group_name(value.dimension, value.group)

    def prompt(self, value: GroupValue) -> str:
        """Returns the prompt language of a pair."""
        return self.group(value).partition("/")[0]

    def data(self, value: GroupValue) -> str:
        """Returns the data language of a pair."""
        return self.group(value).partition("/")[2]

    def metric(self, values: Sequence[GroupValue]) -> str:
        """Returns what the numbers are, with their unit."""
        first = values[0]
        of_paper = first.statistic.upper().replace("_", "-")
        name = self._report.units[first.unit].metric if first.statistic == "score" else of_paper
        return f"{cleaned(name)} ({cleaned(first.cell.scale.unit)})"


def group_name(dimension: str, group: str) -> str:
    """Returns a group as it is written in a figure: codes in capitals, words with a capital, quadrants as Q1 to Q4."""
    words = cleaned(group.replace("_", " "))
    if dimension in _CODES or words in _ABBREVIATIONS:
        return words.upper()
    if dimension == "quadrant":
        return QUADRANTS.get(words, words)
    return words if dimension == "emotion" or not words.islower() else words.title()


def _held(value: GroupValue) -> dict[str, str]:
    """Returns what is held fixed beside the group, by field, as it is written in a figure."""
    return {field: group_name(field, text) for field, text in value.cell.where if field != value.dimension}


def _told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """Numbers names that look alike, so that no row is drawn as part of another."""
    seen: Counter[str] = Counter()
    found: dict[str, str] = {}
    for key, name in names.items():
        seen[name] += 1
        found[key] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return found
