"""Rows: every model once, and once more for each other way in which it was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from culture_tasks.report.comparability import differences, variation
from culture_tasks.report.loading import LoadedRun, by_model
from culture_tasks.report.model import Entrant


@dataclass(frozen=True, slots=True)
class Entered:
    """An entrant with its runs.

    Attributes:
        entrant: The row.
        runs: Its runs, by task.
    """

    entrant: Entrant
    runs: Mapping[str, LoadedRun]


def enter(runs: Sequence[LoadedRun]) -> list[Entered]:
    """Makes rows of runs.

    Of several runs of one model on one task, that one stands in the model's own row which agrees with most other
    models, and then the newest; every other gets a row that says what sets it apart.
    """
    usual = _usual(runs)
    found: list[Entered] = []
    for model, own in by_model(runs).items():
        rows: dict[str, dict[str, LoadedRun]] = {"": {}}
        for task in dict.fromkeys(each.run.task for each in own):
            _place(rows, task, sorted((each for each in own if each.run.task == task), key=usual, reverse=True))
        for text, by_task in rows.items():
            found.append(Entered(Entrant(f"e{len(found) + 1}", model, text), by_task))
    return found


def _place(rows: dict[str, dict[str, LoadedRun]], task: str, candidates: Sequence[LoadedRun]) -> None:
    first = candidates[0]
    rows[""][task] = first
    for other in candidates[1:]:
        text = variation(other.run, first.run)
        if other.result.model != first.result.model:
            text = ", ".join(part for part in (f"model: {other.result.model}", text) if part)
        text = text or f"run of {other.run.date}"
        row = rows.setdefault(text, {})
        while task in row:
            text += f", run of {other.run.date}" if "run of" not in text else f" ({other.run.key})"
            row = rows.setdefault(text, {})
        row[task] = other


class _usual:  # noqa: N801 - used as a function: a key to sort by
    """Sorts a task's runs: judged before not judged, with the most usual settings first, then newest."""

    def __init__(self, runs: Sequence[LoadedRun]) -> None:
        self._kinds: dict[str, list[LoadedRun]] = {}
        self._counts: Counter[str] = Counter()
        models: set[tuple[str, str]] = set()
        for each in runs:
            kind = self._kind(each)
            if (kind, each.run.model) not in models:
                models.add((kind, each.run.model))
                self._counts[kind] += 1

    def _kind(self, each: LoadedRun) -> str:
        """Returns the key of the first run of the same task with the same settings."""
        kinds = self._kinds.setdefault(each.run.task, [])
        for first in kinds:
            if not differences(each.run.settings, first.run.settings):
                return first.run.key
        kinds.append(each)
        return each.run.key

    def __call__(self, each: LoadedRun) -> tuple[bool, bool, int, bool, tuple[str, str]]:
        return (
            each.columns is not None,
            each.run.scored > 0,
            self._counts[self._kind(each)],
            not each.lexical,
            each.order,
        )
