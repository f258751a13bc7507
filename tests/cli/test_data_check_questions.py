"""``culture-tasks data check care`` and ``… culturalvqa``."""

from __future__ import annotations

import json
import shutil

import pytest

from culture_tasks.cli.main import main


@pytest.fixture
def copied(tmp_path, fixture_data):
    """A copy of the toy data that a test may spoil."""
    for name in ("care", "culturalvqa"):
        shutil.copytree(fixture_data / name, tmp_path / name)
    return tmp_path


def check(benchmark, folder, capsys):
    status = main(["data", "check", benchmark, "--data", str(folder)])
    return status, capsys.readouterr().out


def rows_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def write(path, rows):
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def lines_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("benchmark", ["care", "culturalvqa"])
def test_the_toy_data_are_usable_and_differ_from_the_paper(benchmark, fixture_data, capsys):
    status, said = check(benchmark, fixture_data, capsys)
    assert status == 0
    assert "problem" not in said
    assert {"care": "paper: 150   DIFFERS", "culturalvqa": "paper: 2378   DIFFERS"}[benchmark] in said


def test_care_of_the_paper_s_size_differs_in_nothing(copied, capsys):
    for name in ("Arabic", "Chinese", "Japanese"):
        path = copied / "care" / f"{name}-test.json"
        rows = rows_of(path)
        write(path, [row | {"question": f"{row['question']} {n}"} for n in range(15) for row in rows])
    status, said = check("care", copied, capsys)
    assert (status, "DIFFERS" in said) == (0, False)
    assert "zh: literacy" in said


def test_all_that_is_wrong_with_care_is_said_at_once(copied, capsys):
    path = copied / "care" / "Arabic-test.json"
    rows = rows_of(path)
    rows[1]["culture_type"] = "Literature"
    rows[2]["answer"] = ["a list"]
    rows.append(rows[0])
    write(path, rows)
    (copied / "care" / "Chinese-test.json").unlink()
    status, said = check("care", copied, capsys)
    assert status == 1
    assert "Arabic-test.json, row 2, field 'culture_type': found 'Literature'. care: unknown category" in said
    assert "Arabic-test.json, row 3, field 'answer': found ['a list']. Expected a text" in said
    assert "Arabic-test.json, row 11, field 'question'" in said
    assert "holds no Chinese-test.json" in said
    assert "ja: questions" in said


def test_without_any_care_the_folder_is_named(tmp_path, capsys):
    (tmp_path / "care").mkdir()
    assert main(["data", "check", "care", "--data", str(tmp_path)]) == 1
    assert "holds no Arabic-test.json" in capsys.readouterr().err


def test_all_that_is_wrong_with_culturalvqa_is_said_at_once(copied, capsys):
    path = copied / "culturalvqa" / "test.jsonl"
    rows = lines_of(path)
    rows[0]["all_answers"] = 5
    rows[1]["question"] = ""
    (copied / "culturalvqa" / "images" / rows[2]["image"].rpartition("/")[2]).write_bytes(b"no image")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    write(copied / "culturalvqa" / "answers.json", {rows[3]["u_id"]: 7, rows[4]["u_id"]: ["a"]})
    status, said = check("culturalvqa", copied, capsys)
    assert status == 1
    assert "test.jsonl, row 1, field 'all_answers': found 5. Expected a list" in said
    assert "test.jsonl, row 2, field 'question': found ''" in said
    assert "answers.json, row 1, field 'all_answers': found 7" in said
    assert "test.jsonl, row 3" in said


def test_what_only_the_loader_sees_is_said_too(copied, capsys):
    path = copied / "culturalvqa" / "test.jsonl"
    rows = lines_of(path)
    rows[1]["u_id"] = rows[0]["u_id"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    status, said = check("culturalvqa", copied, capsys)
    assert status == 1
    assert "row 2, field 'u_id'" in said


def test_further_columns_pass_where_the_user_allows_them(copied, capsys, monkeypatch):
    path = copied / "care" / "Arabic-test.json"
    write(path, [row | {"added_since": 1} for row in rows_of(path)])
    status, said = check("care", copied, capsys)
    assert status == 1
    assert said.count("unknown column 'added_since'") == 1
    monkeypatch.setenv("CULTURE_TASKS_EXTRA_COLUMNS", "allow")
    assert check("care", copied, capsys)[0] == 0
    monkeypatch.setenv("CULTURE_TASKS_EXTRA_COLUMNS", "yes")
    assert main(["data", "check", "care", "--data", str(copied)]) == 1
    assert "CULTURE_TASKS_EXTRA_COLUMNS='yes'" in capsys.readouterr().err
