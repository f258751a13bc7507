"""Families of tests, numbers of items and verdicts."""

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from culture_tasks.metrics.significance import holm, items_needed, verdict


def test_holm_by_hand_and_against_statsmodels():
    # Ascending 0.01, 0.03, 0.04 of three tests: 3 * 0.01 = 0.03; 2 * 0.03 = 0.06; max(0.06, 1 * 0.04) = 0.06
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)
    assert holm([]).size == 0
    for size in (1, 2, 5, 28):
        values = np.random.default_rng(size).beta(0.3, 1.0, size=size).round(2)  # with ties
        assert holm(values) == pytest.approx(multipletests(values, method="holm")[1])


def test_items_needed_by_hand_and_against_statsmodels():
    # ((1.959964 + 0.841621) * 2 / 0.5)^2 + 1.959964^2 / 2 = 125.582 + 1.921 = 127.503
    assert items_needed(0.5, 2.0) == items_needed(-0.5, 2.0) == 128.0
    for difference, power in ((0.1, 0.8), (0.3, 0.8), (0.3, 0.95), (0.8, 0.9)):
        expected = TTestPower().solve_power(difference, alpha=0.05, power=power)
        assert items_needed(difference, 1.0, power) == pytest.approx(expected, abs=1.5)
    for nothing in ((0.0, 1.0), (math.nan, 1.0), (1.0, math.nan), (1e-300, 1.0)):
        assert math.isnan(items_needed(*nothing))
    assert items_needed(1.0, 0.0) == items_needed(1e300, 1.0) == 2.0


def test_verdict():
    assert (verdict(0.3, 0.05), verdict(-0.3, 0.01)) == ("higher", "lower")
    assert verdict(0.3, 0.06) == verdict(0.0, 0.0) == "not distinguishable"
    assert verdict(0.3, math.nan) == verdict(math.nan, 0.5) == "not tested"
