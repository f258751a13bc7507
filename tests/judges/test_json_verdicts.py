"""The reader of CrossCult's judge: replies and what they mean, then any reply at all."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.judges.json_verdicts import read_crosscult
from culture_tasks.judges.parsers import Reading

GOOD = '{"score": 7, "reason": "Same stance."}'

READABLE = [
    (GOOD, 7),
    ('{"reason": "r", "score": 0}', 0),
    ('{"score":10,"reason":"r"}', 10),
    ('  \n{\n  "score": 3,\n  "reason": "r"\n}\n', 3),
    (f"```json\n{GOOD}\n```", 7),
    (f"Here is my verdict: {GOOD} Thank you.", 7),
    (f"Not this {{one}}, and no {{'quotes'}}: {GOOD}", 7),
    (f"[{GOOD}]", 7),
    (f"{{{GOOD}}}", 7),  # doubled braces
    ('{"score": <0-10 integer>, "reason": "<short reason>"}\n' + GOOD, 7),  # the format, quoted first
    ('{"score": 2, "reason": "a"} On second thought: ' + GOOD, 7),
    ('{"score": 99, "reason": "a"} ' + GOOD, 7),
    ('<think>{"score": 1, "reason": "draft"}</think>' + GOOD, 7),
    (json.dumps({"score": 4, "reason": f"the candidate says {GOOD}"}), 4),  # JSON inside JSON
    (json.dumps({"score": 4, "reason": 'braces } and { and "quotes" \\'}), 4),
    (json.dumps({"score": 4, "reason": "不同意"}), 4),
    (GOOD + " 10/10", 7),
    (GOOD + " {", 7),
]

UNREADABLE = [
    "",
    "7",
    "Score: 7",
    "score = 7, reason = good",
    "{}",
    '{"score": 7}',
    '{"reason": "r"}',
    '{"score": "7", "reason": "r"}',
    '{"score": 7.0, "reason": "r"}',
    '{"score": 7.5, "reason": "r"}',
    '{"score": 1e1, "reason": "r"}',
    '{"score": true, "reason": "r"}',
    '{"score": false, "reason": "r"}',
    '{"score": null, "reason": "r"}',
    '{"score": [7], "reason": "r"}',
    '{"score": {"value": 7}, "reason": "r"}',
    '{"score": 11, "reason": "r"}',
    '{"score": -1, "reason": "r"}',
    '{"score": 007, "reason": "r"}',
    '{"score": ７, "reason": "r"}',
    '{"score": NaN, "reason": "r"}',
    '{"score": Infinity, "reason": "r"}',
    '{"score": ' + "9" * 5000 + ', "reason": "r"}',
    '{"score": 7, "reason": ""}',
    '{"score": 7, "reason": " "}',
    '{"score": 7, "reason": 7}',
    '{"score": 7, "reason": ["r"]}',
    '{"score": 7, "reason": "r", "confidence": 1}',
    '{"Score": 7, "reason": "r"}',
    '{"score": 7, "score": 9, "reason": "r"}',
    '{"score": 7, "reason": "a", "reason": "b"}',
    '{"score": 7, "reason": "r",}',
    '{"score": 7, "reason": "a\nb"}',
    "{'score': 7, 'reason': 'r'}",
    '{"score": 7, "reason": "cut o',
    '{"score": 7',
    GOOD + ' {"score": 9, "reason": "cut o',
    GOOD + ' {"score": 11, "reason": "r"}',
    GOOD + ' {"note": "done"}',
    GOOD + " {}",
    json.dumps({"verdict": {"score": 7, "reason": "r"}}),
    # a verdict that the judge quotes without escaping it is not its own
    '{"score": 3, "reason": "the candidate says {"score": 10, "reason": "perfect"} and more"}',
    '{"score": 3, "reason": "the candidate says {"score": 10, "reason": "perfect"}',
    "<think>" + GOOD,
]


@pytest.mark.parametrize(("reply", "score"), READABLE)
def test_a_valid_object_is_read(reply, score):
    reading = read_crosscult(reply)
    assert reading is not None
    assert reading.rating == score


@pytest.mark.parametrize("reply", UNREADABLE)
def test_anything_else_is_not(reply):
    assert read_crosscult(reply) is None


def test_the_reason_is_the_rationale():
    assert read_crosscult('{"score": 7, "reason": " Same stance. "}') == Reading(7, "Same stance.")


@given(
    st.integers(0, 10), st.text(min_size=1).filter(str.strip), st.text(alphabet=st.characters(exclude_characters="{<"))
)
def test_any_reason_and_any_text_before_it_leave_the_score(score, reason, before):
    reading = read_crosscult(before + json.dumps({"score": score, "reason": reason}))
    assert reading == Reading(score, reason.strip())


@given(st.text(alphabet='{}":,[]\\ 1e.tscore', max_size=60))
def test_any_reply_is_read_or_not_without_an_error(reply):
    reading = read_crosscult(reply)
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
def test_a_megabyte_takes_linear_time(unit):
    seconds = []
    for size in (250_000, 1_000_000):
        reply = unit * (size // len(unit))
        start = time.perf_counter()
        read_crosscult(reply)
        seconds.append(time.perf_counter() - start)
    assert seconds[1] < max(1.0, 12 * seconds[0])


def test_nesting_without_end_is_no_verdict():
    assert read_crosscult('{"a":' * 100_000 + "1" + "}" * 100_000) is None
