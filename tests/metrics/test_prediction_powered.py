"""A judge's score corrected by people's: worked by hand, at the extremes, and in worlds with biased judges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from support.scripts import speed_script

from culture_tasks.metrics import prediction_powered
from culture_tasks.metrics.corrected_strata import Fit
from culture_tasks.metrics.prediction_powered import Corrected, corrected_difference, corrected_mean, for_other_raters

NAN = math.nan
WORLDS = speed_script("spotcheck_coverage")
# Judge's scores of 40 responses of two models, and people's of the first twelve.
JUDGE_A = [6, 7, 6, 5, 6, 4, 7, 9, 7, 6, 8, 8, 6, 6, 7, 8, 3, 6, 1, 2, 2, 6, 4, 10, 6, 6, 2, 6, 7, 7]
JUDGE_A += [5, 6, 4, 5, 9, 4, 7, 8, 7, 7]
JUDGE_B = [6, 7, 3, 2, 6, 2, 5, 10, 2, 9, 7, 6, 6, 3, 6, 10, 2, 6, 4, 1, 3, 5, 3, 4, 5, 4, 3, 6, 5, 4]
JUDGE_B += [3, 2, 3, 3, 9, 5, 4, 6, 6, 8]
PEOPLE_A = [6, 7, 5, 4, 5, 4, 6, 9, 5, 5, 7, 7] + [NAN] * 28
PEOPLE_B = [6, 7, 3, 4, 7, 1, 7, 9, 4, 8, 8, 5] + [NAN] * 28


def test_worked_by_hand(monkeypatch):
    monkeypatch.setattr(prediction_powered, "FEW_DIFFERING", 0)
    # f = 1..6, rated where f = 1, 3, 5 with Y = 2, 3, 7. Deviations: f -2 0 2, Y -2 -1 3; lambda = 10 / 8 = 1.25.
    # value = 1.25 * 3.5 + (4 - 1.25 * 3) = 4.625. Residuals .75 -.75 .75, squares about their mean .25: 1.5, with
    # 3 - 2 = 1 degree of freedom; s^2 = 1.5. For these responses: 1.5 (1/3 - 1/6) = 0.25.
    # var(f) = 17.5 / 5 = 3.5; cov(f, residuals) = 0; v = 1.5625 * 3.5 + 1.5 = 6.96875; for all: 0.25 + v / 6.
    # Predicted 1.25 f + .25 = 1.5, 2.75, 4, 5.25, 6.5, 7.75; farthest 6.5, 5.25, 4, 5.25, 6.5, 7.75; D^2 = 35.9479.
    found = corrected_mean([1, 2, 3, 4, 5, 6], [2, NAN, 3, NAN, 7, NAN], ends=(0, 8)).overall
    t, unseen = stats.t.ppf(0.975, 1), math.log(0.05) ** 2 * (215.6875 / 6 - 1.5) / 3
    assert (found.value, found.weight, found.rated, found.size) == (4.625, 1.25, 3, 6)
    assert found.set_high - found.value == pytest.approx(math.sqrt(t**2 * 0.25 + unseen / 6))
    assert found.high - found.value == pytest.approx(math.sqrt(t**2 * (0.25 + 6.96875 / 6) + unseen / 3))
    assert (found.low + found.high) / 2 == pytest.approx(found.value)


def test_a_stratum_borrows_from_the_spread_of_all_by_hand(monkeypatch):
    monkeypatch.setattr(prediction_powered, "FEW_DIFFERING", 0)
    # Two of four are rated in each stratum: 1 3, and 5 5. Squares 2 and 0, with 4 - 2 - 1 = 1 degree of freedom over
    # all, and 2 (1 - 1/4) - 1 = 0.5 of the first: s^2 = (2 + 5 * 2 / 1) / (0.5 + 5) = 24/11.
    people = [1, 3, NAN, NAN, 5, 5, NAN, NAN]
    found = corrected_mean([NAN] * 8, people, list("aaaabbbb"), ends=(0, 8)).over({"a": 1.0})
    # D^2 = (36 + 25) / 2 from 2 and 5 to the farther ends, less 2; 2 + 5 ratings count as all 4; t has 1 degree.
    unseen = math.log(0.05) ** 2 * 28.5 / 4 * (1 / 2 - 1 / 4)
    expected = math.sqrt(stats.t.ppf(0.975, 1) ** 2 * 24 / 11 * (1 / 2 - 1 / 4) + unseen)
    assert (found.value, found.set_high - 2.0) == pytest.approx((2.0, expected))


def test_mean_and_weight_are_those_of_ppi_python():
    # ppi_py 0.2.3: ppi_mean_pointestimate(Y, Yhat, Yhat_unlabeled, lam), with the unrated responses alone as unlabelled
    # ones, so that its lambda is ours times 28 / 40; without lam it takes cov / ((1 + n / N) var over all).
    found = corrected_mean(JUDGE_A, PEOPLE_A).overall
    assert found.value == pytest.approx(5.174501992032, abs=1e-8)
    f, y = np.array(JUDGE_A[:12]), np.array(PEOPLE_A[:12])
    alike = np.cov(y, f, ddof=0)[0, 1] / np.cov(y, f)[0, 1] * np.var(f, ddof=1) / np.var(JUDGE_A, ddof=1)
    assert found.weight * 28 / 40 * alike == pytest.approx(0.287463450292, abs=1e-8)


def test_an_error_that_nobody_saw_or_another_like_those_seen_counts(monkeypatch):
    monkeypatch.setattr(prediction_powered, "FEW_DIFFERING", 0)
    # A judge that was always right: the rule of three on the share, -log 0.05 / 8, times the scale of 9
    judge, people = np.tile([9, 0], 20), [9, 0, 9, 0, 9, 0, 9, 0] + [NAN] * 32
    found = corrected_mean(judge, people, ends=(0, 9)).overall
    assert found.set_high - found.value == pytest.approx(9 * -math.log(0.05) * math.sqrt(1 / 8 * (1 / 8 - 1 / 40)))
    found = corrected_mean([NAN] * 100, [1.0] * 8 + [0.0] * 2 + [NAN] * 90, ends=(0, 1)).overall
    # Residuals .2 and -.8: squares 8 * .04 + 2 * .64 = 1.6, fourth powers .832; .832 / 1.6 = .52 > .8^2 - 1.6.
    variance, unseen = 1.6 / 8 * (1 / 10 - 1 / 100), math.log(0.05) ** 2 * 0.52 / 10 * (1 / 10 - 1 / 100)
    assert found.set_high - found.value == pytest.approx(math.sqrt(stats.t.ppf(0.975, 8) ** 2 * variance + unseen))


def test_with_few_differing_pairs_no_interval_is_narrower_than_that_of_people_alone():
    judge = np.array([1.0, 0.0] * 200)
    for differing, is_wider in ((4, True), (5, False)):
        people = np.where(np.arange(400) < 60, judge, NAN)
        people[:differing] = 1.0 - people[:differing]
        found, alone = (corrected_mean(scores, people, ends=(0, 1)).overall for scores in (judge, [NAN] * 400))
        assert (found.high - found.low >= alone.high - alone.low - 1e-12) == is_wider
        assert (found.set_high - found.set_low >= alone.set_high - alone.set_low - 1e-12) == is_wider


def test_strata_count_by_their_size_or_by_their_shares_and_some_make_a_mean_of_their_own():
    rng = np.random.default_rng(2)
    judge, strata = rng.normal(5, 2, 90), np.repeat(list("aabcbb"), 15).tolist()
    people = np.where(np.arange(90) % 3 == 0, judge + rng.normal(0, 1, 90), NAN)
    found = corrected_mean(judge, people, strata)
    a, b, c = (found.over({label: 7.0}) for label in "abc")
    assert [(part.rated, part.size) for part in (a, b, c)] == [(10, 30), (15, 45), (5, 15)]
    assert found.overall.value == pytest.approx(a.value / 3 + b.value / 2 + c.value / 6)
    equal = corrected_mean(judge, people, strata, shares=dict.fromkeys("abc", 1))
    assert equal.overall.value == pytest.approx(sum(equal.over({label: 1}).value for label in "abc") / 3)
    two = found.over({"a": 1, "b": 3})
    assert (two.value, two.rated, two.size) == (pytest.approx(a.value / 4 + b.value * 3 / 4), 25, 75)
    part = np.array(strata) < "c"  # a stratum with one rating leaves the others theirs
    few = np.where(part | (np.arange(90) == strata.index("c")), people, NAN)
    some = corrected_mean(judge, few, strata, clusters=np.arange(90) // 2)
    same = corrected_mean(judge[part], people[part], np.array(strata)[part], clusters=(np.arange(90) // 2)[part])
    assert some.over({"a": 2, "b": 3}) == same.overall
    assert (some.overall.rated, some.overall.reason) == (26, "too few responses are rated for c")
    # A stratum that is rated throughout has no part in the weight: of a, deviations -1 1 and -1/2 1/2 give 1 / 2
    assert corrected_mean([1, 3, 2, 2, 0, 2], [1, 2, NAN, NAN, 2, 0], list("aaaabb")).overall.weight == 0.5
    # People who rated everything are right, whatever the judge says
    found = corrected_mean([5.0, 1.0, 4.0, 2.0, 3.0], [1.0, 4.0, 2.0, 5.0, 4.0]).overall
    assert (found.weight, found.value, found.set_low, found.set_high) == pytest.approx((0.0, 3.2, 3.2, 3.2))


def test_responses_that_share_a_cluster_widen_the_interval_for_questions_alone():
    rng = np.random.default_rng(3)
    judge = np.repeat(rng.normal(5, 2, 30), 4)
    people = np.where(np.arange(120) % 3 == 0, judge + rng.normal(0, 0.5, 120), NAN)
    alone = corrected_mean(judge, people).overall
    shared = corrected_mean(judge, people, clusters=np.repeat(np.arange(30), 4)).overall
    assert shared.value == alone.value
    assert shared.high - shared.low > 1.3 * (alone.high - alone.low)  # four of a kind are little more than one
    assert (shared.set_low, shared.set_high) == (alone.set_low, alone.set_high)


@pytest.mark.parametrize(
    ("judge", "people", "strata", "reason"),
    [
        ([], [], None, "too few responses are rated"),
        ([1, 2, 3], [NAN] * 3, None, "too few responses are rated"),
        ([1, 2, 3, 4], [1, 2, NAN, NAN], None, "too few responses are rated"),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, NAN, 5, NAN], list("aaabbc"), "too few responses are rated for b, c"),
        ([2, 2, 2, 2], [2, 2, 2, NAN], None, "the ratings show no spread"),
    ],
)
def test_too_little_says_why(judge, people, strata, reason):
    for found in (
        corrected_mean(judge, people, strata).overall,
        corrected_difference((judge,) * 2, (people,) * 2).test(),
    ):
        assert math.isnan(found.low)
        assert found.reason is not None
    assert corrected_mean(judge, people, strata).overall.reason == reason


def test_one_large_cluster_is_no_crowd():
    draws, owners = np.random.default_rng(6), np.concatenate([np.zeros(60, int), np.arange(1, 21)])
    held = []
    for _ in range(60):
        quality = 6.0 + draws.normal(size=21)[owners] + draws.normal(size=80)
        judge, people = quality + draws.normal(0.3, 1.0, 80), quality.copy()
        people[draws.choice(80, 40, replace=False)] = NAN
        found = corrected_mean(judge, people, clusters=owners).overall
        held.append(found.low <= 6.0 <= found.high)
    assert np.mean(held) >= 0.89  # 0.4 with as many degrees of freedom as clusters less one


def test_degrees_of_freedom_of_clusters_in_strata_by_hand():
    # Welch and Satterthwaite: parts of the variance in proportion to 0.5^2 / 8 = 3/96 of 4 clusters and 0.5^2 / 24 =
    # 1/96 of 6, so (3 + 1)^2 / (3^2 / 3 + 1^2 / 5) = 5
    clusters = np.concatenate([np.repeat(np.arange(4), 2), np.repeat(np.arange(4, 10), 4)])
    scores = np.random.default_rng(0).normal(size=32)
    everything = {"rated": np.ones(32, dtype=bool), "codes": np.repeat([0, 1], [8, 24]), "shares": np.array([0.5, 0.5])}
    fit = Fit(scores, people=scores, clusters=clusters, ends=None, **everything)
    assert fit.spread(everything["shares"]).freedom == pytest.approx(5.0)


# Two models


def test_a_difference_is_the_corrected_mean_of_the_differences():
    # truescore 0.7.4: ppi_estimate(judge_a - judge_b, people_a - people_b, rated, lambda_=weight * 28 / 40).point
    people_a = [*PEOPLE_A[:39], 3.0]  # rated of one model alone, which counts for nothing
    found = corrected_difference((JUDGE_A, JUDGE_B), (people_a, PEOPLE_B))
    assert found.overall.rated == 12
    assert found.test().difference == pytest.approx(0.022651006711, abs=1e-8)
    strata, clusters = ["ar", "ja"] * 20, np.arange(40) // 4
    found = corrected_difference((JUDGE_A, JUDGE_B), (PEOPLE_A, PEOPLE_B), strata, clusters=clusters, ends=(1, 10))
    judge, people = np.subtract(JUDGE_A, JUDGE_B), np.subtract(PEOPLE_A, PEOPLE_B)
    same = corrected_mean(judge, people, strata, clusters=clusters, ends=(-9, 9))
    for one, other in ((found.test(), same.overall), (found.test({"ja": 20}), same.over({"ja": 1}))):
        assert (one.difference, one.low, one.high) == pytest.approx((other.value, other.low, other.high))
        assert (one.n, one.method) == (other.size, "corrected, paired")


def test_p_is_the_level_at_which_the_interval_ends_at_0():
    judge_b, people_b = np.subtract(JUDGE_B, 3.0), np.subtract(PEOPLE_B, 3.0)
    found = corrected_difference((JUDGE_A, judge_b), (PEOPLE_A, people_b), ends=(-3, 10))
    p = found.test().p
    assert 0.0 < p < 0.2
    assert min(map(abs, found.test(confidence=1.0 - p)[1:3])) == pytest.approx(0.0, abs=1e-9)
    swapped = corrected_difference((judge_b, JUDGE_A), (people_b, PEOPLE_A), ends=(-3, 10)).test()
    assert (swapped.p, -swapped.difference) == pytest.approx((p, found.test().difference))


def test_a_gate_on_corrected_differences_holds_whatever_the_bias_of_the_judge():
    found = WORLDS.gates(WORLDS.TWO_MODELS["scenarios"], 100, draws=60, seed=3)
    for way in ("corrected", "corrected, designed sample"):
        assert found[way].holds >= 0.89  # 0.95 less two standard errors of 60 draws
        assert found[way].least >= 0.87  # the worst of three cultures
        assert found[way].alarms <= 0.065  # one of the two tails, 0.025, and two standard errors
    assert found["judge alone"].holds < 0.9
    assert found["corrected"].finds >= found["people alone"].finds - 0.02


def test_raters_like_these_by_hand():
    # Departures from the mean of all, 6: rater 1 has -0.5 on average, rater 2 +0.5; s = sqrt(0.5), t(1) = 12.706205
    # reach = 12.706205 * sqrt(0.5) / sqrt(2) = 6.353102; hypot(1, 6.353102) = 6.431323
    mean, ratings = Corrected(6.0, 5.0, 7.0, weight=0.0), np.array([[5.0, 6.0, NAN], [6.0, 7.0, NAN]])
    assert for_other_raters(mean, ratings, [1.0, 2.0, 3.0]) == pytest.approx((6.0 - 6.431323, 6.0 + 6.431323), abs=1e-5)
    # Raters of different cultures can't be told from these.
    apart = for_other_raters(mean, np.array([[5.0, NAN], [NAN, 7.0]]), [1.0, 2.0], ["ar", "ja"])
    assert all(math.isnan(end) for end in apart)
