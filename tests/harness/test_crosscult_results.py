"""CrossCult's records: answers, base answers, facts, and what its judge is asked."""

import json
from pathlib import Path

import pytest
from support.crosscult_cases import rows, write_folder
from support.fault_server import FaultServer, says

from culture_tasks.benchmarks.crosscult.benchmark import open_release
from culture_tasks.benchmarks.crosscult.scoring import Insertions, score
from culture_tasks.benchmarks.interface import Task, responses_of
from culture_tasks.benchmarks.registry import benchmarks, task_named
from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.records import scorer_of
from culture_tasks.harness.rows import TaskRecords, statistics_of, write_row
from culture_tasks.settings import Settings

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


def test_an_answer_is_scored_against_the_reference_and_without_its_reasoning(doc):
    record = results(doc, doc["reference"])
    assert (record["values"], record["score"]) == ({"rouge_l": 100.0}, 10.0)
    assert results(doc, "zzz")["values"] == {"rouge_l": 0.0}
    assert results(doc, f"<think>hm</think> {doc['reference']}")["values"] == {"rouge_l": 100.0}
    # Parts concern the documents that belong to them.
    task = TaskRecords(statistics_of(task_named(SINGLE).metrics(), "judge_score", [record]), [record])
    row = {}
    write_row(row, task, "none")
    assert row["rouge_l_social,none"] == row["rouge_l_zh,none"] == 100.0
    for part in ("rouge_l_religious", "rouge_l_ar", "judge_score_lexical_religious"):
        assert f"{part},none" not in row


def test_a_record_says_which_insertion_was_used(doc, locality):
    said = {"activated": 0, "similarity": 0.8, "threshold": 0.5, "input_tokens": 7}
    used = results(doc, ["a", "a", json.dumps(said)])["facts"]
    assert {name: used[name] for name in said} == said
    assert used["case_id"] == doc["case_id"]
    left = ["a", "a", json.dumps({**said, "activated": None})]
    unused = results(locality, left, task=LOCALITY)["facts"]
    assert (unused["activated"], unused["similarity"]) == (None, 0.8)
    assert "threshold" not in results(doc, "a")["facts"]


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


def test_every_document_has_every_metric_of_its_task(folder):
    for name in (entry.name for entry in benchmarks()["crosscult"].entries() if isinstance(entry, Task)):
        records = [results(doc, "x", task=name) for doc in load_for_evaluation(name)]
        found = {number.name: number for number in statistics_of(task_named(name).metrics(), "judge_score", records)}
        for number in ("rouge_l", "judge_score_lexical", "judge_score_coverage", "judge_score_unscored"):
            assert all(map(found[number].concerns, records)), name


def test_the_release_is_read_again_when_its_file_changes(folder):
    first = open_release(Settings(data=folder))
    assert open_release(Settings(data=folder)) is first
    write_folder(folder, rows(cases=3))
    assert len(open_release(Settings(data=folder)).raw.cases) == 18


def test_the_paper_s_judge_is_asked_by_figure_10(folder, monkeypatch):
    server = FaultServer()
    server.script(says('```json\n{"score": 9, "reason": "Same stance."}\n```'))
    monkeypatch.delenv("CULTURE_JUDGE")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    doc = load_for_evaluation(SINGLE)[1]
    record = results(doc, ["نعم.", "نعم.", "{}"]).record()
    assert (record["score"], record["runs"][0]["rationale"]) == (9.0, "Same stance.")
    [seen] = server.requests
    assert (seen.body["model"], seen.body["reasoning_effort"]) == ("gpt-5.4-mini", "none")
    assert 256 in seen.body.values()
    assert [message["role"] for message in seen.body["messages"]] == ["system", "user"]
    for text in ("Language: Arabic", doc["question"], doc["reference"], "نعم."):
        assert text in seen.text
    server.close()
