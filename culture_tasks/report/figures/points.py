"""Points by group, one a model, as in CEDAR's Figures 3 and 6."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import draw_marks, in_grid, shape
from culture_tasks.report.figures.style import all_labels, name_groups, new_figure, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles

_IN_ONE_COLUMN = 3
_WIDTH = 11.0
_PANEL_HEIGHT = 2.7
_SPREAD = 0.62
_MARKS = {"linestyle": "none", "elinewidth": 0.8, "markeredgewidth": 0.4, "markeredgecolor": "0.15"}


def draw_points(chart: Chart) -> Figure:
    """Draws panels with the same axes; series stand side by side within a group, in the same order everywhere."""
    rows, columns = shape(chart, 1 if len(chart.panels) <= _IN_ONE_COLUMN else 2)
    figure = new_figure(chart, _WIDTH, max(1.0 + _PANEL_HEIGHT * rows, 1.0 + 0.2 * len(all_labels(chart))))
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    return in_grid(grid.ravel(order="F"), chart, figure, partial(_draw_panel, chart))


def _draw_panel(chart: Chart, axes: Axes, panel: Panel, labels: Sequence[str]) -> Handles:
    places = np.arange(len(panel.groups), dtype=np.float64)
    step = _SPREAD / max(1, len(labels) - 1)
    handles: Handles = {}
    for series in panel.series:
        place = labels.index(series.label)
        offset = place * step - _SPREAD / 2 if len(labels) > 1 else 0.0
        handles |= draw_marks(axes, places + offset, series, panel.groups, place, **_MARKS)
    _finish(axes, panel, chart)
    return handles


def _finish(axes: Axes, panel: Panel, chart: Chart) -> None:
    name_groups(axes, panel.groups)
    axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    for border in range(1, len(panel.groups)):
        axes.axvline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    axes.set_title(shown(panel.title, 90), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value)
