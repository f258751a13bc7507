"""Paired tests against scipy, statsmodels, a brute-force permutation and simulated data with known truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from culture_tasks.metrics.comparison import (
    EXACT_BELOW,
    mcnemar,
    paired_bootstrap,
    paired_difference,
    paired_permutation,
)
from culture_tasks.metrics.resampling import replicates

score = st.integers(0, 10).map(float) | st.just(math.nan)
pairs = st.lists(st.tuples(score, score, st.integers(0, 5)), max_size=14)
outcome = st.sampled_from([0.0, 1.0, math.nan])
CONFIDENCES = st.sampled_from([0.7, 0.9, 0.95, 0.99, 1 - 0.05 / 28])
TESTS = (paired_difference, paired_permutation)


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


def test_paired_difference_by_hand_and_against_scipy():
    # Differences 1, 2, 3, -, 2: mean 2, s^2 = (1 + 0 + 1 + 0) / 3 = 2/3, se = sqrt(2/3 / 4) = 0.408248
    # t = 2 / 0.408248 = 4.898979 with 3 degrees of freedom: p = 0.016277; t(3) = 3.182446: reach 1.299228
    result = paired_difference([2, 4, 6, 1, 3], [1, 2, 3, math.nan, 1])
    assert result[:5] == pytest.approx((2.0, 0.700772, 3.299228, 0.016277, 4), abs=1e-5)
    assert result.method == "paired t"
    assert result.sd == pytest.approx(math.sqrt(2 / 3))
    a, b, _ = two_models(np.random.default_rng(1), 40, 1, 0.5)
    reference = stats.ttest_rel(a, b)
    ours = paired_difference(a, b)
    assert ours.p == pytest.approx(reference.pvalue)
    assert (ours.low, ours.high) == pytest.approx(tuple(reference.confidence_interval()))


@given(pairs)
def test_all_sign_flips_against_brute_force(items):
    a, b, owners = columns([item for item in items if not math.isnan(item[0] + item[1])])
    ours = paired_permutation(a, b, owners)
    if not a:
        assert math.isnan(ours.p)
        return
    assert ours.method == "all sign flips"
    assert ours.p == pytest.approx(brute_force_p(a, b, owners))


def test_drawn_sign_flips_against_scipy_and_in_both_orders():
    a, b, _ = two_models(np.random.default_rng(4), 60, 1, 0.3)
    reference = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=9999, random_state=0
    )
    assert paired_permutation(a, b).p == pytest.approx(reference.pvalue, abs=0.02)
    a, b, owners = two_models(np.random.default_rng(5), 40, 2, 0.2)
    there, back = paired_permutation(a, b, owners), paired_permutation(b, a, owners)
    assert there[:4] == (-back.difference, -back.high, -back.low, back.p)


def test_mcnemar_by_hand():
    # Discordant: 1 for the first, 6 for the second. Exact: 2 * (1 + 7) / 2^7 = 0.125
    # Clopper-Pearson's interval of 1 of 7 is 0.003610 to 0.578723: 2 * share - 1 is -0.992780 to 0.157447
    # Wilson's interval of 7 of 20 is 0.181192 to 0.567145: -0.992780 * 0.567145 and 0.157447 * 0.567145
    result = mcnemar([1] + [0] * 6 + [1] * 9 + [0] * 4, [0] + [1] * 6 + [1] * 9 + [0] * 4)
    assert result[:4] == pytest.approx((-0.25, -0.563051, 0.089295, 0.125), abs=1e-5)
    assert (result.n, result.method) == (20, "McNemar exact")
    agreed = mcnemar([1, 0, 1], [1, 0, 1])
    assert (agreed.difference, agreed.p) == (0.0, 1.0)
    assert agreed.low < 0.0 < agreed.high


@given(st.integers(0, 60), st.integers(0, 60), st.sampled_from([0, 1, 10, 3000]), CONFIDENCES)
def test_mcnemar_against_statsmodels_and_its_interval_leaves_0_out_exactly_where_it_rejects(ours, theirs, both, level):
    a, b = [1] * ours + [0] * theirs + [1] * both, [0] * ours + [1] * theirs + [1] * both
    result = mcnemar(a, b, level)
    if not a:
        assert math.isnan(result.p)
        return
    expected = min(1.0, statsmodels_mcnemar([[both, ours], [theirs, 0]], exact=True).pvalue)
    if ours + theirs >= EXACT_BELOW:  # Mid-p takes away the probability of the observed count: half of it at either end
        expected = expected - stats.binom.pmf(min(ours, theirs), ours + theirs, 0.5) if ours != theirs else 1.0
        assert result.method == "McNemar mid-p"
    assert result.p == pytest.approx(expected, abs=1e-9)
    assert (result.p <= 1 - level) == (not result.low <= 0.0 <= result.high), result
    assert -1.0 <= result.low <= result.difference <= result.high <= 1.0


@pytest.mark.parametrize("test", TESTS)
def test_at_the_extremes(test):
    for a, b in (([], []), ([1.0, math.nan], [math.nan, 2.0])):
        result = test(a, b)
        assert (result.n, result.reason) == (0, "no item has a difference")
        assert all(math.isnan(number) for number in result[:4])
    equal = test([1.0, 5.0, 9.0], [1.0, 5.0, 9.0])
    assert (equal.difference, equal.p, equal.n, equal.reason) == (0.0, 1.0, 3, "every difference is 0")
    constant = test([2.0, 6.0, 4.0, 3.0], [1.0, 5.0, 3.0, 2.0])
    assert (constant.difference, constant.reason) == (1.0, "every difference is 1")
    assert constant.p == 2 / 2**4  # all pluses and all minuses of four signs
    assert math.isnan(equal.low + constant.low)
    alone = test([1.0, 2.0], [0.0, 0.0], ["a", "a"])
    assert (alone.difference, alone.reason) == (1.5, "one cluster: its spread can't be known")
    assert alone.p == pytest.approx(1.0 if test is paired_permutation else math.nan, nan_ok=True)


@given(pairs, CONFIDENCES)
def test_an_interval_leaves_0_out_exactly_where_the_test_rejects_and_exchanged_models_exchange_the_sign(items, level):
    a, b, owners = columns(items)
    for test in TESTS:
        found, back = test(a, b, owners, confidence=level), test(b, a, owners, confidence=level)
        assert found.difference == pytest.approx(-back.difference, nan_ok=True)
        assert found[1:4] == pytest.approx((-back.high, -back.low, back.p), nan_ok=True)
        if not math.isnan(found.low):
            assert (found.p <= 1 - level) == (not found.low <= 0.0 <= found.high), found
            assert found.low <= found.difference <= found.high


def test_few_items_that_differ_are_tested_exactly():
    # 4 of 2,376 items, all in favour of the first: 2 of 2 ** 4 swaps. Student's t would say 0.0455.
    a, b = np.repeat([1.0, 0.0], [4, 2372]), np.zeros(2376)
    assert paired_difference(a, b).p == pytest.approx(0.0455, abs=1e-4)
    found = paired_permutation(a, b)
    assert (found.p, found.method, found.differing, found.clusters) == (0.125, "all sign flips", 4, 2376)
    assert found.low < 0.0 < found.difference < found.high
    binary = mcnemar(a, b)
    assert binary.p == 0.125
    assert (found.low, found.high) == pytest.approx((binary.low, binary.high), rel=0.1)


def test_ends_by_hand():
    # Differences 1, 2, 3, 6. Each swap parts them in two; the lower means of the parts, and the higher, are
    # 1 | 11/3, 2 | 10/3, 3 | 3, 2 | 6, 3/2 | 9/2, 2 | 4, 5/2 | 7/2, twice each, and one part is empty twice.
    # At 50 %, the 5th of 8 is taken from either side: lower -, 1, 3/2, 2, 2, 2, 5/2, 3; higher +, 6, 9/2, 4, 11/3, ...
    found = paired_permutation([1.0, 2.0, 3.0, 6.0], [0.0] * 4, confidence=0.5)
    assert (found.low, found.high) == pytest.approx((2.0, 11 / 3))
    assert found.p == 2 / 16
    # Too few swaps for the confidence leave everything open.
    assert paired_permutation([1.0, 2.0, 3.0, 6.0], [0.0] * 4, confidence=0.95)[1:3] == (-math.inf, math.inf)


def test_the_bootstrap_of_a_mean_is_nearly_the_t_test():
    ours, theirs, clusters = two_models(np.random.default_rng(3), 40, 3, 0.3)
    exact = paired_difference(ours, theirs, clusters)
    again = [replicates(lambda at, own=own: float(own[at].mean()), clusters) for own in (ours, theirs)]
    found = paired_bootstrap(float((ours - theirs).mean()), again[0] - again[1], n=120, clusters=40)
    assert (found.clusters, found.method) == (40, "cluster bootstrap")
    assert (found.difference, found.sd) == (pytest.approx(exact.difference), pytest.approx(exact.sd, rel=0.1))
    assert found.low == pytest.approx(exact.low, abs=0.05)
    assert (found.p <= 0.05) == (found.high < 0 or found.low > 0)
    for drawn, p, reason in (
        ([0.5] * 100, 2.0**-9, "every resample has the same difference"),
        ([0.0] * 100, 1.0, "every resample has the same difference"),
        ([0.1, 0.2] * 40 + [math.nan] * 20, math.nan, "defined in 80 of 100 resamples only"),
    ):
        found = paired_bootstrap(drawn[0], np.array(drawn), n=20, clusters=10)
        assert found.p == pytest.approx(p, nan_ok=True)
        assert (math.isnan(found.low), found.reason) == (True, reason)
