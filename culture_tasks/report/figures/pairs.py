"""Paired bars, as of CrossCult-KIBench's Figure 5: a dark and a light one in each group, their difference below."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import in_grid, shape
from culture_tasks.report.figures.style import new_figure, value_axis, values_of, whiskers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles
    from culture_tasks.report.model import Cell

_ACROSS = 3
_COLOURS = ("#0072B2", "#9BD3F5")
_WIDTH = 0.38


def draw_pairs(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, with one legend for all."""
    rows, columns = shape(chart, _ACROSS)
    figure = new_figure(chart, 1.8 + 4.0 * columns, 1.2 + 2.8 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    return in_grid(grid.ravel(), chart, figure, partial(_draw_panel, chart))


def _draw_panel(chart: Chart, axes: Axes, panel: Panel, _: Sequence[str]) -> Handles:
    places = np.arange(len(panel.groups), dtype=np.float64)
    start = panel.scale.low or 0.0
    handles: Handles = {}
    for side, (series, colour) in enumerate(zip(panel.series, _COLOURS, strict=False)):
        cells = [series.cells.get(group) for group in panel.groups]
        handles[series.label] = axes.bar(
            places + (side - 0.5) * _WIDTH,
            values_of(cells) - start,
            _WIDTH,
            bottom=start,
            color=colour,
            edgecolor="0.15",
            linewidth=0.5,
            yerr=whiskers(cells),
            error_kw={"elinewidth": 0.9, "capsize": 3.0, "ecolor": "0.1"},
        )
    _finish(axes, panel, chart)
    return handles


def _finish(axes: Axes, panel: Panel, chart: Chart) -> None:
    differences = panel.series[2].cells if len(panel.series) > 2 else {}
    names = ["\n".join((shown(group, 16), *_difference(differences.get(group)))) for group in panel.groups]
    axes.set_xticks(range(len(names)), names, fontsize=7.5)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_title(shown(panel.title, 44), fontsize=9)
    value_axis(axes, panel.scale, chart.value)


def _difference(cell: Cell | None) -> tuple[str, ...]:
    """Returns a difference and how far its interval reaches, one line each; a paired interval reaches evenly."""
    if cell is None or cell.value is None:
        return ()
    digits = cell.scale.digits
    reach = () if cell.high is None else (f"± {cell.high - cell.value:.{digits}f}",)
    return (f"{cell.value:+.{digits}f}", *reach)
