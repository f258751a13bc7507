"""Intervals that may be looked at after every value: a confidence sequence of the mean of bounded values.

A usual interval holds the mean in 95 % of cases if it is looked at once, after a number of values that was fixed
beforehand. Whoever looks every day, and stops when the interval excludes 0, is wrong far more often than in 5 %. The
intervals of a confidence sequence hold the mean at all times together.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.means import Floats, check_confidence

_STAKES = np.array([0.1, 0.3, 0.6, 0.95])
_HALVINGS = 50


def sequence_interval(values: ArrayLike, low: float, high: float, confidence: float = 0.95) -> Interval:
    """Interval of the mean of bounded values, which may be looked at after each of them.

    Formula: let x = (value - low) / (high - low). A bettor who thinks the mean is larger than m stakes the fraction s
    of a capital of 1 on each value in turn, and then has K(m, s) = product of (1 - s + s * x / m). The lower end is the
    m at which the mean of K(m, s) over s = 0.1, 0.3, 0.6, 0.95 is 2 / (1 - confidence); the upper end is the same for
    1 - x. Against the true mean, K is a martingale that starts at 1, so that the chance that it ever reaches
    2 / (1 - confidence) is at most (1 - confidence) / 2 (Ville's inequality).

    Why several fixed stakes: they need no estimate of the variance, each K falls as m grows, so that the means that are
    left are an interval, and the largest stake serves values that hardly vary, such as the differences of a judge that
    mostly repeats its ratings.

    Args:
        values: The values in the order in which they came; NaN is left out. The mean of each, given those before it,
            must be the same; nothing else is assumed. Differences of independent pairs, in an order that doesn't depend
            on their values, will do.
        low: The least value there can be.
        high: The largest one.
        confidence: Share of sequences meant to hold the mean at all times, between 0 and 1.

    Returns:
        The mean with its interval after the last value, within ``low`` and ``high``, and never of width 0. All NaN
        without values.

    Raises:
        ValueError: If a value or a bound is out of range, or the confidence is.

    Source: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86:
    capital processes, and bets by several stakes at once.

    Examples:
        >>> same = [0.0] * 90 + [1.0] * 10
        >>> interval = sequence_interval(same, low=-9, high=9)
        >>> round(interval.value, 2), round(interval.low, 2), round(interval.high, 2)
        (0.1, -0.36, 0.55)
        >>> sequence_interval([], low=0, high=1).reason
        'no item has a score'
    """
    check_confidence(confidence)
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"sequence_interval: found low {low:g} and high {high:g}. Expected finite ends, low < high.")
    if not numbers.size:
        return Interval(reason="no item has a score")
    if numbers.min() < low or numbers.max() > high:
        raise ValueError(f"sequence_interval: found a value outside {low:g} to {high:g}.")
    shares, threshold = (numbers - low) / (high - low), math.log(2.0 / (1.0 - confidence))
    ends = (_lower_end(shares, threshold), 1.0 - _lower_end(1.0 - shares, threshold))
    lower, upper = (low + (high - low) * end for end in ends)
    return Interval(float(numbers.mean()), lower, upper, n=numbers.size, clusters=numbers.size)


def _lower_end(shares: Floats, threshold: float) -> float:
    """Returns the largest mean against which a bettor on a larger one has reached the capital, as a logarithm."""
    low, high = 0.0, float(shares.mean())
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if middle == 0.0:
            break
        capitals = np.log1p(_STAKES[:, None] * (shares / middle - 1.0)).sum(axis=1)
        is_reached = np.logaddexp.reduce(capitals) - math.log(capitals.size) >= threshold
        low, high = (middle, high) if is_reached else (low, middle)
    return low
