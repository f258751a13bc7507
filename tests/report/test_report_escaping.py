"""Texts of models and data can't act in any of the formats; those of the page are tested with the page."""

import csv
import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sample_files import JUDGE, vqa_samples, write_run

from culture_tasks.benchmarks.interface import Scale
from culture_tasks.cli.main import main
from culture_tasks.report.latex import escape, table_latex
from culture_tasks.report.model import Column, Number, Table
from culture_tasks.text import inert
from culture_tasks.text_tables import as_markdown, markdown_cell, plain, write_csv

HOSTILE = (
    '=HYPERLINK("http://evil.test","x")',
    "\\input{/etc/passwd}\\write18{touch pwned}",
    "|x| [a](javascript:alert(1)) <script>alert(1)</script> `c` **b**",
    "$x_1^2$ %comment & # ~ {\\bf",
    "نموذج 模型 モデル मॉडल ✓ \u202e",
    "line\nbreak\r\n| row",
    "half \ud800",
    "[[ours]]-[x]",
)
TEXTS = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=()), max_size=40),
    st.text("\\{}$&#%_~^<>|\"'`-[]*=+@\t\n aé模م\u202e", max_size=40),
)
SAFE_LATEX = re.compile(r"(?:[^\x00-\x1f\\{}$&#%_~^<>|\"'`\[\]*-]|\\text[a-z]+\{\}|\\[{}$&#%_]|\{[-*\[\]]\})*")
"""Letters and escaped characters: nothing else is LaTeX."""


@given(TEXTS)
@settings(deadline=None)
def test_any_text_is_printed_by_latex(text):
    assert SAFE_LATEX.fullmatch(escape(text))


def test_latex_sets_no_space_between_the_digits_of_a_number():
    scale = Scale("count", 0.0, None, digits=0)
    cell = Number(1200.0, scale, 1000.0, 1234567.0, best=True)
    table = Table("t", "T", ("Model",), (Column("n", "N", scale, {"m": cell}),), {"m": ("m",)})
    assert r"$\mathbf{1{,}200}$ {\scriptsize $[1{,}000, 1{,}234{,}567]$}" in table_latex(table)


@given(TEXTS)
@settings(deadline=None)
def test_any_text_is_shown_by_markdown(text):
    cell = markdown_cell(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>#|~&$]", cell)
    assert re.sub(r"\\(.)", r"\1", cell) == plain(text)
    assert len(as_markdown(["a"], [[cell]]).splitlines()) == 3


@given(TEXTS)
@settings(deadline=None)
def test_any_text_is_no_formula_in_csv(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "cell.csv"
    write_csv(path, ["=head"], [[text]])
    with path.open(encoding="utf-8-sig", newline="") as file:
        [header, [value]] = csv.reader(file)
    assert header == ["'=head"]
    assert not value.lstrip(" \n").startswith(("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠"))
    assert value.removeprefix("'") == inert(text).removeprefix("'")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for number, text in enumerate(HOSTILE):
        samples = vqa_samples([1.0, 0.0, 1.0, 1.0], judge=JUDGE | {"model": text})
        samples[0]["record"]["groups"]["country"] = text
        write_run(folder / str(number), text, {"culturalvqa": samples, f"task {number} |": samples})
    (folder / "=cmd|' calc'!A0.json").write_text("{", encoding="utf-8")
    output = folder / "report"
    formats = "markdown,latex,csv,json,html"
    assert main(["report", str(folder), "-o", str(output), "--formats", formats, "--compare-anyway"]) == 0
    return output


def test_a_report_of_hostile_texts_is_text(written):
    """Every writer escapes every text."""
    text = (written / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"<script>|(?<!\\)\]\(|\u202e", text)
    for lines in [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    for path in written.glob("csv/*.csv"):
        for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)):
            assert not [v for v in row if v.startswith(("=", "+", "@")) or (v.startswith("-") and not float(v) <= 0)]
    acting = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
    assert not [path for path in written.rglob("*.*") if acting.search(path.read_text(encoding="utf-8"))]
    models = {row["model"] for row in json.loads((written / "report.json").read_bytes())["entrants"].values()}
    assert models == {text.replace("\ud800", "\ufffd") for text in HOSTILE}
    for path in written.glob("latex/*.tex"):
        assert not re.search(r"\\input|\\write18|\^\^|\\\\\s*\n\s*[\[*]", path.read_text(encoding="utf-8")), path
    names = [path.name for path in written.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["xelatex", "lualatex"])
def test_latex_compiles_as_it_is(written, tmp_path, engine):
    if shutil.which(engine) is None:
        pytest.skip(f"needs {engine}")
    tables = "".join(f"\\input{{{path}}}\\clearpage " for path in sorted(written.glob("latex/*.tex"))[:12])
    start = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    (tmp_path / "all.tex").write_text(f"{start}{tables}\\end{{document}}", encoding="utf-8")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert not list(tmp_path.rglob("pwned"))
