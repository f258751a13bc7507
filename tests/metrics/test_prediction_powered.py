"""A judge's score corrected by people's: worked by hand, at the extremes, and in worlds with biased judges."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from culture_tasks.metrics import prediction_powered
from culture_tasks.metrics.prediction_powered import corrected_mean

NAN = math.nan
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def worlds():
    spec = importlib.util.spec_from_file_location("spotcheck_coverage", ROOT / "speed" / "spotcheck_coverage.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def test_worked_by_hand(monkeypatch):
    monkeypatch.setattr(prediction_powered, "_FEW_DIFFERING", 0)
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


def test_a_judge_that_was_always_right_may_err_where_nobody_looked(monkeypatch):
    monkeypatch.setattr(prediction_powered, "_FEW_DIFFERING", 0)
    judge, people = [1, 0] * 20, [1, 0, 1, 0, 1, 0, 1, 0] + [NAN] * 32
    for scale in (1, 9):  # the rule of three on the share, times the scale: how far off it would be is unknown
        found = corrected_mean(scale * np.array(judge), scale * np.array(people), ends=(0, scale)).overall
        expected = scale * -math.log(0.05) * math.sqrt(1 / 8 * (1 / 8 - 1 / 40))
        assert found.set_high - found.value == pytest.approx(expected)


@pytest.mark.parametrize(("differing", "is_wider"), [(0, True), (4, True), (5, False)])
def test_with_few_differing_pairs_no_interval_is_narrower_than_that_of_people_alone(differing, is_wider):
    judge = np.array([1.0, 0.0] * 200)
    people = np.where(np.arange(400) < 60, judge, NAN)
    people[:differing] = 1.0 - people[:differing]
    found = corrected_mean(judge, people, ends=(0, 1)).overall
    alone = corrected_mean([NAN] * 400, people, ends=(0, 1)).overall
    assert (found.high - found.low >= alone.high - alone.low - 1e-12) == is_wider
    assert (found.set_high - found.set_low >= alone.set_high - alone.set_low - 1e-12) == is_wider


def test_another_error_like_those_seen_counts():
    people = [1.0] * 8 + [0.0] * 2 + [NAN] * 90
    found = corrected_mean([NAN] * 100, people, ends=(0, 1)).overall
    # Residuals .2 and -.8: squares 8 * .04 + 2 * .64 = 1.6, fourth powers .832; .832 / 1.6 = .52 > .8^2 - 1.6.
    variance, unseen = 1.6 / 8 * (1 / 10 - 1 / 100), math.log(0.05) ** 2 * 0.52 / 10 * (1 / 10 - 1 / 100)
    assert found.set_high - found.value == pytest.approx(math.sqrt(stats.t.ppf(0.975, 8) ** 2 * variance + unseen))


def test_people_who_rated_everything_are_right():
    people = [1.0, 4.0, 2.0, 5.0, 4.0]
    found = corrected_mean([5.0, 1.0, 4.0, 2.0, 3.0], people).overall
    assert found.weight == 0.0  # the judge orders them the other way round
    assert (found.value, found.set_low, found.set_high) == pytest.approx((3.2, 3.2, 3.2))
    assert found.low < 3.2 < found.high


def test_strata_count_by_their_size_or_by_their_shares_and_some_make_a_mean_of_their_own():
    rng = np.random.default_rng(2)
    judge, strata = rng.normal(5, 2, 90), np.repeat(list("aabcbb"), 15).tolist()
    people = np.where(np.arange(90) % 3 == 0, judge + rng.normal(0, 1, 90), NAN)
    found = corrected_mean(judge, people, strata)
    a, b, c = (found.strata[label].value for label in "abc")
    assert [(one.rated, one.size) for one in found.strata.values()] == [(10, 30), (15, 45), (5, 15)]
    assert found.overall.value == pytest.approx(a / 3 + b / 2 + c / 6)
    equal = corrected_mean(judge, people, strata, shares=dict.fromkeys("abc", 1))
    assert equal.overall.value == pytest.approx(sum(one.value for one in equal.strata.values()) / 3)
    assert found.over({"b": 7.0}) == found.strata["b"]
    assert found.over({"a": 2, "b": 3, "c": 1}).value == pytest.approx(found.overall.value)
    two = found.over({"a": 1, "b": 3})
    assert two.value == pytest.approx(a / 4 + b * 3 / 4)
    assert (two.rated, two.size) == (25, 75)
    for shares in ({"d": 1.0}, {"a": 0.0}, {}):
        with pytest.raises(ValueError, match="expected positive shares"):
            found.over(shares)


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
        ([], [], None, "there is no response"),
        ([1, 2, 3], [NAN] * 3, None, "no ratings yet"),
        ([1, 2, 3, 4], [1, NAN, NAN, NAN], None, "only one rating"),
        ([1, 2, 3, 4], [1, 2, NAN, NAN], None, "too few ratings for the spread to be known"),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, NAN], list("aaaabb"), "b has only one rating"),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, NAN, NAN, NAN], list("aaabbc"), "b and c have no ratings yet"),
        ([2, 2, 2, 2], [2, 2, 2, NAN], None, "the ratings show no spread"),
    ],
)
def test_too_little_says_why(judge, people, strata, reason):
    found = corrected_mean(judge, people, strata)
    assert found.overall.reason == reason
    assert math.isnan(found.overall.low)
    assert found.more_ratings(0.5) is None


def test_strata_without_ratings_leave_the_others_theirs():
    rng = np.random.default_rng(4)
    judge, strata = rng.normal(5, 2, 80), np.repeat(list("abcd"), 20)
    people = np.where((np.arange(80) % 2 == 0) & (strata < "c"), judge + rng.normal(0, 1, 80), NAN)
    found = corrected_mean(judge, people, strata.tolist(), clusters=np.arange(80) // 2, ends=(0, 10))
    assert (found.overall.reason, found.overall.rated, found.overall.size) == ("c and d have no ratings yet", 20, 80)
    assert math.isnan(found.overall.value)
    part = strata < "c"
    same = corrected_mean(judge[part], people[part], strata[part].tolist(), clusters=np.arange(40) // 2, ends=(0, 10))
    assert {label: found.strata[label] for label in "ab"} == same.strata
    assert found.over({"a": 2, "b": 2}) == same.overall
    assert (found.strata["c"].reason, found.strata["c"].size) == ("no ratings yet", 20)
    assert found.over({"b": 1, "d": 1}).reason == "d has no ratings yet"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"people": [1.0]}, "two lists of one length"),
        ({"strata": ["a"]}, "1 strata for 4 responses"),
        ({"shares": {"all": -1.0}}, "expected one of at least 0"),
        ({"shares": {"all": 0.0}}, "all shares are 0"),
        ({"clusters": [1]}, "1 for 4 items"),
    ],
)
def test_what_makes_no_sense_is_refused(options, said):
    given = {"judge": [1.0, 2.0, 3.0, 4.0], "people": [1.0, 2.0, 2.5, NAN], **options}
    with pytest.raises(ValueError, match=said):
        corrected_mean(**given)


def test_how_many_more_ratings_a_width_needs():
    rng = np.random.default_rng(5)
    truth = rng.normal(6, 1.5, 2_000)
    judge, order = truth + rng.normal(0.5, 1, 2_000), rng.permutation(2_000)

    def rated(number):
        return corrected_mean(judge, np.where(order < number, truth, NAN))

    found = rated(100)
    width = found.overall.high - found.overall.low
    more = found.more_ratings(0.7 * width)
    assert rated(100 + more).overall.high - rated(100 + more).overall.low == pytest.approx(0.7 * width, rel=0.1)
    assert found.more_ratings(2 * width) == 0
    assert found.more_ratings(0.1 * width) is None  # the questions themselves differ too much
    with pytest.raises(ValueError, match="positive"):
        found.more_ratings(0.0)


@pytest.mark.parametrize(
    ("world", "rated", "least"),
    [
        ("shared scenarios", 60, 0.88),
        ("right or wrong", 110, 0.88),
        ("halves", 21, 0.92),  # the judge makes rare gross errors in these
        ("scenarios wrong", 51, 0.92),
        ("one culture", 51, 0.92),
        ("tenths", 100, 0.92),
    ],
)
def test_the_interval_holds_the_truth_of_a_biased_judge(worlds, world, rated, least):
    found = worlds.coverage(worlds.WORLDS[world], rated, draws=200, seed=12)
    corrected, here = found["corrected"], found["corrected, these questions"]
    assert min(corrected.holds, here.holds) >= 0.92  # 0.95 less two standard errors of 200 draws
    assert corrected.least >= least  # the worst of the cultures
    assert corrected.width < 1.02 * found["people alone"].width
