"""Ranks that tests leave open."""

from culture_tasks.metrics.rankings import places


def test_places_by_hand_and_at_the_extremes():
    # a is better than c and d; b is better than d. So a and b may be first, and d is third or fourth.
    ranks = {"a": (1, 2), "b": (1, 3), "c": (2, 4), "d": (3, 4)}
    assert places("abcd", [("a", "c"), ("a", "d"), ("b", "d"), ("a", "d")]) == ranks
    assert places("", []) == {}
    assert places("ab", []) == dict.fromkeys("ab", (1, 2))
    assert places("abc", [("c", "b"), ("c", "a"), ("b", "a")]) == {"a": (3, 3), "b": (2, 2), "c": (1, 1)}
