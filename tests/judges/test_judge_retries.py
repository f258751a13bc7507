from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.judges.endpoint.client import asked_to_wait, overloaded, retriable

NOW = 1_700_000_000.0


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_is_retried(status):
    assert retriable(status, {})
    assert not retriable(status, {"x-should-retry": "false"})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_is_not(status):
    assert not retriable(status, {})
    assert retriable(status, {"x-should-retry": "true"})


def test_what_asks_for_fewer_requests():
    assert [status for status in (400, 408, 429, 500, 502, 503, 504, 529) if overloaded(status)] == [429, 503, 504, 529]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(NOW + 30)}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(1000 * (NOW + 30)))}, 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, 30.0),
        ({"x-ratelimit-remaining": "0"}, None),
    ],
)
def test_what_an_endpoint_asks_for(headers, seconds):
    assert asked_to_wait(429, headers, NOW) == seconds


def test_a_good_reply_may_say_that_nothing_remains():
    assert asked_to_wait(200, {"retry-after": "7"}, NOW) is None
    assert asked_to_wait(200, {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}, NOW) == 2.0


@given(st.text(), st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset"]))
def test_any_header_is_survived(text, name):
    wait = asked_to_wait(429, {name: text, "x-ratelimit-remaining": "0"}, NOW)
    assert wait is None or wait >= 0
