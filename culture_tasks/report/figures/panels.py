"""What figures of many panels share: a grid of axes in one look, one legend for all, and marks with intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from culture_tasks.report.figures.style import (
    all_labels,
    legend_for_all,
    look,
    values_of,
    whiskers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from culture_tasks.report.figures.charts import Chart, Panel, Series
    from culture_tasks.report.figures.style import Handles

    Draw = Callable[[Any, Panel, Sequence[str]], Handles]
    """Draws a panel on its axes, given the labels of all series, and returns what stands in the legend."""

_MOST_ROWS = 4


def shape(chart: Chart, across: int) -> tuple[int, int]:
    """Returns the rows and columns of a grid that has room for every panel.

    Args:
        chart: The chart.
        across: Panels side by side; more where that would make a tall strip of many rows.
    """
    count = len(chart.panels)
    square = math.ceil(math.sqrt(count))
    columns = min(across if count <= _MOST_ROWS * across else max(across, square), count)
    return -(-count // columns), columns


def in_grid(axes: Iterable[Axes], chart: Chart, figure: Figure, draw: Draw) -> Figure:
    """Draws every panel on axes of its own, hides the axes that are left over, and adds one legend for all.

    A series has the same place among the labels, and so the same look, in every panel.
    """
    labels = all_labels(chart)
    handles: Handles = {}
    grid = list(axes)
    for one, panel in zip(grid, chart.panels, strict=False):
        handles |= draw(one, panel, labels)
    for one in grid[len(chart.panels) :]:
        one.set_visible(False)
    legend_for_all(figure, {label: handles[label] for label in labels if label in handles}, chart.series)
    return figure


def draw_marks(
    axes: Axes, places: ArrayLike, series: Series, groups: Sequence[str], place: int, **line: Any
) -> Handles:
    """Draws a series as marks with their intervals, hollow ones where it is published, and returns its legend entry.

    Args:
        axes: Where.
        places: Where each group is.
        series: The series.
        groups: The groups.
        place: The series' place among all, which decides its look.
        line: How the marks are joined, and their whiskers drawn.
    """
    cells = [series.cells.get(group) for group in groups]
    style = look(place)
    marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5} | line
    if series.published:
        marks |= {"markerfacecolor": "white", "markeredgecolor": style.colour, "markeredgewidth": 1.1}
    drawn = axes.errorbar(places, values_of(cells), yerr=whiskers(cells), **marks)
    return {series.label: drawn}
