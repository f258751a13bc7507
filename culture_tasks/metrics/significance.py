"""P values of several tests together, and the number of items that a test needs."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from culture_tasks.metrics.means import Floats

Verdict = Literal["higher", "lower", "not distinguishable", "not tested"]
"""The result of a test of the first model's score against the second's."""


def holm(pvalues: ArrayLike) -> Floats:
    """Holm's adjusted p values of a family of tests.

    Formula: for p values in ascending order, adjusted p_(i) = max over j <= i of min(1, (m - j + 1) * p_(j)), with m
    tests. Rejecting where adjusted p <= alpha keeps the chance of any false rejection in the family at
    alpha, whatever the tests' dependence. Never below the raw p, and in the same order.

    NaN is a test that could not be made, which stays NaN and is not counted.

    Source: Holm (1979).

    Examples:
        >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
        [0.03, 0.06, 0.06]
    """
    raw = np.asarray(pvalues, dtype=np.float64)
    present = ~np.isnan(raw)
    if raw.ndim != 1 or ((raw[present] < 0.0) | (raw[present] > 1.0)).any():
        raise ValueError("holm: expected one list of p values from 0 to 1, NaN where there is none.")
    tested = raw[present]
    order = np.argsort(tested, kind="stable")
    stepped = np.maximum.accumulate(tested[order] * np.arange(tested.size, 0, -1))
    adjusted = np.empty_like(tested)
    adjusted[order] = np.minimum(stepped, 1.0)
    result = np.full(raw.shape, np.nan)
    result[present] = adjusted
    return result


def items_needed(difference: float, sd_of_differences: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """How many common items a paired t test needs to tell two models apart at this difference; at least 2.

    Formula: ((z_(1 - alpha / 2) + z_power) * sd / difference)^2 + z_(1 - alpha / 2)^2 / 2, rounded up; the last term
    allows for t in place of z, and is right to about one item. With :attr:`Difference.sd
    <culture_tasks.metrics.comparison.Difference>` clusters count. NaN for no difference, which no number of items
    finds, or where a number is missing.

    Source: Guenther (1981).

    Examples:
        >>> items_needed(difference=0.05, sd_of_differences=0.5)
        787
    """
    if not 0.0 < alpha < power < 1.0 or sd_of_differences < 0.0:
        raise ValueError(
            f"items_needed: alpha={alpha}, power={power}, sd={sd_of_differences}; expected 0 < alpha < power < 1 and "
            "sd >= 0."
        )
    if difference == 0.0 or not (math.isfinite(difference) and math.isfinite(sd_of_differences)):
        return math.nan
    level_quantile, power_quantile = float(special.ndtri(1.0 - alpha / 2.0)), float(special.ndtri(power))
    ratio = sd_of_differences / abs(difference)
    if ratio > 1e6:  # the difference is a rounding error
        return math.nan
    return max(2.0, math.ceil(((level_quantile + power_quantile) * ratio) ** 2 + level_quantile**2 / 2.0))


def verdict(difference: float, adjusted_p: float, alpha: float = 0.05) -> Verdict:
    """Returns the result of a test in the words of a table; the difference is the first's mean less the second's.

    Examples:
        >>> verdict(difference=0.1, adjusted_p=0.01), verdict(difference=0.1, adjusted_p=0.2)
        ('higher', 'not distinguishable')
    """
    if math.isnan(adjusted_p) or math.isnan(difference):
        return "not tested"
    if adjusted_p > alpha or difference == 0.0:
        return "not distinguishable"
    return "higher" if difference > 0.0 else "lower"


def p_of_interval(value: float, low: float, high: float) -> float:
    """P value of a difference from 0, two-sided, by the side of its 95 % interval that faces 0, as of a normal one.

    Formula: 2 * Phi(-1.96 * |value| / reach), with the reach of that side; NaN without a reach.

    Examples:
        >>> round(p_of_interval(0.98, 0.0, 2.5), 2), p_of_interval(0.0, -1.0, 1.0), p_of_interval(1.0, 1.0, 1.0)
        (0.05, 1.0, nan)
    """
    reach = value - low if value > 0.0 else high - value
    return 2.0 * float(special.ndtr(special.ndtri(0.025) * abs(value) / reach)) if reach > 0.0 else math.nan
