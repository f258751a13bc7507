"""Grouped bars, as of scores by country: one row of bars for every six series, on one scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.style import (
    legend_beside,
    look,
    name_groups,
    new_figure,
    value_axis,
    values_of,
    whiskers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from culture_tasks.report.figures.charts import Chart, Panel, Series
    from culture_tasks.report.figures.style import Handles, Look

_IN_ONE_ROW = 6
_WIDTH = 10.0
_ROW_HEIGHT = 2.7


def draw_bars(chart: Chart) -> Figure:
    """Draws each panel as rows of at most six series, so that bars stay readable with many models."""
    rows = [(panel, part) for panel in chart.panels for part in _parts(panel)]
    figure = new_figure(chart, _WIDTH, 0.9 + _ROW_HEIGHT * len(rows))
    all_axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for axes, (panel, part) in zip(all_axes, rows, strict=True):
        _draw_row(axes, panel, part, chart)
    return figure


def _parts(panel: Panel) -> Iterator[tuple[Series, ...]]:
    for start in range(0, len(panel.series), _IN_ONE_ROW):
        yield panel.series[start : start + _IN_ONE_ROW]


def _draw_row(axes: Axes, panel: Panel, part: tuple[Series, ...], chart: Chart) -> None:
    width = 0.82 / len(part)
    middle = (len(part) - 1) / 2
    places = np.arange(len(panel.groups), dtype=np.float64)
    handles: Handles = {}
    for number, series in enumerate(part):
        own = places + (number - middle) * width
        handles[series.label] = _draw_series(axes, own, width, panel, series, look(number))
    name_groups(axes, panel.groups)
    axes.set_xlim(-0.6, len(places) - 0.4)
    axes.set_title(shown(panel.title, 90), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value)
    axes.set_ylim(*_range(chart, panel))
    legend_beside(axes, handles, chart.series)


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
