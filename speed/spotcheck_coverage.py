"""How often intervals hold the truth when people, or a better judge, check a judge: tables of the docs.

Each world draws questions, people's scores and a judge's anew, has some responses rated, and compares the judge's
own interval, that of the ratings alone and the corrected one with the mean that people would give to all questions of
the world, or with the difference of two models' means. ``python speed/spotcheck_coverage.py`` prints the table of means
(about seven minutes on one core), and with ``--two-models`` that of differences (about twelve minutes).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from culture_tasks.metrics.comparison import Difference, paired_difference
from culture_tasks.metrics.intervals import mean_interval
from culture_tasks.metrics.prediction_powered import Corrected, corrected_difference, corrected_mean
from culture_tasks.metrics.subsets import draw as designed_draw
from culture_tasks.text_tables import as_markdown

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]


class Draw(NamedTuple):
    """One draw of a world.

    Attributes:
        people: The score that people would give to each response.
        judge: The judge's.
        cultures: The culture of each.
        clusters: What each shares with others; None where each stands alone.
    """

    people: Floats
    judge: Floats
    cultures: Numbers
    clusters: Numbers | None = None


@dataclass(frozen=True, slots=True)
class World:
    """A judge and its bias.

    Attributes:
        about: What it is like.
        draw: Draws questions with people's and the judge's scores.
        ends: Ends of the scale.
        rated: Numbers of ratings to try.
    """

    about: str
    draw: Callable[[np.random.Generator], Draw]
    ends: tuple[float, float]
    rated: tuple[int, ...]


def ratings(rng: np.random.Generator, noise: tuple[float, float, float]) -> Draw:
    """450 ratings from 1 to 10 in three cultures; the judge is off by +0.8, 0 and -0.4 points."""
    cultures = np.repeat(np.arange(3), 150)
    quality = np.array([6.0, 7.0, 5.0])[cultures] + rng.normal(0.0, 1.5, 450)
    judged = quality + np.array([0.8, 0.0, -0.4])[cultures] + rng.normal(0.0, 1.0, 450) * np.array(noise)[cultures]
    return Draw(_on_scale(quality + rng.normal(0.0, 1.0, 450)), _on_scale(judged), cultures)


def clustered(rng: np.random.Generator, *, across: bool) -> Draw:
    """The same, five questions a scenario, which lies within one culture or is asked in all of them."""
    cultures = np.repeat(np.arange(3), 150)
    scenarios = np.tile(np.repeat(np.arange(30), 5), 3) if across else np.repeat(np.arange(90), 5)
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


def rarely_wrong(rng: np.random.Generator) -> Draw:
    """450 answers, nine in ten right, in three cultures; the judge takes 40 % of the wrong ones for right."""
    cultures = np.repeat(np.arange(3), 150)
    right = rng.random(450) < 0.9
    return Draw(right.astype(float), (right | (rng.random(450) < 0.4)).astype(float), cultures)


def unequally_wrong(rng: np.random.Generator) -> Draw:
    """600 answers in three cultures, where the judge errs in about 2, 10 and 35 % of cases."""
    cultures = np.repeat(np.arange(3), 200)
    right = rng.random(600) < np.array([0.8, 0.6, 0.5])[cultures]
    errs = rng.random(600) < np.array([0.02, 0.10, 0.35])[cultures] * np.where(right, 0.5, 1.5)
    return Draw(right.astype(float), (right != errs).astype(float), cultures)


class GrossErrors(NamedTuple):
    """A judge that agrees with people but for rare gross errors, in three cultures.

    Attributes:
        scores: The scores that people give.
        shares: How often they give each.
        size: Number of responses.
        share: Share of responses that the judge gets grossly wrong.
        error: How far it is off there, up to the end of the scale: upwards, or downwards where that leaves the scale.
        one_way: Whether it is off upwards alone.
        noise: Share of responses that a rater, or the judge, scores one step up or down besides.
        raters: Number of raters, whose mean counts.
        together: Number of questions in a scenario, which the judge gets wrong as a whole.
        cultures: Number of cultures in which it errs.
    """

    scores: Sequence[float]
    shares: Sequence[float]
    size: int
    share: float
    error: float
    one_way: bool = False
    noise: float = 0.0
    raters: int = 1
    together: int = 1
    cultures: int = 3

    def __call__(self, rng: np.random.Generator) -> Draw:
        """Draws the responses."""
        scores, step = np.array(self.scores), self.scores[1] - self.scores[0]
        cultures, scenarios = np.arange(self.size) * 3 // self.size, np.arange(self.size) // self.together
        quality = rng.choice(scores, self.size, p=self.shares)

        def observation() -> Floats:
            steps = rng.choice((-step, step), self.size) * (rng.random(self.size) < self.noise)
            return np.clip(quality + steps, scores[0], scores[-1])

        people = np.mean([observation() for _ in range(self.raters)], axis=0) if self.raters > 1 else quality
        wrong = (rng.random(self.size) < self.share)[scenarios] & (cultures < self.cultures)
        down = (quality + self.error > scores[-1]) & (not self.one_way)
        judge = np.where(wrong, quality + np.where(down, -self.error, self.error), observation())
        clusters = scenarios if self.together > 1 else None
        return Draw(people, np.clip(judge, scores[0], scores[-1]), cultures, clusters)


def _on_scale(values: Floats) -> Floats:
    return np.clip(np.round(values), 1.0, 10.0)


_HALVES = ((0.0, 0.5, 1.0), (0.2, 0.3, 0.5))
_MOSTLY_RIGHT = ((0.0, 1.0), (0.06, 0.94))
_TENTHS = (tuple(range(1, 11)), (0.02, 0.03, 0.05, 0.08, 0.12, 0.16, 0.2, 0.18, 0.11, 0.05))


def _gross(about: str, ends: tuple[float, float], rated: tuple[int, ...], errors: GrossErrors) -> World:
    return World(f"{about}, N = {errors.size:,}", errors, ends, rated)


WORLDS: Mapping[str, World] = {
    "ratings": World("ratings 1-10, judge's noise 1", lambda rng: ratings(rng, (1, 1, 1)), (1, 10), (15, 30, 60, 100)),
    "noisy": World("the same, noise 2", lambda rng: ratings(rng, (2, 2, 2)), (1, 10), (30, 60)),
    "uneven": World("the same, noise 0.5, 1 and 3", lambda rng: ratings(rng, (0.5, 1, 3)), (1, 10), (30, 60)),
    "scenarios": World(
        "the same, five questions a scenario", lambda rng: clustered(rng, across=False), (1, 10), (60, 100)
    ),
    "shared scenarios": World(
        "the same, scenarios asked in all cultures", lambda rng: clustered(rng, across=True), (1, 10), (60, 100)
    ),
    "right or wrong": World("right / wrong, judge errs 5-15 %", right_or_wrong, (0, 1), (55, 110, 220, 330)),
    "unequally wrong": World("right / wrong, judge errs 2, 10 and 35 %", unequally_wrong, (0, 1), (60, 100)),
    "rarely wrong": World("right / wrong, judge errs 4 %, one way", rarely_wrong, (0, 1), (30, 60, 100)),
    "halves": _gross("0 / 0.5 / 1, 4 % gross errors", (0, 1), (21, 51, 100, 200), GrossErrors(*_HALVES, 3000, 0.04, 1)),
    "few halves": _gross("the same", (0, 1), (21, 51, 100), GrossErrors(*_HALVES, 450, 0.04, 1)),
    "half errors": _gross("the same, 8 % errors of 0.5", (0, 1), (21, 51), GrossErrors(*_HALVES, 150, 0.08, 0.5)),
    "scenarios wrong": _gross(
        "the same, 6 % of scenarios wrong", (0, 1), (51, 100), GrossErrors(*_HALVES, 450, 0.06, 1, together=5)
    ),
    "three raters": _gross(
        "the same, three raters", (0, 1), (21, 51, 100), GrossErrors(*_HALVES, 3000, 0.04, 1, noise=0.15, raters=3)
    ),
    "one culture": _gross(
        "the same, 10 % in one culture alone", (0, 1), (21, 51, 100), GrossErrors(*_HALVES, 3000, 0.1, 1, cultures=1)
    ),
    "mostly right": _gross(
        "right / wrong, 94 % right, 4 % errors", (0, 1), (21, 51, 100), GrossErrors(*_MOSTLY_RIGHT, 3000, 0.04, 1)
    ),
    "tenths": _gross(
        "ratings 1-10, 3 % gross errors", (1, 10), (21, 51, 100, 200), GrossErrors(*_TENTHS, 3000, 0.03, 9)
    ),
    "too generous": _gross(
        "the same, 5 % too generous", (1, 10), (51, 100), GrossErrors(*_TENTHS, 450, 0.05, 9, one_way=True)
    ),
    "noisy tenths": _gross(
        "the same, 3 %, off by one in 30 %", (1, 10), (21, 51, 100), GrossErrors(*_TENTHS, 3000, 0.03, 9, noise=0.3)
    ),
}


class Coverage(NamedTuple):
    """How an interval did.

    Attributes:
        holds: Share of draws in which it held the truth.
        width: Its mean width.
        least: The same share for the culture in which it is least; NaN where it wasn't tried.
    """

    holds: float
    width: float
    least: float


def coverage(world: World, rated: int, *, draws: int, seed: int = 0) -> dict[str, Coverage]:
    """Returns how the judge's own interval, that of the ratings alone and the corrected ones do.

    Args:
        world: The world.
        rated: Number of ratings, the same in each culture.
        draws: How often the world is drawn.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    truth, by_culture = _truth(world)
    ways: dict[str, list[tuple[bool, float, list[bool]]]] = {}
    for _ in range(draws):
        draw = world.draw(rng)
        human_scores = _human_scores(draw, rated, rng)
        truths = [draw.people[draw.cultures == culture].mean() for culture in range(by_culture.size)]
        for way, (overall, parts) in _estimates(world, draw, human_scores).items():
            is_of_set = way == "corrected, these questions"
            part_truths = truths if is_of_set else by_culture
            hits = [_holds(part, part_truth) for part, part_truth in zip(parts, part_truths, strict=True)]
            interval = (overall[0], overall[1])
            overall_truth = draw.people.mean() if is_of_set else truth
            ways.setdefault(way, []).append((_holds(interval, overall_truth), interval[1] - interval[0], hits))
    return {way: _summed(outcomes) for way, outcomes in ways.items()}


def _truth(world: World) -> tuple[float, Floats]:
    """Returns the mean that people would give to all questions of a world, and by culture."""
    rng = np.random.default_rng(2**32)
    draws = [world.draw(rng) for _ in range(400)]
    people = np.concatenate([draw.people for draw in draws])
    cultures = np.concatenate([draw.cultures for draw in draws])
    by_culture = np.bincount(cultures, weights=people) / np.bincount(cultures)
    return float(people.mean()), by_culture


def _mean_truths(draws: Sequence[Draw]) -> tuple[float, list[float]]:
    """Returns the mean over draws of what people give to all questions of a draw, and to those of each culture."""
    by_culture = [
        float(np.mean([draw.people[draw.cultures == culture].mean() for draw in draws])) for culture in range(3)
    ]
    return float(np.mean([draw.people.mean() for draw in draws])), by_culture


def _human_scores(draw: Draw, rated: int, rng: np.random.Generator) -> Floats:
    human_scores = np.full(draw.people.size, np.nan)
    cultures = int(draw.cultures.max()) + 1
    for culture in range(cultures):
        places = rng.choice(np.flatnonzero(draw.cultures == culture), rated // cultures, replace=False)
        human_scores[places] = draw.people[places]
    return human_scores


Ends = tuple[float, float]


def _estimates(world: World, draw: Draw, human_scores: Floats) -> dict[str, tuple[Ends, list[Ends]]]:
    cultures, clusters = draw.cultures.tolist(), draw.clusters
    labels = range(int(draw.cultures.max()) + 1)
    corrected = corrected_mean(draw.judge, human_scores, cultures, clusters=clusters, ends=world.ends)
    nothing = np.full(human_scores.size, np.nan)
    alone = corrected_mean(nothing, human_scores, cultures, clusters=clusters, ends=world.ends)
    judge_interval = mean_interval(draw.judge, clusters)
    parts = [mean_interval(draw.judge[draw.cultures == culture]) for culture in labels]
    interval = _stratified_interval(draw, human_scores)
    return {
        "judge alone": ((judge_interval.low, judge_interval.high), [(part.low, part.high) for part in parts]),
        "people alone": (_ends(alone.overall), [_ends(alone.strata[culture]) for culture in labels]),
        "a weight for each culture": (interval, [interval for _ in labels]),
        "corrected": (_ends(corrected.overall), [_ends(corrected.strata[culture]) for culture in labels]),
        "corrected, these questions": (
            (corrected.overall.set_low, corrected.overall.set_high),
            [(corrected.strata[culture].set_low, corrected.strata[culture].set_high) for culture in labels],
        ),
    }


def _stratified_interval(draw: Draw, human_scores: Floats) -> Ends:
    """Returns the overall interval as the papers have it: a weight and a variance for each culture, and no clusters."""
    value, variance, size, used = 0.0, 0.0, draw.people.size, 0
    for culture in np.unique(draw.cultures):
        judge, people = draw.judge[draw.cultures == culture], human_scores[draw.cultures == culture]
        f, y = judge[~np.isnan(people)], people[~np.isnan(people)]
        spread = float(np.var(f, ddof=1))
        weight = min(max(float(np.cov(y, f)[0, 1]) / spread, 0.0), 1.5) if spread else 0.0
        share, residuals = judge.size / size, y - weight * f
        off = float(((residuals - residuals.mean()) ** 2).sum()) / (f.size - 2)
        value += share * (weight * judge.mean() + residuals.mean())
        variance += share**2 * (np.var(y, ddof=1) / judge.size + (1 / f.size - 1 / judge.size) * off)
        used += f.size - 2
    reach = float(stats.t.ppf(0.975, used)) * variance**0.5
    return value - reach, value + reach


def _ends(estimate: Corrected) -> Ends:
    return estimate.low, estimate.high


def _holds(ends: Ends, truth: float) -> bool:
    return bool(ends[0] <= truth <= ends[1])


def _summed(outcomes: list[tuple[bool, float, list[bool]]]) -> Coverage:
    by_culture = np.array([hits for _, _, hits in outcomes]).mean(axis=0)
    return Coverage(
        float(np.mean([hit for hit, _, _ in outcomes])),
        float(np.nanmean([width for _, width, _ in outcomes])),
        float(by_culture.min()),
    )


# Two models


class TwoModels(NamedTuple):
    """1,200 questions in three cultures of unequal size, answered by a model and by a candidate, and judged.

    Attributes:
        about: What it is like.
        drop: How much worse the candidate is, by people, where it is worse: on the quality that is 5 wide at 0 / 1.
        bias: What the judge adds to the quality of each model's responses.
        noise: Deviation of what the judge sees of it.
        sign: -1 where the judge likes what people don't.
        right: Whether scores are right / wrong rather than 1 to 10.
        lenient: Share of each model's wrong answers that the judge takes for right, where it is right otherwise.
        together: Number of questions in a scenario.
    """

    about: str
    drop: float
    bias: tuple[float, float] = (0.0, 0.0)
    noise: float = 1.0
    sign: float = 1.0
    right: bool = False
    lenient: tuple[float, float] | None = None
    together: int = 1

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the scale."""
        return (0.0, 1.0) if self.right else (1.0, 10.0)

    def draw(self, rng: np.random.Generator, drop: float) -> tuple[Floats, Floats]:
        """Draws people's scores, a row for each model, and the judge's."""
        size = _CULTURES.size
        shared = rng.normal(0.0, 1.0, size // self.together)[np.arange(size) // self.together]
        item = np.array([6.5, 6.0, 5.5])[_CULTURES] + shared + rng.normal(0.0, 0.7, size)
        quality = item + rng.normal(0.0, 1.0, (2, size)) - np.array([[0.0], [drop]])
        people = self._scored(quality + rng.normal(0.0, 0.5, (2, size)))
        if self.lenient is not None:
            return people, np.maximum(people, rng.random((2, size)) < np.array(self.lenient)[:, None])
        impression = 6.0 + self.sign * (quality - 6.0) + np.array(self.bias)[:, None]
        return people, self._scored(impression + rng.normal(0.0, self.noise, (2, size)))

    def _scored(self, quality: Floats) -> Floats:
        return (quality > 5.0).astype(float) if self.right else _on_scale(quality)


_CULTURES = np.repeat(np.arange(3), (600, 400, 200))

TWO_MODELS: Mapping[str, TwoModels] = {
    "alike": TwoModels("ratings 1-10, judge too generous to both", 0.4, bias=(0.8, 0.8)),
    "differently": TwoModels("the same, too generous to the candidate alone", 0.4, bias=(0.0, 0.4)),
    "against": TwoModels("right / wrong, judge too strict with the candidate", 0.6, bias=(0.0, -0.4), right=True),
    "rarely wrong": TwoModels(
        "right / wrong, judge takes 15 % of wrong answers for right", 0.6, right=True, lenient=(0.15, 0.15)
    ),
    "inverted": TwoModels("ratings 1-10, judge likes what people don't", 0.4, sign=-1.0),
    "scenarios": TwoModels("ratings 1-10, five questions a scenario", 0.4, bias=(0.0, 0.4), together=5),
}


class Gate(NamedTuple):
    """How a way to compare two models did, as shares of draws.

    Attributes:
        holds: Its 95 % interval holds the true difference, where there is one.
        alarms: It finds the candidate worse which is as good.
        finds: It finds the candidate worse which is worse.
        least: The intervals of cultures hold theirs, in the culture where they do least often.
    """

    holds: float
    alarms: float
    finds: float
    least: float


def gates(world: TwoModels, rated: int, *, draws: int, seed: int = 0) -> dict[str, Gate]:
    """Returns how the judge's own test, that of the ratings alone and the corrected ones do.

    Args:
        world: The world.
        rated: Number of responses of each model that people rate, of each culture its share.
        draws: How often the world is drawn, with a candidate that is as good and with one that is worse.
        seed: Seed of the draws.
    """
    rng = np.random.default_rng(seed)
    by_item = np.mean([np.subtract(*world.draw(rng, world.drop)[0]) for _ in range(2_000)], axis=0)
    truths = [by_item.mean(), *(by_item[culture == _CULTURES].mean() for culture in range(3))]
    outcomes_by_way: dict[str, list[list[bool]]] = {}
    for number in range(draws):
        same, worse = (_differences(world, drop, rated, rng, number % 50) for drop in (0.0, world.drop))
        for way, differences in worse.items():
            ends = [(difference.low, difference.high) for difference in differences]
            overall, *by_culture = map(_holds, ends, truths)
            outcome = [overall, same[way][0].low > 0.0, differences[0].low > 0.0, *by_culture]
            outcomes_by_way.setdefault(way, []).append(outcome)
    shares = {way: np.mean(outcomes, axis=0).tolist() for way, outcomes in outcomes_by_way.items()}
    return {way: Gate(*share[:3], least=min(share[3:])) for way, share in shares.items()}


def _differences(
    world: TwoModels, drop: float, rated: int, rng: np.random.Generator, sample: int
) -> dict[str, list[Difference]]:
    """Returns how much better the model is than the candidate: over all, and in each culture.

    The number of the designed sample is its seed.
    """
    people, judge = world.draw(rng, drop)
    size = _CULTURES.size
    clusters = np.arange(size) // world.together if world.together > 1 else None
    order = [rng.permutation(np.flatnonzero(culture == _CULTURES)) for culture in range(3)]
    share = rated / size
    first_sample = [np.concatenate([items[: round(share * items.size)] for items in order])] * 2
    second_sample = np.concatenate([rng.permutation(items)[: round(share * items.size)] for items in order])

    def corrected(judge: Floats, samples: Sequence[Numbers]) -> list[Difference]:
        human_scores = np.full((2, size), np.nan)
        for row, places in enumerate(samples):
            human_scores[row, places] = people[row, places]
        scores = ((judge[0], judge[1]), (human_scores[0], human_scores[1]))
        estimate = corrected_difference(*scores, _CULTURES.tolist(), clusters=clusters, ends=world.ends)
        return [estimate.over(shares) for shares in (None, {0: 1.0}, {1: 1.0}, {2: 1.0})]

    def judge_difference(inside: NDArray[np.bool_]) -> Difference:
        return paired_difference(judge[0, inside], judge[1, inside], None if clusters is None else clusters[inside])

    return {
        "judge alone": [
            judge_difference(_CULTURES >= 0),
            *(judge_difference(culture == _CULTURES) for culture in range(3)),
        ],
        "people alone": corrected(np.full((2, size), np.nan), first_sample),
        "corrected": corrected(judge, first_sample),
        "corrected, different items": corrected(judge, [first_sample[0], second_sample]),
        "corrected, designed sample": corrected(judge, [_shared_sample(rated, world.together, sample)] * 2),
    }


@cache
def _shared_sample(number: int, together: int, seed: int) -> Numbers:
    """Draws items of both models; these draws say nothing of scores, so a few of them will do for all worlds."""
    return _designed(number, _CULTURES, np.arange(_CULTURES.size) // together, seed)


def _designed(number: int, cultures: Numbers, clusters: Numbers | None, seed: int) -> Numbers:
    """Draws responses as ``rejudge --sample`` does: all with the same chance, evenly from cultures and clusters."""
    items = [str(item) for item in range(cultures.size)]
    shared = items if clusters is None else [str(cluster) for cluster in clusters]
    strata = [str(culture) for culture in cultures]
    return np.array(designed_draw(number, items, shared, strata, seed), dtype=np.intp)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2_000, help="draws of each world (default: %(default)s)")
    tables = {
        "one-model": (_one_model, "people's ratings of one model's responses (default)"),
        "two-models": (_two_models, "the differences of two models"),
    }
    table_options = parser.add_mutually_exclusive_group()
    for name, (table, help_text) in tables.items():
        table_options.add_argument(
            f"--{name}", dest="table", action="store_const", const=table, default=_one_model, help=help_text
        )
    options = parser.parse_args()
    print(options.table(options.draws))


def _two_models(draws: int) -> str:
    rows = []
    ways = ("judge alone", "people alone", "corrected", "corrected, different items", "corrected, designed sample")
    for world in TWO_MODELS.values():
        for rated in (50, 100, 200, 400):
            outcomes = gates(world, rated, draws=draws)
            results = [outcomes[way] for way in ways]
            cells = [f"{gate.holds:.1%}, {gate.alarms:.1%}, {gate.finds:.0%}" for gate in results]
            least = ", ".join(f"{outcomes[way].least:.1%}" for way in ways[2:])
            rows.append([world.about, str(rated), *cells, least])
    return as_markdown(("world", "rated", *ways, "corrected, worst culture"), rows)


def _cell(result: Coverage, ends: Ends) -> str:
    return f"{result.holds:.1%}, {result.width:.{2 if ends[1] > 1 else 3}f}"


def _one_model(draws: int) -> str:
    rows = []
    for world in WORLDS.values():
        for rated in world.rated:
            results = coverage(world, rated, draws=draws)
            cells = [_cell(result, world.ends) for result in results.values()]
            least = (f"{results[way].least:.1%}" for way in ("corrected", "corrected, these questions"))
            rows.append([world.about, str(rated), *cells, ", ".join(least)])
    ways = (
        "judge alone",
        "people alone",
        "a weight for each culture",
        "corrected",
        "corrected, these questions",
        "corrected, worst culture",
    )
    return as_markdown(("world", "rated", *ways), rows)


if __name__ == "__main__":
    main()
