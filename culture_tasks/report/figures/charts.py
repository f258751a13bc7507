"""Figures as plain values: panels of series over groups. Drawing and the page's text alternatives read these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.benchmarks.reporting import Mark, Question
    from culture_tasks.report.model import Cell

Kind = Literal["overview", "bars", "points", "dots", "heat", "lines", "pairs", "matrix"]

MARKS = ("†", "‡")
"""Marks behind names with numbers that can't be compared, and with numbers on own data; a note begins with its mark."""
MOST_SERIES = 12
"""Most series of a panel: with more, colours and marks can't be told apart."""
IN_ONE_COLUMN = 3
"""Panels of bars and points that have the whole width; more are placed in two columns."""
_FEW_PAPERS, _MOST_TITLES = 2, 6
"""Papers' series that are drawn without a band, in each panel; panels that the description of a figure names."""
_MOST_PANELS = 12
"""Panels that a page has room for: those of one, two, three or four per model end with a model."""
_MOST_ROWS = 400
"""Marks of ordered dots that a page has room for, one per line."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a legend, or one row of a heat map: its numbers by group."""

    label: str
    cells: Mapping[str, Cell]

    @property
    def published(self) -> bool:
        """Whether its numbers are a paper's."""
        return any("published" in cell.flags for cell in self.cells.values())


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """One pair of axes: series over groups.

    Attributes:
        groups: The groups, in order.
        band: Published series of which only the range is drawn, from the lowest to the highest of each group.
        best: Labels of the series that no other is significantly better than, where that is known.
    """

    title: str
    groups: tuple[str, ...]
    series: tuple[Series, ...]
    band: tuple[Series, ...] = ()
    best: frozenset[str] = frozenset()

    @property
    def cells(self) -> Iterator[Cell]:
        """Every number of the panel."""
        return (cell for series in (*self.series, *self.band) for cell in series.cells.values())

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
        values = [
            (cell.value, f"{series.label}, {group}")
            for panel in self.panels
            for series in panel.series
            for group, cell in series.cells.items()
            if cell.value is not None
        ]
        if self.kind in ("pairs", "overview") or not values:  # of published models alone there may be a band, no marks
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


def panels(marks: Iterable[tuple[Mark, Cell]], order: tuple[str, ...] = ()) -> tuple[ChartPanel, ...]:
    """Sorts numbers into panels, series and groups as they first come; the groups of ``order`` come before others."""
    lines_by_panel: dict[str, dict[str, dict[str, Cell]]] = {}
    for mark, cell in marks:
        lines_by_panel.setdefault(mark.panel, {}).setdefault(mark.series, {}).setdefault(mark.group, cell)
    chart_panels: list[ChartPanel] = []
    for title, lines in lines_by_panel.items():
        groups = dict.fromkeys(group for line in lines.values() for group in line)
        ordered = (*(group for group in order if group in groups), *(group for group in groups if group not in order))
        chart_panels.append(ChartPanel(title, ordered, tuple(Series(*line) for line in lines.items())))
    return tuple(chart_panels)


def split_panel(panel: ChartPanel) -> Iterator[ChartPanel]:
    """Yields panels with at most a dozen of a panel's series each; of papers' too many series the range is drawn."""
    if len(panel.series) <= MOST_SERIES:
        yield panel
        return
    models = tuple(series for series in panel.series if not series.published)
    papers = tuple(series for series in panel.series if series.published)
    band, marks = (papers, ()) if len(papers) > _FEW_PAPERS else ((), papers)
    parts = -(-len(models) // (MOST_SERIES - len(marks))) or 1
    size = -(-len(models) // parts)
    for part in range(parts):
        title = panel.title if parts == 1 else f"{panel.title} ({part + 1} of {parts})"
        yield ChartPanel(title, panel.groups, (*models[part * size : (part + 1) * size], *marks), band)


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
    """Returns a panel with its groups in the order of their means over the user's series, the highest first."""
    models = [series for series in panel.series if not series.published] or panel.series

    def mean(group: str) -> float:
        values = [cell.value for series in models if (cell := series.cells.get(group)) and cell.value is not None]
        return sum(values) / len(values) if values else float("-inf")

    return replace(panel, groups=tuple(sorted(panel.groups, key=mean, reverse=True)))
