"""Wrong key, unknown model, unreachable endpoint: found before any inference, without a secret in the message."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.fault_server import fails, hangs, raw, says
from support.judging import KEY, ask, ask_all

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.endpoint import addresses
from culture_tasks.judges.rubric.verdicts import JudgeItem

CLOSED = "http://127.0.0.1:9/v1"
WRONG_KEY = fails(401, message=f"Incorrect API key provided: {KEY}")


def refusal(judge, *items, **options):
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(LAVE, item) for item in items], **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (WRONG_KEY, "Correct the key (OPENAI_API_KEY)"),
        (fails(403), "see to its access"),
        (fails(404, code="model_not_found"), "Name a model, or on Azure a deployment, that it has"),
        (fails(400), "See what the endpoint says"),
        (fails(429, code="insufficient_quota"), "its credit"),
        (raw("", 302), "redirects"),
        (raw("<html>Welcome</html>"), "not JSON"),
        (says("OK"), "reference answer (lave), and the reply holds no rating that can be read without doubt: 'OK'. A"),
        (hangs, "no reply within 0.2 s"),
    ],
)
def test_a_judge_that_can_not_work_is_found_and_a_failed_check_repeated(server, judge_for, item, reply, advice):
    server.script(reply)
    judge = judge_for(judge_timeout=0.2)
    message = refusal(judge, item)
    assert advice in message
    assert "CULTURE_JUDGE=none" in message
    assert KEY not in message
    assert "judge judge: http://127.0.0.1" in message
    assert "\n" not in message
    server.script(says())
    for expected in ([], [(LAVE, item)], [(LAVE, item), (CARE, item)]):
        server.requests.clear()
        judge.check(expected)
        assert len(server.requests) == (expected == [(LAVE, item)])  # once


def test_the_question_is_the_first_one_with_a_reference_as_the_response_and_its_reply_not_kept(
    server, judge_for, items
):
    server.script(says("hm"), says())
    judge_for().check([(LAVE, JudgeItem(item.question, item.references, "")) for item in items(5)])
    request, reminder = server.requests
    assert reminder.body["messages"][:2] == request.body["messages"]
    assert ask(judge_for(), replace(items(1)[0], response="biryani")).attempts == 1
    assert {name: request.body[name] for name in LAVE.sampling} == dict(LAVE.sampling)
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]
    assert "What is dish 0?" in request.text
    assert request.text.count("biryani") == 2


@pytest.mark.parametrize(
    ("reply", "message"),
    [(fails(400, code="content_filter"), "declines the first question"), (fails(429), "limits the rate")],
)
def test_a_filter_or_a_rate_limit_is_not_the_end(server, judge_for, item, caplog, reply, message):
    server.script(reply)
    judge = judge_for()
    assert judge.check([(LAVE, item)]) is None
    assert message in caplog.text
    server.script(WRONG_KEY)
    assert "Correct the key" in refusal(judge, item)


def test_advice_names_the_variables_that_the_user_has_set(server, judge_for, item, monkeypatch):
    def message(**settings):
        return refusal(judge_for("gpt-4o", **{"openai_base_url": None, "openai_api_key": None} | settings), item)

    azure = {"azure_endpoint": server.url, "azure_api_key": KEY, "openai_api_version": "2024-10-21"}
    server.script(fails(401))
    assert "(AZURE_OPENAI_API_KEY)" in message(**azure)
    assert "(OPENAI_API_KEY)" in message(**azure | {"azure_api_key": None, "openai_api_key": KEY})
    closed = message(**azure | {"azure_endpoint": CLOSED})
    assert "or correct AZURE_OPENAI_ENDPOINT" in closed
    assert "OPENAI_BASE_URL" not in closed
    assert "or correct OPENAI_BASE_URL" in message(openai_base_url=CLOSED)
    assert "needs a key" in message()
    monkeypatch.setattr(addresses, "OPENAI_BASE_URL", CLOSED)
    openai = message(openai_api_key=KEY)
    assert "HTTPS_PROXY" in openai
    assert "OPENAI_BASE_URL" not in openai


def test_only_where_every_verdict_is_at_hand_nothing_is_asked(server, judge_for, items):
    def decide(request):
        return says("hm" if "dish 3?" in request.text or "no rating" not in request.text else "rating=1")

    server.decide = decide
    judge = judge_for()
    ask_all(judge, items(4))
    judge.close()
    server.script(WRONG_KEY)
    judge_for().check([(LAVE, item) for item in items(3)], responses_known=True)
    for expected, is_known in ((items(3), False), (items(4), True), ([*items(3), items(5)[4]], True)):
        assert "Correct the key" in refusal(judge_for(), *expected, responses_known=is_known)
