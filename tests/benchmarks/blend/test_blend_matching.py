"""SEM: the order of votes, the cleaning of a response, and when an answer is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.blend.scoring import Hit, cleaned, first_hit, token_match

VOTES = [
    {"answers": ["쌀밥", "밥"], "en_answers": ["rice"], "count": 4},
    {"answers": ["김치"], "en_answers": ["kimchi"], "count": 3},
    {"answers": ["라면"], "en_answers": ["ramen", "instant noodles"], "count": 1},
]
PROMPT = "Read.\n\nQuestion: What do children eat?\nAnswer:"


def weight(response, annotations=VOTES):
    hit = first_hit(annotations, response, "ko", token_match)
    return None if hit is None else hit.weight


def test_the_first_hit_in_the_order_of_votes_counts():
    assert weight("밥") == 1.0
    assert weight("김치") == 3 / 4
    assert weight("라면과 김치") == 3 / 4  # both are in it: the one with more votes counts
    assert weight("빵") is None


def test_of_equal_votes_the_local_answers_come_first():
    assert first_hit(VOTES, "kimchi", "ko", token_match) == Hit("kimchi", 3 / 4)
    both = [{"answers": ["a1"], "en_answers": ["b1"], "count": 2}, {"answers": ["b1"], "en_answers": [], "count": 1}]
    assert first_hit(both, "b1", "ko", token_match) == Hit("b1", 1.0)  # English, but of the answer with more votes
    assert first_hit(both, "b1 a1", "ko", token_match) == Hit("a1", 1.0)


def test_each_answer_is_looked_for_in_its_own_language():
    asked = []

    def matches(answer, response, language):
        asked.append((answer, language))
        return False

    assert first_hit(VOTES[:2], "x", "ko", matches) is None
    assert asked == [("쌀밥", "ko"), ("밥", "ko"), ("rice", "en"), ("김치", "ko"), ("kimchi", "en")]


def test_an_empty_response_has_no_hit():
    for response in ("", "."):
        assert first_hit(VOTES, cleaned(response, PROMPT), "ko", lambda *_: True) is None


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("Answer: Rice.", "rice"),
        ("ANSWER:\n\nRice", "rice"),
        (f"{PROMPT} Rice", "rice"),
        ("Rice。", "rice"),
        ("rice、kimchi，soup", "rice,kimchi,soup"),
        ("Food: rice", "food: rice"),  # no word of the prompt
        ("It is the answer: rice", "it is the answer: rice"),  # not at the start
        ("Answer:rice", "answer:rice"),  # without a blank it is no label
        ("...rice...", "rice"),
        ("e.g. rice", "e.g. rice"),
    ],
)
def test_a_response_is_cleaned_as_in_the_paper(response, expected):
    assert cleaned(response, PROMPT) == expected
    assert cleaned("回答： 豆浆。", "请回答。\n\n问题：喝什么？\n回答：") == "豆浆"


@pytest.mark.parametrize(
    ("answer", "response", "held"),
    [
        ("table tennis", "they play table-tennis", True),
        ("soy milk", "milk of soy", True),  # the same tokens
        ("Σεπτέμβριος", "σεπτέμβριος", True),
        ("Çay", "qara çay", True),
        ("القَهوة", "القهوة العربية", True),
        ("豆浆", "热豆浆和油条", True),
        ("चाय", "चाय और दूध", True),
        ("ＭＩＬＫ", "milk", True),
        ("ড়", "\u09dc", True),
        ("soy milk", "milk", False),
        ("চাহ", "কফি", False),
        ("কলা", "কল্ড ড্ৰিংক", False),  # one word's letters without its vowel signs
        ("ৰুটি", "দীপাংকৰ ভট্টাচাৰ্য", False),
        ("?!", "what?!", False),
        ("", "anything", False),
    ],
)
def test_an_answer_is_in_a_response_or_not(answer, response, held):
    assert token_match(answer, response, "xx") == held


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 4))
def test_a_weight_is_the_votes_over_those_of_the_first(counts, place):
    counts.sort(reverse=True)
    annotations = [{"answers": [f"answer{at}"], "en_answers": [], "count": count} for at, count in enumerate(counts)]
    at = min(place, len(counts) - 1)
    assert weight(f"answer{at}", annotations) == counts[at] / counts[0]
