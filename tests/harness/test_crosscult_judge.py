"""CrossCult graded by an endpoint: what it is asked, and what becomes of its replies."""

import pytest
from support.crosscult_cases import rows, write_folder
from support.fault_server import FaultServer, fails, says

from culture_tasks.harness.loading import load_for_evaluation
from culture_tasks.harness.scoring import scorer_of

REPLY = '```json\n{"score": 9, "reason": "Same stance."}\n```'


@pytest.fixture
def server():
    running = FaultServer()
    yield running
    running.close()


@pytest.fixture
def load(server, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("CULTURE_TASKS_DATA", str(write_folder(tmp_path, rows())))

    def load_then_script(name, *behaviours):
        server.script(says(REPLY))
        data = load_for_evaluation(name)
        server.requests.clear()
        server.script(*behaviours)
        return data

    return load_then_script


def record_of(doc, answer, base=None):
    return scorer_of("crosscult_single_reliability")(doc, [answer, base or answer, "{}"])["judge_score"]


def test_the_paper_s_judge_is_asked_by_figure_10(load, server):
    doc = load("crosscult_single_reliability", says(REPLY))[1]
    record = record_of(doc, "نعم.")
    assert record["score"] == 9.0
    assert record["runs"][0]["rationale"] == "Same stance."
    body = server.requests[0].body
    assert body["model"] == "gpt-5.4-mini"
    assert body["reasoning_effort"] == "none"
    assert 256 in body.values()
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    for text in ("Language: Arabic", doc["question"], doc["reference"], "نعم."):
        assert text in server.requests[0].text


def test_identical_texts_are_judged_and_asked_once(load, server):
    doc = load("crosscult_single_cross_scenario_locality", says(REPLY))[0]
    assert record_of(doc, "The same.")["score"] == 9.0
    assert record_of(doc, "The same.", "The same.")["score"] == 9.0
    assert len(server.requests) == 1


def test_an_endpoint_without_reasoning_effort_is_asked_without(load, server):
    complaint = fails(400, message="Unsupported parameter: 'reasoning_effort' is not supported with this model.")
    doc = load("crosscult_single_reliability", complaint, says(REPLY))[0]
    assert record_of(doc, "不可以。")["score"] == 9.0
    assert "reasoning_effort" not in server.requests[-1].body


def test_a_reply_that_is_no_verdict_is_no_zero(load, server):
    doc = load("crosscult_single_reliability", says('{"score": "high", "reason": "r"}'))[0]
    record = record_of(doc, "不可以。")
    assert "score" not in record
    assert record["outcomes"] == {"unparsable": 1}
    assert len(server.requests) == 2
    assert "exactly the keys score and reason" in server.requests[1].text
