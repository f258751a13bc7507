"""The score of each model for each country, over all benchmarks that ask about it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.registry import cultures
from culture_tasks.benchmarks.reporting import Floats
from culture_tasks.metrics.means import numbered
from culture_tasks.metrics.partial_pooling import ScoredItems, pooled
from culture_tasks.metrics.significance import holm, p_of_interval
from culture_tasks.report.model import CountryScore, Flag, Number
from culture_tasks.report.numbers.comparisons import ALPHA
from culture_tasks.report.numbers.draws import weighted
from culture_tasks.report.numbers.numbers import Numbers, Unit, ordered
from culture_tasks.report.numbers.overall import COMMON, OWN_CULTURE, mapped
from culture_tasks.report.numbers.selection import groups_of_items, select
from culture_tasks.vocabulary import place

Integers = NDArray[np.int64]

FEW = 20
"""A country with fewer questions has its score marked: without pooling, the interval of 20 right or wrong answers
reaches up to 20 points to either side, so the model's other countries say more about the score than these answers.
"""


class Countries(NamedTuple):
    """The scores of all rows for all countries, which come in the order of the benchmarks' groups.

    Attributes:
        beside: Keys of headline units that are in no score, each with the reason in words.
        parts: Names of parts of countries, each with the code of the country that it counts for.
    """

    scores: tuple[CountryScore, ...]
    beside: Mapping[str, str]
    parts: Mapping[str, str]


def country_scores(numbers: Numbers, rankable: Callable[[Number], bool]) -> Countries:
    """Works out the score of each row for each country, over all headline units whose groups are places.

    A unit counts where its number may be compared (``rankable``) and is a mean of items on a scale with two ends. Each
    row is scored over its units. A part of a country counts for the country.
    """
    headline = [unit for unit in numbers.units.values() if unit.headline and unit.benchmark is not None]
    beside = {unit.key: reason for unit in headline if (reason := _obstacle(unit))}
    units = [unit for unit in headline if unit.key not in beside]
    if not units:
        return Countries((), {}, {})
    codes = list(dict.fromkeys(code for unit in units for code in _countries(unit).values()))
    scores = [
        score
        for row in dict.fromkeys(row for unit in units for row in unit.runs)
        for score in _row_scores(row, [u for u in units if row in u.cells and rankable(u.cells[row])], codes)
    ]
    counted = {key for score in scores for key in score.over}
    none = "no model has comparable scores of questions about one country"
    parts = {
        place(code).name: place(code).country
        for unit in units
        for group in numbers.groups(unit.key, _field(unit))
        if "-" in (code := unit.reported.field_named(_field(unit)).codes.get(group, ""))
    }
    beside |= {unit.key: none for unit in units if unit.key not in counted}
    return Countries(tuple(mark_differences(scores)), beside, parts)


def _obstacle(unit: Unit) -> str:
    """Returns why a unit can't count; empty where it can."""
    if not _field(unit):
        return "it doesn't group its questions by country"
    if unit.scale.ends is None or unit.scale.better is None:
        return "its metric has no worst and best value"
    if unit.benchmark in cultures():
        return OWN_CULTURE
    selection = next((unit.select(row) for row, runs in unit.runs.items() if runs), None)
    if selection is None:
        return "there are no samples of it"
    return "" if selection.compute is None else "its score is no mean over questions"


def _field(unit: Unit) -> str:
    """Returns the field whose groups are places; empty where there is none."""
    return next((name for name, groups in unit.reported.groups.items() if groups.places), "")


def _countries(unit: Unit) -> dict[str, str]:
    """Returns the country of each group of a unit; the code of the place where it is in none."""
    return {name: place(code).country or code for name, code in unit.reported.field_named(_field(unit)).codes.items()}


def _row_scores(row: str, units: Sequence[Unit], codes: Sequence[str]) -> Iterator[CountryScore]:
    """Yields a row's scores: for each country, the pooled mean of the items that are about it alone."""
    items = [(unit, unit_items) for unit in units if (unit_items := _items(unit, row, codes))[0].size]
    if not items:
        return
    scores, places, clusters = (np.concatenate(columns) for columns in zip(*(own for _, own in items), strict=True))
    benchmarks = [unit.benchmark for unit, _ in items]
    firsts = [benchmarks.index(benchmark) for benchmark in benchmarks]
    owners = np.repeat(np.arange(len(items)), [own[0].size for _, own in items])
    clusters += np.array(firsts, dtype=np.int64)[owners] << 32  # tasks of a benchmark share clusters
    questions = np.unique(np.stack([places, clusters]), axis=1)  # one in several tasks or languages is one
    counts = np.bincount(questions[0], minlength=len(codes)).tolist()
    flags: set[Flag] = {flag for unit, _ in items for flag in unit.cells[row].flags}
    means = {unit.key: _means(unit, row, codes, own[0], own[1]) for unit, own in items}
    pooled_scores = pooled(ScoredItems(scores, places, owners, numbered(clusters)[1], firsts), len(codes))
    for code, score, n in zip(codes, pooled_scores, counts, strict=True):
        if score is not None:
            cell = Number(score.value, COMMON, low=score.low, high=score.high, n=n, flags=ordered(flags))
            own_means = {key: cells[code] for key, cells in means.items() if code in cells}
            yield CountryScore(row, code, cell, raw=score.raw, means=own_means, over=tuple(means))


def _items(unit: Unit, row: str, codes: Sequence[str]) -> tuple[Floats, Integers, Integers]:
    """Returns the scores of a row's items that are about one country, with the numbers of their country and cluster."""
    countries, results = _countries(unit), unit.results
    number_of = {group: codes.index(code) for group, code in countries.items()}
    parts = [(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))]
    for run in unit.runs[row]:
        selection = select(results, [run], [run.task])
        groups = groups_of_items(results.samples, run, _field(unit))
        if groups is not None:
            places = np.array([number_of.get(name, -1) for name in (*groups.names, "")])[groups.codes[selection.items]]
            counted = ~np.isnan(selection.scores) & (places >= 0)
            scores = mapped(selection.scores[counted], unit.scale)
            parts.append((scores, places[counted], selection.clusters[counted].astype(np.int64)))
    scores, places, clusters = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return scores, places, clusters


def _means(unit: Unit, row: str, codes: Sequence[str], scores: Floats, places: Integers) -> dict[str, Number]:
    """Returns the mean of a unit for each country that it asks about; a mean of a single group opens its samples."""
    counts, sums = np.bincount(places, minlength=len(codes)), np.bincount(places, scores, minlength=len(codes))
    runs, groups = tuple(run.key for run in unit.runs[row]), _countries(unit)
    means: dict[str, Number] = {}
    for index in np.flatnonzero(counts).tolist():
        names, n = [name for name, code in groups.items() if code == codes[index]], int(counts[index])
        mean = Number(float(sums[index]) / n, COMMON, n=n)
        opens = replace(mean, runs=runs, where=((_field(unit), names[0]),))
        means[codes[index]] = opens if len(names) == 1 else mean
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
        first, level = max(rivals, key=lambda score: score.cell.value or 0.0), ALPHA / max(1, math.comb(len(rivals), 2))
        worse = {
            score.entrant
            for score in rivals
            if score is not first and p_of_interval(*weighted(_estimates([first, score]), (1.0, -1.0))) <= level
        }
        best.update((score.entrant, code) for score in rivals if worse and score.entrant not in worse)
    return best


def usual_units(scores: Sequence[CountryScore]) -> tuple[str, ...]:
    """Returns the units that most models have been scored over; in a tie, the first ones."""
    entrants = Counter({score.entrant: score.over for score in scores}.values())
    return max(entrants, key=entrants.__getitem__, default=())


def _beside_others(scores: Sequence[CountryScore]) -> dict[tuple[str, str], Literal["above", "below"]]:
    """Returns the countries for which a model is significantly better or worse than for its other countries."""
    differences: dict[tuple[str, str], tuple[float, float, float]] = {}
    for entrant, model_scores in groupby(scores, key=lambda score: score.entrant):
        countries = list(model_scores)
        estimates, others = _estimates(countries), len(countries) - 1
        for index, score in enumerate(countries if others else ()):
            weights = [1.0 if at == index else -1.0 / others for at in range(len(countries))]
            differences[entrant, score.place] = weighted(estimates, weights)
    adjusted = holm([p_of_interval(*difference) for difference in differences.values()])
    return {
        key: "above" if difference > 0.0 else "below"
        for (key, (difference, _, _)), p in zip(differences.items(), adjusted, strict=True)
        if p <= ALPHA
    }


def _estimates(scores: Sequence[CountryScore]) -> list[tuple[float | None, float | None, float | None]]:
    return [(score.cell.value, score.cell.low, score.cell.high) for score in scores]
