"""Which samples of a run a number of the page opens: failures first, and a fair draw beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.results.runs import RunRows

Correctness = Literal["wrong", "not scored", "scored", "right"]
CORRECTNESS: tuple[Correctness, ...] = ("wrong", "not scored", "scored", "right")
"""Results of a sample, in the order in which a reader looks for failures."""


class SampleChoice(NamedTuple):
    """Places of the samples that are kept; some may be in both.

    Attributes:
        failures: Wrong ones, the worst first, then those without a score.
        fair: A draw in which every item has the same chance, the same items for all models.
    """

    failures: list[int]
    fair: list[int]


def correctness(score: float | None, scale: Scale) -> Correctness:
    """Returns the result of a score: right in the better half of its scale, wrong in the other.

    A score on a scale without two ends, or without a better one, is neither.
    """
    if score is None:
        return "not scored"
    middle = _middle(scale)
    if middle is None:
        return "scored"
    return "right" if (score >= middle if scale.better == "higher" else score <= middle) else "wrong"


def _middle(scale: Scale) -> float | None:
    if scale.better is None or scale.low is None or scale.high is None:
        return None
    return (scale.low + scale.high) / 2


def chosen(rows: RunRows, scale: Scale, most: int) -> SampleChoice:
    """Chooses samples of a run.

    Args:
        rows: The samples to choose from.
        scale: The scale of their scores.
        most: How many are kept at most, both kinds together; half of them are failures where there are so many. A
            failure that is drawn too counts once.
    """
    order = np.argsort(draw(rows.items), kind="stable")
    scores, places, middle = rows.scores[order], rows.places[order], _middle(scale)
    bad = np.isnan(scores)
    if middle is not None:
        bad |= scores < middle if scale.better == "higher" else scores > middle
    worst_first = np.argsort(-scores[bad] if scale.better == "lower" else scores[bad], kind="stable")  # NaN last
    failures = places[bad][worst_first[: (most + 1) // 2]].tolist()
    others = np.cumsum(~np.isin(places, failures))
    fair = places[others <= most - len(failures)].tolist() if len(failures) < most else []
    return SampleChoice(failures, fair)


def draw(items: NDArray[np.int32]) -> NDArray[np.uint32]:
    """Returns a number for each item that looks random and is the same in every run: SplitMix64's, its upper half."""
    mixed = (items.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)
