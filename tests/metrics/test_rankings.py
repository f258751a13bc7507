"""Mean ranks and spread over groups."""

import math

import numpy as np
import pytest

from culture_tasks.metrics.rankings import mean_rank, places, spread

NAN = math.nan


def test_spread_by_hand():
    # mean (70 + 50 + 60) / 3 = 60; variance (100 + 100 + 0) / 3 = 66.67, or / 2 = 100
    values = {"zh": 70.0, "ar": 50.0, "sw": NAN, "ja": 60.0}
    assert spread(values)[:9] == pytest.approx((70.0, "zh", 50.0, "ar", 20.0, 200 / 3, 60.0, 3, 1))
    assert spread(values, ddof=1).variance == pytest.approx(100.0)
    assert math.isnan(spread(values).by_chance)
    # Squared errors 1, 4, 4 with mean 3: over n - 1 that is 3, over n it is 3 * 2 / 3 = 2
    errors = {"zh": 1.0, "ar": 2.0, "ja": 2.0}
    assert spread(values, errors_by_group=errors, ddof=1).by_chance == pytest.approx(3.0)
    assert spread(values, errors_by_group=errors).by_chance == pytest.approx(2.0)
    assert math.isnan(spread(values, errors_by_group={"zh": 1.0}).by_chance)


def test_spread_at_the_extremes():
    nothing = spread({"a": NAN})
    assert (nothing.best_group, nothing.groups, nothing.missing) == (None, 0, 1)
    assert math.isnan(nothing.gap)
    assert spread({}).groups == 0
    assert spread({"a": 3.0})[:6] == (3.0, "a", 3.0, "a", 0.0, 0.0)
    assert math.isnan(spread({"a": 3.0}, ddof=1).variance)
    assert spread({"a": 3.0, "b": 3.0})[:6] == (3.0, None, 3.0, None, 0.0, 0.0)


def test_mean_rank_by_hand_and_at_the_extremes():
    # Column 1: ranks 2, 1, 3. Column 2: ranks 1.5, 1.5, 3. Column 3 lacks a model and doesn't count.
    table = [[5.0, 7.0, NAN], [6.0, 7.0, 1.0], [1.0, 2.0, 9.0]]
    assert mean_rank(table) == [(1.75, 2, 2, 3), (1.25, 2, 3, 3), (3.0, 2, 3, 3)]
    # Counted too, column 3 has ranks -, 2, 1: means 3.5 / 2, 4.5 / 3 and 7 / 3
    assert [rank.rank for rank in mean_rank(table, shared_only=False)] == pytest.approx([1.75, 1.5, 7 / 3])
    assert [rank.rank for rank in mean_rank(table, higher_is_better=False)] == [2.25, 2.75, 1.0]
    assert mean_rank(np.empty((0, 0))) == []
    assert [rank.columns for rank in mean_rank(np.empty((2, 0)))] == [0, 0]
    assert all(math.isnan(rank.rank) for rank in mean_rank([[1.0, NAN], [NAN, 1.0]]))
    assert mean_rank([[5.0]])[0].rank == 1.0


def test_places_by_hand_and_at_the_extremes():
    # 0 is better than 2 and 3; 1 is better than 3. So 0 and 1 may be first, and 3 is third or fourth.
    assert places(4, [(0, 2), (0, 3), (1, 3), (0, 3)]) == [(1, 2), (1, 3), (2, 4), (3, 4)]
    assert places(0, []) == []
    assert places(3, []) == [(1, 3)] * 3
    assert places(3, [(2, 1), (2, 0), (1, 0)]) == [(3, 3), (2, 2), (1, 1)]
