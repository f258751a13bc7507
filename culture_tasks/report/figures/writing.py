"""Figures as files, or as bytes for a page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from culture_tasks.report.figures.bars import draw_bars
from culture_tasks.report.figures.heat import draw_heat
from culture_tasks.report.figures.lines import draw_lines
from culture_tasks.report.figures.pairs import draw_pairs
from culture_tasks.report.figures.points import draw_points
from culture_tasks.report.figures.radar import draw_radar
from culture_tasks.report.figures.selecting import charts
from culture_tasks.report.figures.style import styled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Literal

    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart, Kind
    from culture_tasks.report.model import Report

    Format = Literal["png", "svg"]

_DRAW: Mapping[Kind, Callable[[Chart], Figure]] = {
    "bars": draw_bars,
    "points": draw_points,
    "radar": draw_radar,
    "heat": draw_heat,
    "lines": draw_lines,
    "pairs": draw_pairs,
}
_DPI = 160


def write_figures(
    report: Report, folder: Path, formats: Sequence[Format] = ("png", "svg"), *, published: bool = False
) -> list[Path]:
    """Writes every figure that the report has numbers for, and returns the paths.

    Texts in SVG files are text, which the reader's program sets in the reader's fonts; PNG files are set here.

    Args:
        report: The report.
        folder: Where the files go; made if need be. Files are named after the figures, such as ``cedar_gepp.svg``.
        formats: File formats.
        published: Whether rows from papers are drawn beside the user's.
    """
    drawn = charts(report, published=published)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with styled(drawn):
        for chart in drawn:
            figure = _DRAW[chart.kind](chart)
            for suffix in formats:
                paths.append(folder / f"{chart.key}.{suffix}")
                paths[-1].write_bytes(_bytes(figure, suffix))
    return paths


def svg_images(drawn: Sequence[Chart]) -> list[bytes]:
    """Returns each figure as an SVG document in UTF-8."""
    with styled(drawn):
        return [_bytes(_DRAW[chart.kind](chart), "svg") for chart in drawn]


def _bytes(figure: Figure, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once is enough for all formats
    figure.savefig(buffer, format=suffix, dpi=_DPI, metadata={"Date": None} if suffix == "svg" else None)
    return buffer.getvalue()
