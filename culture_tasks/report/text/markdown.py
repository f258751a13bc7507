"""The report as one Markdown file: what the numbers say, a picture and a table, and the rest folded, by question."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.report.model import Cell, Finding, Report, Table
from culture_tasks.report.wording import FIRST, QUESTIONS, counted, headers, interval, legend, marks_of, number
from culture_tasks.text_tables import as_markdown, markdown_cell, plain

if TYPE_CHECKING:
    from culture_tasks.report.figures.charts import Chart


def write_markdown(report: Report, folder: Path, figures: Sequence[Chart] = (), suffix: str = "png") -> list[Path]:
    """Writes ``report.md`` and returns its path.

    Args:
        report: The report.
        folder: Where the file goes.
        figures: Figures that lie in ``figures/`` beside it.
        suffix: How their files end.
    """
    path = folder / "report.md"
    path.write_text("\n\n".join(_parts(report, figures, suffix)) + "\n", encoding="utf-8", newline="\n")
    return [path]


def _parts(report: Report, figures: Sequence[Chart], suffix: str) -> Iterator[str]:
    yield f"# Report on {counted(len(report.models), 'model')}"
    if report.findings:
        yield "\n".join(f"- {_sentence(finding)}" for finding in report.findings)
    yield from (_picture(chart, suffix) for chart in figures if chart.key in FIRST)
    yield from (table_markdown(table) for table in report.tables if table.key in FIRST)
    yield from (_text(note) for note in report.notes)
    marks = [f"- ({mark}) {meaning}" for mark, meaning in legend(report.tables)]
    if marks:
        yield "\n".join(["Marks behind a number:", "", *marks])
    for question, title in QUESTIONS.items():
        tables = [table for table in report.tables if table.question == question and table.key not in FIRST]
        charts = [chart for chart in figures if chart.question == question and chart.key not in FIRST]
        if tables or charts:
            yield f"## {title}"
        yield from (_folded(table.title, "\n\n".join(_content(table))) for table in tables)
        yield from (_folded(f"Figure: {chart.title}", _picture(chart, suffix)) for chart in charts)
    yield from _problems(report)


def _sentence(finding: Finding) -> str:
    """Returns a finding with its names in bold."""
    return "".join(f"**{markdown_cell(part.text)}**" if part.is_name else _words(part.text) for part in finding.parts)


def _words(text: str) -> str:
    """Returns words of a sentence with the spaces at their ends."""
    inner = text.strip(" ")
    if not inner:
        return text
    before, _, after = text.partition(inner)
    return f"{before}{markdown_cell(inner)}{after}"


def _picture(chart: Chart, suffix: str) -> str:
    return f"![{_text(chart.title)}](figures/{chart.key}.{suffix})"


def _folded(title: str, content: str) -> str:
    return f"<details><summary>{html.escape(plain(title))}</summary>\n\n{content}\n\n</details>"


def table_markdown(table: Table) -> str:
    """Returns one table with its title and notes."""
    return "\n\n".join([f"## {_text(table.title)}", *_content(table)])


def _content(table: Table) -> Iterator[str]:
    if table.reproduces:
        yield f"Layout: {_text(table.reproduces)}"
    rows = ([*map(markdown_cell, row.labels), *(_cell(cell, table) for cell in row.cells)] for row in table.rows)
    yield as_markdown(map(markdown_cell, headers(table)), rows, numbers=len(table.columns))
    yield from (_text(note) for note in table.notes)


def _cell(cell: Cell | None, table: Table) -> str:
    if cell is None:
        return ""
    shown, ends, marks = number(cell.value, cell.scale), interval(cell), marks_of(cell)
    value = f"**{shown}**" if cell.best else shown
    rank = f" #{cell.rank}" if cell.rank and table.key in FIRST else ""
    return "".join((value, f" ({ends})" if ends else "", f"<sup>{marks}</sup>" if marks else "", rank))


def _problems(report: Report) -> Iterator[str]:
    if not report.problems:
        return
    lines = (
        f"- {markdown_cell(problem.path)}: {problem.kind}, {markdown_cell(problem.detail)}"
        for problem in report.problems
    )
    yield _folded(f"Files that were not used ({len(report.problems)})", "\n".join(lines))


def _text(text: str) -> str:
    return markdown_cell(plain(text))
