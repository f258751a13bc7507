"""Heat maps, as of CEDAR's Figure 7: prompt language down, data language across, the number in each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from culture_tasks.report.figures.names import shown
from culture_tasks.report.figures.panels import shape
from culture_tasks.report.figures.style import new_figure, values_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from culture_tasks.report.figures.charts import Chart, Panel, Series

_ACROSS = 2
_SIZE = 4.2


def draw_heat(chart: Chart) -> Figure:
    """Draws the panels in a grid, with the same colours for the same numbers everywhere."""
    from matplotlib.colors import Normalize

    rows, columns = shape(chart, _ACROSS)
    figure = new_figure(chart, 1.4 + _SIZE * columns, 0.9 + _SIZE * rows)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    numbers = [cell.value for panel in chart.panels for cell in panel.cells if cell.value is not None]
    norm = Normalize(min(numbers), max(numbers) if max(numbers) > min(numbers) else min(numbers) + 1)
    images = [_draw_panel(axes, panel, chart, norm) for axes, panel in zip(grid, chart.panels, strict=False)]
    for axes in grid[len(chart.panels) :]:
        axes.set_visible(False)
    figure.colorbar(images[0], ax=list(grid), label=shown(chart.value), shrink=0.7)
    return figure


def _draw_panel(axes: Axes, panel: Panel, chart: Chart, norm: Normalize) -> AxesImage:
    lines = _in_order(panel)
    numbers = np.stack([values_of([line.cells.get(group) for group in panel.groups]) for line in lines])
    image = axes.imshow(np.ma.masked_invalid(numbers), cmap="cividis", norm=norm, aspect="equal")
    axes.set_xticks(range(len(panel.groups)), [shown(group, 16) for group in panel.groups])
    axes.set_yticks(range(len(lines)), [shown(line.label, 16) for line in lines])
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.series))
    axes.set_title(shown(panel.title, 60), fontsize=9)
    _write_numbers(axes, numbers, panel.scale.digits, norm)
    return image


def _write_numbers(axes: Axes, numbers: np.ndarray, digits: int, norm: Normalize) -> None:
    for (row, column), number in np.ndenumerate(numbers):
        if np.isfinite(number):
            ink = "white" if float(norm(number)) < 0.55 else "black"
            axes.text(column, row, f"{number:.{digits}f}", ha="center", va="center", color=ink, fontsize=7)


def _in_order(panel: Panel) -> list[Series]:
    """Returns the rows in the order of the columns, where they bear the same names."""
    place = {group: number for number, group in enumerate(panel.groups)}
    return sorted(panel.series, key=lambda line: place.get(line.label, len(place)))
