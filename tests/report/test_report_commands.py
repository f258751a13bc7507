"""The commands ``report`` and ``compare``."""

import json
import re
from contextlib import suppress

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
    assert report(runs, "--formats", "json, markdown") == 0
    assert sorted(path.name for path in (runs / "out").iterdir()) == ["report.json", "report.md"]
    assert "2 runs of 2 models" in capsys.readouterr().out
    [test] = json.loads((runs / "out" / "report.json").read_text(encoding="utf-8"))["comparisons"]
    assert (test["verdict"], test["test"]) == ("strong is better", "sign flips")


def test_report_says_what_it_did_not_use(runs, capsys):
    """Of files that are no harness's it says how many there are, and of others each by itself, up to ten."""
    for number in range(12):
        (runs / f"x{number:02}.json").write_text("{}", encoding="utf-8")
        (runs / f"202601{number + 10}_000000_results.json").write_text("", encoding="utf-8")
    assert report(runs, "--formats", "json") == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not included: ")]
    assert len(lines) == 11
    assert sum("empty, nothing in it" in line for line in lines) == 9
    assert "12 files (x00.json, x01.json, x02.json, …): foreign, not the name of a result or sample" in lines[0]
    assert lines[-1] == "not included: 13 in all (1 foreign, 12 empty); the report lists them"


def test_names_of_files_do_not_act_on_the_terminal(runs, capsys):
    (runs / "\x1b[31mred\x07.json").write_text("{}", encoding="utf-8")
    folder = runs / "\x1b]0;title\x07"
    folder.mkdir()
    (folder / "20260101_000000_results.json").write_text("", encoding="utf-8")
    assert main(["report", str(runs), "-o", str(runs / "o\x1but"), "--formats", "json"]) == 0
    assert report(folder) == 1
    assert compare(runs / "weak", folder) == 2
    said = "".join(capsys.readouterr())
    assert "[31mred.json" in said
    assert not any(mark in said for mark in "\x1b\x07")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_name_that_fits_nothing_is_an_error(runs, capsys, command):
    names = ["--name", "*/weak/*=ours", "--name", "storng=theirs"]
    status = report(runs, *names) if command == "report" else compare(runs / "weak", runs / "strong", *names)
    assert status == (1 if command == "report" else 2)
    error = capsys.readouterr().err
    assert "--name storng=theirs: storng fits no model that an earlier pattern leaves." in error
    assert "Did you mean 'strong'? There are strong, weak" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--formats", "markdwon"], "unknown format 'markdwon'. Did you mean 'markdown'"),
        (["--name", "x"], "expected, say, --name"),
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


def test_compare_says_how_many_items_would_do_and_refuses_what_can_not_be_compared(tmp_path, capsys):
    write_vqa(tmp_path / "a", "a", WEAK)
    write_vqa(tmp_path / "c", "c", [0.0, *WEAK[1:]])
    assert compare(tmp_path / "a", tmp_path / "c", "--fail-on-regression") == 0
    assert re.search(r"not distinguishable \([\d,]+ items needed\)", capsys.readouterr().out)
    write_run(tmp_path / "b", "b", {"culturalvqa": vqa_samples(WEAK, data={"data": "d2"})})
    assert compare(tmp_path / "a", tmp_path / "b") == 0
    said = capsys.readouterr().out
    assert "not compared: CulturalVQA: another revision of the data" in said
    assert "nothing could be compared" in said
    assert compare(tmp_path / "a", tmp_path / "b", "--compare-anyway") == 0
    assert "another revision of the data" in capsys.readouterr().out


def test_compare_wants_one_model_each(runs, capsys):
    assert compare(runs, runs / "weak") == 2
    said = capsys.readouterr().err
    assert "runs of 2 models: strong, weak. Name the folder of one, or its files, such as" in said
    assert said.strip().endswith("strong.")


def test_a_report_appears_in_one_step_and_not_through_links(tmp_path, capsys):
    write_vqa(tmp_path / "a", "a", [1.0, 0.0])
    output, outside = tmp_path / "report", tmp_path / "outside"
    arguments = ["report", str(tmp_path / "a"), "-o", str(output), "--formats", "markdown,csv,json"]
    outside.mkdir()
    output.mkdir()
    (outside / "file").write_text("mine")
    (output / "report.md").symlink_to(outside / "file")
    (output / "csv").symlink_to(outside)
    assert main(arguments) == 1
    assert "csv is a link. Remove it" in capsys.readouterr().err
    assert sorted(path.name for path in output.iterdir()) == ["csv", "report.md"]
    (output / "csv").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("culture_tasks.report.formats.write_markdown", interrupt)
        with suppress(KeyboardInterrupt):
            main(arguments)
    assert [path.name for path in output.iterdir()] == ["report.md"]
    assert main(arguments) == 0
    assert (outside / "file").read_text() == "mine"
    assert (output / "report.md").read_text().startswith("# Report")
    assert sorted(path.name for path in output.iterdir()) == ["csv", "report.json", "report.md"]


def interrupt(*_):
    raise KeyboardInterrupt


def test_many_older_runs_are_one_line(tmp_path, capsys):
    for day in range(1, 9):
        write_vqa(tmp_path, "a", [1.0, 0.0], f"2026010{day}_000000")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "report"), "--formats", "json"]) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not included")]
    assert line.endswith("(and 6 more)")
