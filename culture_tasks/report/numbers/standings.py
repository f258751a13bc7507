"""Who is best, and how certain that is: places and groups by what the tests tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At
from culture_tasks.metrics.rankings import places
from culture_tasks.report.model import NOT_COMPARABLE, Cell, Comparison, Rank, Standing
from culture_tasks.report.numbers.comparisons import ALPHA, Pair
from culture_tasks.report.numbers.observations import in_order
from culture_tasks.report.numbers.scores import Measured, Scores
from culture_tasks.results.comparability import explain

MANY_IN_A_COLUMN = 14
"""Clusters that differ from which on Student's t does in a column of a group; there are many such columns.

Below, all swaps can be gone through.
"""


def stand(
    measured: Iterable[Measured], tests: Iterable[Comparison], rankable: Callable[[Cell], bool]
) -> list[Measured]:
    """Gives every unit its ranks and its standing, by the tests of all units."""
    by_unit: dict[str, list[Comparison]] = {}
    for test in tests:
        by_unit.setdefault(test.unit, []).append(test)
    standing_units: list[Measured] = []
    for one in measured:
        unit = one.unit
        left_out = {
            key: (cell.note or "there is no score")
            if cell.value is None
            else explain([flag for flag in cell.flags if flag in NOT_COMPARABLE])
            for key, cell in unit.cells.items()
            if not rankable(cell)
        }
        left_out |= {
            key: "there are no samples to test" for key in unit.cells if key not in left_out and not one.runs[key]
        }
        cells, standing = ranked(unit.cells, unit.scale, tests=by_unit.get(unit.key, ()), left_out=left_out)
        standing_units.append(replace(one, unit=replace(unit, cells=cells, standing=standing)))
    return standing_units


def ranked(
    cells: Mapping[str, Cell], scale: Scale, *, tests: Sequence[Comparison], left_out: Mapping[str, str]
) -> tuple[dict[str, Cell], Standing]:
    """Gives the cells of a column their places by the adjusted tests between them, and says who is best.

    A column that was not tested, that has one number alone, or whose scale has no better end has no places.
    """
    sign = {"higher": -1.0, "lower": 1.0}.get(scale.better or "", 0.0)
    values = {key: sign * cell.value for key, cell in cells.items() if cell.value is not None and key not in left_out}
    order = sorted(values, key=values.__getitem__) if sign and tests and len(values) > 1 else []
    number = {key: at for at, key in enumerate(order)}
    better = {
        (number[test.better], number[test.second if test.better == test.first else test.first])
        for test in tests
        if test.better and {test.first, test.second} <= number.keys()
    }
    ranks = {key: Rank(*place) for key, place in zip(order, places(len(order), better), strict=True)}
    best = tuple(key for key in order if ranks[key].first == 1)
    told_apart = len(best) < len(order)
    standing = Standing(ranked=tuple(order), best=best, left_out=dict(left_out))
    marked = {key: replace(cell, rank=ranks.get(key), best=told_apart and key in best) for key, cell in cells.items()}
    return marked, standing


def with_best(scores: Scores, address: At, rankable: Callable[[Cell], bool]) -> Mapping[str, Cell]:
    """Returns the numbers at an address, with the best ones marked where they are those of a group.

    Each number is tested against the highest (or lowest, where that is better), with Bonferroni's adjustment over all
    pairs, since it isn't known beforehand which one that is. So the truly best are among the marked ones with 95 %
    confidence. A whole score has its ranks and its marks already, and a derived number has no samples to test.

    Source: Hsu (1984) for comparisons with the best.
    """
    cells, scale, measured = scores.at(address), scores.scale(address), scores.units.get(address.unit)
    derived = measured is not None and any(one.name == address.statistic for one in measured.reported.derived)
    if measured is None or scale is None or scale.better is None or derived or not address.where:
        return cells
    values = {
        key: cell.value if scale.better == "higher" else -cell.value
        for key, cell in cells.items()
        if cell.value is not None and rankable(cell) and measured.runs[key]
    }
    if len(values) < 2:
        return cells
    observed = {key: in_order(measured.observe(key, address.where, address.statistic)) for key in values}
    highest, pairs = max(values, key=values.__getitem__), math.comb(len(values), 2)
    worse: set[str] = set()
    for key in values.keys() - {highest}:
        pair = Pair(address.unit, highest, key, observed[highest], observed[key], scale=scale)
        if pair.test(pairs, many=MANY_IN_A_COLUMN).p * pairs <= ALPHA:
            worse.add(key)
    return {key: replace(cell, best=bool(worse) and key in values.keys() - worse) for key, cell in cells.items()}
