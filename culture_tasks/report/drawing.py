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

from culture_tasks.pages.pictures import Look, look, shown, styled
from culture_tasks.report.figures import groups_of, is_ratio
from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure as Picture
    from numpy.typing import NDArray

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.benchmarks.tables import Figure, Panel
    from culture_tasks.report.model import Number

    Format = Literal["png", "svg", "pdf"]
    Handles = dict[str, Any]
    """The entries of a legend, by the series' labels."""

_TICKS = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
"""Of ratios, whose axis is linear up to the second of them."""
_LEGEND_WIDTH = 2.8
_TITLE_LETTERS, _NOTE_LETTERS = 9.5, 17
"""Letters of a title, and of a note, that fit into an inch."""
_NOTE_HEIGHT = 0.125
"""Inches of a line of notes."""
_ON_PAPER, _ON_A_SCREEN = 6, 10
"""Panels of models side by side: a screen is wider than a sheet of paper, and less high."""
_DPI = 160
_WITHOUT_DATE: Mapping[str, Mapping[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata that is left out, so that files are the same every time."""


def write_figures(
    figures: Sequence[Figure],
    folder: Path,
    formats: Sequence[Format],
    progress: Callable[[Sequence[Figure]], Iterable[Figure]] = iter,
) -> list[Path]:
    """Writes figures into files that are named after their keys, and returns the paths.

    Texts in SVG files are text, which the reader's program sets in the reader's fonts. ``progress`` yields the figures
    that it gets, to show how many are drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with styled():
        for figure in progress(figures):
            picture = draw(figure)
            for suffix in formats:
                paths.append(folder / f"{figure.key}.{suffix}")
                paths[-1].write_bytes(_bytes(picture, suffix))
    return paths


def svg_images(
    figures: Sequence[Figure], progress: Callable[[Sequence[Figure]], Iterable[Figure]] = iter
) -> list[bytes]:
    """Returns each figure as an SVG document in UTF-8, for a screen; ``progress`` as for :func:`write_figures`."""
    with styled():
        return [_bytes(draw(figure, across=_ON_A_SCREEN), "svg") for figure in progress(figures)]


def _bytes(picture: Picture, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    engine = picture.get_layout_engine()
    if engine is not None:
        engine.execute(picture)
        picture.set_layout_engine(None)  # laid out once is enough for all formats
    picture.savefig(buffer, format=suffix, dpi=_DPI, metadata=_WITHOUT_DATE.get(suffix))
    return buffer.getvalue()


def draw(figure: Figure, *, across: int = _ON_PAPER) -> Picture:
    """Draws a figure; ``across`` is the number of panels of models side by side."""
    from matplotlib.figure import Figure as Picture

    draw_panel, most, shared = _KINDS[figure.kind]
    count, is_of_models = len(figure.panels), figure.groups == "model"
    if is_of_models:
        most, shared = -(-count // -(-count // across)), {"sharey": True}  # so that all rows are about as long
    columns = min(most, count)
    rows = -(-count // columns)
    width, height = _size(figure, rows, columns)
    notes = [line for note in figure.notes for line in textwrap.wrap(shown(note, 240), int(_NOTE_LETTERS * width))]
    height += _NOTE_HEIGHT * max(0, len(notes) - 2)  # two have room in any figure
    picture = Picture(figsize=(width, height), layout="constrained")
    title = textwrap.wrap(shown(figure.title, 120), max(30, int(_TITLE_LETTERS * (width - _LEGEND_WIDTH))))
    picture.suptitle("\n".join(title), x=0.01, ha="left", fontsize=11, fontweight="bold")
    if notes:
        picture.supxlabel("\n".join(notes), fontsize=7, color="0.25")
    grid = picture.subplots(rows, columns, squeeze=False, **shared)
    handles: Handles = {}
    for axes, panel in zip_longest(grid.ravel(), figure.panels.items()):
        if panel is None:
            axes.set_visible(False)
        else:
            handles |= draw_panel(figure, axes, *panel)
    if handles and not is_of_models:
        names = [shown(label, 34) for label in handles]
        picture.legend(
            list(handles.values()), names, loc="outside right upper", frameon=False, title=shown(figure.series)
        )
    if figure.kind == "heat":
        from matplotlib.cm import ScalarMappable

        bar = ScalarMappable(_norm(figure), _COLOUR_MAP)
        picture.colorbar(bar, ax=picture.axes, label=shown(figure.value), shrink=0.7)
    return picture


def _size(figure: Figure, rows: int, columns: int) -> tuple[float, float]:
    """Returns the width and the height of a picture in inches, by the rows and columns of its grid."""
    groups = max(len(groups_of(figure, panel)) for panel in figure.panels.values())
    series = max(map(len, figure.panels.values()))
    names = max(len(shown(label, 28)) for panel in figure.panels.values() for label in panel)
    if figure.groups == "model":
        return 0.7 + 0.075 * names + 1.55 * max(2, columns), 0.7 + rows * (0.75 + 0.24 * groups)
    if figure.kind == "lines":
        return 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows
    if figure.kind == "heat":
        return 1.2 + (0.07 * names + 0.31 * max(8, groups)) * columns, 1.2 + (1.0 + 0.29 * series) * rows
    return 3.0 + 5.5 * columns, 1.0 + (max(1.2, groups * max(0.26, 0.13 * series)) + 0.8) * rows


# Marks and their intervals, axes and names


def _reaches(cells: Sequence[Number | None]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Returns values, and how far their intervals reach below and above them in two rows; NaN where there is none."""
    numbers = [(None, None, None) if cell is None else (cell.value, cell.low, cell.high) for cell in cells]
    values, low, high = np.array(numbers, dtype=np.float64).reshape(-1, 3).T
    return values, np.stack([values - low, high - values]).clip(0.0)


def _all_cells(figure: Figure) -> list[Number]:
    return [cell for panel in figure.panels.values() for series in panel.values() for cell in series.values()]


def _panel_title(axes: Axes, title: str, longest: int) -> None:
    """Writes a panel's title, in lines where it is longer than one."""
    parts = [title] if len(title) <= longest else title.split(" · ")
    lines = (line for part in parts for line in textwrap.wrap(shown(part, 2 * longest), longest))
    axes.set_title("\n".join(lines), fontsize=9)


def _value_axis(axes: Axes, scale: Scale, *, across: bool) -> None:
    """Makes the axis of values, logarithmic for ratios, with light lines and the value that means "no bias"."""
    if is_ratio(scale):
        from matplotlib.ticker import FixedLocator

        (axes.set_xscale if across else axes.set_yscale)("symlog", linthresh=_TICKS[1], linscale=0.5)
        ticks = axes.xaxis if across else axes.yaxis
        ticks.set_major_locator(FixedLocator(_TICKS))
        ticks.set_major_formatter("{x:g}")
    axes.grid(axis="x" if across else "y", color="0.88", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if scale.neutral is not None:
        (axes.axvline if across else axes.axhline)(scale.neutral, color="0.25", linewidth=0.9, zorder=1.5)


def _scale_of(panel: Panel) -> Scale:
    scale: Scale = next(cell.scale for series in panel.values() for cell in series.values())
    return scale


def _looks(figure: Figure) -> dict[str, Look]:
    """Returns the look of each series, the same in every panel."""
    labels = dict.fromkeys(label for panel in figure.panels.values() for label in panel)
    return {label: look(figure.looks.get(label, number)) for number, label in enumerate(labels)}


# Dots with intervals: a row for each group, the series beside each other


def _dots(figure: Figure, axes: Axes, title: str, panel: Panel) -> Handles:
    is_of_models, looks, all_groups = figure.groups == "model", _looks(figure), groups_of(figure, panel)
    count = len(panel)
    offsets = np.linspace(-0.35, 0.35, count) if count > 1 and not is_of_models else np.zeros(count)
    handles: Handles = {}
    for (label, series), offset in zip(panel.items(), offsets, strict=True):
        groups = [group for group in all_groups if group in series]
        rows = np.array([all_groups.index(group) for group in groups]) + offset
        cells, style = [series[group] for group in groups], looks[label]
        marks: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5, "elinewidth": 0.9}
        if figure.bold is not None and not all(cell.comparable for cell in cells):
            marks |= {"marker": "x", "color": "0.45"}
        elif figure.bold is not None and f"{label}, {title}" not in figure.bold:
            marks |= {"markerfacecolor": "white", "markeredgewidth": 1.2}
        values, reach = _reaches(cells)
        handles[label] = axes.errorbar(values, rows, xerr=reach, linestyle="none", **marks)
    for border in range(1, len(all_groups)):
        axes.axhline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    axes.set_yticks(range(len(all_groups)), [shown(group, 28) for group in all_groups])
    axes.set_ylim(len(all_groups) - 0.5, -0.5)
    _panel_title(axes, title, 24 if is_of_models else 60)
    scale = _scale_of(panel)
    _value_axis(axes, scale, across=True)
    if not is_of_models:
        axes.set_xlabel(shown(figure.value))
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


def _lines(figure: Figure, axes: Axes, title: str, panel: Panel) -> Handles:
    steps, looks = sorted(groups_of(figure, panel), key=lambda step: (len(step), step)), _looks(figure)
    labels = list(looks)
    handles: Handles = {}
    for label, series in panel.items():
        style, cells = looks[label], [series.get(step) for step in steps]
        line: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markersize": 5}
        line |= {"linestyle": style.dashes, "linewidth": 1.5, "capsize": 3}
        places = np.arange(len(steps)) + _LINES_APART * (labels.index(label) - (len(labels) - 1) / 2)
        values, reach = _reaches(cells)
        handles[label] = axes.errorbar(places, values, yerr=reach, **line)
    stride = -(-len(steps) // _MOST_STEPS_NAMED)
    axes.set_xticks(range(0, len(steps), stride), [shown(step, 16) for step in steps[::stride]])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(figure.groups))
    axes.set_ylabel(shown(figure.value))
    _panel_title(axes, title, 40)
    _value_axis(axes, _scale_of(panel), across=False)
    return handles


# A colour is a number, readable for colour-blind readers and in print: heat maps

_COLOUR_MAP = "viridis"
_LUMINANCE, _DARK = (0.299, 0.587, 0.114), 0.55
"""Shares of red, green and blue in how bright a colour looks, and how bright a colour with white letters is at most."""
_WHITE_AT = 75.0
"""The width of an interval, in points of 100, at which a number has no colour left."""
_WITHIN: Mapping[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
"""Text within a cell, where the layout of the figure needn't measure it: there are hundreds."""


def _norm(figure: Figure) -> Normalize:
    """Returns the range of a figure's colours, the same in all panels: that of the numbers, on to whole tens."""
    from matplotlib.colors import Normalize

    values = [cell.value for cell in _all_cells(figure) if cell.value is not None]
    low, high = 10 * math.floor(min(values) / 10), 10 * math.ceil(max(values) / 10)
    return Normalize(low, high if high > low else low + 10)


def _paint(norm: Normalize, value: float, paleness: float) -> tuple[str, str]:
    """Returns the colour of a number, paler up to white at a paleness of 1, and that of letters on it."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    colour = np.array(mpl.colormaps[_COLOUR_MAP](float(norm(value)))[:3])
    pale = colour + (1.0 - colour) * paleness
    return to_hex(tuple(pale)), "white" if pale @ _LUMINANCE < _DARK else "black"


def _heat(figure: Figure, axes: Axes, title: str, panel: Panel) -> Handles:
    """Draws series by groups: the number in each cell, bold where it is certain, paler the wider its interval is."""
    from matplotlib.patches import Rectangle

    norm, groups = _norm(figure), groups_of(figure, panel)
    for row, (label, series) in enumerate(panel.items()):
        for column, group in enumerate(groups):
            cell = series.get(group)
            if cell is None or cell.value is None:
                continue
            width = math.inf if cell.low is None or cell.high is None else cell.high - cell.low
            fill, ink = _paint(norm, cell.value, min(1.0, width / _WHITE_AT))
            axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=fill, linewidth=0))
            is_bold = figure.bold is not None and f"{label}, {group}" in figure.bold
            font: dict[str, Any] = {"color": ink, "fontsize": 8, "fontweight": "bold" if is_bold else "normal"}
            axes.text(column, row, number(cell.value, replace(cell.scale, digits=0)), **font, **_WITHIN)
    axes.set_facecolor("0.94")  # where there is no answer
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_ylim(len(panel) - 0.5, -0.5)
    axes.set_xticks(range(len(groups)), [shown(group, 24) for group in groups], rotation=90, fontsize=8)
    axes.set_yticks(range(len(panel)), [shown(label, 28) for label in panel])
    axes.set_xlabel(shown(figure.groups))
    axes.set_ylabel(shown(figure.series))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _panel_title(axes, title, 44)
    return {}


_KINDS: Mapping[str, tuple[Callable[[Figure, Any, str, Panel], Handles], int, Mapping[str, Any]]] = {
    "dots": (_dots, 2, {"sharex": True}),
    "heat": (_heat, 3, {}),
    "lines": (_lines, 3, {"sharey": True}),
}
"""The function that draws a panel of each kind and returns its entries of the legend, the panels side by side, and the
options of matplotlib's ``subplots``."""
