"""Drawing figures, as files or for a page: bars, points, ordered dots, paired bars, lines and heat maps.

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
from culture_tasks.report.figures.charts import IN_ONE_COLUMN, is_ratio
from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, ChartPanel, Kind, Series
    from culture_tasks.report.model import Cell

    Format = Literal["png", "svg", "pdf"]
    Handles = dict[str, Any]
    """The entries of a legend, by the series' labels."""

BAND = "range of published models"
"""The legend's entry for the grey band."""

_LEAST_RATIO = 0.1
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_LEGEND_WIDTH = 2.8
_TITLE_LETTERS, _NOTE_LETTERS = 9.5, 17
"""Letters of a title, and of a note, that fit into an inch."""
_OVERVIEW_ON_A_SCREEN = 10
"""Panels of the overview side by side: a screen is wider than a sheet of paper, and less high."""
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
        return [_bytes(draw(chart, overview_across=_OVERVIEW_ON_A_SCREEN), "svg") for chart in progress(charts)]


def _bytes(figure: Figure, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # laid out once is enough for all formats
    figure.savefig(buffer, format=suffix, dpi=_DPI, metadata=_WITHOUT_DATE.get(suffix))
    return buffer.getvalue()


def draw(chart: Chart, *, overview_across: int | None = None) -> Figure:
    """Draws a figure; ``overview_across`` is the number of an overview's panels side by side, for a screen."""
    from matplotlib.figure import Figure

    draw_panel, most, axes_options = _KINDS[chart.kind]
    count, is_by_columns = len(chart.panels), chart.kind in ("bars", "points")
    if chart.kind == "overview":
        most = -(-count // -(-count // (overview_across or most)))  # so that all rows are about as long
    columns = 1 if is_by_columns and count <= IN_ONE_COLUMN else min(most, count)
    rows = -(-count // columns)
    width, height = _size(chart, rows, columns)
    figure = Figure(figsize=(width, height), layout="constrained")
    title = textwrap.wrap(shown(chart.title, 120), max(30, int(_TITLE_LETTERS * (width - _LEGEND_WIDTH))))
    figure.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    if chart.notes:
        lines = (line for note in chart.notes for line in textwrap.wrap(shown(note, 240), int(_NOTE_LETTERS * width)))
        figure.supxlabel("\n".join(lines), fontsize=7, color="0.25")
    grid = figure.subplots(rows, columns, squeeze=False, **axes_options)
    handles: Handles = {}
    for axes, panel in zip_longest(grid.ravel(order="F" if is_by_columns else "C"), chart.panels):
        if panel is None:
            axes.set_visible(False)
        else:
            handles |= draw_panel(chart, axes, panel)
    labels = [label for label in (*chart.labels, BAND) if label in handles]
    if labels:
        entries, names = [handles[label] for label in labels], [shown(label, 34) for label in labels]
        figure.legend(entries, names, loc="outside right upper", frameon=False, title=shown(chart.series))
    if chart.kind in ("heat", "matrix"):
        from matplotlib.cm import ScalarMappable

        bar = ScalarMappable(_norm(chart), _COLOUR_MAP)
        figure.colorbar(bar, ax=figure.axes, label=shown(chart.value), shrink=0.7)
    return figure


def _size(chart: Chart, rows: int, columns: int) -> tuple[float, float]:
    """Returns the width and the height of a figure in inches, by the rows and columns of its grid."""
    groups = max(len(panel.groups) for panel in chart.panels)
    match chart.kind:
        case "overview":
            names = 0.7 + 0.075 * max(len(shown(group, 28)) for group in chart.panels[0].groups)
            return names + 1.55 * max(2, columns), 0.7 + rows * (0.75 + 0.24 * len(chart.panels[0].groups))
        case "dots":
            tallest = max(len(panel.groups) * max(0.26, 0.13 * len(panel.series)) for panel in chart.panels)
            return 3.0 + 5.5 * columns, 1.0 + (max(2.5, tallest) + 0.6) * rows
        case "pairs":
            return 2.0 + 4.6 * columns, 1.0 + (0.8 + 0.3 * groups) * rows
        case "lines":
            return 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows
        case "heat":
            return 1.4 + 4.2 * columns, 0.9 + 4.2 * rows
        case "matrix":
            return 3.2 + 0.31 * max(8, groups), 2.2 + 0.27 * len(chart.labels)
        case _:
            return 11.0, max(1.0 + 2.7 * rows, 1.0 + 0.2 * len(chart.labels))


# Marks and their intervals, axes and names


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


def value_axis(axes: Axes, scale: Scale, chart: Chart, *, across: bool = False) -> None:
    """Labels the axis of values, logarithmic for ratios, and draws the value that means "no bias"."""
    (axes.set_xlabel if across else axes.set_ylabel)(shown(chart.value))
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
    for position, group in enumerate(panel.groups):
        values = [cell.value for series in panel.band if (cell := series.cells.get(group)) and cell.value is not None]
        if values:
            ends = [position - 0.46, position + 0.46]
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


# All models on all benchmarks


def _overview(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    for series in panel.series:
        [(group, cell)] = series.cells.items()
        style = look(chart.look_of(series.label))
        marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 6, "elinewidth": 1.1}
        if not cell.comparable:
            marks |= {"marker": "x", "color": "0.45"}
        elif series.label not in panel.best:
            marks |= {"markerfacecolor": "white", "markeredgewidth": 1.2}
        axes.errorbar(values_of([cell]), [panel.groups.index(group)], xerr=whiskers([cell]), linestyle="none", **marks)
    name_rows(axes, panel.groups)
    axes.set_title("\n".join(textwrap.wrap(shown(panel.title, 46), 24)), fontsize=9)
    axes.margins(x=0.12)
    axes.locator_params(axis="x", nbins=3)
    light_grid(axes, across=True)
    scale = panel.scale
    ends = f", {scale.low:g}-{scale.high:g}" if scale.ends else ""
    is_better_low = scale.better == "lower"
    axes.set_xlabel(shown(f"{scale.unit}{ends}{', lower is better' if is_better_low else ''}", 22), fontsize=7)
    if is_better_low:
        axes.invert_xaxis()  # better is to the right everywhere
    return {}


# Grouped bars, on one scale, in the same order everywhere; a paper's numbers are hollow marks beside them

_BARS_ROOM, _BARS_GAP, _BARS_MARK, _BARS_MOST_MARKS = 0.82, 0.05, 0.025, 0.38
_LETTERS = 84
"""Letters that fit below panels of the whole width."""


def _bars(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    published = {series.label for chart_panel in chart.panels for series in chart_panel.series if series.published}
    papers = [label for label in chart.labels if label in published]
    bars = [series for series in panel.series if not series.published]
    has_papers = len(bars) < len(panel.series)
    room = min(_BARS_MOST_MARKS, _BARS_GAP + _BARS_MARK * len(papers)) if has_papers else 0.0
    scale, width = panel.scale, (_BARS_ROOM - room) / max(1, len(bars))
    # Bars begin at the neutral value of a bias, else at the lowest value that is possible.
    start = scale.neutral if scale.neutral is not None else scale.low if scale.low is not None else 0.0
    places = np.arange(len(panel.groups), dtype=np.float64)
    handles: Handles = {}
    for index, series in enumerate(bars):
        cells = [series.cells.get(group) for group in panel.groups]
        style = look(chart.look_of(series.label))
        handles[series.label] = axes.bar(
            places - _BARS_ROOM / 2 + (index + 0.5) * width,
            values_of(cells) - start,
            width,
            bottom=start,
            color=style.colour,
            hatch=style.hatch,
            edgecolor="0.15",
            linewidth=0.5,
            yerr=whiskers(cells),
            error_kw={"elinewidth": 0.9, "capsize": min(3.0, 14 * width), "ecolor": "0.1"},
        )
    handles |= draw_band(axes, panel)
    first, last = _BARS_ROOM / 2 - room + _BARS_GAP, _BARS_ROOM / 2
    step = (last - first) / max(1, len(papers) - 1)
    for series in panel.series:
        if series.published:  # at the same place in every group and panel
            offsets = np.arange(len(panel.groups)) + first + papers.index(series.label) * step
            handles |= draw_marks(axes, offsets, chart, series=series, groups=panel.groups, linestyle="none")
    panel_title(axes, panel, 60, loc="left")
    _label_groups(chart, axes, panel)
    cells_on_scale = (cell for chart_panel in chart.panels if chart_panel.scale == scale for cell in chart_panel.cells)
    ends = [end for cell in cells_on_scale for end in (cell.value, cell.low, cell.high) if end is not None]
    low, high = min(*ends, start), max(*ends, start)
    margin = 0.06 * (high - low or 1.0)
    bottom, top = low - margin if low < start else low, high + margin
    axes.set_ylim(  # the same in all panels, and no value that is impossible
        bottom if scale.low is None else max(bottom, scale.low), top if scale.high is None else min(top, scale.high)
    )
    return handles


def _label_groups(chart: Chart, axes: Axes, panel: ChartPanel, *, across: bool = False) -> None:
    """Names the groups, from left to right or from top to bottom, with a line between each two; and the values."""
    for border in range(1, len(panel.groups)):
        (axes.axhline if across else axes.axvline)(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    if across:
        axes.tick_params(labelbottom=True)
        name_rows(axes, panel.groups)
    else:
        columns = 1 if (spec := axes.get_subplotspec()) is None else spec.get_gridspec().ncols
        name_columns(axes, panel.groups, room=_LETTERS // columns)
        axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    value_axis(axes, panel.scale, chart, across=across)


# Points by group, one per model; ordered dots: many groups, one below the other, the highest mean first

_POINTS_MARKS: dict[str, Any] = {
    "linestyle": "none",
    "elinewidth": 0.8,
    "markeredgewidth": 0.4,
    "markeredgecolor": "0.15",
}


def _side_by_side(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    """Draws the series of a panel beside each other in each group, and the range of published ones behind them."""
    across = chart.kind == "dots"
    spread = 0.7 if across else 0.62
    places = np.arange(len(panel.groups), dtype=np.float64)
    offsets = np.linspace(-spread / 2, spread / 2, len(panel.series)) if len(panel.series) > 1 else np.zeros(1)
    handles: Handles = {}
    for series, offset in zip(panel.series, offsets, strict=False):
        marks = _POINTS_MARKS | {"across": across}
        handles |= draw_marks(axes, places + offset, chart, series=series, groups=panel.groups, **marks)
    handles |= draw_band(axes, panel, across=across)
    panel_title(axes, panel, 60, loc="left")
    _label_groups(chart, axes, panel, across=across)
    return handles


# Pairs: two marks in each row, and their difference at the right

_PAIRS_LOOKS = (("#0072B2", "o"), ("#E69F00", "D"))
_PAIRS_APART = 0.15


def _pairs(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    handles: Handles = {}
    for side, (series, (colour, marker)) in enumerate(zip(panel.series, _PAIRS_LOOKS, strict=False)):
        places = np.arange(len(panel.groups)) + (2 * side - 1) * _PAIRS_APART
        marks = _POINTS_MARKS | {"color": colour, "marker": marker}
        handles |= draw_marks(axes, places, chart, series=series, groups=panel.groups, across=True, **marks)
    panel_title(axes, panel, 48)
    _label_groups(chart, axes, panel, across=True)

    def text(cell: Cell | None) -> str:  # a paired interval reaches evenly
        if cell is None or cell.value is None:
            return ""
        reach = "" if cell.high is None else f" ± {number(cell.high - cell.value, cell.scale)}"
        return f"{number(cell.value, cell.scale, signed=True)}{reach}"

    differences = panel.series[2].cells if len(panel.series) > 2 else {}
    right_axis = axes.secondary_yaxis("right")
    texts = [text(differences.get(group)) for group in panel.groups]
    right_axis.set_yticks(range(len(panel.groups)), texts, fontsize=7.5)
    right_axis.tick_params(length=0)
    right_axis.spines["right"].set_visible(False)
    return handles


# Lines over steps: how much of each insertion is left after later ones

_MOST_STEPS_NAMED, _LINES_APART = 6, 0.06
"""The distance of series at a step, so that none hides another's interval."""


def _lines(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    steps = sorted(panel.groups, key=lambda step: (len(step), step))
    labels = chart.labels
    handles: Handles = {}
    for series in panel.series:
        line: dict[str, Any] = {"linestyle": look(chart.look_of(series.label)).dashes, "linewidth": 1.5, "capsize": 3}
        places = np.arange(len(steps)) + _LINES_APART * (labels.index(series.label) - (len(labels) - 1) / 2)
        handles |= draw_marks(axes, places, chart, series=series, groups=steps, **line)
    stride = -(-len(steps) // _MOST_STEPS_NAMED)
    axes.set_xticks(range(0, len(steps), stride), [shown(step, 16) for step in steps[::stride]])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(chart.groups))
    panel_title(axes, panel, 40, fontsize=8)
    value_axis(axes, panel.scale, chart)
    return handles


# A colour is a number, readable for colour-blind readers and in print: heat maps

_COLOUR_MAP = "viridis"
_LUMINANCE, _DARK = (0.299, 0.587, 0.114), 0.55
"""Shares of red, green and blue in how bright a colour looks, and how bright a colour with white letters is at most."""
_HEAT_LETTERS = 40
"""Letters that fit below a heat map."""
_WITHIN: Mapping[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
"""Text within a cell, where the layout of the figure needn't measure it: there are hundreds."""


def _norm(chart: Chart) -> Normalize:
    """Returns the range of a chart's colours, the same in all panels.

    It is the range of the numbers; that of countries' scores goes on to whole tens.
    """
    from matplotlib.colors import Normalize

    values = [cell.value for panel in chart.panels for cell in panel.cells if cell.value is not None]
    low, high = min(values), max(values)
    if chart.kind == "matrix":
        low, high = 10 * math.floor(low / 10), 10 * math.ceil(high / 10)
    return Normalize(low, high if high > low else low + 1)


def _paint(norm: Normalize, value: float, paleness: float = 0.0) -> tuple[str, str]:
    """Returns the colour of a number, paler up to white at a paleness of 1, and that of letters on it."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    colour = np.array(mpl.colormaps[_COLOUR_MAP](float(norm(value)))[:3])
    pale = colour + (1.0 - colour) * paleness
    return to_hex(tuple(pale)), "white" if pale @ _LUMINANCE < _DARK else "black"


def _heat(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    """Draws series by groups, with the number in each cell."""
    norm = _norm(chart)
    order = {group: index for index, group in enumerate(panel.groups)}  # rows follow columns of the same names
    lines = sorted(panel.series, key=lambda line: order.get(line.label, len(order)))
    numbers = np.stack([values_of([line.cells.get(group) for group in panel.groups]) for line in lines])
    axes.imshow(np.ma.masked_invalid(numbers), cmap=_COLOUR_MAP, norm=norm, aspect="equal")
    name_columns(axes, panel.groups, room=_HEAT_LETTERS)
    axes.set_yticks(range(len(lines)), [shown(line.label, 16) for line in lines])
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.series))
    panel_title(axes, panel, 44)
    for (row, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            text = number(value, panel.scale)
            axes.text(column, row, text, ha="center", va="center", color=_paint(norm, value)[1], fontsize=7)
    return {}


_WHITE_AT = 75.0
"""The width of an interval, in points of 100, at which a country's score has no colour left."""


def _matrix(chart: Chart, axes: Axes, panel: ChartPanel) -> Handles:
    """Draws models by countries: whole numbers, bold where they differ, paler the wider their intervals are."""
    from matplotlib.patches import Rectangle

    norm = _norm(chart)
    for row, series in enumerate(panel.series):
        for column, group in enumerate(panel.groups):
            cell = series.cells.get(group)
            if cell is None or cell.value is None:
                continue
            width = math.inf if cell.low is None or cell.high is None else cell.high - cell.low
            fill, ink = _paint(norm, cell.value, min(1.0, width / _WHITE_AT))
            axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=fill, linewidth=0))
            font: dict[str, Any] = {"color": ink, "fontsize": 8, "fontweight": "bold" if cell.best else "normal"}
            axes.text(column, row, f"{cell.value:.0f}", **font, **_WITHIN)
    axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    axes.set_ylim(len(panel.series) - 0.5, -0.5)
    names = [shown(group, 24) for group in panel.groups]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(panel.series)), [shown(series.label, 28) for series in panel.series])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return {}


_KINDS: Mapping[Kind, tuple[Callable[[Chart, Any, ChartPanel], Handles], int, Mapping[str, Any]]] = {
    "overview": (_overview, 6, {"sharey": True}),
    "bars": (_bars, 2, {}),
    "points": (_side_by_side, 2, {"sharey": True}),
    "dots": (_side_by_side, 2, {"sharex": True}),
    "heat": (_heat, 3, {}),
    "lines": (_lines, 3, {"sharey": True}),
    "pairs": (_pairs, 3, {"sharex": True}),
    "matrix": (_matrix, 1, {}),
}
"""The function that draws a panel of each kind and returns its entries of the legend, the panels side by side, and the
options of matplotlib's ``subplots``."""
