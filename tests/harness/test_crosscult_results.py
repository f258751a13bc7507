"""CrossCult's records: answers, base answers, facts, and what its judge is asked."""

from pathlib import Path

import pytest
from support.crosscult_cases import rows, write_folder

from culture_tasks.benchmarks.crosscult.scoring import Insertions, score
from culture_tasks.benchmarks.interface import responses_of
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of

SINGLE = "crosscult_single_reliability"
LOCALITY = "crosscult_single_cross_scenario_locality"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(tmp_path))
    return write_folder(tmp_path, rows())


@pytest.fixture
def doc(folder):
    return load_for_evaluation(SINGLE)[0]


@pytest.fixture
def locality(folder):
    return load_for_evaluation(LOCALITY)[0]


def results(doc, *runs, task=SINGLE):
    return scorer_of(task)(doc, Insertions().apply([list(runs)], docs=None))


@pytest.mark.parametrize(
    ("runs", "answers"),
    [
        (["a", "b"], [("a", "a"), ("b", "b")]),
        ([["a", "b"], ["c", "d"]], [("a", "b"), ("c", "d")]),
        ([["a", "b", '{"activated": 0}'], ["c", "d", "{}"]], [("a", "b"), ("c", "d")]),
        ([None], [("", "")]),
    ],
)
def test_every_response_becomes_an_answer_and_a_base_answer(locality, runs, answers):
    filtered = Insertions().apply([runs], docs=None)[0]
    for passed_on in ([filtered], [text.strip() for text in filtered]):  # by lm-eval, by lmms-eval
        answered = score(locality, responses_of(passed_on))
        assert answered.responses == [text for text, _ in answers]
        assert answered.references == (answers[0][1],)
    with pytest.raises(ValueError, match="a list of 4; expected"):
        Insertions().apply([[["a", "b", "{}", "d"]]], docs=None)


def test_in_locality_an_answer_is_compared_with_that_before_the_insertion(locality):
    for answer, base, rouge in (
        ("whatever it says", "whatever it says", 100.0),  # an ordinary model, which has one answer
        (["a b c d", "a b x y"], "a b x y", 50.0),  # L = 2 of 4 and 4 tokens
    ):
        record = results(locality, answer)
        assert record["values"] == {"rouge_l": pytest.approx(rouge)}
        assert record["references"] == [base]
        assert record["runs"][0]["response"] == (answer if isinstance(answer, str) else answer[0])
    assert results(locality, "")["values"] == {"rouge_l": 100.0}


def test_a_record_holds_all_that_other_tables_and_a_regrading_need(doc):
    record = results(doc, "x")
    assert (record["item"], record["cluster"]) == (doc["id"], doc["scenario"])
    assert record["data"] == {"data": doc["data"], "draw": doc["draw"]}
    for name in ("role", "topic", "partition", "language"):
        assert record["groups"][name] == doc[name]
    assert record["groups"]["after"] == "1"
    for name in ("case_id", "setting", "scenario", "order", "step"):
        assert record["facts"][name] == doc[name]
    assert record["values"] == {"rouge_l": 0.0}
    assert record["judge_language"] == "Chinese"
    assert record["question"] == doc["question"]
    assert record["judge"]["rubric"] == "crosscult"
