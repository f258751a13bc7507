"""The figures of a report: its numbers, where each benchmark's figures draw them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from culture_tasks.benchmarks.registry import benchmarks
from culture_tasks.benchmarks.reporting import Mark, Number
from culture_tasks.pages.names import cleaned
from culture_tasks.report.figures.charts import IN_ONE_COLUMN, Chart, Panel, Series, by_mean, limited, pages, panels
from culture_tasks.report.figures.style import is_ratio
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE, GroupValue
from culture_tasks.report.numbers.observations import SCORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from culture_tasks.benchmarks.reporting import BenchmarkReport, ContrastOf, FigureOf
    from culture_tasks.report.figures.charts import Kind
    from culture_tasks.report.model import Cell, Contrast, ModelMeans, Report, Unit

DIFFERENCE = "Difference"
"""Label of the third series of a contrast's panel, which is written and not drawn."""

_MARK = " †"
_OWN_DATA = " ‡"
_WITH_INTERVALS: frozenset[Kind] = frozenset(("bars", "points", "dots", "lines", "pairs"))
_MOST_CULTURES = 8
"""Cultures beyond which ordered dots, one row each, are read more easily than bars."""
_MOST_MARKS: Mapping[Kind, tuple[int, int]] = {"bars": (50, 50), "points": (100, 60)}
"""Marks that fit side by side into a panel of the whole and of half the width; more stand one below the other."""


def charts(report: Report, *, published: bool = False) -> tuple[Chart, ...]:
    """Returns every figure that the report has numbers for.

    Args:
        report: The report.
        published: Whether rows from papers are drawn beside the user's.
    """
    ran = {unit.benchmark for unit in report.units.values()}
    own = [
        _Figures(report, name, benchmark.report(), published) for name, benchmark in benchmarks().items() if name in ran
    ]
    figures = [chart for of in own for spec in of.reported.figures for chart in of.charts(spec)]
    figures += [
        chart
        for of in own
        for contrast in of.reported.contrasts
        for statistic in contrast.values
        for chart in of.pairs(contrast, statistic)
    ]
    whole = overview(report)
    return (*([whole] if whole else []), *(page for figure in figures for page in pages(figure)))


_MOST_ROWS = 15
_MOST_PANELS = 24

OVERVIEW = "overview"
"""Key of the figure of all models on all benchmarks."""


def overview(report: Report) -> Chart | None:
    """Returns the figure of the user's models on all headline scores: one panel a score, one row a model."""
    mean = next(iter(report.means), None)
    headline = [unit for unit in report.units.values() if unit.headline]
    headline.sort(key=lambda unit: mean is None or unit.key not in mean.columns)
    columns: list[ModelMeans | Unit] = [*report.means[:1], *headline]
    means = mean.cells if mean else {}
    rows = [key for key, row in report.entrants.items() if not row.published and any(key in u.cells for u in headline)]
    rows.sort(key=lambda key: -(means[key].value or 0.0) if key in means else math.inf)
    names = _told_apart({key: cleaned(report.entrants[key].label) for key in rows})
    order = list(report.entrants)
    found: list[Panel] = []
    for column in columns:
        cells = {key: cell for key in rows[:_MOST_ROWS] if (cell := column.cells.get(key)) and cell.value is not None}
        series = tuple(Series(names[key], {names[key]: cell}) for key, cell in cells.items())
        if series:
            groups = tuple(names[key] for key in rows[:_MOST_ROWS])
            best = frozenset(names[key] for key in column.standing.best if key in names)
            is_own = any("own_data" in cell.flags for cell in cells.values())
            found.append(Panel(cleaned(column.title) + (_OWN_DATA if is_own else ""), groups, series, best=best))
    if not found:
        return None
    shown = found[:_MOST_PANELS]
    models = "all models" if len(rows) <= _MOST_ROWS else f"{_MOST_ROWS} of {len(rows)} models"
    scores = "all benchmarks" if len(shown) == len(found) else f"{len(shown)} of {len(found)} scores"
    left_out = len(rows) > _MOST_ROWS or len(shown) < len(found)
    return Chart(
        key=OVERVIEW,
        title=f"{models} on {scores}".capitalize(),
        source="",
        kind="overview",
        groups="model",
        series="model",
        value="score",
        panels=tuple(shown),
        notes=(
            "Lines: 95 % intervals. Filled: no other model is significantly better. Hollow: one is, or it wasn't "
            "tested. Cross: not comparable",
            *([f"{_OWN_DATA.strip()} {FLAG_TEXT['own_data']}"] if any(_OWN_DATA in one.title for one in shown) else []),
            *(["The table has the others"] if left_out else []),
        ),
        question="best",
        looks={names[key]: order.index(key) for key in rows},
    )


def _places(report: Report, values: Sequence[GroupValue]) -> dict[str, tuple[bool, float, int]]:
    """Returns what sorts the models of a figure: the best first, by its scores on the figure's units; papers last."""
    units = [report.units[key] for key in dict.fromkeys(value.unit for value in values)]
    signs, order = {"higher": -1.0, "lower": 1.0}, list(report.entrants)

    def place(entrant: str) -> tuple[bool, float, int]:
        scores = [
            signs.get(unit.scale.better or "", 0.0) * cell.value
            for unit in units
            if (cell := unit.cells.get(entrant)) is not None and cell.value is not None
        ]
        mean = sum(scores) / len(scores) if scores else math.inf
        return report.entrants[entrant].published, mean, order.index(entrant)

    return {entrant: place(entrant) for entrant in {value.entrant for value in values}}


@dataclass(frozen=True, slots=True)
class _Figures:
    """Makes the figures of a benchmark.

    Attributes:
        report: The report.
        benchmark: Name of the benchmark.
        reported: How it is reported.
        published: Whether rows from papers are drawn beside the user's.
    """

    report: Report
    benchmark: str
    reported: BenchmarkReport
    published: bool

    def charts(self, spec: FigureOf) -> Iterator[Chart]:
        """Yields a figure; numbers on own data move to one by themselves where it has published ones."""
        values = self._values(spec)
        own = [value for value in values if "own_data" in value.cell.flags]
        if own and any("published" in value.cell.flags for value in values):
            yield self._chart(spec, [value for value in values if "own_data" not in value.cell.flags])
            spec, values = replace(spec, key=f"{spec.key}_own_data", title=f"{spec.title}, own data"), own
        if values:
            yield self._chart(spec, values)

    def _values(self, spec: FigureOf) -> list[GroupValue]:
        """Returns the numbers that a figure draws."""
        units = {key: unit for key, unit in self.report.units.items() if unit.benchmark == self.benchmark}
        whole = [
            GroupValue(key, entrant, statistic=SCORE, dimension="", group="", cell=cell)
            for key, unit in units.items()
            for entrant, cell in unit.cells.items()
        ]
        values = [
            value
            for value in (*self.report.groups, *whole)
            if value.unit in units
            and value.statistic == spec.statistic
            and value.cell.value is not None
            and (self.published or not self.report.entrants[value.entrant].published)
        ]
        names = _Names(self.report, self.reported, values)
        return [value for value in values if spec.mark(names.number(value)) is not None]

    def _chart(self, spec: FigureOf, values: Sequence[GroupValue]) -> Chart:
        places, names = _places(self.report, values), _Names(self.report, self.reported, values)
        marked = [
            (mark, value.cell)
            for value in sorted(values, key=lambda value: places[value.entrant])
            if (mark := spec.mark(names.number(value))) is not None
        ]
        fields = self.reported.fields
        order = dict.fromkeys(group_name(self.reported, field.name, group) for field in fields for group in field.order)
        found = panels(marked, tuple(order))
        kind: Kind = spec.kind
        are_cultures = any(value.dimension == self.reported.culture for value in values)
        if kind == "bars" and are_cultures and max(len(one.groups) for one in found) > _MOST_CULTURES:
            kind, found = "dots", tuple(map(by_mean, found))
        if kind != "heat":
            found = tuple(part for one in found for part in limited(one))
        if kind in _MOST_MARKS:
            most = _MOST_MARKS[kind][len(found) > IN_ONE_COLUMN]
            kind = "dots" if max(len(one.groups) * len(one.series) for one in found) > most else kind
        has_band = any(one.band for one in found)
        return Chart(
            key=spec.key,
            title=spec.title,
            source=spec.source,
            kind=kind,
            groups=spec.groups,
            series=spec.series,
            value=spec.value,
            panels=found,
            notes=_notes(self.report, kind, values=values, published=self.published, band=has_band),
            question=spec.question,
            looks=names.places if spec.series == "model" else {},
        )

    def pairs(self, contrast: ContrastOf, statistic: str) -> Iterator[Chart]:
        """Yields the figure of a contrast: two marks and their difference in each group."""
        found = [
            one
            for one in self.report.contrasts
            if (one.kind, one.statistic) == (contrast.kind, statistic)
            and self.report.units[one.unit].benchmark == self.benchmark
            and one.dimension not in contrast.outside
            and one.first.value is not None
            and one.second.value is not None
        ]
        if not found:
            return
        values = [_value(one, cell) for one in found for cell in (one.second, one.first)]
        places, names = _places(self.report, values), _Names(self.report, self.reported, values)
        marked: list[tuple[Mark, Cell]] = []
        for one in sorted(found, key=lambda one: places[one.entrant]):
            number = names.number(_value(one, one.second))
            for label, cell in zip((*contrast.parts, DIFFERENCE), (one.first, one.second, one.difference), strict=True):
                marked.append((Mark(contrast.panel(number), label, number.group), cell))
        first, second = contrast.parts
        known = any(one.difference.value is not None for one in found)
        beside = f"At the right: {second} less {first} on common items, with its paired 95 % interval"
        yield Chart(
            key=contrast.key_of(statistic),
            title=contrast.title,
            source=contrast.source,
            kind="pairs",
            groups=contrast.groups,
            series=contrast.series,
            value=contrast.values[statistic],
            panels=panels(marked),
            notes=(*_notes(self.report, "pairs", values, published=True), *([beside] if known else [])),
            question="changes",
        )


def _value(one: Contrast, cell: Cell) -> GroupValue:
    return GroupValue(
        one.unit, one.entrant, statistic=one.statistic, dimension=one.dimension, group=one.group, cell=cell
    )


# Names, and what stands below a figure


class _Names:
    """Names of models and groups in a figure; models with numbers that can't be compared are marked."""

    def __init__(self, report: Report, reported: BenchmarkReport, values: Sequence[GroupValue]) -> None:
        self._report, self._reported = report, reported
        self._marked = {value.entrant for value in values if not value.cell.comparable}
        self._own_data = {value.entrant for value in values if "own_data" in value.cell.flags}
        drawn = {value.entrant for value in values}
        rows = {key: row for key, row in report.entrants.items() if key in drawn or not row.published}
        self._names = _told_apart({key: cleaned(row.label) for key, row in rows.items()})

    @property
    def places(self) -> dict[str, int]:
        """The place of each row in the report, by its name: what its look depends on, in every figure."""
        order = list(self._report.entrants)
        return {self._marked_name(key): order.index(key) for key in self._names}

    def _marked_name(self, entrant: str) -> str:
        marks = (_MARK, entrant in self._marked), (_OWN_DATA, entrant in self._own_data)
        return self._names[entrant] + "".join(mark for mark, is_marked in marks if is_marked)

    def number(self, value: GroupValue) -> Number:
        """Returns a number as the figures of its benchmark see it."""
        held = {field: group for field, group in value.cell.where if field != value.dimension}
        return Number(
            unit=value.unit,
            title=cleaned(self._report.units[value.unit].title),
            model=self._marked_name(value.entrant),
            dimension=value.dimension,
            group=group_name(self._reported, value.dimension, value.group),
            held={field: group_name(self._reported, field, group) for field, group in held.items()},
        )


def group_name(reported: BenchmarkReport, dimension: str, group: str) -> str:
    """Returns a group as it is written in a figure."""
    return cleaned(reported.field_named(dimension).name_of(group))


def _told_apart(names: Mapping[str, str]) -> dict[str, str]:
    """Numbers names that look alike, so that no row is drawn as part of another."""
    seen: Counter[str] = Counter()
    found: dict[str, str] = {}
    for key, name in names.items():
        seen[name] += 1
        found[key] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return found


def _notes(
    report: Report, kind: Kind, values: Sequence[GroupValue], *, published: bool, band: bool = False
) -> tuple[str, ...]:
    """Returns what a reader must know of a figure's numbers, one line each."""
    flags = {flag for value in values for flag in value.cell.flags}
    reasons = "; ".join(text for flag, text in FLAG_TEXT.items() if flag in flags & NOT_COMPARABLE)
    lexical = (FLAG_TEXT["lexical_judge"],) if "lexical_judge" in flags else ()
    marked = (f"† in part not comparable: {reasons}",) if reasons else ()
    own = (f"{_OWN_DATA.strip()} {FLAG_TEXT['own_data']}",) if "own_data" in flags else ()
    known = kind in _WITH_INTERVALS and any(value.cell.low is not None for value in values)
    intervals = ("Error bars: 95 % intervals",) if known else ()
    at_edge = any(is_ratio(value.cell.scale) and value.cell.value == 0 for value in values)
    edge = ("The axis is logarithmic: 0 stands at its edge",) if at_edge else ()
    papers: tuple[str, ...] = ()
    if band:
        papers = ("Grey: from the lowest to the highest of the published models, which were not measured here",)
    elif "published" in flags and kind in _WITH_INTERVALS:
        papers = ("Hollow: published by the paper, not measured here, and without an interval",)
    elif not published and any(row.published for row in report.entrants.values()):
        papers = ("Rows from papers are not drawn",)
    return (*intervals, *edge, *marked, *own, *lexical, *papers)
