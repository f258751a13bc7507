"""Drawing figures, as files or for a page: bars, points, ordered dots, paired bars, lines, heat maps and radars."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from culture_tasks.pages.names import shown
from culture_tasks.pages.pictures import look, styled
from culture_tasks.report.figures.charts import IN_ONE_COLUMN
from culture_tasks.report.figures.selecting import charts
from culture_tasks.report.figures.style import (
    draw_band,
    draw_in_grid,
    draw_marks,
    is_ratio,
    light_grid,
    logarithmic,
    lowest_ratio,
    name_columns,
    name_rows,
    title_in_lines,
    value_axis,
    values_of,
    whiskers,
)
from culture_tasks.report.wording import number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Literal

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.projections.polar import PolarAxes

    from culture_tasks.benchmarks.interface import Scale
    from culture_tasks.report.figures.charts import Chart, Kind, Panel
    from culture_tasks.report.figures.style import Handles
    from culture_tasks.report.model import Cell, Report

    Format = Literal["png", "svg", "pdf"]

# The overview: one panel per score, one row per model

_OVERVIEW_ACROSS = 6
_OVERVIEW_ACROSS_A_PAGE = 10
"""A screen is wider than a sheet of paper, and less high."""


def draw_overview(chart: Chart, most_across: int = _OVERVIEW_ACROSS) -> Figure:
    """Draws the panels side by side, with the models' names at the left."""
    groups = chart.panels[0].groups
    names = 0.7 + 0.075 * max(len(shown(group, 28)) for group in groups)

    def size(rows: int, columns: int) -> tuple[float, float]:
        return names + 1.55 * max(2, columns), 0.8 + rows * (0.75 + 0.27 * len(groups))

    lines = -(-len(chart.panels) // most_across)
    return draw_in_grid(chart, _draw_overview_panel, -(-len(chart.panels) // lines), size, sharey=True)


def _draw_overview_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
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
    axes.set_title(shown(panel.title, 22), fontsize=9)
    axes.margins(x=0.12)
    axes.locator_params(axis="x", nbins=3)
    light_grid(axes, across=True)
    axes.set_xlabel(shown(_unit_of_measure(panel.scale), 22), fontsize=7)
    if panel.scale.better == "lower":
        axes.invert_xaxis()  # better is to the right everywhere
    return {}


def _unit_of_measure(scale: Scale) -> str:
    ends = "" if scale.low is None or scale.high is None else f", {scale.low:g}-{scale.high:g}"
    return f"{scale.unit}{ends}" + (", lower is better" if scale.better == "lower" else "")


# Grouped bars, on one scale; a paper's numbers are hollow marks beside them

_BARS_ROOM = 0.82
_BARS_GAP = 0.05
_BARS_MARK = 0.025
_BARS_MOST_MARKS = 0.38
_LETTERS = 84
"""Letters that fit below panels of the whole width."""


def draw_bars(chart: Chart, draw: Callable[..., Handles] | None = None, **axes: Any) -> Figure:
    """Draws panels with the same axes; series stand side by side within a group, in the same order everywhere."""
    columns = 1 if len(chart.panels) <= IN_ONE_COLUMN else 2

    def size(rows: int, _: int) -> tuple[float, float]:
        return 11.0, max(1.0 + 2.7 * rows, 1.0 + 0.2 * len(chart.labels))

    return draw_in_grid(chart, draw or _draw_bar_panel, columns, size, order="F", **axes)


def _draw_bar_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    published = {series.label for one in chart.panels for series in one.series if series.published}
    papers = [label for label in chart.labels if label in published]
    bars = [series for series in panel.series if not series.published]
    has_papers = len(bars) < len(panel.series)
    room = min(_BARS_MOST_MARKS, _BARS_GAP + _BARS_MARK * len(papers)) if has_papers else 0.0
    width, start = (_BARS_ROOM - room) / max(1, len(bars)), _start_of_bars(panel)
    places = np.arange(len(panel.groups), dtype=np.float64)
    handles: Handles = {}
    for at, series in enumerate(bars):
        cells = [series.cells.get(group) for group in panel.groups]
        style = look(chart.look_of(series.label))
        handles[series.label] = axes.bar(
            places - _BARS_ROOM / 2 + (at + 0.5) * width,
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
            beside = np.arange(len(panel.groups)) + first + papers.index(series.label) * step
            handles |= draw_marks(axes, beside, chart, series=series, groups=panel.groups, linestyle="none")
    _finish_columns(chart, axes, panel)
    axes.set_ylim(*_range_of_bars(chart, panel))
    return handles


def _start_of_bars(panel: Panel) -> float:
    """Returns where bars begin: at the neutral value of a bias, else at the lowest value that is possible."""
    scale = panel.scale
    return scale.neutral if scale.neutral is not None else scale.low if scale.low is not None else 0.0


def _range_of_bars(chart: Chart, panel: Panel) -> tuple[float, float]:
    """Returns the values that the axes of a panel show: the same in all panels, and none that is impossible."""
    scale, start = panel.scale, _start_of_bars(panel)
    alike = [one for one in chart.panels if one.scale == scale]
    cells = [cell for one in alike for cell in one.cells]
    ends = [end for cell in cells for end in (cell.value, cell.low, cell.high) if end is not None]
    low, high = min(*ends, start), max(*ends, start)
    margin = 0.06 * (high - low or 1.0)
    bottom, top = low - margin if low < start else low, high + margin
    return (
        bottom if scale.low is None else max(bottom, scale.low),
        top if scale.high is None else min(top, scale.high),
    )


def _finish_columns(chart: Chart, axes: Axes, panel: Panel) -> None:
    columns = 1 if (place := axes.get_subplotspec()) is None else place.get_gridspec().ncols
    name_columns(axes, panel.groups, room=_LETTERS // columns)
    axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    for border in range(1, len(panel.groups)):
        axes.axvline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    axes.set_title(title_in_lines(panel.title, 60), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value)


# Points by group, one per model

_POINTS_MARKS: dict[str, Any] = {
    "linestyle": "none",
    "elinewidth": 0.8,
    "markeredgewidth": 0.4,
    "markeredgecolor": "0.15",
}


def draw_points(chart: Chart) -> Figure:
    """Draws panels as those of bars, on one scale."""
    return draw_bars(chart, _draw_point_panel, sharey=True)


def _draw_point_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    handles = _draw_side_by_side(chart, axes, panel, spread=0.62, across=False)
    _finish_columns(chart, axes, panel)
    return handles


def _draw_side_by_side(chart: Chart, axes: Axes, panel: Panel, spread: float, *, across: bool) -> Handles:
    """Draws the series of a panel beside each other in each group, and the range of published ones behind them."""
    places = np.arange(len(panel.groups), dtype=np.float64)
    offsets = np.linspace(-spread / 2, spread / 2, len(panel.series)) if len(panel.series) > 1 else np.zeros(1)
    handles: Handles = {}
    for series, offset in zip(panel.series, offsets, strict=False):
        beside, groups = places + offset, panel.groups
        handles |= draw_marks(axes, beside, chart, series=series, groups=groups, across=across, **_POINTS_MARKS)
    return handles | draw_band(axes, panel, across=across)


# Ordered dots: many groups, one below the other, the highest mean first


def draw_dots(chart: Chart) -> Figure:
    """Draws the panels in two columns where there are several, a row for each group; series keep their order."""
    tallest = max(len(panel.groups) * max(0.26, 0.13 * len(panel.series)) for panel in chart.panels)

    def size(rows: int, columns: int) -> tuple[float, float]:
        return 3.0 + 5.5 * columns, 1.0 + (max(2.5, tallest) + 0.6) * rows

    return draw_in_grid(chart, _draw_dot_panel, 2, size, sharex=True)


def _draw_dot_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    handles = _draw_side_by_side(chart, axes, panel, spread=0.7, across=True)
    _rows_apart(axes, panel)
    axes.set_title(title_in_lines(panel.title, 60), loc="left", fontsize=9)
    value_axis(axes, panel.scale, chart.value, across=True)
    return handles


def _rows_apart(axes: Axes, panel: Panel) -> None:
    """Names the groups from top to bottom, with a line between each two, and numbers below."""
    axes.tick_params(labelbottom=True)
    for border in range(1, len(panel.groups)):
        axes.axhline(border - 0.5, color="0.92", linewidth=0.7, zorder=0)
    name_rows(axes, panel.groups)


# Pairs: two marks in each row, and their difference at the right

_PAIRS_LOOKS = (("#0072B2", "o"), ("#E69F00", "D"))
_PAIRS_APART = 0.15


def draw_pairs(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, a row for each group, with one legend for all."""
    height = 0.8 + 0.3 * max(len(panel.groups) for panel in chart.panels)

    def size(rows: int, columns: int) -> tuple[float, float]:
        return 2.0 + 4.6 * columns, 1.0 + height * rows

    return draw_in_grid(chart, _draw_pair_panel, 3, size, sharex=True)


def _draw_pair_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    places = np.arange(len(panel.groups), dtype=np.float64)
    handles: Handles = {}
    for side, (series, (colour, marker)) in enumerate(zip(panel.series, _PAIRS_LOOKS, strict=False)):
        cells = [series.cells.get(group) for group in panel.groups]
        marks: dict[str, Any] = _POINTS_MARKS | {"color": colour, "marker": marker, "markersize": 5}
        at = places + (2 * side - 1) * _PAIRS_APART
        handles[series.label] = axes.errorbar(values_of(cells), at, xerr=whiskers(cells), **marks)
    _rows_apart(axes, panel)
    differences = panel.series[2].cells if len(panel.series) > 2 else {}
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(places, [_difference(differences.get(group)) for group in panel.groups], fontsize=7.5)
    beside.tick_params(length=0)
    beside.spines["right"].set_visible(False)
    axes.set_title(title_in_lines(panel.title, 48), fontsize=9)
    value_axis(axes, panel.scale, chart.value, across=True)
    return handles


def _difference(cell: Cell | None) -> str:
    """Returns a difference and how far its interval reaches; a paired interval reaches evenly."""
    if cell is None or cell.value is None:
        return ""
    reach = "" if cell.high is None else f" ± {number(cell.high - cell.value, cell.scale)}"
    return f"{number(cell.value, cell.scale, signed=True)}{reach}"


# Lines over steps: how much of each insertion is left after later ones

_MOST_STEPS_NAMED = 6
_LINES_APART = 0.06
"""How far series stand from each other at a step, so that none hides another's interval."""


def draw_lines(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, with one legend for all."""

    def size(rows: int, columns: int) -> tuple[float, float]:
        return 1.5 + max(4.5, 3.2 * columns), 1.2 + 2.8 * rows

    return draw_in_grid(chart, _draw_line_panel, 3, size, sharey=True)


def _draw_line_panel(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    steps = sorted(panel.groups, key=lambda step: (len(step), step))
    labels = chart.labels
    handles: Handles = {}
    for series in panel.series:
        line: dict[str, Any] = {"linestyle": look(chart.look_of(series.label)).dashes, "linewidth": 1.5, "capsize": 3}
        places = np.arange(len(steps)) + _LINES_APART * (labels.index(series.label) - (len(labels) - 1) / 2)
        handles |= draw_marks(axes, places, chart, series=series, groups=steps, **line)
    apart = -(-len(steps) // _MOST_STEPS_NAMED)
    axes.set_xticks(range(0, len(steps), apart), [shown(step, 16) for step in steps[::apart]])
    axes.set_xlim(-0.3, len(steps) - 0.7)
    axes.set_xlabel(shown(chart.groups))
    axes.set_title(title_in_lines(panel.title, 40), fontsize=8)
    value_axis(axes, panel.scale, chart.value)
    return handles


# Heat maps, with the number in each cell

_HEAT_LETTERS = 40


def draw_heat(chart: Chart) -> Figure:
    """Draws the panels in a grid, with the same colours for the same numbers everywhere."""
    from matplotlib.colors import Normalize

    numbers = [cell.value for panel in chart.panels for cell in panel.cells if cell.value is not None]
    norm = Normalize(min(numbers), max(numbers) if max(numbers) > min(numbers) else min(numbers) + 1)

    def size(rows: int, columns: int) -> tuple[float, float]:
        return 1.4 + 4.2 * columns, 0.9 + 4.2 * rows

    def draw(chart: Chart, axes: Axes, panel: Panel) -> Handles:
        return _draw_heat_panel(chart, axes, panel, norm)

    figure = draw_in_grid(chart, draw, 3, size)
    figure.colorbar(figure.axes[0].images[0], ax=figure.axes, label=shown(chart.value), shrink=0.7)
    return figure


def _draw_heat_panel(chart: Chart, axes: Axes, panel: Panel, norm: Normalize) -> Handles:
    place = {group: number for number, group in enumerate(panel.groups)}  # rows follow columns of the same names
    lines = sorted(panel.series, key=lambda line: place.get(line.label, len(place)))
    numbers = np.stack([values_of([line.cells.get(group) for group in panel.groups]) for line in lines])
    axes.imshow(np.ma.masked_invalid(numbers), cmap="cividis", norm=norm, aspect="equal")
    name_columns(axes, panel.groups, room=_HEAT_LETTERS)
    axes.set_yticks(range(len(lines)), [shown(line.label, 16) for line in lines])
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.series))
    axes.set_title(title_in_lines(panel.title, 44), fontsize=9)
    for (row, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            ink = "white" if float(norm(value)) < 0.55 else "black"
            axes.text(column, row, number(value, panel.scale), ha="center", va="center", color=ink, fontsize=7)
    return {}


# Radar charts: one closed line per series


def draw_radar(chart: Chart) -> Figure:
    """Draws the panels in a grid, on one scale, logarithmic for ratios, with one legend for all."""

    def size(rows: int, columns: int) -> tuple[float, float]:
        return 1.0 + 4.4 * columns, 1.2 + 3.4 * rows

    figure = draw_in_grid(chart, _draw_radar_panel, 3, size, subplot_kw={"projection": "polar"})
    cast("ConstrainedLayoutEngine", figure.get_layout_engine()).set(w_pad=0.2)  # names reach out of the axes
    return figure


def _draw_radar_panel(chart: Chart, axes: PolarAxes, panel: Panel) -> Handles:
    angles = np.linspace(0, 2 * np.pi, len(panel.groups), endpoint=False)
    handles: Handles = {}
    for series in panel.series:
        values = values_of([series.cells.get(group) for group in panel.groups])
        if is_ratio(panel.scale):
            values = np.maximum(values, lowest_ratio(chart))
        style = look(chart.look_of(series.label))
        (handles[series.label],) = axes.plot(
            np.append(angles, angles[:1]),
            np.append(values, values[:1]),
            color=style.colour,
            linestyle=style.dashes,
            linewidth=1.3,
            marker=style.marker,
            markersize=3,
        )
    _finish_radar(chart, axes, panel, angles)
    return handles


def _finish_radar(chart: Chart, axes: PolarAxes, panel: Panel, angles: np.ndarray) -> None:
    top = max(float(cell.value) for one in chart.panels for cell in one.cells if cell.value is not None)
    axes.set_theta_direction(-1)
    axes.set_theta_zero_location("N")
    axes.set_xticks(angles, [shown(group, 16) for group in panel.groups], fontsize=7)
    for angle, label in zip(angles, axes.get_xticklabels(), strict=True):  # none reaches into the circle
        side = round(float(np.sin(angle)), 2)
        label.set_horizontalalignment("left" if side > 0 else "right" if side < 0 else "center")
    if is_ratio(panel.scale):
        logarithmic(axes)
        axes.set_ylim(lowest_ratio(chart), max(top, 1.0) * 1.1)
    else:
        axes.set_ylim(0, top * 1.05 or 1.0)
    axes.tick_params(axis="y", labelsize=6)
    axes.grid(color="0.85", linewidth=0.5)
    neutral = panel.scale.neutral
    if neutral is not None:
        circle = np.linspace(0, 2 * np.pi, 181)
        axes.plot(circle, np.full_like(circle, neutral), color="0.25", linewidth=0.9, zorder=1.5)
    axes.set_title(title_in_lines(panel.title, 44), fontsize=9)


# As files, or as bytes for a page

DRAW: Mapping[Kind, Callable[[Chart], Figure]] = {
    "overview": draw_overview,
    "bars": draw_bars,
    "points": draw_points,
    "dots": draw_dots,
    "radar": draw_radar,
    "heat": draw_heat,
    "lines": draw_lines,
    "pairs": draw_pairs,
}
"""The function that draws each kind of figure."""

_DPI = 160


def write_figures(
    report: Report, folder: Path, formats: Sequence[Format] = ("png", "svg"), *, published: bool = False
) -> list[Path]:
    """Writes every figure that the report has numbers for, and returns the paths.

    Texts in SVG files are text, which the reader's program sets in the reader's fonts.

    Args:
        report: The report.
        folder: Where the files go; made if need be. Files are named after the figures, with their key as stem.
        formats: File formats.
        published: Whether rows from papers are drawn beside the user's.
    """
    drawn = charts(report, published=published)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with styled(text for chart in drawn for text in chart.texts):
        for chart in drawn:
            figure = DRAW[chart.kind](chart)
            for suffix in formats:
                paths.append(folder / f"{chart.key}.{suffix}")
                paths[-1].write_bytes(_bytes(figure, suffix))
    return paths


def svg_images(drawn: Sequence[Chart]) -> list[bytes]:
    """Returns each figure as an SVG document in UTF-8, for a screen."""
    with styled(text for chart in drawn for text in chart.texts):
        return [
            _bytes(
                draw_overview(chart, _OVERVIEW_ACROSS_A_PAGE) if chart.kind == "overview" else DRAW[chart.kind](chart),
                "svg",
            )
            for chart in drawn
        ]


def _bytes(figure: Figure, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # laid out once is enough for all formats
    figure.savefig(buffer, format=suffix, dpi=_DPI, metadata=_WITHOUT_DATE.get(suffix))
    return buffer.getvalue()


_WITHOUT_DATE: Mapping[str, Mapping[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""Metadata that is left out, so that files are the same every time."""
