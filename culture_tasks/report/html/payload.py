"""The samples behind the cells, as JSON that a page can hold: nothing in it can end the script element or be run."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE
from culture_tasks.report.text.wording import short_name

if TYPE_CHECKING:
    from culture_tasks.report.html.thumbnails import Thumbnails
    from culture_tasks.report.model import Cell, Report
    from culture_tasks.report.runs import Sample

_logger = logging.getLogger(__name__)

# What could end the element, start a comment in it or break a line of a script, and what UTF-8 can't carry.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_LONGEST_TEXT = 4_000
_FLAGS = tuple(FLAG_TEXT)

Selection = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


class Index:
    """Numbers values from 0 on, equal ones alike."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        """Returns the number of a value."""
        return self._places.setdefault(value, len(self._places))

    @property
    def values(self) -> list[Any]:
        """The values in the order of their numbers."""
        return list(self._places)


@dataclass(slots=True)
class Payload:
    """Collects what the page's script needs while the page's tables are made.

    Texts that samples share stand in it once: a document is the same for all models.

    Attributes:
        report: The report.
        per_cell: Most samples that are kept of each run behind a cell.
        thumbnails: Images of samples.
    """

    report: Report
    per_cell: int
    thumbnails: Thumbnails
    cells: list[list[Any]] = field(default_factory=list)
    _selections: dict[Selection, tuple[int, int, list[int]]] = field(default_factory=dict)
    _unreadable: set[str] = field(default_factory=set)
    _runs: Index = field(default_factory=Index)
    _documents: Index = field(default_factory=Index)
    _groups: Index = field(default_factory=Index)
    _outcomes: Index = field(default_factory=Index)
    _images: Index = field(default_factory=Index)
    _samples: Index = field(default_factory=Index)

    def cell(self, cell: Cell) -> int | None:
        """Returns a number for the cell's samples, or None where it has none behind it."""
        if not cell.runs or (cell.value is None and not cell.n):
            return None
        key = (cell.runs, cell.where)
        if key not in self._selections:
            self._selections[key] = (len(self._selections), *self._collected(*key))
        flags = [_FLAGS.index(flag) for flag in cell.flags]
        self.cells.append([self._selections[key][0], cell.n, cell.coverage, flags, cell.note])
        return len(self.cells) - 1

    @property
    def embedded(self) -> int:
        """Number of samples that the page holds."""
        return len(self._samples.values)

    @property
    def cut(self) -> int:
        """Number of selections of which the page holds only the first samples."""
        return sum(total > len(kept) for _, total, kept in self._selections.values())

    def json(self) -> str:
        """Returns the data as JSON for a script element that isn't run."""
        names = self._row_names()
        data = {
            "runs": [[names.get(key, ""), *self._run(key)] for key in self._runs.values],
            "documents": self._documents.values,
            "groups": self._groups.values,
            "outcomes": self._outcomes.values,
            "images": self._images.values,
            "samples": self._samples.values,
            "selections": [[total, kept] for _, total, kept in self._selections.values()],
            "cells": self.cells,
            "flags": [[short_name(flag), text, flag in NOT_COMPARABLE] for flag, text in FLAG_TEXT.items()],
        }
        return safe_json(data)

    def _collected(self, runs: tuple[str, ...], where: tuple[tuple[str, str], ...]) -> tuple[int, list[int]]:
        total = sum(self.report.samples.count(run, where) for run in runs)
        return total, [self._place(sample) for run in runs for sample in self._read(run, where)]

    def _read(self, run: str, where: tuple[tuple[str, str], ...]) -> list[Sample]:
        """Reads the first samples; a file that has gone since the report was made leaves its cells without any."""
        if run in self._unreadable:
            return []
        try:
            return list(self.report.samples.read(run, where, self.per_cell))
        except OSError as error:
            self._unreadable.add(run)
            _logger.warning("html: no samples of %s: %s", run, error)
            return []

    def _place(self, sample: Sample) -> int:
        address = self.thumbnails.address(sample.image)
        document = (
            sample.item,
            shortened(sample.question),
            tuple(shortened(text) for text in sample.references),
            self._groups.place(tuple(sample.groups.items())),
            -1 if address is None else self._images.place(address),
        )
        rationale = None if sample.rationale is None else shortened(sample.rationale)
        return self._samples.place(
            (
                self._runs.place(sample.run),
                self._documents.place(document),
                shortened(sample.response),
                self._outcomes.place(sample.outcome),
                sample.score,
                rationale,
            )
        )

    def _run(self, key: str) -> list[str]:
        run = self.report.runs[key]
        return [run.model, run.task, run.settings.judged_by]

    def _row_names(self) -> dict[str, str]:
        """Returns the label of the row that each run belongs to."""
        return {
            run: self.report.entrants[entrant].label
            for unit in self.report.units.values()
            for entrant, cell in unit.cells.items()
            for run in cell.runs
        }


def shortened(text: str) -> str:
    """Returns a text as the page holds it: what is longer than 4,000 characters is cut, and says by how much."""
    more = len(text) - _LONGEST_TEXT
    return text if more <= 0 else f"{text[:_LONGEST_TEXT]}… ({more:,} more characters are in the sample file)"


def safe_json(data: Any) -> str:
    """Returns JSON without any character that HTML or UTF-8 could stumble over; none of them is lost."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
