"""Wrong key, unknown model, unreachable endpoint: found before any inference, without a secret in the message."""

from __future__ import annotations

import pytest
from support.fault_server import fails, hangs, raw, says
from support.judging import KEY

from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges import checking
from culture_tasks.judges.endpoint import EndpointJudge
from culture_tasks.judges.retries import RetryRule
from culture_tasks.judges.rubrics import RUBRICS
from culture_tasks.judges.verdicts import JudgeItem
from culture_tasks.settings import Settings

LAVE = RUBRICS["lave"]


@pytest.fixture(autouse=True)
def quick_check(monkeypatch):
    monkeypatch.setattr(checking, "_RULE", RetryRule(attempts=2, longest=5.0, first=0.01, cap=0.02))


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (fails(401, message=f"Incorrect API key provided: {KEY}"), "Correct the key"),
        (fails(403), "ask for access"),
        (fails(404, code="model_not_found"), "Correct the model's name"),
        (fails(404), "ends in /v1"),
        (fails(400, code="model_not_found"), "Correct the model's name"),
        (fails(400), "See what the endpoint says"),
        (fails(429, code="insufficient_quota"), "rate limit"),
        (fails(500), "asked 2 times"),
        (raw("", 302), "redirects"),
    ],
)
def test_what_can_not_work_is_found(server, judge_for, reply, advice):
    server.script(reply)
    with pytest.raises(JudgeUnreachableError, match=r"CULTURE_JUDGE=none") as caught:
        judge_for().check([])
    assert advice in str(caught.value)
    assert KEY not in str(caught.value)
    assert "judge judge: http://127.0.0.1" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [says("OK"), says(""), says("", "length"), says("x", "content_filter"), fails(429)],
    ids=["reply", "empty", "length", "filter", "rate limit"],
)
def test_what_may_work_passes(server, judge_for, reply):
    server.script(reply)
    judge_for().check([])


def test_nobody_listens(judge_for):
    with pytest.raises(JudgeUnreachableError, match="start the server"):
        judge_for(openai_base_url="http://127.0.0.1:9/v1").check([])


def test_nobody_answers(server, judge_for):
    server.script(hangs)
    with pytest.raises(JudgeUnreachableError, match=r"no reply within 0\.2 s"):
        judge_for(judge_timeout=0.2).check([])


def test_a_page_that_is_no_endpoint_is_found(server, judge_for):
    server.script(raw("<html>Welcome</html>"))
    with pytest.raises(JudgeUnreachableError, match="not JSON"):
        judge_for().check([])


def test_once_per_process_and_model(server, judge_for):
    judge = judge_for()
    judge.check([])
    judge.check([])
    judge_for().check([])
    assert len(server.requests) == 1
    judge_for("other").check([])
    assert len(server.requests) == 2


def test_a_failed_check_is_repeated(server, judge_for):
    server.script(fails(401), says("OK"))
    judge = judge_for()
    with pytest.raises(JudgeUnreachableError):
        judge.check([])
    judge.check([])


def test_the_check_learns_what_the_model_accepts(server, judge_for, item):
    server.script(fails(400, param="temperature", message="temperature: unsupported"), says("OK"), says())
    judge = judge_for()
    judge.check([(LAVE, item)])
    assert dict(judge.identity(LAVE).sampling) == {"max_tokens": 512}
    assert judge.submit(LAVE, item).verdict().attempts == 1


def test_a_question_that_is_not_in_the_cache_needs_the_endpoint(server, judge_for, items):
    known, unknown = items(2)
    judge = judge_for()
    judge.submit(LAVE, known).verdict()
    judge.close()
    server.requests.clear()
    other_response = JudgeItem(known.question, known.references, "")
    again = judge_for()
    again.check([(LAVE, other_response)])
    assert server.requests == []
    again.check([(LAVE, other_response), (LAVE, unknown)])
    assert len(server.requests) == 1


def test_openai_without_a_key_is_not_asked(tmp_path):
    judge = EndpointJudge("gpt-4o", Settings(judge_cache=str(tmp_path / "c")))
    with pytest.raises(JudgeUnreachableError, match="needs a key"):
        judge.check([])
    judge.close()
