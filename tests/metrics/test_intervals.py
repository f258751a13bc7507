"""Intervals against scipy, statsmodels and hand-worked values, and against simulated data with known truth."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from culture_tasks.metrics.intervals import bounded_interval, mean_interval, proportion_interval, share_interval
from culture_tasks.metrics.means import mean_and_error

T_1_8 = 4.794881


def ends(interval):
    return interval.low, interval.high


def test_means_by_hand():
    # mean (2 + 4 + 6 + 8) / 4 = 5; s^2 = (9 + 1 + 1 + 9) / 3 = 20/3; se = sqrt(20/3 / 4) = 1.29099; t(3) = 3.18245
    # reach = 3.18245 * 1.29099 = 4.10852
    interval = mean_interval([2, 4, math.nan, 6, 8])
    assert interval[:5] == pytest.approx((5.0, 0.89148, 9.10852, 4, 4), abs=1e-5)
    # Clusters x: 1, 2; y: 4; z: 5, 8. Mean 20 / 5 = 4. Sums of residuals: x -3 - 2 = -5, y 0, z 1 + 4 = 5.
    # Shares 0.4, 0.2, 0.4: se^2 = (25 / 0.6 + 0 + 25 / 0.6) / 25 = 10/3
    # d = 2/3, 1/4, 2/3; v = p d = 4/15, 1/20, 4/15: 1 / (137/144 - 2 (16/45 + 1/80) + (7/12)^2) = 1 / 0.555556 = 1.8
    # t(1.8) = 4.794881: reach 4.794881 * 1.825742 = 8.754216
    mean = mean_and_error([1, 2, 4, 5, 8], ["x", "x", "y", "z", "z"])
    assert mean[:4] == pytest.approx((4.0, math.sqrt(10 / 3), 5, 3))
    assert mean[5:] == pytest.approx((1.8, 25 / 9, 0.4))
    interval = mean_interval([1, 2, 4, 5, 8], ["x", "x", "y", "z", "z"])
    assert ends(interval) == pytest.approx((4.0 - T_1_8 * math.sqrt(10 / 3), 4.0 + T_1_8 * math.sqrt(10 / 3)))


def test_near_the_end_of_a_scale():
    # All of n at the end: 0.025 ^ (1 / n) of the scale, Clopper and Pearson's; 1 + 4 * 0.831567 = 4.32627
    assert ends(mean_interval([5] * 20, ends=(1, 5))) == pytest.approx((4.32627, 5.0), abs=0.003)
    # 45 of 50: quantiles 0.025 of Beta(45, 6) and 0.975 of Beta(46, 5)
    interval = mean_interval([1] * 45 + [0] * 5, ends=(0, 1))
    assert ends(interval) == pytest.approx((stats.beta.ppf(0.025, 45, 6), stats.beta.ppf(0.975, 46, 5)), abs=0.002)
    # In clusters that are alike throughout, they count as one each, with t(9) in place of z.
    owners = np.repeat(np.arange(10), 5)
    tail = stats.norm.cdf(stats.t.ppf(0.025, 9))
    assert mean_interval([5] * 50, owners, ends=(1, 5)).low == pytest.approx(1 + 4 * tail**0.1, abs=0.02)
    # Elsewhere it is t's.
    assert mean_interval([2, 3, 4], ends=(1, 5)) == mean_interval([2, 3, 4])


@pytest.mark.parametrize(
    ("values", "clusters", "value", "n", "reason"),
    [
        ([], None, math.nan, 0, "no item has a score"),
        ([math.nan, math.nan], ["a", "b"], math.nan, 0, "no item has a score"),
        ([7.0], None, 7.0, 1, "one cluster: its spread can't be known"),
        ([1.0, 2.0], ["a", "a"], 1.5, 2, "one cluster: its spread can't be known"),
        ([0.1, 0.1, 0.1], None, 0.1, 3, "every score is 0.1"),
        ([0.0, 0.0], None, 0.0, 2, "every score is 0"),
        ([1.0, 3.0, 3.0, 1.0], list("aabb"), 2.0, 4, "every cluster has the same mean"),
    ],
)
def test_nothing_to_go_by_has_a_reason(values, clusters, value, n, reason):
    interval = mean_interval(values, clusters)
    assert interval[:3] == pytest.approx((value, math.nan, math.nan), nan_ok=True)
    assert (interval.n, interval.reason) == (n, reason)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.01, 0.99))
def test_wilson_against_statsmodels(counts, confidence):
    interval = proportion_interval(*counts, confidence)
    assert ends(interval) == pytest.approx(proportion_confint(*counts, alpha=1 - confidence, method="wilson"), abs=1e-9)
    assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0


def test_clusters_that_are_all_alike_are_as_good_as_items_near_an_end():
    # 200 clusters with one 1.0 and one 0.9 each: their means don't differ, so that the design effect is at its least, 1
    scores, owners = [1.0, 0.9] * 200, np.repeat(np.arange(200), 2)
    by_item, by_cluster = (bounded_interval(scores, clusters, ends=(0.0, 1.0)) for clusters in (None, owners))
    assert ends(by_cluster) == pytest.approx(ends(by_item), abs=2e-4)
    assert by_cluster.clusters == 200


def test_one_large_cluster_is_no_crowd():
    # One image of 60 and 20 of one, all right: 1 / (0.75^2 + 20 / 80^2) = 1.768 clusters, with t(1.72) = 5.05
    owners = [0] * 60 + list(range(1, 21))
    interval = share_interval([1] * 80, owners)
    assert (interval.low, interval.largest) == (pytest.approx(1.768 / (1.768 + 5.05**2), abs=0.002), 0.75)


def test_shares_are_wilson_s_of_fewer_items():
    assert share_interval([True, False, True, math.nan]) == proportion_interval(2, 3)
    # Clusters of 4 that are all right or all wrong: sums of residuals +-2, se^2 = 20/19 * 20 * 4 / 80^2 = 1/76, and
    # 0.25 / 79 without clusters: a design effect of 79 / 19 and 80 * 19 / 79 = 19.2405 items. With t(19) = 2.093024:
    # low = (0.5 + q/2 - sqrt(q (0.25 + q/4))) / (1 + q) for q = 2.093024^2 / 19.2405 = 0.227684, which is 0.284684
    owners = np.repeat(np.arange(20), 4)
    assert ends(share_interval((owners % 2).astype(float), owners)) == pytest.approx((0.284684, 0.715316), abs=1e-5)
    # q = t(1)^2 / 2 clusters = 12.706205^2 / 2 = 80.723824; low = 1 / (1 + q) = 0.012236
    assert share_interval([1, 1, 1, 1], list("aabb"))[:3] == pytest.approx((1.0, 0.012236, 1.0), abs=1e-6)
    assert share_interval([1, 0], list("aa")).reason == "one cluster: its spread can't be known"
    assert share_interval([], []).reason == "no item has a score"
    # Clusters less alike than chance don't make the interval narrower than items would
    assert np.ptp(ends(share_interval([1, 0, 1, 0], list("aabb")))) > np.ptp(ends(proportion_interval(2, 4)))
