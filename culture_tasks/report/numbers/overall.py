"""Means over columns: which columns entrants share, their mean there, and which means the tests tell apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import optimize

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import benchmarks, cultures
from culture_tasks.benchmarks.reporting import Codes, Floats
from culture_tasks.metrics.comparison import Difference
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.rankings import mean_rank
from culture_tasks.report.model import Cell, Comparison, Entrant, ModelMeans, Unit
from culture_tasks.report.numbers.comparisons import Pair, adjusted, ranked
from culture_tasks.report.numbers.corrections import Corrections, PairCorrection
from culture_tasks.report.numbers.observations import Observations, from_interval, in_order, weighted
from culture_tasks.report.numbers.scores import Measured

_Numbers = TypeVar("_Numbers", float, Floats)

COMMON = Scale("points of 100", 0.0, 100.0)
"""The scale of the means: each metric's own range mapped to 0-100, 100 being the better end."""

_RANK = Scale("rank", 1.0, None, better=None)

_MEANS = 3
"""Means of one report: one for each set of models that ran the same."""


def to_common(cell: Cell) -> Cell | None:
    """Maps a number from its own range to 0-100, or returns None where the range has no ends or there is no number."""
    scale = cell.scale
    if cell.value is None or scale.ends is None:
        return None
    value, low, high = (None if end is None else mapped(end, scale) for end in (cell.value, cell.low, cell.high))
    first, last = (high, low) if scale.better == "lower" else (low, high)
    return replace(cell, value=value, scale=COMMON, low=first, high=last)


def mapped(scores: _Numbers, scale: Scale) -> _Numbers:
    """Maps the range of a scale, which has both ends, to 0-100."""
    low, high = scale.ends or (0.0, 1.0)
    places = 100.0 * (scores - low) / (high - low)
    return 100.0 - places if scale.better == "lower" else places


def weights(units: Sequence[Unit]) -> list[float]:
    """Returns what each column counts: every benchmark the same, and its columns the same among themselves."""
    benchmarks = [unit.benchmark or unit.key for unit in units]
    columns = Counter(benchmarks)
    return [1.0 / columns[benchmark] for benchmark in benchmarks]


OWN_CULTURE = "a culture whose data aren't published with the benchmark"


def marks(units: Iterable[Unit]) -> Iterator[str]:
    """Yields what benchmarks say that a reader of each of their scores has to know."""
    for name in dict.fromkeys(unit.benchmark or "" for unit in units):
        if known := benchmarks().get(name):
            yield from (f"{known.title}: {mark}" for mark in known.marks)


def shared_sources(units: Iterable[Unit]) -> str:
    """Names the sources that benchmarks of a joint number share, and the command that looks into it; may be empty."""
    first = {unit.benchmark: unit.key for unit in reversed([*units])}
    known = {benchmark.title: benchmark for name, benchmark in benchmarks().items() if name in first}
    sources = dict.fromkeys(source for each in known.values() for source in each.made_from)
    shared: dict[tuple[str, ...], list[str]] = {}
    for source in sources:
        drawing = tuple(title for title, each in known.items() if source in each.made_from)
        if len({source, *drawing} & known.keys()) > 1:
            shared.setdefault(drawing, []).append(source)
    if not shared:
        return ""
    listed = "; ".join(
        f"{' and '.join(titles)} draw{'s' if len(titles) == 1 else ''} on {' and '.join(own)}"
        for titles, own in shared.items()
    )
    named = {name for pair in shared.items() for names in pair for name in names}
    concerned = [first[each.name] for title, each in known.items() if title in named]
    return (
        f"{listed}: their scores aren't independent. culture-tasks data overlap {' '.join(concerned)} lists questions "
        "that are the same or nearly so."
    )


def mean_cell(cells: Sequence[Cell], weights: Sequence[float]) -> Cell:
    """Returns the weighted mean of cells on the common scale.

    Its interval adds up those of the columns as independent ones; without the interval of one it has none. What a
    reader must know of a column, a reader must know of the mean.
    """
    return from_interval(
        Interval(
            *weighted([(cell.value, cell.low, cell.high) for cell in cells], np.array(weights) / sum(weights)),
            n=sum(cell.n for cell in cells),
        ),
        COMMON,
        {flag for cell in cells for flag in cell.flags},
        tuple(run for cell in cells for run in cell.runs),
    )


class Block(NamedTuple):
    """Columns, and the entrants that have all of them."""

    columns: tuple[str, ...]
    entrants: tuple[str, ...]


def blocks(columns: Mapping[str, Collection[str]]) -> list[Block]:
    """Returns the sets of columns to take means over, by what entrants have.

    The columns are chosen so that as many pairs of entrants as possible are compared on as many columns as possible:
    pairs times columns is greatest. An entrant that has few columns thus takes none from the others, and columns that
    few have don't split the rest. What is left over may share other columns; its mean then is another one, which all
    have that have these columns. A mean is over two columns at least. All columns are those with a comparable number.
    """
    order = list(dict.fromkeys(column for own in columns.values() for column in own))
    sets = {entrant: frozenset(own) for entrant, own in columns.items()}
    if sum(bool(own) for own in sets.values()) == 1:
        return [Block(tuple(own), (entrant,)) for entrant, own in columns.items() if len(own) > 1]
    chosen: list[Block] = []
    left = list(sets)

    def compared(shared: frozenset[str]) -> tuple[int, int]:
        """Returns how many pairs of numbers a set of columns compares, and how many entrants have it."""
        having = sum(shared <= sets[entrant] for entrant in left)
        return len(shared) * math.comb(having, 2), having

    while left and len(chosen) < _MEANS:
        best = max(_shared([sets[entrant] for entrant in left]), key=compared, default=None)
        if best is None or not compared(best)[0]:
            break
        having = tuple(entrant for entrant in sets if best <= sets[entrant])
        chosen.append(Block(tuple(column for column in order if column in best), having))
        left = [entrant for entrant in left if not best <= sets[entrant]]
    return sorted(chosen, key=lambda block: -len(block.entrants))


_SETS = 2000
"""Sets of shared columns from which on no others are looked for: with many models, there are too many."""


def _shared(sets: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """Returns the sets of two columns or more that some of the entrants share: all intersections of their sets."""
    own = [columns for columns in dict.fromkeys(sets) if len(columns) > 1]
    found = dict.fromkeys(own)
    new = own
    while new and len(found) < _SETS:
        met = dict.fromkeys(one & other for one in new for other in own if len(one & other) > 1)
        new = [columns for columns in met if columns not in found]
        found.update(dict.fromkeys(new))
    return list(found)


def means(
    measured: Mapping[str, Measured],
    entrants: Mapping[str, Entrant],
    tests: Sequence[Comparison],
    corrections: Corrections,
    *,
    rankable: Callable[[Cell], bool],
    other_tasks: bool = False,
) -> tuple[ModelMeans, ...]:
    """Works out the means over the headline columns that entrants share.

    Tests are those between entrants, of all units; ``other_tasks`` lets tasks of the harnesses into a mean.
    """
    headline = [each.unit for each in measured.values() if each.unit.headline]
    why_beside = {unit.key: why for unit in headline if (why := _why_beside(unit, other_tasks=other_tasks))}
    usable = [unit for unit in headline if unit.key not in why_beside]
    has = {
        key: [unit.key for unit in usable if (cell := unit.cells.get(key)) is not None and rankable(cell)]
        for key in entrants
    }
    labels = {key: entrant.label for key, entrant in entrants.items()}
    chosen = blocks(has)
    averages: list[ModelMeans] = []
    for number, (letter, block) in enumerate(zip("ABC", chosen, strict=False)):
        key, title = "mean" if number == 0 else f"mean_{number + 1}", f" {letter}" if len(chosen) > 1 else ""
        columns = [measured[column] for column in block.columns]
        units = [each.unit for each in columns]
        common = {
            one: [cell for unit in units if (cell := to_common(unit.cells[one])) is not None] for one in block.entrants
        }
        compared = adjusted(_pairs(key, columns, block.entrants, corrections), labels)
        lacking = {
            one: f"lacks {'; '.join(unit.title for unit in units if unit.key not in own)}"
            for one, own in has.items()
            if one not in common
        }
        of_common = {one: mean_cell(own, weights(units)) for one, own in common.items()}
        cells, standing = ranked(of_common, COMMON, tests=compared, left_out=lacking)
        every = len({entrants[one].model for one in common})
        beside: dict[str, str] = {}
        for column in dict.fromkeys(column for own in has.values() for column in own if column not in block.columns):
            models = {entrants[one].model for one in common if column not in has[one]}
            beside[column] = f"missing or not comparable for {len(models)} of the {every} models"
        mean = ModelMeans(
            key=key,
            title=f"Mean{title} of {len(columns)}",
            columns=block.columns,
            beside=beside | why_beside,
            cells=cells,
            mean_ranks=_mean_ranks(units, common, tests) if len(common) > 1 else {},
            standing=standing,
            comparisons=tuple(compared),
        )
        averages.append(mean)
    return tuple(averages)


def _why_beside(unit: Unit, *, other_tasks: bool) -> str:
    if unit.scale.ends is None:
        return "the range of its metric isn't known"
    if unit.scale.better is None:
        return "neither end of its metric is better"
    if unit.further:
        return "a further metric of a task"
    if unit.benchmark in cultures():
        return OWN_CULTURE
    return "a task of the harness" if unit.benchmark is None and not other_tasks else ""


def _pairs(key: str, columns: Sequence[Measured], entrants: Sequence[str], corrections: Corrections) -> list[Pair]:
    """Returns the pairs of entrants to be tested on the mean over columns; none where some have no samples."""
    if not all(each.runs[one] for each in columns for one in entrants):
        return []
    stacked = {one: in_order(_stacked(columns, [each.observe(one) for each in columns])) for one in entrants}
    return [
        Pair(
            unit=key,
            first=one,
            second=two,
            one=stacked[one],
            two=stacked[two],
            scale=COMMON,
            correction=_correction(columns, one, two, corrections),
        )
        for one, two in combinations(entrants, 2)
    ]


def _correction(
    columns: Sequence[Measured], first: str, second: str, corrections: Corrections
) -> PairCorrection | None:
    """Returns the corrected difference of two means; None where no column's difference is corrected.

    As in the mean's own interval, columns count as independent ones.
    """
    units, parts, rated = [each.unit for each in columns], [], 0
    by: dict[str, None] = {}
    shares = np.array(weights(units)) / sum(weights(units))
    for each, share in zip(columns, shares.tolist(), strict=True):
        one, two = (in_order(each.observe(key)) for key in (first, second))
        correction = corrections.of(each, first, second)
        if correction is not None and not correction.missing:
            rated, by = rated + correction.rated, {**by, correction.by: None}
        pair = Pair(each.unit.key, first, second, one, two, each.unit.scale, correction=correction)
        parts.append((share * (mapped(1.0, each.unit.scale) - mapped(0.0, each.unit.scale)), pair))
    if not rated:
        return None
    judged = [(pair.judged.one, pair.judged.two) for _, pair in parts]
    ones, twos = (in_order(_stacked(columns, own)) for own in zip(*judged, strict=True))
    return PairCorrection(partial(_difference_of_means, parts), rated, "", " and ".join(by), (ones, twos))


def _difference_of_means(parts: Sequence[tuple[float, Pair]], confidence: float) -> Difference:
    """Returns the weighted sum of the columns' differences; p is the level at which its interval ends at 0."""

    def ends(alpha: float) -> tuple[float, float, float]:
        numbers = np.array([pair.test(level=alpha, many=0)[:3] for _, pair in parts])
        certain = np.where(np.isnan(numbers), numbers[:, :1], numbers)
        return weighted(certain.tolist(), [factor for factor, _ in parts])

    def above_0(logarithm: float) -> float:
        value, low, high = ends(math.exp(logarithm))
        return low if value > 0.0 else -high

    value, low, high = ends(1.0 - confidence)
    if math.isnan(value):
        return Difference(method="corrected columns", reason="a column has no item that both have a score for")
    least, most = math.log(1e-12), math.log1p(-1e-9)
    if above_0(most) <= 0.0:
        p = 1.0
    else:
        p = 1e-12 if above_0(least) > 0.0 else math.exp(float(optimize.brentq(above_0, least, most, xtol=1e-6)))
    return Difference(value, low, high, p, method="corrected columns")


def _mean_ranks(
    units: Sequence[Unit], common: Mapping[str, Sequence[Cell]], tests: Sequence[Comparison]
) -> dict[str, Cell]:
    """Returns the mean of each one's ranks, with that of the best and of the worst places that the tests leave open."""
    table = np.array([[cell.value for cell in own] for own in common.values()], dtype=np.float64)
    columns: list[Mapping[str, Cell]] = []
    for unit in units:
        own = {key: unit.cells[key] for key in common}
        columns.append(ranked(own, unit.scale, tests=[test for test in tests if test.unit == unit.key], left_out={})[0])
    ranks: dict[str, Cell] = {}
    for key, each in zip(common, mean_rank(table), strict=True):
        places = [place for column in columns if (place := column[key].rank) is not None]
        cell = Cell(each.rank, _RANK, n=len(columns))
        if len(places) == len(columns):
            first, last = (float(np.mean([getattr(place, end) for place in places])) for end in ("first", "last"))
            cell = replace(cell, low=first, high=last)
        ranks[key] = cell
    return ranks


def _stacked(columns: Sequence[Measured], parts: Sequence[Observations]) -> Observations:
    """Returns what an entrant has of several columns as what its mean has; clusters are those of the benchmarks."""
    benchmarks = [each.unit.benchmark or each.unit.key for each in columns]
    strata: list[Codes] = []
    shares: list[float] = []
    owners: list[tuple[Observations, Scale, int]] = []
    for each, own, weight in zip(columns, parts, weights([each.unit for each in columns]), strict=True):
        codes = np.zeros(own.items.size, dtype=np.int32) if own.strata is None else own.strata
        many = 1 if own.strata is None else len(each.tasks)
        strata.append(codes + np.int32(len(shares)))
        inside = np.full(many, 1.0 / many) if own.shares is None else own.shares / own.shares.sum()
        shares += [weight * float(share) for share in inside]
        owners += [(own, each.unit.scale, part) for part in range(many)]

    def compute(part: int, values: Sequence[Any]) -> float:
        own, scale, number = owners[part]
        return mapped(float(np.mean(values)) if own.compute is None else own.compute(number, values), scale)

    values = [own.scores.astype(np.object_) if own.values is None else own.values for own in parts]
    is_mean = all(own.compute is None for own in parts)
    places = [np.int64(benchmarks.index(benchmark)) for benchmark in benchmarks]
    return Observations(
        runs=tuple(run for own in parts for run in own.runs),
        items=np.concatenate([own.items + (np.int64(at) << 48) for at, own in enumerate(parts)]),
        scores=np.concatenate([mapped(own.scores, each.unit.scale) for own, each in zip(parts, columns, strict=True)]),
        clusters=np.concatenate([own.clusters + (place << 32) for own, place in zip(parts, places, strict=True)]),
        strata=np.concatenate(strata),
        coverage=None,
        shares=np.array(shares),
        values=None if is_mean else np.concatenate(values),
        compute=None if is_mean else compute,
    )
