"""Nothing of a test leaks: the same questions are left out however they are written, those much like one are listed."""

from __future__ import annotations

import json

import pytest
from support.rated_data import question

from culture_tasks.benchmarks.overlaps import Question, questions_of
from culture_tasks.benchmarks.registry import benchmarks, tasks_below
from culture_tasks.errors import DataUnavailableError
from culture_tasks.preferences.held_out import items_by_task, overlap, questions_of_tests, usual_tests
from culture_tasks.settings import Settings


def test_questions_that_are_much_alike_are_listed_with_how_much():
    tests = [Question("zh", "1", "在中国，超市里的鸡蛋一般放在常温还是冷藏区？"), Question("zh", "2", "怎么送礼")]
    asked = [
        question("在中国，超市里的鸡蛋通常放在常温还是冷藏区？", [1, 2]),
        question("在中国，超市里的牛奶放在哪里？", [1, 2]),
        question("怎么送礼？", [1, 2]),
    ]
    found = overlap(asked, tests)
    assert list(found.same) == [asked[2].fingerprint]
    # 19 and 18 different characters, 17 of them in both; 19 pairs of neighbours each, 16 of them in both.
    (near,) = found.near
    assert (near.question, near.task, near.item) == (asked[0].fingerprint, "zh", "1")
    assert near.similarity == pytest.approx(33 / (38 + 37 - 33), abs=1e-3)


@pytest.mark.parametrize("at_once", [2, 1_000])
def test_of_each_test_the_nearest_question_is_listed(monkeypatch, at_once):
    monkeypatch.setattr("culture_tasks.metrics.near_duplicates._AT_ONCE", at_once)  # many are compared in parts
    text = "how many of the old lamps are lit in house {} tonight"
    tests = [Question(task, str(number), text.format(number)) for task in ("one", "two") for number in (3, 7, 5)]
    asked = [question(f"and {text.format(number)}", [1, 2]) for number in (5, 7)]
    found = {(each.question, each.task): each.item for each in overlap(asked, tests).near}
    assert found == {
        (one.fingerprint, task): item for one, item in zip(asked, "57", strict=True) for task in ("one", "two")
    }


def test_cares_tests_are_held_out_and_data_that_arent_there_stop_the_build_with_the_way_out(fixture_data, tmp_path):
    assert {task.name for task in usual_tests()} == {"care_ar", "care_ja", "care_zh"}
    tests, reading = questions_of_tests(usual_tests(), Settings(data=fixture_data))
    assert len(reading.differences) == 3
    written = json.loads((fixture_data / "care" / "Chinese-test.json").read_text(encoding="utf-8"))
    assert {test.text for test in tests if test.task == "care_zh"} == {each["question"] for each in written}
    with pytest.raises(DataUnavailableError, match=r"can't tell whether questions of care_ar are .*--hold-out none"):
        questions_of_tests(usual_tests(), Settings(data=tmp_path))


@pytest.mark.parametrize("benchmark", [each.name for each in benchmarks().values() if each.task_files is None])
def test_tasks_of_every_benchmark_can_be_held_out(benchmark, fixture_data):
    task = tasks_below(benchmarks()[benchmark].entries()[0].name)[0]
    tests, _ = questions_of(task, Settings(data=fixture_data))
    assert tests
    assert all(each.task == task.name and each.text.strip() and each.item for each in tests)


def test_items_are_those_of_every_task_that_asks_of_the_same_data():
    found = items_by_task([("care_greedy_zh", "zh-2"), ("care_zh", "zh-1"), ("unknown", "7")])
    assert found["care_zh"] == found["care_cot_zh"] == found["care_greedy_zh"] == ["zh-1", "zh-2"]
    assert found["unknown"] == ["7"]
    assert not [task for task in found if task.endswith(("_ar", "_ja"))]
