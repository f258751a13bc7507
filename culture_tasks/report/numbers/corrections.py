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
from culture_tasks.report.numbers.numbers import Unit
from culture_tasks.report.numbers.selection import Selection, in_order
from culture_tasks.report.numbers.strata import CultureInTask, cultures_of, pooled
from culture_tasks.results.runs import Run


@dataclass(frozen=True, slots=True)
class CheckedResponses:
    """The judge's scores of a row's responses on a unit, and people's scores, NaN where they rated nothing.

    A response has the key task, item and number, and the weight of its task in the unit's score.
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
    """The corrected difference of two rows, the second less the first, by its confidence; or why there is none.

    Attributes:
        rated: Number of items that people rated for both rows.
        by: People, or the label of a better judge in their place.
        judged: The two rows' samples with the corrected judge's scores; None where it is the judge of the pair.
    """

    rated: int = 0
    missing: str = ""
    by: str = PEOPLE
    difference: Callable[[float], Difference] = lambda _: Difference()
    judged: tuple[Selection, Selection] | None = None


def corrections_of(
    unit: Unit, first: str, second: str, sources: Sequence[Checked], cultures: Sequence[str | None] = (None,)
) -> list[PairCorrection | None]:
    """Returns the correction of two rows on a unit (None), or for each culture; None where no response is rated.

    The first source with enough ratings counts: people's come before a better judge's.
    """
    by_source = [_corrections(unit, first, second, source, cultures) for source in sources]
    corrections: list[PairCorrection | None] = []
    for options in zip(*by_source, strict=True):
        known = [option for option in options if option is not None]
        corrections.append(next((option for option in known if not option.missing), known[0] if known else None))
    return corrections


def _corrections(
    unit: Unit, first: str, second: str, source: Checked, cultures: Sequence[str | None]
) -> Sequence[PairCorrection | None]:
    one, other = (source.get((unit.key, row)) for row in (first, second))
    if one is None and other is None:
        return [None] * len(cultures)
    if one is None or other is None:
        return [PairCorrection(missing="the responses of one of the two have no ratings")] * len(cultures)
    if one.by != PEOPLE and (one.by != other.by or np.isnan(np.concatenate([one.judge, other.judge])).all()):
        return [None] * len(cultures)
    tasks = {run.task for row in (first, second) for run in unit.runs[row]}
    if unrated := tasks - (one.weights.keys() & other.weights.keys()):
        missing = f"no ratings of both for {', '.join(sorted(map(title_of, unrated)))}"
        return [PairCorrection(missing=missing)] * len(cultures)
    corrections = _fitted(unit, one, other, cultures)
    if one.by == PEOPLE:
        return corrections
    runs = {row: [run.whole or run for run in unit.runs[row]] for row in (first, second)}
    judged = replace(unit, runs=runs)
    wheres: list[Where] = [() if culture is None else ((unit.reported.culture, culture),) for culture in cultures]
    return [
        correction
        if correction.missing
        else correction._replace(judged=(in_order(judged.select(first, where)), in_order(judged.select(second, where))))
        for correction, where in zip(corrections, wheres, strict=True)
    ]


def _fitted(
    unit: Unit, first: CheckedResponses, second: CheckedResponses, cultures: Sequence[str | None]
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
            if unit.equal_parts
            else size * max(responses.weights[stratum.task] for responses in (first, second))
            for stratum, size in sizes.items()
        },
        clusters=clusters if len(set(clusters)) < len(clusters) else None,
        ends=unit.scale.ends,
    )
    rated = ~np.isnan(np.stack(people)).any(axis=0)
    corrections: list[PairCorrection] = []
    for culture in cultures:
        inside = np.array([culture in (None, stratum.culture) for stratum in strata], dtype=np.bool_)
        shares = {stratum: float(size) for stratum, size in sizes.items() if culture == stratum.culture}
        if culture is not None and not shares:
            corrections.append(PairCorrection(missing="too few of their responses to the same items are rated"))
            continue
        difference = partial(corrected.test, None if culture is None else shares)
        result = difference(0.95)
        missing = (result.reason or "too few ratings") if math.isnan(result.low) else ""
        corrections.append(PairCorrection(int(np.count_nonzero(rated & inside)), missing, first.by, difference))
    return corrections


def graded_by_better_judges(units: Sequence[Unit]) -> Checked:
    """Returns a judge's verdicts on a sample of the responses (or on all) beside another's on all."""
    return {
        (unit.key, row): responses
        for unit in units
        if any(run.whole for runs in unit.runs.values() for run in runs) and unit.is_mean_of_samples
        for row, runs in unit.runs.items()
        if (responses := _graded_twice(unit, runs)) is not None
    }


def _graded_twice(unit: Unit, runs: Sequence[Run]) -> CheckedResponses | None:
    if any(run.subset is not None and not run.whole for run in runs):
        return None
    samples, field = unit.results.samples, unit.reported.field_named(unit.reported.culture)
    keys: list[tuple[str, Hashable, int]] = []
    strata: list[CultureInTask] = []
    columns: list[tuple[Floats, Floats, Sequence[Hashable]]] = []
    for run in runs:
        all_responses = run.whole or run
        if run.samples is None or all_responses.samples is None:
            return None
        own, rows, task = run.samples.rows, all_responses.samples.rows, run.task
        grades = dict(zip(samples.item[own].tolist(), samples.score[own].tolist(), strict=True))
        items = samples.item[rows].tolist()
        keys += [(task, item, 0) for item in items]
        strata += [
            CultureInTask(task, culture, task if culture in ("", NO_GROUP) else field.name_of(culture))
            for culture in cultures_of(samples, all_responses)
        ]
        judge = samples.score[rows] if run.whole else np.full(len(items), np.nan)
        better = np.array([grades.get(item, math.nan) for item in items])
        columns.append((judge, better, samples.cluster[rows].tolist()))
    judge, better = (np.concatenate(side) for side in list(zip(*columns, strict=True))[:2])
    clusters = [cluster for *_, run_clusters in columns for cluster in run_clusters]
    judges = " + ".join(dict.fromkeys(run.settings.judged_by for run in runs))
    return CheckedResponses(keys, judge, better, strata, clusters, {run.task: 1.0 for run in runs}, by=judges)
