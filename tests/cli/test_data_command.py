"""``culture-tasks data``: what is wrong with data of all benchmarks, CARE, CulturalVQA and CEDAR; what they share."""

from __future__ import annotations

import csv
import json
import shutil

import pytest

from culture_tasks.cli.main import main


@pytest.fixture
def copied(tmp_path, fixture_data):
    """A copy of the toy data that a test may spoil."""
    shutil.copytree(fixture_data / "care", tmp_path / "care")
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
        return rows

    change(copied / "care" / "Arabic-test.json", spoil)
    (copied / "care" / "Chinese-test.json").unlink()
    status, said = check("care", copied, capsys)
    assert status == 1
    for problem in (
        "Arabic-test.json, row 2, field 'culture_type': found 'Literature'. Did you mean 'Literacy'?",
        "Arabic-test.json, row 3, field 'answer': found ['a list']. Expected a text",
        "holds no Chinese-test.json",
        "ja: questions",
    ):
        assert problem in said


def test_all_benchmarks_are_checked_and_one_that_is_missing_stops_no_other(tmp_path, fixture_data, capsys):
    (tmp_path / "care").symlink_to(fixture_data / "care")
    (tmp_path / "normad").symlink_to(fixture_data / "normad")
    status = main(["data", "check", "care", "cedar", "normad", "--json", "--data", str(tmp_path)])
    checked = {each["benchmark"]: each for each in json.loads(capsys.readouterr().out)}
    assert (status, {name: each["usable"] for name, each in checked.items()}) == (
        1,
        {"care": True, "cedar": False, "normad": True},
    )
    assert {"name": "stories", "found": "6", "paper": "2633"} in checked["normad"]["counts"]
    assert main(["data", "check", "--data", str(fixture_data)]) == 0
    assert "\n9 benchmarks checked; all can run\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["data", "check", "cara"])
    assert "no benchmark 'cara'. Did you mean 'care'?" in capsys.readouterr().err


# What benchmarks share


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Two benchmarks that share a question, another in other words, and ask about one in two tasks."""
    questions = ["What do people drink at weddings in Japan?", "Who pays for dinner at a restaurant in Egypt today?"]
    stories = [
        "What do people drink at weddings in Japan",
        "Who pays for the dinner at a restaurant in Egypt today?",
        "Why?",
    ]
    for folder in ("culturalbench", "normad"):
        (tmp_path / folder).mkdir()
    same = {**{f"prompt_option_{letter}": letter for letter in "abcd"}, "answer": "A", "country": "Japan"}
    easy = [{"question_idx": number, "prompt_question": text, **same} for number, text in enumerate(questions)]
    normad = [
        {"ID": number, "Country": "japan", "Story": story, "Gold Label": "yes"} for number, story in enumerate(stories)
    ]
    for name, content in (("culturalbench/easy", easy), ("normad/normad", normad)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in content), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    return tmp_path


def test_what_two_benchmarks_share(data, capsys):
    pairs = data / "pairs.csv"
    assert main(["data", "overlap", "culturalbench_easy", "normad_none", "normad_country", "-o", str(pairs)]) == 0
    _, _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["culturalbench", "normad", "2", "3", "1", "1"]
    assert main(["data", "overlap", "culturalbench_e*,normad_none", "normad_country", "--json"]) == 0
    assert [*json.loads(capsys.readouterr().out)[0].values()] == ["culturalbench", "normad", 2, 3, 1, 1]
    with pairs.open(encoding="utf-8-sig", newline="") as file:
        same, alike = csv.DictReader(file)
    assert (same["similarity"], same["first item"], same["second task"]) == ("1.0", "0", "normad_none")
    assert 0.7 <= float(alike["similarity"]) < 1
    assert alike["second"].startswith("Who pays for the dinner")
