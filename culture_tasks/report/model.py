"""The finished report as plain values, which writers, page and figures read.

Numbers are on the metric's scale (:class:`~culture_tasks.report.numbers.numbers.Number`); rows, units and runs are
named by their keys. Texts that come from models, data or file names are not escaped here: each writer escapes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.reporting import Question
from culture_tasks.benchmarks.tables import Column as Column
from culture_tasks.benchmarks.tables import Figure
from culture_tasks.benchmarks.tables import Table as Table
from culture_tasks.report.numbers.numbers import Number as Number
from culture_tasks.report.numbers.numbers import Numbers as Numbers
from culture_tasks.report.numbers.numbers import Rank as Rank
from culture_tasks.report.numbers.numbers import Standing as Standing
from culture_tasks.report.numbers.numbers import Unit as Unit
from culture_tasks.results.comparability import FLAG_TEXT as FLAG_TEXT
from culture_tasks.results.comparability import NOT_COMPARABLE as NOT_COMPARABLE
from culture_tasks.results.comparability import Flag as Flag
from culture_tasks.results.file_samples import FileSamples
from culture_tasks.results.finding import UnusedFile
from culture_tasks.results.runs import ModelRow as ModelRow
from culture_tasks.results.runs import Run


@dataclass(frozen=True, slots=True)
class Fairness:
    """How evenly a unit's score spreads over the groups of one dimension; a group is empty where all have the same.

    The gap is best minus worst, in the direction that is better; the variance is in squared units of the scale.
    """

    unit: str
    entrant: str
    dimension: str
    best: str
    best_value: float
    worst: str
    worst_value: float
    gap: float
    variance: float | None
    groups: int
    scale: Scale


PEOPLE = "people"
"""The author of a correction that isn't a better judge."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A difference's correction by people, or a better judge, who rated a random part; or why it is ``missing``.

    Rated are items of both entrants where the test is paired, else of either; ``judge`` is the judge's own difference,
    with its interval at the same level.
    """

    rated: int
    judge: float
    judge_low: float | None
    judge_high: float | None
    missing: str = ""
    by: str = PEOPLE


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two entrants on the ``n`` items of a unit that both answered; the difference is second minus first.

    Attributes:
        low: Lower end of the interval at the level that is adjusted as ``p_holm`` is, over all pairs of the unit.
        verdict: In words, such as ``B is better`` or ``not distinguishable``.
        items_needed: Items that would tell them apart at this difference, 80 % of the time, at the adjusted level; None
            where the test tells them apart already, or no number can be worked out.
        flags: Why they should not have been compared, where the user insisted.
        better: Key of the one that is significantly better.
    """

    unit: str
    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    test: str
    n: int
    clusters: int | None
    verdict: str
    items_needed: int | None
    flags: tuple[Flag, ...] = ()
    better: str | None = None
    correction: Correction | None = None

    @property
    def is_corrected(self) -> bool:
        """Whether the difference, its interval and its test are corrected."""
        return self.correction is not None and not self.correction.missing

    @property
    def contradicts_judge(self) -> bool:
        """Whether the judge's difference lies outside the corrected interval."""
        if self.correction is None or not self.is_corrected or self.low is None or self.high is None:
            return False
        return not self.low <= self.correction.judge <= self.high


@dataclass(frozen=True, slots=True)
class ModelMeans:
    """A mean over units that several entrants share, on the common scale of 0-100, with tests over all pairs.

    ``beside`` has the other headline units, each with the reason why it is not in the mean.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    beside: Mapping[str, str]
    cells: Mapping[str, Number]
    standing: Standing
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two numbers of one group that a paper sets side by side, and second less first on their common items.

    Unit and entrant are those of the second number; the kind is the benchmark's name for such pairs. The difference has
    no value where the two can't be compared, unless the user insisted.
    """

    kind: str
    unit: str
    entrant: str
    statistic: str
    dimension: str
    group: str
    first: Number
    second: Number
    difference: Number


@dataclass(frozen=True, slots=True)
class Gain:
    """The gain from training on one unit: trained less base on common items, and in percent of the base's score.

    Neither has a value where the two can't be compared, unless the user insisted; the percents, positive where training
    made it better, also have none where the base isn't above 0 or neither end of the scale is better. The difference is
    ``best`` where the test, adjusted over the units of the trained row, tells the two apart.
    """

    unit: str
    base: str
    trained: str
    percent: Number
    difference: Number
    test: Comparison | None = None


@dataclass(frozen=True, slots=True)
class CheckedScore:
    """A judge's score, and the same score corrected by people's ratings of a random part of the responses."""

    unit: str
    entrant: str
    judge: Number
    people: Number

    @property
    def times_its_interval(self) -> float:
        """Distance of the judge's score from the people's, in half widths of their interval: over 1 is outside."""
        judge, people, low = self.judge.value, self.people.value, self.people.low
        if judge is None or people is None or low is None or not people > low:
            return 0.0
        return abs(judge - people) / (people - low)


@dataclass(frozen=True, slots=True)
class CountryScore:
    """The score of an entrant for a country, or a group of countries, on the common scale of 0-100.

    Attributes:
        cell: The score with partial pooling (:func:`culture_tasks.metrics.partial_pooling.pooled`) over all benchmarks;
            ``n`` are the questions about the country, those of one image or scene counted once.
        raw: The mean without pooling.
        means: The mean of each unit that asks about the country, by its key.
        over: Keys of all units of the entrant's scores, also of units that don't ask about the country.
        beside_others: Whether it is significantly above or below the mean of the entrant's other countries.
    """

    entrant: str
    place: str
    cell: Number
    raw: float
    means: Mapping[str, Number]
    over: tuple[str, ...]
    beside_others: Literal["above", "below"] | None = None


class Phrase(NamedTuple):
    """A piece of a sentence; a name comes from models or data, and is set off from the words around it."""

    text: str
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence that a rule makes from the numbers, and the shell command that it mentions; may be empty."""

    question: Question
    parts: tuple[Phrase, ...]
    command: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report; mappings and tuples are in its order, times are ISO 8601 in UTC."""

    created: str
    version: str
    options: Mapping[str, str]
    entrants: Mapping[str, ModelRow]
    runs: Mapping[str, Run]
    numbers: Numbers
    tables: tuple[Table, ...]
    fairness: tuple[Fairness, ...]
    comparisons: tuple[Comparison, ...]
    contrasts: tuple[Contrast, ...]
    problems: tuple[UnusedFile, ...]
    samples: FileSamples
    notes: tuple[str, ...] = ()
    means: tuple[ModelMeans, ...] = ()
    findings: tuple[Conclusion, ...] = ()
    gains: tuple[Gain, ...] = ()
    countries: tuple[CountryScore, ...] = ()
    figures: tuple[Figure, ...] = ()

    @property
    def units(self) -> Mapping[str, Unit]:
        """The units by key."""
        return self.numbers.units

    @property
    def groups(self) -> list[Number]:
        """The numbers of groups."""
        return [number for number in self.numbers if number.where]

    @property
    def models(self) -> set[str]:
        """Names of the models."""
        return {entrant.model for entrant in self.entrants.values()}

    @property
    def labels(self) -> dict[str, str]:
        """The label of each run's row, by the key of the run."""
        labels = {key: run.model for key, run in self.runs.items()}
        for unit in self.units.values():
            for entrant, cell in unit.cells.items():
                labels |= dict.fromkeys(cell.runs, self.entrants[entrant].label)
        return labels
