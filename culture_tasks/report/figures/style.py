"""Parts of figures of all kinds: marks and their intervals, axes and names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from culture_tasks.pages.pictures import look, shown
from culture_tasks.report.figures.charts import is_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, ChartPanel, Series
    from culture_tasks.report.model import Cell

    Handles = dict[str, Any]
    """The entries of a legend, by the series' labels."""

BAND = "range of published models"
"""The legend's entry for the grey band."""

_LEAST_RATIO = 0.1
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def values_of(cells: Sequence[Cell | None]) -> NDArray[np.float64]:
    """Returns the cells' values, NaN where there is none."""
    return np.array([np.nan if cell is None or cell.value is None else cell.value for cell in cells], dtype=np.float64)


def whiskers(cells: Sequence[Cell | None]) -> NDArray[np.float64] | None:
    """Returns how far intervals reach below and above the values: two rows, NaN without one; None without any."""
    lengths = [
        (np.nan, np.nan)
        if cell is None or cell.value is None or cell.low is None or cell.high is None
        else (max(0.0, cell.value - cell.low), max(0.0, cell.high - cell.value))
        for cell in cells
    ]
    reach = np.array(lengths, dtype=np.float64).reshape(-1, 2).T
    return None if np.isnan(reach).all() else reach


def lowest_ratio(chart: Chart) -> float:
    """Returns the lower edge of a logarithmic axis: smaller numbers, such as 0, are drawn there."""
    positive = [cell.value for panel in chart.panels for cell in panel.cells if cell.value]
    return min(_LEAST_RATIO, min(positive, default=1.0) / 1.25)


def panel_title(axes: Axes, panel: ChartPanel, longest: int, **font: Any) -> None:
    """Writes a panel's title, in lines of its parts where it is longer than one line."""
    parts = [panel.title] if len(panel.title) <= longest else panel.title.split(" · ")
    axes.set_title("\n".join(shown(part, longest) for part in parts), **({"fontsize": 9} | font))


def value_axis(axes: Axes, scale: Scale, label: str, *, across: bool = False) -> None:
    """Labels the axis of values, logarithmic for ratios, and draws the value that means "no bias"."""
    (axes.set_xlabel if across else axes.set_ylabel)(shown(label))
    if is_ratio(scale):  # logarithmic, with plain numbers
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

        (axes.set_xscale if across else axes.set_yscale)("log")
        ticks = axes.xaxis if across else axes.yaxis
        ticks.set_major_locator(FixedLocator(_TICKS))
        ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ticks.set_minor_locator(NullLocator())
    light_grid(axes, across=across)
    if scale.neutral is not None:
        (axes.axvline if across else axes.axhline)(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


def light_grid(axes: Axes, *, across: bool) -> None:
    """Draws light lines at the values' ticks, behind everything, and no frame at the top and the right."""
    axes.grid(axis="x" if across else "y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def name_columns(axes: Axes, groups: Sequence[str], room: int) -> None:
    """Writes the groups' names along the axis, one per unit from 0 on; turned where their letters have no room."""
    names = [shown(group, 28) for group in groups]
    turn = 35.0 if max(map(len, names)) * len(names) > room else 0.0
    axes.set_xticks(range(len(names)), names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")


def name_rows(axes: Axes, groups: Sequence[str]) -> None:
    """Writes the groups' names from top to bottom, one per unit from 0 on."""
    axes.set_yticks(range(len(groups)), [shown(group, 28) for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)


def draw_band(axes: Axes, panel: ChartPanel, *, across: bool = False) -> Handles:
    """Draws the range of the published series of each group in grey, and returns its legend entry."""
    handles: Handles = {}
    fill = axes.fill_betweenx if across else axes.fill_between
    for place, group in enumerate(panel.groups):
        values = [cell.value for one in panel.band if (cell := one.cells.get(group)) and cell.value is not None]
        if values:
            ends = [place - 0.46, place + 0.46]
            handles[BAND] = fill(ends, min(values), max(values), color="0.82", linewidth=0, zorder=0.5)
    return handles


def draw_marks(
    axes: Axes,
    places: ArrayLike,
    chart: Chart,
    series: Series,
    groups: Sequence[str],
    *,
    across: bool = False,
    **line: Any,
) -> Handles:
    """Draws a series as marks with their intervals, hollow ones where it is published, and returns its legend entry."""
    cells = [series.cells.get(group) for group in groups]
    if any(cell is not None and is_ratio(cell.scale) for cell in cells):
        cells = [cell and _not_below(cell, lowest_ratio(chart)) for cell in cells]
    values, reach = values_of(cells), whiskers(cells)
    style = look(chart.look_of(series.label))
    marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5} | line
    if series.published:
        marks |= {"markerfacecolor": "white", "markeredgecolor": style.colour, "markeredgewidth": 1.1}
    if across:
        return {series.label: axes.errorbar(values, places, xerr=reach, **marks)}
    return {series.label: axes.errorbar(places, values, yerr=reach, **marks)}


def _not_below(cell: Cell, least: float) -> Cell:
    value, low, high = (None if end is None else max(end, least) for end in (cell.value, cell.low, cell.high))
    return replace(cell, value=value, low=low, high=high)
