"""Texts that are much alike, against Jaccard's index worked out by sets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.metrics.near_duplicates import LEAST_SIMILARITY, near_duplicates

TEXTS = st.lists(st.text("ab ", min_size=1).filter(str.strip), min_size=1, max_size=6)


def jaccard(one, other):
    one, other = ({*words, *map(" ".join, itertools.pairwise(words))} for words in (one.split(), other.split()))
    return len(one & other) / len(one | other)


@given(TEXTS, TEXTS)
def test_the_pairs_are_those_of_jaccard_s_index(first, second):
    expected = {
        (row, column): pytest.approx(jaccard(one, other))
        for (row, one), (column, other) in itertools.product(enumerate(first), enumerate(second))
        if jaccard(one, other) >= LEAST_SIMILARITY
    }
    assert {(row, column): similarity for row, column, similarity in near_duplicates(first, second)} == expected


def test_a_character_is_a_word_without_spaces_and_nothing_is_like_nothing():
    assert list(near_duplicates(["超市里的鸡蛋"], ["超市的鸡蛋", "怎么送礼"])) == []
    [pair] = near_duplicates(["在中国超市里的鸡蛋放在常温"], ["在中国超市里的鸡蛋放在常温吗"])
    assert pair[:2] == (0, 0)
    assert list(near_duplicates([], ["a"])) == list(near_duplicates(["a"], [])) == []
