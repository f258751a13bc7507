"""Ends of a bootstrap interval, corrected for bias and skewness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from culture_tasks.metrics.resampling import Floats


def bca_ends(value: float, draws: Floats, left: Floats, confidence: float) -> tuple[float, float]:
    """The bias-corrected and accelerated (BCa) ends of a bootstrap interval.

    Formula: quantiles Phi(z0 + (z0 + z) / (1 - a (z0 + z))) of the draws, for z at both ends of the confidence; z0 is
    the normal quantile of the share of draws below the value (those at it count half), and a is a sixth of the
    skewness of the jackknife's influence values over the square root of their number. z0 = a = 0 gives percentiles.

    Args:
        value: The statistic of the data.
        draws: The statistic of each resample, finite.
        left: The statistic of the data without each cluster, or each block of clusters, in turn; finite.
        confidence: Between 0 and 1.

    Returns:
        Both ends, always within the draws.

    Source: Efron (1987); Efron and Tibshirani (1993), equations 14.9 to 14.15.
    """
    below = (np.count_nonzero(draws < value) + 0.5 * np.count_nonzero(draws == value) + 0.5) / (draws.size + 1.0)
    bias = stats.norm.ppf(below)
    shifted = bias + stats.norm.ppf([(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
    squeeze = np.maximum(1.0 - _acceleration(left) * shifted, 1e-6)
    low, high = np.quantile(draws, stats.norm.cdf(bias + shifted / squeeze))
    return float(low), float(high)


def _acceleration(left: Floats) -> float:
    influence = left.mean() - left if left.size else left
    squares = float(influence @ influence)
    if squares <= 0.0:
        return 0.0
    scaled = influence / np.sqrt(squares)
    return float((scaled**3).sum()) / 6.0
