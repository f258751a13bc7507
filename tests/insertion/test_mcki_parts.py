"""MCKI's pure parts: router, loss, threshold, memory."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.insertion.methods.mcki.router import calibrate, contrastive_loss, make_router


def loss(positive, negative, weights, scale=1.0, factor=1.0):
    found = contrastive_loss(
        torch.tensor(positive),
        torch.tensor(negative),
        torch.tensor(weights),
        logit_scale=scale,
        negative_loss_weight=factor,
    )
    return float(found)


def test_the_routers_vectors_have_length_one_and_its_size_is_that_of_table_4():
    vectors = make_router(8, 16, seed=0)(torch.randn(5, 2, 8))
    assert vectors.shape == (5, 16)
    assert torch.allclose(vectors.norm(dim=-1), torch.ones(5), atol=1e-5)
    # Two norms 2*2*4096, two projections 2*(4096*1024 + 1024), fusion 2048*1024 + 1024: 0.0105 billion, the
    # difference of Table 4 between MCKI (8.54) and the plain InternVL3.5-8B (8.53), both rounded.
    count = sum(parameter.numel() for parameter in make_router(4096, 1024, seed=0).parameters())
    assert count == 4 * 4096 + 2 * (4096 * 1024 + 1024) + 2048 * 1024 + 1024


@pytest.mark.parametrize(
    ("positive", "negative", "weights", "options", "expected"),
    [
        # l+ = 2*1 = 2, l- = 2*0.5 + ln 1.5; loss = -2 + ln(e^2 + 1.5 e)
        ([1.0], [0.5], [1.5], {"scale": 2.0}, -2 + math.log(math.e**2 + 1.5 * math.e)),
        # The same negatives beside each positive: (-1 + ln(e + 1) - 0 + ln(1 + 1)) / 2
        ([1.0, 0.0], [0.0], [1.0], {}, (-1 + math.log(math.e + 1) + math.log(2)) / 2),
        ([0.0], [0.0], [1.5], {}, math.log(2.5)),  # -0 + ln(1 + 1.5)
        ([0.3, 1.0], [], [], {"scale": 20.0}, 0.0),
        # -1 + 0.5 ln(e + 1): the factor scales the logarithm alone
        ([1.0], [0.0], [1.0], {"factor": 0.5}, -1 + 0.5 * math.log(math.e + 1)),
        # The paper's scale doesn't overflow.
        ([-1.0], [1.0], [1.5], {"scale": 20.0}, 40 + math.log(1.5)),
    ],
)
def test_the_loss_by_hand(positive, negative, weights, options, expected):
    assert loss(positive, negative, weights, **options) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def accuracy_at(threshold, positive, negative):
    right = sum(score >= threshold for score in positive) + sum(score < threshold for score in negative)
    return right / (len(positive) + len(negative))


class TestThreshold:
    @pytest.mark.parametrize(
        ("positive", "negative", "threshold", "accuracy"),
        [
            ([0.8, 1.0], [0.0, 0.4], 0.6, 1.0),  # the middle of the gap
            # 3 of 4 are right for t in (0.1, 0.2] and for t in (0.5, 0.9]: the second is wider.
            ([0.2, 0.9], [0.1, 0.5], 0.7, 0.75),
            # Both (0.0, 0.25] and (0.5, 0.75] get 3 of 4 right, and are of width 0.25 exactly: the highest.
            ([0.25, 0.75], [0.0, 0.5], 0.625, 0.75),
            # t in [-1, 0.5] and t in (0.5, 1] get 1 of 2 right; the first is wider.
            ([0.5], [0.5], -0.25, 0.5),
            ([0.2], [], -0.4, 1.0),  # the middle of [-1, 0.2]
            ([], [0.2], 0.6, 1.0),  # the middle of (0.2, 1]
            ([1.0], [-1.0], 0.0, 1.0),
            ([1.0000001], [-1.0000001], 0.0, 1.0),  # rounding beyond 1 is cut off
            ([1.0, 1.0], [1.0], 0.0, 2 / 3),  # a negative at 1 can't be told from a positive there
        ],
    )
    def test_by_hand(self, positive, negative, threshold, accuracy):
        found = calibrate(positive, negative)
        assert (found.threshold, found.accuracy) == (pytest.approx(threshold), pytest.approx(accuracy))

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
