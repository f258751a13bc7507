"""Several judges as one: who weighs what, and that the panel is no better than it looks."""

from __future__ import annotations

import numpy as np
import pytest

from culture_tasks.metrics.panels import weighted_panel
from culture_tasks.metrics.prediction_powered import corrected_mean

SIZE = 600
STRATA = np.repeat(["ar", "ja"], SIZE // 2)


def world(noise, seed=1, rated=120):
    """People's scores of a part, and judges whose errors have these deviations in the two cultures."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(6.0, 1.5, SIZE)
    judges = [truth + rng.normal(0.0, 1.0, SIZE) * np.where(STRATA == "ar", *own) for own in noise]
    people = np.where(rng.permutation(SIZE) < rated, truth + rng.normal(0.0, 0.3, SIZE), np.nan)
    return np.array(judges), people


def test_the_judge_that_predicts_people_weighs_most_and_is_left_where_others_add_nothing():
    for noise, heaviest in (
        ([(0.5, 0.5), (4.0, 4.0), (4.0, 4.0)], [0, 0]),  # one good judge
        ([(0.5, 4.0), (4.0, 0.5)], [0, 1]),  # each is good in one culture
    ):
        weights = weighted_panel(*world(noise), STRATA.tolist()).weights
        assert weights.argmax(axis=1).tolist() == heaviest
        assert (weights >= 0.0).all()
    weights = weighted_panel(*world([(0.5, 0.5), (9.0, 9.0)]), STRATA.tolist()).weights
    assert weights[:, 1] == pytest.approx(0.0, abs=0.02)
    assert np.ptp(weights[:, 0]) < 0.05


@pytest.mark.parametrize("clusters", [None, np.arange(SIZE) // 2])
def test_a_rated_response_has_no_part_in_its_own_weights_nor_in_its_cluster_s(clusters):
    judges, people = world([(1.0, 1.0)] * 3)
    before = weighted_panel(judges, people, STRATA.tolist(), clusters=clusters).scores
    place = np.flatnonzero(~np.isnan(people))[0]
    fellows = [place] if clusters is None else np.flatnonzero((clusters == clusters[place]) & ~np.isnan(people))
    people[place] += 5.0
    after = weighted_panel(judges, people, STRATA.tolist(), clusters=clusters).scores
    assert (after[fellows] == before[fellows]).all()
    assert (after != before).any()


def test_judges_of_noise_do_not_seem_to_know_anything():
    rng = np.random.default_rng(2)
    ratios = []
    for seed in range(20):
        _, people = world([(1.0, 1.0)], seed, rated=40)
        panel = weighted_panel(rng.normal(6.0, 1.5, (8, SIZE)), people, STRATA.tolist()).scores
        found, alone = (corrected_mean(own, people).overall for own in (panel, np.full(SIZE, np.nan)))
        ratios.append((found.high - found.low) / (alone.high - alone.low))
    assert 0.98 < np.mean(ratios) < 1.05  # weights that are learned and tried on the same ratings would give 0.9


def test_a_judge_that_hardly_errs_is_taken_as_it_is_and_few_ratings_leave_all_alike():
    judges, people = world([(0.5, 0.5), (1.0, 1.0)])
    rated = ~np.isnan(people)
    judges[1, rated] = people[rated]
    judges[1, np.flatnonzero(rated)[:4]] += 1.0
    panel = weighted_panel(judges, people, STRATA.tolist())
    assert (panel.scores == judges[1]).all()
    assert panel.weights.tolist() == [[0.0, 1.0]] * 2
    few = weighted_panel(judges, people, STRATA.tolist(), clusters=np.arange(SIZE) % 4)
    assert few.weights.tolist() == [[0.5, 0.5]] * 2
    people[np.flatnonzero(rated)[9:]] = np.nan
    assert weighted_panel(judges, people, STRATA.tolist()).weights.tolist() == [[0.5, 0.5]] * 2


def test_missing_scores_count_as_the_mean_of_the_stratum():
    judges, people = world([(0.5, 0.5), (1.0, 1.0)])
    judges[1, ~np.isnan(people)] = np.nan  # agrees with nobody
    assert (weighted_panel(judges, people, STRATA.tolist()).weights @ [1.0, -1.0] > 0.3).all()
    judges, people = world([(0.5, 0.5), (1.0, 1.0)])
    judges[0, :20] = np.nan
    filled = judges.copy()
    filled[0, :20] = np.nanmean(judges[0, STRATA == "ar"])
    of_missing, of_filled = (weighted_panel(own, people, STRATA.tolist()).scores for own in (judges, filled))
    assert of_missing == pytest.approx(of_filled)
