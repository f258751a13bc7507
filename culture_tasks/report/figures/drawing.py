"""Drawing figures, as files or for a page: dots with intervals, heat maps and lines.

A figure has its panels in a grid, with one legend for all; a series looks the same in every panel.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from culture_tasks.pages.pictures import look, shown, styled
from culture_tasks.report.figures.charts import is_ratio
from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, ChartPanel, Kind, Series
    from culture_tasks.report.model import Number

    Format = Literal["png", "svg", "pdf"]
    Handles = dict[str, Any]
    """The entries of a legend, by the series' labels."""

_LEAST_RATIO = 0.1
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_LEGEND_WIDTH = 2.8
_TITLE_LETTERS, _NOTE_LETTERS = 9.5, 17
"""Letters of a title, and of a note, that fit into an inch."""
_ON_PAPER, _ON_A_SCREEN = 6, 10
"""Panels of models side by side: a screen is wider than a sheet of paper, and less high."""
_DPI = 160
_WITHOUT_DATE: Mapping[str, Mapping[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata that is left out, so that files are the same every time."""


def write_figures(
    charts: Sequence[Chart],
    folder: Path,
    formats: Sequence[Format],
    progress: Callable[[Sequence[Chart]], Iterable[Chart]] = iter,
) -> list[Path]:
    """Writes figures into files that are named after their keys, and returns the paths.

    Texts in SVG files are text, which the reader's program sets in the reader's fonts. ``progress`` yields the figures
    that it gets, to show how many are drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with styled(text for chart in charts for text in chart.texts):
        for chart in progress(charts):
            figure = draw(chart)
            for suffix in formats:
                paths.append(folder / f"{chart.key}.{suffix}")
                paths[-1].write_bytes(_bytes(figure, suffix))
    return paths


def svg_images(charts: Sequence[Chart], progress: Callable[[Sequence[Chart]], Iterable[Chart]] = iter) -> list[bytes]:
    """Returns each figure as an SVG document in UTF-8, for a screen; ``progress`` as for :func:`write_figures`."""
    with styled(text for chart in charts for text in chart.texts):
        return [_bytes(draw(chart, across=_ON_A_SCREEN), "svg") for chart in progress(charts)]


def _bytes(figure: Figure, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # laid out once is enough for all formats
    figure.savefig(buffer, format=suffix, dpi=_DPI, metadata=_WITHOUT_DATE.get(suffix))
    return buffer.getvalue()


def draw(chart: Chart, *, across: int = _ON_PAPER) -> Figure:
    """Draws a figure; ``across`` is the number of panels of models side by side."""
    from matplotlib.figure import Figure

    draw_panel, most, shared = _KINDS[chart.kind]
    count, is_of_models = len(chart.panels), _is_of_models(chart)
    if is_of_models:
        most, shared = -(-count // -(-count // across)), {"sharey": True}  # so that all rows are about as long
    columns = min(most, count)
    rows = -(-count // columns)
    width, height = _size(chart, rows, columns)
    figure = Figure(figsize=(width, height), layout="constrained")
    title = textwrap.wrap(shown(chart.title, 120), max(30, int(_TITLE_LETTERS * (width - _LEGEND_WIDTH))))
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    if chart.notes:
        lines = (line for note in chart.notes for line in textwrap.wrap(shown(note, 240), int(_NOTE_LETTERS * width)))
        figure.supxlabel("\n".join(lines), fontsize=7, color="0.25")
    grid = figure.subplots(rows, columns, squeeze=False, **shared)
    handles: Handles = {}
    for axes, panel in zip_longest(grid.ravel(), chart.panels):
        if panel is None:
            axes.set_visible(False)
        else:
            handles |= draw_panel(chart, axes, panel)
    if labels := [label for label in chart.labels if label in handles and not is_of_models]:
        entries, names = [handles[label] for label in labels], [shown(label, 34) for label in labels]
        figure.legend(entries, names, loc="outside right upper", frameon=False, title=shown(chart.series))
    if chart.kind == "heat":
        from matplotlib.cm import ScalarMappable

        bar = ScalarMappable(_norm(chart), _COLOUR_MAP)
        figure.colorbar(bar, ax=figure.axes, label=shown(chart.value), shrink=0.7)
    return figure


def _is_of_models(chart: Chart) -> bool:
    """Whether the rows of its panels are the models themselves."""
    return chart.kind == "dots" and chart.groups == chart.series


def _size(chart: Chart, rows: int, columns: int) -> tuple[float, float]:
    """Returns the width and the height of a figure in inches, by the rows and columns of its grid."""
    groups = max(len(panel.groups) for panel in chart.panels)
    if _is_of_models(chart):
        names = 0.7 + 0.075 * max(len(shown(group, 28)) for group in chart.panels[0].groups)
        return names + 1.55 * max(2, columns), 0.7 + rows * (0.75 + 0.24 * groups)
    if chart.kind == "lines":
        return 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows
    if chart.kind == "heat":
        lines = max(len(panel.series) for panel in chart.panels)
        names = 0.07 * max(len(shown(label, 28)) for label in chart.labels)
        return 1.2 + (names + 0.31 * max(8, groups)) * columns, 1.2 + (1.0 + 0.29 * lines) * rows
    tallest = max(len(panel.groups) * max(0.26, 0.13 * len(panel.series)) for panel in chart.panels)
    return 3.0 + 5.5 * columns, 1.0 + (max(1.2, tallest) + 0.8) * rows


# Marks and their intervals, axes and names


def values_of(cells: Sequence[Number | None]) -> NDArray[np.float64]:
    """Returns the cells' values, NaN where there is none."""
    return np.array([np.nan if cell is None or cell.value is None else cell.value for cell in cells], dtype=np.float64)


def whiskers(cells: Sequence[Number | None]) -> NDArray[np.float64] | None:
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


def _panel_title(axes: Axes, panel: ChartPanel, longest: int) -> None:
    """Writes a panel's title, in lines where it is longer than one."""
    parts = [panel.title] if len(panel.title) <= longest else panel.title.split(" · ")
    lines = (line for part in parts for line in textwrap.wrap(shown(part, 2 * longest), longest))
    axes.set_title("\n".join(lines), fontsize=9)


def _value_axis(axes: Axes, scale: Scale, chart: Chart, *, across: bool) -> None:
    """Makes the axis of values, logarithmic for ratios, with light lines and the value that means "no bias"."""
    if is_ratio(scale):  # logarithmic, with plain numbers
        from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

        (axes.set_xscale if across else axes.set_yscale)("log")
        ticks = axes.xaxis if across else axes.yaxis
        least = lowest_ratio(chart)
        is_cut = any(cell.value is not None and cell.value < least for panel in chart.panels for cell in panel.cells)
        ticks.set_major_locator(FixedLocator([*([least] if is_cut else []), *(t for t in _TICKS if t != least)]))
        # What is drawn at the lower edge may be less, such as 0.
        ticks.set_major_formatter(FuncFormatter(lambda t, _: f"{'≤ ' if is_cut and t <= least else ''}{t:.3g}"))
        ticks.set_minor_locator(NullLocator())
    axes.grid(axis="x" if across else "y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if scale.neutral is not None:
        (axes.axvline if across else axes.axhline)(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


def _not_below(cell: Number | None, least: float) -> Number | None:
    if cell is None:
        return None
    value, low, high = (None if end is None else max(end, least) for end in (cell.value, cell.low, cell.high))
    return replace(cell, value=value, low=low, high=high)


def _cells(chart: Chart, series: Series, groups: Sequence[str]) -> list[Number | None]:
    """Returns a series' cells in the order of some groups, ratios not below the edge of their axis."""
    cells = [series.cells.get(group) for group in groups]
    is_of_ratios = any(cell is not None and is_ratio(cell.scale) for cell in cells)
    return [_not_below(cell, lowest_ratio(chart)) for cell in cells] if is_of_ratios else cells


# Dots with intervals: a row for each group, the series beside each other


def _dots(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    is_of_models = _is_of_models(chart)
    count = len(panel.series)
    offsets = np.linspace(-0.35, 0.35, count) if count > 1 and not is_of_models else np.zeros(count)
    handles: Handles = {}
    for series, offset in zip(panel.series, offsets, strict=True):
        groups = [group for group in panel.groups if group in series.cells]
        rows = np.array([panel.groups.index(group) for group in groups]) + offset
        cells, style = _cells(chart, series, groups), look(chart.look_of(series.label))
        marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5, "elinewidth": 0.9}
        if panel.best is not None and not all(cell is None or cell.comparable for cell in cells):
            marks |= {"marker": "x", "color": "0.45"}
        elif panel.best is not None and series.label not in panel.best:
            marks |= {"markerfacecolor": "white", "markeredgewidth": 1.2}
        values, reach = values_of(cells), whiskers(cells)
        handles[series.label] = axes.errorbar(values, rows, xerr=reach, linestyle="none", **marks)
    for border in range(1, len(panel.groups)):
        axes.axhline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    axes.set_yticks(range(len(panel.groups)), [shown(group, 28) for group in panel.groups])
    axes.set_ylim(len(panel.groups) - 0.5, -0.5)
    _panel_title(axes, panel, 24 if is_of_models else 60)
    scale = panel.scale
    _value_axis(axes, scale, chart, across=True)
    if not is_of_models:
        axes.set_xlabel(shown(chart.value))
        return handles
    axes.margins(x=0.12)
    axes.locator_params(axis="x", nbins=3)
    ends = f", {scale.low:g}-{scale.high:g}" if scale.ends else ""
    is_better_low = scale.better == "lower"
    axes.set_xlabel(shown(f"{scale.unit}{ends}{', lower is better' if is_better_low else ''}", 22), fontsize=7)
    if is_better_low:
        axes.invert_xaxis()  # better is to the right everywhere
    return handles


# Lines over steps: how much of each insertion is left after later ones

_MOST_STEPS_NAMED, _LINES_APART = 6, 0.06
"""The distance of series at a step, so that none hides another's interval."""


def _lines(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    steps = sorted(panel.groups, key=lambda step: (len(step), step))
    labels = chart.labels
    handles: Handles = {}
    for series in panel.series:
        style, cells = look(chart.look_of(series.label)), _cells(chart, series, steps)
        line: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5}
        line |= {"linestyle": style.dashes, "linewidth": 1.5, "capsize": 3}
        places = np.arange(len(steps)) + _LINES_APART * (labels.index(series.label) - (len(labels) - 1) / 2)
        handles[series.label] = axes.errorbar(places, values_of(cells), yerr=whiskers(cells), **line)
    stride = -(-len(steps) // _MOST_STEPS_NAMED)
    axes.set_xticks(range(0, len(steps), stride), [shown(step, 16) for step in steps[::stride]])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.value))
    _panel_title(axes, panel, 40)
    _value_axis(axes, panel.scale, chart, across=False)
    return handles


# A colour is a number, readable for colour-blind readers and in print: heat maps

_COLOUR_MAP = "viridis"
_LUMINANCE, _DARK = (0.299, 0.587, 0.114), 0.55
"""Shares of red, green and blue in how bright a colour looks, and how bright a colour with white letters is at most."""
_WHITE_AT = 75.0
"""The width of an interval, in points of 100, at which a number has no colour left."""
_WITHIN: Mapping[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
"""Text within a cell, where the layout of the figure needn't measure it: there are hundreds."""


def _norm(chart: Chart) -> Normalize:
    """Returns the range of a chart's colours, the same in all panels: that of the numbers, on to whole tens."""
    from matplotlib.colors import Normalize

    values = [cell.value for panel in chart.panels for cell in panel.cells if cell.value is not None]
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
    return Normalize(low, high if high > low else low + 10)


def _paint(norm: Normalize, value: float, paleness: float) -> tuple[str, str]:
    """Returns the colour of a number, paler up to white at a paleness of 1, and that of letters on it."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    colour = np.array(mpl.colormaps[_COLOUR_MAP](float(norm(value)))[:3])
    pale = colour + (1.0 - colour) * paleness
    return to_hex(tuple(pale)), "white" if pale @ _LUMINANCE < _DARK else "black"


def _heat(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    """Draws series by groups: the number in each cell, bold where it is certain, paler the wider its interval is."""
    from matplotlib.patches import Rectangle

    norm = _norm(chart)
    order = {group: index for index, group in enumerate(panel.groups)}
    lines = list(panel.series)
    if {line.label for line in lines} <= order.keys():  # rows follow columns of the same names
        lines.sort(key=lambda line: order[line.label])
    for row, series in enumerate(lines):
        for column, group in enumerate(panel.groups):
            cell = series.cells.get(group)
            if cell is None or cell.value is None:
                continue
            width = math.inf if cell.low is None or cell.high is None else cell.high - cell.low
            fill, ink = _paint(norm, cell.value, min(1.0, width / _WHITE_AT))
            axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=fill, linewidth=0))
            is_bold = panel.best is not None and f"{series.label}, {group}" in panel.best
            font: dict[str, Any] = {"color": ink, "fontsize": 8, "fontweight": "bold" if is_bold else "normal"}
            axes.text(column, row, number(cell.value, replace(cell.scale, digits=0)), **font, **_WITHIN)
    axes.set_facecolor("0.94")  # where there is no answer
    axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xticks(range(len(panel.groups)), [shown(group, 24) for group in panel.groups], rotation=90, fontsize=8)
    axes.set_yticks(range(len(lines)), [shown(series.label, 28) for series in lines])
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.series))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _panel_title(axes, panel, 44)
    return {}


_KINDS: Mapping[Kind, tuple[Callable[[Chart, Any, ChartPanel], Handles], int, Mapping[str, Any]]] = {
    "dots": (_dots, 2, {"sharex": True}),
    "heat": (_heat, 3, {}),
    "lines": (_lines, 3, {"sharey": True}),
}
"""The function that draws a panel of each kind and returns its entries of the legend, the panels side by side, and the
options of matplotlib's ``subplots``."""
