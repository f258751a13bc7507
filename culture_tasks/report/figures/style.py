"""How figures look: colours of Okabe and Ito, each with a marker, a hatch and dashes, so that grey tells them apart."""

from __future__ import annotations

import textwrap
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from culture_tasks.report.figures.fonts import choose, warn_of_gaps
from culture_tasks.report.figures.names import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.container import Container
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, Panel, Series
    from culture_tasks.report.model import Cell

    Handles = dict[str, Artist | Container]
    """What stands in a legend, by the series' labels."""

    Draw = Callable[[Any, Panel, Sequence[str]], Handles]
    """Draws a panel on its axes, given the labels of all series, and returns what stands in the legend."""

Dashes = tuple[float, tuple[float, ...]]

BAND = "range of published models"
"""What a legend calls the grey band."""


class Look(NamedTuple):
    """What tells a series from the others."""

    colour: str
    marker: str
    hatch: str
    dashes: Dashes


_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4D4D4D")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "d", "h")
_HATCHES = ("", "//", "..", r"\\", "xx", "--", "++", "oo")
_DASHES: tuple[Dashes, ...] = (
    *((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (6, 2, 1, 2))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 3))),
)


def look(place: int) -> Look:
    """Returns the look of a series by its place; the first 91 differ in colour or marker, 56 in colour or hatch."""
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        hatch=_HATCHES[place % len(_HATCHES)],
        dashes=_DASHES[place % len(_DASHES)],
    )


@contextmanager
def styled(charts: Iterable[Chart]) -> Iterator[str]:
    """Sets matplotlib up for these figures while they are drawn and saved: fonts for their names, no formulas.

    Gives the characters that no installed font has, and warns of them once.
    """
    import matplotlib as mpl

    names = [shown(text) for chart in charts for text in chart.texts]
    fonts = choose(names)
    warn_of_gaps(names, fonts)
    settings: Any = {
        "text.parse_math": False,
        "font.family": [*fonts.families, "sans-serif"],  # the last one for readers of SVG who have none of the others
        "font.sans-serif": fonts.families[:1],
        "font.size": 9,
        "hatch.linewidth": 0.6,
        "svg.fonttype": "none",
        "svg.hashsalt": "culture-tasks",
        "pdf.fonttype": 42,  # letters stay text, as journals ask
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield fonts.missing


_LEGEND_WIDTH = 2.8
_TITLE_LETTERS = 9.5
"""Letters of a title that fit into an inch."""
_NOTE_LETTERS = 17
"""Letters of a note that fit into an inch."""


def new_figure(chart: Chart, width: float, height: float) -> Figure:
    """Returns an empty figure with the chart's title and notes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    title = textwrap.wrap(shown(chart.title, 120), max(30, int(_TITLE_LETTERS * (width - _LEGEND_WIDTH))))
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    if chart.notes:
        lines = (line for note in chart.notes for line in textwrap.wrap(shown(note, 240), int(_NOTE_LETTERS * width)))
        figure.supxlabel("\n".join(lines), fontsize=7, color="0.25")
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
    """Returns the lower edge of a logarithmic axis: what lies below it, such as 0, is drawn there."""
    positive = [cell.value for panel in chart.panels for cell in panel.cells if cell.value]
    return min(_LEAST_RATIO, min(positive, default=1.0) / 1.25)


def value_axis(axes: Axes, scale: Scale, label: str, *, across: bool = False) -> None:
    """Labels the axis of values, logarithmic for ratios, and draws the value that means "no bias".

    Args:
        axes: The axes.
        scale: The scale of the values.
        label: What they are.
        across: Whether the values run from left to right.
    """
    line = axes.axvline if across else axes.axhline
    (axes.set_xlabel if across else axes.set_ylabel)(shown(label))
    if is_ratio(scale):
        logarithmic(axes, across=across)
    axes.grid(axis="x" if across else "y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if scale.neutral is not None:
        line(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


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
    drawn: Handles = {}
    fill = axes.fill_betweenx if across else axes.fill_between
    for place, group in enumerate(panel.groups):
        values = [cell.value for one in panel.band if (cell := one.cells.get(group)) and cell.value is not None]
        if values:
            ends = [place - 0.46, place + 0.46]
            drawn[BAND] = fill(ends, min(values), max(values), color="0.82", linewidth=0, zorder=0.5)
    return drawn


def legend_for_all(figure: Figure, handles: Handles, title: str) -> None:
    """Puts one legend for all axes at the right of the figure."""
    names = [shown(label, 34) for label in handles]
    figure.legend(
        cast("list[Artist]", list(handles.values())),
        names,
        loc="outside right upper",
        frameon=False,
        title=shown(title),
    )


def name_groups(axes: Axes, groups: Sequence[str], room: int) -> None:
    """Writes the groups' names along the axis, one per unit from 0 on; turned where their letters have no room."""
    names = [shown(group, 28) for group in groups]
    turn = 35.0 if max(map(len, names)) * len(names) > room else 0.0
    axes.set_xticks(range(len(names)), names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")


def title_in_lines(text: str, longest: int) -> str:
    """Returns a title, in lines of its parts where it is longer than one line."""
    parts = [text] if len(text) <= longest else text.split(" · ")
    return "\n".join(shown(part, longest) for part in parts)


def shape(chart: Chart, across: int) -> tuple[int, int]:
    """Returns the rows and columns of a grid that has room for every panel, so many side by side."""
    columns = min(across, len(chart.panels))
    return -(-len(chart.panels) // columns), columns


def in_grid(axes: Iterable[Axes], chart: Chart, figure: Figure, draw: Draw) -> Figure:
    """Draws every panel on axes of its own, hides the axes that are left over, and adds one legend for all.

    A series has the same place among the labels, and so the same look, in every panel.
    """
    labels = chart.labels
    handles: Handles = {}
    grid = list(axes)
    for one, panel in zip(grid, chart.panels, strict=False):
        handles |= draw(one, panel, labels)
    for one in grid[len(chart.panels) :]:
        one.set_visible(False)
    legend_for_all(figure, {label: handles[label] for label in (*labels, BAND) if label in handles}, chart.series)
    return figure


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
        drawn = axes.errorbar(values_of(cells), places, xerr=whiskers(cells), **marks)
    else:
        drawn = axes.errorbar(places, values_of(cells), yerr=whiskers(cells), **marks)
    return {series.label: drawn}


def _not_below(cell: Cell, least: float) -> Cell:
    """Returns a cell as a logarithmic axis can show it."""
    return replace(
        cell,
        value=None if cell.value is None else max(cell.value, least),
        low=None if cell.low is None else max(cell.low, least),
        high=None if cell.high is None else max(cell.high, least),
    )
