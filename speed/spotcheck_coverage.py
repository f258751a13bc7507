"""How often intervals hold the truth when people, or a better judge, check a judge: tables of the docs.

Each world draws questions, people's scores and a judge's anew, has some responses rated, and compares the judge's
own interval, that of the ratings alone and the corrected one with the mean that people would give to all questions of
the world, or with the difference of two models' means. ``python speed/spotcheck_coverage.py`` prints the table of means
(about two minutes on one core), and with ``--two-models`` that of differences (about twelve minutes).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.metrics.comparison import Difference, paired_difference
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.prediction_powered import Corrected, corrected_difference, corrected_mean
from culture_tasks.metrics.subsets import draw as designed_draw
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]
Ends = tuple[float, float]
_Scale = tuple[Sequence[float], Sequence[float]]


class Draw(NamedTuple):
    """One draw of a world: the scores of people and the judge, and each response's culture and cluster."""

    people: Floats
    judge: Floats
    cultures: Numbers
    clusters: Numbers | None = None


class World(NamedTuple):
    """A judge and its bias: what it is like, how it is drawn, its scale, and the numbers of ratings to try."""

    about: str
    draw: Callable[[np.random.Generator], Draw]
    ends: Ends
    rated: tuple[int, ...]


def ratings(rng: np.random.Generator) -> Draw:
    """450 ratings from 1 to 10 in three cultures; the judge is off by +0.8, 0 and -0.4 points."""
    cultures = np.repeat(np.arange(3), 150)
    quality = np.array([6.0, 7.0, 5.0])[cultures] + rng.normal(0.0, 1.5, 450)
    judged = quality + np.array([0.8, 0.0, -0.4])[cultures] + rng.normal(0.0, 1.0, 450)
    return Draw(_on_scale(quality + rng.normal(0.0, 1.0, 450)), _on_scale(judged), cultures)


def shared_scenarios(rng: np.random.Generator) -> Draw:
    """The same, five questions a scenario, which is asked in all cultures."""
    cultures, scenarios = np.repeat(np.arange(3), 150), np.tile(np.repeat(np.arange(30), 5), 3)
    quality = np.array([6.0, 7.0, 5.0])[cultures] + rng.normal(0.0, 1.1, 90)[scenarios] + rng.normal(0.0, 1.0, 450)
    taste = rng.normal(0.0, 0.7, 90)[scenarios]  # people and judge see a scenario otherwise
    judged = quality + taste + np.array([0.8, 0.0, -0.4])[cultures] + rng.normal(0.0, 0.8, 450)
    return Draw(_on_scale(quality + rng.normal(0.0, 0.8, 450)), _on_scale(judged), cultures, scenarios)


def right_or_wrong(rng: np.random.Generator) -> Draw:
    """2,310 right or wrong answers in eleven cultures; the judge errs in 5 to 15 % of cases, either way."""
    cultures = np.repeat(np.arange(11), 210)
    right = rng.random(2310) < np.linspace(0.5, 0.85, 11)[cultures]
    missed, accepted = np.linspace(0.05, 0.15, 11)[cultures], np.linspace(0.15, 0.05, 11)[cultures]
    errs = rng.random(2310) < np.where(right, missed, accepted)
    return Draw(right.astype(float), (right != errs).astype(float), cultures)


def gross_errors(
    about: str, scale: _Scale, share: float, *, size: int = 3000, together: int = 1, wrong_in: int = 3
) -> World:
    """A judge that agrees with people, but for a share of errors as large as the scale, in some of three cultures.

    The scale has the scores, with how often people give each. So many questions ``together`` are wrong as a whole.
    """
    scores, width = np.array(scale[0]), scale[0][-1] - scale[0][0]

    def draw(rng: np.random.Generator) -> Draw:
        cultures, scenarios = np.arange(size) * 3 // size, np.arange(size) // together
        people = rng.choice(scores, size, p=scale[1])
        wrong = (rng.random(size) < share)[scenarios] & (cultures < wrong_in)
        judge = people + wrong * np.where(people + width > scores[-1], -width, width)
        return Draw(people, np.clip(judge, scores[0], scores[-1]), cultures, scenarios if together > 1 else None)

    return World(f"{about}, N = {size:,}", draw, (scale[0][0], scale[0][-1]), (21, 51, 100))


def _on_scale(values: Floats) -> Floats:
    return np.clip(np.round(values), 1.0, 10.0)


_HALVES = (0.0, 0.5, 1.0), (0.2, 0.3, 0.5)
_TENTHS = tuple(range(1, 11)), (0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.2, 0.18, 0.11, 0.05)
WORLDS: Mapping[str, World] = {
    "ratings": World("ratings 1-10, judge's noise 1", ratings, (1, 10), (15, 30, 60, 100)),
    "shared scenarios": World("the same, scenarios asked in all cultures", shared_scenarios, (1, 10), (60, 100)),
    "right or wrong": World("right / wrong, judge errs 5-15 %", right_or_wrong, (0, 1), (55, 110, 220, 330)),
    "halves": gross_errors("0 / 0.5 / 1, 4 % gross errors", _HALVES, 0.04),
    "scenarios wrong": gross_errors("the same, 6 % of scenarios wrong", _HALVES, 0.06, size=450, together=5),
    "one culture": gross_errors("the same, 10 % in one culture alone", _HALVES, 0.1, wrong_in=1),
    "tenths": gross_errors("ratings 1-10, 3 % gross errors", _TENTHS, 0.03),
}


class Coverage(NamedTuple):
    """Share of draws in which an interval held the truth, its mean width, and the share in the worst culture."""

    holds: float
    width: float
    least: float


def coverage(world: World, rated: int, *, draws: int, seed: int = 0) -> dict[str, Coverage]:
    """Returns how the judge's own interval, that of so many ratings alone and the corrected ones do."""
    rng, many = np.random.default_rng(seed), np.random.default_rng(2**32)
    drawn = [world.draw(many) for _ in range(400)]
    people, cultures = (np.concatenate([draw[column] for draw in drawn]) for column in (0, 2))
    truths = [people.mean(), *(np.bincount(cultures, weights=people) / np.bincount(cultures))]
    widths: dict[str, list[float]] = {}
    held: dict[str, list[list[bool]]] = {}
    for _ in range(draws):
        draw = world.draw(rng)
        human_scores = np.full(draw.people.size, np.nan)
        in_culture = [np.flatnonzero(draw.cultures == culture) for culture in range(len(truths) - 1)]
        for places in in_culture:
            chosen = rng.choice(places, rated // len(in_culture), replace=False)
            human_scores[chosen] = draw.people[chosen]
        truths_here = [draw.people.mean(), *(draw.people[places].mean() for places in in_culture)]
        for way, ends in _estimates(world, draw, human_scores).items():
            widths.setdefault(way, []).append(ends[0][1] - ends[0][0])
            true_means = truths_here if way.endswith("these questions") else truths
            held.setdefault(way, []).append(_hits(ends, true_means))
    shares = {way: np.mean(hits, axis=0).tolist() for way, hits in held.items()}
    return {way: Coverage(share[0], float(np.nanmean(widths[way])), min(share[1:])) for way, share in shares.items()}


def _estimates(world: World, draw: Draw, human_scores: Floats) -> dict[str, list[Ends]]:
    """Returns the ends of each way's intervals: that of all responses, then those of the cultures."""
    cultures, clusters = draw.cultures.tolist(), draw.clusters
    labels = range(max(cultures) + 1)

    def corrected(judge: Floats) -> list[Corrected]:
        means = corrected_mean(judge, human_scores, cultures, clusters=clusters, ends=world.ends)
        return [means.overall, *(means.over({label: 1.0}) for label in labels)]

    parts = [mean_interval(draw.judge[draw.cultures == label]) for label in labels]
    means = corrected(draw.judge)
    return {
        "judge alone": [(part.low, part.high) for part in (mean_interval(draw.judge, clusters), *parts)],
        "people alone": [(mean.low, mean.high) for mean in corrected(np.full(human_scores.size, np.nan))],
        "corrected": [(mean.low, mean.high) for mean in means],
        "corrected, these questions": [(mean.set_low, mean.set_high) for mean in means],
    }


def _hits(intervals: Sequence[Ends], truths: Sequence[float]) -> list[bool]:
    return [bool(low <= truth <= high) for (low, high), truth in zip(intervals, truths, strict=True)]


# Two models


class TwoModels(NamedTuple):
    """1,200 questions in three cultures of unequal size, answered by a model and by a candidate, and judged.

    The candidate is worse by ``drop``, or as good. The judge adds a bias to the quality of each model's responses, and
    likes what people don't where the sign is -1; or it takes a share of wrong answers for right (``lenient``).
    """

    about: str
    drop: float
    bias: tuple[float, float] = (0.0, 0.0)
    sign: float = 1.0
    right: bool = False
    lenient: float | None = None
    together: int = 1

    def draw(self, rng: np.random.Generator, drop: float) -> tuple[Floats, Floats]:
        """Draws people's scores, a row for each model, and the judge's."""
        size = _CULTURES.size
        shared = rng.normal(0.0, 1.0, size // self.together)[np.arange(size) // self.together]
        item = np.array([6.5, 6.0, 5.5])[_CULTURES] + shared + rng.normal(0.0, 0.7, size)
        quality = item + rng.normal(0.0, 1.0, (2, size)) - np.array([[0.0], [drop]])
        scored = (lambda values: (values > 5.0).astype(float)) if self.right else _on_scale
        people = scored(quality + rng.normal(0.0, 0.5, (2, size)))
        if self.lenient is not None:
            return people, np.maximum(people, rng.random((2, size)) < self.lenient)
        impression = 6.0 + self.sign * (quality - 6.0) + np.array(self.bias)[:, None]
        return people, scored(impression + rng.normal(0.0, 1.0, (2, size)))


_CULTURES = np.repeat(np.arange(3), (600, 400, 200))

TWO_MODELS: Mapping[str, TwoModels] = {
    "alike": TwoModels("ratings 1-10, judge too generous to both", 0.4, bias=(0.8, 0.8)),
    "differently": TwoModels("the same, too generous to the candidate alone", 0.4, bias=(0.0, 0.4)),
    "against": TwoModels("right / wrong, judge too strict with the candidate", 0.6, bias=(0.0, -0.4), right=True),
    "rarely wrong": TwoModels(
        "right / wrong, judge takes 15 % of wrong answers for right", 0.6, right=True, lenient=0.15
    ),
    "inverted": TwoModels("ratings 1-10, judge likes what people don't", 0.4, sign=-1.0),
    "scenarios": TwoModels("ratings 1-10, five questions a scenario", 0.4, bias=(0.0, 0.4), together=5),
}


class Gate(NamedTuple):
    """Shares of draws: the interval holds, a candidate as good or worse is found worse; the first of a culture's."""

    holds: float
    alarms: float
    finds: float
    least: float


def gates(world: TwoModels, rated: int, *, draws: int, seed: int = 0) -> dict[str, Gate]:
    """Returns how the judge's own test, that of so many ratings of each model alone and the corrected ones do."""
    rng = np.random.default_rng(seed)
    by_item = np.mean([np.subtract(*world.draw(rng, world.drop)[0]) for _ in range(2_000)], axis=0)
    truths = [by_item.mean(), *(by_item[culture == _CULTURES].mean() for culture in range(3))]
    outcomes_by_way: dict[str, list[list[bool]]] = {}
    for number in range(draws):
        same, worse = (_differences(world, drop, rated, rng, number % 50) for drop in (0.0, world.drop))
        for way, differences in worse.items():
            overall, *by_culture = _hits([(difference.low, difference.high) for difference in differences], truths)
            outcome = [overall, same[way][0].low > 0.0, differences[0].low > 0.0, *by_culture]
            outcomes_by_way.setdefault(way, []).append(outcome)
    shares = {way: np.mean(outcomes, axis=0).tolist() for way, outcomes in outcomes_by_way.items()}
    return {way: Gate(*share[:3], least=min(share[3:])) for way, share in shares.items()}


def _differences(
    world: TwoModels, drop: float, rated: int, rng: np.random.Generator, sample: int
) -> dict[str, list[Difference]]:
    """Returns how much better the model is than the candidate, over all and by culture; ``sample`` is a seed."""
    people, judge = world.draw(rng, drop)
    size = _CULTURES.size
    clusters = np.arange(size) // world.together if world.together > 1 else None
    order = [rng.permutation(np.flatnonzero(culture == _CULTURES)) for culture in range(3)]
    share = rated / size
    people_sample = np.concatenate([items[: round(share * items.size)] for items in order])
    designed_sample = _designed_sample(rated, world.together, sample)

    def corrected(judge: Floats, sample: Numbers) -> list[Difference]:
        human_scores = np.full((2, size), np.nan)
        human_scores[:, sample] = people[:, sample]
        ends = (0.0, 1.0) if world.right else (1.0, 10.0)
        both = (judge[0], judge[1]), (human_scores[0], human_scores[1])
        estimate = corrected_difference(*both, _CULTURES.tolist(), clusters=clusters, ends=ends)
        return [estimate.test(shares) for shares in (None, {0: 1.0}, {1: 1.0}, {2: 1.0})]

    parts = [_CULTURES >= 0, *(culture == _CULTURES for culture in range(3))]
    return {
        "judge alone": [
            paired_difference(*judge[:, inside], None if clusters is None else clusters[inside]) for inside in parts
        ],
        "people alone": corrected(np.full((2, size), np.nan), people_sample),
        "corrected": corrected(judge, people_sample),
        "corrected, designed sample": corrected(judge, designed_sample),
    }


@cache
def _designed_sample(number: int, together: int, seed: int) -> Numbers:
    """Draws items as ``rejudge --sample`` does; these draws say nothing of scores, so a few will do for all worlds."""
    items, scenarios = map(str, range(_CULTURES.size)), np.arange(_CULTURES.size) // together
    cultures = _CULTURES.astype(str).tolist()
    return np.array(designed_draw(number, list(items), scenarios.astype(str).tolist(), cultures, seed), dtype=np.intp)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each world (default: %(default)s)")
    parser.add_argument("--two-models", action="store_true", help="the differences of two models")
    options = parser.parse_args()
    print((_two_models if options.two_models else _one_model)(options.draws))


def _one_model(draws: int) -> str:
    rows = []
    for world in WORLDS.values():
        for rated in world.rated:
            results = coverage(world, rated, draws=draws)
            digits = 2 if world.ends[1] > 1 else 3
            cells = [f"{result.holds:.1%}, {result.width:.{digits}f}" for result in results.values()]
            rows.append([world.about, str(rated), *cells, _least(results)])
    return as_markdown(("world", "rated", *results, "corrected, worst culture"), rows)


def _two_models(draws: int) -> str:
    rows = []
    for world in TWO_MODELS.values():
        for rated in (50, 100, 200, 400):
            results = gates(world, rated, draws=draws)
            cells = [f"{result.holds:.1%}, {result.alarms:.1%}, {result.finds:.0%}" for result in results.values()]
            rows.append([world.about, str(rated), *cells, _least(results)])
    return as_markdown(("world", "rated", *results, "corrected, worst culture"), rows)


def _least(results: Mapping[str, Coverage | Gate]) -> str:
    return ", ".join(f"{result.least:.1%}" for way, result in results.items() if way.startswith("corrected"))


if __name__ == "__main__":
    main()
