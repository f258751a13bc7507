"""The figures of a report: its numbers, where each benchmark's figures draw them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, NamedTuple

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import BenchmarkReport, Mark, Number
from culture_tasks.pages.pictures import cleaned
from culture_tasks.report.figures.charts import (
    MARKS,
    Chart,
    ChartPanel,
    Series,
    is_ratio,
    pages,
    panels,
    sorted_by_mean,
    split_panel,
)
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE
from culture_tasks.report.model import Number as Cell
from culture_tasks.vocabulary import place

if TYPE_CHECKING:
    from culture_tasks.benchmarks.reporting import ContrastSpec, FigureSpec
    from culture_tasks.report.figures.charts import Kind
    from culture_tasks.report.model import ModelMeans, Report, Unit

OVERVIEW = "overview"
"""Key of the figure of all models on all benchmarks."""
COUNTRIES = "countries"
"""Key of the heat map of all models by countries."""

_MARK, _OWN_DATA = (f" {mark}" for mark in MARKS)
_MOST_CULTURES = 8
"""Cultures beyond which the highest mean comes first, rather than the order of the benchmark."""
_MOST_ROWS, _MOST_PANELS = 15, 24
"""Models and scores of the overview, and models of the heat map."""
_MOST_COUNTRIES = 28
"""Countries of the heat map."""


def charts(report: Report) -> tuple[Chart, ...]:
    """Returns every figure that the report has numbers for."""
    present = {unit.benchmark for unit in report.units.values()}
    makers = [_Figures(report, name, benchmark.report()) for name, benchmark in benchmarks().items() if name in present]
    figures = [chart for maker in makers for spec in maker.reported.figures for chart in maker.charts(spec)]
    figures += [chart for maker in makers for spec in maker.reported.contrasts for chart in maker.pairs(spec)]
    first = [chart] if (chart := overview(report)) else []
    return *first, *country_charts(report), *(page for figure in figures for page in pages(figure))


def overview(report: Report) -> Chart | None:
    """Returns the figure of the user's models on all headline scores: one panel per score, one row per model."""
    in_mean = report.means[0].columns if report.means else ()
    headline = [unit for unit in report.units.values() if unit.headline]
    columns: list[ModelMeans | Unit] = [*report.means[:1], *sorted(headline, key=lambda unit: unit.key not in in_mean)]
    rows = [key for key in _best_first(report) if any(key in unit.cells for unit in headline)]
    names = _unique({key: cleaned(report.entrants[key].label) for key in rows})
    order, keys = list(report.entrants), rows[:_MOST_ROWS]
    all_panels: list[ChartPanel] = []
    for column in columns:
        cells = {key: cell for key in keys if (cell := column.cells.get(key)) and cell.value is not None}
        is_own = any("own_data" in cell.flags for cell in cells.values())
        series = tuple(Series(names[key], {names[key]: cell}) for key, cell in cells.items())
        best = frozenset(names[key] for key in column.standing.best if key in names)
        title, groups = cleaned(column.title) + (_OWN_DATA if is_own else ""), tuple(names[key] for key in keys)
        if cells:
            all_panels.append(ChartPanel(title, groups, series, best=best))
    if not all_panels:
        return None
    first_panels = all_panels[:_MOST_PANELS]
    is_complete = len(first_panels) == len(all_panels)
    models = "all models" if len(rows) <= _MOST_ROWS else f"{_MOST_ROWS} of {len(rows)} models"
    scores = "all benchmarks" if is_complete else f"{len(first_panels)} of {len(all_panels)} scores"
    has_own_data = any(_OWN_DATA in panel.title for panel in first_panels)
    return Chart(
        key=OVERVIEW,
        title=f"{models} on {scores}".capitalize(),
        source="",
        kind="dots",
        groups="model",
        series="model",
        value="score",
        panels=tuple(first_panels),
        notes=(
            "Lines: 95 % intervals. Filled: no other model is significantly better. Hollow: one is, or it wasn't "
            "tested. Cross: not comparable",
            *([f"{_OWN_DATA.strip()} {FLAG_TEXT['own_data']}"] if has_own_data else []),
            *(["The table has the others"] if len(keys) < len(rows) or not is_complete else []),
        ),
        question="best",
        looks={names[key]: order.index(key) for key in rows},
    )


def _best_first(report: Report) -> list[str]:
    """Returns the user's models by their mean over benchmarks; those without one are the last."""
    means = report.means[0].cells if report.means else {}
    return sorted(report.entrants, key=lambda key: -(means[key].value or 0.0) if key in means else math.inf)


def country_charts(report: Report) -> Iterator[Chart]:
    """Yields the heat map of models by countries; nothing without a country."""
    scores = report.countries
    by_model = {key: [score for score in scores if score.entrant == key] for key in _best_first(report)}
    by_model = {key: model_scores for key, model_scores in by_model.items() if model_scores}
    if not by_model:
        return
    values = [replace(score.cell, row=score.entrant, where=(("country", score.place),)) for score in scores]
    names = _Names(report, BenchmarkReport(), values)
    notes = _notes(values, "heat")
    if len({score.over for score in scores}) > 1:
        notes = (*notes, "Not all models have the same benchmarks; the table says which may be compared")
    counts: dict[str, tuple[int, int]] = {}  # of benchmarks, and of questions
    for score in scores:
        counts[score.place] = max(counts.get(score.place, (0, 0)), (len(score.means), score.cell.n))
    codes = sorted(counts, key=counts.__getitem__, reverse=True)[:_MOST_COUNTRIES]
    all_rows = [
        Series(names.models[key], {place(each.place).name: each.cell for each in model_scores if each.place in codes})
        for key, model_scores in by_model.items()
    ]
    certain = {
        f"{names.models[score.entrant]}, {place(score.place).name}"
        for score in scores
        if score.beside_others is not None
    }
    rows = [series for series in all_rows if series.cells][:_MOST_ROWS]
    has_all = len(rows) == len(by_model) and len(codes) == len(counts)
    panel = ChartPanel("Score, 0-100", tuple(place(code).name for code in codes), tuple(rows), frozenset(certain))
    yield Chart(
        key=COUNTRIES,
        title="Models by countries",
        source="",
        kind="heat",
        groups="country",
        series="model",
        value="score, 0-100",
        panels=(sorted_by_mean(panel),),
        notes=(
            "Bold: significantly above or below the mean of the model's other countries, by their intervals, with "
            "Holm's adjustment over all models and countries",
            *([] if has_all else ["The countries with most benchmarks and questions; the table has all"]),
            *notes,
        ),
    )


class _Figures(NamedTuple):
    """Makes the figures of a benchmark."""

    report: Report
    benchmark: str
    reported: BenchmarkReport

    def charts(self, spec: FigureSpec) -> Iterator[Chart]:
        """Yields a figure, where it has numbers."""
        units = {key: unit for key, unit in self.report.units.items() if unit.benchmark == self.benchmark}
        whole = [cell for unit in units.values() for cell in unit.cells.values()]
        all_values = [
            value
            for value in (*self.report.groups, *whole)
            if value.unit in units and value.statistic == spec.statistic
        ]
        values = [value for value in all_values if value.value is not None]
        names = _Names(self.report, self.reported, values)
        values = [value for value in values if spec.mark(names.number(value)) is not None]
        if not values:
            return
        places, names = _places(self.report, values), _Names(self.report, self.reported, values)
        marks = [
            (mark, value)
            for value in sorted(values, key=lambda value: places[value.row])
            if (mark := spec.mark(names.number(value))) is not None
        ]
        fields = self.reported.groups
        order = dict.fromkeys(group_name(self.reported, name, group) for name in fields for group in fields[name])
        chart_panels = panels(marks, tuple(order))
        are_cultures = any(value.dimension == self.reported.culture for value in values)
        if spec.kind == "dots":
            if are_cultures and max(len(panel.groups) for panel in chart_panels) > _MOST_CULTURES:
                chart_panels = tuple(map(sorted_by_mean, chart_panels))
            chart_panels = tuple(part for panel in chart_panels for part in split_panel(panel))
        notes = _notes(values, spec.kind)
        undefined = [value for value in all_values if value.value is None]
        if spec.undefined and undefined:
            groups = self.reported.field_named(undefined[0].dimension)
            missing = sorted({value.group for value in undefined})
            notes = (*notes, f"{spec.undefined}: {', '.join(map(groups.name_of, missing))}")
        yield Chart(
            **{name: getattr(spec, name) for name in ("key", "title", "source", "kind", "groups", "series", "value")},
            panels=chart_panels,
            notes=notes,
            question=spec.question,
            looks=names.places if spec.series == "model" else {},
        )

    def pairs(self, spec: ContrastSpec) -> Iterator[Chart]:
        """Yields the figures of a contrast, one per statistic: two marks in each group."""
        for statistic, value in spec.values.items():
            matches = [
                (pair, pair.second)
                for pair in self.report.contrasts
                if (pair.kind, pair.statistic) == (spec.kind, statistic)
                and self.report.units[pair.unit].benchmark == self.benchmark
                and pair.dimension not in spec.outside
                and pair.first.value is not None
                and pair.second.value is not None
            ]
            if not matches:
                continue
            values = [second for _, second in matches]
            places, names = _places(self.report, values), _Names(self.report, self.reported, values)
            marks = [
                (Mark(spec.panel(number), label, number.group), cell)
                for pair, second in sorted(matches, key=lambda match: places[match[0].entrant])
                for number in [names.number(second)]
                for label, cell in zip(spec.parts, (pair.first, pair.second), strict=True)
            ]
            yield Chart(
                key=spec.key_of(statistic),
                title=spec.title,
                source=spec.source,
                kind="dots",
                groups=spec.groups,
                series=spec.series,
                value=value,
                panels=panels(marks),
                notes=(*_notes(values), "The table has the paired differences"),
                question="changes",
            )


def _places(report: Report, values: Sequence[Cell]) -> dict[str, tuple[float, int]]:
    """Returns keys that sort a figure's models: the best first, by scores on its units."""
    units = [report.units[key] for key in dict.fromkeys(value.unit for value in values)]
    signs, order = {"higher": -1.0, "lower": 1.0}, list(report.entrants)
    places: dict[str, tuple[float, int]] = {}
    for entrant in {value.row for value in values}:
        scores = [
            signs.get(unit.scale.better or "", 0.0) * cell.value
            for unit in units
            if (cell := unit.cells.get(entrant)) is not None and cell.value is not None
        ]
        places[entrant] = (sum(scores) / len(scores) if scores else math.inf, order.index(entrant))
    return places


# Names, and the notes below a figure


class _Names:
    """Names of models and groups in a figure; models with numbers that can't be compared are marked.

    ``models`` are the names by the rows' keys. ``places`` is the place of each row in the report, by its name: its look
    in every figure depends on it.
    """

    def __init__(self, report: Report, reported: BenchmarkReport, values: Sequence[Cell]) -> None:
        self._units, self._reported = report.units, reported
        incomparable = {value.row for value in values if not value.comparable}
        own_data = {value.row for value in values if "own_data" in value.flags}
        self.models = {
            key: f"{name}{_MARK if key in incomparable else ''}{_OWN_DATA if key in own_data else ''}"
            for key, name in _unique({key: cleaned(row.label) for key, row in report.entrants.items()}).items()
        }
        self.places = {name: place for place, name in enumerate(self.models.values())}

    def number(self, value: Cell) -> Number:
        """Returns a number as the figures of its benchmark see it."""
        return Number(
            unit=value.unit,
            title=cleaned(self._units[value.unit].title),
            model=self.models[value.row],
            dimension=value.dimension,
            group=group_name(self._reported, value.dimension, value.group),
            fixed={
                field: group_name(self._reported, field, group)
                for field, group in value.where
                if field != value.dimension
            },
            metric=self._units[value.unit].metric,
        )


def group_name(reported: BenchmarkReport, dimension: str, group: str) -> str:
    """Returns a group as it is written in a figure."""
    return cleaned(reported.field_named(dimension).name_of(group))


def _unique(names: Mapping[str, str]) -> dict[str, str]:
    """Numbers equal names, so that no row is drawn as part of another."""
    unique_names: dict[str, str] = {}
    for key, name in names.items():
        numbered = (f"{name} ({number})" for number in count(2))
        unique_names[key] = next(text for text in chain([name], numbered) if text not in unique_names.values())
    return unique_names


def _notes(values: Sequence[Cell], kind: Kind = "dots") -> tuple[str, ...]:
    """Returns the notes on a figure's numbers, one line each."""
    cells, notes = values, list[str]()
    flags = {flag for cell in cells for flag in cell.flags}
    if any(cell.low is not None for cell in cells):
        notes.append("Paler: a wider interval" if kind == "heat" else "Lines: 95 % intervals")
    if any(is_ratio(cell.scale) and cell.value == 0 for cell in cells):
        notes.append("The axis is logarithmic: 0 is at its edge")
    if reasons := "; ".join(text for flag, text in FLAG_TEXT.items() if flag in flags & NOT_COMPARABLE):
        notes.append(f"{_MARK.strip()} in part not comparable: {reasons}")
    if "own_data" in flags:
        notes.append(f"{_OWN_DATA.strip()} {FLAG_TEXT['own_data']}")
    if "lexical_judge" in flags:
        notes.append(FLAG_TEXT["lexical_judge"])
    return tuple(notes)
