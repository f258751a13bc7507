"""The report as one HTML file that asks nothing of the network: style, script, figures and samples are in it.

The templates escape every text. Texts that they don't escape come from templates, JSON or this package's own files.
"""

from __future__ import annotations

import base64
import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from culture_tasks.pages.markup import as_markup, asset, content_security_policy, templates_of
from culture_tasks.pages.thumbnails import Thumbnails
from culture_tasks.report import wording
from culture_tasks.report.drawing import svg_images
from culture_tasks.report.figures import description_of
from culture_tasks.report.html.samples import Payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from jinja2 import Environment
    from markupsafe import Markup

    from culture_tasks.benchmarks.tables import Figure
    from culture_tasks.report.model import Report, Table

_logger = logging.getLogger(__name__)

_VIEW_BOX = re.compile(rb'viewBox="0 0 (\d+)[.\d]* (\d+)[.\d]*"')
"""Width and height of an SVG document, without their fractions."""
_SAMPLES_PER_CELL = 10
"""Most samples of each run that a cell of a table opens."""
_MOST_BYTES = 24_000_000
"""Most bytes of samples; beyond them the page holds fewer of each cell."""


def write_html(
    report: Report,
    folder: Path,
    *,
    samples_per_cell: int = _SAMPLES_PER_CELL,
    images: Path | None = None,
    progress: Callable[[Sequence[Figure]], Iterable[Figure]] = iter,
) -> list[Path]:
    """Writes ``report.html`` and returns its path, with small copies of the images in a folder that samples name.

    Its content security policy lets nothing else in: no request leaves the page, and no text of a model, a data set or
    a file name can run.
    """
    svgs = zip(report.figures, svg_images(report.figures, progress), strict=True)
    payload, tables, data = _fit_samples(report, samples_per_cell, Thumbnails(images))
    style = asset("culture_tasks.pages", "page.css")
    code = "\n".join(asset(__package__, f"{name}.js") for name in ("tools", "tables", "samples", "page"))
    script = f'"use strict";\n\n(() => {{\n{code}}})();\n'  # one scope, which nothing else shares
    page = render(
        "page.html",
        report=report,
        pictures={figure.key: _figure(figure, svg) for figure, svg in svgs},
        tables=tables,
        samples=sum(run.items for run in report.runs.values() if run.samples),
        payload=payload,
        flags=wording.flags_in(report.tables),
        problems=_problems(report),
        policy=content_security_policy(style, script),
        style=as_markup(style),
        script=as_markup(script),
        data=as_markup(data),
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8", newline="\n")
    return [path]


def _problems(report: Report) -> list[tuple[str, ...]]:
    unused = [
        (each.path, wording.short_name(each.kind), str(each.lines or ""), each.detail) for each in report.problems
    ]
    in_use = [(str(run.path), "in use", "", text) for run in report.runs.values() for text in run.problems]
    return [*unused, *in_use]


def render(template: str, **values: Any) -> Markup:
    """Returns a template filled with values; every text among them is escaped."""
    return as_markup(environment().get_template(template).render(**values))


@cache
def environment() -> Environment:
    """Returns the environment of the page's templates."""
    templates = templates_of(__package__)
    templates.globals["wording"] = wording
    return templates


def _fit_samples(report: Report, per_cell: int, thumbnails: Thumbnails) -> tuple[Payload, dict[str, Markup], str]:
    """Makes tables and data with as many samples as the page may hold."""
    payload = Payload(report, per_cell, thumbnails)
    tables = {table.key: _table(table, payload) for table in report.tables}
    data = payload.json()
    if per_cell <= 1 or len(data.encode()) <= _MOST_BYTES:
        return payload, tables, data
    _logger.warning("html: %d samples a cell are too many for one page; it holds %d", per_cell, per_cell // 2)
    return _fit_samples(report, per_cell // 2, thumbnails)


def _table(table: Table, payload: Payload) -> Markup:
    return render(
        "table.html",
        table=table,
        anchor=f"table-{table.key}",
        is_first=table.key == wording.FIRST_TABLE,
        sum_at=max((index for index, column in enumerate(table.columns) if column.sums_up), default=-1),
        samples_of=payload.cell,
    )


def _figure(figure: Figure, svg: bytes) -> Markup:
    size = _VIEW_BOX.search(svg)  # so that the page doesn't jump when the figure appears
    return render(
        "figure.html",
        figure=figure,
        anchor=f"figure-{figure.key}",
        is_first=figure.key in wording.FIRST_FIGURES,
        description=description_of(figure),
        address=f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}",
        size=[part.decode() for part in size.groups()] if size else None,
    )
