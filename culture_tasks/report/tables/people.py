"""Scores corrected by people who rated a random part of the responses, and how well judge and people agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import NO_GROUP, Floats, Groups, Where
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.harness.records import on_scale
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.prediction_powered import Corrected, CorrectedMean, corrected_mean, for_other_raters
from culture_tasks.metrics.rater_agreement import Statistic, agreement, krippendorff_alpha
from culture_tasks.people.spotcheck_design import RatedDesign, doubts
from culture_tasks.people.spotcheck_draw import Population, read_population
from culture_tasks.report.model import CheckedScore, Column, Flag, ModelRow, Number, Table
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.corrections import Checked, CheckedResponses
from culture_tasks.report.numbers.estimates import JUDGE_FLAGS
from culture_tasks.report.numbers.numbers import Unit, from_interval, nan_to_none, number_of, ordered
from culture_tasks.report.numbers.selection import select
from culture_tasks.report.numbers.strata import CultureInTask
from culture_tasks.report.tables.judge_bias import JudgedResponse, judge_biases
from culture_tasks.report.tables.layout import ALL, ALPHA, COUNT, OWN_SCALE, Values, columns_of, filled
from culture_tasks.results.runs import Run

_WEIGHT = Scale("weight", 0.0, None, better=None)

_ABOUT_SCORES = (
    "Judge: the judge's own score. Corrected: the score that people would give to all responses, by their ratings of a "
    "random part and the judge's scores of all (prediction-powered inference). Its interval allows for the judge's "
    "bias, and for gross errors that are too rare to be among the rated responses. It is for these raters: others "
    "might rate otherwise. These questions: the same score, with an interval for these very questions alone. Raters "
    "like these: with two or more, an interval for others like them; two say little of others. People "
    "alone: by the ratings alone. Weight: how much of the judge's score counts, from 0 to 1.5."
)
_ABOUT_AGREEMENT = (
    "Between people: Krippendorff's alpha (ordinal) of the raters, on responses that several of them rated. The other "
    "columns compare the judge's score with the mean of the people's: alpha, Spearman's rho, how much higher the "
    "judge's is, and how far apart they are. Where a number is missing, the reason calls the people the first rater "
    "and the judge the second. Intervals are percentiles of 1,000 resamples of items."
)
_LOST_FLAGS: frozenset[Flag] = JUDGE_FLAGS | {"low_coverage"}
"""Flags of a judge's score that a score of people hasn't."""


def checked_by_people(
    sheets: Sequence[RatedDesign], units: Sequence[CheckedUnit]
) -> tuple[list[Table], list[CheckedScore]]:
    """Corrects judges' scores by people's ratings: tables, and the overall scores."""
    if not sheets:
        return [], []
    notes = [_ABOUT_SCORES, *(doubt for sheet in sheets for doubt in doubts(sheet))]
    notes += dict.fromkeys(_sample_note(run.loaded) for unit in units for run in unit.checked_runs if run.is_sample)
    score_columns = (
        *columns_of(OWN_SCALE, judge="Judge", corrected="Corrected", corrected_here="These questions"),
        *columns_of(OWN_SCALE, other_raters="Raters like these", people="People alone"),
        *columns_of(COUNT, rated="Rated", responses="Responses"),
        *columns_of(_WEIGHT, weight="Weight"),
    )
    agreement_columns = (
        *columns_of(COUNT, rated="Rated by both"),
        *columns_of(ALPHA, between="Between people", alpha="Alpha", spearman="Spearman rho"),
        *columns_of(OWN_SCALE, higher="Judge is higher by", apart="Apart"),
    )

    def table(
        key: str, title: str, columns: tuple[Column, ...], notes: Iterable[str], values: Callable[..., Values]
    ) -> Table:
        rows = (
            ((unit.label, unit.judged_by, unit.title, culture or ALL), values(unit, culture))
            for unit in units
            for culture in (None, *unit.cultures)
        )
        headers = ("Model", "Judge", "Benchmark", "Culture")
        return filled(Table(key, title, headers, columns, notes=tuple(notes), question="judges"), rows)

    about, title = [_ABOUT_AGREEMENT], "Agreement of judge and people"
    scores = table("spotcheck", "Scores corrected by people", score_columns, notes, CheckedUnit.scores)
    agreements = table("spotcheck_agreement", title, agreement_columns, about, CheckedUnit.agreement)
    return [scores, agreements, judge_biases(_rated_responses(units))], [unit.checked for unit in units]


def checked_units(
    sheets: Sequence[RatedDesign],
    measured: Sequence[Unit],
    entrants: Mapping[str, ModelRow],
    *,
    require_all: bool = True,
) -> list[CheckedUnit]:
    """Returns the units of each entrant that have ratings; none without ratings.

    Raises:
        DataError: If the runs have none of the draws of a file with ratings; with ``require_all``, if they lack one.
        SettingsError: If two draws are of the same responses, or a score is no mean of its responses' scores.
    """
    if not sheets:
        return []
    loaded_runs = {loaded.key: loaded for unit in measured for runs in unit.runs.values() for loaded in runs}
    checked = _checked_runs(sheets, list(loaded_runs.values()), require_all=require_all)
    units: list[CheckedUnit] = []
    for unit in measured:
        for key, runs in unit.runs.items():
            checked_runs = [checked[loaded.key] for loaded in runs if loaded.key in checked]
            if checked_runs and not unit.is_mean_of_samples:
                raise SettingsError(
                    f"spotcheck: people's ratings correct means of scores, and the score of {unit.key} is no mean "
                    "of its responses' scores. Leave its ratings out."
                )
            if checked_runs:
                units.append(CheckedUnit(unit, key, entrants[key], checked_runs))
    return units


def corrected_by_people(measured: Sequence[Unit], units: Sequence[CheckedUnit]) -> Checked:
    """Corrects scores and differences in the units where each row has enough ratings; the others are left."""
    by_row: dict[str, dict[str, CheckedUnit]] = {}
    for unit in units:
        by_row.setdefault(unit.measured.key, {})[unit.key] = unit
    responses: dict[tuple[str, str], CheckedResponses] = {}
    for scores in measured:
        checked, key = by_row.get(scores.key, {}), scores.key
        cells = {row: cell for row, cell in scores.cells.items() if cell.value is not None}
        corrected = {row: checked[row].corrected(cell) for row, cell in cells.items() if row in checked}
        if corrected and len(corrected) == len(cells) and all(cell.low is not None for cell in corrected.values()):
            scores.cells.update(corrected)
            responses |= {(key, row): checked[row].responses for row in corrected}
    return responses


# Which runs the ratings are of


class _CheckedRun(NamedTuple):
    """A run with people's ratings of a part of its responses, and its place among the draw's populations."""

    loaded: Run
    population: Population
    sheet: RatedDesign
    place: int

    @property
    def is_sample(self) -> bool:
        """Whether its judge graded a sample of another run's responses."""
        return self.loaded.subset is not None and self.loaded.graded_from is not None

    @property
    def weight(self) -> float:
        """How many documents of its task a response is for, in a designed subset."""
        subset = self.loaded.subset
        return 1.0 if subset is None else subset.of_documents / subset.documents


def _checked_runs(sheets: Sequence[RatedDesign], runs: Sequence[Run], *, require_all: bool) -> dict[str, _CheckedRun]:
    places: dict[str, tuple[RatedDesign, int]] = {}
    for sheet in sheets:
        for place, source in enumerate(sheet.design.populations):
            if source.fingerprint in places:
                raise SettingsError(
                    f"spotcheck: two of the files with ratings are of the same responses ({source.task} of "
                    f"{source.model}). Name one of them."
                )
            places[source.fingerprint] = (sheet, place)
    tasks = {source.task for sheet in sheets for source in sheet.design.populations}
    populations: list[tuple[Run, Population]] = []
    unusable: dict[str, str] = {}
    for loaded in runs:
        if loaded.task in tasks and loaded.settings.judges:
            try:
                populations.append((loaded, read_population(loaded)))
            except DataError as error:  # of a run that nobody rated, the report has counted the file's damage already
                unusable[loaded.task] = str(error).rstrip(".")
    present = {population.fingerprint for _, population in populations}
    for fingerprint, (sheet, place) in places.items():
        alternatives = () if require_all else sheet.design.populations
        if fingerprint not in present and not any(source.fingerprint in present for source in alternatives):
            task = sheet.design.populations[place].task
            candidates = [population for loaded, population in populations if loaded.task == task]
            raise DataError(_absence(sheet, place, candidates, unusable.get(task, "")))
    return {
        loaded.key: _CheckedRun(loaded, population, *places[population.fingerprint])
        for loaded, population in populations
        if population.fingerprint in places
    }


def _absence(sheet: RatedDesign, place: int, candidates: Sequence[Population], damage: str) -> str:
    source = sheet.design.populations[place]
    subject = f"spotcheck: people rated responses of {source.model} to {source.task}, which these results don't have"
    rows = [row for row in sheet.design.rows if row.population == place]
    changes: list[list[str]] = []
    for candidate in candidates:
        marks = {(response.item, response.run): response.mark for response in candidate.responses}
        changes.append([row.item for row in rows if marks.get((row.item, row.run)) != row.mark])
    if not changes:
        reason = damage or "no judged run of the task is there"
    elif fewest := min(changes, key=len):
        reason = f"{len(fewest)} of {len(rows)} have changed since, such as that to item {fewest[0]!r:.60}"
    else:
        reason = "the drawn ones are the same, but others have changed, or there are more or fewer"
    return f"{subject}: {reason}. Name the results that the sheet was drawn from, or draw anew."


# Numbers


class CheckedUnit:
    """A unit of an entrant whose responses people rated a part of; ``cultures`` is empty where there is only one."""

    def __init__(self, measured: Unit, key: str, entrant: ModelRow, checked: Sequence[_CheckedRun]) -> None:
        self.measured, self.key, self.label, self.title = measured, key, entrant.label, measured.title
        self.judged_by = " + ".join(dict.fromkeys(run.loaded.settings.judged_by for run in checked))
        self.checked_runs, self._runs = checked, [run.loaded for run in checked]
        responses = [response for run in checked for response in run.population.responses]
        self._raters = _ratings(checked)
        people = _means_of(self._raters)
        reported = measured.reported.field_named(measured.reported.culture)
        strata = _strata(checked, reported, ~np.isnan(people))
        clusters = [response.cluster for response in responses]
        self._clusters = clusters if len(set(clusters)) < len(clusters) else None
        items = zip(strata, responses, strict=True)
        self.responses: CheckedResponses = CheckedResponses(
            keys=[(stratum.task, response.item, response.run) for stratum, response in items],
            judge=np.array([response.judged for response in responses]),
            people=people,
            strata=strata,
            clusters=clusters,
            weights={run.loaded.task: run.weight for run in checked},
        )
        weights = self.responses.weights
        sizes, task_sizes = Counter(strata), Counter(stratum.task for stratum in strata)
        self._shares = {  # the weight of a culture: its size, or its part of a task where tasks count the same
            stratum: size / task_sizes[stratum.task] if measured.equal_parts else size * weights[stratum.task]
            for stratum, size in sizes.items()
        }
        self._corrected = self._mean(self.responses.judge)
        self._people_alone = self._mean(np.full(len(responses), np.nan))
        present = {stratum.culture for stratum in strata} - {""}
        cultures = [*(culture for culture in reported if culture in present), *sorted(present.difference(reported))]
        self.cultures = cultures if len(cultures) > 1 else []
        missing: set[Flag] = {"incomplete"} if len(checked) < len(measured.tasks) else set()
        self._flags = measured.flags[key] | missing

    def _mean(self, judge: Floats) -> CorrectedMean:
        return corrected_mean(
            judge,
            self.responses.people,
            self.responses.strata,
            shares=self._shares,
            clusters=self._clusters,
            ends=self.measured.scale.ends,
        )

    @property
    def checked(self) -> CheckedScore:
        """Its overall score."""
        people = self._cell(self._corrected.overall, is_set=True)
        return CheckedScore(self.measured.key, self.key, self._judge_score(), people)

    def corrected(self, cell: Number) -> Number:
        """Returns the unit's score corrected; without an interval where not all of its tasks have enough ratings."""
        people = self._cell(self._corrected.overall)
        rated_tasks, tasks = ({loaded.task for loaded in runs} for runs in (self._runs, self.measured.runs[self.key]))
        ends = (people.low, people.high) if rated_tasks == tasks else (None, None)
        flags = ordered({*cell.flags, "corrected"})
        return replace(cell, value=people.value, low=ends[0], high=ends[1], flags=flags)

    def scores(self, culture: str | None) -> Values:
        """Returns the numbers of its row of scores, or of that of a culture."""
        shares = {stratum: share for stratum, share in self._shares.items() if culture in (None, stratum.culture)}
        corrected, people = self._corrected.over(shares), self._people_alone.over(shares)
        return {
            "judge": self._judge_score(culture),
            "corrected": self._cell(corrected, culture),
            "corrected_here": self._cell(corrected, culture, is_set=True),
            "other_raters": self._for_other_raters(corrected, culture),
            "people": self._cell(people, culture),
            "rated": corrected.rated,
            "responses": corrected.size,
            "weight": Number(nan_to_none(corrected.weight), _WEIGHT) if culture is None else None,
        }

    def _judge_score(self, culture: str | None = None) -> Number:
        """Returns the judge's score of the same responses."""
        measured, where = self.measured, self._where(culture)
        has_equal_parts = measured.equal_parts and culture is None
        observed = select(measured.results, self._runs, measured.tasks, where, equal_parts=has_equal_parts)
        return number_of(observed, measured.scale, tuple(self._flags), where, min_coverage=measured.min_coverage)

    def _cell(self, mean: Corrected, culture: str | None = None, *, is_set: bool = False) -> Number:
        """Returns a corrected score, with an interval for other questions or for this very set of them."""
        low, high = (mean.set_low, mean.set_high) if is_set else (mean.low, mean.high)
        interval = Interval(mean.value, low, high, n=mean.rated, clusters=mean.rated, reason=mean.reason)
        flags = {flag for flag in self._flags if flag not in _LOST_FLAGS}
        keys = tuple(loaded.key for loaded in self._runs)
        cell = from_interval(interval, self.measured.scale, flags=flags, runs=keys, where=self._where(culture))
        return cell if cell.value is not None else replace(cell, note=mean.reason or "")

    def _for_other_raters(self, mean: Corrected, culture: str | None) -> Number | None:
        inside = self._inside(culture)
        ratings, judge = self._raters[:, inside], self.responses.judge[inside]
        strata = list(compress(self.responses.strata, inside))
        low, high = for_other_raters(mean, ratings, judge, strata) if len(ratings) > 1 else (math.nan, math.nan)
        return None if math.isnan(low) else self._cell(mean._replace(low=low, high=high), culture)

    def _inside(self, culture: str | None) -> NDArray[np.bool_]:
        return np.array([culture in (None, stratum.culture) for stratum in self.responses.strata])

    def _where(self, culture: str | None) -> Where:
        field = self.measured.reported.culture
        return ((field, culture),) if field and culture is not None else ()

    def agreement(self, culture: str | None) -> Values:
        """Returns the numbers of its row of agreement, or of that of a culture."""
        responses, inside = self.responses, self._inside(culture)
        between = krippendorff_alpha(self._raters[:, inside]) if len(self._raters) > 1 else None
        clusters = [*compress(responses.clusters, inside)]
        numbers = agreement(responses.people[inside], responses.judge[inside], clusters=clusters)
        points = scale_of_differences(self.measured.scale)
        statistics: dict[str, tuple[Statistic, Scale]] = {
            "alpha": ("krippendorff_alpha", ALPHA),
            "spearman": ("spearman", ALPHA),
            "higher": ("mean_error", points),
            "apart": ("mean_absolute_error", points),
        }
        cells: dict[str, Number | float | None] = {"rated": numbers.pairs}
        if between is not None:
            cells["between"] = Number(nan_to_none(between.value), ALPHA, note=between.reason or "")
        for key, (name, scale) in statistics.items():
            estimate = numbers.estimates[name]
            value, low, high = map(nan_to_none, (estimate.value, estimate.low, estimate.high))
            cells[key] = Number(value, scale, low, high, n=numbers.pairs, note=estimate.reason or "")
        return cells


def _strata(checked: Sequence[_CheckedRun], field: Groups, is_rated: NDArray[np.bool_]) -> list[CultureInTask]:
    """Returns the stratum of each response; its name has the task where the culture has ratings in another one."""
    pairs = [(run.loaded.task, response.culture) for run in checked for response in run.population.responses]
    task_counts = Counter(culture for _, culture in set(pairs))
    rated_cultures = {culture for _, culture in compress(pairs, is_rated)}

    def name(task: str, culture: str) -> str:
        if culture == NO_GROUP:
            return task
        culture_name = field.name_of(culture)
        return f"{culture_name} in {task}" if culture in rated_cultures and task_counts[culture] > 1 else culture_name

    return [CultureInTask(task, culture, name(task, culture)) for task, culture in pairs]


def _ratings(checked: Sequence[_CheckedRun]) -> Floats:
    """Returns the ratings on the scale of the scores, a row per rater and a column per response; NaN without one."""
    raters = dict.fromkeys(rater for run in checked for rater in run.sheet.ratings)
    columns: list[list[float]] = []
    for run in checked:
        rows = {(row.item, row.run): row.row for row in run.sheet.design.rows if row.population == run.place}
        for response in run.population.responses:
            name, scale = rows.get((response.item, response.run), ""), (response.rubric, response.scale)
            ratings = (run.sheet.ratings.get(rater, {}).get(name) for rater in raters)
            columns.append([math.nan if rating is None else on_scale(rating, *scale) for rating in ratings])
    return np.array(columns).T


def _means_of(raters: Floats) -> Floats:
    """Returns the mean rating of each response; NaN without one."""
    means: Floats = np.ma.masked_invalid(raters).mean(axis=0).filled(np.nan)
    return means


def _rated_responses(units: Sequence[CheckedUnit]) -> Iterator[JudgedResponse]:
    """Yields the rated responses of all runs, once where a run belongs to several units."""
    checked = {run.loaded.key: run for unit in units for run in unit.checked_runs}
    for run in checked.values():
        people = _means_of(_ratings([run])).tolist()
        for response, rating in zip(run.population.responses, people, strict=True):
            if not math.isnan(rating):
                yield JudgedResponse(run.loaded, response, rating)


def _sample_note(run: Run) -> str:
    subset = run.subset
    assert subset is not None
    return (
        f"{run.model} on {title_of(run.task)}: the score and the interval for these questions are of the "
        f"{subset.documents:,} of {subset.of_documents:,} responses that {run.settings.judged_by} graded."
    )
