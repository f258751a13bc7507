"""Pure functions over text in any script."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.text import answer_in, best_token_f1, storable, token_f1, tokens, without_reasoning

ANY = st.text(st.characters())  # lone surrogates and NUL too
TAGGED = st.lists(
    st.sampled_from(["<think>", "</think>", "<THINKING>", "</thought>", "<reasoning>", "a", " ", "\n", "<", ">", "</"])
).map("".join)


ANSWERS = {
    "": "",
    "<think>x</think>naan": "naan",
    "<think>\nx\n</think>\n\nnaan": "\n\nnaan",
    "<think>x</think>a<think>y</think>b": "ab",
    "<think>x<think>y</think>z</think>naan": "naan",
    "<think>never ends": "",
    "\n<think>never ends": "\n",
    "naan <think>never ends": "naan <think>never ends",
    "<think>I was told to use <think> here</think>naan": "naan",
    "opened by the template</think>naan": "naan",
    "<Thinking>x</THINKING>naan": "naan",
    "<thought>x</thought><reasoning>y</reasoning>naan": "naan",
    "<thinkable>naan</thinkable>": "<thinkable>naan</thinkable>",
    "1 < 2 and 3 > 2": "1 < 2 and 3 > 2",
    "思考<think>想</think>烤饼": "思考烤饼",
}


def test_reasoning_is_cut_out():
    assert {reply: without_reasoning(reply) for reply in ANSWERS} == ANSWERS
    assert all(answer_in(reply) == (reply if kept == reply else kept.strip()) for reply, kept in ANSWERS.items())


@given(TAGGED)
def test_what_is_kept_is_part_of_the_reply_in_its_order_and_all_of_one_without_tags(text):
    rest = iter(text)
    assert all(mark in rest for mark in without_reasoning(text))
    plain = text.replace("<", "").replace(">", "")
    assert without_reasoning(plain) == plain


def test_long_replies_take_linear_time():
    """A quadratic cut would take hours here, and the time limit of the suite would end it."""
    for piece in ("<think>", "</think>", "<think>x</think>y", "<", "<think", "a<think>b</think"):
        without_reasoning(piece * 100_000)


@given(ANY)
def test_what_is_storable_can_be_encoded_stored_and_read_back(text):
    clean = storable(text)
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert json.loads(json.dumps(clean, ensure_ascii=False).encode("utf-8")) == clean
    assert "\x00" not in clean
    assert storable(clean) == clean


def test_halves_of_characters_are_joined_or_replaced():
    halves = {
        "a\x00b": "a\ufffdb",
        "a\ud800b": "a\ufffdb",
        "b\ud800": "b\ufffd",
        "\ud83d\ude00": "😀",
        "\ufeffa\ud800": "\ufeffa\ufffd",
    }
    assert {text: storable(text) for text in halves} == halves


TOKENS = {
    "The Naan, please!": ["the", "naan", "please"],
    "snake_case": ["snake", "case"],
    "饺子和tea": ["饺", "子", "和", "tea"],
    "これはナンです。": list("これはナンです"),
    "ﾅﾝ": ["ナ", "ン"],
    "佐々木": ["佐", "々", "木"],
    "ＮＡＡＮ１２": ["naan12"],
    "كَبْسَة": ["كبسة"],
    "كبـــسة": ["كبسة"],
    "हिन्दी में रोटी": ["हिन्दी", "में", "रोटी"],
    "한국어 김치": ["한국어", "김치"],
    "çay Straße": ["çay", "strasse"],
    "Ngũgĩ wa Thiong'o": ["ngũgĩ", "wa", "thiong", "o"],
    "": [],
}
ALIKE = (
    *(("é", "e\u0301"), ("\u0390", "\u03aa\u0301"), ("ﬁ", "FI"), ("ﷲ", "الله"), ("가", "\u1100\u1161")),
    *(("Å", "\u212b"), ("क़लम", "क\u093cलम")),
)


def test_tokens_of_many_scripts_and_of_two_spellings_of_one_character():
    assert {text: tokens(text) for text in TOKENS} == TOKENS
    assert [pair for pair in ALIKE if tokens(pair[0]) != tokens(pair[1]) or not tokens(pair[0])] == []


@given(ANY)
def test_tokens_do_not_depend_on_the_unicode_form_and_none_is_empty_or_holds_a_space(text):
    assert all(token and not any(mark.isspace() for mark in token) for token in tokens(text))
    assert tokens(unicodedata.normalize("NFC", text)) == tokens(unicodedata.normalize("NFD", text))


def test_token_f1_by_hand():
    # tokens a b c and b c c d: overlap b, c = 2; F1 = 2 * 2 / (3 + 4) = 4/7
    assert token_f1("a b c", "B, c c D!") == pytest.approx(4 / 7)
    # order doesn't matter; two of two and two of two: 1
    assert token_f1("roti naan", "naan roti") == 1.0
    # 烤饼 and 烤肉 share one of two tokens each: 2 * 1 / 4 = 0.5
    assert token_f1("烤饼", "烤肉") == 0.5
    assert best_token_f1("naan", ["roti", "naan", "flat naan"]) == 1.0
    assert best_token_f1("naan", []) == 0.0
    assert token_f1("naan", "roti") == token_f1("", "") == token_f1("?", "?") == token_f1("naan", "") == 0.0


@given(st.text(), st.text())
def test_token_f1_is_symmetric_and_between_0_and_1(one, other):
    assert token_f1(one, other) == token_f1(other, one)
    assert 0.0 <= token_f1(one, other) <= 1.0
