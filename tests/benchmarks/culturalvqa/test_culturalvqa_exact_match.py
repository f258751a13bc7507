"""Exact match after VQA-style normalisation, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.culturalvqa.scoring import exact_match, normalised

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


@pytest.mark.parametrize(
    ("prediction", "references", "score"),
    [
        ("The Naan.", ["naan", "roti"], 1.0),
        ("ROTI", ["naan", "roti"], 1.0),
        ("naan bread", ["naan"], 0.0),
        ("two", ["2"], 1.0),
        ("", ["naan"], 0.0),
        ("5%", ["5"], 0.0),  # the VQA evaluation keeps % and $
        ("the", ["a"], 0.0),  # both are empty after normalisation: nothing was said
        ("naan", [], 0.0),
        ("naan", ["Naan!"], 1.0),
    ],
)
def test_a_prediction_matches_any_reference_or_none(prediction, references, score):
    assert exact_match(prediction, references) == score


@given(st.text())
def test_a_text_matches_itself_unless_nothing_is_left_of_it(text):
    assert exact_match(text, [text]) == float(bool(normalised(text)))


@given(st.text())
def test_the_normal_form_has_single_spaces_and_no_articles(text):
    words = normalised(text).split(" ") if normalised(text) else []
    assert "" not in words
    assert not {"a", "an", "the"} & set(words)
