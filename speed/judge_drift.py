"""How often an unchanged judge is called changed, and how soon a changed one is: the tables of docs/drift.md.

Each world is a judge and the responses of a run. An anchor set is drawn from its ratings by design, and the judge is
asked again, round after round, with a look at the interval after every few verdicts.
``python speed/judge_drift.py`` prints the tables (seven minutes on one core).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.confidence_sequences import sequence_interval
from culture_tasks.metrics.intervals import Interval, mean_interval
from culture_tasks.metrics.subsets import draw
from culture_tasks.rejudge.anchors import confidence_of, most_points
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]

RESPONSES = 1_000
NEVER = 10**9


class World(NamedTuple):
    """A judge: the scale, the mean of what it thinks of responses, and how its ratings vary.

    Attributes:
        noise: Standard deviation of one rating of a response.
        unstable: Share of the responses whose rating varies at all.
        gross: Share of ratings that are as good as any.
    """

    about: str
    lowest: float = 1.0
    highest: float = 10.0
    mean: float = 6.5
    spread: float = 2.0
    noise: float = 0.0
    unstable: float = 1.0
    gross: float = 0.0

    @property
    def most(self) -> float:
        """Points that a difference counts at most."""
        return most_points(self.lowest, self.highest)

    def differences(self, new: Floats, old: Floats) -> Floats:
        """Returns new less old ratings, as far as they count."""
        return np.clip(new - old, -self.most, self.most)

    def ratings(self, opinions: Floats, varies: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """Returns one rating of each response."""
        rated = opinions + varies * rng.normal(0.0, self.noise, opinions.size)
        rated = np.clip(np.round(rated), self.lowest, self.highest)
        any_rating = rng.integers(int(self.lowest), int(self.highest) + 1, opinions.size)
        return np.where(rng.random(opinions.size) < self.gross, any_rating, rated)


WORLDS = (
    World("ratings 1-10, repeats itself"),
    World("ratings 1-10, a fifth vary by 1", noise=1.0, unstable=0.2),
    World("ratings 1-10, all vary by 0.5", noise=0.5),
    World("ratings 1-10, all vary by 1", noise=1.0),
    World("ratings 1-10, all vary by 2", noise=2.0),
    World("ratings 1-10, nearly all 9 or 10", mean=10.0, spread=1.0, noise=1.0),
    World("ratings 1-10, 3 % gross errors", noise=0.5, gross=0.03),
    World("right / wrong, half vary", lowest=0.0, highest=1.0, mean=0.7, spread=0.5, noise=0.4, unstable=0.5),
    World("ratings 0-100, all vary by 5", lowest=0.0, highest=100.0, mean=65.0, spread=20.0, noise=5.0),
)


class Detection(NamedTuple):
    """How long it took to find a change, and how often the interval held it at all looks of a round."""

    truth: float  # the mean difference, as far as differences count
    median: float
    late: float  # 95 % were found by then
    held: float


def anchor_set(world: World, size: int, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Returns opinions, whether ratings vary, and the old ratings, of the responses that are drawn by the ratings."""
    opinions = rng.normal(world.mean, world.spread, RESPONSES)
    varies = rng.random(RESPONSES) < world.unstable
    old = world.ratings(opinions, varies, rng)
    names = [f"{number}" for number in range(RESPONSES)]
    places = rng.permutation(draw(size, names, names, [f"{rating:06.1f}" for rating in old], int(rng.integers(2**31))))
    return opinions[places], varies[places], old[places]


def intervals(differences: Floats, world: World, confidence: float, every: int) -> Iterator[tuple[int, Interval]]:
    """Yields how many verdicts there are at each look, and their interval."""
    for count in range(every, differences.size + 1, every):
        yield count, sequence_interval(differences[:count], -world.most, world.most, confidence)


def false_alarms(world: World, *, rounds: int, size: int, every: int, runs: int) -> tuple[float, float]:
    """Returns the share of runs in which an unchanged judge is ever called changed; and by a usual 95 % interval."""
    alarms, usual = 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        opinions, varies, old = anchor_set(world, size, rng)
        alarm, usual_alarm = False, False
        for number in range(1, rounds + 1):
            differences = world.differences(world.ratings(opinions, varies, rng), old)
            looks = intervals(differences, world, confidence_of(number), every)
            alarm = alarm or any(interval.low > 0.0 or interval.high < 0.0 for _, interval in looks)
            for count in range(every, size + 1, every):
                interval = mean_interval(differences[:count])
                usual_alarm = usual_alarm or interval.low > 0.0 or interval.high < 0.0
        alarms, usual = alarms + alarm, usual + usual_alarm
    return alarms / runs, usual / runs


def change(world: World, shift: float, *, size: int, every: int, runs: int) -> Detection:
    """Returns how many verdicts of the first round it takes to find a shift of all opinions."""
    counts, hits, truth = [], 0, _true_change(world, shift)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        opinions, varies, old = anchor_set(world, size, rng)
        differences = world.differences(world.ratings(opinions + shift, varies, rng), old)
        first, holds = NEVER, True
        for count, interval in intervals(differences, world, confidence_of(1), every):
            holds = holds and interval.low <= truth <= interval.high
            first = min(first, count) if interval.low > 0.0 or interval.high < 0.0 else first
        counts.append(first)
        hits += holds
    return Detection(truth, float(np.median(counts)), float(np.quantile(counts, 0.95, method="higher")), hits / runs)


def _true_change(world: World, shift: float) -> float:
    rng = np.random.default_rng(2**32)
    opinions = rng.normal(world.mean, world.spread, 400_000)
    varies = rng.random(opinions.size) < world.unstable
    before, after = (world.ratings(opinions + offset, varies, rng) for offset in (0.0, shift))
    return float(np.mean(world.differences(after, before)))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="runs of each world (default: %(default)s)")
    options = parser.parse_args()
    alarms, changes = [], []
    for world in WORLDS:
        ours, usual = false_alarms(world, rounds=10, size=200, every=20, runs=options.runs)
        alarms.append((world.about, f"{ours:.1%}", f"{usual:.1%}"))
        for points in (3, 6, 10):
            detection = change(world, points / 100 * world.highest, size=800, every=10, runs=options.runs // 2)
            numbers = (detection.median, detection.late)
            cells = (f"{number:,.0f}" if number < NEVER else "more than 800" for number in numbers)
            changes.append((world.about, f"{detection.truth:+.2f}", *cells, f"{detection.held:.1%}"))
    print(as_markdown(("judge", "false alarms", "of a usual interval"), alarms, numbers=2))
    print(
        as_markdown(("judge", "change of the mean", "half found by", "95 % found by", "coverage"), changes, numbers=4)
    )


if __name__ == "__main__":
    main()
