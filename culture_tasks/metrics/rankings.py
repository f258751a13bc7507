"""Ranks of several models that tests leave open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import NamedTuple


class Rank(NamedTuple):
    """The places that a model may have; models that the adjusted tests can't tell apart share places.

    The first is 1 plus the number of models that are significantly better; the last is the number of models less those
    that are significantly worse.
    """

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}" if self.last > self.first else str(self.first)


def places(models: int, better: Collection[tuple[int, int]]) -> list[Rank]:
    """Places of models in a ranking that says no more than tests have shown.

    The better pairs are of models numbered from 0; without any, each model has the places from 1 to the number of
    models. Where the tests are adjusted so that with 95 % confidence none of them calls the wrong model better, all
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
    return [Rank(1 + above[model], models - below[model]) for model in range(models)]
