"""The differences of two models' judged scores, corrected by people who rated a random part of the responses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.prediction_powered import CorrectedDifference, corrected_difference
from culture_tasks.report.numbers.scores import Measured


class Stratum(NamedTuple):
    """The responses of one culture in one task; as text, their name for a reader."""

    task: str
    culture: str
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CheckedResponses:
    """The judge's scores of an entrant's responses of a unit, and people's of those that they rated, NaN of others.

    Attributes:
        keys: Task, item and number of each response.
        weights: The weight of a response in the unit's score, by its task.
    """

    keys: Sequence[tuple[str, str, int]]
    judge: Floats
    people: Floats
    strata: Sequence[Stratum]
    clusters: Sequence[str]
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PairCorrection:
    """The corrected difference of two entrants: the second less the first.

    Attributes:
        difference: Returns it, with an interval of a confidence.
        rated: Number of items that people rated: of both where the difference is paired, of either where not.
        missing: Why there is none; empty where there is one.
    """

    difference: Callable[[float], Difference]
    rated: int
    missing: str


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrected differences of all pairs of entrants, by what people rated of each unit and entrant."""

    checked: Mapping[tuple[str, str], CheckedResponses]
    _pairs: dict[tuple[str, str, str], _CheckedPair] = field(default_factory=dict)

    def of(self, measured: Measured, first: str, second: str, culture: str | None = None) -> PairCorrection | None:
        """Returns the correction for two entrants on a unit, or for a culture; None where no response is rated."""
        key = measured.unit.key
        one, two = (self.checked.get((key, entrant)) for entrant in (first, second))
        if one is None and two is None:
            return None
        if one is None or two is None:
            return _none("the responses of one of the two have no ratings")
        ran = {loaded.run.task for entrant in (first, second) for loaded in measured.runs[entrant]}
        if unrated := ran - (one.weights.keys() & two.weights.keys()):
            return _none(f"no ratings of both for {', '.join(sorted(map(title_of, unrated)))}")
        if (key, first, second) not in self._pairs:
            self._pairs[key, first, second] = _CheckedPair(measured, one, two)
        return self._pairs[key, first, second].correction(culture)


def _none(reason: str) -> PairCorrection:
    return PairCorrection(lambda _: Difference(reason=reason), 0, reason)


class _CheckedPair:
    """The responses of two entrants to the same items."""

    def __init__(self, measured: Measured, first: CheckedResponses, second: CheckedResponses) -> None:
        at = {key: place for place, key in enumerate(first.keys)}
        places = [(at[key], place) for place, key in enumerate(second.keys) if key in at]
        ones, twos = np.array(places, dtype=np.intp).reshape(-1, 2).T
        strata, clusters = ([own[place] for place in ones] for own in (first.strata, first.clusters))
        scale, of_tasks = measured.unit.scale, Counter(stratum.task for stratum in strata)
        self._sizes = Counter(strata)
        shares = {
            stratum: size / of_tasks[stratum.task]
            if measured.equal_parts
            else size * max(own.weights[stratum.task] for own in (first, second))
            for stratum, size in self._sizes.items()
        }
        self._strata, people = strata, (second.people[twos], first.people[ones])
        self._found: CorrectedDifference = corrected_difference(
            (second.judge[twos], first.judge[ones]),
            people,
            strata,
            shares=shares,
            clusters=clusters if len(set(clusters)) < len(clusters) else None,
            ends=None if scale.low is None or scale.high is None else (scale.low, scale.high),
        )
        self._rated = np.stack([~np.isnan(own) for own in people]).sum(axis=0) >= (2 if self._found.paired else 1)

    def correction(self, culture: str | None) -> PairCorrection:
        """Returns that of all responses, or of those of a culture, where each weighs the same."""
        shares: dict[Stratum, float] | None = None
        if culture is not None:
            shares = {stratum: float(size) for stratum, size in self._sizes.items() if stratum.culture == culture}
            if not shares:
                return _none("the two have no responses to the same items")
        inside = np.array([culture in (None, stratum.culture) for stratum in self._strata], dtype=np.bool_)
        difference = partial(self._found.over, shares)
        found = difference(0.95)
        missing = (found.reason or "too few ratings") if math.isnan(found.low) else ""
        return PairCorrection(difference, int(np.count_nonzero(self._rated & inside)), missing)
