"""The differences of two models' judged scores, corrected by people, or by a better judge, on a random part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import NO_GROUP, Floats, Where
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.prediction_powered import corrected_difference
from culture_tasks.report.model import PEOPLE
from culture_tasks.report.numbers.observations import CultureInTask, Observations, cultures_of, in_order, pooled
from culture_tasks.report.numbers.scores import Measured
from culture_tasks.results.loaded_runs import LoadedRun


@dataclass(frozen=True, slots=True)
class CheckedResponses:
    """The judge's scores of a row's responses on a unit, and people's scores, NaN where they rated nothing.

    Attributes:
        keys: Task, item and number of each response.
        weights: The weight of a response in the unit's score, by its task.
        by: People, or the label of a better judge in their place.
    """

    keys: Sequence[tuple[str, Hashable, int]]
    judge: Floats
    people: Floats
    strata: Sequence[CultureInTask]
    clusters: Sequence[Hashable]
    weights: Mapping[str, float]
    by: str = PEOPLE


Checked = Mapping[tuple[str, str], CheckedResponses]
"""Checked responses by the keys of their unit and row."""


class PairCorrection(NamedTuple):
    """The corrected difference of two rows: the second less the first.

    Attributes:
        rated: Number of items that people rated for both rows.
        missing: Why there is no difference; empty where there is one.
        by: People, or the label of a better judge in their place.
        difference: Returns the difference with an interval, by its confidence.
        judged: The two rows' samples with the corrected judge's scores; None where it is the judge of the pair.
    """

    rated: int = 0
    missing: str = ""
    by: str = PEOPLE
    difference: Callable[[float], Difference] = lambda _: Difference()
    judged: tuple[Observations, Observations] | None = None


def corrections_of(
    measured: Measured, first: str, second: str, sources: Sequence[Checked], cultures: Sequence[str | None] = (None,)
) -> list[PairCorrection | None]:
    """Returns the correction of two rows on a unit (None), or for each culture; None where no response is rated.

    The first source with enough ratings counts: people's come before a better judge's.
    """
    by_source = [_corrections(measured, first, second, source, cultures) for source in sources]
    corrections: list[PairCorrection | None] = []
    for options in zip(*by_source, strict=True):
        known = [option for option in options if option is not None]
        corrections.append(next((option for option in known if not option.missing), known[0] if known else None))
    return corrections


def _corrections(
    measured: Measured, first: str, second: str, source: Checked, cultures: Sequence[str | None]
) -> Sequence[PairCorrection | None]:
    one, other = (source.get((measured.unit.key, row)) for row in (first, second))
    if one is None and other is None:
        return [None] * len(cultures)
    if one is None or other is None:
        return [PairCorrection(missing="the responses of one of the two have no ratings")] * len(cultures)
    if one.by != PEOPLE and (one.by != other.by or np.isnan([*one.judge, *other.judge]).all()):
        return [None] * len(cultures)
    tasks = {run.run.task for row in (first, second) for run in measured.runs[row]}
    if unrated := tasks - (one.weights.keys() & other.weights.keys()):
        missing = f"no ratings of both for {', '.join(sorted(map(title_of, unrated)))}"
        return [PairCorrection(missing=missing)] * len(cultures)
    corrections = _fitted(measured, one, other, cultures)
    if one.by == PEOPLE:
        return corrections
    runs = {row: [run.whole or run for run in measured.runs[row]] for row in (first, second)}
    judged = replace(measured, runs=runs)
    wheres: list[Where] = [() if culture is None else ((measured.reported.culture, culture),) for culture in cultures]
    return [
        correction
        if correction.missing
        else correction._replace(
            judged=(in_order(judged.observe(first, where)), in_order(judged.observe(second, where)))
        )
        for correction, where in zip(corrections, wheres, strict=True)
    ]


def _fitted(
    measured: Measured, first: CheckedResponses, second: CheckedResponses, cultures: Sequence[str | None]
) -> list[PairCorrection]:
    """Corrects the difference of two rows on all of their common items, and on those of each culture."""
    places = {key: place for place, key in enumerate(first.keys)}
    matches = [(places[key], place) for place, key in enumerate(second.keys) if key in places]
    first_places, second_places = np.array(matches, dtype=np.intp).reshape(-1, 2).T
    strata = [first.strata[place] for place in first_places]
    clusters = [first.clusters[place] for place in first_places]
    people = second.people[second_places], first.people[first_places]
    if first.by != PEOPLE:
        strata = pooled(strata, ~np.isnan(np.stack(people)))
    task_sizes, sizes = Counter(stratum.task for stratum in strata), Counter(strata)
    corrected = corrected_difference(
        (second.judge[second_places], first.judge[first_places]),
        people,
        strata,
        shares={
            stratum: size / task_sizes[stratum.task]
            if measured.equal_parts
            else size * max(responses.weights[stratum.task] for responses in (first, second))
            for stratum, size in sizes.items()
        },
        clusters=clusters if len(set(clusters)) < len(clusters) else None,
        ends=measured.unit.scale.ends,
    )
    rated = ~np.isnan(np.stack(people)).any(axis=0)
    corrections: list[PairCorrection] = []
    for culture in cultures:
        inside = np.array([culture in (None, stratum.culture) for stratum in strata], dtype=np.bool_)
        shares = {stratum: float(size) for stratum, size in sizes.items() if culture == stratum.culture}
        if culture is not None and not shares:
            corrections.append(PairCorrection(missing="too few of their responses to the same items are rated"))
            continue
        difference = partial(corrected.over, None if culture is None else shares)
        result = difference(0.95)
        missing = (result.reason or "too few ratings") if math.isnan(result.low) else ""
        corrections.append(PairCorrection(int(np.count_nonzero(rated & inside)), missing, first.by, difference))
    return corrections


def graded_by_better_judges(units: Sequence[Measured]) -> Checked:
    """Returns a judge's verdicts on a sample of the responses (or on all) beside another's on all."""
    return {
        (measured.unit.key, row): responses
        for measured in units
        if any(run.whole for runs in measured.runs.values() for run in runs) and measured.is_mean_of_samples
        for row, runs in measured.runs.items()
        if (responses := _graded_twice(measured, runs)) is not None
    }


def _graded_twice(measured: Measured, runs: Sequence[LoadedRun]) -> CheckedResponses | None:
    if any(run.columns is None or (run.result.subset is not None and not run.whole) for run in runs):
        return None
    field = measured.reported.field_named(measured.reported.culture)
    keys: list[tuple[str, Hashable, int]] = []
    strata: list[CultureInTask] = []
    clusters: list[Hashable] = []
    judge: list[float] = []
    better: list[float] = []
    for run in runs:
        columns = (run.whole or run).columns
        if columns is None or run.columns is None:
            return None
        task, items = run.run.task, columns.items.tolist()
        grades = dict(zip(run.columns.items.tolist(), run.columns.scores.tolist(), strict=True))
        keys += [(task, item, 0) for item in items]
        strata += [
            CultureInTask(task, culture, task if culture in ("", NO_GROUP) else field.name_of(culture))
            for culture in cultures_of(run.whole or run)
        ]
        clusters += columns.clusters.tolist()
        judge += columns.scores.tolist() if run.whole else [math.nan] * len(items)
        better += [grades.get(item, math.nan) for item in items]
    judges = " + ".join(dict.fromkeys(run.run.settings.judged_by for run in runs))
    weights = {run.run.task: 1.0 for run in runs}
    return CheckedResponses(keys, np.array(judge), np.array(better), strata, clusters, weights, by=judges)
