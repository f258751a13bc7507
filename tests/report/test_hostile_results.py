"""Texts of models, data and file names can't act in any of the formats."""

import csv
import html
import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from lxml import html as parsed
from support.toy_report import HOSTILE

from culture_tasks.cli.main import main
from culture_tasks.report.html.page import environment, render
from culture_tasks.report.html.samples import safe_json
from culture_tasks.report.latex import escape
from culture_tasks.text import inert
from culture_tasks.text_tables import as_markdown, markdown_cell, plain, write_csv

TEXTS = st.one_of(
    st.text(st.characters(codec=None, exclude_categories=()), max_size=40),
    st.text("\\{}$&#%_~^<>|\"'`-[]*=+@\t\n aé模م\u202e", max_size=40),
)
SAFE_LATEX = re.compile(r"(?:[^\x00-\x1f\\{}$&#%_~^<>|\"'`\[\]*-]|\\text[a-z]+\{\}|\\[{}$&#%_]|\{[-*\[\]]\})*")
"""Letters and escaped characters: nothing else is LaTeX."""
ACTING = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@given(TEXTS)
@settings(deadline=None)
def test_any_text_is_text_in_latex_markdown_html_and_json(text):
    assert SAFE_LATEX.fullmatch(escape(text))
    cell = markdown_cell(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>#|~&$]", cell)
    assert re.sub(r"\\(.)", r"\1", cell) == plain(text)
    assert len(as_markdown(["a"], [[cell]]).splitlines()) == 3
    safe = safe_json([text])
    assert not re.search("[<>&\u2028\u2029]", safe)
    safe.encode()
    assert json.loads(safe) == [text]
    element = environment().from_string('<td title="{{ text }}">{{ text }}</td>').render(text=text)
    assert "<" not in element.removeprefix("<td title=").removesuffix("</td>")
    shown = html.unescape(element.partition(">")[2].removesuffix("</td>"))
    assert shown == html.unescape(html.escape(inert(re.sub("[\x1c-\x1e\x85\u2028\u2029]", "\n", text))))


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


def test_html_neither_parses_nor_loses_it(hostile):
    tree = parsed.fromstring((hostile / "report.html").read_bytes())
    assert len(tree.xpath("//script")) == 2
    assert not tree.xpath("//img[not(starts-with(@src, 'data:'))] | //*[@onerror] | //*[@onload] | //*[@style]")
    assert not tree.xpath("//main//svg | //iframe | //main//a[not(starts-with(@href, '#'))]")
    data = json.loads(tree.get_element_by_id("data").text)
    samples = {data["documents"][document][1]: response for _, _, document, response, *_ in data["samples"]}
    assert len(samples) == len(HOSTILE)
    assert all(question == response for question, response in samples.items())
    carried = HOSTILE[-1].replace("\x00", "\ufffd").replace("\u2028\u2029", "\n\n").replace("\x1d", "\n")
    names = [name.text_content() for name in tree.xpath("//main//bdi")]
    assert sum(carried in name for name in names) > 10
    with pytest.raises(UndefinedError, match="report"):  # a name that no template knows
        render("page.html")


def test_markdown_has_no_markup_of_it(hostile):
    text = (hostile / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"<script>|(?<!\\)\]\(|\u202e", text)
    for lines in [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_csv_has_no_formula(hostile):
    for path in hostile.glob("csv/*.csv"):
        for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)):
            assert not [v for v in row if v.startswith(("=", "+", "@")) or (v.startswith("-") and not float(v) <= 0)]


def test_json_has_all_of_it_and_no_file_has_a_control(hostile):
    models = {row["model"] for row in json.loads((hostile / "report.json").read_bytes())["entrants"].values()}
    assert models == {text.replace("\ud800", "\ufffd") for text in HOSTILE}
    files = [path for path in hostile.rglob("*") if path.is_file()]
    assert not [path for path in files if ACTING.search(path.read_text(encoding="utf-8"))]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", path.name) for path in files)


def test_the_terminal_shows_names_without_their_controls(hostile, capsys):
    runs = hostile.parent
    assert main(["report", str(runs), "-o", str(runs / "o\x1but"), "--formats", "json"]) == 0
    assert main(["compare", str(runs / "7"), str(runs / "8"), "--compare-anyway"]) == 0
    assert main(["compare", str(runs / "7"), str(runs / "\x1bnowhere")]) == 2
    said = "".join(capsys.readouterr())
    assert "[31mred.json" in said
    assert not ACTING.search(said)


def test_latex_runs_nothing_of_it(hostile):
    for path in hostile.glob("latex/*.tex"):
        assert not re.search(r"\\input|\\write18|\^\^|\\\\\s*\n\s*[\[*]", path.read_text(encoding="utf-8")), path


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["xelatex", "lualatex"])
def test_latex_compiles_as_it_is(hostile, tmp_path, engine):
    if shutil.which(engine) is None:
        pytest.skip(f"needs {engine}")
    tables = "".join(f"\\input{{{path}}}\\clearpage " for path in sorted(hostile.glob("latex/*.tex"))[:12])
    start = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    (tmp_path / "all.tex").write_text(f"{start}{tables}\\end{{document}}", encoding="utf-8")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert not list(tmp_path.rglob("pwned"))
