"""Scores corrected by people who rated a random part of the responses, and how well judge and people agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.benchmarks.registry import title_of
from culture_tasks.benchmarks.reporting import NO_GROUP, Field, Floats, Where
from culture_tasks.errors import DataError, SettingsError
from culture_tasks.harness.scoring import on_scale
from culture_tasks.metrics.intervals import Interval
from culture_tasks.metrics.panels import weighted_panel
from culture_tasks.metrics.prediction_powered import Corrected, CorrectedMean, corrected_mean
from culture_tasks.metrics.rater_agreement import Statistic, agreement, krippendorff_alpha
from culture_tasks.people.spotcheck_design import RatedDesign, doubts
from culture_tasks.people.spotcheck_draw import Population, SheetResponse, read_population
from culture_tasks.report.model import Cell, CheckedScore, Column, Entrant, Flag, JudgeBias, Row, Table
from culture_tasks.report.numbers.comparisons import scale_of_differences
from culture_tasks.report.numbers.corrections import CheckedResponses, Corrections
from culture_tasks.report.numbers.observations import (
    CultureInTask,
    cell_of,
    from_interval,
    known,
    observe,
    ordered,
    pooled,
)
from culture_tasks.report.numbers.scores import OF_JUDGES, Measured
from culture_tasks.report.tables.grid import ALL, COUNT, OWN_SCALE, columns_of, row_of
from culture_tasks.report.tables.judge_bias import JudgedResponse, judge_biases
from culture_tasks.report.tables.judge_panels import ALPHA
from culture_tasks.results.loaded_runs import LoadedRun

_WEIGHT = Scale("weight", 0.0, None, better=None)
Numbers = Sequence[Cell | float | None]
"""The numbers of a row, in the order of its columns."""

_ABOUT_SCORES = (
    "Judge: the judge's own score. Corrected: the score that people would give to all responses, by their ratings of a "
    "random part and the judge's scores of all (prediction-powered inference). Its interval allows for the judge's "
    "bias, and for gross errors that are too rare to be among the rated responses. It is for these raters: others "
    "might rate otherwise. These questions: the same with an interval for these very questions, and not for others "
    "like them. People alone: by the ratings alone. Weight: how much of the judge's score counts, from 0 to 1.5."
)
_ABOUT_THREE_LEVELS = (
    "Where a judge graded a sample of the responses and another judge all of them, people rated a part of the sample: "
    "the corrected score is that of people for all responses, by all three."
)
_ABOUT_PANELS = (
    "A panel is several judges, weighted by people's ratings where that pays, culture by culture; else it is one of "
    "them, or their mean. The weights for a rated response are learned from other ratings, so that its interval is as "
    "honest as that of one judge."
)
_ABOUT_AGREEMENT = (
    "Between people: Krippendorff's alpha (ordinal) of the raters, on responses that several of them rated. The others "
    "are of the judge's score and the mean of the people's: alpha, Spearman's rho, how much higher the judge's is, and "
    "how far they are apart. Where one of these is missing, the reason calls the people the first rater and the judge "
    "the second. Intervals are percentiles of 1,000 resamples of items."
)
_LOST_FLAGS: frozenset[Flag] = OF_JUDGES | {"low_coverage"}
"""Flags of a judge's score that a score of people hasn't."""


def checked_by_people(
    rated: Sequence[RatedDesign], units: Sequence[CheckedUnit], panels: Sequence[CheckedUnit] = ()
) -> tuple[list[Table], list[CheckedScore], list[JudgeBias]]:
    """Corrects judges' scores by people's ratings: tables, the overall scores, and what the judges are swayed by."""
    if not rated:
        return [], [], []
    notes = [_ABOUT_SCORES, *(doubt for each in rated for doubt in doubts(each))]
    notes += [_ABOUT_THREE_LEVELS] * any(unit.has_three_levels for unit in units) + [_ABOUT_PANELS] * bool(panels)
    notes += dict.fromkeys(_of_sample_alone(each) for unit in units for each in unit.checked_runs if each.is_alone)
    bias_table, biases = judge_biases(_rated_responses(units))
    corrected = [
        *columns_of(OWN_SCALE, judge="Judge", corrected="Corrected", corrected_here="These questions"),
        *columns_of(OWN_SCALE, people="People alone"),
        *columns_of(COUNT, rated="Rated", responses="Responses"),
        *columns_of(_WEIGHT, weight="Weight"),
    ]
    agreed = [
        *columns_of(COUNT, rated="Rated by both"),
        *columns_of(ALPHA, between="Between people", alpha="Alpha", spearman="Spearman rho"),
        *columns_of(OWN_SCALE, higher="Judge is higher by", apart="Apart"),
    ]

    def table(key: str, title: str, columns: Sequence[Column], rows: Iterable[Row], *notes: str) -> Table:
        headers = ("Model", "Judge", "Benchmark", "Culture")
        return Table(key, title, headers, tuple(columns), tuple(rows), notes=notes, question="judges")

    def row(unit: CheckedUnit, judge: str, culture: str | None, values: Numbers, columns: Sequence[Column]) -> Row:
        return row_of((unit.label, judge, unit.title, culture or ALL), values, columns, unit.key)

    scores = (
        row(unit, unit.graders, culture, unit.scores(culture), corrected)
        for unit in (*units, *panels)
        for culture in (None, *unit.cultures)
    )
    agreements = (
        row(unit, unit.judged_by, culture, unit.agreement(culture), agreed)
        for unit in units
        for culture in (None, *unit.cultures)
    )
    tables = [
        table("spotcheck", "Scores corrected by people", corrected, scores, *notes),
        table("spotcheck_agreement", "Agreement of judge and people", agreed, agreements, _ABOUT_AGREEMENT),
        bias_table,
    ]
    return tables, [unit.checked for unit in units], biases


def checked_units(
    rated: Sequence[RatedDesign], measured: Sequence[Measured], entrants: Mapping[str, Entrant], *, every: bool = True
) -> list[CheckedUnit]:
    """Returns the units of each entrant that have ratings; none without ratings.

    Raises:
        DataError: If the ratings are of other responses than those of the runs: of any, or of all of a file unless
            ``every`` rated response must be there.
        SettingsError: If two draws are of the same responses, or a score is no mean of its responses' scores.
    """
    if not rated:
        return []
    runs = {each.run.key: each for unit in measured for own in unit.runs.values() for each in own}
    checked = _checked_runs(rated, list(runs.values()), every=every)
    units: list[CheckedUnit] = []
    for unit in measured:
        for key, own in unit.runs.items():
            of_unit = [checked[each.run.key] for each in own if each.run.key in checked]
            if of_unit and not unit.is_mean_of_samples:
                raise SettingsError(
                    f"spotcheck: the score of {unit.unit.key} is no mean of its responses' scores, which is what "
                    "people's ratings correct. Leave its ratings out."
                )
            if of_unit:
                units.append(CheckedUnit(unit, key, entrants[key], of_unit))
    return units


def panels_of(units: Sequence[CheckedUnit]) -> list[CheckedUnit]:
    """Returns a panel of the judges that graded the same responses, for each model and unit with several of them."""
    alike: dict[tuple[str, frozenset[str]], dict[str, CheckedUnit]] = {}
    for unit in units:
        if not unit.has_three_levels and not any(each.run.lexical for each in unit.checked_runs):
            responses = frozenset(each.population.fingerprint for each in unit.checked_runs)
            alike.setdefault((unit.measured.unit.key, responses), {}).setdefault(unit.judged_by, unit)
    judges = [[*of_judges.values()] for of_judges in alike.values() if len(of_judges) > 1]
    return [CheckedUnit(own[0].measured, own[0].key, own[0].entrant, own[0].checked_runs, panel=own) for own in judges]


def corrected_by_people(
    measured: Sequence[Measured], units: Sequence[CheckedUnit]
) -> tuple[list[Measured], Corrections]:
    """Corrects scores and differences in the units where each entrant has enough ratings; the others are left."""
    of_units: dict[str, dict[str, CheckedUnit]] = {}
    for one in units:
        of_units.setdefault(one.measured.unit.key, {})[one.key] = one
    found: list[Measured] = []
    responses: dict[tuple[str, str], CheckedResponses] = {}
    for each in measured:
        own, key = of_units.get(each.unit.key, {}), each.unit.key
        cells = {entrant: cell for entrant, cell in each.unit.cells.items() if cell.value is not None}
        corrected = {entrant: own[entrant].corrected(cell) for entrant, cell in cells.items() if entrant in own}
        if corrected and len(corrected) == len(cells) and all(cell.low is not None for cell in corrected.values()):
            each = replace(each, unit=replace(each.unit, cells={**each.unit.cells, **corrected}))
            responses |= {(key, entrant): own[entrant].responses for entrant in corrected}
        found.append(each)
    return found, Corrections(responses)


# Which runs the ratings are of


class _CheckedRun(NamedTuple):
    """A run with people's ratings of a part of its responses, and its place among the draw's populations.

    Where it is a sample of a run that another judge graded, these are the responses of that run.
    """

    run: LoadedRun
    population: Population
    rated: RatedDesign
    place: int
    whole: Population | None = None

    @property
    def is_alone(self) -> bool:
        """Whether it is a judge's sample without another judge's readable verdicts on all responses."""
        return self.whole is None and self.run.result.subset is not None and self.run.result.graded_from is not None

    @property
    def responses(self) -> Sequence[SheetResponse]:
        """All responses, with the scores of the judge that has one of all."""
        return (self.whole or self.population).responses

    @property
    def weight(self) -> float:
        """How many documents of its task a response is for, in a designed subset."""
        subset = None if self.whole else self.run.result.subset
        return 1.0 if subset is None else subset.of_documents / subset.documents


def _checked_runs(rated: Sequence[RatedDesign], runs: Sequence[LoadedRun], *, every: bool) -> dict[str, _CheckedRun]:
    drawn: dict[str, tuple[RatedDesign, int]] = {}
    for one in rated:
        for place, source in enumerate(one.design.populations):
            if source.fingerprint in drawn:
                raise SettingsError(
                    f"spotcheck: two of the files with ratings are of the same responses ({source.task} of "
                    f"{source.model}). Name one of them."
                )
            drawn[source.fingerprint] = (one, place)
    tasks = {source.task for one in rated for source in one.design.populations}
    judged: list[tuple[LoadedRun, Population]] = []
    for loaded in runs:
        if loaded.run.task in tasks and loaded.run.settings.judges:
            with suppress(DataError):  # the report has counted the file's damage already
                judged.append((loaded, read_population(loaded.result.samples_file)))
    present = {population.fingerprint for _, population in judged}
    for fingerprint, (one, place) in drawn.items():
        others = () if every else one.design.populations
        if fingerprint not in present and not any(source.fingerprint in present for source in others):
            task = one.design.populations[place].task
            candidates = [population for loaded, population in judged if loaded.run.task == task]
            raise DataError(_why_absent(one, place, candidates))
    found: dict[str, _CheckedRun] = {}
    for loaded, population in judged:
        if population.fingerprint in drawn:
            checked = _CheckedRun(loaded, population, *drawn[population.fingerprint])
            with suppress(DataError):  # counted too
                if loaded.whole is not None:
                    checked = checked._replace(whole=read_population(loaded.whole.result.samples_file))
            found[loaded.run.key] = checked
    return found


def _why_absent(rated: RatedDesign, place: int, candidates: Sequence[Population]) -> str:
    source = rated.design.populations[place]
    who = f"spotcheck: people rated responses of {source.model} to {source.task}, which these results don't have"
    rows = [row for row in rated.design.rows if row.population == place]
    marks = [{(one.item, one.run): one.mark for one in candidate.responses} for candidate in candidates]
    changed = [[row.item for row in rows if own.get((row.item, row.run)) != row.mark] for own in marks]
    if not changed:
        why = "no judged run of the task is there"
    elif fewest := min(changed, key=len):
        why = f"{len(fewest)} of {len(rows)} have changed since, such as that to item {fewest[0]!r:.60}"
    else:
        why = "the drawn ones are the same, but others have changed, or there are more or fewer"
    return f"{who}: {why}. Name the results that the sheet was drawn from, or draw anew."


# Numbers


class CheckedUnit:
    """A unit of an entrant whose responses people rated a part of; ``cultures`` is empty where there is only one.

    ``panel`` are the units of several judges that graded the same responses, where they count as one judge.
    """

    def __init__(
        self,
        measured: Measured,
        key: str,
        entrant: Entrant,
        checked: Sequence[_CheckedRun],
        panel: Sequence[CheckedUnit] = (),
    ) -> None:
        self.measured, self.key, self.entrant = measured, key, entrant
        self.label, self.title = entrant.model if panel else entrant.label, measured.unit.title
        self.judged_by = " + ".join(dict.fromkeys(each.run.run.settings.judged_by for each in checked))
        if panel:
            self.judged_by = f"a panel of {' and '.join(unit.judged_by for unit in panel)}"
        self.checked_runs, self._panel = checked, panel
        self.has_three_levels = any(each.whole for each in checked)
        self._runs = [each.run for each in checked]
        every = [(one, (one.item, one.run)) for each in checked for one in each.responses]
        given = [{(one.item, one.run): one.judged for one in each.population.responses} for each in checked]
        of_sample = [
            own.get((one.item, one.run), math.nan)
            for own, each in zip(given, checked, strict=True)
            for one in each.responses
        ]
        self._own_scores = np.array(of_sample)
        self._raters = _ratings(checked)
        people = _means_of(self._raters)
        reported = measured.reported.field_named(measured.reported.culture)
        strata = _strata(checked, reported, ~np.isnan(people))
        if self.has_three_levels:
            strata = pooled(strata, ~np.isnan(self._own_scores[None]))
        clusters = [one.cluster for one, _ in every]
        self._clusters = clusters if len(set(clusters)) < len(clusters) else None
        keys = [(stratum.task, *key) for stratum, (_, key) in zip(strata, every, strict=True)]
        judge: Floats = np.array([one.judged for one, _ in every])
        if panel:
            by_judge = [dict(zip(unit.responses.keys, unit.responses.judge, strict=True)) for unit in panel]
            table = [[own[key] for key in keys] for own in by_judge]
            judge = weighted_panel(table, people, strata, clusters=self._clusters).scores
        weights = {each.run.run.task: each.weight for each in checked}
        better = self._own_scores if self.has_three_levels and not panel else None
        self.responses: CheckedResponses = CheckedResponses(keys, judge, people, strata, clusters, weights, better)
        sizes, of_tasks = Counter(strata), Counter(stratum.task for stratum in strata)
        self._shares = {  # the weight of a culture: its size, or its part of a task where tasks count the same
            stratum: size / of_tasks[stratum.task] if measured.equal_parts else size * weights[stratum.task]
            for stratum, size in sizes.items()
        }
        self._corrected = self._mean(judge, better)
        self._alone = self._mean(np.full(judge.size, np.nan))
        present = {stratum.culture for stratum in strata} - {""}
        others = sorted(one for one in present if one not in reported.order)
        found = [*(one for one in reported.order if one in present), *others]
        self.cultures = found if len(found) > 1 else []
        missing: set[Flag] = {"incomplete"} if len(checked) < len(measured.tasks) else set()
        self._flags = measured.flags[key] | missing

    def _mean(self, judge: Floats, better: Floats | None = None) -> CorrectedMean:
        return corrected_mean(
            judge,
            self.responses.people,
            self.responses.strata,
            shares=self._shares,
            better=better,
            clusters=self._clusters,
            ends=self.measured.unit.scale.ends,
        )

    @property
    def checked(self) -> CheckedScore:
        """Its overall score."""
        people = self._cell(self._corrected.overall, None, is_set=True)
        return CheckedScore(self.measured.unit.key, self.key, self._own(None), people)

    def corrected(self, cell: Cell) -> Cell:
        """Returns the unit's score corrected; without an interval where not all of its tasks have enough ratings."""
        people = self._cell(self._corrected.overall, None)
        is_whole = {each.run.task for each in self._runs} == {each.run.task for each in self.measured.runs[self.key]}
        ends = (people.low, people.high) if is_whole else (None, None)
        flags = ordered({*cell.flags, "corrected"} - {"control_variates"})
        return replace(cell, value=people.value, low=ends[0], high=ends[1], flags=flags)

    @property
    def graders(self) -> str:
        """Who graded its responses: of three levels, who graded how many."""
        if not self.has_three_levels:
            return self.judged_by
        graded = sum(len(each.population.responses) for each in self.checked_runs)
        cheap = dict.fromkeys((each.run.whole or each.run).run.settings.judged_by for each in self.checked_runs)
        return f"{self.judged_by} on {graded:,}, {' + '.join(cheap)} on {len(self.responses.keys):,}"

    def over(self, culture: str | None) -> Corrected:
        """Returns the corrected mean of all responses, or of those of a culture."""
        return self._corrected.over(self._inside(culture))

    def cells(self) -> dict[tuple[str, str, str | None], Cell]:
        """Returns the corrected scores by unit, model and culture, None being all cultures."""
        key, model = self.measured.unit.key, self.entrant.model
        return {(key, model, one): self._cell(self.over(one), one) for one in (None, *self.cultures)}

    def _inside(self, culture: str | None) -> dict[CultureInTask, float]:
        return {stratum: share for stratum, share in self._shares.items() if culture in (None, stratum.culture)}

    def more_ratings(self, width: float, culture: str | None = None) -> Mapping[str, int] | None:
        """Returns how many more ratings of each culture make the interval, or that of a culture, as narrow as this."""
        parts = {stratum: stratum.culture for stratum in self._shares}
        found = self._corrected.more_ratings(width, shares=self._inside(culture), parts=parts)
        return None if found is None else {str(part): number for part, number in found.items()}

    def scores(self, culture: str | None) -> Numbers:
        """Returns the numbers of its row of scores, or of that of a culture."""
        corrected, alone = self.over(culture), self._alone.over(self._inside(culture))
        return [
            None if self._panel else self._own(culture),  # a panel's scores are known up to a number
            self._cell(corrected, culture),
            self._cell(corrected, culture, is_set=True),
            self._cell(alone, culture),
            corrected.rated,
            corrected.size,
            Cell(known(corrected.weight), _WEIGHT) if culture is None else None,
        ]

    def _own(self, culture: str | None) -> Cell:
        """Returns the judge's own score of the same responses."""
        measured, where = self.measured, self._where(culture)
        equal = measured.equal_parts and culture is None
        observed = observe(self._runs, measured.tasks, where, equal_parts=equal)
        return cell_of(observed, measured.unit.scale, tuple(self._flags), where, min_coverage=measured.min_coverage)

    def _cell(self, found: Corrected, culture: str | None, *, is_set: bool = False) -> Cell:
        """Returns a corrected score, with an interval for other questions or for this very set of them."""
        low, high = (found.set_low, found.set_high) if is_set else (found.low, found.high)
        scored = Interval(found.value, low, high, n=found.rated, clusters=found.rated, reason=found.reason)
        flags = {flag for flag in self._flags if flag not in _LOST_FLAGS}
        keys = tuple(each.run.key for each in self._runs)
        cell = from_interval(scored, self.measured.unit.scale, flags=flags, runs=keys, where=self._where(culture))
        return cell if cell.value is not None else replace(cell, note=found.reason or "")

    def _where(self, culture: str | None) -> Where:
        field = self.measured.reported.culture
        return ((field, culture),) if field and culture is not None else ()

    def agreement(self, culture: str | None) -> Numbers:
        """Returns the numbers of its row of agreement, or of that of a culture."""
        responses = self.responses
        inside = np.array([culture in (None, stratum.culture) for stratum in responses.strata])
        between = krippendorff_alpha(self._raters[:, inside]) if len(self._raters) > 1 else None
        clusters = [*compress(responses.clusters, inside)]
        found = agreement(responses.people[inside], self._own_scores[inside], clusters=clusters)
        points = scale_of_differences(self.measured.unit.scale)
        statistics: dict[Statistic, Scale] = {"krippendorff_alpha": ALPHA, "spearman": ALPHA}
        statistics |= {"mean_error": points, "mean_absolute_error": points}
        estimates = ((found.estimates[name], scale) for name, scale in statistics.items())
        return [
            found.pairs,
            None if between is None else Cell(known(between.value), ALPHA, note=between.reason or ""),
            *(
                Cell(known(one.value), scale, known(one.low), known(one.high), n=found.pairs, note=one.reason or "")
                for one, scale in estimates
            ),
        ]


def _strata(checked: Sequence[_CheckedRun], field: Field, is_rated: NDArray[np.bool_]) -> list[CultureInTask]:
    """Returns the stratum of each response; its name has the task where the culture has ratings in another one."""
    pairs = [(each.run.run.task, one.culture) for each in checked for one in each.responses]
    tasks_of = Counter(culture for _, culture in set(pairs))
    rated = {culture for (_, culture), is_in in zip(pairs, is_rated, strict=True) if is_in}

    def name(task: str, culture: str) -> str:
        if culture == NO_GROUP:
            return task
        named = field.name_of(culture)
        return f"{named} in {task}" if culture in rated and tasks_of[culture] > 1 else named

    return [CultureInTask(task, culture, name(task, culture)) for task, culture in pairs]


def _ratings(checked: Sequence[_CheckedRun]) -> Floats:
    """Returns the ratings on the scale of the scores, a row per rater and a column per response; NaN without one."""
    raters = dict.fromkeys(rater for each in checked for rater in each.rated.ratings)
    columns: list[Floats] = []
    for each in checked:
        rows = {(row.item, row.run): row.row for row in each.rated.design.rows if row.population == each.place}
        for one in each.responses:
            name = rows.get((one.item, one.run), "")
            given = [each.rated.ratings.get(rater, {}).get(name) for rater in raters]
            columns.append(
                np.array([math.nan if rating is None else on_scale(rating, one.rubric, one.scale) for rating in given])
            )
    return np.stack(columns, axis=1)


def _means_of(raters: Floats) -> Floats:
    """Returns the mean rating of each response; NaN without one."""
    means: Floats = np.ma.masked_invalid(raters).mean(axis=0).filled(np.nan)
    return means


def _rated_responses(units: Sequence[CheckedUnit]) -> Iterator[JudgedResponse]:
    """Yields the rated responses of all runs, once where a run belongs to several units."""
    checked = {each.run.run.key: each._replace(whole=None) for unit in units for each in unit.checked_runs}
    for each in checked.values():
        people = _means_of(_ratings([each])).tolist()
        for response, rating in zip(each.population.responses, people, strict=True):
            if not math.isnan(rating):
                yield JudgedResponse(each.run.run, response, rating)


def _of_sample_alone(checked: _CheckedRun) -> str:
    run, subset, whole = checked.run.run, checked.run.result.subset, checked.run.whole
    assert subset is not None
    who = "another judge" if whole is None else whole.run.settings.judged_by
    file = "" if whole is None else f" ({whole.run.samples_file} is damaged)"
    return (
        f"{run.model} on {title_of(run.task)}: without verdicts of {who} on all {subset.of_documents:,} responses"
        f"{file}, the score and the interval for these questions are of the {subset.documents:,} that "
        f"{run.settings.judged_by} graded."
    )
