"""A confidence sequence: worked by hand, at the extremes, and looked at again and again in worlds with known truth."""

from __future__ import annotations

import math

import pytest
from support.scripts import speed_script

from culture_tasks.metrics.confidence_sequences import sequence_interval

DRIFT = speed_script("judge_drift")


def test_one_value_by_hand():
    # The mean stake is (0.1 + 0.3 + 0.6 + 0.95) / 4 = 0.4875; 1 + 0.4875 (1 / m - 1) = 40 gives m = 1 / 81.
    assert sequence_interval([1.0], 0, 1)[:3] == pytest.approx((1.0, 1 / 81, 1.0))
    assert sequence_interval([10.0], 1, 10)[:3] == pytest.approx((10.0, 1 + 9 / 81, 10.0))
    assert sequence_interval([0.0], 0, 1)[:3] == pytest.approx((0.0, 0.0, 80 / 81))
    assert sequence_interval([0.5, math.nan, 1.0], 0, 1) == sequence_interval([0.5, 1.0], 0, 1)
    assert sequence_interval([math.nan], 0, 1).reason == "no item has a score"


def test_the_capital_against_an_end_is_what_the_formula_says():
    values = [0.2, 0.9, 0.4, 0.4, 1.0, 0.7, 0.0, 0.8] * 9
    found = sequence_interval(values, 0, 1, confidence=0.9)
    capitals = [math.prod(1 - stake + stake * x / found.low for x in values) for stake in (0.1, 0.3, 0.6, 0.95)]
    assert sum(capitals) / 4 == pytest.approx(20.0)
    mirrored = sequence_interval([1 - x for x in values], 0, 1, confidence=0.9)
    assert (found.low, found.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low))
    assert found.low < found.value < found.high
    assert found.n == len(values)


def test_equal_values_never_give_certainty_and_more_of_them_a_narrower_interval():
    found = [sequence_interval([0.0] * n, -9, 9) for n in (1, 10, 100, 1000)]
    assert [one.low for one in found] == pytest.approx([-one.high for one in found])
    widths = [one.high for one in found]
    assert widths == sorted(widths, reverse=True)
    assert 0.0 < widths[-1] < 0.06


@pytest.mark.parametrize("world", [3, 5, 7])
def test_an_unchanged_judge_is_hardly_ever_called_changed(world):
    ours, usual = DRIFT.false_alarms(DRIFT.WORLDS[world], rounds=3, size=120, every=30, runs=40)
    assert ours <= 0.05
    assert usual > 0.1


def test_a_shift_of_3_points_of_100_is_found_within_240_verdicts():
    for world, shift in ((0, 0.3), (2, 0.3), (8, 3.0)):  # a judge that repeats its ratings, ratings, points of 100
        found = DRIFT.change(DRIFT.WORLDS[world], shift, size=240, every=20, runs=20)
        assert found.median <= 120
        assert found.late <= 240
        assert found.held >= 0.95
