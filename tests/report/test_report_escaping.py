"""Texts of models and data can't act in any of the formats."""

import csv
import json
import re
import shutil
import subprocess

import pytest
from support.sample_files import JUDGE, vqa_samples, write_run

from culture_tasks.cli.main import main
from culture_tasks.report.text.latex import escape

HOSTILE = (
    '=HYPERLINK("http://evil.test","x")',
    "\\input{/etc/passwd}\\write18{touch pwned}",
    "|x| [a](javascript:alert(1)) <script>alert(1)</script> `c` **b**",
    "$x_1^2$ %comment & # ~ {\\bf",
    "نموذج 模型 モデル मॉडल ✓ \u202e",
    "line\nbreak\r\n| row",
    "@SUM(A1)",
    "-2+3",
    "^^5cinput{x}",
    "half \ud800",
    "[ours]",
    "*starred",
    "[[ours]]-[x]",
    "Ünïcode Ελλ Кир",
)
FORMATS = "markdown,latex,csv,json"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for number, text in enumerate(HOSTILE):
        judge = {"judge": JUDGE | {"model": text}}
        samples = vqa_samples([1.0, 0.0, 1.0, 1.0], **judge)
        samples[0]["lave"]["groups"]["country"] = text
        write_run(folder / str(number), text, {"culturalvqa": samples, f"task {number} |": samples})
    (folder / "=cmd|' calc'!A0.json").write_text("{", encoding="utf-8")
    output = folder / "report"
    assert main(["report", str(folder), "-o", str(output), "--formats", FORMATS, "--compare-anyway"]) == 0
    return output


def test_markdown_shows_texts_as_they_are(written):
    text = (written / "report.md").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "\u202e" not in text
    assert r"\<script\>" in text
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("| ")]
    assert tables
    for lines in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(widths) == 1


def test_csv_has_no_formula(written):
    for path in written.glob("csv/*.csv"):
        for row in csv.reader(path.read_text(encoding="utf-8-sig").splitlines(keepends=True)):
            for value in row:
                assert not value.startswith(("=", "+", "@", "\t", "\r"))
                assert not value.startswith("-") or float(value) <= 0


def test_json_gives_back_every_text_but_halves(written):
    found = json.loads((written / "report.json").read_text(encoding="utf-8"))
    models = {entrant["model"] for entrant in found["entrants"].values()}
    assert models == {text.replace("\ud800", "\ufffd") for text in HOSTILE}


def test_latex_runs_no_command_of_a_text(written):
    text = (written / "report.tex").read_text(encoding="utf-8")
    assert "\\input" not in text
    assert "\\write18" not in text
    assert "^^" not in text
    assert r"\textbackslash{}input\{/etc/passwd\}" in text


def test_brackets_and_stars_of_names_are_no_arguments_of_a_line_break(written):
    text = (written / "report.tex").read_text(encoding="utf-8")
    assert "{[}ours{]}" in text
    assert not re.search(r"\\\\\s*\n\s*[\[*]", text)


def test_letters_of_other_scripts_are_kept_script_by_script(written):
    text = (written / "report.tex").read_text(encoding="utf-8")
    assert r"\otherscript{ARABIC}{نموذج}" in text
    assert r"\otherscript{CJK}{模型 モデル}" in text
    assert r"\otherscript{DEVANAGARI}{मॉडल}" in text
    assert r"\otherscript{LATIN}{Ü}{U}" in text
    for script in ("ARABIC", "CJK", "DEVANAGARI"):
        assert text.count(rf"\otherfonts{{{script}}}") == 1
    assert r"\otherfonts{THAI}" not in text
    assert escape("plain") == "plain"
    assert escape("模型 नाम") == (
        r"\otherscript{CJK}{模型}{{[}U+6A21 U+578B{]}} \otherscript{DEVANAGARI}{नाम}{{[}U+0928 U+093E U+092E{]}}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pdflatex", "xelatex", "lualatex"])
def test_latex_compiles_as_it_is(written, tmp_path, engine):
    if shutil.which(engine) is None:
        pytest.skip(f"needs {engine}")
    command = [engine, "-interaction=nonstopmode", "-halt-on-error", f"-output-directory={tmp_path}", "report.tex"]
    done = subprocess.run(command, cwd=written, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert not list(written.rglob("pwned"))


def test_names_of_files_are_plain(written):
    names = [path.name for path in written.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in names)
