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
    """How evenly a unit's score spreads over the groups of one dimension.

    Attributes:
        best: Group with the best score; empty, as ``worst`` is, where all groups have the same.
        gap: Best minus worst, in the direction that is better; 0 where all groups do equally well.
        variance: Sample variance over the groups, in squared units of the scale.
        groups: Number of groups that have a score.
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
    """A difference's correction by people, or a better judge, who rated a random part; or why there is none.

    Attributes:
        rated: Number of items that people rated: for both entrants where the test is paired, else for either.
        judge: The judge's difference of the same two, not corrected.
        judge_low: Lower end of its interval, at the same level.
        judge_high: Upper end.
        missing: Why the difference is not corrected; empty where it is.
        by: :data:`PEOPLE`, or the label of the better judge; ``judge`` is then the other judge's difference.
    """

    rated: int
    judge: float
    judge_low: float | None
    judge_high: float | None
    missing: str = ""
    by: str = PEOPLE


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two entrants on the items of a unit that both answered.

    Attributes:
        difference: Score of the second minus score of the first on common items.
        low: Lower end of the test's interval at its adjusted level: it leaves 0 out exactly where the verdict says that
            one is better. None without one.
        p_holm: The p-value after Holm's adjustment over all pairs of the unit.
        n: Number of common items.
        clusters: Number of clusters; None where the items are independent.
        verdict: In words, such as ``B is better`` or ``not distinguishable``.
        items_needed: Items that would tell them apart at this difference, 80 % of the time, at the same adjusted
            level; more than ``n``. None where they are told apart, or it isn't known.
        flags: Why they should not have been compared, where the user insisted.
        better: Key of the one that is significantly better; None where the test doesn't tell them apart.
        correction: The correction by people, or a better judge; None without ratings.
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
    """A mean over the columns that several entrants share.

    Attributes:
        columns: Keys of the units that it is the mean of.
        beside: Keys of the other headline units, each with the reason why it is not in the mean.
        cells: The mean of each entrant that has all of these columns, on the common scale of 0-100.
        standing: Who is best; ``left_out`` says which columns the others lack.
        comparisons: Paired tests of these means, adjusted over all pairs.
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
    """Two numbers of one group of one entrant that a paper sets side by side, and their paired difference.

    Attributes:
        kind: The benchmark's name for it, such as ``language``.
        unit: Key of the unit of the second number, as ``entrant`` is of its entrant.
        statistic: ``score``, or the name of a further score.
        group: The group; the numbers' ``where`` has other fixed groups, too.
        first: The number to compare with, such as that of the unchanged model.
        second: The number itself, such as that of the model with an insertion.
        difference: Second less first on the items that both have a score for, with a paired interval; without a value
            where the two can't be compared, unless the user insisted.
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
    """The gain from training on one unit.

    Attributes:
        base: Key of the row before training, as ``trained`` is of the row after it.
        percent: The difference in percent of the number before; positive where training made it better. Without a
            value where the numbers can't be compared, unless the user insisted, where the first isn't above 0, and
            where neither end of the scale is better.
        difference: Trained less base on the items that both have a score for, with the interval of the test; ``best``
            where the test tells the two apart. Without a value as above.
        test: The paired test, adjusted over the units of the trained row; None where there is none.
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
    """The score of an entrant for a country, over all benchmarks that ask about it.

    Attributes:
        place: Code of the country, or of a group of countries (:func:`culture_tasks.vocabulary.place`).
        cell: The score with partial pooling (:func:`culture_tasks.metrics.partial_pooling.pooled`), on the common scale
            of 0-100; ``n`` is the number of questions about the country. Questions that share an image or a scene
            count once, and so does a question in several languages or tasks.
        raw: The mean without pooling.
        means: The mean of each unit that asks about the country, on the common scale, by the unit's key.
        over: Keys of all units of the entrant's scores, also of units that don't ask about the country.
        beside_others: Whether the score is significantly above or below the mean of the entrant's other countries; None
            where the test doesn't tell.
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
    """A sentence that a rule makes from the numbers.

    Attributes:
        question: The question that it answers.
        command: The shell command that it mentions; may be empty.
    """

    question: Question
    parts: tuple[Phrase, ...]
    command: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class Report:
    """The whole report. Mappings and tuples are in the report's order.

    Attributes:
        created: Time, as ISO 8601 in UTC.
        version: Version of this package.
        entrants: The rows.
        runs: The runs in use.
        problems: Files that were not used, and why.
        means: Means over the columns that entrants share, the one of most entrants first.
        countries: The score of each entrant for each country, over all benchmarks that ask about it.
    """

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
