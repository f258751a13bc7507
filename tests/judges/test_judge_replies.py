"""What a reply means: a completion, a problem, when to ask again, and which parameters to change."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culture_tasks.judges.completions import Completion, Problem
from culture_tasks.judges.endpoint.asker import Adaptations
from culture_tasks.judges.endpoint.client import asked_to_wait, read_reply
from culture_tasks.judges.rubric.verdicts import Usage

NAMES = ["choices", "message", "content", "error", "code", "usage", "text"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=20,
)
NESTED = "[" * 100_000 + "]" * 100_000
NOW = 1_700_000_000.0


@given(st.sampled_from([200, 302, 400, 429, 500]), JSON.map(json.dumps) | st.text())
@example(200, NESTED)
@example(429, f'{{"error": {{"message": {NESTED}}}}}')
def test_any_body_is_read_without_an_exception(status, text):
    result = read_reply(status, {}, text)
    assert isinstance(result, Completion) or "\n" not in result.message


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        *(({"prompt_tokens": count, "completion_tokens": 5}, Usage(0, 5)) for count in (10**30, -1, "7", None, 1.5)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 7}}, Usage(10, 0, 7)),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 700}}, Usage(10, 0, 10)),
        ({"prompt_tokens": 10, "prompt_tokens_details": [7]}, Usage(10)),
    ],
)
def test_counts_of_tokens_are_read_and_nonsense_is_none(usage, expected):
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert read_reply(200, {}, json.dumps(body)).usage == expected


@pytest.mark.parametrize(
    ("body", "is_unknown_model", "message"),
    [
        ({"error": {"message": "no", "code": "model_not_found"}}, True, "HTTP 400 bad request: no"),
        ({"message": "no", "code": "model_not_found"}, True, "HTTP 400 bad request: no"),
        ({"error": {"message": "no", "code": "DeploymentNotFound", "type": None}}, True, "HTTP 400 bad request: no"),
        ({"error": "out of memory"}, False, "HTTP 400 bad request: out of memory"),
        ({"error": "x" * 10_000}, False, f"HTTP 400 bad request: {'x' * 300}…"),
    ],
)
def test_errors_of_different_servers(body, is_unknown_model, message):
    problem = read_reply(400, {}, json.dumps(body))
    assert (problem.says_unknown_model, problem.message) == (is_unknown_model, message)


def complaint(message: str = "", param: str | None = None, status: int = 400) -> Problem:
    return Problem(message, retry=False, status=status, param=param)


def test_max_tokens_is_renamed_then_dropped_and_a_parameter_that_is_left_out_named_once(caplog):
    adaptations, meant = Adaptations(), {"temperature": 0.0, "max_tokens": 5}
    for problem, sent in (
        (complaint("Unsupported parameter", param="max_tokens"), {"temperature": 0.0, "max_completion_tokens": 5}),
        (complaint("max_completion_tokens: extra inputs are not permitted"), {"temperature": 0.0}),
        (complaint("'temperature' does not support 0.0"), {}),
    ):
        assert adaptations.learn(problem, adaptations.apply(meant))
        assert adaptations.apply(meant) == sent
    late = complaint("Unsupported value", param="temperature")
    assert not adaptations.learn(late, {})
    assert adaptations.learn(late, meant)  # of a request that was under way
    assert caplog.text.count("takes no temperature") == 1


@pytest.mark.parametrize(
    "problem",
    [
        complaint("temperature is not supported", status=500),
        complaint("the temperature in the oven is too high"),
        complaint("unsupported content"),
        complaint("unsupported content", param="messages"),
        complaint("temperature must be non-negative, got -3.0", param="temperature"),
        Problem("temperature is not supported", retry=False, status=400, refused=True),
    ],
)
def test_other_complaints_change_nothing(problem):
    assert not Adaptations().learn(problem, {"temperature": 0.0})


@pytest.mark.parametrize(
    "sent", [{"max_completion_tokens": 5}, {"temperature": 0, "max_tokens": 5}, {}, {"max_tokens": 5}]
)
def test_an_earlier_run_is_taken_over(sent):
    adaptations, meant = Adaptations(), {"temperature": 0, "max_tokens": 5}
    adaptations.adopt(meant, sent)
    assert adaptations.apply(meant) == sent


STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
RETRIED = [408, 409, 429, 500, 502, 503, 504, 529]


def test_a_status_says_whether_to_ask_again_and_whether_less_often():
    for headers, retried in (({}, RETRIED), ({"x-should-retry": "true"}, STATUSES), ({"x-should-retry": "false"}, ())):
        assert [status for status in STATUSES if read_reply(status, headers, "").retry] == list(retried)
    assert [status for status in STATUSES if read_reply(status, {}, "").overload] == [429, 503, 504, 529]


def none_left(kind, reset, remaining="0"):
    return {f"x-ratelimit-remaining{kind}": remaining, f"x-ratelimit-reset{kind}": reset}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        (none_left("-requests", "6m0s"), 360.0),
        (none_left("-tokens", "1h2m3.5s"), 3723.5),
        (none_left("-requests", "6m0s", remaining="9"), None),
        (none_left("", str(NOW + 30)), 30.0),
        (none_left("", str(int(1000 * (NOW + 30)))), 30.0),
        ({"x-ratelimit-remaining": "0"}, None),
    ],
)
def test_an_endpoint_says_how_long_to_wait(headers, seconds):
    assert asked_to_wait(429, headers, NOW) == seconds
    is_of_a_good_reply = "retry-after" not in headers
    assert asked_to_wait(200, headers, NOW) == (seconds if is_of_a_good_reply else None)
