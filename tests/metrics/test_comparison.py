"""Paired tests by hand, against scipy and a brute-force permutation, and in worlds with known truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from culture_tasks.metrics.comparison import paired_bootstrap, paired_difference
from culture_tasks.metrics.means import contributions
from culture_tasks.metrics.resampling import replicates

score = st.integers(0, 10).map(float) | st.just(math.nan)
pairs = st.lists(st.tuples(score, score, st.integers(0, 5)), max_size=14)


def columns(items):
    return [item[0] for item in items], [item[1] for item in items], [item[2] for item in items]


def brute_force_p(a, b, clusters):
    """Swaps the two models' scores in every subset of the clusters, and counts the differences as large as the real."""
    names = sorted(set(clusters))
    real, found = abs(sum(a) - sum(b)), []
    for swapped in itertools.product([False, True], repeat=len(names)):
        swap = dict(zip(names, swapped, strict=True))
        signs = [-1 if swap[cluster] else 1 for cluster in clusters]
        found.append(abs(sum(sign * (x - y) for sign, x, y in zip(signs, a, b, strict=True))))
    return np.mean([difference >= real - 1e-9 for difference in found])


def two_models(rng, clusters, size, apart=0.0):
    """Two models' scores that share each cluster's difficulty, and each model's own luck with it."""
    owners = np.repeat(np.arange(clusters), size)
    difficulty = rng.normal(size=clusters)[owners]
    a, b = (difficulty + rng.normal(size=clusters)[owners] + rng.normal(size=owners.size) for _ in range(2))
    return a + apart, b, owners


def test_t_by_hand():
    # Differences 1, 2, 3, -, 2: mean 2, s^2 = (1 + 0 + 1 + 0) / 3 = 2/3, se = sqrt(2/3 / 4) = 0.408248
    # t = 2 / 0.408248 = 4.898979 with 3 degrees of freedom: p = 0.016277; t(3) = 3.182446: reach 1.299228
    result = paired_difference([2, 4, 6, 1, 3], [1, 2, 3, math.nan, 1], flipped_below=0)
    assert result[:5] == pytest.approx((2.0, 0.700772, 3.299228, 0.016277, 4), abs=1e-5)
    assert (result.method, result.sd) == ("t", pytest.approx(math.sqrt(2 / 3)))


def test_flips_of_one_size_are_mcnemar_s_exact_test():
    # Discordant: 1 for the first, 6 for the second. Exact: 2 * (1 + 7) / 2^7 = 0.125
    a, b = [1] + [0] * 6 + [1] * 9 + [0] * 4, [0] + [1] * 6 + [1] * 9 + [0] * 4
    result = paired_difference(a, b)
    assert (result.difference, result.p, result.n, result.differing) == (-0.25, 0.125, 20, 7)
    assert result.method == "sign flips"
    # From 200 on, too: 320 of 600 in favour of the first
    result = paired_difference([1] * 320 + [0] * 280, [0] * 320 + [1] * 280)
    assert result.p == pytest.approx(stats.binomtest(320, 600).pvalue)


@given(pairs)
def test_all_flips_against_brute_force(items):
    a, b, owners = columns([item for item in items if not math.isnan(item[0] + item[1])])
    ours, back = paired_difference(a, b, owners), paired_difference(b, a, owners)
    if not a:
        assert math.isnan(ours.p)
        return
    assert ours.p == pytest.approx(brute_force_p(a, b, owners))
    assert ours[:4] == pytest.approx((-back.difference, -back.high, -back.low, back.p), nan_ok=True)


def test_many_flips_are_drawn_and_from_200_differing_clusters_on_the_test_is_t():
    # None of 10,000 draws gives all 20 differences one sign: 1 / (1 + 10,000), never 0
    assert paired_difference(np.arange(1, 21), np.zeros(20)).p == pytest.approx(1 / 10_001)
    methods = [paired_difference(np.arange(1, many), np.zeros(many - 1)).method for many in (200, 201)]
    assert methods == ["sign flips", "t"]


def test_parts_that_weigh_the_same():
    # Parts 0 (items 1, 2, 3: differences 1, 0, 0) and 1 (item 4: difference 1): (1/3 + 1) / 2 = 2/3
    result = paired_difference([1, 0, 0, 1], [0, 0, 0, 0], strata=np.array([0, 0, 0, 1]))
    assert result.difference == pytest.approx(2 / 3)
    # Each item has 2/3 and its weight times its distance from its part's mean, 1/3 or 1
    values = contributions(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 0, 0, 1]))
    assert values == pytest.approx([10 / 9, 4 / 9, 4 / 9, 2 / 3])
    # Weights 2/3 and 2: sums 2/3, 0, 0, 2, of which all 2 of 4 signs with both alike are as far from 0
    assert (result.p, result.differing) == (0.5, 2)


def test_at_the_extremes():
    for a, b in (([], []), ([1.0, math.nan], [math.nan, 2.0])):
        result = paired_difference(a, b)
        assert (result.n, result.reason) == (0, "no item has a difference")
        assert all(math.isnan(number) for number in result[:4])
    equal = paired_difference([1.0, 5.0, 9.0], [1.0, 5.0, 9.0])
    assert (equal.difference, equal.p, equal.n, equal.reason) == (0.0, 1.0, 3, "every difference is 0")
    constant = paired_difference([2.0, 6.0, 4.0, 3.0], [1.0, 5.0, 3.0, 2.0])
    assert (constant.difference, constant.p, constant.reason) == (1.0, 2 / 2**4, "every difference is 1")
    assert math.isnan(equal.low + constant.low)
    # With the ends of a scale there is an interval: 0.025 ^ (1 / 20) = 0.83157, on a scale of -1 to 1
    agreed = paired_difference([1.0] * 20, [1.0] * 20, ends=(0.0, 1.0))
    assert (agreed.low, agreed.high, agreed.reason) == (
        pytest.approx(-0.168, abs=1e-3),
        pytest.approx(0.168, abs=1e-3),
        None,
    )
    alone = paired_difference([1.0, 2.0], [0.0, 0.0], ["a", "a"])
    assert (alone.difference, alone.p, alone.reason) == (1.5, 1.0, "one cluster: its spread can't be known")


def test_a_failure_that_few_items_missed_makes_a_difference_fragile():
    # 20 differences of 0.2 and 10 of 0.4: one of -4 more would bring their sum of 8 to 4, with a wide spread
    better = [3.2] * 20 + [3.4] * 10
    assert paired_difference(better, [3.0] * 30, ends=(1.0, 5.0)).is_fragile
    assert paired_difference([3.0] * 30, better, ends=(1.0, 5.0)).is_fragile
    assert not paired_difference(better, [3.0] * 30).is_fragile
    assert not paired_difference(better * 20, [3.0] * 600, ends=(1.0, 5.0)).is_fragile


def test_the_bootstrap_of_a_mean_is_nearly_the_t_test():
    ours, theirs, clusters = two_models(np.random.default_rng(3), 40, 3, 0.3)
    exact = paired_difference(ours, theirs, clusters)
    again = [replicates(lambda at, own=own: float(own[at].mean()), clusters) for own in (ours, theirs)]
    found = paired_bootstrap(float((ours - theirs).mean()), again[0] - again[1], n=120, clusters=40)
    assert (found.clusters, found.method) == (40, "bootstrap")
    assert found[:4] == pytest.approx(exact[:4], abs=0.05)
    assert found.sd == pytest.approx(exact.sd, rel=0.1)
    for drawn, p, reason in (
        ([0.5] * 100, 2.0**-9, "every resample has the same difference"),
        ([0.0] * 100, 1.0, "every resample has the same difference"),
        ([0.1, 0.2] * 40 + [math.nan] * 20, math.nan, "defined in 80 of 100 resamples only"),
    ):
        found = paired_bootstrap(drawn[0], np.array(drawn), n=20, clusters=10)
        assert found.p == pytest.approx(p, nan_ok=True)
        assert (math.isnan(found.low), found.reason) == (True, reason)
