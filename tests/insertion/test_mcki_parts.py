"""MCKI's pure parts: router, loss, threshold, memory."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.insertion.methods.mcki.config import MckiConfig
from culture_tasks.insertion.methods.mcki.router import make_router
from culture_tasks.insertion.methods.mcki.router_training import calibrate, contrastive_loss


def loss(positive, negative, weights, scale=1.0, factor=1.0):
    found = contrastive_loss(
        torch.tensor(positive),
        torch.tensor(negative),
        torch.tensor(weights),
        logit_scale=scale,
        negative_loss_weight=factor,
    )
    return float(found)


class TestRouter:
    def test_vectors_have_length_one_and_the_options_width(self):
        vectors = make_router(8, 16, seed=0)(torch.randn(5, 2, 8))
        assert vectors.shape == (5, 16)
        assert torch.allclose(vectors.norm(dim=-1), torch.ones(5), atol=1e-5)

    def test_has_the_size_of_table_4(self):
        # Two norms 2*2*4096, two projections 2*(4096*1024 + 1024), fusion 2048*1024 + 1024: 0.0105 billion, the
        # difference of Table 4 between MCKI (8.54) and the plain InternVL3.5-8B (8.53), both rounded.
        count = sum(parameter.numel() for parameter in make_router(4096, 1024, seed=0).parameters())
        assert count == 4 * 4096 + 2 * (4096 * 1024 + 1024) + 2048 * 1024 + 1024


class TestLoss:
    def test_one_positive_and_one_negative(self):
        # l+ = 2*1 = 2, l- = 2*0.5 + ln 1.5; loss = -2 + ln(e^2 + 1.5 e)
        assert loss([1.0], [0.5], [1.5], scale=2.0) == pytest.approx(-2 + math.log(math.e**2 + 1.5 * math.e))

    def test_is_the_mean_over_positives(self):
        # The same negatives beside each positive: (-1 + ln(e + 1) - 0 + ln(1 + 1)) / 2
        assert loss([1.0, 0.0], [0.0], [1.0]) == pytest.approx((-1 + math.log(math.e + 1) + math.log(2)) / 2)

    def test_a_heavier_negative_costs_more(self):
        # -0 + ln(1 + 1) and -0 + ln(1 + 1.5)
        assert loss([0.0], [0.0], [1.0]) == pytest.approx(math.log(2.0))
        assert loss([0.0], [0.0], [1.5]) == pytest.approx(math.log(2.5))

    def test_without_negatives_nothing_is_left(self):
        assert loss([0.3, 1.0], [], [], scale=20.0) == pytest.approx(0.0, abs=1e-5)

    def test_factor_scales_the_logarithm_alone(self):
        # -1 + 0.5 ln(e + 1)
        assert loss([1.0], [0.0], [1.0], factor=0.5) == pytest.approx(-1 + 0.5 * math.log(math.e + 1))

    def test_the_papers_scale_does_not_overflow(self):
        assert loss([-1.0], [1.0], [1.5], scale=20.0) == pytest.approx(40 + math.log(1.5), rel=1e-5)

    def test_the_papers_values_are_the_defaults(self):
        config = MckiConfig()
        assert (config.route_dim, config.logit_scale, config.learning_rate, config.epochs) == (1024, 20.0, 1e-3, 1)
        assert config.weight_of("cross_language_locality") == 1.0
        assert config.weight_of("cross_scenario_locality") == 1.5


def accuracy_at(threshold, positive, negative):
    right = sum(score >= threshold for score in positive) + sum(score < threshold for score in negative)
    return right / (len(positive) + len(negative))


class TestThreshold:
    def test_lies_in_the_middle_of_the_gap(self):
        found = calibrate([0.8, 1.0], [0.0, 0.4])
        assert found.threshold == pytest.approx(0.6)
        assert found.accuracy == 1.0

    def test_of_equally_good_gaps_the_widest(self):
        # 3 of 4 are right for t in (0.1, 0.2] and for t in (0.5, 0.9]: the second is wider.
        found = calibrate([0.2, 0.9], [0.1, 0.5])
        assert found.threshold == pytest.approx(0.7)
        assert found.accuracy == 0.75

    def test_of_equally_wide_ones_the_highest(self):
        # Both (0.0, 0.25] and (0.5, 0.75] get 3 of 4 right, and are of width 0.25 exactly.
        assert calibrate([0.25, 0.75], [0.0, 0.5]).threshold == 0.625

    def test_equal_scores_on_both_sides_do_not_activate_when_that_is_as_good(self):
        # t in [-1, 0.5] and t in (0.5, 1] get 1 of 2 right; the first is wider.
        assert calibrate([0.5], [0.5]).threshold == pytest.approx(-0.25)

    def test_positives_alone(self):
        assert calibrate([0.2, 0.6], []) == calibrate([0.2], [])
        assert calibrate([0.2], []).threshold == pytest.approx(-0.4)  # the middle of [-1, 0.2]

    def test_negatives_alone(self):
        assert calibrate([], [0.2]).threshold == pytest.approx(0.6)  # the middle of (0.2, 1]

    def test_scores_at_both_ends(self):
        found = calibrate([1.0], [-1.0])
        assert found.threshold == pytest.approx(0.0)
        assert found.accuracy == 1.0

    def test_a_negative_at_one_cannot_be_told_from_a_positive_there(self):
        found = calibrate([1.0, 1.0], [1.0])
        assert found.accuracy == pytest.approx(2 / 3)
        assert -1.0 <= found.threshold <= 1.0

    def test_no_scores(self):
        with pytest.raises(ValueError, match="no scores"):
            calibrate([], [])

    @given(
        st.lists(st.integers(-8, 8).map(lambda value: value / 8), max_size=6),
        st.lists(st.integers(-8, 8).map(lambda value: value / 8), max_size=6),
    )
    def test_no_threshold_is_better(self, positive, negative):
        if not positive and not negative:
            return
        found = calibrate(positive, negative)
        assert found.accuracy == pytest.approx(accuracy_at(found.threshold, positive, negative))
        assert all(accuracy_at(step / 16, positive, negative) <= found.accuracy + 1e-9 for step in range(-16, 17))
