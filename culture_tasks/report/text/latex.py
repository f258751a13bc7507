r"""The report as LaTeX with booktabs: one document, and a file for each table that a paper can ``\input``.

Letters that pdfLaTeX has no font for are written twice, as themselves for XeLaTeX and LuaLaTeX and as code points for
pdfLaTeX, so that the document compiles with any of the three.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from culture_tasks.report.model import Cell, Report, Table
from culture_tasks.report.text.wording import FIRST, QUESTIONS, interval, legend, marks_of, number
from culture_tasks.text import storable
from culture_tasks.text_tables import plain

if TYPE_CHECKING:
    from culture_tasks.report.figures.charts import Chart

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "-": r"{-}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "—": r"\textemdash{}",
    "–": r"\textendash{}",
    "…": r"\textellipsis{}",
    "±": r"\textpm{}",
}
_PREAMBLE = r"""% Needs booktabs, graphicx and longtable. Compiles with pdfLaTeX, XeLaTeX and LuaLaTeX.
\documentclass{article}
\usepackage{iftex}
\ifPDFTeX\usepackage[utf8]{inputenc}\usepackage[T1]{fontenc}\usepackage{textcomp}\else\usepackage{fontspec}\fi
\usepackage[a3paper,landscape,margin=2cm]{geometry}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage{longtable}
"""
_MACROS = r"""\providecommand{\otherscript}{}
\ifdefined\XeTeXversion\renewcommand{\otherscript}[2]{#1}\else
\ifdefined\directlua\renewcommand{\otherscript}[2]{#1}\else
\renewcommand{\otherscript}[2]{#2}\fi\fi
"""
_LONG = 40
"""Rows from which on a table may break across pages."""

_WIDE = 8
"""Columns from which on an interval stands below its number."""

_TOGETHER = 4

_OTHER = re.compile(r"[^\x20-\x7e]+")
"""Runs of characters that aren't printable ASCII."""


def write_latex(report: Report, folder: Path, figures: Sequence[Chart] = ()) -> list[Path]:
    """Writes ``report.tex`` and ``latex/<table>.tex``, and returns their paths.

    Args:
        report: The report.
        folder: Where the files go.
        figures: Figures that lie as PDF files in ``figures/`` beside it.
    """
    parts = folder / "latex"
    parts.mkdir(parents=True, exist_ok=True)
    paths = [folder / "report.tex"]
    for table in report.tables:
        paths.append(parts / f"{file_name(table.key)}.tex")
        _write(paths[-1], f"% Needs booktabs, graphicx and longtable.\n{_MACROS}{table_latex(table)}\n")
    _write(paths[0], as_latex(report, figures))
    return paths


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def file_name(key: str) -> str:
    """Returns a key as a name of a file: letters, digits, ``_`` and ``-`` alone, and no two keys as one name."""
    plainer = re.sub(r"[^A-Za-z0-9_-]+", "-", key)[:80]
    return plainer if plainer == key else f"{plainer}-{hashlib.sha256(storable(key).encode()).hexdigest()[:8]}"


def as_latex(report: Report, figures: Sequence[Chart] = ()) -> str:
    """Returns the report as a whole document: what the numbers say, a picture and a table, then all by question."""
    marks = [rf"\item[({mark})] {escape(meaning)}" for mark, meaning in legend(report.tables)]
    said = [rf"\item {escape(finding.text)}" for finding in report.findings]
    parts = [
        rf"{_PREAMBLE}{_MACROS}\begin{{document}}",
        *(["\\begin{itemize}", *said, "\\end{itemize}"] if said else []),
        *(_figure(chart) for chart in figures if chart.key in FIRST),
        *(table_latex(table) for table in report.tables if table.key in FIRST),
        *(escape(note) for note in report.notes),
        *(["\\begin{description}", *marks, "\\end{description}"] if marks else []),
    ]
    for question, title in QUESTIONS.items():
        tables = [table_latex(each) for each in report.tables if each.question == question and each.key not in FIRST]
        drawn = [_figure(each) for each in figures if each.question == question and each.key not in FIRST]
        if tables or drawn:
            parts.append(rf"\clearpage\section*{{{escape(title)}}}")
            parts += [each + _page_break(at) for at, each in enumerate((*tables, *drawn), start=1)]
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def _figure(chart: Chart) -> str:
    notes = "; ".join(part for part in (chart.source and f"After {chart.source}", *chart.notes) if part)
    return (
        f"\\begin{{figure}}[htbp]\n\\centering\n"
        f"\\includegraphics[width=\\textwidth,height=0.85\\textheight,keepaspectratio]{{figures/{chart.key}.pdf}}\n"
        f"\\caption{{{escape(f'{chart.title}. {notes}')}}}\n\\end{{figure}}"
    )


def _page_break(at: int) -> str:
    """Lets tables out before more wait for a page than LaTeX can hold."""
    return "\n\\clearpage" if at % _TOGETHER == 0 else ""


def escape(text: str) -> str:
    """Returns the text so that LaTeX prints it and runs nothing of it."""
    pieces: list[str] = []
    for special, run in itertools.groupby(plain(text), lambda mark: mark in _SPECIAL):
        part = "".join(run)
        pieces.append("".join(_SPECIAL[mark] for mark in part) if special else _OTHER.sub(_otherwise, part))
    return "".join(pieces)


def _otherwise(found: re.Match[str]) -> str:
    """Writes letters outside ASCII for engines that have them, and in ASCII for pdfLaTeX."""
    letters = found.group()
    plainer = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode()
    spelled = " ".join(f"U+{ord(letter):04X}" for letter in letters[:8]) + (" ..." if len(letters) > 8 else "")
    simple = re.sub(r"[^A-Za-z0-9]", "", plainer)
    return rf"\otherscript{{{letters}}}{{{simple if len(simple) == len(letters) else f'[{spelled}]'}}}"


def table_latex(table: Table) -> str:
    """Returns one table with caption and notes: as wide as the text, or over pages where it is long."""
    layout = f" (layout: {table.reproduces})" if table.reproduces else ""
    caption = rf"\caption{{{escape(table.title + layout)}}}"
    body = "\n".join(_body(table))
    columns = "l" * len(table.row_headers) + "r" * len(table.columns)
    notes = "\n".join(rf"\par\smallskip\footnotesize\raggedright {escape(note)}" for note in table.notes)
    if len(table.rows) >= _LONG:
        head = "\n".join(_head(table))
        return (
            f"{{\\scriptsize\n\\begin{{longtable}}{{{columns}}}\n{caption}\\\\\n{head}\n\\endhead\n{body}\n"
            f"\\bottomrule\n\\end{{longtable}}\n{notes}\n}}"
        )
    head = "\n".join(_head(table))
    tabular = f"\\begin{{tabular}}{{{columns}}}\n{head}\n{body}\n\\bottomrule\n\\end{{tabular}}"
    return (
        f"\\begin{{table}}[htbp]\n\\centering\n{caption}\n\\resizebox{{\\ifdim\\width>\\textwidth\\textwidth\\else\\width\\fi}}"
        f"{{!}}{{%\n{tabular}}}\n{notes}\n\\end{{table}}"
    )


def _head(table: Table) -> Iterator[str]:
    yield r"\toprule"
    if any(column.over for column in table.columns):
        yield from _shared_headers(table)
    names = [*table.row_headers, *(column.label for column in table.columns)]
    yield " & ".join(escape(name) for name in names) + r" \\"
    yield r"\midrule"


def _shared_headers(table: Table) -> Iterator[str]:
    cells = [""] * len(table.row_headers)
    rules: list[str] = []
    at = len(table.row_headers) + 1
    for over, columns in itertools.groupby(table.columns, lambda column: column.over):
        width = len(list(columns))
        cells.append(rf"\multicolumn{{{width}}}{{c}}{{{escape(over)}}}")
        if over:
            rules.append(rf"\cmidrule(lr){{{at}-{at + width - 1}}}")
        at += width
    yield " & ".join(cells) + r" \\"
    yield " ".join(rules)


def _body(table: Table) -> Iterator[str]:
    was_published = False
    for row in table.rows:
        if row.published and not was_published and row is not table.rows[0]:
            yield r"\midrule"
        was_published = row.published
        cells = [_cell(cell, table) for cell in row.cells]
        yield " & ".join([*(escape(label) for label in row.labels), *cells]) + r" \\"


def _cell(cell: Cell | None, table: Table) -> str:
    if cell is None:
        return ""
    shown = number(cell.value, cell.scale)
    value = escape(shown) if cell.value is None else f"${shown}$".replace("%", r"\%")
    if cell.best:
        value = rf"$\mathbf{{{shown}}}$"
    marks, ends = marks_of(cell), interval(cell)
    marked = f"{value}{f'$^{{{marks}}}$' if marks else ''}"
    if not ends:
        return marked
    if len(table.columns) >= _WIDE:
        return rf"\shortstack[r]{{{marked}\\{{\tiny $[{ends}]$}}}}"
    return rf"{marked} {{\scriptsize $[{ends}]$}}"
