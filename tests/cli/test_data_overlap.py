"""``culture-tasks data overlap``: what benchmarks share, in a table and as CSV."""

from __future__ import annotations

import csv
import json

import pytest

from culture_tasks.cli.main import main


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
    easy = [
        {
            "question_idx": number,
            "prompt_question": question,
            **{f"prompt_option_{letter}": letter for letter in "abcd"},
            "answer": "A",
            "country": "Japan",
        }
        for number, question in enumerate(questions)
    ]
    normad = [
        {"ID": number, "Country": "japan", "Story": story, "Gold Label": "yes"} for number, story in enumerate(stories)
    ]
    for name, rows in (("culturalbench/easy", easy), ("normad/normad", normad)):
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    return tmp_path


def test_what_two_benchmarks_share(data, capsys):
    pairs = data / "pairs.csv"
    assert main(["data", "overlap", "culturalbench_easy", "normad_none", "normad_country", "-o", str(pairs)]) == 0
    _, _, row = capsys.readouterr().out.splitlines()
    assert row.split() == ["culturalbench", "normad", "2", "3", "1", "1"]
    assert main(["data", "overlap", "culturalbench_e*,normad_none", "normad_country", "--json"]) == 0
    names = ("first", "second", "first_questions", "second_questions", "same", "alike")
    assert json.loads(capsys.readouterr().out) == [
        dict(zip(names, ("culturalbench", "normad", 2, 3, 1, 1), strict=True))
    ]
    with pairs.open(encoding="utf-8-sig", newline="") as file:
        same, alike = csv.DictReader(file)
    assert (same["similarity"], same["first item"], same["second task"]) == ("1.0", "0", "normad_none")
    assert 0.7 <= float(alike["similarity"]) < 1
    assert alike["second"].startswith("Who pays for the dinner")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (["normad_none", "normad_rule"], "the tasks are of one benchmark"),
        (["normad_non", "care"], "no task 'normad_non'. Did you mean 'normad_none'?"),
    ],
)
def test_tasks_that_can_not_be_compared(data, tasks, message, capsys):
    assert main(["data", "overlap", *tasks]) == 1
    assert message in capsys.readouterr().err
