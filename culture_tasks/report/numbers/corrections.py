"""The differences of two models' judged scores, corrected by people, or by a better judge, on a random part."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

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
    """The judge's scores of an entrant's responses on a unit, and people's scores, NaN where they rated nothing.

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


@dataclass(frozen=True, slots=True)
class PairCorrection:
    """The corrected difference of two entrants: the second less the first.

    Attributes:
        difference: Returns the difference with an interval, by its confidence.
        rated: Number of items that people rated: for both entrants where the difference is paired, else for either.
        missing: Why there is no difference; empty where there is one.
        by: People, or the label of a better judge in their place.
        judged: The two entrants' samples with the corrected judge's scores; None where it is the judge of the pair.
    """

    difference: Callable[[float], Difference]
    rated: int
    missing: str
    by: str = PEOPLE
    judged: tuple[Selection, Selection] | None = None


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrected differences of all pairs of entrants, by people's ratings or else by a better judge of a sample."""

    checked: Mapping[tuple[str, str], CheckedResponses]
    _pairs: dict[tuple[str, str, str, str], Callable[[str | None], PairCorrection]] = field(default_factory=dict)
    _sampled: dict[tuple[str, str], CheckedResponses | None] = field(default_factory=dict)

    def correction(self, measured: Unit, first: str, second: str, culture: str | None = None) -> PairCorrection | None:
        """Returns the correction for two entrants on a unit, or for a culture; None where no response is rated."""
        people = self._from_people(measured, first, second, culture)
        if people is not None and not people.missing:
            return people
        judge = self._from_better_judge(measured, first, second, culture)
        return judge if judge is not None and (people is None or not judge.missing) else people

    def _from_people(self, measured: Unit, first: str, second: str, culture: str | None) -> PairCorrection | None:
        key = measured.key
        first_responses, second_responses = (self.checked.get((key, entrant)) for entrant in (first, second))
        if first_responses is None and second_responses is None:
            return None
        if first_responses is None or second_responses is None:
            return _no_correction("the responses of one of the two have no ratings")
        tasks = {run.task for entrant in (first, second) for run in measured.runs[entrant]}
        if unrated := tasks - (first_responses.weights.keys() & second_responses.weights.keys()):
            return _no_correction(f"no ratings of both for {', '.join(sorted(map(title_of, unrated)))}")
        return self._pair(measured, (first, second), (first_responses, second_responses))(culture)

    def _from_better_judge(self, measured: Unit, first: str, second: str, culture: str | None) -> PairCorrection | None:
        if not any(run.whole for entrant in (first, second) for run in measured.runs[entrant]):
            return None
        key = measured.key
        for entrant in (first, second):
            if (key, entrant) not in self._sampled:
                self._sampled[key, entrant] = _sampled_responses(measured, measured.runs[entrant])
        first_responses, second_responses = self._sampled[key, first], self._sampled[key, second]
        if first_responses is None or second_responses is None:
            return _no_correction("there are no verdicts on all responses of both")
        if first_responses.by != second_responses.by:
            return None
        where: Where = () if culture is None else ((measured.reported.culture, culture),)
        runs = {entrant: [run.whole or run for run in row_runs] for entrant, row_runs in measured.runs.items()}
        other_judged = replace(measured, runs=runs)
        judged = in_order(other_judged.select(first, where)), in_order(other_judged.select(second, where))
        correction = self._pair(measured, (first, second), (first_responses, second_responses))(culture)
        return replace(correction, judged=judged)

    def _pair(
        self, measured: Unit, entrants: tuple[str, str], responses: tuple[CheckedResponses, CheckedResponses]
    ) -> Callable[[str | None], PairCorrection]:
        key = (measured.key, responses[0].by, *entrants)
        if key not in self._pairs:
            self._pairs[key] = _corrector(measured, *responses)
        return self._pairs[key]


def _sampled_responses(measured: Unit, runs: Sequence[Run]) -> CheckedResponses | None:
    """Returns a judge's scores of a sample of the responses (or of all) beside another's of all; None without these."""
    if not measured.is_mean_of_samples or any(run.subset is not None and not run.whole for run in runs):
        return None
    field = measured.reported.field_named(measured.reported.culture)
    samples, keys = measured.results.samples, list[tuple[str, Hashable, int]]()
    strata: list[CultureInTask] = []
    clusters: list[Hashable] = []
    judge: list[float] = []
    better: list[float] = []
    for run in runs:
        graded, by_judge = run.samples, (run.whole or run).samples
        if graded is None or by_judge is None:
            return None
        task, items = run.task, samples.item[by_judge.rows].tolist()
        grades = dict(zip(samples.item[graded.rows].tolist(), samples.score[graded.rows].tolist(), strict=True))
        keys += [(task, item, 0) for item in items]
        strata += [
            CultureInTask(task, culture, task if culture in ("", NO_GROUP) else field.name_of(culture))
            for culture in cultures_of(samples, run.whole or run)
        ]
        clusters += samples.cluster[by_judge.rows].tolist()
        judge += samples.score[by_judge.rows].tolist() if run.whole else [math.nan] * len(items)
        better += [grades.get(item, math.nan) for item in items]
    judges = " + ".join(dict.fromkeys(run.settings.judged_by for run in runs))
    weights = {run.task: 1.0 for run in runs}
    return CheckedResponses(keys, np.array(judge), np.array(better), strata, clusters, weights, by=judges)


def _no_correction(reason: str) -> PairCorrection:
    return PairCorrection(lambda _: Difference(reason=reason), 0, reason)


def _corrector(
    measured: Unit, first: CheckedResponses, second: CheckedResponses
) -> Callable[[str | None], PairCorrection]:
    """Returns what corrects the difference of two entrants on all of their common items, or on those of a culture."""
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
        ends=measured.scale.ends,
    )
    rated = (~np.isnan(np.stack(people))).sum(axis=0) >= (2 if corrected.paired else 1)

    def correction(culture: str | None) -> PairCorrection:
        shares: dict[CultureInTask, float] | None = None
        if culture is not None:  # each of its responses weighs the same
            shares = {stratum: float(size) for stratum, size in sizes.items() if stratum.culture == culture}
            if not shares:
                return _no_correction("too few of their responses to the same items are rated")
        inside = np.array([culture in (None, stratum.culture) for stratum in strata], dtype=np.bool_)
        difference = partial(corrected.over, shares)
        result = difference(0.95)
        missing = (result.reason or "too few ratings") if math.isnan(result.low) else ""
        return PairCorrection(difference, int(np.count_nonzero(rated & inside)), missing, first.by)

    return correction
