"""How well ``culture_tasks.metrics.partial_pooling`` finds the known scores of places, beside plain means.

Each world draws true scores of places and the answers of a model anew. ``python speed/partial_pooling.py`` prints how
often 95 % intervals hold the truth, how wide they are and the mean squared error beside plain means', then the CPU time
for 50 models (about two minutes on one core).
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from culture_tasks.metrics.partial_pooling import PlaceScore, ScoredItems, pooled
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, int], Floats]

FEW, MANY = 20, 2_900
"""Places with at most, or at least, so many questions are also counted by themselves."""


class Benchmark(NamedTuple):
    """A benchmark.

    Attributes:
        level: Its mean score, in points.
        steps: Steps of the scale of one score; 1 for right and wrong.
        cluster_size: Questions that share a cluster, such as an image.
        correlation: Correlation of a cluster's questions.
        is_parallel: Whether the same clusters are asked about every place.
        units: Units that its questions are divided among; their mean scores differ by ten points.
    """

    level: float
    steps: int = 1
    cluster_size: int = 1
    correlation: float = 0.0
    is_parallel: bool = False
    units: int = 1


BENCHMARKS = (
    Benchmark(70.0, cluster_size=3, correlation=0.4, units=2),
    Benchmark(50.0, correlation=0.4, is_parallel=True),
    Benchmark(35.0),
    Benchmark(60.0, steps=4, cluster_size=2, correlation=0.5),
    Benchmark(80.0, steps=9),
    Benchmark(45.0, correlation=0.3, is_parallel=True),
)


def normal(rng: np.random.Generator, size: int) -> Floats:
    """Normal."""
    return rng.normal(size=size)


def heavy(rng: np.random.Generator, size: int) -> Floats:
    """Student's t with three degrees of freedom, of standard deviation 1."""
    return rng.standard_t(3.0, size) / 3.0**0.5


def skewed(rng: np.random.Generator, size: int) -> Floats:
    """Exponential, with most places above the mean and some far below."""
    return 1.0 - rng.exponential(size=size)


@dataclass(frozen=True, slots=True)
class World:
    """How true scores differ, and how many questions places have.

    Attributes:
        about: What it is like.
        spread: Standard deviation between places, in points.
        mixed: That of a place's benchmarks.
        shape: Draws the effects of places, of standard deviation 1.
        places: Number of places.
        benchmarks: The benchmarks.
        is_curved: Whether effects add up on the scale of log-odds, near the ends of which they move scores less.
        is_easy_alone: Whether a third of the places has its questions in the first benchmark, and the others 100 in
            each.
        few: Questions of a third of the places, all in one benchmark. Another third has 10 to 119 in each of three
            benchmarks, and the last third 3,000 over all benchmarks.
    """

    about: str
    spread: float
    mixed: float = 4.0
    shape: Shape = normal
    places: int = 30
    benchmarks: tuple[Benchmark, ...] = BENCHMARKS
    is_curved: bool = False
    is_easy_alone: bool = False
    few: int = 18

    def counts(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """Draws the number of questions of each place (rows) in each benchmark."""
        many = len(self.benchmarks)
        counts = np.zeros((self.places, many), dtype=np.intp)
        for place, row in enumerate(counts):
            if place % 3 == 0:
                row[0 if self.is_easy_alone else rng.integers(many)] = self.few
            elif self.is_easy_alone:
                row[:] = 100
            elif place % 3 == 1:
                columns = rng.choice(many, min(many, 3), replace=False)
                row[columns] = rng.integers(10, 120, columns.size)
            else:
                row[:] = 3000 // many
        return counts

    def draw(self, rng: np.random.Generator) -> tuple[ScoredItems, Floats]:
        """Draws the items of one model, and the true score of each place."""
        counts = self.counts(rng)
        effects = rng.normal(0.0, 5.0) + self.spread * self.shape(rng, self.places)
        of_benchmark = self.mixed * rng.normal(size=counts.shape)
        truth, parts, units, clusters = np.zeros(counts.shape), [], 0, 0
        for index, benchmark in enumerate(self.benchmarks):
            middle = 50.0 + 25.0 * special.logit(benchmark.level / 100.0) if self.is_curved else benchmark.level
            level = middle + effects + of_benchmark[:, index]
            levels = level[:, None] + 10.0 * (np.arange(benchmark.units) - (benchmark.units - 1) / 2)
            by_unit = 100.0 * special.expit((levels - 50.0) / 25.0) if self.is_curved else np.clip(levels, 1.0, 99.0)
            truth[:, index] = by_unit.mean(axis=1)
            place = np.repeat(np.arange(self.places), counts[:, index])
            pool = int(counts[:, index].max())
            order = rng.permutation if benchmark.is_parallel else np.arange
            question = np.concatenate([order(pool)[:count] for count in counts[:, index]]) // benchmark.cluster_size
            _, cluster = np.unique(question if benchmark.is_parallel else question + pool * place, return_inverse=True)
            unit = rng.integers(benchmark.units, size=place.size)
            shared = rng.normal(size=place.size)[cluster]
            correlation = benchmark.correlation
            noise = correlation**0.5 * shared + (1.0 - correlation) ** 0.5 * rng.normal(size=place.size)
            scores = _scores(special.ndtr(noise), by_unit[place, unit] / 100.0, benchmark.steps)
            parts.append((scores, place, units + unit, clusters + cluster))
            units, clusters = units + benchmark.units, clusters + place.size
        scores, places, of_unit, of_cluster = (np.concatenate(column) for column in zip(*parts, strict=True))
        items = ScoredItems(
            scores=scores,
            places=places,
            units=of_unit,
            clusters=of_cluster,
            benchmarks=[index for index, benchmark in enumerate(self.benchmarks) for _ in range(benchmark.units)],
        )
        return items, truth.mean(axis=1)


def _scores(chance: Floats, mean: Floats, steps: int) -> Floats:
    """Returns a score in so many steps for each item, binomial with this mean; chance orders items by difficulty."""
    above = [special.bdtrc(step, steps, mean) for step in range(steps)]
    return 100.0 * np.mean([chance < share for share in above], axis=0)


_PARALLEL = tuple(benchmark._replace(correlation=0.4, is_parallel=True, cluster_size=1) for benchmark in BENCHMARKS)
_EASY_LEVELS = (93, 90, 96, 88, 92, 95)
_EASY = tuple(benchmark._replace(level=level) for benchmark, level in zip(BENCHMARKS, _EASY_LEVELS, strict=True))

_FALLING = tuple(Benchmark(level) for level in (95.0, 85.0, 75.0))
_APART = (Benchmark(97.0), Benchmark(55.0))

WORLDS = (
    World("all places alike", 0.0, 0.0),
    World("spread 10", 10.0),
    World("spread 10, 15 within", 10.0, 15.0),
    World("spread 10, heavy tails", 10.0, shape=heavy),
    World("spread 20, skewed", 20.0, shape=skewed),
    World("spread 10, 1 question for 18", 10.0, few=1),
    World("spread 5, all questions parallel", 5.0, benchmarks=_PARALLEL),
    World("spread 5, 92 % right", 5.0, benchmarks=_EASY),
    World("spread 10, 6 places", 10.0, places=6),
    World("spread 10, one benchmark", 10.0, benchmarks=BENCHMARKS[:1]),
    World("on log-odds, spread 10", 10.0, is_curved=True),
    World("on log-odds, 95, 85 and 75 %", 10.0, benchmarks=_FALLING, is_curved=True),
    World("the same, a third easy alone", 10.0, benchmarks=_FALLING, is_curved=True, is_easy_alone=True, few=100),
    World("97 and 55 %, a third easy alone", 10.0, benchmarks=_APART, is_curved=True, is_easy_alone=True, few=100),
    World("the same, 18 questions there", 10.0, benchmarks=_APART, is_curved=True, is_easy_alone=True),
    World("the same, spread 20", 20.0, benchmarks=_APART, is_curved=True, is_easy_alone=True, few=100),
)


class Result(NamedTuple):
    """How the scores of some places did in one world.

    Attributes:
        holds: Share of 95 % intervals that hold the true score.
        width: Their mean width, in points.
        error: Mean squared error of the scores.
        raw_error: That of plain means.
    """

    holds: float
    width: float
    error: float
    raw_error: float


def results(world: World, models: int, seed: int = 0) -> dict[str, Result]:
    """Returns how scores do for all places, for those with few questions, and for those in all benchmarks.

    Args:
        world: The world.
        models: Models that are drawn.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[PlaceScore, float]] = []
    for _ in range(models):
        items, truth = world.draw(rng)
        scores = pooled(items, world.places)
        rows += [(score, true) for score, true in zip(scores, truth.tolist(), strict=True) if score]
    groups = {"all": (0, math.inf), "few": (0, FEW), "many": (MANY, math.inf)}
    chosen = {name: [row for row in rows if least <= row[0].n <= most] for name, (least, most) in groups.items()}
    return {name: _result(group_rows) for name, group_rows in chosen.items() if group_rows}


def _result(rows: list[tuple[PlaceScore, float]]) -> Result:
    return Result(
        holds=float(np.mean([score.low <= true <= score.high for score, true in rows])),
        width=float(np.mean([score.high - score.low for score, _ in rows])),
        error=float(np.mean([(score.value - true) ** 2 for score, true in rows])),
        raw_error=float(np.mean([(score.raw - true) ** 2 for score, true in rows])),
    )


def seconds(models: int = 50, places: int = 60, benchmarks: int = 9, size: int = 3_000) -> float:
    """Returns the CPU time to score so many models, in seconds."""
    rng = np.random.default_rng(0)
    items = [
        ScoredItems(
            scores=100.0 * (rng.random(size) < 0.6),
            places=rng.integers(places, size=size),
            units=rng.integers(benchmarks, size=size),
            clusters=np.arange(size),
            benchmarks=range(benchmarks),
        )
        for _ in range(models)
    ]
    start = time.process_time()
    for sample in items:
        pooled(sample, places)
    return time.process_time() - start


def main() -> None:
    """Prints the table and the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=60, help="models drawn in each world (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for world in WORLDS:
        found = results(world, options.models)
        cells = (
            (f"{result.holds:.1%}", f"{result.width:.1f}", f"{result.error:.1f}", f"{result.raw_error:.1f}")
            if (result := found.get(group)) is not None
            else ("",) * 4
            for group in ("all", "few", "many")
        )
        rows.append((world.about, *chain.from_iterable(cells)))
    groups = ("all places", f"at most {FEW} questions", "all benchmarks")
    headers = [f"{group}: {number}" for group in groups for number in ("held", "width", "error", "plain mean's")]
    print(as_markdown(("world", *headers), rows, numbers=len(headers)))
    print(f"\n50 models x 60 places x 9 benchmarks, 3,000 items each: {seconds():.1f} s of CPU")


if __name__ == "__main__":
    main()
