"""The commands ``report`` and ``compare``."""

import json
import re
from contextlib import suppress
from unittest.mock import Mock

import pytest
from support.sample_files import vqa_samples, write_run, write_vqa

from culture_tasks.cli.main import main

WEAK = [1.0, 0.0] * 20
STRONG = [1.0, 1.0] * 19 + [1.0, 0.0]


@pytest.fixture
def runs(tmp_path):
    write_vqa(tmp_path / "weak", "weak", WEAK)
    write_vqa(tmp_path / "strong", "strong", STRONG)
    return tmp_path


def report(folder, *options):
    return main(["report", str(folder), "-o", str(folder / "out"), *map(str, options)])


def compare(one, two, *options):
    return main(["compare", str(one), str(two), *options])


def test_report_writes_what_is_asked_for(runs, capsys):
    assert report(runs, "--formats", "json, markdown, png") == 0
    assert sorted(path.name for path in (runs / "out").iterdir()) == ["figures", "report.json", "report.md"]
    assert (runs / "out" / "figures" / "overview.png").is_file()
    assert "2 runs of 2 models" in capsys.readouterr().out
    [test] = json.loads((runs / "out" / "report.json").read_text(encoding="utf-8"))["comparisons"]
    assert (test["verdict"], test["test"]) == ("strong is better", "sign flips")


def test_report_says_what_it_did_not_use_by_kind(runs, capsys):
    for number in range(10, 22):
        (runs / f"x{number}.json").write_text("{}", encoding="utf-8")
        (runs / f"202601{number}_000000_results.json").write_text("", encoding="utf-8")
        write_vqa(runs / "weak", "weak", WEAK, f"202501{number}_000000")
    assert report(runs, "--formats", "json") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not included: ")]
    said = (
        "12 files (x10.json, x11.json, x12.json, …): foreign, not the name of a result or sample",
        "empty, nothing in it",
        "superseded, ",
    )
    assert [sum(text in line for line in lines) for text in said] == [1, 1, 1]
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--formats", "markdwon"], "unknown format 'markdwon'. Did you mean 'markdown'"),
        (["--name", "x"], "expected, say, --name"),
        (
            ["--name", "*/weak/*=ours", "--name", "storng=theirs"],
            "--name storng=theirs: storng fits no model that an earlier pattern leaves. "
            "Did you mean 'strong'? There are strong, weak",
        ),
        (["--images", "nowhere"], "--images nowhere: no such folder"),
        (["--tables", "sumary"], "--tables 'sumary' fits nothing. Did you mean 'summary'? There are summary, "),
        (["-o", "{runs}/weak/20260101_000000_results.json"], "is a file"),
    ],
)
def test_report_explains_what_it_can_not_do(runs, capsys, arguments, said):
    try:
        status = report(runs, *(each.format(runs=runs) for each in arguments))
    except SystemExit as stop:  # argparse's own errors
        status = stop.code
    assert status != 0
    assert said in capsys.readouterr().err


def test_tables_are_chosen(results, tmp_path):
    command = ["report", str(results), "-o", str(tmp_path), "--formats", "csv,latex"]
    assert main([*command, "--tables", "summary, culturalvqa*_by_country"]) == 0
    stems = {path.stem for path in (tmp_path / "latex").iterdir()}
    assert stems == {"summary", "culturalvqa_by_country", "culturalvqa_blind_by_country"}


def test_compare_says_how_many_items_would_do_and_refuses_what_can_not_be_compared(runs, capsys):
    write_vqa(runs / "c", "c", [0.0, *WEAK[1:]])
    assert compare(runs / "weak", runs / "c", "--fail-on-regression") == 0
    assert re.search(r"not distinguishable \([\d,]+ items needed\)", capsys.readouterr().out)
    write_run(runs / "b", "b", {"culturalvqa": vqa_samples(WEAK, data={"data": "d2"})})
    for option, said in (((), "nothing could be compared"), (("--compare-anyway",), "CulturalVQA")):
        assert compare(runs / "weak", runs / "b", *option) == 0
        out = capsys.readouterr().out
        assert "another revision of the data" in out
        assert said in out
    assert compare(runs, runs / "weak") == 2
    said = capsys.readouterr().err
    assert "runs of 4 models: b, c, strong, weak. Name the folder of one, or its files, such as" in said


def test_a_report_appears_in_one_step_and_not_through_links(runs, capsys, monkeypatch):
    output, outside = runs / "out", runs / "outside"
    outside.mkdir()
    output.mkdir()
    (outside / "file").write_text("mine")
    (output / "report.md").symlink_to(outside / "file")
    (output / "csv").symlink_to(outside)
    assert report(runs, "--formats", "markdown,csv") == 1
    assert "csv is a link. Remove it" in capsys.readouterr().err
    (output / "csv").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("culture_tasks.report.formats.write_markdown", Mock(side_effect=KeyboardInterrupt))
        with suppress(KeyboardInterrupt):
            report(runs, "--formats", "markdown,csv")
    assert [path.name for path in output.iterdir()] == ["report.md"]
    assert report(runs, "--formats", "markdown,csv") == 0
    assert (outside / "file").read_text() == "mine"
    assert (output / "report.md").read_text().startswith("# Report")
    assert sorted(path.name for path in output.iterdir()) == ["csv", "report.md"]
