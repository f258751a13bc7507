"""Figures as plain values: panels of series over groups. Drawing and the page's text alternatives read these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.benchmarks.reporting import Mark, Question
    from culture_tasks.report.model import Number

Kind = Literal["dots", "heat", "lines"]
"""Marks with intervals, a row per group; colours, a row per series and a column per group; lines over steps."""

MARKS = ("†", "‡")
"""Marks behind names with numbers that can't be compared, and with numbers on own data; a note begins with its mark."""
MOST_SERIES = 12
"""Most series of a panel: with more, colours and marks can't be told apart."""
_MOST_TITLES = 6
"""Panels that the description of a figure names."""
_MOST_PANELS, _MOST_ROWS = 12, 400
"""Panels, and marks of dots one below the other, that one figure has room for."""


@dataclass(frozen=True, slots=True)
class Series:
    """One entry of a legend, or one row of a heat map: its numbers by group."""

    label: str
    cells: Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One pair of axes: series over groups, in order.

    Attributes:
        best: Labels of the series that no other is significantly better than; None where that isn't shown.
    """

    title: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    best: frozenset[str] | None = None

    @property
    def cells(self) -> Iterator[Number]:
        """Every number of the panel."""
        return (cell for series in self.series for cell in series.cells.values())

    @property
    def scale(self) -> Scale:
        """The scale of its numbers; a panel has at least one."""
        return next(self.cells).scale


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure, of at least one panel.

    Attributes:
        source: The paper's figure that it follows; may be empty.
        groups: The groups in a word, such as ``country``.
        series: The series in a word, such as ``model``.
        value: The numbers in words, such as ``accuracy``.
        looks: The number of each series' look, by its label: the same model has the same one in every figure.
    """

    key: str
    title: str
    source: str
    kind: Kind
    groups: str
    series: str
    value: str
    panels: tuple[ChartPanel, ...]
    notes: tuple[str, ...] = ()
    question: Question = "cultures"
    looks: Mapping[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """The labels of all series, each once: a series looks the same in every panel."""
        return list(dict.fromkeys(series.label for panel in self.panels for series in panel.series))

    def look_of(self, label: str) -> int:
        """Returns the number that decides the look of a series."""
        return self.looks[label] if label in self.looks else self.labels.index(label)

    @property
    def description(self) -> str:
        """The words for a reader who doesn't see the figure, before its numbers."""
        titles = [panel.title for panel in self.panels]
        more = f" and {len(titles) - _MOST_TITLES} more" if len(titles) > _MOST_TITLES else ""
        panels = f"{len(titles)} panels: {'; '.join(titles[:_MOST_TITLES])}{more}" if len(titles) > 1 else "One panel"
        text = f"{self.title}. {panels}. {self.value} by {self.groups}, one {self.series} a series."
        scales = {panel.scale for panel in self.panels}
        values = [
            (cell.value, f"{series.label}, {group}")
            for panel in self.panels
            for series in panel.series
            for group, cell in series.cells.items()
            if cell.value is not None
        ]
        if len(scales) > 1 or not values:
            return text
        ends = [f"{number(value, self.panels[0].scale)} ({name})" for value, name in (min(values), max(values))]
        return f"{text} Lowest {ends[0]}, highest {ends[1]}."

    @property
    def texts(self) -> Iterator[str]:
        """Every text that is drawn."""
        yield from (self.title, self.groups, self.series, self.value, *self.notes)
        for panel in self.panels:
            yield from (panel.title, *panel.groups, *(series.label for series in panel.series))


def is_ratio(scale: Scale) -> bool:
    """Whether numbers are ratios: from 0 without an end, and neutral in between, so that 1/2 is as far off as 2."""
    return scale.low == 0.0 and scale.high is None and scale.neutral is not None and scale.neutral > 0.0


def panels(marks: Iterable[tuple[Mark, Number]], order: tuple[str, ...] = ()) -> tuple[ChartPanel, ...]:
    """Sorts numbers into panels, series and groups as they first come; the groups of ``order`` come before others."""
    lines_by_panel: dict[str, dict[str, dict[str, Number]]] = {}
    for mark, cell in marks:
        lines_by_panel.setdefault(mark.panel, {}).setdefault(mark.series, {}).setdefault(mark.group, cell)
    chart_panels: list[ChartPanel] = []
    for title, lines in lines_by_panel.items():
        groups = dict.fromkeys(group for line in lines.values() for group in line)
        ordered = (*(group for group in order if group in groups), *(group for group in groups if group not in order))
        chart_panels.append(ChartPanel(title, ordered, tuple(Series(*line) for line in lines.items())))
    return tuple(chart_panels)


def split_panel(panel: ChartPanel) -> Iterator[ChartPanel]:
    """Yields panels with at most a dozen of a panel's series each."""
    parts = -(-len(panel.series) // MOST_SERIES)
    size = -(-len(panel.series) // parts)
    for part in range(parts):
        title = panel.title if parts == 1 else f"{panel.title} ({part + 1} of {parts})"
        yield replace(panel, title=title, series=panel.series[part * size : (part + 1) * size])


def pages(chart: Chart) -> Iterator[Chart]:
    """Yields the figures that show a chart's panels, with so many in each that they can be read.

    A note that explains a mark is kept only where the mark is.
    """
    rows = sum(len(panel.groups) * len(panel.series) for panel in chart.panels) if chart.kind == "dots" else 0
    size = min(_MOST_PANELS, -(-len(chart.panels) // (-(-rows // _MOST_ROWS) or 1)))
    parts = [chart.panels[start : start + size] for start in range(0, len(chart.panels), size)]
    for page, part in enumerate(parts, start=1):
        key = chart.key if page == 1 else f"{chart.key}_{page}"
        title = chart.title if len(parts) == 1 else f"{chart.title} ({page} of {len(parts)})"
        figure = replace(chart, key=key, title=title, panels=part, notes=())
        texts = "".join(figure.texts)
        yield replace(figure, notes=tuple(note for note in chart.notes if note[0] not in MARKS or note[0] in texts))


def sorted_by_mean(panel: ChartPanel) -> ChartPanel:
    """Returns a panel with its groups in the order of their means over the series, the highest first."""

    def mean(group: str) -> float:
        values = [cell.value for series in panel.series if (cell := series.cells.get(group)) and cell.value is not None]
        return sum(values) / len(values) if values else float("-inf")

    return replace(panel, groups=tuple(sorted(panel.groups, key=mean, reverse=True)))
