"""Ranks and spread over groups."""

import math

import pytest

from culture_tasks.metrics.rankings import places, spread

NAN = math.nan


def test_spread_by_hand():
    # mean (70 + 50 + 60) / 3 = 60; variance (100 + 100 + 0) / 2 = 100
    values = {"zh": 70.0, "ar": 50.0, "sw": NAN, "ja": 60.0}
    assert spread(values) == pytest.approx((70.0, "zh", 50.0, "ar", 20.0, 100.0, 3))
    assert math.isnan(spread({"a": NAN}).gap)
    assert spread({"a": 3.0})[:5] == (3.0, "a", 3.0, "a", 0.0)
    assert spread({"a": 3.0, "b": 3.0})[:6] == (3.0, None, 3.0, None, 0.0, 0.0)


def test_places_by_hand_and_at_the_extremes():
    # 0 is better than 2 and 3; 1 is better than 3. So 0 and 1 may be first, and 3 is third or fourth.
    assert places(4, [(0, 2), (0, 3), (1, 3), (0, 3)]) == [(1, 2), (1, 3), (2, 4), (3, 4)]
    assert places(0, []) == []
    assert places(3, []) == [(1, 3)] * 3
    assert places(3, [(2, 1), (2, 0), (1, 0)]) == [(3, 3), (2, 2), (1, 1)]
