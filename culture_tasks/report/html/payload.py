"""The samples behind the cells, as JSON that a page can hold: nothing in it can end the script element or be run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.report.html.choosing import CORRECTNESS, chosen, correctness, draw
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE
from culture_tasks.report.wording import short_name

if TYPE_CHECKING:
    from culture_tasks.pages.thumbnails import Thumbnails
    from culture_tasks.report.model import Cell, Report
    from culture_tasks.results.runs import Sample

# Characters that could end the element, start a comment in it or break a line of a script, or that UTF-8 can't carry.
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


class RunRow(NamedTuple):
    """A run as the page shows it.

    Attributes:
        label: The label of its row in the tables.
        scale: The scale of its samples' scores.
    """

    label: str
    scale: Scale


def rows_of_runs(report: Report) -> dict[str, RunRow]:
    """Returns every run by its key, in the order of the runs."""
    found = {
        run: RunRow(report.entrants[entrant].label, unit.scale)
        for unit in report.units.values()
        for entrant, cell in unit.cells.items()
        for run in cell.runs
    }
    return {key: found.get(key, RunRow(run.model, Scale("unknown", better=None))) for key, run in report.runs.items()}


class Payload:
    """Collects the data of the page's script while the page's tables are made.

    Texts that samples share are in it once: a document is the same for all models.

    Attributes:
        per_cell: Most samples that are kept of each run behind a cell; None where all of them lie in files beside the
            page.
        folder: Name of the folder with these files.
        cut: Number of selections of which the page holds only some samples.
    """

    def __init__(self, report: Report, per_cell: int | None, thumbnails: Thumbnails, folder: str = "") -> None:
        """Begins without any sample.

        Args:
            report: The report.
            per_cell: Most samples that are kept of each run behind a cell.
            thumbnails: Images of samples.
            folder: Name of the folder with all samples.
        """
        self.per_cell, self.folder, self.cut = per_cell, folder, 0
        self._report, self._thumbnails, self._rows = report, thumbnails, rows_of_runs(report)
        self._cells: list[list[Any]] = []
        self._selections: dict[Selection, tuple[int, list[Any]]] = {}
        self._numbers: dict[tuple[str, int], int] = {}
        self._documents, self._groups, self._outcomes = Index(), Index(), Index()
        self._prompts, self._images, self._samples, self._runs = Index(), Index(), Index(), Index()
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
        self._cells.append([self._selections[key][0], cell.n, cell.coverage, flags, cell.note])
        return len(self._cells) - 1

    @property
    def embedded(self) -> int:
        """Number of samples that the page holds."""
        return len(self._samples.values)

    def json(self) -> str:
        """Returns the data as JSON for a script element that isn't run."""
        self._put_beside()
        runs = [(self._report.runs[key], row) for key, row in self._rows.items()]
        data = {
            "folder": self.folder,
            "texts_in_a_file": TEXTS_IN_A_FILE,
            "images_in_a_file": IMAGES_IN_A_FILE,
            "runs": [
                [row.label, run.task, run.settings.judged_by, run.key, row.scale.better == "lower"] for run, row in runs
            ],
            "documents": self._documents.values,
            "groups": self._groups.values,
            "outcomes": self._outcomes.values,
            "correctness": CORRECTNESS,
            "prompts": self._prompts.values,
            "images": self._images.values,
            "samples": self._samples.values,
            "selections": [selection for _, selection in self._selections.values()],
            "cells": self._cells,
            "flags": [[short_name(flag), text, flag in NOT_COMPARABLE] for flag, text in FLAG_TEXT.items()],
        }
        return safe_json(data)

    def _selection(self, runs: tuple[str, ...], where: tuple[tuple[str, str], ...]) -> list[Any]:
        """Returns the number of samples and where they are found, then the failures and the fair draw that are kept."""
        rows = {run: self._report.samples.rows(run, where) for run in runs}
        total = sum(len(each.places) for each in rows.values())
        found: list[Any] = [total, [self._runs.place(run) for run in runs], where]
        if self.per_cell is None:
            return found
        failures: list[int] = []
        fair: list[int] = []
        for run, each in rows.items():
            kept = chosen(each, self._rows[run].scale, self.per_cell)
            failures += self._placed(run, kept.failures)
            fair += self._placed(run, kept.fair)
        self.cut += total > len({*failures, *fair})
        return [*found, failures, fair]

    def _placed(self, run: str, places: list[int]) -> list[int]:
        """Returns the numbers of samples, which are read where they are new."""
        new = [place for place in places if (run, place) not in self._numbers]
        for sample in self._report.samples.read(run, new) if new else ():
            self._numbers[run, sample.place] = self._place(sample)
        return [self._numbers[run, place] for place in places]

    def _put_beside(self) -> None:
        """Keeps of every task the same items of all models, as far as there is room: failures of some model first."""
        if not self.per_cell:
            return
        tasks: dict[str, list[str]] = {}
        for key in self._rows:
            tasks.setdefault(self._report.runs[key].task, []).append(key)
        for runs in tasks.values():
            rows = {run: self._report.samples.rows(run) for run in runs}
            kept = {run: chosen(each, self._rows[run].scale, self.per_cell) for run, each in rows.items()}
            items = [
                rows[run].items[np.isin(rows[run].places, [*some.failures, *some.fair])] for run, some in kept.items()
            ]
            if len(runs) < 2 or not any(each.size for each in items):
                continue
            found, counts = np.unique(np.concatenate(items), return_counts=True)
            order = np.lexsort((draw(found), -counts))[: _MOST_BESIDE // len(runs)]
            for run in runs:
                self._placed(run, rows[run].places[np.isin(rows[run].items, found[order])].tolist())

    def _place(self, sample: Sample) -> int:
        address = self._thumbnails.address(sample.image)
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


def shortened(text: str) -> str:
    """Returns a text as the page holds it: longer ones are cut at 4,000 characters, and say how many are missing."""
    more = len(text) - _LONGEST_TEXT
    return text if more <= 0 else f"{text[:_LONGEST_TEXT]}… ({more:,} more characters are in the sample file)"


def safe_json(data: Any) -> str:
    """Returns JSON without any character that HTML or UTF-8 could stumble over; none of them is lost."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
