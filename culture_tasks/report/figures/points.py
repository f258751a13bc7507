"""Points by group, one a model, as in CEDAR's Figures 3 and 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.style import (
    all_labels,
    legend_for_all,
    look,
    new_figure,
    tilted,
    value_axis,
    values_of,
    whiskers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles

_IN_ONE_COLUMN = 3
_WIDTH = 11.0
_PANEL_HEIGHT = 2.7
_SPREAD = 0.62


def draw_points(chart: Chart) -> Figure:
    """Draws panels with the same axes; series stand side by side within a group, in the same order everywhere."""
    columns = 1 if len(chart.panels) <= _IN_ONE_COLUMN else 2
    rows = -(-len(chart.panels) // columns)
    labels = all_labels(chart)
    figure = new_figure(chart, _WIDTH, max(1.0 + _PANEL_HEIGHT * rows, 1.0 + 0.2 * len(labels)))
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel(order="F")
    handles: Handles = {}
    for axes, panel in zip(grid, chart.panels, strict=False):
        handles |= _draw_panel(axes, panel, chart, labels)
    for axes in grid[len(chart.panels) :]:
        axes.set_visible(False)
    legend_for_all(figure, {label: handles[label] for label in labels}, chart.series)
    return figure


def _draw_panel(axes: Axes, panel: Panel, chart: Chart, labels: list[str]) -> Handles:
    places = np.arange(len(panel.groups), dtype=np.float64)
    step = _SPREAD / max(1, len(labels) - 1)
    handles: Handles = {}
    for series in panel.series:
        place = labels.index(series.label)
        offset = place * step - _SPREAD / 2 if len(labels) > 1 else 0.0
        cells = [series.cells.get(group) for group in panel.groups]
        style = look(place)
        handles[series.label] = axes.errorbar(
            places + offset,
            values_of(cells),
            yerr=whiskers(cells),
            color=style.colour,
            marker=style.marker,
            markersize=5,
            markeredgecolor="0.15",
            markeredgewidth=0.4,
            linestyle="none",
            elinewidth=0.8,
        )
    _finish(axes, panel, chart)
    return handles


def _finish(axes: Axes, panel: Panel, chart: Chart) -> None:
    names = [shown(group, 28) for group in panel.groups]
    turn = tilted(names)
    places = range(len(names))
    axes.set_xticks(places, names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(names) - 0.5)
    for border in places[1:]:
        axes.axvline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    axes.set_title(shown(panel.title, 90), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value)
