"""What the numbers say in three to six sentences: who is best, where it is worst, biases, changes, and what is missing.

Each sentence is made by a rule from numbers and tests that are in the report. None claims more than its test does: what
isn't significant after adjustment is said to be open, or isn't said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Floats, Question
from culture_tasks.metrics.significance import below_the_others, holm
from culture_tasks.report.comparisons import ALPHA, scale_of_differences
from culture_tasks.report.gains import OVER_ALL
from culture_tasks.report.model import (
    Cell,
    CheckedScore,
    Contrast,
    Entrant,
    Finding,
    Gain,
    GroupValue,
    Mean,
    Part,
    Standing,
    Unit,
)
from culture_tasks.report.observations import SCORE
from culture_tasks.report.scores import Measured, Scores, report_of
from culture_tasks.report.text.wording import amount, counted, interval, number

_MOST_NAMED = 3
"""Most models or columns that a sentence names; others are counted."""

_FEWEST = 10
"""Fewest items, or clusters of items, of a culture that a finding may name: fewer are no sample of it."""

_Z = 1.959963984540054


def findings(
    units: Mapping[str, Unit],
    means: Sequence[Mean],
    scores: Scores,
    contrasts: Sequence[Contrast],
    gains: Sequence[Gain],
    entrants: Mapping[str, Entrant],
    checked: Sequence[CheckedScore] = (),
) -> tuple[Finding, ...]:
    """Returns the findings, at most one of each kind, in the order of the questions.

    Args:
        units: The units, by key.
        means: Means over columns.
        scores: Every number of our benchmarks.
        contrasts: Numbers of one model that a paper sets side by side.
        gains: What training changed.
        entrants: The user's entrants, by key.
        checked: Scores that people have checked.
    """
    writer = _Writer(entrants, units)
    headline = [unit for unit in units.values() if unit.headline and unit.cells]
    made = (
        _best_on_average(writer, headline, means),
        _best_of_each(writer, headline, certain=True),
        _best_of_each(writer, headline, certain=False),
        _worst_culture(writer, scores, headline, means),
        _strongest_bias(writer, scores.groups),
        _greatest_change(writer, contrasts),
        _after_training(writer, gains),
        _checked_by_people(writer, checked),
        _left_out(headline),
    )
    found = [each for each in made if each is not None]
    for least in (made[2], made[5]):  # what is certain says more than what is open, and what was trained than prompts
        if len(found) > _MOST:
            found = [each for each in found if each is not least]
    return tuple(found)


_MOST = 6
"""Most sentences, and most items of a list in one."""


@dataclass(frozen=True, slots=True)
class _Writer:
    """Puts names into sentences.

    Attributes:
        entrants: The entrants, by key.
        units: The units, by key.
    """

    entrants: Mapping[str, Entrant]
    units: Mapping[str, Unit]

    def model(self, key: str) -> Part:
        return Part(self.entrants[key].label, is_name=True)

    def unit(self, key: str) -> Part:
        return Part(self.units[key].title, is_name=True)

    def models(self, keys: Sequence[str]) -> list[Part]:
        return _listed([[self.model(key)] for key in keys], "model")

    def number_of_models(self, keys: Iterable[str]) -> int:
        """Returns how many models these entrants are: one may be there under several settings."""
        return len({self.entrants[key].model for key in keys})


def _finding(question: Question, *pieces: str | Part | Sequence[Part]) -> Finding:
    parts: list[Part] = []
    for piece in pieces:
        parts += [Part(piece)] if isinstance(piece, str) else [piece] if isinstance(piece, Part) else piece
    return Finding(question, tuple(parts))


def _listed(items: Sequence[Sequence[Part]], what: str, most: int = _MOST_NAMED) -> list[Part]:
    """Returns items as words: "a, b and c", or "a, b, c and 2 more models"."""
    shown = [list(each) for each in items[:most]]
    more = len(items) - len(shown)
    if more:
        shown.append([Part(counted(more, f"more {what}"))])
    parts: list[Part] = []
    for at, each in enumerate(shown):
        if at:
            parts.append(Part(" and " if at == len(shown) - 1 else ", "))
        parts += each
    return parts


def _value(cell: Cell) -> str:
    """Returns a number with its interval, such as ``7.10, 6.90 to 7.30``."""
    shown, ends = amount(cell.value, cell.scale), interval(cell, " to ")
    return f"{shown}, {ends}" if ends else shown


# Who is best?


def _best_on_average(writer: _Writer, headline: Sequence[Unit], means: Sequence[Mean]) -> Finding | None:
    mean = next((each for each in means if len(each.cells) > 1), None)
    if mean is None:
        return _without_mean(writer, headline, means)
    order = sorted(mean.cells, key=lambda key: mean.cells[key].value or 0.0, reverse=True)
    leader = order[0]
    start = [
        writer.model(leader),
        Part(f" has the highest mean ({_value(mean.cells[leader])}) over the {len(mean.columns)} columns that "),
        Part(f"{counted(writer.number_of_models(order), 'model')} share"),
    ]
    return _finding("best", start, _how_certain(writer, mean.standing, leader), ".")


def _how_certain(writer: _Writer, standing: Standing, leader: str) -> list[Part]:
    """Says whether the one with the best number is best beyond chance."""
    rivals = [key for key in standing.best if key != leader]
    if not standing.ranked:
        return [Part("; there are no samples to test that with")]
    if not rivals:
        return [Part(", and the tests tell it from all others")]
    if len(rivals) == len(standing.ranked) - 1:
        return [Part(", but the tests don't tell it from any other")]
    return [Part(", but the tests don't tell it from "), *writer.models(rivals)]


def _without_mean(writer: _Writer, headline: Sequence[Unit], means: Sequence[Mean]) -> Finding | None:
    """Says what there is where no two models share two columns: one model's scores, or that there is no mean."""
    models = list(dict.fromkeys(key for unit in headline for key in unit.cells))
    if len(models) == 1:
        [key] = models
        scored = [unit for unit in headline if unit.cells[key].value is not None]
        said = [[writer.unit(unit.key), Part(f" {_value(unit.cells[key])}")] for unit in scored]
        if not said:
            return None
        return _finding("best", writer.model(key), " was run alone: ", _spaced(said), ".")
    if len(headline) > 1 and not any(len(each.cells) > 1 for each in means):
        count = writer.number_of_models(models)
        return _finding("best", f"No mean ranks the {count} models: no two of them share two benchmarks.")
    return None


def _spaced(items: Sequence[Sequence[Part]]) -> list[Part]:
    """Returns items with semicolons between them, since they have commas inside."""
    shown = items[:_MOST]
    parts = [part for at, each in enumerate(shown) for part in ([Part("; ")] if at else []) + list(each)]
    return [*parts, Part(f"; and {len(items) - len(shown)} more")] if len(items) > len(shown) else parts


def _best_of_each(writer: _Writer, headline: Sequence[Unit], *, certain: bool) -> Finding | None:
    """Says who leads where the tests are sure of it, or where they aren't."""
    said: list[list[Part]] = []
    for unit in headline:
        standing = unit.standing
        if len(standing.ranked) < 2 or (len(standing.best) == 1) != certain:
            continue
        leader = standing.ranked[0]
        words = [writer.model(leader), Part(" on "), writer.unit(unit.key), Part(f" ({_value(unit.cells[leader])})")]
        rivals = [key for key in standing.best if key != leader]
        said.append(words if certain else [*words, Part(" is not told apart from "), *writer.models(rivals)])
    if not said:
        return None
    return _finding("best", "Significantly best: " if certain else "No clear winner: ", _spaced(said), ".")


# For which cultures is it worst?


@dataclass(frozen=True, slots=True)
class _Low:
    """The culture with the lowest score of a model on a unit.

    Attributes:
        value: Its number.
        below: How far it is below the model's score, as a share of the range of the scale.
        items: Number of its items, or of the clusters that they belong to.
        p: The p-value of the test against the model's other cultures, then adjusted.
    """

    value: GroupValue
    below: float
    items: int
    p: float


def _worst_culture(writer: _Writer, scores: Scores, headline: Sequence[Unit], means: Sequence[Mean]) -> Finding | None:
    measured = [scores.units[unit.key] for unit in headline if unit.key in scores.units]
    groups: dict[tuple[str, str], list[GroupValue]] = {}
    for value in scores.groups:
        culture = scores.units[value.unit].reported.culture
        if value.statistic == SCORE and len(value.cell.where) == 1 and value.dimension == culture:
            groups.setdefault((value.unit, value.entrant), []).append(value)
    found = [
        _tested_cultures(each, key, groups[each.unit.key, key])
        for each in measured
        for key in each.runs
        if (each.unit.key, key) in groups
    ]
    if not any(found):
        return None
    adjusted = iter(holm([low.p for lows in found for low in lows]))
    all_tested = [[replace(low, p=float(next(adjusted))) for low in lows] for lows in found]
    lowest = [max(lows, key=lambda low: low.below) for lows in all_tested if lows]
    sure = [low for low in lowest if low.p < ALPHA and low.items >= _FEWEST and low.below > 0]
    if not sure:
        return _finding("cultures", "No culture is significantly below the others for any model.")
    leader = next((each.standing.ranked[0] for each in means if each.standing.ranked), None)
    low = max([each for each in sure if each.value.entrant == leader] or sure, key=lambda each: each.below)
    unit = scores.units[low.value.unit].unit
    alike = [each.value for each in sure if (each.value.unit, each.value.group) == (unit.key, low.value.group)]
    same = writer.number_of_models(value.entrant for value in alike)
    models = writer.number_of_models(entrant for key, entrant in groups if key == unit.key)
    return _finding(
        "cultures",
        "The weakest culture of ",
        writer.model(low.value.entrant),
        " is ",
        Part(_group_name(unit, low.value.dimension, low.value.group), is_name=True),
        " on ",
        writer.unit(unit.key),
        f" ({_value(low.value.cell)}), {_distance(unit.cells[low.value.entrant], low.value.cell)} its mean there",
        f"; it is the weakest, significantly below the others together, for {same} of the {models} models that ran it"
        if models > 1
        else "",
        ".",
    )


def _group_name(unit: Unit, dimension: str, group: str) -> str:
    return report_of(unit.benchmark).field_named(dimension).name_of(group)


def _distance(whole: Cell, low: Cell) -> str:
    away = abs((whole.value or 0.0) - (low.value or 0.0))
    worse = "under" if whole.scale.better != "lower" else "over"
    return f"{amount(away, scale_of_differences(whole.scale))} {worse}"


def _tested_cultures(measured: Measured, entrant: str, values: Sequence[GroupValue]) -> list[_Low]:
    """Tests each culture of a model against the others; items of a culture that share a cluster count as one."""
    scale, whole = measured.unit.scale, measured.unit.cells[entrant].value
    own = [value for value in values if value.cell.value is not None]
    if len(own) < 2 or scale.better is None or whole is None or not own[0].cell.comparable:
        return []
    sign = -1.0 if scale.better == "lower" else 1.0
    parts = [sign * _by_cluster(measured, entrant, value) for value in own]
    return [
        _Low(value, below=sign * (whole - float(value.cell.value or 0.0)) / _width(scale), items=part.size, p=float(p))
        for value, part, p in zip(own, parts, below_the_others(parts), strict=True)
    ]


def _by_cluster(measured: Measured, entrant: str, value: GroupValue) -> Floats:
    """Returns the mean score of each cluster of a culture's items; nothing where the score is no mean."""
    observed = measured.observe(entrant, value.cell.where)
    known = ~np.isnan(observed.scores) & (observed.compute is None)
    _, codes = np.unique(observed.clusters[known], return_inverse=True)
    means: Floats = np.bincount(codes, weights=observed.scores[known]) / np.bincount(codes)
    return means


# What biases are there?


def _strongest_bias(writer: _Writer, groups: Sequence[GroupValue]) -> Finding | None:
    """Names the number that is furthest from neutral, of those that are certainly not neutral."""
    biased = [
        value
        for value in groups
        if value.statistic != SCORE
        and value.cell.scale.neutral is not None
        and value.cell.comparable
        and value.cell.n >= _FEWEST
    ]
    known = _certain([value.cell for value in biased], [value.cell.scale.neutral or 0.0 for value in biased])
    certain = [value for value, sure in zip(biased, known, strict=True) if sure]
    if not certain:
        return None
    strongest = max(certain, key=lambda value: _strength(value.cell))
    scale = strongest.cell.scale
    unit = writer.units[strongest.unit]
    held = [_group_name(unit, *pair) for pair in strongest.cell.where if pair[0] != strongest.dimension]
    group = _group_name(unit, strongest.dimension, strongest.group)
    return _finding(
        "biases",
        "The strongest bias: ",
        writer.model(strongest.entrant),
        f" has {strongest.statistic.upper().replace('_', '-')} {_value(strongest.cell)} for ",
        Part(f"{group} ({', '.join(held)})" if held else group, is_name=True),
        " on ",
        writer.unit(unit.key),
        f", where {number(scale.neutral, Scale(scale.unit, digits=0))} is neutral.",
    )


def _certain(cells: Sequence[Cell], neutral: Sequence[float]) -> list[bool]:
    """Returns which numbers differ from their neutral value, by their intervals, after Holm's adjustment over all."""
    p = [
        math.nan
        if cell.value is None or cell.low is None or cell.high is None or cell.high <= cell.low
        else float(2 * special.ndtr(-abs(cell.value - middle) / ((cell.high - cell.low) / (2 * _Z))))
        for cell, middle in zip(cells, neutral, strict=True)
    ]
    return [bool(each < ALPHA) for each in holm(p)]


def _strength(cell: Cell) -> float:
    """Returns how far a number is from neutral: ratios by their logarithm, others by their share of the range."""
    value, neutral = cell.value or 0.0, cell.scale.neutral or 0.0
    if neutral > 0:
        return abs(math.log(max(value, 1e-3) / neutral))
    return abs(value - neutral) / 100.0


# What makes a difference?


def _greatest_change(writer: _Writer, contrasts: Sequence[Contrast]) -> Finding | None:
    """Names the greatest difference between two numbers that a paper sets side by side, of those that are certain."""
    scored = [each for each in contrasts if each.statistic == SCORE and each.difference.n >= _FEWEST]
    sure = _certain([each.difference for each in scored], [0.0] * len(scored))
    certain = [each for each, is_sure in zip(scored, sure, strict=True) if is_sure]
    if not certain:
        return None
    greatest = max(certain, key=lambda each: abs(each.difference.value or 0.0) / _width(each.second.scale))
    unit = writer.units[greatest.unit]
    kinds = {each.kind: each for each in report_of(unit.benchmark).contrasts}
    first, second = kinds[greatest.kind].words
    change = greatest.difference
    more = "higher" if (change.value or 0.0) > 0 else "lower"
    size = amount(abs(change.value or 0.0), change.scale)
    ends = sorted(abs(end) for end in (change.low, change.high) if end is not None)
    shown = " to ".join(number(end, change.scale) for end in ends)
    return _finding(
        "changes",
        "The greatest difference: ",
        writer.model(greatest.entrant),
        " is ",
        f"{size} {more} ({shown}) {second} than {first} on ",
        writer.unit(unit.key),
        " for ",
        Part(_group_name(unit, greatest.dimension, greatest.group), is_name=True),
        ".",
    )


def _checked_by_people(writer: _Writer, checked: Sequence[CheckedScore]) -> Finding | None:
    """Says whether people's ratings contradict the judge's scores, on the very questions that were asked."""
    known = [each for each in checked if each.judge.value is not None and each.people.low is not None]
    if not known:
        return None
    # The intervals are made wider for the number of scores (Bonferroni).
    wider = float(special.ndtri(1.0 - ALPHA / 2.0 / len(known))) / _Z
    worst = max(known, key=lambda each: each.times_its_interval)
    if worst.times_its_interval <= wider:
        those = "the judge's score" if len(known) == 1 else f"any of the judge's {len(known)} scores"
        return _finding("judges", f"People's ratings of a random part of the responses don't contradict {those}.")
    return _finding(
        "judges",
        "People contradict the judge: by their ratings, ",
        writer.model(worst.entrant),
        f" is at {number(worst.people.value, worst.people.scale)} ({interval(worst.people, ' to ')}) on ",
        writer.unit(worst.unit),
        f", and not at {number(worst.judge.value, worst.judge.scale)}.",
    )


def _after_training(writer: _Writer, gains: Sequence[Gain]) -> Finding | None:
    """Says of each trained model on which benchmarks the tests find it better or worse than its base."""
    models: dict[tuple[str, str], list[Gain]] = {}
    for gain in gains:
        if gain.table == OVER_ALL and gain.test is not None and gain.trained.cell.scale.better is not None:
            models.setdefault((gain.trained.label, gain.base.label), []).append(gain)
    said = [_beside_its_base(writer, *names, own) for names, own in models.items()]
    return _finding("changes", _spaced(said), ".") if said else None


def _beside_its_base(writer: _Writer, trained: str, base: str, gains: Sequence[Gain]) -> list[Part]:
    apart = [(gain, gain.test.better) for gain in gains if gain.test is not None and gain.test.better]
    better = [gain for gain, key in apart if key in gain.trained.entrants]
    worse = [gain for gain, key in apart if key in gain.base.entrants]
    open_ones = len(gains) - len(apart)
    pieces: list[list[Part]] = []
    for word, own in (("better", better), ("worse", worse)):
        if own:
            units = _listed(
                [[writer.unit(gain.unit), Part(f" ({_signed(gain.difference)})")] for gain in own], "benchmark"
            )
            pieces.append([Part(f"significantly {word} on "), *units])
    if open_ones:
        pieces.append([Part(f"not told apart from it on {counted(open_ones, 'benchmark')}")])
    return [
        Part(trained, is_name=True),
        Part(", trained from "),
        Part(base, is_name=True),
        Part(", is "),
        *_listed(pieces, ""),
    ]


def _signed(cell: Cell) -> str:
    """Returns a difference with its sign and its interval."""
    shown, ends = amount(cell.value, cell.scale, signed=True), interval(cell, " to ", signed=True)
    return f"{shown}, {ends}" if ends else shown


def _width(scale: Scale) -> float:
    return 1.0 if scale.low is None or scale.high is None else scale.high - scale.low


# What takes no part?


def _left_out(headline: Sequence[Unit]) -> Finding | None:
    """Counts the scores that can't be compared, with the reasons, and those that no judge gave."""
    reasons: dict[str, int] = {}
    there = 0
    by_overlap = sum("lexical_judge" in cell.flags for unit in headline for cell in unit.cells.values())
    for unit in headline:
        there += len(unit.cells)
        for key, why in unit.standing.left_out.items():
            if key in unit.cells:
                reasons[why] = reasons.get(why, 0) + 1
    sentences: list[Part] = []
    if by_overlap:
        are = "is" if by_overlap == 1 else "are"
        sentences.append(Part(f"{by_overlap} of {there} scores {are} by text overlap, not by a judge."))
    if reasons:
        said = [[Part(f"{why} ({count})")] for why, count in sorted(reasons.items(), key=lambda pair: -pair[1])]
        lost = sum(reasons.values())
        start = f"{lost} of {there} scores {'is' if lost == 1 else 'are'} neither ranked nor tested: "
        sentences += [Part(f" {start}" if sentences else start), *_spaced(said), Part(".")]
    return _finding("runs", sentences) if sentences else None
