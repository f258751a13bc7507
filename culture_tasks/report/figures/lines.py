"""Lines over steps, as of retention: what is left of each insertion after later ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import draw_marks, in_grid, shape
from culture_tasks.report.figures.style import look, new_figure, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles

_ACROSS = 3
_APART = 0.06
"""How far series stand from each other at a step, so that none hides another's interval."""


def draw_lines(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, with one legend for all."""
    rows, columns = shape(chart, _ACROSS)
    figure = new_figure(chart, 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    return in_grid(grid.ravel(), chart, figure, partial(_draw_panel, chart))


def _draw_panel(chart: Chart, axes: Axes, panel: Panel, labels: Sequence[str]) -> Handles:
    steps = sorted(panel.groups, key=lambda step: (len(step), step))
    handles: Handles = {}
    for series in panel.series:
        place = labels.index(series.label)
        line = {"linestyle": look(place).dashes, "linewidth": 1.5, "capsize": 3}
        places = np.arange(len(steps)) + _APART * (place - (len(labels) - 1) / 2)
        handles |= draw_marks(axes, places, series, steps, place, **line)
    axes.set_xticks(range(len(steps)), [shown(step, 16) for step in steps])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(chart.groups))
    axes.set_title(shown(panel.title, 48), fontsize=8)
    value_axis(axes, panel.scale, chart.value)
    return handles
