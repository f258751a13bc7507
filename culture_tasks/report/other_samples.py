"""The samples of tasks that aren't ours, for paired tests: the score of each item, where their mean is the result.

A harness logs a task's metrics with each sample. Whether they are scores whose mean is the result, or parts of some
other statistic, isn't said; so a file counts only where the mean over all of its samples is the number that the harness
worked out.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from culture_tasks.benchmarks.reporting import Codes, Floats
from culture_tasks.errors import DataError
from culture_tasks.report.loaded_runs import LoadedRun
from culture_tasks.report.observations import is_same_number
from culture_tasks.results.columns import Codebook, Columns
from culture_tasks.results.samples import samples_of


class Tested(NamedTuple):
    """Runs with the samples that a score is the mean of.

    Attributes:
        runs: The runs, one for each task of a group.
        equal_parts: Whether the tasks weigh the same in the mean, rather than the items.
    """

    runs: tuple[LoadedRun, ...]
    equal_parts: bool


class OtherSamples:
    """Reads the samples of tasks that aren't ours, with one numbering of items for all tasks and runs."""

    def __init__(self) -> None:
        self._codes: Codebook = {}
        self._files: dict[Path, Mapping[str, _Scores]] = {}

    def behind(self, each: LoadedRun, metric: str, others: Mapping[str, LoadedRun], times: float) -> Tested | None:
        """Returns the runs with the samples that a score is the mean of; None where there are none.

        Args:
            each: The run of a task or group.
            metric: The metric.
            others: All runs of its model, by task, for the members of groups.
            times: What the scores are multiplied by.
        """
        wanted = each.result.metrics.get(metric, math.nan)
        parts = list(dict.fromkeys(_leaves(each.run.task, others)))
        runs = [others[task] for task in parts if task in others]
        scores = [found for run in runs if (found := self._scores(run, metric)) is not None]
        if not runs or len(runs) < len(parts) or len(scores) < len(runs) or math.isnan(wanted):
            return None
        whole = float(np.mean(np.concatenate([own.values for own in scores])))
        equal = float(np.mean([own.values.mean() for own in scores]))
        near = [is_same_number(wanted, mean) for mean in (whole, equal)]
        if not any(near):
            return None
        columns = tuple(replace(run, columns=_columns(own, times)) for run, own in zip(runs, scores, strict=True))
        return Tested(columns, equal_parts=not near[0])

    def _scores(self, each: LoadedRun, metric: str) -> _Scores | None:
        path = each.result.samples_file
        if path not in self._files:
            self._files[path] = dict(_read(each, self._codes))
        return self._files[path].get(metric)


class _Scores(NamedTuple):
    """The items of a file, numbered, with a score each."""

    items: Codes
    values: Floats


def _leaves(task: str, others: Mapping[str, LoadedRun], above: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yields the tasks below a group, or a task itself."""
    members: Sequence[str] = others[task].result.members if task in others else ()
    for member in members or (task,):
        if member in (task, *above) or not members:
            yield member
        else:
            yield from _leaves(member, others, above | {task})


def _read(each: LoadedRun, codes: Codebook) -> Iterator[tuple[str, _Scores]]:
    """Yields the scores of each metric; none of a metric that a sample has no number for, or an item twice."""
    labels = {label: label.partition(",")[::2] for label in each.result.metrics}
    items: dict[str, array[int]] = {label: array("i") for label in labels}
    values: dict[str, array[float]] = {label: array("d") for label in labels}
    try:
        for sample in (line.content for line in samples_of(each.result.samples_file)):
            item = codes.setdefault(f"{each.run.task} {_item(sample)}", len(codes))
            for label in [label for label, (_, name) in labels.items() if _is_of(sample, name or "none")]:
                value = _number(sample.get(labels[label][0]))
                if value is None:
                    del labels[label]
                else:
                    items[label].append(item)
                    values[label].append(value)
    except (OSError, DataError):
        return
    for label in labels:
        found = _Scores(np.array(items[label], dtype=np.int32), np.array(values[label], dtype=np.float64))
        is_whole = each.result.expected in (None, found.items.size)
        if found.items.size and is_whole and np.unique(found.items).size == found.items.size:
            yield label, found


def _item(sample: Mapping[str, Any]) -> str:
    """Names an item by its place in the data and what was expected, so that other data aren't taken for the same."""
    return f"{sample.get('doc_id')} {sample.get('target_hash') or sample.get('target')}"


def _is_of(sample: Mapping[str, Any], name: str) -> bool:
    """Whether a sample is of a filter; lmms-eval's don't say, and are of the only one."""
    return str(sample.get("filter", name)) == name


def _number(value: Any) -> float | None:
    """Returns a score; lmms-eval has some in an object."""
    score = value.get("score") if isinstance(value, dict) else value
    return float(score) if isinstance(score, (bool, int, float)) and math.isfinite(score) else None


def _columns(scores: _Scores, times: float) -> Columns:
    size = scores.items.size
    ones = np.ones(size, dtype=np.int32)
    return Columns(
        items=scores.items,
        scores=scores.values * times,
        scored=ones,
        verdicts=ones,
        clusters=scores.items,
        offsets=np.zeros(size, dtype=np.int64),
        groups={},
        further={},
    )
