"""Scores of places with partial pooling: worked by hand, at the extremes, and in worlds with a known truth."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from support.scripts import speed_script

from culture_tasks.metrics.partial_pooling import ScoredItems, pooled

SIMULATION = speed_script("partial_pooling")


def items(*cells, clusters=None, benchmarks=None):
    """Makes items of cells (place, unit, scores), with a benchmark for each unit."""
    sizes = [len(scores) for _, _, scores in cells]
    units = np.repeat([unit for _, unit, _ in cells], sizes)
    count = 1 + max(unit for _, unit, _ in cells)
    return ScoredItems(
        scores=np.concatenate([np.array(scores, dtype=float) for _, _, scores in cells]),
        places=np.repeat([place for place, _, _ in cells], sizes),
        units=units,
        clusters=np.arange(units.size) if clusters is None else np.array(clusters),
        benchmarks=benchmarks or range(count),
    )


def right(share, n):
    return [100.0] * round(share * n) + [0.0] * round((1 - share) * n)


def half_width(score):
    return (score.high - score.low) / 2


def test_one_place_alone_has_its_plain_mean_and_sampling_error():
    # se = sqrt(70 * 30 / 100) = 4.5826 points. The mean of the variance is drawn a little towards 50 %, by some six
    # items, to 2143 / 100: 4.63 points, 0.2205 of log-odds. 0.8473 +- 1.96 * 0.2205 is 60.2 to 78.2 %, 9.00 either way.
    (one,) = pooled(items((0, 0, right(0.7, 100))), 1)
    assert (one.value, one.raw, one.n) == (pytest.approx(70), pytest.approx(70), 100)
    assert half_width(one) == pytest.approx(9.00, abs=0.03)
    # Two benchmarks, 0.7 and 0.7: the error of a mean of two.
    (two,) = pooled(items((0, 0, right(0.7, 100)), (0, 1, right(0.7, 100))), 1)
    assert (two.value, half_width(two)) == (pytest.approx(70), pytest.approx(9.00 / math.sqrt(2), abs=0.03))
    # Pairs that are both right or both wrong are 50 items, not 100.
    (pairs,) = pooled(items((0, 0, right(0.7, 100)), clusters=np.arange(100) // 2), 1)
    assert half_width(pairs) == pytest.approx(math.sqrt(2) * 9.00, rel=0.02)


def test_scores_are_drawn_to_the_others_by_the_share_of_noise():
    # 200 places with 40 or 60 of 100 right: the means vary by 100 squared points, of which 24 are noise. Left is
    # (100 - 24) / 100 = 0.76 of the distance to 50, and the interval is 1.96 * sqrt(0.76 * 24) = 8.4 on either side.
    scores = pooled(items(*((place, 0, right(0.4 + 0.2 * (place % 2), 100)) for place in range(200))), 200)
    assert [one.raw for one in scores[:2]] == pytest.approx([40, 60])
    assert [one.value for one in scores[:2]] == pytest.approx([42.4, 57.6], abs=0.3)
    assert half_width(scores[0]) == pytest.approx(8.4, abs=0.3)


def test_questions_asked_about_every_place_widen_intervals_but_do_not_move_scores():
    cells = [(place, 0, right(0.6, 50)) for place in range(8)]
    own, shared = (pooled(items(*cells, clusters=clusters), 8) for clusters in (None, list(range(50)) * 8))
    assert [one.value for one in shared] == pytest.approx([one.value for one in own], abs=0.1)
    # The same questions are right everywhere: 400 answers say as much as 50; 1.96 * sqrt(60 * 40 / 50) = 13.6.
    assert all(half_width(one) == pytest.approx(13.6, abs=0.7) for one in shared)
    assert all(half_width(one) < 11 for one in own)


def test_the_variance_of_a_cell_of_few_clusters_is_drawn_to_the_predicted_one():
    # Ten pairs each: alike in one place, one right and one wrong in the other: they hardly correlate on average.
    # Own variances are 2 * 10/9 and 0 of that of 20 single items: (9 * 2.22 + 10) / 19 = 1.58 and 10 / 19 = 0.53, a
    # ratio of widths of 1.73 before the places are drawn to each other. By their own variance alone it would be 3.
    alike, mixed = [100.0] * 10 + [0.0] * 10, [100.0, 0.0] * 10
    pairs = np.arange(40) // 2
    first, second = pooled(items((0, 0, alike), (1, 0, mixed), clusters=pairs), 2)
    assert 1.3 < half_width(first) / half_width(second) < 1.8


@pytest.mark.parametrize(
    ("cells", "places"),
    [
        ([(0, 0, [100.0])], 1),
        ([(0, 0, [0.0]), (2, 0, [100.0])], 3),
        ([(place, 0, [0.0] * 18) for place in range(4)], 4),
        ([(place, unit, [70.0] * 9) for place in range(3) for unit in range(2)], 3),
        ([(place, unit, [100.0 * ((place + unit) % 2)]) for place in range(5) for unit in range(3)], 5),
        ([(0, 0, [1e-300, 100.0]), (1, 0, [0.0])], 2),
        ([(0, 0, [])], 2),
    ],
)
def test_extremes_give_numbers_within_the_scale_and_no_warning(cells, places):
    size = sum(len(scores) for _, _, scores in cells)
    scores = pooled(items(*cells, clusters=[0] * size), places)
    assert len(pooled(items(*cells), places)) == places
    assert [one is None for one in scores] == [
        place not in {cell[0] for cell in cells if cell[2]} for place in range(places)
    ]
    for one in filter(None, scores):
        assert 0 <= one.low <= one.value <= one.high <= 100
        assert one.high - one.low > 0.1
        assert 0 <= one.raw <= 100


def test_neither_the_order_of_rows_nor_numbering_matters():
    world = dataclasses.replace(SIMULATION.WORLDS[3], places=7)
    drawn, _ = world.draw(np.random.default_rng(1))
    order = np.random.default_rng(2).permutation(drawn.scores.size)
    scores = pooled(drawn, 7)
    columns = {name: getattr(drawn, name) for name in ("scores", "places", "units", "clusters")}
    assert pooled(dataclasses.replace(drawn, **{name: column[order] for name, column in columns.items()}), 7) == scores
    renamed = dataclasses.replace(
        drawn,
        places=6 - drawn.places,
        clusters=drawn.clusters.max() - drawn.clusters,
        benchmarks=[9 - benchmark for benchmark in drawn.benchmarks],
    )
    for one, other in zip(scores, reversed(pooled(renamed, 7)), strict=True):
        assert one == pytest.approx(other, abs=1e-6)


@pytest.mark.slow
def test_intervals_hold_known_truths_and_scores_are_nearer_than_plain_means():
    worlds = {world.about: world for world in SIMULATION.WORLDS}
    for about in ("spread 20, skewed", "97 and 55 %, a third easy alone"):
        found = SIMULATION.results(worlds[about], 40)["all"]  # 1,200 places
        assert 0.93 <= found.holds <= 0.98
        assert found.error < 0.4 * found.raw_error
