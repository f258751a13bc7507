"""Parts of figures of all kinds: an empty figure, marks and their intervals, axes, names and the legend."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from culture_tasks.pages.names import shown
from culture_tasks.pages.pictures import look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import Container
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, Panel, Series
    from culture_tasks.report.model import Cell

    Handles = dict[str, Artist | Container]
    """The entries of a legend, by the series' labels."""

BAND = "range of published models"
"""The legend's entry for the grey band."""

_LEGEND_WIDTH = 2.8
_TITLE_LETTERS = 9.5
"""Letters of a title that fit into an inch."""
_NOTE_LETTERS = 17
"""Letters of a note that fit into an inch."""


def new_figure(chart: Chart, width: float, height: float) -> Figure:
    """Returns an empty figure with the chart's title and notes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    title = textwrap.wrap(shown(chart.title, 120), max(30, int(_TITLE_LETTERS * (width - _LEGEND_WIDTH))))
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    if chart.notes:
        lines = (line for note in chart.notes for line in textwrap.wrap(shown(note, 240), int(_NOTE_LETTERS * width)))
        figure.supxlabel("\n".join(lines), fontsize=7, color="0.25")
    return figure


def draw_in_grid(
    chart: Chart,
    draw: Callable[[Chart, Any, Panel], Handles],
    columns: int,
    size: Callable[[int, int], tuple[float, float]],
    *,
    order: Literal["C", "F"] = "C",
    **axes: Any,
) -> Figure:
    """Draws every panel on axes in a grid, with one legend for all; a series looks the same in every panel.

    Args:
        chart: The chart.
        draw: Draws a panel on its axes, and returns its entries of the legend.
        columns: Panels side by side, where there are so many.
        size: Gives the width and height of the figure, in inches, by the grid's rows and columns.
        order: Whether panels follow each other along rows or along columns.
        axes: How the axes are made, for matplotlib's ``subplots``.
    """
    columns = min(columns, len(chart.panels))
    rows = -(-len(chart.panels) // columns)
    figure = new_figure(chart, *size(rows, columns))
    grid = figure.subplots(rows, columns, squeeze=False, **axes).ravel(order=order)
    handles: Handles = {}
    for one, panel in zip_longest(grid, chart.panels):
        if panel is None:
            one.set_visible(False)
        else:
            handles |= draw(chart, one, panel)
    labels = [label for label in (*chart.labels, BAND) if label in handles]
    if labels:
        entries = cast("list[Artist]", [handles[label] for label in labels])
        names = [shown(label, 34) for label in labels]
        figure.legend(entries, names, loc="outside right upper", frameon=False, title=shown(chart.series))
    return figure


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


def is_ratio(scale: Scale) -> bool:
    """Whether numbers are ratios: from 0 without an end, and neutral in between, so that 1/2 is as far off as 2."""
    return scale.low == 0.0 and scale.high is None and scale.neutral is not None and scale.neutral > 0.0


_LEAST_RATIO = 0.1
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def lowest_ratio(chart: Chart) -> float:
    """Returns the lower edge of a logarithmic axis: smaller numbers, such as 0, are drawn there."""
    positive = [cell.value for panel in chart.panels for cell in panel.cells if cell.value]
    return min(_LEAST_RATIO, min(positive, default=1.0) / 1.25)


def value_axis(axes: Axes, scale: Scale, label: str, *, across: bool = False) -> None:
    """Labels the axis of values, logarithmic for ratios, and draws the value that means "no bias".

    Args:
        axes: The axes.
        scale: The scale of the values.
        label: Their name.
        across: Whether the values run from left to right.
    """
    (axes.set_xlabel if across else axes.set_ylabel)(shown(label))
    if is_ratio(scale):
        logarithmic(axes, across=across)
    light_grid(axes, across=across)
    if scale.neutral is not None:
        (axes.axvline if across else axes.axhline)(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


def light_grid(axes: Axes, *, across: bool) -> None:
    """Draws light lines at the values' ticks, behind everything, and no frame at the top and the right."""
    axes.grid(axis="x" if across else "y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def logarithmic(axes: Axes, *, across: bool = False) -> None:
    """Makes the axis of values logarithmic, with plain numbers on it."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    (axes.set_xscale if across else axes.set_yscale)("log")
    ticks = axes.xaxis if across else axes.yaxis
    ticks.set_major_locator(FixedLocator(_TICKS))
    ticks.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ticks.set_minor_locator(NullLocator())


def draw_band(axes: Axes, panel: Panel, *, across: bool = False) -> Handles:
    """Draws the range of the published series of each group in grey, and returns its legend entry."""
    handles: Handles = {}
    fill = axes.fill_betweenx if across else axes.fill_between
    for place, group in enumerate(panel.groups):
        values = [cell.value for one in panel.band if (cell := one.cells.get(group)) and cell.value is not None]
        if values:
            ends = [place - 0.46, place + 0.46]
            handles[BAND] = fill(ends, min(values), max(values), color="0.82", linewidth=0, zorder=0.5)
    return handles


def name_columns(axes: Axes, groups: Sequence[str], room: int) -> None:
    """Writes the groups' names along the axis, one per unit from 0 on; turned where their letters have no room."""
    names = [shown(group, 28) for group in groups]
    turn = 35.0 if max(map(len, names)) * len(names) > room else 0.0
    axes.set_xticks(range(len(names)), names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")


def name_rows(axes: Axes, groups: Sequence[str]) -> None:
    """Writes the groups' names from top to bottom, one per unit from 0 on."""
    axes.set_yticks(range(len(groups)), [shown(group, 28) for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)


def title_in_lines(text: str, longest: int) -> str:
    """Returns a title, in lines of its parts where it is longer than one line."""
    parts = [text] if len(text) <= longest else text.split(" · ")
    return "\n".join(shown(part, longest) for part in parts)


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
    """Draws a series as marks with their intervals, hollow ones where it is published, and returns its legend entry.

    Args:
        axes: Where.
        places: Where each group is.
        chart: The chart, which knows the look of each series.
        series: The series.
        groups: The groups.
        across: Whether the values run from left to right.
        line: How the marks are joined, and their whiskers drawn.
    """
    cells = [series.cells.get(group) for group in groups]
    if any(cell is not None and is_ratio(cell.scale) for cell in cells):
        cells = [cell and _not_below(cell, lowest_ratio(chart)) for cell in cells]
    style = look(chart.look_of(series.label))
    marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5} | line
    if series.published:
        marks |= {"markerfacecolor": "white", "markeredgecolor": style.colour, "markeredgewidth": 1.1}
    if across:
        return {series.label: axes.errorbar(values_of(cells), places, xerr=whiskers(cells), **marks)}
    return {series.label: axes.errorbar(places, values_of(cells), yerr=whiskers(cells), **marks)}


def _not_below(cell: Cell, least: float) -> Cell:
    """Returns a cell as a logarithmic axis can show it."""
    value, low, high = (None if end is None else max(end, least) for end in (cell.value, cell.low, cell.high))
    return replace(cell, value=value, low=low, high=high)
