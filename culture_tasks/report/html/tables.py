"""Tables of the report as HTML: readable without the script, which adds sorting, filters and samples."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from culture_tasks.report.html.markup import Markup, joined, name_of, paragraph, tag
from culture_tasks.report.html.numbers import NO_NUMBER, flag_words, interval, number
from culture_tasks.report.model import NOT_COMPARABLE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from culture_tasks.report.html.payload import Payload
    from culture_tasks.report.model import Cell, Column, Row, Table

_LONG = 40
"""Rows beyond which a table scrolls by itself, so that its header stays in sight."""


def table_section(table: Table, payload: Payload) -> Markup:
    """Returns a table with its title, the paper's table that it follows, and its notes."""
    title = f"table-{table.key}"
    source = tag("p", "In the layout of ", name_of(table.reproduces), class_="source") if table.reproduces else None
    notes = [paragraph(note, class_="note") for note in table.notes]
    return tag(
        "section",
        tag("h2", name_of(table.title), id=title),
        source,
        scrolled(_grid(table, payload), title, rows=len(table.rows)),
        *notes,
        class_="table",
    )


def scrolled(content: Markup, labelled_by: str, *, rows: int = 0) -> Markup:
    """Returns a part of the page that scrolls sideways by itself, with keys too; a long one under its header."""
    css = "scroll long" if rows > _LONG else "scroll"
    return tag("div", content, class_=css, role="region", tabindex="0", aria_labelledby=labelled_by)


def plain_table(headers: Sequence[str], rows: Iterable[Sequence[str]], numeric: Collection[int]) -> Markup:
    """Returns a sortable table of texts.

    Args:
        headers: One for each column.
        rows: Texts of each row; the first names the row.
        numeric: Columns of numbers, counted from 0.
    """
    head = tag("tr", *(_header(text, place in numeric) for place, text in enumerate(headers)))
    body = []
    for row in rows:
        others = [
            tag("td", name_of(text), class_="number" if place in numeric else None)
            for place, text in enumerate(row[1:], start=1)
        ]
        body.append(tag("tr", tag("th", name_of(row[0]), scope="row"), *others))
    return tag("table", tag("thead", head), tag("tbody", *body), data_sortable=True)


def _grid(table: Table, payload: Payload) -> Markup:
    rows = [tag("tr", *_over(table))] if any(column.over for column in table.columns) else []
    labels = [_header(text, numeric=False) for text in table.row_headers]
    rows.append(tag("tr", *labels, *map(_column_header, table.columns)))
    body = [_row(row, table, payload) for row in table.rows]
    return tag("table", tag("thead", *rows), tag("tbody", *body), data_sortable=True, data_filtered=True)


def _over(table: Table) -> list[Markup]:
    spans = [tag("td", colspan=len(table.row_headers), class_="corner")]
    first = 0
    for title, columns in groupby(table.columns, key=lambda column: column.over):
        count = len(list(columns))
        spans.append(tag("th", name_of(title), colspan=count, scope="colgroup", data_first=first, data_count=count))
        first += count
    return spans


def _header(text: str, numeric: bool, search: str | None = None) -> Markup:
    button = tag("button", name_of(text), tag("span", class_="arrow", aria_hidden="true"), type="button", class_="sort")
    css = "number" if numeric else None
    return tag("th", button, scope="col", aria_sort="none", class_=css, data_search=search)


def _column_header(column: Column) -> Markup:
    return _header(column.label, numeric=True, search=f"{column.over} {column.label}".strip())


def _row(row: Row, table: Table, payload: Payload) -> Markup:
    first, *others = row.labels
    mark = tag("span", "published", class_="flag") if row.published else None
    labels = [tag("th", name_of(first), mark, scope="row"), *(tag("td", name_of(text)) for text in others)]
    cells = [_cell(cell, payload) for cell in row.cells]
    search = ", ".join(label for label in row.labels if label)
    missing = [tag("td") for _ in table.columns[len(cells) :]]
    return tag("tr", *labels, *cells, *missing, data_search=search, data_published=row.published)


def _cell(cell: Cell | None, payload: Payload) -> Markup:
    if cell is None:
        return tag("td", class_="number", data_value="")
    shown = number(cell.value, cell.scale)
    index = payload.cell(cell)
    value = tag("span", shown, class_="value")
    if index is not None:
        value = tag("button", shown, type="button", class_="value", data_cell=index)
    rank = tag("span", f"#{cell.rank}", class_="rank") if cell.rank else None
    ends = interval(cell)
    details = tag("span", ends, class_="interval") if ends and shown != NO_NUMBER else None
    excluded = bool(NOT_COMPARABLE.intersection(cell.flags))
    return tag(
        "td",
        value,
        rank,
        details,
        joined(tag("span", words, class_="flag") for words in flag_words(cell.flags) if words != "published"),
        class_="number excluded" if excluded else "number",
        data_value="" if cell.value is None else repr(float(cell.value)),
    )
