"""Figures in which a colour is a number: heat maps, and maps with one tile per country."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from culture_tasks.pages.names import shown
from culture_tasks.report.figures.style import name_columns, panel_title, values_of
from culture_tasks.report.numbers.countries import FEW
from culture_tasks.report.tiles import tiles
from culture_tasks.report.wording import number
from culture_tasks.vocabulary import place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.figures.style import Handles
    from culture_tasks.report.model import Cell

COLOURED = frozenset(("heat", "matrix", "map"))
"""Kinds of figures that need a bar of their colours."""

COLOUR_MAP = "viridis"
_LETTERS = 40
"""Letters that fit below a heat map."""
_HATCH = "/" * 5
_WITHIN: Mapping[str, Any] = {"ha": "center", "va": "center", "in_layout": False}
"""Text within a cell, where the layout of the figure needn't measure it: there are hundreds."""


class Colours(NamedTuple):
    """Colours of numbers, readable for colour-blind readers and in print.

    Attributes:
        low: The number with the darkest colour.
        high: The number with the lightest one.
    """

    low: float
    high: float

    @property
    def norm(self) -> Normalize:
        """The same for matplotlib."""
        from matplotlib.colors import Normalize

        return Normalize(self.low, self.high)

    def fill(self, value: float) -> str:
        """Returns the colour of a number."""
        import matplotlib as mpl
        from matplotlib.colors import to_hex

        return to_hex(mpl.colormaps[COLOUR_MAP]((value - self.low) / (self.high - self.low)))

    def ink(self, value: float) -> str:
        """Returns the colour of letters on the colour of a number."""
        return "white" if value - self.low < 0.55 * (self.high - self.low) else "black"


def colours(chart: Chart) -> Colours:
    """Returns the colours of a chart's numbers, the same in all panels.

    They span the whole scale of countries' scores, and the range of the numbers in other heat maps.
    """
    scale = chart.panels[0].scale
    if chart.kind != "heat" and scale.low is not None and scale.high is not None:
        return Colours(scale.low, scale.high)
    every = [cell.value for panel in chart.panels for cell in panel.cells if cell.value is not None]
    return Colours(min(every), max(every) if max(every) > min(every) else min(every) + 1)


def draw_heat(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    """Draws series by groups, with the number in each cell."""
    colour = colours(chart)
    order = {group: at for at, group in enumerate(panel.groups)}  # rows follow columns of the same names
    lines = sorted(panel.series, key=lambda line: order.get(line.label, len(order)))
    numbers = np.stack([values_of([line.cells.get(group) for group in panel.groups]) for line in lines])
    axes.imshow(np.ma.masked_invalid(numbers), cmap=COLOUR_MAP, norm=colour.norm, aspect="equal")
    name_columns(axes, panel.groups, room=_LETTERS)
    axes.set_yticks(range(len(lines)), [shown(line.label, 16) for line in lines])
    axes.set_xlabel(shown(chart.groups))
    axes.set_ylabel(shown(chart.series))
    panel_title(axes, panel, 44)
    for (row, column), value in np.ndenumerate(numbers):
        if np.isfinite(value):
            text, ink = number(value, panel.scale), colour.ink(value)
            axes.text(column, row, text, ha="center", va="center", color=ink, fontsize=7)
    return {}


def draw_matrix(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    """Draws models by countries: whole numbers, bold where they stand out, grey where there are few questions."""
    from matplotlib.patches import Rectangle

    colour = colours(chart)
    for row, series in enumerate(panel.series):
        for column, group in enumerate(panel.groups):
            cell = series.cells.get(group)
            if cell is None or cell.value is None:
                continue
            fill = "0.86" if cell.n < FEW else colour.fill(cell.value)
            ink = "0.35" if cell.n < FEW else colour.ink(cell.value)
            axes.add_patch(Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, color=fill, linewidth=0))
            weight = "bold" if cell.best else "normal"
            text = f"{cell.value:.0f}"
            axes.text(column, row, text, color=ink, fontsize=8, fontweight=weight, **_WITHIN)
    axes.set_xlim(-0.5, len(panel.groups) - 0.5)
    axes.set_ylim(len(panel.series) - 0.5, -0.5)
    names = [shown(group, 24) for group in panel.groups]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_yticks(range(len(panel.series)), [shown(series.label, 28) for series in panel.series])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return {}


def draw_map(chart: Chart, axes: Axes, panel: Panel) -> Handles:
    """Draws one tile per country, grey without a number, hatched where there are few questions."""
    from matplotlib.patches import Rectangle

    colour, [series] = colours(chart), panel.series
    for code, tile in tiles().items():
        if tile.column is None or tile.row is None:
            continue
        cell = series.cells.get(place(code).name)
        fill, ink, hatch = _tile_look(cell, colour)
        corner = (tile.column - 0.47, tile.row - 0.47)
        patch = Rectangle(corner, 0.94, 0.94, facecolor=fill, edgecolor="white", hatch=hatch, linewidth=0)
        axes.add_patch(patch)
        if hatch:  # none behind the letters
            axes.add_patch(Rectangle((tile.column - 0.47, tile.row - 0.24), 0.94, 0.48, facecolor=fill, linewidth=0))
        size = 6.0 if len(chart.panels) > 1 else 8.0
        axes.text(tile.column, tile.row, code, color=ink, fontsize=size, **_WITHIN)
    known = [tile for tile in tiles().values() if tile.column is not None and tile.row is not None]
    axes.set_xlim(-0.6, max(tile.column or 0 for tile in known) + 0.6)
    axes.set_ylim(max(tile.row or 0 for tile in known) + 0.6, -0.6)
    axes.set_aspect("equal")
    axes.set_axis_off()
    panel_title(axes, panel, 44, loc="left")
    return {}


def _tile_look(cell: Cell | None, colour: Colours) -> tuple[str, str, str]:
    """Returns the fill, the colour of the letters, and the hatch of a tile."""
    if cell is None or cell.value is None:
        return "0.93", "0.65", ""
    return colour.fill(cell.value), colour.ink(cell.value), _HATCH if cell.n < FEW else ""
