"""What rated responses hold: numbers worked out by hand, and tables."""

from __future__ import annotations

import csv
import json

import pytest
from support.rated_data import question, row, write_model, write_rows

from culture_tasks.benchmarks.overlaps import Question
from culture_tasks.cli.main import main
from culture_tasks.preferences.held_out import overlap
from culture_tasks.preferences.preference_stat import preference_stat
from culture_tasks.preferences.rated_questions import RatedAnswer, RatedQuestions
from culture_tasks.results.training_manifest import RatingOrigin, Rule

PEOPLE = RatingOrigin(kind="people", name="people", scale=(1.0, 10.0))


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


def stat(questions=QUESTIONS, rule=Rule(), shared="not looked at"):  # noqa: B008 - frozen
    return preference_stat(RatedQuestions(questions, (), PEOPLE, {}, {}), questions, rule, 0, shared)


def group(found, by, name):
    return next(each for each in found.groups if (each.by, each.group) == (by, name))


def test_numbers_of_all_questions():
    found = group(stat(), "overall", "all")
    assert (found.questions, found.responses, found.pairs, found.paired) == (5, 9, 3, 3)
    assert (found.ties, found.single) == (1, 1)
    assert found.mean_gap == pytest.approx((8 + 6 + 1) / 3)
    # Chosen: 8, 3 and 4 characters; rejected: 5, 6 and 4.
    assert (found.chosen_length, found.rejected_length) == (4, 5)
    assert found.longer == pytest.approx((1 + 0 + 0.5) / 3)
    assert found.longer_low < found.longer < found.longer_high


def test_groups_are_by_language_category_and_culture():
    found = stat()
    sizes = {f"{each.by} {each.group}": each.questions for each in found.groups}
    assert sizes == {"overall all": 5, "language ar": 3, "language zh": 2, "category norms": 2} | {
        "category not said": 3,
        "culture foreign": 1,
        "culture native": 1,
        "culture not said": 3,
    }
    native = group(found, "culture", "native")
    assert (native.longer, native.longer_low) == (1.0, None)  # one pair has no interval


def test_who_wrote_the_responses_and_what_tests_share():
    tests = [Question("one", "1", "A?"), Question("two", "1", "a"), Question("two", "2", "z")]
    found = stat(shared=overlap(QUESTIONS, tests))
    writers = [(each.name, each.responses, each.chosen, each.rejected) for each in found.writers]
    assert writers == [("gemma", 5, 3, 0), ("qwen", 3, 0, 2), ("people", 1, 0, 1)]
    assert found.writers[0].mean_rating == pytest.approx((9 + 8 + 5 + 5 + 5) / 5)
    shared = [(each.task, each.questions, each.same, each.near) for each in found.tests]
    assert shared == [("one", 1, 1, 0), ("two", 2, 1, 0)]


def test_without_a_pair_there_are_counts_alone():
    overall = group(stat(QUESTIONS[3:]), "overall", "all")
    assert (overall.pairs, overall.mean_gap, overall.longer, overall.chosen_length) == (0, None, None, None)
    assert "–" in stat(QUESTIONS[3:]).as_text()


def run(*arguments):
    return main(["preferences", "stat", *map(str, arguments)])


def test_the_command_prints_tables_and_writes_files(tmp_path, monkeypatch, fixture_data, capsys):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(fixture_data))
    (test, *_) = json.loads((fixture_data / "care/Chinese-test.json").read_text(encoding="utf-8"))
    rows = [row(f"请问{test['question']}", text, rating) for text, rating in (("长长的回答", 9), ("短", 2))]
    rows += [row(test["question"], "a", 3), row("=1+1", "|b|", 3, cul_type="=cmd|x")]
    path = write_rows(tmp_path / "rated.jsonl", rows)
    assert run(path, "-o", tmp_path / "out") == 0
    printed = capsys.readouterr().out
    assert "care_zh" in printed
    assert "1 question closely resembles a test question, and is not left out:" in printed
    assert "rated by people, 1 to 10" in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"stat.json", "stat.md", "stat.csv"}
    content = json.loads((tmp_path / "out/stat.json").read_text(encoding="utf-8"))
    assert run(path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["groups"] == content["groups"]
    assert [(each["same"], each["near"]) for each in content["tests"] if each["task"] == "care_zh"] == [(1, 1)]
    with (tmp_path / "out/stat.csv").open(encoding="utf-8-sig", newline="") as file:
        assert "'=cmd|x" in {line["group"] for line in csv.DictReader(file)}


def test_results_of_a_test_are_shown_even_where_tests_cant_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    write_model(tmp_path, "gemma", [9, 2])
    write_model(tmp_path, "qwen", [3, 8])
    assert run(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "rated by openai:gpt-4o, 1 to 10" in printed
    assert "2 responses of gemma on care_zh" in printed
    assert "Overlap with tests isn't known: preferences: can't tell whether" in printed
