"""The samples behind the numbers of the page, as JSON in it. Nothing in the JSON can end its element or be run."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE
from culture_tasks.report.wording import short_name
from culture_tasks.text import inert

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from culture_tasks.pages.thumbnails import Thumbnails
    from culture_tasks.report.model import Number, Report
    from culture_tasks.results.file_samples import RunRows

Correctness = Literal["wrong", "not scored", "scored", "right"]
CORRECTNESS: tuple[Correctness, ...] = ("wrong", "not scored", "scored", "right")
"""Results of a sample, in the order in which a reader looks for failures."""

# Characters that could end the element, start a comment in it or break a line of a script, or that UTF-8 can't carry.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_FLAGS = tuple(FLAG_TEXT)
_LONGEST_TEXT = 4_000
_MOST_BESIDE = 600
"""Most samples of a task that are kept so that models can be set side by side."""


def correctness(score: float | None, scale: Scale) -> Correctness:
    """Returns whether a score is in the better half of its scale; ``scored`` where the scale has no halves."""
    middle = _middle(scale)
    if score is None or middle is None:
        return "not scored" if score is None else "scored"
    return "right" if (score >= middle if scale.better == "higher" else score <= middle) else "wrong"


def _middle(scale: Scale) -> float | None:
    return None if scale.better is None or scale.ends is None else sum(scale.ends) / 2


def choose_samples(rows: RunRows, scale: Scale, most: int) -> list[int]:
    """Returns the places of samples of a run: up to half of them failures, the worst first, and a fair draw of others.

    In the draw every item has the same chance, and all models have the same items.
    """
    order = np.argsort(_draw(rows.items), kind="stable")
    scores, places, middle = rows.scores[order], rows.places[order], _middle(scale)
    is_failure = np.isnan(scores)
    if middle is not None:
        is_failure |= scores < middle if scale.better == "higher" else scores > middle
    badness = -scores[is_failure] if scale.better == "lower" else scores[is_failure]
    worst_first = np.argsort(badness, kind="stable")  # NaN last
    failures: list[int] = places[is_failure][worst_first[: (most + 1) // 2]].tolist()
    others: list[int] = places[~np.isin(places, failures)][: most - len(failures)].tolist()
    return failures + others


def _draw(items: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Returns a number for each item that looks random and is the same in every run: SplitMix64's, its upper half."""
    mixed = (items.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


class _Index(dict[Any, int]):
    """Numbers values from 0 on, equal ones alike."""

    def __missing__(self, value: Any) -> int:
        return self.setdefault(value, len(self))


class Payload:
    """Collects the data of the page's script while its tables are made; texts that samples share are in it once.

    ``per_cell`` are the most samples of each run behind a cell; ``cut`` counts the selections that have more.
    """

    def __init__(self, report: Report, per_cell: int, thumbnails: Thumbnails) -> None:
        self.per_cell, self.cut = per_cell, 0
        self._report, self._thumbnails, self._scales = report, thumbnails, _scales(report)
        self._cells: list[list[Any]] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._documents, self._groups, self._outcomes = _Index(), _Index(), _Index()
        self._prompts, self._images, self._samples, self._places = _Index(), _Index(), _Index(), _Index()
        self._runs = {run: number for number, run in enumerate(report.runs)}

    def cell(self, cell: Number) -> int | None:
        """Returns a number for the cell's samples, or None where it has none behind it."""
        if not cell.runs or (cell.value is None and not cell.n):
            return None
        selection = self._places[cell.runs, cell.where if cell.samples is None else cell.samples]
        flags = [_FLAGS.index(flag) for flag in cell.flags]
        self._cells.append([selection, cell.n, cell.coverage, flags, cell.note])
        return len(self._cells) - 1

    @property
    def embedded(self) -> int:
        """Number of samples that the page holds."""
        return len(self._samples)

    def json(self) -> str:
        """Returns the data as JSON for a script element that isn't run."""
        selections = [self._selection(*place) for place in self._places]
        self._put_beside()
        labels = self._report.labels
        data = {
            "runs": [
                [labels[key], title_of(run.task), run.settings.judged_by, key, self._scales[key].better == "lower"]
                for key, run in self._report.runs.items()
            ],
            "documents": list(self._documents),
            "groups": list(self._groups),
            "outcomes": list(self._outcomes),
            "correctness": CORRECTNESS,
            "prompts": list(self._prompts),
            "images": list(self._images),
            "samples": list(self._samples),
            "selections": selections,
            "cells": self._cells,
            "flags": [[short_name(flag), text, flag in NOT_COMPARABLE] for flag, text in FLAG_TEXT.items()],
        }
        return inert(safe_json(data))

    def _selection(self, runs: tuple[str, ...], where: tuple[tuple[str, str], ...]) -> list[Any]:
        """Returns the number of samples and their groups, then those that are kept."""
        rows_by_run = {run: self._report.samples.rows(run, where) for run in runs}
        total = sum(len(rows.places) for rows in rows_by_run.values())
        kept: list[int] = []
        for run, rows in rows_by_run.items():
            kept += self._numbers_of(run, choose_samples(rows, self._scales[run], self.per_cell))
        self.cut += total > len(kept)
        return [total, where, kept]

    def _put_beside(self) -> None:
        """Keeps of every task the same items of all models, as far as there is room: failures of some model first."""
        tasks: dict[str, list[str]] = {}
        for key, run in self._report.runs.items():
            tasks.setdefault(run.task, []).append(key)
        for runs in tasks.values() if self.per_cell else ():
            rows_by_run = {key: self._report.samples.rows(key) for key in runs}
            chosen = {key: choose_samples(rows, self._scales[key], self.per_cell) for key, rows in rows_by_run.items()}
            items = [rows.items[np.isin(rows.places, chosen[key])] for key, rows in rows_by_run.items()]
            candidates, counts = np.unique(np.concatenate(items), return_counts=True)
            order = np.lexsort((_draw(candidates), -counts))[: _MOST_BESIDE // len(runs)]
            for key, rows in rows_by_run.items() if len(runs) > 1 else ():
                self._numbers_of(key, rows.places[np.isin(rows.items, candidates[order])].tolist())

    def _numbers_of(self, run: str, places: list[int]) -> list[int]:
        """Returns the numbers of samples, which are read where they are new."""
        new = [place for place in places if (run, place) not in self._numbers]
        for sample in self._report.samples.read(run, new) if new else ():
            address = self._thumbnails.address(sample.image)
            document = (
                sample.item,
                _shorten(sample.question),
                tuple(map(_shorten, sample.references)),
                self._groups[tuple(sample.groups.items())],
                -1 if address is None else self._images[address],
            )
            self._numbers[run, sample.place] = self._samples[
                self._runs[run],
                sample.place,
                self._documents[document],
                _shorten(sample.response),
                self._outcomes[sample.outcome],
                sample.score,
                CORRECTNESS.index(correctness(sample.score, self._scales[run])),
                None if sample.rationale is None else _shorten(sample.rationale),
                sample.doubt,
                -1 if sample.prompt is None else self._prompts[_shorten(sample.prompt)],
            ]
        return [self._numbers[run, place] for place in places]


def _scales(report: Report) -> dict[str, Scale]:
    scales = {run: unit.scale for unit in report.units.values() for cell in unit.cells.values() for run in cell.runs}
    return {run: scales.get(run, Scale("unknown", better=None)) for run in report.runs}


def _shorten(text: str) -> str:
    """Returns a text as the page holds it: longer ones are cut at 4,000 characters, and say how many are missing."""
    excess = len(text) - _LONGEST_TEXT
    return text if excess <= 0 else f"{text[:_LONGEST_TEXT]}… ({excess:,} more characters are in the sample file)"


def safe_json(data: Any) -> str:
    """Returns JSON without any character that HTML or UTF-8 could stumble over; none of them is lost."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
