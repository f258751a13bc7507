"""SEM: the order of votes, the cleaning of a response, when an answer is in it, and the scores of a question."""

from __future__ import annotations

import pytest

from culture_tasks.benchmarks.blend import benchmark
from culture_tasks.benchmarks.blend.benchmark import Hit, cleaned, first_hit, metrics, score, score_choice, token_match
from culture_tasks.benchmarks.blend.questions import REGIONS, load_choices, load_questions
from culture_tasks.settings import Settings

VOTES = [
    {"answers": ["쌀밥", "밥"], "en_answers": ["rice"], "count": 4},
    {"answers": ["김치"], "en_answers": ["kimchi"], "count": 3},
    {"answers": ["라면"], "en_answers": ["ramen", "instant noodles"], "count": 1},
]
PROMPT = "Read.\n\nQuestion: What do children eat?\nAnswer:"


def test_the_first_hit_in_the_order_of_votes_counts():
    both = [{"answers": ["a1"], "en_answers": ["b1"], "count": 2}, {"answers": ["b1"], "en_answers": [], "count": 1}]
    for votes, response, hit in (
        (VOTES, "밥", Hit("밥", 1.0)),
        (VOTES, "라면과 김치", Hit("김치", 3 / 4)),  # both are in it: the one with more votes counts
        (VOTES, "kimchi", Hit("kimchi", 3 / 4)),
        (VOTES, "빵", None),
        (both, "b1", Hit("b1", 1.0)),  # English, but of the answer with more votes
        (both, "b1 a1", Hit("a1", 1.0)),  # of equal votes, the local answers come first
    ):
        assert first_hit(votes, response, "ko", token_match) == hit


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
        ("İt", "qara it", True),
        ("نان و چاي", "چای و نان", True),
        ("۱۲ ساعت", "12 ساعت", True),
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


KOREA = next(region for region in REGIONS if region.name == "South_Korea")


@pytest.fixture
def doc(fixture_data):
    return load_questions([KOREA], "inst-4", Settings(data=fixture_data), english=False).rows[
        0
    ]  # coffee 4 votes, milk 1


def test_repeated_runs_are_averaged_and_reasoning_is_no_answer(doc):
    answered = score(doc, ["커피", "우유", "물", "<think>커피</think>물"], official=False)
    assert answered.score == 2 / 4
    assert answered.values == {"sem_w": (1 + 1 / 4) / 4}
    assert answered.labels == ("커피", "우유", "", "")


def test_with_the_paper_s_matcher_both_rules_have_values(doc, monkeypatch):
    monkeypatch.setattr(benchmark, "official_match", lambda answer, response, language: answer == "milk")
    answered = score(doc, ["커피"], official=True)
    assert answered.score == 1.0
    assert answered.values == {"sem_w_official": 1 / 4, "sem_b": 1.0, "sem_w": 1.0}
    assert answered.labels == ("milk",)
    main, *others = metrics(official=True)
    assert set(answered.values) == {metric.name for metric in others}
    assert set(main.groups["topic"]) >= {answered.groups["topic"]}


def test_a_choice_is_right_wrong_or_unread(fixture_data):
    doc = load_choices(Settings(data=fixture_data)).rows[0]
    wrong = next(letter for letter, _ in doc["choices"] if letter != doc["answer"])
    answered = score_choice(doc, [doc["answer"], wrong, "none of these"])
    assert answered.score == 1 / 3
    assert answered.values == {"unparsed": 1 / 3}
    assert answered.labels == (doc["answer"], wrong, None)
