"""The report as one Markdown file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from culture_tasks.report.model import Cell, Report, Table
from culture_tasks.report.writers.shown import headers, interval_of, is_best, legend, marks_of, value_of
from culture_tasks.tables import markdown_cell, plain


def write_markdown(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.md`` and returns its path."""
    path = folder / "report.md"
    path.write_text(as_markdown(report), encoding="utf-8", newline="\n")
    return [path]


def as_markdown(report: Report) -> str:
    """Returns the report as Markdown."""
    parts = [
        f"# Report on {len(report.models)} models",
        *(f"{_text(note)}" for note in report.notes),
    ]
    marks = [f"- ({mark}) {meaning}" for mark, meaning in legend(report.tables)]
    if marks:
        parts.append("\n".join(["Marks behind a number:", "", *marks]))
    parts += [table_markdown(table) for table in report.tables]
    parts += _problems(report)
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Table) -> str:
    """Returns one table with its title and notes."""
    lines = [[markdown_cell(text) for text in headers(table)]]
    lines.append(["---"] * len(table.row_headers) + ["---:"] * len(table.columns))
    for row in table.rows:
        cells = [_cell(cell, table, at) for at, cell in enumerate(row.cells)]
        lines.append([*(markdown_cell(label) for label in row.labels), *cells])
    drawn = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    title = f"## {_text(table.title)}"
    layout = [f"Layout: {_text(table.reproduces)}"] if table.reproduces else []
    return "\n\n".join([title, *layout, drawn, *(_text(note) for note in table.notes)])


def _cell(cell: Cell | None, table: Table, at: int) -> str:
    if cell is None:
        return ""
    value = f"**{value_of(cell)}**" if is_best(cell, table, at) else value_of(cell)
    marks, interval = marks_of(cell), interval_of(cell)
    return "".join((value, f" ({interval})" if interval else "", f"<sup>{marks}</sup>" if marks else ""))


def _problems(report: Report) -> Iterator[str]:
    if not report.problems:
        return
    yield f"## Files that were not used ({len(report.problems)})"
    yield "\n".join(
        f"- {markdown_cell(problem.path)}: {problem.kind}, {markdown_cell(problem.detail)}"
        for problem in report.problems
    )


def _text(text: str) -> str:
    return markdown_cell(plain(text))
