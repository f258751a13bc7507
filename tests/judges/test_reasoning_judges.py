"""Judges that think before they write: limits that grow, settings of the sampling, schemas that are refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from support.fault_server import completion, fails, raw, says

from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.errors import SettingsError
from culture_tasks.judges.completions import Problem
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.settings import Settings


def counted(text, finish_reason, reasoning_tokens):
    """A reply whose usage tells of thinking."""
    content = completion(text, finish_reason)
    content["usage"]["completion_tokens_details"] = {"reasoning_tokens": reasoning_tokens}
    return raw(json.dumps(content))


CUT_OFF = {
    "nothing beside the thinking": says("", "length"),
    "null": says(None, "length"),
    "an unclosed block": says("<think>The candidate", "length"),
    "reasoning_content": says("The", "length", reasoning_content="Hm"),
    "reasoning": says(None, "length", reasoning="Hm"),
    "a count of tokens": counted("The", "length", 500),
}


def thinks_for(tokens):
    """A judge that needs so many tokens before it writes."""

    def decide(seen):
        limit = seen.body.get("max_tokens") or seen.body["max_completion_tokens"]
        return says("rating=2") if limit > tokens else says("<think>Let me see", "length")

    return decide


def limits(server):
    return [seen.body["max_tokens"] for seen in server.requests]


@pytest.mark.parametrize("cut_off", CUT_OFF.values(), ids=CUT_OFF.keys())
def test_a_reply_that_thinking_cut_off_is_asked_with_a_larger_limit(server, judge_for, item, cut_off):
    server.script(cut_off, says("rating=2"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.attempts, verdict.asked_again, verdict.max_tokens) == (2.0, 2, False, 2048)
    assert limits(server) == [512, 2048]
    assert server.requests[0].body["messages"] == server.requests[1].body["messages"]
    assert (verdict.usage.prompt_tokens, verdict.usage.completion_tokens) == (20, 10)


def test_a_reply_that_rambles_is_not(server, judge_for, item):
    server.script(says("The candidate is", "length"), says("rating=2"))
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.asked_again, verdict.max_tokens) == (2.0, True, None)
    assert limits(server) == [512, 512]


def test_the_larger_limit_is_learnt(server, judge_for, items):
    server.decide = thinks_for(700)
    judge = judge_for(judge_concurrency=1)
    judge.check([(LAVE, items(1)[0])])
    verdicts = [ticket.verdict() for ticket in [judge.submit(LAVE, item) for item in items(20)]]
    assert {(verdict.score, verdict.attempts, verdict.max_tokens) for verdict in verdicts} == {(2.0, 1, 2048)}
    assert limits(server) == [512, *[2048] * 21]


def test_the_limit_grows_as_far_as_it_must_and_no_further(server, judge_for, item):
    server.decide = thinks_for(10_000)
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.score, verdict.attempts, verdict.max_tokens) == (2.0, 4, 32_768)
    assert limits(server) == [512, 2048, 8192, 32_768]


def test_a_judge_that_never_ends_thinking_is_unparsable(server, judge_for, item):
    server.decide = thinks_for(10**9)
    verdict = judge_for().submit(LAVE, item).verdict()
    assert (verdict.outcome, verdict.asked_again) == ("unparsable", True)
    assert "cut off" in verdict.error
    assert limits(server) == [512, 2048, 8192, 32_768, 32_768]


def test_an_endpoint_that_takes_no_larger_limit_is_asked_as_before(server, judge_for, items):
    def decide(seen):
        if seen.body["max_tokens"] > 2048:
            return fails(
                400, message="max_tokens is too large: this model's context has 4096 tokens", param="max_tokens"
            )
        return thinks_for(3000)(seen)

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    first, second = (judge.submit(LAVE, item).verdict() for item in items(2))
    assert (first.outcome, second.outcome) == ("unparsable", "unparsable")
    # The first finds the limit out; the reminder, and all that follows, begin with it.
    assert limits(server) == [512, 2048, 8192, 2048, 2048, 2048]


def test_a_prompt_without_room_for_the_larger_limit_is_asked_with_its_own(server, judge_for, items):
    short, long = items(1)[0], replace(items(2)[1], response="x" * 5000)

    def decide(seen):
        if len(seen.text) > 5000 and seen.body["max_tokens"] > 512:
            return fails(400, message="the context has no room")
        return says("rating=1") if len(seen.text) > 5000 else thinks_for(700)(seen)

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    assert judge.submit(LAVE, short).verdict().max_tokens == 2048
    verdict = judge.submit(LAVE, long).verdict()
    assert (verdict.score, verdict.max_tokens) == (1.0, None)


def test_the_identity_is_that_of_the_limit_that_was_meant(server, judge_for, item):
    server.decide = thinks_for(700)
    judge = judge_for()
    before = judge.identity(LAVE)
    judge.submit(LAVE, item).verdict()
    assert judge.identity(LAVE) == before
    assert before.sampling["max_tokens"] == 512


def test_a_warm_run_asks_nothing_and_knows_the_limit(server, judge_for, items):
    server.decide = thinks_for(700)
    first, second = items(2)
    judge = judge_for()
    judge.submit(LAVE, first).verdict()
    judge.close()
    warm = judge_for()
    verdict = warm.submit(LAVE, first).verdict()
    assert (verdict.score, verdict.cached, verdict.max_tokens) == (2.0, True, 2048)
    assert warm.submit(LAVE, second).verdict().attempts == 1
    assert limits(server) == [512, 2048, 2048]


def test_a_limit_of_the_user_s_does_not_grow(server, judge_for, item):
    server.decide = thinks_for(5000)
    judge = judge_for(judge_max_tokens=4096)
    verdict = judge.submit(LAVE, item).verdict()
    assert verdict.outcome == "unparsable"
    assert limits(server) == [4096, 4096]
    assert judge.identity(LAVE).sampling["max_tokens"] == 4096


def test_the_user_s_parameters_are_sent_and_name_the_judge(server, judge_for, item):
    changes = {
        "judge_max_tokens": 4096,
        "judge_temperature": 0.7,
        "judge_reasoning_effort": "low",
        "judge_extra_body": json.dumps(
            {"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": False}, "response_format": None}
        ),
    }
    server.script(says("rating=2"))
    plain, judge = judge_for(), judge_for(**changes)
    for each in (plain, judge):
        each.submit(LAVE, item).verdict()
    own = {"max_tokens": 4096, "temperature": 0.7, "reasoning_effort": "low", "top_p": 0.9}
    own["chat_template_kwargs"] = {"enable_thinking": False}
    assert [set(seen.body) for seen in server.requests] == [
        {"model", "messages", "temperature", "max_tokens"},
        {"model", "messages", *own},
    ]
    assert {name: server.requests[1].body[name] for name in own} == own
    assert judge.identity(LAVE) != plain.identity(LAVE)
    assert dict(judge.identity(LAVE).sampling) == own
    assert "response_format" not in judge.identity(CROSSCULT).sampling
    assert json.loads(json.dumps(judge.identity(LAVE).json))["sampling"] == own
    hash(Settings(**changes))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("[1]", "not a JSON object"),
        ("{", "not a JSON object"),
        ('{"a": NaN}', "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"model": "x"}', "may not set 'model'"),
        ('{"messages": []}', "may not set 'messages'"),
        ('{"stream": true}', "may not set 'stream'"),
        ('{"n": 2}', "may not set 'n'"),
        ('{"max_tokens": 2}', "use CULTURE_JUDGE_MAX_TOKENS"),
    ],
)
def test_an_extra_body_that_can_not_be_is_refused(value, complaint):
    with pytest.raises(SettingsError, match=complaint) as caught:
        Settings.from_environment({"CULTURE_JUDGE_EXTRA_BODY": value})
    assert "CULTURE_JUDGE_EXTRA_BODY" in str(caught.value)
    assert len(str(caught.value)) < 1000


GOOD = '{"score": 7, "reason": "Same stance."}'
SCHEMA_REFUSED = {
    "by parameter": {"message": "Invalid parameter", "param": "response_format"},
    "by value": {"message": "'json_schema' is not one of the allowed types"},
    "by name": {"message": "This response_format type is unavailable now"},
}


def test_crosscult_s_reply_is_asked_for_by_a_schema(server, judge_for, item):
    server.script(says(GOOD))
    assert judge_for().submit(CROSSCULT, item).verdict().score == 7.0
    form = server.requests[0].body["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    score = form["json_schema"]["schema"]["properties"]["score"]
    assert score == {"type": "integer", "enum": list(range(11))}


@pytest.mark.parametrize("refusal", SCHEMA_REFUSED.values(), ids=SCHEMA_REFUSED.keys())
@pytest.mark.parametrize("takes", ["json_object", None])
def test_an_endpoint_without_schemas_is_asked_as_it_can_be(server, judge_for, items, refusal, takes):
    def decide(seen):
        form = seen.body.get("response_format")
        return says(GOOD) if form is None or form["type"] == takes else fails(400, **refusal)

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    first, second = (judge.submit(CROSSCULT, item).verdict() for item in items(2))
    assert (first.score, second.score, second.attempts) == (7.0, 7.0, 1)
    sent = judge.identity(CROSSCULT).sampling.get("response_format")
    assert sent == (None if takes is None else {"type": "json_object"})
    judge.close()
    warm = judge_for()
    assert warm.submit(CROSSCULT, items(1)[0]).verdict().cached
    assert warm.identity(CROSSCULT).sampling.get("response_format") == sent


def test_a_limit_that_was_refused_does_not_grow_again():
    adaptations, meant = Adaptations(), {"max_tokens": 512}
    assert adaptations.grow(meant, 32_768)
    assert adaptations.apply(meant, 32_768) == {"max_tokens": 2048}
    assert adaptations.apply(meant) == meant
    adaptations.shrink(512)
    assert adaptations.apply(meant, 32_768) == meant
    assert not adaptations.grow(meant, 32_768)


def test_requests_under_way_do_not_make_the_limit_grow_twice():
    adaptations, meant = Adaptations(), {"max_tokens": 512}
    assert adaptations.grow(meant, 32_768)
    assert adaptations.grow(meant, 32_768)
    assert adaptations.apply(meant, 32_768) == {"max_tokens": 2048}


def test_a_parameter_that_is_left_out_is_named_once(caplog):
    adaptations = Adaptations()
    for _ in range(2):
        assert adaptations.learn(Problem("unsupported", retry=False, status=400, param="top_p"), {"top_p": 0.9})
    assert caplog.text.count("takes no top_p") == 1
