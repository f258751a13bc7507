"""Exact match after VQA-style normalisation, case by case."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.culturalvqa.benchmark import exact_match, normalised

NORMAL = {
    "  the  Naan \n": "naan",
    "a plate of an Indian dish": "plate of indian dish",
    "Ice-cream": "ice cream",
    "it’s": "its",
    "don't": "dont",
    "U.S.A.": "usa",
    "3.5": "3.5",
    "3.": "3",
    "10:30": "10:30",
    "1,000,000 people": "1000000 people",
    "red,white": "red white",
    "Ten lamps": "10 lamps",
    "none": "0",
    "eleven": "eleven",
    "bone": "bone",
    "ＮＡＡＮ": "naan",
    "(naan)!?": "naan",
    "Straße": "strasse",
    "饺子。": "饺子",
    "c\u0327ay": "çay",
    "the": "",
    "?!": "",
}


def test_the_normal_form():
    assert {answer: normalised(answer) for answer in NORMAL} == NORMAL


def test_a_prediction_matches_any_reference_or_none():
    matching = [("The Naan.", ["naan", "roti"]), ("ROTI", ["naan", "roti"]), ("two", ["2"]), ("naan", ["Naan!"])]
    assert [pair for pair in matching if exact_match(*pair) != 1.0] == []
    # the VQA evaluation keeps % and $; nothing is left of "the" and "a" after normalisation: nothing was said
    others = [("naan bread", ["naan"]), ("", ["naan"]), ("5%", ["5"]), ("the", ["a"]), ("naan", [])]
    assert [pair for pair in others if exact_match(*pair) != 0.0] == []


@given(st.text())
def test_a_text_matches_itself_unless_nothing_is_left_of_it(text):
    words = normalised(text).split(" ") if normalised(text) else []
    assert exact_match(text, [text]) == float(bool(words))
    assert not {"", "a", "an", "the"} & set(words)
