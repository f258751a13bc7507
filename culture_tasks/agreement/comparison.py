"""Comparing pairs of raters: overall, by language and by category."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from culture_tasks.benchmarks.care.categories import CATEGORIES
from culture_tasks.metrics.rater_agreement import Agreement, agreement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from culture_tasks.agreement.grading import Rater
    from culture_tasks.agreement.responses import RatedResponse
    from culture_tasks.judges.verdicts import Outcome

Dimension = Literal["overall", "language", "category"]


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How intervals are drawn.

    Attributes:
        resamples: Number of resamples of questions.
        confidence: Share of intervals that should contain the true value.
        seed: Each group starts from it, so its interval doesn't depend on the other groups.
    """

    resamples: int = 1_000
    confidence: float = 0.95
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Two raters on some of the responses.

    Attributes:
        dimension: What the responses were grouped by.
        label: The group: ``all``, a language code, or a category.
        responses: Number of responses.
        outcomes: For each judge, the number of verdicts by outcome.
        agreement: Statistics over the responses that both rated.
    """

    dimension: Dimension
    label: str
    responses: int
    outcomes: Mapping[str, Mapping[Outcome, int]]
    agreement: Agreement

    @property
    def coverage(self) -> float:
        """Share of the responses, from 0 to 1, that both raters rated: the others are left out of the statistics."""
        return self.agreement.pairs / self.responses


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two raters; errors are the second's rating minus the first's."""

    first: Rater
    second: Rater
    groups: tuple[Group, ...]


def compare(raters: Sequence[Rater], responses: Sequence[RatedResponse], bootstrap: Bootstrap) -> list[Comparison]:
    """Compares each rater with each later one.

    Args:
        raters: Raters, people first.
        responses: What they rated, aligned with their ratings.
        bootstrap: How intervals are drawn; resampling is by question.
    """
    groups = _groups(responses)
    return [
        Comparison(
            first,
            second,
            tuple(
                _group(first, second, responses, dimension, label, rows, bootstrap)
                for (dimension, label), rows in groups.items()
            ),
        )
        for first, second in itertools.combinations(raters, 2)
    ]


def _groups(responses: Sequence[RatedResponse]) -> dict[tuple[Dimension, str], list[int]]:
    groups: dict[tuple[Dimension, str], list[int]] = {("overall", "all"): list(range(len(responses)))}
    for language in sorted({response.language for response in responses}):
        groups["language", language] = [row for row, one in enumerate(responses) if one.language == language]
    for category in sorted({response.category for response in responses}, key=_category_order):
        groups["category", category] = [row for row, one in enumerate(responses) if one.category == category]
    return groups


def _category_order(category: str) -> tuple[int, str]:
    return (list[str](CATEGORIES).index(category), "") if category in CATEGORIES else (len(CATEGORIES), category)


def _group(
    first: Rater,
    second: Rater,
    responses: Sequence[RatedResponse],
    dimension: Dimension,
    label: str,
    rows: Sequence[int],
    bootstrap: Bootstrap,
) -> Group:
    result = agreement(
        [first.ratings[row] for row in rows],
        [second.ratings[row] for row in rows],
        clusters=[responses[row].item.question for row in rows],
        resamples=bootstrap.resamples,
        confidence=bootstrap.confidence,
        rng=np.random.default_rng(bootstrap.seed),
    )
    outcomes = {
        rater.name: dict(Counter(rater.outcomes[row] for row in rows))
        for rater in (first, second)
        if rater.outcomes is not None
    }
    return Group(dimension, label, len(rows), outcomes, result)
