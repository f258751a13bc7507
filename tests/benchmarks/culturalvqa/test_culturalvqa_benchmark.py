"""What a model is asked by CulturalVQA (Appendices H and I, and the baselines), and exact match of its answers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.papers import printed, wording

from culture_tasks.benchmarks.culturalvqa.benchmark import render
from culture_tasks.benchmarks.culturalvqa.exact_match import exact_match, normalised
from culture_tasks.benchmarks.culturalvqa.rubrics import LAVE
from culture_tasks.benchmarks.interface import Picture
from culture_tasks.judges.rubric.verdicts import JudgeItem
from culture_tasks.prompt_files import load


def doc(question="Q?", country="India", entities="plate, cup"):
    texts = {"question": question, "country": "india", "country_name": country, "entities": entities}
    return dict(id="1", references=["a"], facet="", image_id="", data="", **texts)


def prompt_text(variant, doc):
    """The text of a prompt without examples."""
    (text,) = (part for part in render(f"{variant}.v1", doc).parts if part != Picture())
    return text


def test_the_prompt_is_that_of_appendix_h_and_the_question():
    assert wording(prompt_text("vlm", doc())) == f"{wording(printed('culturalvqa', 'appendix_h'))} Q?"


def test_the_few_shot_prompt_is_that_of_appendix_i():
    examples = [{"row": 7, "question": "{question}", "answer": "{answer}"}, {"row": 9, "question": "q", "answer": "a"}]
    prompt = render("fewshot.v1", doc("the question") | {"examples": examples})
    instruction, image, first, *rest = prompt.parts
    assert wording(f"{instruction}\n{{image}}\n{first}") == wording(printed("culturalvqa", "appendix_i"))
    assert (image, first) == (Picture(7), "{question}\n{answer}")
    assert rest == [Picture(9), "q\na", Picture(), "the question"]


@pytest.mark.parametrize(
    ("variant", "end"),
    [
        ("blind", "of 1-3 words.\nQ?"),
        ("country", "\nCountry: India\nQ?"),
        ("lens", "\nVisual entities: plate, cup\nQ?"),
    ],
)
def test_a_baseline_asks_as_appendix_h_does_and_shows_what_it_is_named_for_and_no_more(variant, end):
    wanted = re.search(r"Answer the question with.+\n", printed("culturalvqa", "appendix_h"))
    text = prompt_text(variant, doc())
    assert wanted[0] in text
    assert "The image itself is not available." in text
    assert text.endswith(end)
    assert ("india" in text.casefold(), "plate" in text) == (variant == "country", variant == "lens")


def test_a_published_prompt_never_changes():
    """A changed prompt makes another task: it needs a new file and version."""
    starts = {
        "vlm.v1": "eb9330757fa6a9df",
        "fewshot.v1": "6525f7f795acd0ed",
        "blind.v1": "0e7d9c37d11485ac",
        "country.v1": "f1d8d884a04f44df",
        "lens.v1": "06f55a767c0b5498",
    }
    assert {name: load("culture_tasks.benchmarks.culturalvqa", name).sha256[:16] for name in starts} == starts


# The rubrics


def test_the_system_prompt_of_lave_is_that_of_appendix_f():
    assert wording(load(LAVE.package, "lave_system.v1").text) == wording(printed("culturalvqa", "appendix_f"))


def test_without_delimiters_lave_gets_the_paper_s_system_prompt_and_all_references():
    system, user = LAVE.messages(JudgeItem("Q?", ("one", "two"), "R."), delimiters=False)
    assert system == {"role": "system", "content": load(LAVE.package, "lave_system.v1").text}
    assert "Question: Q?\nReference answers: one; two\nCandidate answer: R.\n" in user["content"]


# Exact match after VQA-style normalisation

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
    "İnci ۱٬۰": "inci 1 0",
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
