"""Verdicts in JSON: replies and what they mean, then any reply at all."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.steps import steps

from culture_tasks.judges.parsers import Reading, read_rating
from culture_tasks.judges.statements import Scale

GOOD = '{"score": 7, "reason": "Same stance."}'


def read(reply: str) -> Reading | None:
    return read_rating(reply, Scale(0, 10, "score"))


def test_the_reason_is_the_rationale():
    assert read('{"score": 7, "reason": " Same stance. "}') == Reading(7, "Same stance.")


@example(0, '"', '"')
@given(
    st.integers(0, 10), st.text(min_size=1).filter(str.strip), st.text(alphabet=st.characters(exclude_characters="{<"))
)
def test_any_reason_and_any_line_before_it_leave_the_score(score, reason, before):
    reading = read(f"{before}.\n" + json.dumps({"score": score, "reason": reason}))
    assert reading == Reading(score, reason.strip())


@given(st.text(alphabet='{}":,[]\\ 1e.tscore', max_size=60))
def test_any_reply_is_read_or_not_without_an_error(reply):
    reading = read(reply)
    assert reading is None or 0 <= reading.rating <= 10


@pytest.mark.parametrize(
    "unit",
    [
        '{"',
        "{",
        '{"a":',
        '{"a":{},',
        "{}",
        GOOD,
        '"',
        '{"a":[{},',
        '{"a":"',
        "\\",
        '{"\\',
        "{ ",
        "<think>",
        '{"a":[',
        "}",
    ],
)
def test_much_of_the_same_is_no_verdict_and_twice_as_much_no_more_than_twice_the_work(unit):
    once, twice = (unit * (size // len(unit)) for size in (20_000, 40_000))
    assert read(twice) is None
    assert steps(read, twice) <= 2.1 * steps(read, once)


def test_a_verdict_among_up_to_a_hundred_objects_is_read():
    assert [read(unit * count + GOOD) for unit in (GOOD, "{}", '{"a": 1}') for count in (99, 100)] == (
        [Reading(7, "Same stance."), None] * 3
    )


def test_a_verdict_among_a_thousand_keys_is_read():
    keys = [json.dumps({"score": 7, "reason": "r", **dict.fromkeys(map(str, range(count)))}) for count in (998, 999)]
    assert [read(reply) for reply in keys] == [Reading(7, "r"), None]


def test_nesting_without_end_is_no_verdict():
    assert read('{"a":' * 100_000 + "1" + "}" * 100_000) is None
