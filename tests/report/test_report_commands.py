"""The commands ``report`` and ``compare``."""

import json

import pytest
from support.sample_files import care_sample, vqa_samples, write_run, write_vqa

from culture_tasks.cli.main import main

WEAK = [1.0, 0.0] * 20
STRONG = [1.0, 1.0] * 19 + [1.0, 0.0]


@pytest.fixture
def runs(tmp_path):
    write_vqa(tmp_path / "weak", "weak", WEAK)
    write_vqa(tmp_path / "strong", "strong", STRONG)
    return tmp_path


def test_report_writes_what_is_asked_for(runs, capsys):
    assert main(["report", str(runs), "-o", str(runs / "out"), "--formats", "json, markdown"]) == 0
    assert sorted(path.name for path in (runs / "out").iterdir()) == ["report.json", "report.md"]
    assert "2 runs of 2 models" in capsys.readouterr().out
    found = json.loads((runs / "out" / "report.json").read_text(encoding="utf-8"))
    [test] = found["comparisons"]
    assert test["verdict"] == "strong is better"
    assert test["test"] == "McNemar exact"


def test_report_says_what_it_did_not_use(runs, capsys):
    """Of files that are no harness's it says how many there are, and of others each by itself, up to ten."""
    for number in range(12):
        (runs / f"x{number:02}.json").write_text("{}", encoding="utf-8")
        (runs / f"202601{number + 10}_000000_results.json").write_text("", encoding="utf-8")
    assert main(["report", str(runs), "-o", str(runs / "out"), "--formats", "json"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("not used: ")]
    assert len(lines) == 11
    assert sum("empty, nothing in it" in line for line in lines) == 9
    assert (
        "not used: 12 files (x00.json, x01.json, x02.json, …): foreign, not the name of a result or sample" in lines[0]
    )
    assert lines[-1] == "not used: 13 in all (1 foreign, 12 empty); the report lists them"


def test_names_of_files_do_not_act_on_the_terminal(runs, capsys):
    (runs / "\x1b[31mred\x07.json").write_text("{}", encoding="utf-8")
    folder = runs / "\x1b]0;title\x07"
    folder.mkdir()
    (folder / "20260101_000000_results.json").write_text("", encoding="utf-8")
    assert main(["report", str(runs), "-o", str(runs / "o\x1but"), "--formats", "json"]) == 0
    assert main(["report", str(folder), "-o", str(runs / "out")]) == 1
    assert main(["compare", str(runs / "weak"), str(folder)]) == 2
    said = "".join(capsys.readouterr())
    assert "[31mred.json" in said
    assert not any(mark in said for mark in "\x1b\x07")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_a_name_that_fits_nothing_is_an_error(runs, capsys, command):
    rest = ["-o", str(runs / "out"), str(runs)] if command == "report" else [str(runs / "weak"), str(runs / "strong")]
    names = ["--name", "*/weak/*=ours", "--name", "storng=theirs"]
    assert main([command, *rest, *names]) == (1 if command == "report" else 2)
    error = capsys.readouterr().err
    assert "--name storng=theirs fits no model and no result file that an earlier --name leaves." in error
    assert "Did you mean 'strong'? There are strong, weak" in error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--formats", "docx"], "unknown format 'docx'"),
        (["--formats", "markdwon"], "Did you mean 'markdown'"),
        (["--name", "x"], "PATTERN=NAME"),
        (["--images", "nowhere"], "--images nowhere: no such folder"),
    ],
)
def test_report_explains_what_it_can_not_do(runs, capsys, arguments, said):
    assert main(["report", str(runs), "-o", str(runs / "out"), *arguments]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--samples-per-cell", "1"], "holds 2 samples"),
        (["--samples-per-cell", "0"], "holds no samples"),
    ],
)
def test_report_takes_the_number_of_samples_per_cell(tmp_path, arguments, said):
    for model in ("a", "b"):  # all in one group, so that every cell opens the same samples
        write_run(tmp_path / model, model, {"culturalvqa": vqa_samples(WEAK, country="usa")})
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "out"), "--formats", "html", *arguments]) == 0
    assert said in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", ["-1", "x"])
def test_report_refuses_a_number_of_samples_that_is_none(runs, capsys, number):
    with pytest.raises(SystemExit):
        main(["report", str(runs), "-o", str(runs / "out"), "--samples-per-cell", number])
    assert "expected a whole number of at least 0" in capsys.readouterr().err


def test_report_does_not_write_into_a_file(runs, capsys):
    file = runs / "weak" / "20260101_000000_results.json"
    assert main(["report", str(runs), "-o", str(file)]) == 1
    assert "is a file" in capsys.readouterr().err


def test_published_rows_stand_below_and_are_marked(runs, capsys):
    write_run(runs / "care", "weak", {"care_zh": [care_sample(n, 5.0) for n in range(4)]}, "20260105_000000")
    main(["report", str(runs), "-o", str(runs / "out"), "--formats", "json,markdown", "--published"])
    found = json.loads((runs / "out" / "report.json").read_text(encoding="utf-8"))
    [table] = [table for table in found["tables"] if table["key"] == "care_zh_table_3"]
    rows = {tuple(row["labels"]): row for row in table["rows"]}
    printed = rows["Gemma2-9B Vanilla", "published (GPT-4o)"]
    assert printed["published"]
    assert [cell["value"] for cell in printed["cells"]] == [4.89, 8.46, 7.55, 6.67, 4.72, 6.49]
    assert all(cell["flags"] == ["published"] and cell["rank"] is None for cell in printed["cells"])
    assert any("They were not judged by your judge" in note for note in table["notes"])


def test_compare_says_how_many_items_would_do(tmp_path, capsys):
    write_vqa(tmp_path / "a", "a", WEAK)
    write_vqa(tmp_path / "b", "b", [0.0, *WEAK[1:]])
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--fail-on-regression"]) == 0
    said = capsys.readouterr().out
    assert "not distinguishable" in said
    assert "items needed" in said


def test_compare_refuses_what_can_not_be_compared(tmp_path, capsys):
    write_vqa(tmp_path / "a", "a", WEAK)
    write_run(tmp_path / "b", "b", {"culturalvqa": vqa_samples(WEAK, data={"data": "d2"})})
    arguments = ["compare", str(tmp_path / "a"), str(tmp_path / "b")]
    assert main([*arguments, "--fail-on-regression"]) == 3
    said = capsys.readouterr().out
    assert "not compared: culturalvqa: another revision of the data (B: data: d2)" in said
    assert "nothing could be compared" in said
    assert main([*arguments, "--fail-on-regression", "--compare-anyway"]) == 0
    assert "another revision of the data" in capsys.readouterr().out


def test_compare_wants_one_model_each(runs, capsys):
    assert main(["compare", str(runs), str(runs / "weak")]) == 2
    assert "runs of 2 models: strong, weak" in capsys.readouterr().err
    (runs / "none").mkdir()
    assert main(["compare", str(runs / "none"), str(runs / "weak")]) == 2
    assert "has no run that can be used" in capsys.readouterr().err


def test_tables_and_columns_are_chosen(results, tmp_path):
    command = ["report", str(results), "-o", str(tmp_path), "--formats", "csv,latex"]
    assert main([*command, "--tables", "summary, culturalvqa*_by_country", "--columns", "mean,Brazil,usa"]) == 0
    assert {path.stem for path in (tmp_path / "latex").iterdir()} == {
        *("summary", "culturalvqa_by_country", "culturalvqa_blind_by_country")
    }
    lines = (tmp_path / "csv" / "culturalvqa_by_country.csv").read_text(encoding="utf-8-sig").splitlines()
    names = [
        name for name in lines[0].split(",") if not name.endswith(("low", "high", " n", "coverage", " rank", "flags"))
    ]
    assert names == ["Model", "Judge", "Brazil", "USA"]
    summary = (tmp_path / "csv" / "summary.csv").read_text(encoding="utf-8-sig").splitlines()
    assert (len(summary), summary[0].split(",")[:2]) == (3, ["Model", "Mean of 2"])


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--tables", "sumary", "report: --tables 'sumary' fits nothing. Did you mean 'summary'? There are summary, "),
        ("--columns", "brazl", "report: --columns 'brazl' fits nothing."),
    ],
)
def test_a_table_or_column_that_is_not_there_is_an_error(option, name, said, results, tmp_path, capsys):
    assert main(["report", str(results), "-o", str(tmp_path), option, name]) == 1
    assert said in capsys.readouterr().err
