"""CrossCult graded by an endpoint: what it is asked, and what becomes of its replies."""

import pytest
from support.crosscult_cases import rows, write_folder
from support.fault_server import FaultServer, says

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
    monkeypatch.delenv("CULTURE_JUDGE")
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
