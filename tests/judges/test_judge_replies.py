from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.client import read_reply
from culture_tasks.judges.rubric.verdicts import Usage

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "message", "content", "error", "code", "usage", "text"]), inner)
    ),
    max_leaves=20,
)


@given(st.sampled_from([200, 201, 302, 400, 401, 404, 429, 500]), JSON)
def test_any_json_is_read_without_an_exception(status, content):
    result = read_reply(status, {}, json.dumps(content))
    assert isinstance(result, Completion | Problem)


@given(st.text())
def test_any_body_is_read_without_an_exception(text):
    assert isinstance(read_reply(200, {}, text), Completion | Problem)
    assert "\n" not in read_reply(500, {}, text).message


@pytest.mark.parametrize("count", [10**30, -1, "7", None, 1.5])
def test_usage_that_is_no_count_is_none(count):
    body = {"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": count, "completion_tokens": 5}}
    usage = read_reply(200, {}, json.dumps(body)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (0, 5)


def test_long_error_pages_are_shortened():
    assert len(read_reply(500, {}, "x" * 10_000).message) < 400


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no", "code": "model_not_found"}},
        {"message": "no", "code": "model_not_found"},
        {"error": {"message": "no", "code": "DeploymentNotFound", "type": None}},
    ],
)
def test_errors_of_different_servers(body):
    problem = read_reply(400, {}, json.dumps(body))
    assert problem.says_unknown_model
    assert problem.message == "HTTP 400 bad request: no"


def test_an_error_that_is_a_text():
    assert read_reply(500, {}, '{"error": "out of memory"}').message == "HTTP 500: out of memory"


def complaint(message: str = "", param: str | None = None, status: int = 400) -> Problem:
    return Problem(message, retry=False, status=status, param=param)


def test_max_tokens_is_renamed_then_dropped():
    adaptations, meant = Adaptations(), {"temperature": 0.0, "max_tokens": 5}
    assert adaptations.learn(complaint(param="max_tokens"), meant)
    assert adaptations.apply(meant) == {"temperature": 0.0, "max_completion_tokens": 5}
    assert adaptations.learn(
        complaint("max_completion_tokens: extra inputs are not permitted"), adaptations.apply(meant)
    )
    assert adaptations.apply(meant) == {"temperature": 0.0}
    assert adaptations.learn(complaint("'temperature' does not support 0.0"), adaptations.apply(meant))
    assert adaptations.apply(meant) == {}
    assert not adaptations.learn(complaint(param="temperature"), {})


@pytest.mark.parametrize(
    "problem",
    [
        complaint("temperature is not supported", status=500),
        complaint("the temperature in the oven is too high"),
        complaint("unsupported content"),
        complaint(param="messages"),
        Problem("temperature is not supported", retry=False, status=400, refused=True),
    ],
)
def test_other_complaints_change_nothing(problem):
    assert not Adaptations().learn(problem, {"temperature": 0.0})


@pytest.mark.parametrize(
    "sent", [{"max_completion_tokens": 5}, {"temperature": 0, "max_tokens": 5}, {}, {"max_tokens": 5}]
)
def test_an_earlier_run_is_taken_over(sent):
    meant = {"temperature": 0, "max_tokens": 5}
    adaptations = Adaptations()
    adaptations.adopt(meant, sent)
    assert adaptations.apply(meant) == sent


@pytest.mark.parametrize(
    ("details", "cached"),
    [
        ({"cached_tokens": 7}, 7),
        ({"cached_tokens": 700}, 10),
        ({"cached_tokens": "7"}, 0),
        ({}, 0),
        (None, 0),
        ([7], 0),
    ],
)
def test_tokens_of_the_endpoint_s_prompt_cache_are_read(details, cached):
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": details}
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert read_reply(200, {}, json.dumps(body)).usage == Usage(10, 5, cached)
