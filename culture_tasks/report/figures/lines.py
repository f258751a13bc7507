"""Lines over steps, as of retention: what is left of each insertion after later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.style import (
    all_labels,
    legend_for_all,
    look,
    new_figure,
    value_axis,
    values_of,
    whiskers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles

_ACROSS = 3


def draw_lines(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, with one legend for all."""
    columns = min(_ACROSS, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    labels = all_labels(chart)
    figure = new_figure(chart, 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    handles: Handles = {}
    for axes, panel in zip(grid, chart.panels, strict=False):
        handles |= _draw_panel(axes, panel, chart, labels)
    for axes in grid[len(chart.panels) :]:
        axes.set_visible(False)
    legend_for_all(figure, {label: handles[label] for label in labels}, chart.series)
    return figure


def _draw_panel(axes: Axes, panel: Panel, chart: Chart, labels: list[str]) -> Handles:
    steps = sorted(panel.groups, key=lambda step: (len(step), step))
    handles: Handles = {}
    for series in panel.series:
        place = labels.index(series.label)
        cells = [series.cells.get(step) for step in steps]
        style = look(place)
        handles[series.label] = axes.errorbar(
            range(len(steps)),
            values_of(cells),
            yerr=whiskers(cells),
            color=style.colour,
            linestyle=style.dashes,
            marker=style.marker,
            markersize=5,
            linewidth=1.5,
            capsize=3,
        )
    axes.set_xticks(range(len(steps)), [shown(step, 16) for step in steps])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(chart.groups))
    axes.set_title(shown(panel.title, 40), fontsize=9)
    value_axis(axes, panel.scale, chart.value)
    return handles
