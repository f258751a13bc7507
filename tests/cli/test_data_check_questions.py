"""``culture-tasks data check``: of all benchmarks, and what is wrong with CARE and CulturalVQA."""

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


def change(path, alter):
    """Rewrites the rows of a JSON or JSONL file."""
    text = path.read_text(encoding="utf-8")
    lines = path.suffix == ".jsonl"
    rows = alter([json.loads(line) for line in text.splitlines()] if lines else json.loads(text))
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows), encoding="utf-8")


def check(benchmark, folder, capsys):
    status = main(["data", "check", benchmark, "--data", str(folder)])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("benchmark", "paper", "file"),
    [
        ("blend", "500", ""),
        ("care", "150", "Arabic-test.json"),
        ("cedar", "1166", "cedar"),
        ("crosscult", "9800", "cases.json"),
        ("culturalvqa", "2378", "test.json"),
    ],
)
def test_the_toy_data_are_usable_and_differ_from_the_paper_and_none_are_an_error(
    benchmark, paper, file, fixture_data, tmp_path, capsys
):
    status, said = check(benchmark, fixture_data, capsys)
    assert (status, "problem" in said) == (0, False)
    assert f"paper: {paper}   DIFFERS" in said
    (tmp_path / benchmark).mkdir()
    assert main(["data", "check", benchmark, "--data", str(tmp_path)]) == 1
    assert file in capsys.readouterr().err


def test_care_of_the_paper_s_size_differs_in_nothing_and_all_that_is_wrong_is_said_at_once(copied, capsys):
    for name in ("Arabic", "Chinese", "Japanese"):
        change(
            copied / "care" / f"{name}-test.json",
            lambda rows: [row | {"question": f"{row['question']} {n}"} for n in range(15) for row in rows],
        )
    status, said = check("care", copied, capsys)
    assert (status, "DIFFERS" in said) == (0, False)
    assert "zh: literacy" in said

    def spoil(rows):
        rows[1]["culture_type"] = "Literature"
        rows[2]["answer"] = ["a list"]
        return [*rows, rows[0]]

    change(copied / "care" / "Arabic-test.json", spoil)
    (copied / "care" / "Chinese-test.json").unlink()
    status, said = check("care", copied, capsys)
    assert status == 1
    for problem in (
        "Arabic-test.json, row 2, field 'culture_type': found 'Literature'. care: unknown category",
        "Arabic-test.json, row 3, field 'answer': found ['a list']. Expected a text",
        "Arabic-test.json, row 151, field 'question'",
        "holds no Chinese-test.json",
        "ja: questions",
    ):
        assert problem in said


def test_all_that_is_wrong_with_culturalvqa_is_said_at_once(copied, capsys):
    folder = copied / "culturalvqa"
    change(folder / "test.jsonl", lambda rows: [*rows, rows[0] | {"question": "Another?"}])
    status, said = check("culturalvqa", copied, capsys)  # which the loader alone sees
    assert (status, "row 23, field 'u_id'" in said) == (1, True)

    def spoil(rows):
        rows[0]["all_answers"] = 5
        rows[1]["question"] = ""
        (folder / "images" / rows[2]["image"].rpartition("/")[2]).write_bytes(b"no image")
        (folder / "answers.json").write_text(json.dumps({rows[3]["u_id"]: 7, rows[4]["u_id"]: ["a"]}))
        return rows

    change(folder / "test.jsonl", spoil)
    status, said = check("culturalvqa", copied, capsys)
    assert status == 1
    for problem in (
        "test.jsonl, row 1, field 'all_answers': found 5. Expected a list",
        "test.jsonl, row 2, field 'question': found ''",
        "answers.json, row 1, field 'all_answers': found 7",
        "test.jsonl, row 3",
    ):
        assert problem in said


def test_further_columns_pass_where_the_user_allows_them(copied, capsys, monkeypatch):
    change(copied / "care" / "Arabic-test.json", lambda rows: [row | {"added_since": 1} for row in rows])
    status, said = check("care", copied, capsys)
    assert (status, said.count("unknown column 'added_since'")) == (1, 1)
    monkeypatch.setenv("CULTURE_TASKS_EXTRA_COLUMNS", "allow")
    assert check("care", copied, capsys)[0] == 0
    monkeypatch.setenv("CULTURE_TASKS_EXTRA_COLUMNS", "yes")
    assert main(["data", "check", "care", "--data", str(copied)]) == 1
    assert "CULTURE_TASKS_EXTRA_COLUMNS='yes'" in capsys.readouterr().err
