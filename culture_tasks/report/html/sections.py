"""Parts of the page beside its tables: what holds for all, what flags mean, figures, and files with problems."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

from culture_tasks.report.html.markup import Markup, joined, name_of, paragraph, tag
from culture_tasks.report.html.numbers import NO_NUMBER, interval, number, short_name
from culture_tasks.report.html.tables import plain_table, scrolled
from culture_tasks.report.model import FLAG_TEXT, NOT_COMPARABLE

if TYPE_CHECKING:
    from culture_tasks.report.figures.charts import Chart, Panel
    from culture_tasks.report.model import Cell, Report

_VIEW_BOX = re.compile(rb'viewBox="0 0 (\d+)[.\d]* (\d+)[.\d]*"')


def facts(report: Report) -> Markup:
    """Returns what the report is made of, in one list."""
    items = sum(run.items for run in report.runs.values())
    options = [f"{key.replace('_', ' ')}: {value}" for key, value in report.options.items() if value]
    lines = {
        "Made": f"{report.created}, culture-tasks {report.version}",
        "Models": str(len(report.models)),
        "Runs": f"{len(report.runs)}, with {items:,} samples",
        "Files left out": str(len(report.problems)),
        "Options": "; ".join(options) or "none",
    }
    pairs = [joined([tag("dt", key), tag("dd", name_of(text))]) for key, text in lines.items()]
    return joined([tag("dl", *pairs, class_="facts"), *(paragraph(note, class_="note") for note in report.notes)])


def flag_legend(report: Report) -> Markup:
    """Returns what the flags mean that occur in the report's tables."""
    used = {flag for table in report.tables for row in table.rows for cell in row.cells if cell for flag in cell.flags}
    pairs = [
        joined([tag("dt", short_name(flag)), tag("dd", text, " (not comparable)" if flag in NOT_COMPARABLE else None)])
        for flag, text in FLAG_TEXT.items()
        if flag in used
    ]
    if not pairs:
        return Markup()
    rule = "Cells that are not comparable are neither ranked nor tested, unless the options say so."
    return tag("details", tag("summary", "What the flags mean"), tag("dl", *pairs), tag("p", rule))


def figure_section(chart: Chart, svg: bytes) -> Markup:
    """Returns a figure, with its numbers as tables for those who don't see it."""
    title = f"figure-{chart.key}"
    address = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode('ascii')}"
    image = tag("img", src=address, alt=chart.description, loading="lazy", decoding="async", **_size(svg))
    caption = tag("figcaption", "After ", chart.source, ". ", "; ".join(chart.notes))
    tables = [_panel_table(chart, panel, f"{title}-{place}") for place, panel in enumerate(chart.panels)]
    numbers = tag("details", tag("summary", "Numbers of this figure"), *tables)
    figure = tag("figure", tag("div", image, class_="paper"), caption, numbers)
    return tag("section", tag("h2", name_of(chart.title), id=title), figure, class_="figure")


def _size(svg: bytes) -> dict[str, str]:
    """Returns width and height of a figure, so that the page doesn't jump when it appears."""
    found = _VIEW_BOX.search(svg)
    return {"width": found[1].decode(), "height": found[2].decode()} if found else {}


def _panel_table(chart: Chart, panel: Panel, key: str) -> Markup:
    rows = [
        (series.label, *(_with_interval(series.cells.get(group)) for group in panel.groups)) for series in panel.series
    ]
    table = plain_table((chart.series, *panel.groups), rows, range(1, len(panel.groups) + 1))
    return joined([tag("h3", name_of(panel.title), id=key), scrolled(table, key, rows=len(rows))])


def _with_interval(cell: Cell | None) -> str:
    if cell is None:
        return NO_NUMBER
    ends = interval(cell)
    return f"{number(cell.value, cell.scale)} ({ends})" if ends else number(cell.value, cell.scale)


def problems_section(report: Report) -> Markup:
    """Returns the files that were left out, and what is wrong with files in use; nothing where all is well."""
    lost = [(lost.path, short_name(lost.kind), str(lost.lines or ""), lost.detail) for lost in report.problems]
    used = [(run.results_file, "in use", "", problem) for run in report.runs.values() for problem in run.problems]
    if not lost and not used:
        return Markup()
    table = plain_table(("file", "what is wrong", "lines left out", "more"), [*lost, *used], (2,))
    about = tag("p", "Files that are not in use are not counted anywhere.", class_="source")
    return tag(
        "section",
        tag("h2", "Files with problems", id="problems"),
        about,
        scrolled(table, "problems", rows=len(lost) + len(used)),
    )
