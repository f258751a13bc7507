"""Tests between entrants, on the items that both answered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from culture_tasks.metrics.comparison import Difference, mcnemar, paired_difference, paired_permutation
from culture_tasks.metrics.means import contributions
from culture_tasks.metrics.significance import holm, items_needed, verdict
from culture_tasks.report import comparability
from culture_tasks.report.model import Comparison, Entrant, Flag, Scale
from culture_tasks.report.numbers import Observations, common_items, in_order, known, ordered
from culture_tasks.report.units import Measured

ALPHA = 0.05
"""Level of the tests, after Holm's adjustment over all pairs of a unit."""

MANY = 200
"""Clusters, or items that stand alone, from which on Student's t does for a mean: below, its signs are flipped."""

OF_ITS_OWN: frozenset[Flag] = frozenset(("low_coverage", "mixed_settings", "incomplete", "unjudged"))
"""Flags that keep a number out of tests by itself, whatever it is compared with."""


def comparisons(
    measured: Iterable[Measured], entrants: Mapping[str, Entrant], *, anyway: bool = False
) -> list[Comparison]:
    """Tests every two entrants of every headline unit, where they can be compared.

    Args:
        measured: The units.
        entrants: The entrants, by key.
        anyway: Test also those that can't be compared; their flags say why they shouldn't have been.
    """
    found: list[Comparison] = []
    for each in measured:
        if each.unit.headline:
            found.extend(_adjusted(_family(each, anyway), entrants))
    return found


def _family(measured: Measured, anyway: bool) -> list[Comparison]:
    keys = [key for key, cell in measured.unit.cells.items() if cell.value is not None and measured.runs[key]]
    observed = {key: measured.observe(key) for key in keys} if len(keys) > 1 else {}
    tested: list[Comparison] = []
    for first, second in combinations(observed, 2):
        flags = why_not(measured, first, second)
        if not flags or anyway:
            tested.append(compare(measured, first, second, observed[first], observed[second], flags))
    return tested


def why_not(measured: Measured, first: str, second: str) -> set[Flag]:
    """Returns why two entrants can't be compared on a unit; nothing where they can."""
    settings = [{each.run.task: each.run.settings for each in measured.runs[key]} for key in (first, second)]
    flags = {flag for key in (first, second) for flag in measured.unit.cells[key].flags}
    return comparability.between(*settings) | (flags & OF_ITS_OWN)


def compare(
    measured: Measured, first: str, second: str, one: Observations, two: Observations, flags: set[Flag]
) -> Comparison:
    """Tests two entrants on a unit; p is not adjusted yet, and the verdict is open."""
    items = common_items(one, two)
    found = _test(in_order(two, items), in_order(one, items), measured.unit.scale)
    needed = items_needed(found.difference, found.sd) if found.n > 1 else math.nan
    return Comparison(
        unit=measured.unit.key,
        first=first,
        second=second,
        difference=found.difference if found.n else 0.0,
        low=known(found.low),
        high=known(found.high),
        p=known(found.p),
        p_holm=None,
        test=found.method,
        n=found.n,
        clusters=found.clusters if 0 < found.clusters < found.n else None,
        verdict="not tested",
        items_needed=None if math.isnan(needed) else int(needed),
        flags=ordered(flags),
    )


def _test(one: Observations, two: Observations, scale: Scale) -> Difference:
    """McNemar for right and wrong; for means sign flips, or t where clusters are many or parts weigh the same."""
    clustered = np.unique(one.clusters).size < one.clusters.size
    clusters = one.clusters if clustered else None
    if one.strata is not None:
        values = [contributions(each.scores, one.strata) for each in (one, two)]
        return paired_difference(values[0], values[1], clusters)
    width = scale.high if scale.low == 0.0 and scale.unit in ("share", "percent") else None
    if width and not clustered and all(np.isin(each.scores, (0.0, width)).all() for each in (one, two)):
        return _times(mcnemar(one.scores / width, two.scores / width), width)
    if np.unique(one.clusters).size >= MANY:
        return paired_difference(one.scores, two.scores, clusters)
    return paired_permutation(one.scores, two.scores, clusters)


def _times(found: Difference, width: float) -> Difference:
    return found._replace(
        difference=found.difference * width, low=found.low * width, high=found.high * width, sd=found.sd * width
    )


def _adjusted(family: list[Comparison], entrants: Mapping[str, Entrant]) -> list[Comparison]:
    adjusted = holm([math.nan if each.p is None else each.p for each in family])
    return [
        replace(each, p_holm=known(float(p)), verdict=_words(each, float(p), entrants))
        for each, p in zip(family, adjusted, strict=True)
    ]


def _words(each: Comparison, adjusted: float, entrants: Mapping[str, Entrant]) -> str:
    found = verdict(each.difference, adjusted, ALPHA)
    if found in ("not distinguishable", "not tested"):
        return found
    better = each.second if found == "higher" else each.first
    return f"{entrants[better].label} is better"
