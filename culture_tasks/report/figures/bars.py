"""Grouped bars, as of scores by country: one row of bars for every six series, on one scale.

A paper's numbers are hollow marks beside the bars of each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import draw_marks
from culture_tasks.report.figures.style import (
    legend_alone,
    legend_beside,
    look,
    name_groups,
    new_figure,
    value_axis,
    values_of,
    whiskers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from culture_tasks.report.figures.charts import Chart, Panel, Series
    from culture_tasks.report.figures.style import Handles, Look

_IN_ONE_ROW = 6
_WIDTH = 10.0
_ROW_HEIGHT = 2.7
_BARS = 0.82
_GAP = 0.05
_MARK = 0.025
_MARKS = 0.38
_ACROSS = 4
_LINE = 0.2


def draw_bars(chart: Chart) -> Figure:
    """Draws each panel as rows of at most six series, so that bars stay readable with many models."""
    rows = [(panel, part) for panel in chart.panels for part in _parts(panel)]
    papers = [label for label, published in _labels(chart).items() if published]
    heights = [_ROW_HEIGHT] * len(rows) + ([_LINE * (2 + -(-len(papers) // _ACROSS))] if papers else [])
    figure = new_figure(chart, _WIDTH, 0.9 + sum(heights))
    all_axes = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    marks: Handles = {}
    for axes, (panel, part) in zip(all_axes, rows, strict=False):
        _draw_row(axes, panel, part, chart, _beside(panel, papers))
        marks |= _draw_papers(axes, panel, papers)
    if papers:
        legend_alone(all_axes[-1], {label: marks[label] for label in papers}, "published", _ACROSS)
    return figure


def _labels(chart: Chart) -> dict[str, bool]:
    """Returns the labels of all series, and whether each is published."""
    return {series.label: series.published for panel in chart.panels for series in panel.series}


def _parts(panel: Panel) -> Iterator[tuple[Series, ...]]:
    own = tuple(series for series in panel.series if not series.published)
    for start in range(0, max(1, len(own)), _IN_ONE_ROW):
        yield own[start : start + _IN_ONE_ROW]


def _beside(panel: Panel, papers: Sequence[str]) -> float:
    """Returns the room of a group that a paper's marks take from the bars."""
    any_here = any(series.published for series in panel.series)
    return min(_MARKS, _GAP + _MARK * len(papers)) if any_here else 0.0


def _draw_row(axes: Axes, panel: Panel, part: tuple[Series, ...], chart: Chart, beside: float) -> None:
    width = (_BARS - beside) / max(1, len(part))
    places = np.arange(len(panel.groups), dtype=np.float64)
    handles: Handles = {}
    for number, series in enumerate(part):
        own = places - _BARS / 2 + (number + 0.5) * width
        handles[series.label] = _draw_series(axes, own, width, panel, series, look(number))
    name_groups(axes, panel.groups)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_title(shown(panel.title, 90), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value)
    axes.set_ylim(*_range(chart, panel))
    if handles:
        legend_beside(axes, handles, chart.series)


def _draw_papers(axes: Axes, panel: Panel, papers: Sequence[str]) -> Handles:
    """Draws a paper's rows beside the bars, each at the same place and with the same look in every group and panel."""
    last = _BARS / 2
    first = last - _beside(panel, papers) + _GAP
    step = (last - first) / max(1, len(papers) - 1)
    handles: Handles = {}
    for series in panel.series:
        if series.published:
            place = papers.index(series.label)
            places = np.arange(len(panel.groups)) + first + place * step
            handles |= draw_marks(axes, places, series, panel.groups, place, linestyle="none")
    return handles


def _draw_series(
    axes: Axes, places: NDArray[np.float64], width: float, panel: Panel, series: Series, style: Look
) -> BarContainer:
    cells = [series.cells.get(group) for group in panel.groups]
    start = _start(panel)
    return axes.bar(
        places,
        values_of(cells) - start,
        width,
        bottom=start,
        color=style.colour,
        hatch=style.hatch,
        edgecolor="0.15",
        linewidth=0.5,
        yerr=whiskers(cells),
        error_kw={"elinewidth": 0.9, "capsize": min(3.0, 14 * width), "ecolor": "0.1"},
    )


def _start(panel: Panel) -> float:
    """Returns where bars begin: at the neutral value of a bias, else at the lowest value that is possible."""
    scale = panel.scale
    return scale.neutral if scale.neutral is not None else scale.low if scale.low is not None else 0.0


def _range(chart: Chart, panel: Panel) -> tuple[float, float]:
    """Returns the values that the axes of a panel show: the same in all panels, and none that is impossible."""
    scale, start = panel.scale, _start(panel)
    alike = [one for one in chart.panels if one.scale == scale]
    cells = [cell for one in alike for cell in one.cells]
    ends = [end for cell in cells for end in (cell.value, cell.low, cell.high) if end is not None]
    low, high = min(*ends, start), max(*ends, start)
    margin = 0.06 * (high - low or 1.0)
    bottom = low - margin if low < start else low
    top = high + margin
    return (
        bottom if scale.low is None else max(bottom, scale.low),
        top if scale.high is None else min(top, scale.high),
    )
