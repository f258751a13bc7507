"""The score of each model for each country, over all benchmarks that ask about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np

from culture_tasks.benchmarks.registry import cultures
from culture_tasks.benchmarks.reporting import Floats, Where
from culture_tasks.metrics.means import Numbers, numbered
from culture_tasks.metrics.partial_pooling import ScoredItems, pooled
from culture_tasks.metrics.significance import holm, p_of_intervals
from culture_tasks.report.model import Cell, CountryScore, Flag
from culture_tasks.report.numbers.comparisons import ALPHA
from culture_tasks.report.numbers.observations import groups_of_items, observe, ordered
from culture_tasks.report.numbers.overall import COMMON, OWN_CULTURE, mapped
from culture_tasks.report.numbers.scores import Measured, Scores
from culture_tasks.vocabulary import place

FEW = 20
"""A country with fewer questions has its score marked: without pooling, the interval of 20 right or wrong answers
reaches up to 20 points to either side, so the model's other countries say more about the score than these answers.
"""


class Countries(NamedTuple):
    """The scores of all rows for all countries.

    Attributes:
        scores: The scores, row by row; countries come in the order of the benchmarks' groups.
        beside: Keys of headline units that are in no score, each with the reason in words.
        parts: Names of parts of countries, each with the code of the country that it counts for.
    """

    scores: tuple[CountryScore, ...]
    beside: Mapping[str, str]
    parts: Mapping[str, str]


class _ByCountry(NamedTuple):
    """A unit, the field of its places, and the country of each group of it; the place's code where it is in none."""

    measured: Measured
    field: str
    countries: Mapping[str, str]


def country_scores(scores: Scores, rankable: Callable[[Cell], bool]) -> Countries:
    """Works out the score of each row for each country, over all headline units whose groups are places.

    A unit counts where its number may be compared (``rankable``) and is a mean of items on a scale with two ends. Each
    row is scored over its units. A part of a country counts for the country.
    """
    units: dict[str, _ByCountry] = {}
    beside: dict[str, str] = {}
    for key, measured in scores.units.items():
        if measured.unit.headline and (reason := _obstacle(measured)):
            beside[key] = reason
        elif measured.unit.headline:
            field = _field_of_places(measured)
            places = measured.reported.field_named(field).codes
            units[key] = _ByCountry(
                measured, field, {name: place(code).country or code for name, code in places.items()}
            )
    if not units:
        return Countries((), {}, {})
    codes = list(dict.fromkeys(code for unit in units.values() for code in unit.countries.values()))
    found: list[CountryScore] = []
    for row in dict.fromkeys(row for unit in units.values() for row in unit.measured.runs):
        own = (unit for unit in units.values() if row in unit.measured.unit.cells)
        found += _row_scores(row, [unit for unit in own if rankable(unit.measured.unit.cells[row])], codes)
    uncounted = units.keys() - {key for score in found for key in score.over}
    none = "no model has comparable scores of questions about one country"
    return Countries(
        tuple(mark_differences(found)),
        beside | {key: none for key in units if key in uncounted},
        {
            place(code).name: place(code).country
            for unit in units.values()
            for row in unit.measured.runs
            for group in unit.measured.groups(row, unit.field)
            if "-" in (code := unit.measured.reported.field_named(unit.field).codes.get(group, ""))
        },
    )


def _obstacle(measured: Measured) -> str:
    """Returns why a unit can't count; empty where it can."""
    scale = measured.unit.scale
    if not _field_of_places(measured):
        return "it doesn't group its questions by country"
    if scale.ends is None or scale.better is None:
        return "its metric has no worst and best value"
    if measured.unit.benchmark in cultures():
        return OWN_CULTURE
    observed = next((measured.observe(row) for row, runs in measured.runs.items() if runs), None)
    if observed is None:
        return "there are no samples of it"
    return "" if observed.compute is None else "its score is no mean over questions"


def _field_of_places(measured: Measured) -> str:
    return next((name for name, groups in measured.reported.groups.items() if groups.places), "")


def _row_scores(row: str, units: Iterable[_ByCountry], codes: Sequence[str]) -> Iterator[CountryScore]:
    """Yields a row's scores: for each country, the pooled mean of the items that are about it alone."""
    counted = [(unit, items) for unit in units if (items := _items(unit, row, codes))[0].size]
    if not counted:
        return
    scores, places, clusters = (
        np.concatenate(columns) for columns in zip(*(items for _, items in counted), strict=True)
    )
    benchmarks = [unit.measured.unit.benchmark or unit.measured.unit.key for unit, _ in counted]
    firsts = [benchmarks.index(benchmark) for benchmark in benchmarks]
    owners = np.repeat(np.arange(len(counted)), [items[0].size for _, items in counted])
    clusters += np.array(firsts, dtype=np.int64)[owners] << 32  # tasks of a benchmark share clusters
    questions = np.unique(np.stack([places, clusters]), axis=1)  # one in several tasks or languages is one
    counts = np.bincount(questions[0], minlength=len(codes)).tolist()
    flags: set[Flag] = {flag for unit, _ in counted for flag in unit.measured.unit.cells[row].flags}
    means = {unit.measured.unit.key: _means(unit, row, codes, *items[:2]) for unit, items in counted}
    pooled_scores = pooled(ScoredItems(scores, places, owners, numbered(clusters)[1], firsts), len(codes))
    for code, score, n in zip(codes, pooled_scores, counts, strict=True):
        if score is not None:
            cell = Cell(score.value, COMMON, low=score.low, high=score.high, n=n, flags=ordered(flags))
            own_means = {key: cells[code] for key, cells in means.items() if code in cells}
            yield CountryScore(row, code, cell, raw=score.raw, means=own_means, over=tuple(means))


def _items(unit: _ByCountry, row: str, codes: Sequence[str]) -> tuple[Floats, Numbers, Numbers]:
    """Returns the scores of a row's items that are about one country, with the numbers of their country and cluster."""
    numbers = {code: number for number, code in enumerate(codes)}
    parts = [(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))]
    for run in unit.measured.runs[row]:
        observed, groups = observe([run], [run.run.task]), groups_of_items(run, unit.field)
        if groups is not None:
            places = np.array([numbers.get(unit.countries.get(name, ""), -1) for name in (*groups.names, "")])
            of_items = places[groups.codes[observed.items]]
            counted = ~np.isnan(observed.scores) & (of_items >= 0)
            scores = mapped(observed.scores[counted], unit.measured.unit.scale)
            parts.append((scores, of_items[counted], observed.clusters[counted].astype(np.int64)))
    scores, places, clusters = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return scores, places, clusters


def _means(unit: _ByCountry, row: str, codes: Sequence[str], scores: Floats, places: Numbers) -> dict[str, Cell]:
    """Returns the mean of a unit for each country that it asks about; a mean of a single group opens its samples."""
    counts = np.bincount(places, minlength=len(codes)).tolist()
    sums = np.bincount(places, scores, minlength=len(codes)).tolist()
    runs, groups = tuple(run.run.key for run in unit.measured.runs[row]), Counter(unit.countries.values())
    samples: dict[str, tuple[tuple[str, ...], Where]] = {
        code: (runs, ((unit.field, group),)) for group, code in unit.countries.items() if groups[code] == 1
    }
    means: dict[str, Cell] = {}
    for code, total, n in zip(codes, sums, counts, strict=True):
        if n:
            own_runs, where = samples.get(code, ((), ()))
            means[code] = Cell(total / n, COMMON, n=n, runs=own_runs, where=where)
    return means


def mark_differences(scores: Sequence[CountryScore]) -> list[CountryScore]:
    """Marks scores that differ significantly from others.

    * ``cell.best``: a model against the best one for the country, of those with the same units, with Bonferroni's
      adjustment over all pairs of models;
    * ``beside_others``: a country against the mean of the model's other countries, with Holm's adjustment over all
      models and countries.

    Both tests take their errors from the intervals, and take scores as independent, which makes them careful: scores
    share questions and benchmarks. Simulated with three equal models and 3 to 30 countries of 5 to 300 questions, some
    model is marked as better for 2 to 4 of 100 countries; where the countries are equal, too, at most 2 of 100
    reports mark one.
    """
    best, beside = _best(scores), _beside_others(scores)
    return [
        replace(
            score,
            cell=replace(score.cell, best=(score.entrant, score.place) in best),
            beside_others=beside.get((score.entrant, score.place)),
        )
        for score in scores
    ]


def _best(scores: Sequence[CountryScore]) -> set[tuple[str, str]]:
    """Returns the best models for each country, among the models with the usual units."""
    usual = usual_units(scores)
    by_country: dict[str, list[CountryScore]] = {}
    for score in scores:
        if score.over == usual:
            by_country.setdefault(score.place, []).append(score)
    best: set[tuple[str, str]] = set()
    for code, rivals in by_country.items():
        value, *reach = _numbers(rivals)
        first = int(value.argmax())
        p = _p_values(value[first] - value, [side[first] for side in reach], reach)
        worse = p * math.comb(len(rivals), 2) <= ALPHA
        if worse.any():
            best.update((score.entrant, code) for score, is_worse in zip(rivals, worse, strict=True) if not is_worse)
    return best


def usual_units(scores: Sequence[CountryScore]) -> tuple[str, ...]:
    """Returns the units that most models have been scored over; in a tie, the first ones."""
    entrants = Counter({score.entrant: score.over for score in scores}.values())
    return max(entrants, key=entrants.__getitem__, default=())


def _beside_others(scores: Sequence[CountryScore]) -> dict[tuple[str, str], Literal["above", "below"]]:
    """Returns the countries for which a model is significantly better or worse than for its other countries."""
    differences: dict[tuple[str, str], float] = {}
    p: list[float] = []
    for entrant, model_scores in groupby(scores, key=lambda score: score.entrant):
        countries = list(model_scores)
        value, *reach = _numbers(countries)
        if others := len(countries) - 1:
            above = value - (value.sum() - value) / others
            reach_of_others = [np.sqrt(np.maximum((side**2).sum() - side**2, 0.0)) / others for side in reach]
            differences |= {(entrant, score.place): each for score, each in zip(countries, above, strict=True)}
            p += _p_values(above, reach, reach_of_others).tolist()
    return {
        key: "above" if difference > 0.0 else "below"
        for (key, difference), adjusted in zip(differences.items(), holm(p), strict=True)
        if adjusted <= ALPHA
    }


def _numbers(scores: Sequence[CountryScore]) -> tuple[Floats, Floats, Floats]:
    """Returns values, and how far their intervals reach below and above them."""
    cells = [(score.cell.value, score.cell.low, score.cell.high) for score in scores]
    value, low, high = np.array(cells, dtype=np.float64).T
    return value, value - low, high - value


def _p_values(differences: Floats, first: Sequence[Floats], second: Sequence[Floats]) -> Floats:
    """Returns the p-values of differences of independent scores, by the facing sides of their intervals."""
    (below, above), (below_second, above_second) = first, second
    reach = np.where(differences > 0.0, np.hypot(below, above_second), np.hypot(above, below_second))
    return p_of_intervals(differences, 2.0 * reach)
