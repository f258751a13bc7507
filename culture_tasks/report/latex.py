r"""The report's tables as LaTeX with booktabs: a file for each, which a paper can ``\input``.

Letters outside ASCII stay as they are: XeLaTeX and LuaLaTeX set them in the document's fonts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from culture_tasks.report.wording import FIRST_TABLE, file_name, interval, legend, marks_of, number, spans
from culture_tasks.text_tables import plain

if TYPE_CHECKING:
    from pathlib import Path

    from culture_tasks.report.model import Number, Report, Table

_NAMES = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_NAMES |= {'"': "quotedbl", "'": "quotesingle", "`": "asciigrave"}
_SPECIAL = str.maketrans(
    {mark: rf"\text{name}{{}}" for mark, name in _NAMES.items()}
    | {mark: rf"\{mark}" for mark in "{}$&#%_"}
    | {mark: f"{{{mark}}}" for mark in "-[]*"}
)


def write_latex(report: Report, folder: Path) -> list[Path]:
    """Writes ``latex/<table>.tex`` for each table, and returns the paths."""
    (folder / "latex").mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for table in report.tables:
        paths.append(folder / "latex" / f"{file_name(table.key)}.tex")
        paths[-1].write_text(table_latex(table), encoding="utf-8", newline="\n")
    return paths


def table_latex(table: Table) -> str:
    """Returns one table with caption and notes, as wide as the text at most."""
    texts = len(table.row_headers)
    lines = [" & ".join(map(escape, (*table.row_headers, *(column.label for column in table.columns))))]
    if any(column.over for column in table.columns):
        over = (rf"\multicolumn{{{span.width}}}{{c}}{{{escape(span.title)}}}" for span in spans(table))
        lines.insert(0, " & ".join([*[""] * texts, *over]))
    rows = {
        row: " & ".join([*map(escape, labels), *(_cell(column.cells.get(row), table) for column in table.columns)])
        for row, labels in table.rows.items()
    }
    body = [f"{line} \\\\" for row, line in rows.items() if row not in table.published]
    papers = [f"{line} \\\\" for row, line in rows.items() if row in table.published]
    source = f" (layout: {table.source})" if table.source else ""
    notes = [*table.notes, *(f"{mark}: {meaning}" for mark, meaning in legend([table]))]
    return "\n".join(
        [
            "% Needs booktabs and graphicx.",
            r"\begin{table}[htbp]\centering",
            rf"\caption{{{escape(table.title + source)}}}",
            r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * texts}{'r' * len(table.columns)}}}",
            *(r"\toprule", *(f"{line} \\\\" for line in lines), r"\midrule", *body),
            *([r"\midrule"] if body and papers else []),
            *(*papers, r"\bottomrule", r"\end{tabular}}"),
            *(rf"\par\smallskip\footnotesize\raggedright {escape(note)}" for note in notes),
            r"\end{table}" + "\n",
        ]
    )


def escape(text: str) -> str:
    """Returns the text so that LaTeX prints it and runs nothing of it."""
    return plain(text).translate(_SPECIAL)


def _cell(cell: Number | None, table: Table) -> str:
    if cell is None:
        return ""
    text = number(cell.value, cell.scale)
    value = escape(text) if cell.value is None else f"${_in_math(text)}$"
    if cell.best:
        value = rf"$\mathbf{{{_in_math(text)}}}$"
    marks, ends = marks_of(cell), _in_math(interval(cell))
    rank = rf" {{\tiny \#{cell.rank}}}" if cell.rank and table.key == FIRST_TABLE else ""
    remarks = "".join(rf" {{\tiny ({escape(remark)})}}" for remark in cell.remarks)
    behind = rf" {{\scriptsize $[{ends}]$}}" if ends else ""
    return f"{value}{f'$^{{{marks}}}$' if marks else ''}{rank}{remarks}{behind}"


def _in_math(text: str) -> str:
    """Returns a number for math mode, which would set a space after the comma between its digits."""
    return re.sub(",(?=[0-9])", "{,}", text).replace("%", r"\%")
