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


def places(models: Collection[str], better: Collection[tuple[str, str]]) -> dict[str, Rank]:
    """Places of models in a ranking that says no more than tests have shown.

    The first model of a pair is better than the second; without any pair, each model has the places from 1 to the
    number of models. Where the tests are adjusted so that with 95 % confidence none of them calls the wrong model
    better, all ranges together hold the true places with that confidence: every model that truly is better or worse and
    that the tests missed lies within the range. The models with ``first`` 1 then are a confidence set for the best. A
    model's true place is 1 plus the number of models that truly are better; equals share the best one.

    Holm's adjustment over all pairs (:func:`~culture_tasks.metrics.significance.holm`) bounds the chance of calling
    any of two equal models better, whatever the tests' dependence. That of a wrong sign is smaller still: it is below
    half the level for each pair alone, and bounded jointly for independent tests.

    Source: Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for Ranks", section 3; Holm (1979) for the
    adjustment; Shaffer (1980) and Finner (1999) for signs. Chatbot Arena (Chiang et al., 2024) ranks by ``first``.

    Examples:
        >>> {model: str(rank) for model, rank in places("abc", better={("a", "c")}).items()}
        {'a': '1-2', 'b': '1-3', 'c': '2-3'}
    """
    if any(first == second or not {first, second} <= set(models) for first, second in better):
        raise ValueError(f"places: expected pairs of two of the models {list(models)}; found {sorted(better)}.")
    below, above = (Counter(pair[side] for pair in set(better)) for side in (0, 1))
    return {model: Rank(1 + above[model], len(models) - below[model]) for model in models}
