"""CulturalBench: which questions are asked, and single replies."""

from __future__ import annotations

import logging
import math

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.culturalbench.benchmark import BENCHMARK, OF_ROWS, SAID_TRUE, all_right, load_hard
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import DataError
from culture_tasks.settings import Settings

EASY = {
    "id": "7",
    "question_id": "7",
    "country": "Peru",
    "question": "Which?",
    "options": ["tea", "milk", "beer", "wine"],
    "answer": "B",
    "data": "0",
}
HARD = {**EASY, "id": "7-2", "option": "milk", "answer": "True"}


def test_a_reply_is_right_wrong_or_unread():
    choice = task_named("culturalbench_easy").score(EASY, ["milk", "The answer is (C).", "A or B", ""])
    assert (choice.score, choice.labels, choice.values) == (1 / 4, ("B", "C", None, None), {UNPARSED.name: 2 / 4})
    assert choice.cluster == "7"
    hard = task_named("culturalbench_hard")
    judgement = hard.score(HARD, ["true.", "**False**", "It is not true.", "True or False"])
    assert (judgement.score, judgement.labels) == (1 / 4, ("True", "False", None, None))
    assert judgement.values == {OF_ROWS.name: 1 / 4, SAID_TRUE.name: 1 / 4, UNPARSED.name: 2 / 4}
    wrong = hard.score({**HARD, "answer": "False"}, ["True"])
    assert (wrong.score, wrong.values[SAID_TRUE.name]) == (0, 1)


def test_a_question_counts_if_all_four_of_its_options_are_right():
    assert [all_right([1.0] * 4), all_right([1.0, 0.0, 1.0, 1.0])] == [1, 0]
    assert math.isnan(all_right([1.0] * 3))  # one has no score


def test_questions_without_four_options_are_left_out_of_hard_and_said(fixture_data, caplog):
    with caplog.at_level(logging.WARNING):
        documents = load_hard(Settings(data=fixture_data)).rows
    assert [doc["question_id"] for doc in documents] == [str(number) for number in range(4) for _ in range(4)]
    assert [doc["answer"] for doc in documents].count("True") == 4
    assert "1 questions don't have four options and are left out" in caplog.text
    counts = {name: (found, paper) for name, found, paper in BENCHMARK.check(Settings(data=fixture_data)).counts}
    assert counts["Hard: rows"][1] == "4908"  # 4 · 1,227
    assert counts["Hard: rows without an option"] == ("1", None)
    assert counts["Hard: questions with four options, which are asked"] == ("4", None)


def test_without_any_such_question_there_is_nothing_to_ask(tmp_path):
    folder = tmp_path / "culturalbench"
    folder.mkdir()
    rows = "data_idx,question_idx,prompt_question,prompt_option,answer,country\n0,1,Which?,tea,TRUE,Peru\n"
    (folder / "CulturalBench-Hard.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(DataError, match=r"Hard\.csv: found no question with four rows that have an option"):
        load_hard(Settings(data=tmp_path))
