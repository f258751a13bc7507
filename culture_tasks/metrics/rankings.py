"""Scores of several models side by side: ranks that tests leave open, and spread over groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np


class Places(NamedTuple):
    """The places of a model among others that tests leave open: the best of them, from 1, and the worst."""

    first: int
    last: int


def places(models: int, better: Collection[tuple[int, int]]) -> list[Places]:
    """Places of models in a ranking that says no more than tests have shown.

    Formula: first = 1 + number of models that are significantly better; last = models - number that are significantly
    worse. Where the tests are adjusted so that with 95 % confidence none of them calls the wrong model better, all
    ranges together hold the true places with that confidence: every model that truly is better or worse and that the
    tests missed lies within the range. The models with ``first`` 1 then are a confidence set for the best. A model's
    true place is 1 plus the number of models that truly are better; equals share the best one.

    Holm's adjustment over all pairs (:func:`~culture_tasks.metrics.significance.holm`) bounds the chance of calling
    any of two equal models better, whatever the tests' dependence. That of a wrong sign is smaller still: it is below
    half the level for each pair alone, and bounded jointly for independent tests.

    Source: Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for Ranks", section 3; Holm (1979) for the
    adjustment; Shaffer (1980) and Finner (1999) for signs. Chatbot Arena (Chiang et al., 2024) ranks by ``first``.

    Examples:
        >>> [tuple(ranks) for ranks in places(3, better={(0, 2)})]
        [(1, 2), (1, 3), (2, 3)]
    """
    if any(first == second or not (0 <= first < models and 0 <= second < models) for first, second in better):
        raise ValueError(
            f"places: expected pairs of two of the {models} models, numbered from 0; found {sorted(better)}."
        )
    below, above = (Counter(pair[side] for pair in set(better)) for side in (0, 1))
    return [Places(1 + above[model], models - below[model]) for model in range(models)]


class Spread(NamedTuple):
    """How evenly one model does over groups; NaN where no group has a score.

    Attributes:
        best_group: The group with the best score; the first of equals; None where several all have the same.
        gap: Distance of best and worst; 0 is no difference between groups.
        variance: Sample variance of the groups' scores, each group counting alike, in squared units.
        groups: Number of groups with a score.
    """

    best: float = math.nan
    best_group: str | None = None
    worst: float = math.nan
    worst_group: str | None = None
    gap: float = math.nan
    variance: float = math.nan
    groups: int = 0


def spread(values_by_group: Mapping[str, float], *, higher_is_better: bool = True) -> Spread:
    """Spread of one model's scores over groups, such as countries, languages or cultures; NaN is a missing score.

    Formula: gap = abs(best - worst); variance = sum of (score - mean)^2 / (groups - 1). Groups differ by chance too, so
    that gap and variance are hardly ever 0 where the groups are truly alike. One group has a variance of NaN.

    Source: CEDAR, Table 1, reports the variance over languages; Sagawa et al. (2020) the worst group.

    Examples:
        >>> result = spread({"Japan": 0.5, "Kenya": 0.25, "Peru": 0.75})
        >>> result.best_group, result.worst_group, result.gap, round(result.variance, 4)
        ('Peru', 'Kenya', 0.5, 0.0625)
    """
    if any(math.isinf(value) for value in values_by_group.values()):
        raise ValueError("spread: expected finite scores, NaN where there is none.")
    scored = {group: float(value) for group, value in values_by_group.items() if not math.isnan(value)}
    if not scored:
        return Spread()
    highest, lowest = max(scored, key=scored.__getitem__), min(scored, key=scored.__getitem__)
    best, worst = (highest, lowest) if higher_is_better else (lowest, highest)
    values = np.array(list(scored.values()))
    variance = float(values.var(ddof=1)) if values.size > 1 else math.nan
    gap, groups = scored[highest] - scored[lowest], len(scored)
    result = Spread(scored[best], best, scored[worst], worst, gap, variance, groups)
    all_equal = groups > 1 and scored[best] == scored[worst]
    return result._replace(best_group=None, worst_group=None) if all_equal else result
