"""The report as one Markdown file: conclusions, a picture and a table, and the rest folded, by question."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from culture_tasks.report.model import Conclusion, Number, Report, Table
from culture_tasks.report.wording import (
    FIRST_FIGURES,
    FIRST_TABLE,
    QUESTIONS,
    counted,
    headers,
    interval,
    legend,
    marks_of,
    number,
)
from culture_tasks.text_tables import as_markdown, markdown_cell, plain

_WITHOUT_SPACES = re.compile("[^ ](?:.*[^ ])?", re.DOTALL)
"""A text without the spaces at its ends."""


def write_markdown(report: Report, folder: Path, suffix: str = "") -> list[Path]:
    """Writes ``report.md`` and returns its path; with a suffix, it shows the figures' files in ``figures/``."""
    path = folder / "report.md"
    path.write_text("\n\n".join(_parts(report, suffix)) + "\n", encoding="utf-8", newline="\n")
    return [path]


def _parts(report: Report, suffix: str) -> Iterator[str]:
    figures = report.figures if suffix else ()
    pictures = {each.key: f"![{markdown_cell(each.title)}](figures/{each.key}.{suffix})" for each in figures}
    yield f"# Report on {counted(len(report.models), 'model')}"
    yield from _bullets(report.findings)
    yield from (pictures[key] for key in FIRST_FIGURES if key in pictures)
    yield from (table_markdown(table) for table in report.tables if table.key == FIRST_TABLE)
    yield from map(markdown_cell, report.notes)
    marks = [f"- ({mark}) {meaning}" for mark, meaning in legend(report.tables)]
    if marks:
        yield "\n".join(["Marks behind a number:", "", *marks])
    for question, title in QUESTIONS.items():
        tables = [table for table in report.tables if table.question == question and table.key != FIRST_TABLE]
        shown = [figure for figure in figures if figure.question == question and figure.key not in FIRST_FIGURES]
        if tables or shown:
            yield f"## {title}"
        yield from (_fold(table.title, "\n\n".join(_content(table))) for table in tables)
        yield from (_fold(f"Figure: {figure.title}", pictures[figure.key]) for figure in shown)
    if report.problems:
        lines = [f"- {markdown_cell(file.path)}: {file.kind}, {markdown_cell(file.detail)}" for file in report.problems]
        yield _fold(f"Files not included ({len(lines)})", "\n".join(lines))


def _bullets(findings: Sequence[Conclusion]) -> Iterator[str]:
    if findings:
        yield "\n".join(f"- {_sentence(finding)}" for finding in findings)


def _sentence(finding: Conclusion) -> str:
    """Returns a finding with its names in bold and its command as code; spaces at the ends of other words stay."""
    fence = "`" * (1 + max(map(len, re.findall("`+", finding.command)), default=0))
    command = f" {fence}{plain(finding.command)}{fence}" if finding.command else ""
    words = (
        f"**{markdown_cell(part.text)}**"
        if part.is_name
        else _WITHOUT_SPACES.sub(lambda words: markdown_cell(words.group()), part.text)
        for part in finding.parts
    )
    return "".join(words) + command


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{html.escape(plain(title))}</summary>\n\n{content}\n\n</details>"


def table_markdown(table: Table) -> str:
    """Returns one table with its title and notes."""
    return "\n\n".join([f"## {markdown_cell(table.title)}", *_content(table)])


def _content(table: Table) -> Iterator[str]:
    if table.source:
        yield f"Layout: {markdown_cell(table.source)}"
    rows = (
        [*map(markdown_cell, labels), *(_cell(column.cells.get(row), table) for column in table.columns)]
        for row, labels in table.rows.items()
    )
    yield as_markdown(map(markdown_cell, headers(table)), rows, numbers=len(table.columns))
    yield from map(markdown_cell, table.notes)


def _cell(cell: Number | None, table: Table) -> str:
    if cell is None:
        return ""
    text, ends, marks = number(cell.value, cell.scale), interval(cell), marks_of(cell)
    value = f"**{text}**" if cell.best else text
    rank = f" #{cell.rank}" if cell.rank and table.key == FIRST_TABLE else ""
    remarks = "".join(f" ({remark})" for remark in cell.remarks)
    return "".join((value, f" ({ends})" if ends else "", f"<sup>{marks}</sup>" if marks else "", rank, remarks))
