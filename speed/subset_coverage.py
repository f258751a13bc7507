"""How often the interval of a designed subset holds the score of all items: the tables of docs/subsets.md.

Each world is one benchmark with its scores; it is drawn from again and again, with other seeds.
``python speed/subset_coverage.py`` prints the table (a minute on one core). ``--predictions FILE.npz`` draws from real
scores instead: arrays ``y`` (a row per model, a column per item, 1 or 0), and ``cluster`` and ``stratum`` of each item.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.subsets import SamplingFrame, draw, population, subset_interval
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


class Result(NamedTuple):
    """How often intervals hold the score of all items, and their mean half width."""

    held: float
    width: float


class Draw(NamedTuple):
    """The drawn items of a world, and what they were drawn from."""

    items: Numbers
    frame: SamplingFrame


def draws_of(world: World, draws: int, sizes: Sequence[int] = SIZES) -> dict[int, list[Draw]]:
    """Returns so many draws of each size."""
    items = [str(item) for item in range(world.scores.size)]
    clusters = world.clusters.astype(str).tolist()
    strata = [f"{stratum:02}" for stratum in (world.strata[world.clusters] if world.strata.size else world.clusters)]
    orders = [np.array(draw(max(sizes), items, clusters, strata, seed)) for seed in range(draws)]
    return {
        size: [Draw(order[:size], population(order[:size].tolist(), world.clusters)) for order in orders]
        for size in sizes
    }


def coverage(world: World, draws: Mapping[int, Sequence[Draw]]) -> dict[int, Result]:
    """Returns how good the intervals are by size of the subset."""
    truth, results = float(world.scores.mean()), {}
    for size, parts in draws.items():
        intervals = [
            subset_interval(world.scores[items], world.clusters[items], frame, shares=world.shares)
            for items, frame in parts
        ]
        low, high = np.array([(interval.low, interval.high) for interval in intervals]).T
        share = float(np.mean((low <= truth) & (truth <= high)))
        results[size] = Result(share, float(np.mean(high - low)) / 2)
    return results


def prediction_table(path: Path, draws: int) -> None:
    """Prints coverage, and the median width over models, for published predictions."""
    with np.load(path, allow_pickle=False) as file:
        scores, clusters, types = (file[name] for name in ("y", "cluster", "stratum"))
    codes, strata = (np.unique(labels, return_inverse=True)[1] for labels in (clusters, types))
    cluster_strata = np.zeros(codes.max() + 1, dtype=np.intp)
    cluster_strata[codes] = strata
    sizes = (*SIZES, 800)
    draws_by_size = draws_of(World(scores[0], codes, cluster_strata, shares=True), draws, sizes)
    results = [
        coverage(World(answers.astype(float), codes, cluster_strata, shares=True), draws_by_size) for answers in scores
    ]
    rows = []
    for size in sizes:
        held = 100 * np.mean([result[size].held for result in results])
        width = 100 * np.median([result[size].width for result in results])
        rows.append((f"{size}", f"{held:.1f} %", f"±{width:.1f}"))
    print(as_markdown(("drawn", "holds", "half width"), rows, numbers=2))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--predictions", type=Path, metavar="FILE.npz")
    options = parser.parse_args()
    if options.predictions:
        prediction_table(options.predictions, options.draws)
        return
    header = ("scores", *(f"{size} drawn" for size in SIZES))
    rows = []
    for number, (title, make) in enumerate(WORLDS.items()):
        world = make(np.random.default_rng(number))
        results = coverage(world, draws_of(world, options.draws))
        rows.append((title, *(f"{100 * result.held:.1f} %" for result in results.values())))
    print(as_markdown(header, rows, numbers=len(SIZES)))


if __name__ == "__main__":
    main()
