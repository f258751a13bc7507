"""Sampling parameters: limits that grow where judges think, settings, forms of replies, schemas that are refused."""

from __future__ import annotations

import json
import re

import pytest
from support.fault_server import fails, says
from support.judging import ask, ask_all

from culture_tasks.benchmarks.crosscult.rubrics import CROSSCULT
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.registry import rubrics
from culture_tasks.settings import Settings

CUT_OFF = {
    "nothing beside the thinking": says("", "length"),
    "an unclosed block": says("<think>The candidate", "length"),
    "reasoning_content": says("The", "length", reasoning_content="Hm"),
    "a count of tokens": says("The", "length", usage={"completion_tokens_details": {"reasoning_tokens": 500}}),
}


def thinks_for(tokens):
    """A judge that needs so many tokens before it writes."""

    def decide(request):
        limit = request.body.get("max_tokens") or request.body["max_completion_tokens"]
        return says("rating=2") if limit > tokens else says("<think>Let me see", "length")

    return decide


def limits(server):
    return [request.body["max_tokens"] for request in server.requests]


@pytest.mark.parametrize("cut_off", CUT_OFF.values(), ids=CUT_OFF)
def test_a_reply_that_thinking_cut_off_is_asked_with_a_larger_limit(server, judge_for, item, cut_off):
    server.script(cut_off, says("rating=2"))
    verdict = ask(judge_for(), item)
    assert (verdict.score, verdict.attempts, verdict.asked_again, verdict.max_tokens) == (2.0, 2, False, 2048)
    assert limits(server) == [512, 2048]
    assert server.requests[0].body["messages"] == server.requests[1].body["messages"]
    assert (verdict.usage.prompt_tokens, verdict.usage.completion_tokens) == (600, 10)


def test_the_larger_limit_is_learnt_and_known_to_a_warm_run_but_not_part_of_the_identity(server, judge_for, items):
    server.decide = thinks_for(700)
    judge = judge_for(judge_concurrency=1)
    identity = judge.identity(LAVE)
    assert identity.sampling["max_tokens"] == 512
    judge.check([(LAVE, items(1)[0])])
    verdicts = ask_all(judge, items(20))
    assert {(verdict.score, verdict.attempts, verdict.max_tokens) for verdict in verdicts} == {(2.0, 1, 2048)}
    assert limits(server) == [512, *[2048] * 21]
    assert judge.identity(LAVE) == identity
    judge.close()
    warm = judge_for()
    verdict = ask(warm, items(1)[0])
    assert (verdict.score, verdict.attempts, verdict.max_tokens) == (2.0, 0, 2048)
    assert ask(warm, items(21)[20]).attempts == 1
    assert limits(server) == [512, *[2048] * 22]


@pytest.mark.parametrize(
    ("tokens", "changes", "ending", "sent"),
    [
        (10_000, {}, ("scored", 4, False, 32_768), [512, 2048, 8192, 32_768]),
        (10**9, {}, ("unparsable", 5, True, 32_768), [512, 2048, 8192, 32_768, 32_768]),
        # The user's does not grow.
        (5_000, {"judge_extra_body": '{"max_tokens": 4096}'}, ("unparsable", 2, True, None), [4096, 4096]),
    ],
)
def test_the_limit_grows_as_far_as_it_must_and_may(server, judge_for, item, tokens, changes, ending, sent):
    server.decide = thinks_for(tokens)
    judge = judge_for(**changes)
    verdict = ask(judge, item)
    assert (verdict.outcome, verdict.attempts, verdict.asked_again, verdict.max_tokens) == ending
    assert verdict.outcome == "scored" or "cut off" in verdict.error
    assert limits(server) == sent
    assert judge.identity(LAVE).sampling["max_tokens"] == sent[0]


def test_an_endpoint_that_takes_no_larger_limit_is_asked_as_before(server, judge_for, items):
    too_large = "max_tokens is too large: this model's context has 4096 tokens"

    def decide(request):
        if request.body["max_tokens"] > 2048:
            return fails(400, message=too_large, param="max_tokens")
        return thinks_for(3000)(request)

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    assert [ask(judge, item).outcome for item in items(2)] == ["unparsable", "unparsable"]
    # The first finds the limit out; the reminder, and all that follows, begin with it.
    assert limits(server) == [512, 2048, 8192, 2048, 2048, 2048]


def test_the_user_s_parameters_are_sent_and_name_the_judge(server, judge_for, item):
    extra = {"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": False}}
    mine = {"max_tokens": 4096, "temperature": 0.7, "reasoning_effort": "low", **extra}
    changes = {"judge_extra_body": json.dumps(mine | {"response_format": None})}
    server.script(says("rating=2"))
    plain, judge = judge_for(), judge_for(**changes)
    for grader in (plain, judge):
        ask(grader, item)
    assert set(server.requests[0].body) == {"model", "messages", "temperature", "max_tokens"}
    assert set(server.requests[1].body) == {"model", "messages", *mine}
    assert {name: server.requests[1].body[name] for name in mine} == mine
    assert judge.identity(LAVE) != plain.identity(LAVE)
    assert json.loads(json.dumps(judge.identity(LAVE).json))["sampling"] == dict(judge.identity(LAVE).sampling) == mine
    assert "response_format" not in judge.identity(CROSSCULT).sampling
    hash(Settings(**changes))


SCHEMA_REFUSED = [
    ("json_object", {"message": "Invalid parameter", "param": "response_format"}),
    (None, {"message": "'json_schema' is not one of the allowed types"}),
    (None, {"message": "This response_format type is unavailable now"}),
]


@pytest.mark.parametrize(("takes", "refusal"), SCHEMA_REFUSED)
def test_crosscult_s_schema_gives_way_where_an_endpoint_takes_none(server, judge_for, items, refusal, takes):
    def decide(request):
        form = request.body.get("response_format")
        good = form is None or form["type"] == takes
        return says('{"score": 7, "reason": "Same stance."}') if good else fails(400, **refusal)

    server.decide = decide
    judge = judge_for(judge_concurrency=1)
    verdicts = [ask(judge, item, CROSSCULT) for item in items(2)]
    form = server.requests[0].body["response_format"]
    assert (form["type"], form["json_schema"]["strict"]) == ("json_schema", True)
    assert form["json_schema"]["schema"]["properties"]["score"] == {"type": "integer", "enum": list(range(11))}
    assert [verdict.score for verdict in verdicts] == [7.0, 7.0]
    assert verdicts[1].attempts == 1
    identity = judge.identity(CROSSCULT)
    assert identity.sampling.get("response_format") == (None if takes is None else {"type": "json_object"})
    judge.close()
    warm = judge_for()
    assert ask(warm, items(1)[0], CROSSCULT).attempts == 0
    assert warm.identity(CROSSCULT) == identity


WHY = "It is right, though some would give 1 of 10."
TEXTS = {
    "care": f"{WHY}\nRating: [[%d]]",
    "lave": f"{WHY}\nrating=%d",
    "crosscult": f'{{"reason": "{WHY}", "score": %d}}',
}
SCHEMA, REGEX = ("json_schema", "response_format"), ("regex", "structured_outputs")


def schema_of(form):
    return form["response_format"]["json_schema"]["schema"]


@pytest.mark.parametrize("rubric", rubrics().values(), ids=rubrics())
def test_a_reply_in_the_form_is_read_without_doubt(rubric):
    schema = schema_of(rubric.form("json_schema"))
    reasons, rating = schema["required"]
    assert sorted(schema["properties"]) == [reasons, rating]  # a request's keys are sorted, and the reply follows them
    assert schema["properties"][rating]["enum"] == list(range(rubric.lowest, rubric.highest + 1))
    pattern = rubric.form("regex")["structured_outputs"]["regex"]
    [text] = [text for name, text in TEXTS.items() if rubric.name.startswith(name)]
    for number in range(rubric.lowest, rubric.highest + 1):
        assert rubric.read(json.dumps({reasons: WHY, rating: number})).rating == number
        assert re.fullmatch(pattern, text % number)
        assert rubric.read(text % number).rating == number
    assert not re.fullmatch(pattern, text % (rubric.highest + 1))
    assert rubric.form("free") == {}


@pytest.mark.parametrize(
    ("form", "name", "reply"),
    [(*SCHEMA, '{"explanation": "Right.", "rating": 2}'), (*REGEX, "Right.\nrating=2")],
)
def test_the_form_is_sent_and_names_the_judge(server, judge_for, item, form, name, reply):
    server.script(says("hm", "length"), says(reply))
    judge = judge_for(judge_form=form)
    verdict = ask(judge, item)
    assert (verdict.score, verdict.asked_again) == (2.0, True)
    expected = LAVE.form(form)[name]
    # The reply to the reminder is held to it, too.
    assert [request.body.get(name) for request in server.requests] == [expected] * 2
    assert judge.identity(LAVE).json["sampling"] == {**LAVE.sampling, name: expected}
    assert ask(judge_for(), item).attempts == 1  # verdicts with and without the form don't mix
    assert name not in server.requests[-1].body
    assert ask(judge_for(judge_form=form), item).attempts == 0


def test_a_prompt_that_the_reported_tokens_can_not_hold_is_said_once(judge_for, items, caplog, server):
    server.decide = lambda request: says(usage={"prompt_tokens": 10})
    ask_all(judge_for(), items(3))
    assert caplog.text.count("the endpoint reports 10 tokens of a prompt of") == 1
