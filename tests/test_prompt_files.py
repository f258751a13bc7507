"""PromptFile files: slots are filled in one pass, and every change of wording changes the hash."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.prompt_files import PromptFile, load


def test_slots_are_filled_and_other_braces_stay():
    prompt = PromptFile("x.v1", 'Q: {question} {"a": 1} {} {Question} {question}')
    assert prompt.fill({"question": "why?", "more": "unused"}) == 'Q: why? {"a": 1} {} {Question} why?'


@given(st.text(), st.text())
def test_a_slot_inside_a_value_stays_as_it_is(one, other):
    filled = PromptFile("x.v1", "{a}|{b}").fill({"a": f"{one}{{b}}\\1", "b": f"{other}{{a}}"})
    assert filled == f"{one}{{b}}\\1|{other}{{a}}"


def test_a_slot_without_a_value_and_a_prompt_that_is_not_there_are_errors():
    with pytest.raises(KeyError, match="answer"):
        PromptFile("x.v1", "{question} {answer}").fill({"question": "q"})
    with pytest.raises(FileNotFoundError):
        load("culture_tasks.benchmarks.care", "plain.v99")


def test_the_hash_is_that_of_the_wording_without_the_file_s_last_line_break():
    prompt = load("culture_tasks.benchmarks.care", "plain.v1")
    assert (prompt.name, prompt.text) == ("plain.v1", "{question}")
    assert prompt.sha256 == hashlib.sha256(b"{question}").hexdigest() == PromptFile("x", "{question}").sha256
