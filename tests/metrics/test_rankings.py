"""Ranks that tests leave open."""

from culture_tasks.metrics.rankings import places


def test_places_by_hand_and_at_the_extremes():
    # 0 is better than 2 and 3; 1 is better than 3. So 0 and 1 may be first, and 3 is third or fourth.
    assert places(4, [(0, 2), (0, 3), (1, 3), (0, 3)]) == [(1, 2), (1, 3), (2, 4), (3, 4)]
    assert places(0, []) == []
    assert places(3, []) == [(1, 3)] * 3
    assert places(3, [(2, 1), (2, 0), (1, 0)]) == [(3, 3), (2, 2), (1, 1)]
