"""Tests between rows on the items that both answered, the ranks that follow, and the spread over cultures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Where
from culture_tasks.metrics.comparison import FLIPPED_BELOW, Difference, paired_difference
from culture_tasks.metrics.rankings import places
from culture_tasks.metrics.significance import holm, items_needed, verdict
from culture_tasks.metrics.subsets import subset_interval
from culture_tasks.report.model import (
    NOT_COMPARABLE,
    Comparison,
    Correction,
    Fairness,
    Flag,
    ModelRow,
    Number,
    Standing,
)
from culture_tasks.report.numbers.corrections import Checked, PairCorrection, corrections_of, graded_by_better_judges
from culture_tasks.report.numbers.draws import draw_of_both, unpaired
from culture_tasks.report.numbers.numbers import Numbers, Unit, nan_to_none, ordered
from culture_tasks.report.numbers.selection import SCORE, Selection, aligned, in_order
from culture_tasks.results.comparability import between, explain
from culture_tasks.results.runs import Run

ALPHA = 0.05
"""Level of the tests, after Holm's adjustment over all pairs of a family."""

_FLIPPED_BELOW_IN_A_GROUP = 14
"""Differing clusters below which signs are flipped in a column of a group: they can be flipped in all ways.

An item without a cluster is a cluster of one. There are many of these columns.
"""

_LARGE_FAMILY = 250
"""Pairs beyond which 10,000 random flips can't tell two rows apart after adjustment: they are as in a group's column.

At the levels of such a family, Student's t is on the safe side: where rows don't differ, differences are symmetric.
"""

TEST_BARRIERS: frozenset[Flag] = frozenset(
    ("low_coverage", "mixed", "incomplete", "unjudged", "other_harness", "trained_on_test")
)
"""Flags that keep a number out of tests, whatever it is compared with."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows to be tested on the items that both have a score for, in the order of the items.

    Attributes:
        family: Names the pairs whose p values are adjusted together.
        flags: Why they should not be compared, where the user insists.
        correction: Its difference is tested in place of the samples' own.
    """

    family: str
    unit: str
    first: str
    second: str
    samples: tuple[Selection, Selection]
    scale: Scale
    flags: tuple[Flag, ...] = ()
    correction: PairCorrection | None = None

    def test(self, level: float, flipped_below: int) -> Difference:
        """Tests the second less the first: the corrected difference, or that of the scores where there is none."""
        if self.correction is not None and not self.correction.missing:
            return _within(self.scale, self.correction.difference(1.0 - level))
        return difference_of(*self.samples, self.scale, level=level, flipped_below=flipped_below)

    @property
    def judged(self) -> tuple[Selection, Selection]:
        """The samples, with the scores of the judge that is corrected where there is one."""
        return (self.correction and self.correction.judged) or self.samples


def compare(pairs: Sequence[Pair], labels: Mapping[str, str]) -> list[Comparison]:
    """Tests pairs, in their order, with Holm's adjustment over all pairs of a family.

    Holm's procedure stops with k pairs of a family that it does not tell apart. The intervals and the numbers of items
    needed have the level alpha / k. The intervals of these k pairs cover their differences jointly, together with the
    signs of the other pairs (Guilbaud, 2008; Strassburger and Bretz, 2008).
    Verdicts call the rows by their labels: ``B is better``, or ``higher`` where no end of the scale is.
    """
    families: dict[str, list[int]] = {}
    for index, pair in enumerate(pairs):
        families.setdefault(pair.family, []).append(index)
    comparisons: dict[int, Comparison] = {}
    for members in families.values():
        family = [pairs[index] for index in members]
        flipped_below = _FLIPPED_BELOW_IN_A_GROUP if len(family) > _LARGE_FAMILY else FLIPPED_BELOW
        tests = [pair.test(ALPHA, flipped_below) for pair in family]
        p_values = holm([test.p for test in tests]).tolist()
        level = ALPHA / max(1, sum(p > ALPHA for p in p_values))
        if level < ALPHA:
            tests = [pair.test(level, flipped_below) for pair in family]
        for index, pair, test, p_holm in zip(members, family, tests, p_values, strict=True):
            comparisons[index] = _comparison(pair, test, p_holm, level, labels)
    return [comparisons[index] for index in range(len(pairs))]


def difference_of(
    first: Selection,
    second: Selection,
    scale: Scale,
    *,
    level: float = ALPHA,
    flipped_below: int = FLIPPED_BELOW,
) -> Difference:
    """Tests the second less the first on the items that both have a score for; both are in the order of the items.

    Means have :func:`~culture_tasks.metrics.comparison.paired_difference`, other scores a bootstrap. The interval of
    two runs of one subset is of the difference on all items. The level is one minus the interval's confidence.
    """
    if (apart := unpaired(first, second, scale, 1.0 - level)) is not None:
        return _within(scale, apart)
    first, second = aligned(first, second)
    if second.compute is not None:
        return _within(scale, second.less(first, 1.0 - level))
    numbers = second.cluster_numbers
    test = paired_difference(
        second.scores,
        first.scores,
        numbers if numbers.max(initial=-1) + 1 < numbers.size else None,
        1.0 - level,
        strata=second.strata,
        shares=second.shares,
        ends=scale.ends,
        flipped_below=flipped_below,
    )
    if (drawn_from := draw_of_both(first, second)) is not None and test.n > 1:
        interval = subset_interval(second.scores - first.scores, second.shared_clusters, drawn_from, 1.0 - level)
        if not math.isnan(interval.low):
            test = test._replace(low=interval.low, high=interval.high)
    return _within(scale, test)


def _within(scale: Scale, difference: Difference) -> Difference:
    if scale.ends is None or math.isnan(difference.low):
        return difference
    width = scale.ends[1] - scale.ends[0]
    return difference._replace(low=max(difference.low, -width), high=min(difference.high, width))


def _comparison(pair: Pair, test: Difference, p_holm: float, level: float, labels: Mapping[str, str]) -> Comparison:
    word, better = verdict(test.difference, p_holm, ALPHA), None
    text: str = word
    if word in ("higher", "lower"):
        higher, lower = (pair.second, pair.first) if word == "higher" else (pair.first, pair.second)
        better = {"higher": higher, "lower": lower}.get(pair.scale.better or "")
        text = f"{labels[better]} is better" if better else f"{labels[higher]} is higher"
    correction = None
    if pair.correction is not None:
        judge_test = difference_of(*pair.judged, pair.scale, level=level, flipped_below=0)
        test = test._replace(n=judge_test.n, clusters=judge_test.clusters)  # responses are counted as items
        correction = Correction(
            rated=pair.correction.rated,
            judge=judge_test.difference if judge_test.n else 0.0,
            judge_low=nan_to_none(judge_test.low),
            judge_high=nan_to_none(judge_test.high),
            missing=pair.correction.missing,
            by=pair.correction.by,
        )
    return Comparison(
        unit=pair.unit,
        first=pair.first,
        second=pair.second,
        difference=test.difference if test.n else 0.0,
        low=nan_to_none(test.low),
        high=nan_to_none(test.high),
        p=nan_to_none(test.p),
        p_holm=nan_to_none(p_holm),
        test=f"{test.method}, fragile" if test.is_fragile else test.method,
        n=test.n,
        clusters=test.clusters if 0 < test.clusters < test.n else None,
        verdict=text,
        items_needed=_items_needed(test, level) if word == "not distinguishable" else None,
        flags=pair.flags,
        better=better,
        correction=correction,
    )


def _items_needed(test: Difference, level: float) -> int | None:
    """Returns how many items would tell two rows apart; an exact test needs enough clusters that differ, too."""
    if test.n < 2 or test.clusters < 2:
        return None
    size = test.n / test.clusters
    clusters = items_needed(test.difference, test.sd / math.sqrt(size), alpha=level)
    if math.isnan(clusters):
        return None
    if test.method not in ("t", "bootstrap"):
        clusters = max(clusters, math.ceil(math.log2(2.0 / level)) * test.clusters / test.differing)
    return max(math.ceil(size * clusters), test.n + 1)


# Which rows can be compared


def comparisons(
    units: Sequence[Unit], rows: Mapping[str, ModelRow], people: Checked, *, anyway: bool = False
) -> list[Comparison]:
    """Tests all pairs of rows on each headline unit, where they can be compared or the user insists."""
    pairs: list[Pair] = []
    sources = (people, graded_by_better_judges(units))
    for unit in units:
        keys = [key for key, cell in unit.cells.items() if cell.value is not None and unit.runs[key]]
        if not unit.headline or len(keys) < 2:
            continue
        samples = {key: in_order(unit.select(key)) for key in keys}
        for first, second in combinations(keys, 2):
            flags = why_not(unit, first, second)
            if anyway or not flags:
                [correction] = corrections_of(unit, first, second, sources)
                both = samples[first], samples[second]
                pairs.append(Pair(unit.key, unit.key, first, second, both, unit.scale, ordered(flags), correction))
    return compare(pairs, {key: row.label for key, row in rows.items()})


def scale_of_differences(scale: Scale) -> Scale:
    """Returns the scale of a difference of two numbers: percents differ by points."""
    unit = "points" if scale.unit in ("percent", "points of 100") else scale.unit
    return Scale(unit, None, None, better=None, neutral=0.0, digits=scale.digits)


def change(after: Number, flags: Sequence[Flag], runs: Sequence[str], test: Comparison | None) -> Number:
    """Returns the difference that ends at a number, with the interval of its test; no value without common items."""
    number = Number(None, scale_of_differences(after.scale), flags=tuple(flags), runs=tuple(runs), where=after.where)
    if test is None:
        return number
    if not test.n:
        return replace(number, note="no items in common")
    return replace(number, value=test.difference, low=test.low, high=test.high, n=test.n)


def why_not(unit: Unit, first: str, second: str) -> set[Flag]:
    """Returns why two rows can't be compared on a unit; nothing where they can."""
    runs = [unit.runs[key] for key in (first, second)]
    flags = reasons_against([unit.cells[key] for key in (first, second)], *runs)
    is_one_model = len({run.model for run in chain(*runs)}) == 1  # in two harnesses, it is compared with itself
    return flags - ({"other_harness"} if is_one_model else set())


def reasons_against(cells: Sequence[Number], first: Sequence[Run], second: Sequence[Run]) -> set[Flag]:
    """Returns why the numbers of some runs can't be compared; nothing where they can."""
    settings = [{run.task: run.settings for run in row_runs} for row_runs in (first, second)]
    return between(*settings).union(*(TEST_BARRIERS.intersection(cell.flags) for cell in cells))


# Ranks, and the best of a column


def rank_units(units: Iterable[Unit], tests: Iterable[Comparison], rankable: Callable[[Number], bool]) -> None:
    """Gives every unit its ranks and its standing, by the tests of all units."""
    by_unit: dict[str, list[Comparison]] = {}
    for test in tests:
        by_unit.setdefault(test.unit, []).append(test)
    for unit in units:
        left_out = {
            key: reason
            for key, number in unit.cells.items()
            if (reason := _why_unranked(unit, key, is_rankable=rankable(number)))
        }
        ranked, unit.standing = rank_cells(unit.cells, unit.scale, tests=by_unit.get(unit.key, ()), left_out=left_out)
        unit.cells.update(ranked)


def _why_unranked(unit: Unit, row: str, *, is_rankable: bool) -> str:
    number = unit.cells[row]
    if number.value is None:
        return number.note or (explain(["unjudged"]) if "unjudged" in number.flags else "there is no score")
    if not is_rankable:
        return explain([flag for flag in number.flags if flag in NOT_COMPARABLE])
    if unit.benchmark is None:
        return "the harnesses' own tasks aren't tested"
    return "" if unit.runs[row] else "there are no samples to test"


def rank_cells(
    cells: Mapping[str, Number], scale: Scale, *, tests: Sequence[Comparison], left_out: Mapping[str, str]
) -> tuple[dict[str, Number], Standing]:
    """Gives the cells of a column their ranks by the adjusted tests between them, and says who is best.

    A column that was not tested, that has a single number, or whose scale has no better end has no ranks.
    """
    sign = {"higher": -1.0, "lower": 1.0}.get(scale.better or "", 0.0)
    values = {key: sign * cell.value for key, cell in cells.items() if cell.value is not None and key not in left_out}
    order = sorted(values, key=values.__getitem__) if sign and tests and len(values) > 1 else []
    better = {
        (test.better, test.second if test.better == test.first else test.first)
        for test in tests
        if test.better is not None and {test.first, test.second} <= set(order)
    }
    ranks = places(order, better)
    best = tuple(key for key in order if ranks[key].first == 1)
    is_told_apart = len(best) < len(order)
    ranked = {
        key: replace(cell, rank=ranks.get(key), best=is_told_apart and key in best) for key, cell in cells.items()
    }
    return ranked, Standing(ranked=tuple(order), best=best, left_out=dict(left_out))


def with_best(
    numbers: Numbers, key: str, statistic: str, where: Where, *, rankable: Callable[[Number], bool]
) -> Mapping[str, Number]:
    """Returns the numbers of a unit by row; those of a group have the best ones marked.

    Each number is tested against the highest (or lowest, where that is better), with Bonferroni's adjustment over all
    pairs, since the highest isn't known beforehand. So the truly best are among the marked ones with 95 % confidence.
    A whole score has its ranks and its marks already, and a derived number has no samples to test.

    Source: Hsu (1984) for comparisons with the best.
    """
    cells, unit = numbers.cells(key, statistic, where), numbers.units.get(key)
    scale = numbers.scale(key, statistic)
    if unit is None or scale is None or scale.better is None or not where:
        return cells
    if any(derived.name == statistic for derived in unit.reported.derived):
        return cells
    values = {
        row: number.value if scale.better == "higher" else -number.value
        for row, number in cells.items()
        if number.value is not None and rankable(number) and unit.runs[row]
    }
    if len(values) < 2:
        return cells
    samples = {row: in_order(unit.select(row, where, statistic)) for row in values}
    highest, pairs = max(values, key=values.__getitem__), math.comb(len(values), 2)
    p = {
        row: difference_of(samples[highest], samples[row], scale, flipped_below=_FLIPPED_BELOW_IN_A_GROUP).p
        for row in values.keys() - {highest}
    }
    worse = {row for row in p if p[row] * pairs <= ALPHA}
    return {row: replace(cell, best=bool(worse) and row in values.keys() - worse) for row, cell in cells.items()}


# Cultures within a row


def fairness(numbers: Numbers) -> Iterator[Fairness]:
    """Yields how evenly each row's score spreads over the cultures of a unit; fewer than two give nothing.

    Formula: gap = abs(best - worst); variance = sum of (score - mean)^2 / (groups - 1). Groups differ by chance too, so
    that they are hardly ever 0 where the groups are truly alike.

    Source: CEDAR, Table 1, reports the variance over languages; Sagawa et al. (2020) the worst group.
    """
    cultures: dict[tuple[str, str], list[Number]] = {}
    for number in numbers:
        is_of_culture = number.statistic == SCORE and len(number.where) == 1 and number.value is not None
        if is_of_culture and number.dimension == numbers.units[number.unit].reported.culture:
            cultures.setdefault((number.unit, number.row), []).append(number)
    for (unit, row), members in cultures.items():
        values, scale = {number.group: number.value or 0.0 for number in members}, members[0].scale
        ends = max(values, key=values.__getitem__), min(values, key=values.__getitem__)
        best, worst = reversed(ends) if scale.better == "lower" else ends
        if len(values) > 1:
            yield Fairness(
                unit=unit,
                entrant=row,
                dimension=members[0].dimension,
                best=best if values[best] != values[worst] else "",
                best_value=values[best],
                worst=worst if values[best] != values[worst] else "",
                worst_value=values[worst],
                gap=abs(values[best] - values[worst]),
                variance=float(np.var(list(values.values()), ddof=1)),
                groups=len(values),
                scale=scale,
            )
