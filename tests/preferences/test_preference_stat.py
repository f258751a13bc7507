"""What rated responses hold: numbers worked out by hand, and tables."""

from __future__ import annotations

import json

import pytest
from support.rated_data import question, row, write_model, write_rows

from culture_tasks.benchmarks.overlaps import Question
from culture_tasks.cli.main import main
from culture_tasks.preferences.held_out import overlap
from culture_tasks.preferences.pairs import pairs_of
from culture_tasks.preferences.preference_stat import as_table, group_rows, overlap_rows, writer_rows
from culture_tasks.preferences.ratings import RatedAnswer


def asked(text, *answers, **facts):
    made = question(text, [], **facts)
    made.answers = [RatedAnswer(*answer) for answer in answers]
    return made


QUESTIONS = [
    asked("a", ("long one", 9.0, "gemma"), ("short", 1.0, "qwen"), language="zh", category="norms", culture="native"),
    asked("b", ("one", 8.0, "gemma"), ("longer", 2.0, "qwen"), language="zh", category="norms", culture="foreign"),
    asked("c", ("same", 5.0, "gemma"), ("text", 4.0, "people"), language="ar"),
    asked("d", ("x", 5.0, "gemma"), ("y", 5.0, "qwen"), language="ar"),
    asked("e", ("x", 5.0, "gemma"), language="ar"),
]


PAIRS, _ = pairs_of(QUESTIONS, 0)
GROUPS = {(row["by"], row["group"]): row for row in group_rows(QUESTIONS, PAIRS)}


def test_numbers_of_all_questions():
    found = GROUPS["overall", "all"]
    counts = [found[name] for name in ("questions", "responses", "pairs", "ties", "one_response")]
    assert counts == [5, 9, 3, 1, 1]
    assert found["mean_gap"] == pytest.approx((8 + 6 + 1) / 3)
    # Chosen: 8, 3 and 4 characters; rejected: 5, 6 and 4.
    assert (found["chosen_length"], found["rejected_length"]) == (4, 5)
    assert found["chosen_longer"] == pytest.approx((1 + 0 + 0.5) / 3)
    assert found["low"] < found["chosen_longer"] < found["high"]


def test_groups_are_by_language_category_and_culture():
    sizes = {" ".join(group): row["questions"] for group, row in GROUPS.items()}
    assert sizes == {"overall all": 5, "language ar": 3, "language zh": 2, "category norms": 2} | {
        "category not said": 3,
        "culture foreign": 1,
        "culture native": 1,
        "culture not said": 3,
    }
    native = GROUPS["culture", "native"]
    assert (native["chosen_longer"], native["low"]) == (1.0, None)  # one pair has no interval
    (overall, *_) = group_rows(QUESTIONS[3:], [])
    assert [overall[name] for name in ("pairs", "mean_gap", "chosen_longer", "chosen_length")] == [0, None, None, None]
    assert "–" in as_table([overall])


def test_who_wrote_the_responses_and_what_tests_share():
    tests = [Question("one", "1", "A?"), Question("two", "1", "a"), Question("two", "2", "z")]
    writers = writer_rows(QUESTIONS, PAIRS)
    counts = [tuple(row[name] for name in ("written_by", "responses", "chosen", "rejected")) for row in writers]
    assert counts == [("gemma", 5, 3, 0), ("qwen", 3, 0, 2), ("people", 1, 0, 1)]
    assert writers[0]["mean_rating"] == pytest.approx((9 + 8 + 5 + 5 + 5) / 5)
    shared = [tuple(row.values()) for row in overlap_rows(overlap(QUESTIONS, tests))]
    assert shared == [("one", 1, 1, 0), ("two", 2, 1, 0)]


def run(*arguments):
    return main(["preferences", "stat", *map(str, arguments)])


def test_the_command_prints_tables(tmp_path, monkeypatch, fixture_data, capsys):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    (test, *_) = json.loads((fixture_data / "care/Chinese-test.json").read_text(encoding="utf-8"))
    rows = [row(f"请问{test['question']}", text, rating) for text, rating in (("长长的回答", 9), ("短", 2))]
    path = write_rows(tmp_path / "rated.jsonl", [*rows, row(test["question"], "a", 3)])
    assert run(path) == 0
    printed = capsys.readouterr().out
    assert "care_zh" in printed
    assert "resemble one of a test, and aren't left out: 1. The closest:" in printed
    assert "rated by people, 1 to 10" in printed


def test_results_of_a_test_are_shown_even_where_tests_cant_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    write_model(tmp_path, "gemma", [9, 2])
    assert run(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "rated by openai:gpt-4o, 1 to 10" in printed
    assert "2 responses of gemma on care_zh" in printed
    assert "Overlap with tests isn't known: preferences: can't tell whether" in printed
