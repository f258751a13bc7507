"""The samples behind the cells, as JSON that a page can hold: nothing in it can end the script element or be run."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.html.choosing import CORRECTNESS, chosen, correctness, draw
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE
from culture_tasks.report.text.wording import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from culture_tasks.report.html.thumbnails import Thumbnails
    from culture_tasks.report.model import Cell, Report
    from culture_tasks.report.runs import Sample

_logger = logging.getLogger(__name__)

# What could end the element, start a comment in it or break a line of a script, and what UTF-8 can't carry.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_LONGEST_TEXT = 4_000
_FLAGS = tuple(FLAG_TEXT)
TEXTS_IN_A_FILE = 250
IMAGES_IN_A_FILE = 100
"""How many samples' texts, and how many images, a file beside the page holds."""

_MOST_BESIDE = 600
"""Most samples of a task that are kept so that models can be set side by side."""

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


class Row(NamedTuple):
    """What the page must know of a run.

    Attributes:
        label: The label of its row in the tables.
        scale: The scale of its samples' scores.
    """

    label: str
    scale: Scale


def rows_of(report: Report) -> dict[str, Row]:
    """Returns the row that each run belongs to, in the order of the runs."""
    found = {
        run: Row(report.entrants[entrant].label, unit.scale)
        for unit in report.units.values()
        for entrant, cell in unit.cells.items()
        for run in cell.runs
    }
    return {key: found.get(key, Row(run.model, Scale("unknown", better=None))) for key, run in report.runs.items()}


@dataclass(slots=True)
class Payload:
    """Collects what the page's script needs while the page's tables are made.

    Texts that samples share stand in it once: a document is the same for all models.

    Attributes:
        report: The report.
        per_cell: Most samples that are kept of each run behind a cell; None where all of them lie in files beside the
            page.
        thumbnails: Images of samples.
        folder: Name of the folder with these files.
    """

    report: Report
    per_cell: int | None
    thumbnails: Thumbnails
    folder: str = ""
    cells: list[list[Any]] = field(default_factory=list)
    _rows: Mapping[str, Row] = field(init=False)
    _selections: dict[Selection, tuple[int, list[Any]]] = field(default_factory=dict)
    _cut: int = 0
    _unreadable: set[str] = field(default_factory=set)
    _read: dict[tuple[str, int], int] = field(default_factory=dict)
    _runs: Index = field(default_factory=Index)
    _documents: Index = field(default_factory=Index)
    _groups: Index = field(default_factory=Index)
    _outcomes: Index = field(default_factory=Index)
    _prompts: Index = field(default_factory=Index)
    _images: Index = field(default_factory=Index)
    _samples: Index = field(default_factory=Index)

    def __post_init__(self) -> None:
        self._rows = rows_of(self.report)
        for run in self._rows:
            self._runs.place(run)

    def cell(self, cell: Cell) -> int | None:
        """Returns a number for the cell's samples, or None where it has none behind it."""
        if not cell.runs or (cell.value is None and not cell.n):
            return None
        key = (cell.runs, cell.where)
        if key not in self._selections:
            self._selections[key] = (len(self._selections), self._selection(*key))
        flags = [_FLAGS.index(flag) for flag in cell.flags]
        self.cells.append([self._selections[key][0], cell.n, cell.coverage, flags, cell.note])
        return len(self.cells) - 1

    @property
    def embedded(self) -> int:
        """Number of samples that the page holds."""
        return len(self._samples.values)

    @property
    def cut(self) -> int:
        """Number of selections of which the page holds only some samples."""
        return self._cut

    def json(self) -> str:
        """Returns the data as JSON for a script element that isn't run."""
        self._put_beside()
        data = {
            "folder": self.folder,
            "texts_in_a_file": TEXTS_IN_A_FILE,
            "images_in_a_file": IMAGES_IN_A_FILE,
            "runs": [self._run(key) for key in self._runs.values],
            "documents": self._documents.values,
            "groups": self._groups.values,
            "outcomes": self._outcomes.values,
            "correctness": CORRECTNESS,
            "prompts": self._prompts.values,
            "images": self._images.values,
            "samples": self._samples.values,
            "selections": [selection for _, selection in self._selections.values()],
            "cells": self.cells,
            "flags": [[short_name(flag), text, flag in NOT_COMPARABLE] for flag, text in FLAG_TEXT.items()],
        }
        return safe_json(data)

    def _selection(self, runs: tuple[str, ...], where: tuple[tuple[str, str], ...]) -> list[Any]:
        """Returns the number of samples and where they are found, then the failures and the fair draw that are kept."""
        rows = {run: self.report.samples.rows(run, where) for run in runs}
        total = sum(len(each.places) for each in rows.values())
        found: list[Any] = [total, [self._runs.place(run) for run in runs], where]
        if self.per_cell is None:
            return found
        failures: list[int] = []
        fair: list[int] = []
        for run, each in rows.items():
            kept = chosen(each, self._rows[run].scale, self.per_cell) if run in self._rows else None
            if kept is not None:
                failures += self._placed(run, kept.failures)
                fair += self._placed(run, kept.fair)
        self._cut += total > len({*failures, *fair})
        return [*found, failures, fair]

    def _placed(self, run: str, places: Iterable[int]) -> list[int]:
        """Returns the numbers of samples; those that are gone since the report was made are left out."""
        wanted = [place for place in places if (run, place) not in self._read]
        for sample in self._texts(run, wanted):
            self._read[run, sample.place] = self._place(sample)
        return [self._read[run, place] for place in places if (run, place) in self._read]

    def _texts(self, run: str, places: list[int]) -> Iterator[Sample]:
        """Reads samples; a file that has gone since the report was made leaves its cells without any."""
        if run in self._unreadable or not places:
            return
        try:
            yield from self.report.samples.read(run, places)
        except OSError as error:
            self._unreadable.add(run)
            _logger.warning("html: no samples of %s: %s", run, error)

    def _put_beside(self) -> None:
        """Keeps of every task the same items of all models, as far as there is room: what some model failed first."""
        if not self.per_cell:
            return
        tasks: dict[str, list[str]] = {}
        for key in self._rows:
            tasks.setdefault(self.report.runs[key].task, []).append(key)
        for runs in tasks.values():
            rows = {run: self.report.samples.rows(run) for run in runs}
            kept = {run: chosen(each, self._rows[run].scale, self.per_cell) for run, each in rows.items()}
            items = [_items_at(rows[run], [*each.failures, *each.fair]) for run, each in kept.items()]
            if len(runs) < 2 or not any(each.size for each in items):
                continue
            found, counts = np.unique(np.concatenate(items), return_counts=True)
            order = np.lexsort((draw(found), -counts))[: _MOST_BESIDE // len(runs)]
            for run in runs:
                self._placed(run, rows[run].places[np.isin(rows[run].items, found[order])].tolist())

    def _place(self, sample: Sample) -> int:
        address = self.thumbnails.address(sample.image)
        document = (
            sample.item,
            shortened(sample.question),
            tuple(shortened(text) for text in sample.references),
            self._groups.place(tuple(sample.groups.items())),
            -1 if address is None else self._images.place(address),
        )
        return self._samples.place(
            (
                self._runs.place(sample.run),
                sample.place,
                self._documents.place(document),
                shortened(sample.response),
                self._outcomes.place(sample.outcome),
                sample.score,
                CORRECTNESS.index(correctness(sample.score, self._rows[sample.run].scale)),
                None if sample.rationale is None else shortened(sample.rationale),
                sample.doubt,
                -1 if sample.prompt is None else self._prompts.place(shortened(sample.prompt)),
            )
        )

    def _run(self, key: str) -> list[Any]:
        run, row = self.report.runs[key], self._rows[key]
        return [row.label, run.task, run.settings.judged_by, key, row.scale.better == "lower"]


def _items_at(rows: Any, places: list[int]) -> NDArray[np.int32]:
    found: NDArray[np.int32] = rows.items[np.isin(rows.places, places)]
    return found


def shortened(text: str) -> str:
    """Returns a text as the page holds it: what is longer than 4,000 characters is cut, and says by how much."""
    more = len(text) - _LONGEST_TEXT
    return text if more <= 0 else f"{text[:_LONGEST_TEXT]}… ({more:,} more characters are in the sample file)"


def safe_json(data: Any) -> str:
    """Returns JSON without any character that HTML or UTF-8 could stumble over; none of them is lost."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
