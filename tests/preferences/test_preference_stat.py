"""What rated responses hold: numbers worked out by hand, and tables."""

from __future__ import annotations

import pytest
from support.rated_data import question, rows_of, write_rows

from culture_tasks.cli.main import main
from culture_tasks.preferences.pairs import pairs_of
from culture_tasks.preferences.preference_stat import as_table, group_rows, writer_rows
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


def test_who_wrote_the_responses():
    writers = writer_rows(QUESTIONS, PAIRS)
    counts = [tuple(row[name] for name in ("written_by", "responses", "chosen", "rejected")) for row in writers]
    assert counts == [("gemma", 5, 3, 0), ("qwen", 3, 0, 2), ("people", 1, 0, 1)]
    assert writers[0]["mean_rating"] == pytest.approx((9 + 8 + 5 + 5 + 5) / 5)


def test_the_command_prints_tables(tmp_path, capsys):
    path = write_rows(tmp_path / "rated.jsonl", rows_of(2))
    assert main(["preferences", "stat", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "rated by people; responses left out: nothing" in printed
    assert "written by  responses" in printed
