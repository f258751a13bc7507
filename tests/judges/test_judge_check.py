"""Wrong key, unknown model, unreachable endpoint: found before any inference, without a secret in the message."""

from __future__ import annotations

import pytest
from support.fault_server import fails, hangs, raw, says
from support.judging import KEY

from culture_tasks.benchmarks.care.rubrics import LITERACY as CARE
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import JudgeUnreachableError
from culture_tasks.judges.endpoint.endpoint_judge import EndpointJudge, addresses, readiness
from culture_tasks.judges.endpoint.pacing import Patience
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.settings import Settings


@pytest.fixture(autouse=True)
def quick_check(monkeypatch):
    monkeypatch.setattr(readiness, "_PATIENCE", Patience(longest=0.2, first=0.01, cap=0.02))


def refusal(judge, item, rubric=LAVE, **options):
    with pytest.raises(JudgeUnreachableError) as caught:
        judge.check([(rubric, item)], **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (fails(401, message=f"Incorrect API key provided: {KEY}"), "Correct the key (OPENAI_API_KEY)"),
        (fails(403), "ask for access"),
        (fails(404, code="model_not_found"), "Name a model that it has"),
        (fails(404), "correct OPENAI_BASE_URL, which usually ends in /v1"),
        (fails(400, code="model_not_found"), "Name a model that it has"),
        (fails(400), "See what the endpoint says"),
        (fails(429, code="insufficient_quota"), "no credit left"),
        (fails(500), "HTTP 500"),
        (raw("", 302), "redirects"),
        (raw("<html>Welcome</html>"), "not JSON"),
        (says(""), "the reply is empty"),
    ],
)
def test_what_can_not_work_is_found(server, judge_for, item, reply, advice):
    server.script(reply)
    said = refusal(judge_for(), item)
    assert advice in said
    assert "CULTURE_JUDGE=none" in said
    assert KEY not in said
    assert "judge judge: http://127.0.0.1" in said
    assert "\n" not in said


@pytest.mark.parametrize("reply", ["OK", "I think, and I think. " * 100, "rating=7"])
def test_a_judge_that_gives_no_readable_verdict_is_found(server, judge_for, item, reply):
    server.script(says(reply))
    said = refusal(judge_for(), item)
    assert reply[:20] in said
    assert "reference answer (lave)" in said
    assert "CULTURE_JUDGE_MAX_TOKENS" in said
    assert "keep to the format" in said
    assert len(said) < 1200


def test_the_question_is_the_first_one_asked_as_all_are_with_a_reference_as_the_response(server, judge_for, items):
    judge = judge_for()
    judge.check([(LAVE, JudgeItem(each.question, each.references, "")) for each in items(5)])
    [seen] = server.requests
    assert {name: seen.body[name] for name in LAVE.sampling} == dict(LAVE.sampling)
    assert [message["role"] for message in seen.body["messages"]] == ["system", "user"]
    assert "What is dish 0?" in seen.text
    assert seen.text.count("biryani") == 2


def test_what_the_check_is_told_is_not_kept(server, judge_for, item):
    reference = JudgeItem(item.question, item.references, item.references[0])
    judge_for().check([(LAVE, reference)])
    judge_for().submit(LAVE, reference).verdict()
    assert len(server.requests) == 2


def test_a_reminder_may_be_needed(server, judge_for, item):
    server.script(says("hm"), says())
    judge_for().check([(LAVE, item)])
    assert len(server.requests) == 2


def test_a_first_question_that_the_provider_s_filter_stops_is_not_the_end(server, judge_for, items, caplog):
    server.decide = lambda seen: fails(400, code="content_filter")
    assert judge_for().check([(LAVE, item) for item in items(10)]) is None
    assert len(server.requests) == 1
    assert "declines the first question" in caplog.text


def test_a_rate_limit_is_for_a_time(server, judge_for, item, caplog):
    server.script(fails(429))
    judge = judge_for()
    judge.check([(LAVE, item)])
    assert "limits the rate" in caplog.text
    server.script(fails(401))
    assert "Correct the key" in refusal(judge, item)


def test_nobody_listens(judge_for, item):
    said = refusal(judge_for(openai_base_url="http://127.0.0.1:9/v1"), item)
    assert "Correct OPENAI_BASE_URL, or start the server there" in said


def test_advice_names_what_the_user_has_set(server, tmp_path, item):
    def said(**settings):
        base = {"judge_cache": str(tmp_path / "c"), "judge_timeout": 0.5}
        judge = EndpointJudge("gpt-4o", Settings.model_validate(base | settings))
        try:
            return refusal(judge, item)
        finally:
            judge.close()

    azure = {"azure_endpoint": server.url, "azure_api_key": KEY, "openai_api_version": "2024-10-21"}
    server.script(fails(401))
    assert "(AZURE_OPENAI_API_KEY)" in said(**azure)
    assert "(OPENAI_API_KEY)" in said(**azure | {"azure_api_key": None, "openai_api_key": KEY})
    server.script(fails(404, code="DeploymentNotFound"))
    assert "CULTURE_JUDGE=openai:<deployment>, or correct OPENAI_API_VERSION" in said(**azure)
    closed = said(**azure | {"azure_endpoint": "http://127.0.0.1:9"})
    assert "Correct AZURE_OPENAI_ENDPOINT" in closed
    assert "OPENAI_BASE_URL" not in closed


def test_advice_for_openai_itself_names_no_address(monkeypatch, judge_for, item):
    monkeypatch.setattr(addresses, "OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    said = refusal(judge_for(openai_base_url=None), item)
    assert "HTTPS_PROXY" in said
    assert "OPENAI_BASE_URL" not in said


def test_nobody_answers(server, judge_for, item):
    server.script(hangs)
    assert "no reply within 0.2 s" in refusal(judge_for(judge_timeout=0.2), item)


def test_nothing_to_grade_needs_nobody(server, judge_for):
    judge_for(openai_base_url="http://127.0.0.1:9/v1").check([])


def test_once_per_judge(server, judge_for, item):
    judge = judge_for()
    judge.check([(LAVE, item)])
    judge.check([(LAVE, item), (CARE, item)])
    assert len(server.requests) == 1
    judge_for("other").check([(LAVE, item)])
    assert len(server.requests) == 2


def test_a_failed_check_is_repeated(server, judge_for, item):
    server.script(fails(401), says())
    judge = judge_for()
    refusal(judge, item)
    judge.check([(LAVE, item)])


def test_the_check_learns_what_the_model_accepts(server, judge_for, item):
    server.script(fails(400, param="temperature", message="temperature: unsupported"), says())
    judge = judge_for()
    judge.check([(LAVE, item)])
    assert "temperature" not in judge.identity(LAVE).sampling
    assert judge.submit(LAVE, item).verdict().attempts == 1


def test_that_all_questions_were_graded_before_is_not_enough(server, judge_for, items):
    judge = judge_for()
    for item in items(3):
        judge.submit(LAVE, item).verdict()
    judge.close()
    server.script(fails(401))
    assert "Correct the key" in refusal(judge_for(), items(3)[0])


def test_that_every_verdict_is_at_hand_is_enough(server, judge_for, items):
    server.decide = lambda seen: says("rating=1" if "no rating" in seen.text else "hm")
    judge = judge_for()
    for item in items(3):
        judge.submit(LAVE, item).verdict()
    judge.close()
    server.script(fails(401))
    at_hand = [(LAVE, item) for item in items(3)]
    judge_for().check(at_hand, responses_known=True)
    with pytest.raises(JudgeUnreachableError):
        judge_for().check([*at_hand, (LAVE, items(4)[3])], responses_known=True)


def test_an_unparsable_verdict_is_not_at_hand(server, judge_for, item):
    server.script(says("hm"))
    judge = judge_for()
    judge.submit(LAVE, item).verdict()
    judge.close()
    server.script(fails(401))
    refusal(judge_for(), item, responses_known=True)


def test_verdicts_at_hand_tell_what_the_model_accepts(server, judge_for, item):
    server.script(fails(400, param="temperature", message="temperature: unsupported"), says())
    judge = judge_for()
    judge.submit(LAVE, item).verdict()
    identity = judge.identity(LAVE)
    judge.close()
    again = judge_for()
    again.check([(LAVE, item)], responses_known=True)
    assert again.identity(LAVE) == identity


def test_openai_without_a_key_is_not_asked(tmp_path, item):
    judge = EndpointJudge("gpt-4o", Settings(judge_cache=str(tmp_path / "c")))
    assert "needs a key" in refusal(judge, item)
    judge.close()
