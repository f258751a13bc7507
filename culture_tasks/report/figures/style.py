"""How figures look: colours of Okabe and Ito, each with a marker, a hatch and dashes, so that grey tells them apart."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
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


class Look(NamedTuple):
    """What tells a series from the others."""

    colour: str
    marker: str
    hatch: str
    dashes: Dashes


_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#4D4D4D")
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*", "p", "d", "h")
_HATCHES = ("", "//", "..", r"\\", "xx", "--", "++")
_DASHES: tuple[Dashes, ...] = (
    *((0, ()), (0, (5, 2)), (0, (1, 1)), (0, (6, 2, 1, 2))),
    *((0, (3, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 3))),
)


def look(place: int) -> Look:
    """Returns the look of a series by its place; the first 91 differ in colour or marker."""
    return Look(
        _COLOURS[place % len(_COLOURS)],
        _MARKERS[place % len(_MARKERS)],
        hatch=_HATCHES[place % len(_HATCHES)],
        dashes=_DASHES[place % len(_DASHES)],
    )


@contextmanager
def styled(charts: Iterable[Chart]) -> Iterator[None]:
    """Sets matplotlib up for these figures while they are drawn and saved: fonts for their names, no formulas.

    Warns once of characters that no installed font has.
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
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def new_figure(chart: Chart, width: float, height: float) -> Figure:
    """Returns an empty figure with the chart's title and notes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(shown(chart.title, 120), fontsize=11, fontweight="bold")
    if chart.notes:
        figure.supxlabel("\n".join(shown(note, 160) for note in chart.notes), fontsize=7, color="0.25")
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


def value_axis(axes: Axes, scale: Scale, label: str) -> None:
    """Labels the axis of values, and draws the value that means "no bias"."""
    axes.set_ylabel(shown(label))
    axes.grid(axis="y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if scale.neutral is not None:
        axes.axhline(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


def legend_beside(axes: Axes, handles: Handles, title: str) -> None:
    """Puts a legend at the right of the axes."""
    names = [shown(label, 34) for label in handles]
    artists = cast("list[Artist]", list(handles.values()))
    place: Any = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
    axes.legend(artists, names, frameon=False, title=shown(title), **place)


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


def legend_alone(axes: Axes, handles: Handles, title: str, across: int) -> None:
    """Fills axes with nothing but a legend, so many entries side by side."""
    names = [shown(label, 34) for label in handles]
    artists = cast("list[Artist]", list(handles.values()))
    place: Any = {"loc": "center", "ncols": across, "frameon": False, "fontsize": 8}
    axes.set_axis_off()
    axes.legend(artists, names, title=shown(title), **place)


def all_labels(chart: Chart) -> list[str]:
    """Returns the labels of all series, each once: a series looks the same in every panel."""
    return list(dict.fromkeys(series.label for panel in chart.panels for series in panel.series))


def name_groups(axes: Axes, groups: Sequence[str]) -> None:
    """Writes the groups' names along the axis, one a unit from 0 on; long ones are turned."""
    names = [shown(group, 28) for group in groups]
    turn = 35.0 if sum(map(len, names)) > 70 else 0.0
    axes.set_xticks(range(len(names)), names, rotation=turn, ha="right" if turn else "center", rotation_mode="anchor")


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
