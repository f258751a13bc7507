"""Figures as files, or as bytes for a page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from culture_tasks.report.figures.drawing import DRAW
from culture_tasks.report.figures.selecting import charts
from culture_tasks.report.figures.style import styled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Literal

    from matplotlib.figure import Figure

    from culture_tasks.report.figures.charts import Chart
    from culture_tasks.report.model import Report

    Format = Literal["png", "svg"]

_DPI = 160


def write_figures(
    report: Report, folder: Path, formats: Sequence[Format] = ("png", "svg"), *, published: bool = False
) -> list[Path]:
    """Writes every figure that the report has numbers for, and returns the paths.

    Texts in SVG files are text, which the reader's program sets in the reader's fonts; PNG files are set here.

    Args:
        report: The report.
        folder: Where the files go; made if need be. Files are named after the figures, with their key as stem.
        formats: File formats.
        published: Whether rows from papers are drawn beside the user's.
    """
    drawn = charts(report, published=published)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    with styled(drawn):
        for chart in drawn:
            figure = DRAW[chart.kind](chart)
            for suffix in formats:
                paths.append(folder / f"{chart.key}.{suffix}")
                paths[-1].write_bytes(_bytes(figure, suffix))
    return paths


def svg_images(drawn: Sequence[Chart]) -> list[bytes]:
    """Returns each figure as an SVG document in UTF-8."""
    with styled(drawn):
        return [_bytes(DRAW[chart.kind](chart), "svg") for chart in drawn]


def _bytes(figure: Figure, suffix: Format) -> bytes:
    buffer = io.BytesIO()
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # laid out once is enough for all formats
    figure.savefig(buffer, format=suffix, dpi=_DPI, metadata={"Date": None} if suffix == "svg" else None)
    return buffer.getvalue()
