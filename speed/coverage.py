"""How often intervals hold the truth, and tests call equal models different, in worlds that are hard for them.

``python speed/coverage.py`` prints one row per world and estimator, with the share for the estimators that textbooks
have (before) and for those of ``culture_tasks.metrics`` (now); about two minutes on one core. The worlds:

* one cluster of 60 questions beside 20 of one, whose scores correlate by 0.5;
* ratings of 1 to 5 near full marks;
* a second model that is a little better but for 5 % of answers, which have the lowest rating: the means are equal.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from culture_tasks.metrics.comparison import paired_difference
from culture_tasks.metrics.intervals import mean_interval, share_interval, wilson
from culture_tasks.metrics.prediction_powered import corrected_mean
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Row = tuple[str, str, float, float]

IN_CLUSTERS = np.concatenate([np.zeros(60, dtype=np.intp), np.arange(1, 21)])
"""The cluster of each question of the first world."""

FULL_MARKS = {"95 % full": (0.01, 0.01, 0.01, 0.02, 0.95), "80 % full": (0.02, 0.02, 0.04, 0.12, 0.8)}
"""How often each rating from 1 to 5 is given."""

RATED = (0.0, 0.1, 0.2, 0.4, 0.3)
"""The same for the first model of the last world."""


def cr1(values: Floats, clusters: NDArray[np.intp]) -> tuple[Floats, Floats, float]:
    """Returns means of rows, standard errors by CR1 and t's quantile with a degree of freedom less than clusters."""
    means, members = values.mean(axis=1), np.eye(clusters.max() + 1)[clusters]
    sums = (values - means[:, None]) @ members
    count = members.shape[1]
    errors = np.sqrt(count / (count - 1) * (sums**2).sum(axis=1)) / values.shape[1]
    return means, errors, float(special.stdtrit(count - 1, 0.975))


def large_cluster(draws: int) -> Iterator[Row]:
    """Yields how intervals and tests do where one cluster is large."""
    rng, size = np.random.default_rng(0), IN_CLUSTERS.size
    quality = (rng.normal(size=(draws, 21))[:, IN_CLUSTERS] + rng.normal(size=(draws, size))) / math.sqrt(2.0)
    for share in (0.5, 0.8, 0.95):
        right = (quality < special.ndtri(share)).astype(np.float64)
        means, errors, t = cr1(right, IN_CLUSTERS)
        effective = size / np.maximum(errors**2 / np.maximum(means * (1.0 - means) / (size - 1), 1e-12), 1.0)
        ends = [wilson(mean, number, t) for mean, number in zip(means.tolist(), effective.tolist(), strict=True)]
        now = [share_interval(row, IN_CLUSTERS) for row in right]
        before = np.mean([low <= share <= high for low, high in ends])
        yield f"one large cluster, {share:.0%} right", "share_interval", before, _held(now, share)
    means, errors, t = cr1(quality, IN_CLUSTERS)
    held = _held([mean_interval(row, IN_CLUSTERS) for row in quality], 0.0)
    yield "one large cluster", "mean_interval", np.mean(np.abs(means) <= t * errors), held
    told = [paired_difference(row, np.zeros(size), IN_CLUSTERS, flipped_below=0).p <= 0.05 for row in quality]
    yield "one large cluster, equal models", "paired_difference: t", np.mean(np.abs(means) > t * errors), np.mean(told)
    ratings = np.clip(np.round(6.0 + 1.5 * quality), 1.0, 10.0)
    judge = np.clip(np.round(6.3 + 1.5 * quality + rng.normal(size=quality.shape)), 1.0, 10.0)
    truth, people = float(ratings.mean()), ratings.copy()
    for row in people:
        row[rng.choice(size, 40, replace=False)] = np.nan
    now = [
        corrected_mean(*both, clusters=IN_CLUSTERS, ends=(1, 10)).overall for both in zip(judge, people, strict=True)
    ]
    means, errors, t = cr1(ratings, IN_CLUSTERS)
    yield (
        "one large cluster, 40 rated",
        "corrected_mean",
        np.mean(np.abs(means - truth) <= t * errors),
        _held(now, truth),
    )


def full_marks(draws: int) -> Iterator[Row]:
    """Yields how intervals of a mean do near the end of a scale."""
    rng, scale = np.random.default_rng(1), np.arange(1.0, 6.0)
    for name, shares in FULL_MARKS.items():
        for size in (20, 50, 200):
            ratings, truth = rng.choice(scale, p=shares, size=(draws, size)), float(scale @ shares)
            means, errors = ratings.mean(axis=1), ratings.std(axis=1, ddof=1) / math.sqrt(size)
            before = (errors > 0.0) & (np.abs(means - truth) <= special.stdtrit(size - 1, 0.975) * errors)
            now = [mean_interval(row, ends=(1, 5)) for row in ratings]
            yield f"{name}, {size} ratings", "mean_interval", np.mean(before), _held(now, truth)


def rare_failures(draws: int) -> Iterator[Row]:
    """Yields how often the second model is called better, and how often so without a mark."""
    rng, scale = np.random.default_rng(2), np.arange(1.0, 6.0)
    gain = 0.05 * (float(scale @ RATED) - 1.0) / 0.95
    for size in (30, 100, 300):
        first = rng.choice(scale, p=RATED, size=(draws, size))
        second = first + gain + rng.normal(0.0, 0.3, first.shape)
        second[rng.random(first.shape) < 0.05] = 1.0
        tests = [paired_difference(b, a, ends=(1, 5)) for a, b in zip(first, second, strict=True)]
        better = [test.p <= 0.05 and test.difference > 0.0 for test in tests]
        unmarked = [is_better and not test.is_fragile for is_better, test in zip(better, tests, strict=True)]
        yield f"5 % gross failures, {size} items", "paired_difference: unmarked", np.mean(better), np.mean(unmarked)


def _held(intervals: list, truth: float) -> float:  # type: ignore[type-arg]
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each world (default: %(default)s)")
    draws = parser.parse_args().draws
    rows = [row for world in (large_cluster, full_marks, rare_failures) for row in world(draws)]
    cells = [(world, estimator, f"{before:.1%}", f"{now:.1%}") for world, estimator, before, now in rows]
    print(as_markdown(("world", "estimator", "before", "now"), cells, numbers=2))


if __name__ == "__main__":
    main()
