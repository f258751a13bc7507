"""CulturalBench: its prompts word by word, its data, and single replies."""

from __future__ import annotations

import logging
import math

import pytest

from culture_tasks.benchmarks.choices import UNPARSED
from culture_tasks.benchmarks.culturalbench.benchmark import (
    BENCHMARK,
    COUNTRIES,
    OF_ROWS,
    SAID_TRUE,
    load_easy,
    load_hard,
    score_easy,
    score_hard,
)
from culture_tasks.benchmarks.registry import task_named
from culture_tasks.errors import DataError
from culture_tasks.harness.rows import statistics_of
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


def test_the_prompts():
    assert task_named("culturalbench_easy").prompt(EASY).parts == (
        "To answer the following multiple-choice question, you should choose one option only among A,B,C,D. "
        "Instruction: You must select one option among A,B,C,D. Do not output any other things. Which?\n"
        "A. tea\nB. milk\nC. beer\nD. wine",
    )
    assert task_named("culturalbench_hard").prompt(HARD).parts == (
        "Question: Which?\nAnswer: milk\nIs this answer true or false for this question? "
        "You must choose either True or False.",
    )


def test_a_reply_is_right_wrong_or_unread():
    choice = score_easy(EASY, ["milk", "The answer is (C).", "A or B", ""])
    assert (choice.score, choice.labels, choice.values) == (1 / 4, ("B", "C", None, None), {UNPARSED.name: 2 / 4})
    assert choice.cluster == "7"
    judgement = score_hard(HARD, ["true.", "**False**", "It is not true.", "True or False"])
    assert (judgement.score, judgement.labels) == (1 / 4, ("True", "False", None, None))
    assert judgement.values == {OF_ROWS.name: 1 / 4, SAID_TRUE.name: 1 / 4, UNPARSED.name: 2 / 4}
    wrong = score_hard({**HARD, "answer": "False"}, ["True"])
    assert (wrong.score, wrong.values[SAID_TRUE.name]) == (0, 1)


def test_questions_without_four_options_are_left_out_of_hard_and_said(fixture_data, caplog):
    with caplog.at_level(logging.WARNING):
        documents = load_hard(Settings(data=fixture_data)).rows
    assert [doc["question_id"] for doc in documents] == [str(number) for number in range(4) for _ in range(4)]
    assert [doc["answer"] for doc in documents].count("True") == 4
    assert "1 questions don't have four options and are left out" in caplog.text
    assert len(load_easy(Settings(data=fixture_data)).rows) == 5


def test_the_check_counts_options_that_are_missing(fixture_data):
    report = BENCHMARK.check(Settings(data=fixture_data))
    counts = {count.name: count.found for count in report.counts}
    assert report.usable
    assert counts["Hard: rows without an option"] == "1"
    assert counts["Hard: questions with four options, which are asked"] == "4"
    assert len(COUNTRIES) == 45


def test_truth_values_of_csv_files_are_read_and_a_question_without_four_options_is_none(tmp_path):
    folder = tmp_path / "culturalbench"
    folder.mkdir()
    rows = [f"{n},1,Which?,option {n},{str(n == 2).upper()},Peru" for n in range(4)]
    header = "data_idx,question_idx,prompt_question,prompt_option,answer,country"
    (folder / "CulturalBench-Hard.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    assert [doc["answer"] for doc in load_hard(Settings(data=tmp_path)).rows] == ["False", "False", "True", "False"]
    (folder / "CulturalBench-Hard.csv").write_text("\n".join([header, rows[2]]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"Hard\.csv: found no question with four rows that have an option"):
        load_hard(Settings(data=tmp_path))


def test_a_question_with_a_missing_option_has_no_score():
    plain = {"record": 2, "score": 1.0, "benchmark": "culturalbench", "outcomes": {"scored": 1}}
    records = [{**plain, "cluster": str(number // 4)} for number in range(8)]
    task = task_named("culturalbench_hard")
    statistic = statistics_of(task.metrics(), task.metric, records)[0]

    def mean(records):
        return statistic.measured(records).value

    records[1]["score"] = 0.0
    assert [mean(records), mean(records[:5]), mean(records[1:])] == [0.5, 0, 1]
    assert math.isnan(mean(records[:3]))
    assert mean([{**records[0], "score": None}, *records[1:]]) == 1
