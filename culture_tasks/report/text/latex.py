r"""The report as LaTeX with booktabs: one document, and a file for each table that a paper can ``\input``.

Letters outside ASCII are written twice, as themselves and in ASCII. XeLaTeX and LuaLaTeX set the letters in the first
installed font of their script, from right to left where the script is; pdfLaTeX, and an engine without such a font,
prints code points. So the document compiles with any of the three.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from culture_tasks.report.wording import (
    FIRST_FIGURES,
    FIRST_TABLE,
    QUESTIONS,
    interval,
    legend,
    marks_of,
    number,
    spans,
)
from culture_tasks.text import storable
from culture_tasks.text_tables import plain

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

    from culture_tasks.report.figures.charts import Chart
    from culture_tasks.report.model import Number, Report, Table

_NAMES = {"\\": "backslash", "~": "asciitilde", "^": "asciicircum", "<": "less", ">": "greater", "|": "bar"}
_NAMES |= {'"': "quotedbl", "'": "quotesingle", "`": "asciigrave"}
_NAMES |= {"—": "emdash", "–": "endash", "…": "ellipsis", "±": "pm"}
_SPECIAL = str.maketrans(
    {mark: rf"\text{name}{{}}" for mark, name in _NAMES.items()}
    | {mark: rf"\{mark}" for mark in "{}$&#%_"}
    | {mark: f"{{{mark}}}" for mark in "-[]*"}
)
_LONG = 40
"""Rows from which on a table may break across pages."""
_WIDE = 8
"""Columns from which on an interval is below its number."""
_TOGETHER = 4
"""Tables and figures that LaTeX may hold back until it finds room for them."""

_OTHER = re.compile(r"[^\x20-\x7e]+(?: +[^\x20-\x7e]+)*")
"""Runs of characters that aren't printable ASCII, with the spaces inside: words of one script stay together."""
_SCRIPT = re.compile(r"\\other(?:script|fonts)\{([A-Z]+)\}")
"""The script of some letters, or of fonts."""
_LIKE_CJK = ("CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "IDEOGRAPHIC", "KATAKANA-HIRAGANA")


class _Tex(str):
    """LaTeX, which isn't escaped again."""

    __slots__ = ()


def write_latex(report: Report, folder: Path, figures: Sequence[Chart] = ()) -> list[Path]:
    """Writes ``report.tex`` and ``latex/<table>.tex``, and returns their paths; PDF figures lie in ``figures/``."""
    parts = folder / "latex"
    parts.mkdir(parents=True, exist_ok=True)
    body = _render("report.tex", report=report, figures=figures, marks=list(legend(report.tables)))
    texts = {folder / "report.tex": f"{_render('preamble.tex')}{_fonts_for(body)}{body}"}
    for table in report.tables:
        content = table_latex(table)
        path = parts / f"{file_name(table.key)}.tex"
        texts[path] = f"% Needs booktabs, graphicx and longtable.\n{_fonts_for(content)}{content}"
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8", newline="\n")
    return list(texts)


def table_latex(table: Table) -> str:
    """Returns one table with caption and notes: as wide as the text, or over several pages where it is long."""
    return _render("table.tex", table=table)


def file_name(key: str) -> str:
    """Returns a key as a name of a file: letters, digits, ``_`` and ``-`` alone, and no two keys as one name."""
    plainer = re.sub(r"[^A-Za-z0-9_-]+", "-", key)[:80]
    return plainer if plainer == key else f"{plainer}-{hashlib.sha256(storable(key).encode()).hexdigest()[:8]}"


def escape(text: str) -> str:
    """Returns the text so that LaTeX prints it and runs nothing of it."""
    return _OTHER.sub(_in_scripts, plain(text).translate(_SPECIAL))


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    """Returns the environment of the templates, which escapes texts and refuses names that it doesn't know."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(  # noqa: S701 - texts are escaped for LaTeX, by finalize
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        loader=PackageLoader("culture_tasks.report.text"),
        undefined=StrictUndefined,
        finalize=lambda value: escape(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["tex"] = _Tex
    environment.globals.update(spans=spans, number_of=_number, long_table=_LONG, together=_TOGETHER)
    environment.globals.update(first_figures=FIRST_FIGURES, first_table=FIRST_TABLE, questions=QUESTIONS)
    return environment


def _number(cell: Number | None, table: Table) -> _Tex:
    if cell is None:
        return _Tex()
    text = number(cell.value, cell.scale)
    value = escape(text) if cell.value is None else f"${_in_math(text)}$"
    if cell.best:
        value = rf"$\mathbf{{{_in_math(text)}}}$"
    marks, ends = marks_of(cell), _in_math(interval(cell))
    rank = rf" {{\tiny \#{cell.rank}}}" if cell.rank and table.key == FIRST_TABLE else ""
    remarks = "".join(rf" {{\tiny ({escape(remark)})}}" for remark in cell.remarks)
    score = f"{value}{f'$^{{{marks}}}$' if marks else ''}{rank}{remarks}"
    if not ends:
        return _Tex(score)
    if len(table.columns) >= _WIDE:
        return _Tex(rf"\shortstack[r]{{{score}\\{{\tiny $[{ends}]$}}}}")
    return _Tex(rf"{score} {{\scriptsize $[{ends}]$}}")


def _in_math(number: str) -> str:
    """Returns a number for math mode, which would set a space after the comma between its digits."""
    return re.sub(",(?=[0-9])", "{,}", number).replace("%", r"\%")


def _fonts_for(body: str) -> str:
    """Returns the macros for a text's letters of other scripts, with these scripts' fonts; none without any."""
    used = set(_SCRIPT.findall(body))
    lines = _render("scripts.tex").splitlines(keepends=True) if used else ()
    return "".join(line for line in lines if (fonts := _SCRIPT.match(line)) is None or fonts[1] in used)


@cache
def _scripts() -> frozenset[str]:
    return frozenset(_SCRIPT.findall(_render("scripts.tex"))) | {"LATIN"}  # which the document's own font has


def _in_scripts(run: re.Match[str]) -> str:
    """Writes letters outside ASCII script by script; a space between two scripts belongs to neither."""
    parts: list[tuple[str, str]] = []
    for letter in run.group():
        last_script, letters = parts[-1] if parts else ("OTHER", "")
        script = _script(letter) or last_script
        if parts and script == last_script:
            parts.pop()
        else:
            letters = ""
        parts.append((script, letters + letter))
    return "".join(_spelling(letters, script) for script, letters in parts)


def _script(letter: str) -> str:
    """Returns the script whose fonts have a letter; empty for spaces, digits and marks, which any script has."""
    if letter == " " or unicodedata.category(letter) in ("Mn", "Mc", "Nd"):
        return ""
    if letter == "\ufffd" or unicodedata.category(letter) in ("Cn", "Co"):
        return "NONE"  # no font has it, and LuaTeX takes the replacement character for a mistake in the file
    word = unicodedata.name(letter, "OTHER").split(" ")[0]
    return "CJK" if word in _LIKE_CJK else word if word in _scripts() else "OTHER"


def _spelling(run: str, script: str) -> str:
    """Writes letters of one script for engines that have a font for them, and in ASCII for the others."""
    letters = run.rstrip(" ")
    simple = re.sub(r"[^A-Za-z0-9]", "", unicodedata.normalize("NFKD", letters))
    code_points = " ".join(f"U+{ord(letter):04X}" for letter in letters[:8]) + (" ..." if len(letters) > 8 else "")
    in_ascii = simple if len(simple) == len(letters) else f"{{[}}{code_points}{{]}}"
    spellings = in_ascii if script == "NONE" else rf"\otherscript{{{script}}}{{{letters}}}{{{in_ascii}}}"
    return spellings + run[len(letters) :]
