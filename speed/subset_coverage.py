"""How often the interval of a designed subset holds the score of all items: the table of docs/subsets.md.

Each world is one benchmark with its scores; it is drawn from again and again, with other seeds.
``python speed/subset_coverage.py`` prints the table (two minutes on one core).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.subsets import draw, population, subset_interval
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

SIZES = (50, 100, 200, 400)


class World(NamedTuple):
    """The scores of all items of a benchmark, their clusters, and the strata of these."""

    scores: Floats
    clusters: Numbers
    strata: Numbers
    shares: bool


def parallel(rng: np.random.Generator, between: float, within: float, *, shares: bool) -> World:
    """100 questions in 30 languages, whose effects have these standard deviations."""
    clusters = np.repeat(np.arange(100), 30)
    scores = rng.normal(0.0, between, 100)[clusters] + rng.normal(0.0, within, clusters.size)
    return World((scores > 0.0).astype(float) if shares else scores, clusters, clusters * 0, shares)


def images(rng: np.random.Generator) -> World:
    """One to four questions about each of 950 images from eleven countries, of which some are harder."""
    clusters = np.repeat(np.arange(950), rng.integers(1, 5, 950))
    countries = rng.integers(0, 11, 950)
    scores = np.linspace(-0.5, 0.8, 11)[countries][clusters] + rng.normal(0, 0.7, 950)[clusters]
    right = scores + rng.normal(0, 1, clusters.size) > 0.0
    return World(right.astype(float), clusters, countries, shares=True)


def alone(rng: np.random.Generator, right: float) -> World:
    """1,227 questions of 45 countries, none of which share anything."""
    countries = rng.integers(0, 45, 1227)
    chances = np.clip(right + rng.normal(0, 0.1, 45)[countries], 0.0, 1.0)
    return World((rng.random(1227) < chances).astype(float), np.arange(1227), countries, shares=True)


WORLDS: Mapping[str, Callable[[np.random.Generator], World]] = {
    "right / wrong, 100 questions in 30 languages": lambda rng: parallel(rng, 1.0, 1.0, shares=True),
    "the same, languages differ more": lambda rng: parallel(rng, 0.5, 1.5, shares=True),
    "ratings, 100 questions in 30 languages": lambda rng: parallel(rng, 1.0, 0.6, shares=False),
    "right / wrong, 1 to 4 questions an image": images,
    "right / wrong, 1,227 questions, 60 % right": lambda rng: alone(rng, 0.6),
    "the same, 90 % right": lambda rng: alone(rng, 0.9),
}


def coverage(world: World, draws: int) -> dict[int, tuple[float, float]]:
    """Returns, by size of the subset, how often the interval holds the score of all, and its mean half width."""
    items = [str(item) for item in range(world.scores.size)]
    clusters = world.clusters.astype(str).tolist()
    strata = [f"{stratum:02}" for stratum in (world.strata[world.clusters] if world.strata.size else world.clusters)]
    found: dict[int, list[tuple[bool, float]]] = {size: [] for size in SIZES}
    truth = float(world.scores.mean())
    for seed in range(draws):
        order = np.array(draw(max(SIZES), items, clusters, strata, seed))
        for size, results in found.items():
            part = order[:size]
            known = population(part.tolist(), world.clusters.tolist())
            interval = subset_interval(world.scores[part], world.clusters[part], known, shares=world.shares)
            results.append((interval.low <= truth <= interval.high, (interval.high - interval.low) / 2))
    return {
        size: (float(np.mean([held for held, _ in of])), float(np.mean([w for _, w in of])))
        for size, of in found.items()
    }


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    rows = []
    for number, (about, make) in enumerate(WORLDS.items()):
        found = coverage(make(np.random.default_rng(number)), options.draws)
        rows.append((about, *(f"{100 * held:.1f} %" for held, _ in found.values())))
    print(as_markdown(("scores", *(f"{size} drawn" for size in SIZES)), rows, numbers=len(SIZES)))


if __name__ == "__main__":
    main()
