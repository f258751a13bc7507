"""Radar charts, as of CEDAR's Figure 4: one small chart a model, one closed line a language."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import in_grid, shape
from culture_tasks.report.figures.style import look, new_figure, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles

_ACROSS = 3
_SIZE = 3.6


def draw_radar(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, with one legend for all."""
    rows, columns = shape(chart, _ACROSS)
    figure = new_figure(chart, 1.0 + max(4.5, _SIZE * columns), 1.2 + _SIZE * rows)
    grid = figure.subplots(rows, columns, squeeze=False, subplot_kw={"projection": "polar"})
    top = max(float(cell.value) for panel in chart.panels for cell in panel.cells if cell.value is not None)
    return in_grid(grid.ravel(), chart, figure, partial(_draw_panel, top))


def _draw_panel(top: float, axes: PolarAxes, panel: Panel, labels: Sequence[str]) -> Handles:
    angles = np.linspace(0, 2 * np.pi, len(panel.groups), endpoint=False)
    handles: Handles = {}
    for series in panel.series:
        place = labels.index(series.label)
        values = values_of([series.cells.get(group) for group in panel.groups])
        style = look(place)
        (handles[series.label],) = axes.plot(
            np.append(angles, angles[:1]),
            np.append(values, values[:1]),
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.3,
            marker=style.marker,
            markersize=3,
        )
    _finish(axes, panel, angles, top)
    return handles


def _finish(axes: PolarAxes, panel: Panel, angles: np.ndarray, top: float) -> None:
    axes.set_theta_direction(-1)
    axes.set_theta_zero_location("N")
    axes.set_xticks(angles, [shown(group, 16) for group in panel.groups], fontsize=6.5)
    axes.tick_params(axis="y", labelsize=6)
    axes.set_ylim(0, top * 1.05 or 1.0)
    axes.grid(color="0.85", linewidth=0.5)
    neutral = panel.scale.neutral
    if neutral is not None:
        circle = np.linspace(0, 2 * np.pi, 181)
        axes.plot(circle, np.full_like(circle, neutral), color="0.25", linewidth=0.9, zorder=1.5)
    axes.set_title(shown(panel.title, 44), fontsize=8)
