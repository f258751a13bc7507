"""How often the interval of a designed subset holds the score of all items: the tables of docs/subsets.md.

Each world is one benchmark with its scores; it is drawn from again and again, with other seeds. The second table is
with other models' scores of all items as control variates: the share of intervals that hold the score, the variance
without the other models over that with them, and the same of the squared widths.
``python speed/subset_coverage.py`` prints both (five minutes on one core). ``--predictions FILE.npz`` draws from real
scores instead, each model beside all others: arrays ``y`` (a row per model, a column per item, 1 or 0), and
``cluster`` and ``stratum`` of each item.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.subsets import SamplingFrame, control_variate_interval, draw, population, subset_interval
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


def models(
    rng: np.random.Generator, similarity: float, *, right: float = 0.0, other_models: int = 12, clustered: bool = True
) -> tuple[World, Floats]:
    """Answers of a model and of others to 3,000 questions, whose difficulties have so much in common (-1 to 1)."""
    clusters = np.repeat(np.arange(100), 30) if clustered else np.arange(3000)
    shared = rng.normal(0.0, 0.7, clusters.max() + 1)[clusters] + rng.normal(0.0, 1.0, clusters.size)
    latent = similarity * shared + np.sqrt(1.0 - similarity**2) * rng.normal(0.0, 1.2, clusters.size)
    scores = latent + rng.normal(0.0, 0.7, clusters.size) > -right
    abilities = rng.normal(0.0, 0.7, other_models)
    answers = shared[:, None] + rng.normal(0.0, 0.7, (clusters.size, other_models)) > abilities
    return World(scores.astype(float), clusters, clusters * 0, shares=True), answers.astype(float)


def copies(rng: np.random.Generator, differing: float) -> tuple[World, Floats]:
    """A model of which the first other one is a copy, but for a share of its answers."""
    world, answers = models(rng, 0.8)
    answers[:, 0] = np.abs(world.scores - (rng.random(world.scores.size) < differing))
    return world, answers


WITH_OTHERS: Mapping[str, Callable[[np.random.Generator], tuple[World, Floats]]] = {
    "others are much alike": lambda rng: models(rng, 0.9),
    "others are somewhat alike": lambda rng: models(rng, 0.5),
    "others know nothing of it": lambda rng: models(rng, 0.0),
    "the same, no clusters": lambda rng: models(rng, 0.0, clustered=False),
    "others are wrong where it is right": lambda rng: models(rng, -0.8),
    "95 % right, others are somewhat alike": lambda rng: models(rng, 0.5, right=2.2, clustered=False),
    "three others": lambda rng: models(rng, 0.8, other_models=3),
    "one other is a copy but for 2 %": lambda rng: copies(rng, 0.02),
    "one other is a copy but for 0.3 %": lambda rng: copies(rng, 0.003),
}


class Result(NamedTuple):
    """How often intervals hold the score of all items, their mean half width, and the variance of the estimates."""

    held: float
    width: float
    variance: float


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


def coverage(world: World, draws: Mapping[int, Sequence[Draw]], answers: Floats | None = None) -> dict[int, Result]:
    """Returns how good the intervals are by size of the subset, without or with other models' scores."""

    def interval(part: Numbers, frame: SamplingFrame) -> Interval:
        scores, clusters = world.scores[part], world.clusters[part]
        if answers is None:
            return subset_interval(scores, clusters, frame, shares=world.shares)
        return control_variate_interval(scores, answers, part, clusters, frame, shares=world.shares)

    truth, results = float(world.scores.mean()), {}
    for size, parts in draws.items():
        value, low, high = np.array([interval(*part)[:3] for part in parts]).T
        share = float(np.mean((low <= truth) & (truth <= high)))
        results[size] = Result(share, float(np.mean(high - low)) / 2, float(value.var()))
    return results


def gains(world: World, answers: Floats, draws: int) -> list[str]:
    """Returns, by size, the coverage with other models' scores, and what these divide variance and squared width by."""
    draws_by_size = draws_of(world, draws)
    plain_results, results = coverage(world, draws_by_size), coverage(world, draws_by_size, answers)
    return [
        f"{100 * result.held:.1f} %, {plain.variance / result.variance:.2f}, {(plain.width / result.width) ** 2:.2f}"
        for plain, result in zip(plain_results.values(), results.values(), strict=True)
    ]


def prediction_table(path: Path, draws: int) -> None:
    """Prints coverage, and the medians over models, for published predictions."""
    with np.load(path, allow_pickle=False) as file:
        scores, clusters, types = (file[name] for name in ("y", "cluster", "stratum"))
    codes, strata = (np.unique(labels, return_inverse=True)[1] for labels in (clusters, types))
    cluster_strata = np.zeros(codes.max() + 1, dtype=np.intp)
    cluster_strata[codes] = strata
    sizes, pairs = (*SIZES, 800), []
    draws_by_size = draws_of(World(scores[0], codes, cluster_strata, shares=True), draws, sizes)
    for number, answers in enumerate(scores):
        world = World(answers.astype(float), codes, cluster_strata, shares=True)
        other_answers = np.delete(scores, number, axis=0).T.astype(float)
        pairs.append([coverage(world, draws_by_size, controls) for controls in (None, other_answers)])
    rows = []
    for size in sizes:
        coverages = [100 * np.mean([pair[index][size].held for pair in pairs]) for index in (0, 1)]
        widths = np.array([[100 * pair[index][size].width for index in (0, 1)] for pair in pairs])
        ratios = [pair[0][size].variance / pair[1][size].variance for pair in pairs]
        rows.append(
            (
                f"{size}",
                *(f"{share:.1f} %" for share in coverages),
                *(f"±{width:.1f}" for width in np.median(widths, axis=0)),
                f"{np.median(ratios):.2f}",
            )
        )
    header = ("drawn", "holds", "with other models", "half width", "with other models", "ratio of variances")
    print(as_markdown(header, rows, numbers=5))


def main() -> None:
    """Prints the tables."""
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
    rows = []
    for number, (title, make_both) in enumerate(WITH_OTHERS.items()):
        world, answers = make_both(np.random.default_rng(number))
        rows.append((title, *gains(world, answers, options.draws)))
    print(as_markdown(header, rows, numbers=len(SIZES)))


if __name__ == "__main__":
    main()
