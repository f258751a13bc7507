r"""The report as LaTeX with booktabs: one document, and a file for each table that a paper can ``\input``.

Letters that pdfLaTeX has no font for are written twice, as themselves and as code points. XeLaTeX and LuaLaTeX set the
letters in the first installed font of their script, from right to left where the script is; pdfLaTeX, and an engine
without such a font, prints the code points. So the document compiles with any of the three.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
_MACROS = r"""% \otherscript{script}{letters}{the same in ASCII} needs fontspec for the letters.
\makeatletter
\providecommand{\otherscript}{}
\renewcommand{\otherscript}[3]{\@ifundefined{otherfont@#1}{#3}{%
  {\csname otherfont@#1\endcsname\csname otherway@#1\endcsname{#2}}}}
\providecommand{\otherfonts}{}
\renewcommand{\otherfonts}[4]{% script, fonts, their features, direction
  \expandafter\let\csname otherway@#1\endcsname#4%
  \@for\otherfont@name:=#2\do{\@ifundefined{otherfont@#1}{\IfFontExistsTF{\otherfont@name}{%
    \edef\otherfont@define{\noexpand\newfontfamily\expandafter\noexpand\csname otherfont@#1\endcsname
      {\otherfont@name}[#3]}\otherfont@define}{}}{}}}
\providecommand{\otherleft}[1]{#1}
\providecommand{\otherright}[1]{#1}
\def\other@renderer{}
\ifdefined\XeTeXversion\TeXXeTstate=1 \renewcommand{\otherright}[1]{\beginR#1\endR}\fi
\ifdefined\directlua\renewcommand{\otherright}[1]{{\textdir TRT#1}}\def\other@renderer{Renderer=HarfBuzz,}\fi
\ifdefined\newfontfamily
%(fonts)s
\fi
\makeatother
"""
_LONG = 40
"""Rows from which on a table may break across pages."""

_WIDE = 8
"""Columns from which on an interval stands below its number."""

_TOGETHER = 4

_OTHER = re.compile(r"[^\x20-\x7e]+(?: +[^\x20-\x7e]+)*")
"""Runs of characters that aren't printable ASCII, with the spaces inside: words of one script stay together."""


class _Fonts(NamedTuple):
    """The fonts of a script.

    Attributes:
        families: Free ones, those of macOS and those of Windows, the first that is installed being taken.
        feature: The script as fontspec names it; empty where letters need no shaping.
        is_from_right: Whether it is written from right to left.
    """

    families: tuple[str, ...]
    feature: str = ""
    is_from_right: bool = False


_CJK = (
    "Noto Serif CJK SC",
    "Noto Sans CJK SC",
    "Source Han Serif SC",
    "FandolSong",
    "WenQuanYi Zen Hei",
    "IPAexMincho",
)
_FONTS: Mapping[str, _Fonts] = {
    "ARABIC": _Fonts(
        ("Noto Naskh Arabic", "Noto Sans Arabic", "Amiri", "DejaVu Sans", "Geeza Pro", "Arial"), "Arabic", True
    ),
    "HEBREW": _Fonts(("Noto Serif Hebrew", "Noto Sans Hebrew", "DejaVu Sans", "Arial"), "Hebrew", True),
    "DEVANAGARI": _Fonts(
        ("Noto Serif Devanagari", "Noto Sans Devanagari", "Lohit Devanagari", "Kohinoor Devanagari", "Nirmala UI"),
        "Devanagari",
    ),
    "BENGALI": _Fonts(("Noto Serif Bengali", "Noto Sans Bengali", "Lohit Bengali", "Nirmala UI"), "Bengali"),
    "TAMIL": _Fonts(("Noto Serif Tamil", "Noto Sans Tamil", "Lohit Tamil", "Nirmala UI"), "Tamil"),
    "THAI": _Fonts(("Noto Serif Thai", "Noto Sans Thai", "Thonburi", "Leelawadee UI"), "Thai"),
    "ETHIOPIC": _Fonts(("Noto Serif Ethiopic", "Noto Sans Ethiopic", "Kefa", "Ebrima")),
    "CJK": _Fonts((*_CJK, "Hiragino Sans", "PingFang SC", "Yu Gothic", "SimSun")),
    "HANGUL": _Fonts(("Noto Serif CJK KR", "Noto Sans CJK KR", "UnBatang", "Apple SD Gothic Neo", "Malgun Gothic")),
    "OTHER": _Fonts(("Noto Sans", "DejaVu Sans", "FreeSerif", "Arial Unicode MS", "Segoe UI Symbol")),
}
_LOST = "\ufffd"
"""What stands for a character that couldn't be read; LuaTeX takes it for a mistake in the file."""

_IN_NO_FONT = "NONE"
_LIKE_CJK = ("CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "IDEOGRAPHIC", "KATAKANA-HIRAGANA")


def _macros(body: str) -> str:
    """Returns what a text with letters of other scripts needs, with the fonts of those scripts; nothing without any."""
    used = dict.fromkeys(_USED.findall(body))
    lines: list[str] = []
    for script in used:
        if script == "LATIN":  # the document's own font has these
            lines.append(rf"\expandafter\def\csname otherfont@{script}\endcsname{{}}\let\otherway@{script}\otherleft")
            continue
        fonts = _FONTS[script]
        way = r"\otherright" if fonts.is_from_right else r"\otherleft"
        feature = rf"\other@renderer Script={fonts.feature}" if fonts.feature else ""
        lines.append(rf"\otherfonts{{{script}}}{{{','.join(fonts.families)}}}{{{feature}}}{way}")
    return _MACROS.replace("%(fonts)s", "\n".join(lines)) if used else ""


_USED = re.compile(r"\\otherscript\{([A-Z]+)\}")
"""Scripts of the letters in a document."""


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
        content = table_latex(table)
        _write(paths[-1], f"% Needs booktabs, graphicx and longtable.\n{_macros(content)}{content}\n")
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
    body = "\n\n".join([r"\begin{document}", *parts, r"\end{document}"])
    return f"{_PREAMBLE}{_macros(body)}{body}\n"


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
    """Writes letters outside ASCII, script by script; a space between two scripts belongs to neither."""
    pieces: list[str] = []
    script = ""
    for letter in found.group():
        own = _script(letter) or script or "OTHER"  # spaces, digits and marks are of the script before them
        if own != script:
            pieces.append("")
        pieces[-1] += letter
        script = own
    return "".join(_piece(each) for each in pieces)


def _script(letter: str) -> str:
    """Returns the script whose fonts have a letter; empty for spaces and for marks that any script has."""
    if letter == " " or unicodedata.category(letter) in ("Mn", "Mc", "Nd"):
        return ""
    if letter == _LOST or unicodedata.category(letter) in ("Cn", "Co"):
        return _IN_NO_FONT
    word = unicodedata.name(letter, "OTHER").split(" ")[0]
    return "CJK" if word in _LIKE_CJK else word if word in _FONTS or word == "LATIN" else "OTHER"


def _piece(text: str) -> str:
    letters = text.rstrip(" ")
    script = next((each for each in map(_script, letters) if each), "OTHER")
    return f"{_spelled(letters, script)}{text[len(letters) :]}"


def _spelled(letters: str, script: str) -> str:
    """Writes letters of one script for engines that have a font for them, and in ASCII for the others."""
    plainer = unicodedata.normalize("NFKD", letters).encode("ascii", "ignore").decode()
    spelled = " ".join(f"U+{ord(letter):04X}" for letter in letters[:8]) + (" ..." if len(letters) > 8 else "")
    simple = re.sub(r"[^A-Za-z0-9]", "", plainer)
    in_ascii = simple if len(simple) == len(letters) else f"{{[}}{spelled}{{]}}"
    if script == _IN_NO_FONT:
        return in_ascii
    return rf"\otherscript{{{script}}}{{{letters}}}{{{in_ascii}}}"


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
    rank = rf" {{\tiny \#{cell.rank}}}" if cell.rank and table.key in FIRST else ""
    marked = f"{value}{f'$^{{{marks}}}$' if marks else ''}{rank}"
    if not ends:
        return marked
    if len(table.columns) >= _WIDE:
        return rf"\shortstack[r]{{{marked}\\{{\tiny $[{ends}]$}}}}"
    return rf"{marked} {{\scriptsize $[{ends}]$}}"
