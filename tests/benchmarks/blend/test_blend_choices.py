"""Multiple choice: a reply that names one offered choice is read, and everything else is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.blend.choices import chosen

CHOICES = {"A": "tea", "B": "soy milk", "C": "coffee"}


@pytest.mark.parametrize(
    "reply",
    [
        '{"answer_choice":"B"}',
        '{"answer_choice": "b"}',
        '```json\n{"answer_choice":"B"}\n```',
        'The people there like it.\n{"answer_choice":"B"}',
        '{"answer_choice":"B. soy milk"}',
        '{"answer_choice":"Soy  milk"}',
        '{"answer_choice":""}\n{"answer_choice":"B"}',  # the prompt's own object first
        '{"answer_choice":"B"} {"answer_choice":"B"}',
        '<think>{"answer_choice":"A"}</think>{"answer_choice":"B"}',
        '{"reason": {"answer_choice":"B"}}',
        "B.",
        "(B)",
        "**B**",
        "B. soy milk",
        "B) Soy milk.",
        "soy milk",
        " SOY MILK\n",
    ],
)
def test_what_names_one_choice_is_read(reply):
    assert chosen(reply, CHOICES) == "B"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        '{"answer_choice":""}',
        '{"answer_choice":"E"}',
        '{"answer_choice":["B"]}',
        '{"answer_choice":2}',
        '{"answer":"B"}',
        '{"answer_choice":"B"',
        "{'answer_choice':'B'}",
        '{"answer_choice":"A"} or {"answer_choice":"B"}',
        '{"answer_choice":"A or B"}',
        '{"answer_choice":"B. tea"}',  # another choice's text
        "E",
        "B. tea",
        "The answer is B",
        "A cup of tea",
        "I would choose soy milk",
        "A B",
        "AB",
    ],
)
def test_what_does_not_is_not(reply):
    assert chosen(reply, CHOICES) is None


def test_a_letter_that_was_offered_is_no_text():
    assert chosen("b", {"A": "b", "B": "tea"}) == "B"
    assert chosen("x", {"A": "x", "B": "tea"}) == "A"


@given(st.text())
def test_whatever_is_read_was_offered(reply):
    assert chosen(reply, CHOICES) in {None, *CHOICES}


@pytest.mark.parametrize("part", ["{", "}", '{"answer_choice":', "\\W ", "A.", "<think>"])
def test_hostile_replies_are_read_in_a_moment(part):
    assert chosen(part * 20_000, CHOICES) is None
