"""Designed draws: nested, even, fair; and intervals that hold the score of all items."""

import math
from collections import Counter

import numpy as np
import pytest

from culture_tasks.metrics.intervals import t_quantile
from culture_tasks.metrics.subsets import (
    SamplingFrame,
    components,
    draw,
    population,
    subset_interval,
)


def parallel(questions, languages):
    items = [f"{question}/{language}" for question in range(questions) for language in range(languages)]
    return items, [item.partition("/")[0] for item in items]


def test_a_draw_contains_every_smaller_one_and_depends_on_names_and_seed_alone():
    items, clusters = parallel(40, 5)
    strata = ["even" if int(cluster) % 2 == 0 else "odd" for cluster in clusters]
    drawn = draw(200, items, clusters, strata)
    assert sorted(drawn) == list(range(200))
    assert all(draw(n, items, clusters, strata) == drawn[:n] for n in (1, 15, 40, 77))
    assert draw(40, items, clusters, strata, seed=1) != drawn[:40]
    order = list(reversed(range(200)))
    again = draw(40, [items[at] for at in order], [clusters[at] for at in order], [strata[at] for at in order])
    assert [order[at] for at in again] == drawn[:40]
    assert len(draw(9, items[:4], clusters[:4], strata[:4])) == 4


def test_every_item_has_the_same_chance_whatever_its_cluster():
    clusters = [f"c{size}-{number}" for size in (1, 2, 6) for number in range(12 // size) for _ in range(size)]
    items = [str(at) for at in range(len(clusters))]
    seeds = 1500
    counts = np.zeros(len(items))
    for seed in range(seeds):
        counts[draw(9, items, clusters, [""] * len(items), seed)] += 1
    expected = seeds * 9 / 36
    error = math.sqrt(seeds * 0.25 * 0.75)
    assert np.abs(counts - expected).max() < 4.5 * error


def test_what_a_draw_says_of_its_population_by_hand():
    # Two of the three of "a" and none of the one of "b": (1 - 3/4)² + (0 - 1/4)².
    assert population([0, 2], ["a", "a", "a", "b"]) == SamplingFrame(4, pytest.approx(0.125))
    assert population(range(4), ["a", "a", "a", "b"]).spread == 0.0


def test_without_clusters_it_is_the_textbook_interval_with_the_finite_population_correction():
    scores = [3.0, 5.0, 4.0, 4.0, 9.0]
    found = subset_interval(scores, None, SamplingFrame(20, 1 / 5 - 1 / 20))
    reach = t_quantile(0.95, 5) * np.std(scores, ddof=1) * math.sqrt(1 / 5 - 1 / 20)
    assert (found.low, found.high) == pytest.approx((5.0 - reach, 5.0 + reach))
    assert subset_interval([1.0], None, SamplingFrame(10, 0.1)).reason  # no spread to learn from


def test_clusters_by_hand():
    # Means 2 and 6 about 4, two items each: mean squares 2 * 4 + 2 * 4 = 16 between, (2 + 2) / 2 = 2 within.
    # B = (16 - 2) / 2 = 7, W = 2: 7 * 0.1 + 2 * (1/4 - 1/8) = 0.95, as 0.05 * 16 + 0.075 * 2 is.
    # Satterthwaite: 0.95^2 / (0.8^2 / 1 + 0.15^2 / 2) = 1.3858 degrees of freedom
    found = subset_interval([1.0, 3.0, 5.0, 7.0], ["a", "a", "b", "b"], SamplingFrame(8, 0.1))
    assert found.high - 4.0 == pytest.approx(t_quantile(0.95, 2.3858) * math.sqrt(0.95), rel=1e-4)
    # Of two items and one: 2 * 1 + 4 = 6 between, 2 within, and (3 - 5 / 3) / 1 = 4/3 items each: (6 - 2) / (4/3) = 3
    assert components([1.0, 3.0, 5.0], ["a", "a", "b"]) == pytest.approx((3.0, 2.0))
    assert components([1.0, 2.0, 3.0]) == (0.0, 1.0)
    assert math.isnan(components([1.0]).items)


def test_intervals_hold_the_score_of_all_items():
    rng = np.random.default_rng(4)
    items, clusters = parallel(60, 10)
    codes = np.repeat(np.arange(60), 10)
    strata = [f"{code % 4}" for code in codes]
    held = Counter[int]()
    worlds = 60
    for world in range(worlds):
        scores = rng.normal(0, 1, 60)[codes] + rng.normal(0, 0.5, codes.size)
        scores = (scores > 0.3).astype(float)
        drawn = draw(120, items, clusters, strata, seed=world)
        for n in (30, 60, 120):
            part = np.array(drawn[:n])
            found = subset_interval(scores[part], codes[part], population(part, clusters), shares=True)
            held[n] += found.low <= scores.mean() <= found.high
    assert all(held[n] / worlds >= 0.89 for n in (30, 60, 120)), held
