"""Paired tests between rows, which say who is best, and the spread over cultures within a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import At
from culture_tasks.metrics.comparison import FLIPPED_BELOW, Difference, paired_difference
from culture_tasks.metrics.rankings import places, spread
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
    Rank,
    Standing,
)
from culture_tasks.report.numbers.corrections import Corrections, PairCorrection
from culture_tasks.report.numbers.numbers import Numbers, Unit, nan_to_none, ordered
from culture_tasks.report.numbers.selection import SCORE, Selection, aligned, draw_of_both, in_order
from culture_tasks.results.comparability import between, explain
from culture_tasks.results.runs import Run

ALPHA = 0.05
"""Level of the tests, after Holm's adjustment over all pairs of a unit."""

FLIPPED_BELOW_IN_A_GROUP = 14
"""Differing clusters below which signs are flipped in a column of a group: they can be flipped in all ways.

An item without a cluster is a cluster of one. There are many of these columns.
"""

_LARGE_FAMILY = 250
"""Pairs beyond which 10,000 random flips can't tell two rows apart after adjustment: they are as in a group's column.

At the levels of such a family, Student's t is on the safe side: where rows don't differ, differences are symmetric.
"""

TEST_BARRIERS: frozenset[Flag] = frozenset(
    ("low_coverage", "mixed_settings", "incomplete", "unjudged", "other_harness", "trained_on_test", "unlike_its_file")
)
"""Flags that keep a number out of tests, whatever it is compared with."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entrants to be tested on a unit, by their scored samples in the order of the items.

    The flags say why they should not be compared, where the user insists. A correction's difference is tested in place
    of the samples' own.
    """

    unit: str
    first: str
    second: str
    first_samples: Selection
    second_samples: Selection
    scale: Scale
    flags: tuple[Flag, ...] = ()
    correction: PairCorrection | None = None

    @property
    def judged(self) -> Pair:
        """The pair with the scores of the judge that is corrected."""
        if self.correction is None or self.correction.missing or self.correction.judged is None:
            return self
        first_samples, second_samples = self.correction.judged
        return replace(self, first_samples=first_samples, second_samples=second_samples)

    def test(self, family: int = 1, level: float = ALPHA, flipped_below: int = FLIPPED_BELOW) -> Difference:
        """Tests the second less the first: the corrected difference, or that of the scores where there is none."""
        if self.correction is None or self.correction.missing:
            return self.test_of_scores(family, level, flipped_below)
        return self._within_scale(self.correction.difference(1.0 - level))

    def test_of_scores(self, family: int = 1, level: float = ALPHA, flipped_below: int = FLIPPED_BELOW) -> Difference:
        """Tests the second less the first on the items that both have a score for.

        Means have :func:`~culture_tasks.metrics.comparison.paired_difference`, other scores a bootstrap. The interval
        of two runs of one subset is of the difference on all items. The family is the number of pairs that p will be
        adjusted for, and the level is one minus the confidence of the interval.
        """
        baseline, samples = aligned(self.first_samples, self.second_samples)
        if samples.compute is not None:
            return self._within_scale(samples.less(baseline, 1.0 - level))
        if family > _LARGE_FAMILY:
            flipped_below = min(flipped_below, FLIPPED_BELOW_IN_A_GROUP)
        numbers = samples.cluster_numbers
        test = paired_difference(
            samples.scores,
            baseline.scores,
            numbers if numbers.max(initial=-1) + 1 < numbers.size else None,
            1.0 - level,
            strata=samples.strata,
            shares=samples.shares,
            ends=self.scale.ends,
            flipped_below=flipped_below,
        )
        if (drawn_from := draw_of_both(baseline, samples)) is not None and test.n > 1:
            interval = subset_interval(
                samples.scores - baseline.scores, samples.shared_clusters, drawn_from, 1.0 - level
            )
            if not math.isnan(interval.low):
                test = test._replace(low=interval.low, high=interval.high)
        return self._within_scale(test)

    def _within_scale(self, difference: Difference) -> Difference:
        if self.scale.ends is None or math.isnan(difference.low):
            return difference
        width = self.scale.ends[1] - self.scale.ends[0]
        return difference._replace(low=max(difference.low, -width), high=min(difference.high, width))


def comparisons(
    units: Iterable[Unit], entrants: Mapping[str, ModelRow], corrections: Corrections, *, anyway: bool = False
) -> list[Comparison]:
    """Tests all pairs of entrants on each headline unit, where they can be compared or the user insists."""
    labels, tests = {key: entrant.label for key, entrant in entrants.items()}, []
    for measured in units:
        unit = measured
        keys = [key for key, cell in unit.cells.items() if cell.value is not None and measured.runs[key]]
        if unit.headline and len(keys) > 1:
            observed = {key: in_order(measured.select(key)) for key in keys}
            pairs = [
                Pair(
                    unit=unit.key,
                    first=first,
                    second=second,
                    first_samples=observed[first],
                    second_samples=observed[second],
                    scale=unit.scale,
                    flags=ordered(flags),
                    correction=corrections.correction(measured, first, second),
                )
                for first, second in combinations(keys, 2)
                if not (flags := why_not(measured, first, second)) or anyway
            ]
            tests += adjusted(pairs, labels)
    return tests


def scale_of_differences(scale: Scale) -> Scale:
    """Returns the scale of a difference of two numbers: percents differ by points."""
    unit = "points" if scale.unit in ("percent", "points of 100") else scale.unit
    return Scale(unit, None, None, better=None, neutral=0.0, digits=scale.digits)


def why_not(measured: Unit, first: str, second: str) -> set[Flag]:
    """Returns why two entrants can't be compared on a unit; nothing where they can."""
    runs = [measured.runs[key] for key in (first, second)]
    flags = reasons_against([measured.cells[key] for key in (first, second)], *runs)
    is_one_model = len({run.model for run in chain(*runs)}) == 1  # in two harnesses, it is compared with itself
    return flags - ({"other_harness"} if is_one_model else set())


def reasons_against(cells: Sequence[Number], first: Sequence[Run], second: Sequence[Run]) -> set[Flag]:
    """Returns why the numbers of some runs can't be compared; nothing where they can."""
    settings = [{run.task: run.settings for run in row_runs} for row_runs in (first, second)]
    return between(*settings).union(*(TEST_BARRIERS.intersection(cell.flags) for cell in cells))


def adjusted(pairs: Sequence[Pair], labels: Mapping[str, str]) -> list[Comparison]:
    """Tests a family of pairs, with Holm's adjustment over all of them.

    Holm's procedure stops with k pairs that it does not tell apart. The intervals and the numbers of items needed have
    the level alpha / k. The intervals of these k pairs cover their differences jointly, together with the signs of the
    other pairs (Guilbaud, 2008; Strassburger and Bretz, 2008).
    Verdicts call the entrants by their labels: ``B is better``, or ``higher`` where no end of the scale is.
    """
    tests = [pair.test(len(pairs)) for pair in pairs]
    p_values = [float(p) for p in holm([test.p for test in tests])]
    level = ALPHA / max(1, sum(p > ALPHA for p in p_values))
    if level < ALPHA:
        tests = [pair.test(len(pairs), level) for pair in pairs]
    return [
        _comparison(pair, test, p_holm=p, level=level, family=len(pairs), labels=labels)
        for pair, test, p in zip(pairs, tests, p_values, strict=True)
    ]


def _comparison(
    pair: Pair, test: Difference, *, p_holm: float, level: float, family: int, labels: Mapping[str, str]
) -> Comparison:
    word, better = verdict(test.difference, p_holm, ALPHA), None
    text: str = word
    if word in ("higher", "lower"):
        higher, lower = (pair.second, pair.first) if word == "higher" else (pair.first, pair.second)
        better = {"higher": higher, "lower": lower}.get(pair.scale.better or "")
        text = f"{labels[better]} is better" if better else f"{labels[higher]} is higher"
    correction = None
    if pair.correction is not None:
        judge_test = pair.judged.test_of_scores(family, level)
        test = test._replace(n=judge_test.n, clusters=judge_test.clusters)  # responses are counted as items
        correction = Correction(
            rated=pair.correction.rated,
            judge=judge_test.difference if judge_test.n else 0.0,
            judge_low=judge_test.low if math.isfinite(judge_test.low) else None,
            judge_high=judge_test.high if math.isfinite(judge_test.high) else None,
            missing=pair.correction.missing,
            by=pair.correction.by,
        )
    return Comparison(
        unit=pair.unit,
        first=pair.first,
        second=pair.second,
        difference=test.difference if test.n else 0.0,
        low=test.low if math.isfinite(test.low) else None,
        high=test.high if math.isfinite(test.high) else None,
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
    """Returns how many items would tell two entrants apart; an exact test needs enough clusters that differ, too."""
    if test.n < 2 or test.clusters < 2:
        return None
    size = test.n / test.clusters
    clusters = items_needed(test.difference, test.sd / math.sqrt(size), alpha=level)
    if math.isnan(clusters):
        return None
    if test.method not in ("t", "bootstrap"):
        clusters = max(clusters, math.ceil(math.log2(2.0 / level)) * test.clusters / test.differing)
    return max(math.ceil(size * clusters), test.n + 1)


# Ranks, and the best of a column


def rank_units(units: Iterable[Unit], tests: Iterable[Comparison], rankable: Callable[[Number], bool]) -> None:
    """Gives every unit its ranks and its standing, by the tests of all units."""
    by_unit: dict[str, list[Comparison]] = {}
    for test in tests:
        by_unit.setdefault(test.unit, []).append(test)
    for measured in units:
        unit = measured
        left_out = {
            key: (cell.note or (explain(["unjudged"]) if "unjudged" in cell.flags else "there is no score"))
            if cell.value is None
            else explain([flag for flag in cell.flags if flag in NOT_COMPARABLE])
            for key, cell in unit.cells.items()
            if not rankable(cell)
        }
        left_out |= {
            key: "there are no samples to test" if unit.benchmark else "the harnesses' own tasks aren't tested"
            for key in unit.cells
            if key not in left_out and not measured.runs[key]
        }
        cells, unit.standing = rank_cells(unit.cells, unit.scale, tests=by_unit.get(unit.key, ()), left_out=left_out)
        unit.cells.update(cells)


def rank_cells(
    cells: Mapping[str, Number], scale: Scale, *, tests: Sequence[Comparison], left_out: Mapping[str, str]
) -> tuple[dict[str, Number], Standing]:
    """Gives the cells of a column their ranks by the adjusted tests between them, and says who is best.

    A column that was not tested, that has a single number, or whose scale has no better end has no ranks.
    """
    sign = {"higher": -1.0, "lower": 1.0}.get(scale.better or "", 0.0)
    values = {key: sign * cell.value for key, cell in cells.items() if cell.value is not None and key not in left_out}
    order = sorted(values, key=values.__getitem__) if sign and tests and len(values) > 1 else []
    number = {key: place for place, key in enumerate(order)}
    better = {
        (number[test.better], number[test.second if test.better == test.first else test.first])
        for test in tests
        if test.better and {test.first, test.second} <= number.keys()
    }
    ranks = {key: Rank(*place) for key, place in zip(order, places(len(order), better), strict=True)}
    best = tuple(key for key in order if ranks[key].first == 1)
    is_told_apart = len(best) < len(order)
    standing = Standing(ranked=tuple(order), best=best, left_out=dict(left_out))
    cells_with_ranks = {
        key: replace(cell, rank=ranks.get(key), best=is_told_apart and key in best) for key, cell in cells.items()
    }
    return cells_with_ranks, standing


def with_best(scores: Numbers, address: At, rankable: Callable[[Number], bool]) -> Mapping[str, Number]:
    """Returns the numbers at an address; those of a group have the best ones marked.

    Each number is tested against the highest (or lowest, where that is better), with Bonferroni's adjustment over all
    pairs, since the highest isn't known beforehand. So the truly best are among the marked ones with 95 % confidence.
    A whole score has its ranks and its marks already, and a derived number has no samples to test.

    Source: Hsu (1984) for comparisons with the best.
    """
    cells, scale, measured = (
        scores.cells(address.unit, address.statistic, address.where),
        scores.scale(address.unit, address.statistic),
        scores.units.get(address.unit),
    )
    if measured is None or scale is None or scale.better is None or not address.where:
        return cells
    if any(statistic.name == address.statistic for statistic in measured.reported.derived):
        return cells
    values = {
        key: cell.value if scale.better == "higher" else -cell.value
        for key, cell in cells.items()
        if cell.value is not None and rankable(cell) and measured.runs[key]
    }
    if len(values) < 2:
        return cells
    observed = {key: in_order(measured.select(key, address.where, address.statistic)) for key in values}
    highest, pairs = max(values, key=values.__getitem__), math.comb(len(values), 2)
    worse: set[str] = set()
    for key in values.keys() - {highest}:
        pair = Pair(address.unit, highest, key, observed[highest], observed[key], scale=scale)
        if pair.test(pairs, flipped_below=FLIPPED_BELOW_IN_A_GROUP).p * pairs <= ALPHA:
            worse.add(key)
    return {key: replace(cell, best=bool(worse) and key in values.keys() - worse) for key, cell in cells.items()}


# Cultures within a row


def fairness(scores: Numbers) -> Iterator[Fairness]:
    """Yields how evenly each entrant's score spreads over the cultures of a unit; fewer than two give nothing."""
    cultures: dict[tuple[str, str], list[Number]] = {}
    for value in (number for number in scores if number.where):
        where = ((scores.units[value.unit].reported.culture, value.group),)
        if value.statistic == SCORE and value.where == where and value.value is not None:
            cultures.setdefault((value.unit, value.row), []).append(value)
    for (unit, entrant), values in cultures.items():
        scale = values[0].scale
        numbers = {value.group: value.value or 0.0 for value in values}
        if len(numbers) > 1:
            scores_spread = spread(numbers, higher_is_better=scale.better != "lower")
            yield Fairness(
                unit,
                entrant,
                dimension=values[0].dimension,
                best=scores_spread.best_group or "",
                best_value=scores_spread.best,
                worst=scores_spread.worst_group or "",
                worst_value=scores_spread.worst,
                gap=scores_spread.gap,
                variance=scores_spread.variance,
                groups=scores_spread.groups,
                scale=scale,
            )
