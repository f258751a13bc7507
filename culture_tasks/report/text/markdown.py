"""The report as one Markdown file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from culture_tasks.report.model import Cell, Report, Table
from culture_tasks.report.text.wording import headers, interval, is_best, legend, marks_of, number
from culture_tasks.text_tables import as_markdown, markdown_cell, plain


def write_markdown(report: Report, folder: Path) -> list[Path]:
    """Writes ``report.md`` and returns its path."""
    path = folder / "report.md"
    path.write_text(_whole(report), encoding="utf-8", newline="\n")
    return [path]


def _whole(report: Report) -> str:
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
    rows = (
        [*map(markdown_cell, row.labels), *(_cell(cell, table, at) for at, cell in enumerate(row.cells))]
        for row in table.rows
    )
    drawn = as_markdown(map(markdown_cell, headers(table)), rows, numbers=len(table.columns))
    title = f"## {_text(table.title)}"
    layout = [f"Layout: {_text(table.reproduces)}"] if table.reproduces else []
    return "\n\n".join([title, *layout, drawn, *(_text(note) for note in table.notes)])


def _cell(cell: Cell | None, table: Table, at: int) -> str:
    if cell is None:
        return ""
    shown, ends, marks = number(cell.value, cell.scale), interval(cell), marks_of(cell)
    value = f"**{shown}**" if is_best(cell, table, at) else shown
    return "".join((value, f" ({ends})" if ends else "", f"<sup>{marks}</sup>" if marks else ""))


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
