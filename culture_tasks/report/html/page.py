"""The report as one HTML file that asks nothing of the network: style, script, figures and samples are in it."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from importlib import resources
from typing import TYPE_CHECKING

from culture_tasks.report.figures.selecting import charts
from culture_tasks.report.figures.writing import svg_images
from culture_tasks.report.html import SAMPLES_PER_CELL
from culture_tasks.report.html.images import Thumbnails
from culture_tasks.report.html.markup import Markup, escaped, joined, name_of, tag
from culture_tasks.report.html.payload import Payload
from culture_tasks.report.html.sections import facts, figure_section, flag_legend, problems_section
from culture_tasks.report.html.tables import table_section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from culture_tasks.report.model import Report

_logger = logging.getLogger(__name__)

_PLACE = re.compile(r"\{\{([a-z]+)\}\}")
_HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>', re.DOTALL)
_MOST_BYTES = 24_000_000
"""Most bytes of samples; beyond them the page holds fewer of each cell."""


def write_html(
    report: Report,
    path: Path,
    *,
    samples_per_cell: int = SAMPLES_PER_CELL,
    images: Path | None = None,
    figures: bool = True,
    published: bool = False,
) -> None:
    """Writes the report as one HTML file.

    Nothing in the file comes from elsewhere, and its content security policy lets nothing else in: no request leaves
    the page, and no text of a model, a data set or a file name can run.

    Args:
        report: The report.
        path: The file to write.
        samples_per_cell: Most samples of each run that a cell of a table opens; 0 for none. The first ones of the
            file are taken, so that all models show the same items. The page says where samples are left out.
        images: Folder with the images that samples name; None for a page without them. Small copies are put into the
            page.
        figures: Whether figures are drawn.
        published: Whether rows from papers are drawn in figures.
    """
    drawn = charts(report, published=published) if figures else ()
    pictures = joined(map(figure_section, drawn, svg_images(drawn)))
    thumbnails = Thumbnails(images)
    payload, tables, data = _fitting(report, samples_per_cell, thumbnails)
    main = joined([*tables, pictures, problems_section(report)])
    path.write_text(_page(report, payload, main, data), encoding="utf-8", newline="\n")


def content_security_policy(style: str, script: str) -> str:
    """Returns the policy of a page with this style and this script, and nothing else that runs or loads."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _fitting(report: Report, per_cell: int, thumbnails: Thumbnails) -> tuple[Payload, list[Markup], str]:
    """Makes tables and data with as many samples as the page may hold."""
    while True:
        payload = Payload(report, per_cell, thumbnails)
        tables = [table_section(table, payload) for table in report.tables]
        data = payload.json()
        if per_cell <= 1 or len(data.encode()) <= _MOST_BYTES:
            return payload, tables, data
        _logger.warning("html: %d samples a cell are too many for one page; it holds %d", per_cell, per_cell // 2)
        per_cell //= 2


def _page(report: Report, payload: Payload, main: Markup, data: str) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    parts = {
        "policy": escaped(content_security_policy(style, script)),
        "style": style,
        "script": script,
        "facts": facts(report),
        "legend": flag_legend(report),
        "contents": _contents(main),
        "samples": _about_samples(payload),
        "main": main,
        "data": data,
    }
    return _filled(_asset("page.html"), parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Fills the template's places in one pass, so that text which looks like a place stays as it is."""
    return _PLACE.sub(lambda place: parts[place.group(1)], template)


def _contents(main: str) -> Markup:
    found: Iterable[tuple[str, str]] = _HEADING.findall(main)
    return tag("ul", *(_entry(key, title) for key, title in found))


def _entry(key: str, title: str) -> Markup:
    kind = "Figure: " if key.startswith("figure-") else None
    return tag("li", tag("a", kind, Markup(title), href=Markup(f"#{key}")))


def _about_samples(payload: Payload) -> Markup:
    if not payload.embedded:
        return tag("p", "This page holds no samples.", class_="note")
    text = f"This page holds {payload.embedded:,} samples. Choose a number to read the samples behind it."
    if payload.cut:
        text += f" Of each run behind a number the first {payload.per_cell} are here; the sample files have all."
    return tag("p", name_of(text), class_="note")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


def _asset(name: str) -> str:
    return resources.files("culture_tasks.report.html").joinpath(name).read_text(encoding="utf-8")
