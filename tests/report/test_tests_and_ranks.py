"""Tests, their intervals and the ranks that follow from them say the same; simulations with known truth."""

import itertools
import math

import numpy as np
import pytest

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.metrics.significance import holm
from culture_tasks.report.model import Cell, Rank
from culture_tasks.report.numbers.comparisons import ALPHA, Pair, adjusted, ranked
from culture_tasks.report.numbers.observations import Observations, in_order

SHARE = Scale("share", 0.0, 1.0)
RATING = Scale("rating", 1.0, 10.0)


def observed(scores, clusters=None, strata=None, shares=None):
    items = np.arange(len(scores), dtype=np.int64)
    codes = np.asarray(items if clusters is None else clusters, dtype=np.int32)
    parts = None if strata is None else np.asarray(strata, dtype=np.int32)
    return in_order(Observations(("r1",), items, np.asarray(scores, dtype=np.float64), codes, parts, 1.0, shares))


def compared(models, scale):
    """Tests all pairs of models, given the samples of each."""
    pairs = [
        Pair("u", str(first), str(second), one=models[first], two=models[second], scale=scale)
        for first, second in itertools.combinations(range(len(models)), 2)
    ]
    return adjusted(pairs, {str(key): str(key) for key in range(len(models))})


def ranks_of(models, scale):
    cells = {str(at): Cell(float(np.nanmean(each.scores)), scale) for at, each in enumerate(models)}
    found, standing = ranked(cells, scale, tests=compared(models, scale), left_out={})
    return [found[str(at)].rank for at in range(len(models))], {int(key) for key in standing.best}


def drawn_models(rng, skills, items=60, clusters=1):
    """Ratings of models that share each item's difficulty; items of a cluster share more of it."""
    difficulty = rng.normal(size=items) + np.repeat(rng.normal(size=items // clusters), clusters)
    owners = np.repeat(np.arange(items // clusters), clusters)
    scores = [np.clip(np.round(5.5 + skill + difficulty + rng.normal(size=items)), 1, 10) for skill in skills]
    return [observed(each, owners) for each in scores]


def drawn_answers(rng, skills, items=150):
    """Right and wrong answers of models that share each item's difficulty."""
    difficulty = rng.normal(size=items)
    return [observed((rng.normal(size=items) + skill > difficulty).astype(float)) for skill in skills]


def test_an_interval_says_what_its_verdict_says():
    rng = np.random.default_rng(1)
    seen = set()
    for scale, models in (
        *((RATING, drawn_models(rng, [0.0, 0.2, 0.5, 0.9, 1.0], items=items)) for items in (12, 60, 400) * 3),
        *((SHARE, drawn_answers(rng, [0.0, 0.1, 0.3, 0.8, 0.9], items=items)) for items in (20, 150) * 4),
    ):
        found = compared(models, scale)
        assert [test.p_holm for test in found] == pytest.approx(holm([test.p for test in found]))
        for test in found:
            apart = test.p_holm <= ALPHA
            seen.add((test.test, apart))
            assert apart == (test.better is not None)
            assert test.verdict == (f"{test.better} is better" if apart else "not distinguishable")
            if test.low is not None:
                assert apart == (not test.low <= 0.0 <= test.high), test
            assert (test.items_needed is None) if apart else (test.items_needed is None or test.items_needed > test.n)
    assert len(seen) >= 8  # every test, with and without a verdict


def test_more_items_are_needed_where_these_were_too_few():
    # Differences of 1 in each of 4 items: 2 of 2 ** 4 swaps, p = 0.125; one of 2 ** 6 is the first below 0.05.
    [test] = compared([observed([1.0, 2.0, 3.0, 4.0]), observed([2.0, 3.0, 4.0, 5.0])], RATING)
    assert (test.p, test.verdict, test.items_needed) == (0.125, "not distinguishable", 6)
    # 4 of 2,376 items differ: 6 that differ would be needed at least, of 3,564 items; for a power of 80 %, more.
    a = np.full(2376, 5.0)
    b = np.where(np.arange(2376) < 4, 6.0, 5.0)
    [test] = compared([observed(a), observed(b)], RATING)
    assert (test.p, test.test, test.n) == (0.125, "all sign flips", 2376)
    assert test.items_needed > 3564
    assert test.low < 0.0 < test.high
    # No number of items tells equal models apart.
    [test] = compared([observed(a), observed(a)], RATING)
    assert (test.p, test.items_needed) == (1.0, None)


def test_parts_that_weigh_the_same_are_tested_exactly_where_few_items_differ():
    # A part of 1,000 items, of which 3 differ, and one of 10, of which 2 do: p counts the 2 ** 5 swaps.
    strata = np.repeat([0, 1], [1000, 10])
    a = np.full(1010, 5.0)
    b = a + np.isin(np.arange(1010), [0, 1, 2, 1000, 1001])
    [test] = compared([observed(a, strata=strata), observed(b, strata=strata)], RATING)
    assert test.difference == pytest.approx((3 / 1000 + 2 / 10) / 2)
    assert (test.p, test.test) == (2 / 2**5, "all sign flips")


@pytest.mark.parametrize("strata", [None, [0, 1]])
@pytest.mark.parametrize("scale", [SHARE, RATING])
def test_nothing_in_common_is_not_tested(scale, strata):
    [test] = compared([observed([1.0, math.nan], strata=strata), observed([math.nan, 1.0], strata=strata)], scale)
    assert (test.n, test.p, test.low, test.verdict, test.better) == (0, None, None, "not tested", None)
    cells = {"0": Cell(1.0, scale), "1": Cell(1.0, scale)}
    found, standing = ranked(cells, scale, tests=[test], left_out={})
    assert [cell.rank for cell in found.values()] == [Rank(1, 2)] * 2
    assert standing.best == ("0", "1")


def test_the_scale_says_which_end_is_better():
    models = [observed([0.2] * 30 + [0.3] * 30), observed([0.7] * 30 + [0.9] * 30)]
    errors = Scale("share of errors", 0.0, 1.0, better="lower")
    [test] = compared(models, errors)
    assert (test.better, test.verdict) == ("0", "0 is better")
    assert ranks_of(models, errors)[1] == {0}
    [test] = compared(models, Scale("ratio", better=None))
    assert (test.better, test.verdict) == (None, "1 is higher")


def test_equal_models_share_all_places():
    models = [observed([1.0, 5.0, 9.0])] * 3
    assert ranks_of(models, RATING) == ([Rank(1, 3)] * 3, {0, 1, 2})


@pytest.mark.parametrize(
    ("draw", "skills", "options"),
    [
        (drawn_answers, [0.3] * 5, {"items": 150}),
        (drawn_models, [0.3] * 2, {"items": 30}),
        pytest.param(drawn_answers, [0.0, 0.0, 0.2, 0.2, 0.4, 1.0], {"items": 300}, marks=pytest.mark.slow),
    ],
)
def test_places_and_groups_hold_the_truth(draw, skills, options):
    rng, places, groups = np.random.default_rng(11), 0, 0
    truth = [1 + sum(other > skill for other in skills) for skill in skills]  # equals share the best place
    best = {at for at, skill in enumerate(skills) if skill == max(skills)}
    for _ in range(300):
        ranks, group = ranks_of(draw(rng, skills, **options), SHARE if draw is drawn_answers else RATING)
        places += all(rank.first <= place <= rank.last for rank, place in zip(ranks, truth, strict=True))
        groups += best <= group
    assert min(places, groups) >= 0.95 * 300


def test_a_clear_winner_is_found():
    won = ranks_of(drawn_answers(np.random.default_rng(9), [1.5, 0.0, 0.0], items=150), SHARE)
    assert won == ([Rank(1, 1), Rank(2, 3), Rank(2, 3)], {0})
