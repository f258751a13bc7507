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
from culture_tasks.benchmarks.reporting import Floats, Groups
from culture_tasks.metrics.means import numbered
from culture_tasks.metrics.partial_pooling import ScoredItems, pooled
from culture_tasks.metrics.significance import holm, p_of_intervals
from culture_tasks.report.model import CountryScore, Flag, Number
from culture_tasks.report.numbers.comparisons import ALPHA
from culture_tasks.report.numbers.numbers import Numbers, Unit, ordered
from culture_tasks.report.numbers.overall import COMMON, OWN_CULTURE, mapped
from culture_tasks.report.numbers.selection import groups_of_items, select
from culture_tasks.vocabulary import place

FEW = 20
"""A country with fewer questions has its score marked: without pooling, the interval of 20 right or wrong answers
reaches up to 20 points to either side, so the model's other countries say more about the score than these answers.
"""


class Countries(NamedTuple):
    """The scores of all models for all countries.

    Attributes:
        scores: The scores, model by model; countries come in the order of the benchmarks' groups.
        beside: Keys of headline units that are in no score, each with the reason in words.
        parts: Names of parts of countries, each with the code of the country that it counts for.
    """

    scores: tuple[CountryScore, ...]
    beside: Mapping[str, str]
    parts: Mapping[str, str]


class _UnitByCountry(NamedTuple):
    """A unit, the field of its places, and the country of each group of it."""

    key: str
    measured: Unit
    field: str
    countries: Mapping[str, str]


class _Items(NamedTuple):
    """Scored items of a model: scores on the common scale, with the number of each item's country and cluster."""

    scores: Floats
    countries: NDArray[np.intp]
    clusters: NDArray[np.intp]


def country_scores(scores: Numbers, rankable: Callable[[Number], bool]) -> Countries:
    """Works out the score of each entrant for each country, over all headline units whose groups are places.

    A unit counts where its number may be compared (``rankable``) and is a mean of items on a scale with two ends. Each
    entrant is scored over its units. A part of a country counts for the country.
    """
    headline = {key: measured for key, measured in scores.units.items() if measured.headline and measured.benchmark}
    beside = {key: reason for key, measured in headline.items() if (reason := _obstacle(measured))}
    units = [
        _UnitByCountry(key, measured, field, _countries(measured.reported.field_named(field)))
        for key, measured in headline.items()
        if key not in beside and (field := _field_of_places(measured))
    ]
    if not units:
        return Countries((), {}, {})
    codes = dict.fromkeys(code for unit in units for code in unit.countries.values())
    numbers = {code: number for number, code in enumerate(codes)}
    scores_by_country: list[CountryScore] = []
    for entrant in dict.fromkeys(key for unit in units for key in unit.measured.runs):
        entrant_items = [
            (unit, items)
            for unit in units
            if (cell := unit.measured.cells.get(entrant)) is not None
            and rankable(cell)
            and (items := _items(unit, entrant, numbers)) is not None
        ]
        scores_by_country += _entrant_scores(entrant, entrant_items, numbers)
    counted_units = {key for score in scores_by_country for key in score.over}
    beside |= {
        unit.key: "no model has comparable scores of questions about one country"
        for unit in units
        if unit.key not in counted_units
    }
    parts = {
        place(code).name: place(code).country
        for unit in units
        for entrant in unit.measured.runs
        for group in unit.measured.groups(entrant, unit.field)
        if "-" in (code := unit.measured.reported.field_named(unit.field).codes.get(group, ""))
    }
    return Countries(tuple(mark_differences(scores_by_country)), beside, parts)


def _obstacle(measured: Unit) -> str:
    """Returns why a unit can't count; empty where it can."""
    scale = measured.scale
    if _field_of_places(measured) is None:
        return "it doesn't group its questions by country"
    if scale.ends is None or scale.better is None:
        return "its metric has no worst and best value"
    if measured.benchmark in cultures():
        return OWN_CULTURE
    observed = next((measured.select(key) for key, runs in measured.runs.items() if runs), None)
    if observed is None:
        return "there are no samples of it"
    return "" if observed.compute is None else "its score is no mean over questions"


def _field_of_places(measured: Unit) -> str | None:
    return next((name for name, groups in measured.reported.groups.items() if groups.places), None)


def _countries(groups: Groups) -> dict[str, str]:
    """Returns the country of each group; the code of the place where it is in none."""
    return {name: place(code).country or code for name, code in groups.codes.items()}


def _items(unit: _UnitByCountry, entrant: str, numbers: Mapping[str, int]) -> _Items | None:
    """Returns the scored items of an entrant that are about one country; None without any."""
    results, parts = unit.measured.results, list[_Items]()
    for run in unit.measured.runs[entrant]:
        observed, groups = select(results, [run], [run.task]), groups_of_items(results.samples, run, unit.field)
        if groups is None:
            continue
        countries = np.array([numbers.get(unit.countries.get(name, ""), -1) for name in (*groups.names, "")])
        codes = countries[groups.codes[observed.items]]
        is_counted = ~np.isnan(observed.scores) & (codes >= 0)
        scores = mapped(observed.scores[is_counted], unit.measured.scale)
        if scores.size:
            parts.append(_Items(scores, codes[is_counted], observed.clusters[is_counted].astype(np.int64)))
    return _joined(parts) if parts else None


def _joined(parts: Sequence[_Items]) -> _Items:
    return _Items(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _entrant_scores(
    entrant: str, entrant_items: Sequence[tuple[_UnitByCountry, _Items]], numbers: Mapping[str, int]
) -> Iterator[CountryScore]:
    if not entrant_items:
        return
    benchmarks = [unit.measured.benchmark or unit.key for unit, _ in entrant_items]
    firsts = [benchmarks.index(benchmark) for benchmark in benchmarks]
    flags: set[Flag] = {flag for unit, _ in entrant_items for flag in unit.measured.cells[entrant].flags}
    units = np.repeat(np.arange(len(entrant_items)), [items.scores.size for _, items in entrant_items])
    joined = _joined([items for _, items in entrant_items])
    clusters = joined.clusters + (np.array(firsts, dtype=np.int64)[units] << 32)
    questions = np.unique(np.stack([joined.countries, clusters]), axis=1)  # one in several tasks or languages is one
    counts = np.bincount(questions[0], minlength=len(numbers)).tolist()
    items = ScoredItems(joined.scores, joined.countries, units, numbered(clusters)[1], firsts)
    means = {unit.key: _means(unit, items, entrant, numbers) for unit, items in entrant_items}
    for code, score, n in zip(numbers, pooled(items, len(numbers)), counts, strict=True):
        if score is not None:
            cell = Number(score.value, COMMON, low=score.low, high=score.high, n=n, flags=ordered(flags))
            own_means = {key: cells[code] for key, cells in means.items() if code in cells}
            yield CountryScore(entrant, code, cell, raw=score.raw, means=own_means, over=tuple(means))


def _means(unit: _UnitByCountry, items: _Items, entrant: str, numbers: Mapping[str, int]) -> dict[str, Number]:
    """Returns the mean of a unit for each country that it asks about; a mean of a single group opens its samples."""
    counts = np.bincount(items.countries, minlength=len(numbers)).tolist()
    sums = np.bincount(items.countries, items.scores, minlength=len(numbers)).tolist()
    runs, groups = tuple(run.key for run in unit.measured.runs[entrant]), Counter(unit.countries.values())
    samples = {code: (runs, ((unit.field, group),)) for group, code in unit.countries.items() if groups[code] == 1}
    means: dict[str, Number] = {}
    for code, total, n in zip(numbers, sums, counts, strict=True):
        if n:
            own_runs, where = samples.get(code, ((), ()))
            means[code] = Number(total / n, COMMON, n=n, runs=own_runs, where=where)
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
