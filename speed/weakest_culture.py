"""How often a culture is called significantly below the others where all have the same mean: by which t test.

Each world draws the scores of a model on several cultures anew. The report tests each culture against all others,
adjusts over all of them (Holm), and names the lowest. ``python speed/weakest_culture.py`` prints a table (about
ten minutes on one core) with a test of one variance, Welch's test, and the larger p of both, which is the report's.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import special

from culture_tasks.metrics.significance import below_the_others, holm
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
Test = Callable[[Sequence[Floats]], Sequence[float] | Floats]

LEVEL = 0.05


def ratings(spread: float) -> Draw:
    """Ratings from 1 to 10, 6 on average."""
    return lambda rng, size: np.clip(np.round(rng.normal(6.0, spread, size)), 1.0, 10.0)


def right(share: float) -> Draw:
    """Right and wrong answers."""
    return lambda rng, size: (rng.random(size) < share).astype(float)


def extremes(rng: np.random.Generator, size: int) -> Floats:
    """Ratings of 2 or 10, 6 on average."""
    return rng.choice([2.0, 10.0], size)


SCORES: Mapping[str, tuple[Draw, Draw]] = {
    "ratings, equal spread": (ratings(1.5), ratings(1.5)),
    "ratings, the first twice as spread": (ratings(2.5), ratings(1.2)),
    "ratings, the first half as spread": (ratings(1.2), ratings(2.5)),
    "ratings, the first 2 or 10": (extremes, ratings(1.5)),
    "right or wrong, 50 %": (right(0.5), right(0.5)),
    "right or wrong, 90 %": (right(0.9), right(0.9)),
    "right or wrong, 10 %": (right(0.1), right(0.1)),
}
"""What the scores of the first culture and those of the others are drawn from."""

SIZES = ((12, 150), (30, 150), (30, 30), (150, 150), (400, 30))
"""Items of the first culture and of each other."""

CULTURES = (3, 7, 11, 16)


def one_variance(parts: Sequence[Floats]) -> list[float]:
    """The t test with one variance for all scores together."""

    def error(one: Floats, rest: Floats) -> tuple[float, float]:
        both = np.concatenate([one, rest])
        return float(both.var(ddof=1)) * (1 / one.size + 1 / rest.size), both.size - 2.0

    return _each(parts, error)


def welch(parts: Sequence[Floats]) -> list[float]:
    """Welch's t test."""

    def error(one: Floats, rest: Floats) -> tuple[float, float]:
        own, other = (float(part.var(ddof=1)) / part.size for part in (one, rest))
        freedom = own**2 / (one.size - 1) + other**2 / (rest.size - 1)
        return own + other, (own + other) ** 2 / freedom if freedom else math.inf

    return _each(parts, error)


def _each(parts: Sequence[Floats], error: Callable[[Floats, Floats], tuple[float, float]]) -> list[float]:
    found: list[float] = []
    for at, one in enumerate(parts):
        rest = np.concatenate([part for place, part in enumerate(parts) if place != at])
        squared, freedom = error(one, rest)
        lower = float(one.mean() - rest.mean())
        found.append(2 * float(special.stdtr(freedom, lower / math.sqrt(squared))) if lower < 0 < squared else 1.0)
    return found


TESTS: Mapping[str, Test] = {"one variance": one_variance, "Welch": welch, "larger p of both": below_the_others}


def main() -> None:
    """Prints the table: for each world and number of cultures, in how many of 100 draws a culture was called lower."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each world (default: %(default)s)")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for number, (about, (first, others), (size, other)) in enumerate(
        (about, draws, sizes) for (about, draws), sizes in product(SCORES.items(), SIZES)
    ):
        rng = np.random.default_rng(number)
        shares = [_errors(rng, first, others, (size, *[other] * (many - 1)), options.draws) for many in CULTURES]
        rows.append((about, f"{size} / {other}", *(f"{share[test]:.1f}" for test in TESTS for share in shares)))
    headers = ("scores", "items", *(f"{test}: {many}" for test in TESTS for many in CULTURES))
    print(as_markdown(headers, rows, numbers=len(TESTS) * len(CULTURES)))


def _errors(rng: np.random.Generator, first: Draw, others: Draw, sizes: Sequence[int], draws: int) -> dict[str, float]:
    errors = dict.fromkeys(TESTS, 0)
    for _ in range(draws):
        parts = [(others if at else first)(rng, size) for at, size in enumerate(sizes)]
        lowest = int(np.argmin([part.mean() for part in parts]))
        for name, test in TESTS.items():
            errors[name] += holm(test(parts))[lowest] < LEVEL
    return {name: 100 * count / draws for name, count in errors.items()}


if __name__ == "__main__":
    main()
