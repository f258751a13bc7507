"""Pure functions over text in any script."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.text import answer_in, best_token_f1, folded, storable, token_f1, tokens, without_reasoning

ANY = st.text(st.characters())  # lone surrogates and NUL too
TAGGED = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<THINKING>", "</thought>", "<reasoning>", "◁/think▷", "a", " ", "\n", "<", ">", "</"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("", ""),
        ("<think>x</think>naan", "naan"),
        ("<think>x</think>a<think>y</think>b", "ab"),
        ("<think>x<think>y</think>z</think>naan", "naan"),
        ("<think>never ends", ""),
        ("\n<think>never ends", "\n"),
        ("naan <think>never ends", "naan <think>never ends"),
        ("opened by the template</think>naan", "naan"),
        ("<Thinking>x</THINKING>naan", "naan"),
        ("<thought>x</thought><reasoning>y</reasoning>naan", "naan"),
        ("<thinkable>naan</thinkable>", "<thinkable>naan</thinkable>"),
        ("思考<think>想</think>烤饼", "思考烤饼"),
        ("[THINK]x[/THINK]naan", "naan"),
        ("◁think▷x◁/think▷naan", "naan"),
        ("<|begin_of_thought|>x<|end_of_thought|>naan", "naan"),
        ("<unused94>x<unused95>naan", "naan"),
        ("<|channel|>analysis<|message|>x<|channel|>final<|message|>naan", "naan"),
        ("analysisThe user asks.assistantfinalnaan", "naan"),
        ('analysis"roti"? No.assistantcommentaryAssistantfinal?assistantfinalnaan', "naan"),
        ("assistantfinalnaan", "naan"),
        ("analysisThe user asks and", ""),
        ("analysis: naan", "analysis: naan"),
        ("analysis of naan", "analysis of naan"),
        ("The word assistantfinal is not naan", "The word assistantfinal is not naan"),
        ("◁think▷never ends", ""),
        ("naan [THINK]never ends", "naan [THINK]never ends"),
    ],
)
def test_reasoning_is_cut_out(reply, kept):
    assert without_reasoning(reply) == kept
    assert answer_in(reply) == (kept if kept == reply else kept.strip())


@given(st.text(st.characters(exclude_characters="<[◁")), TAGGED)
def test_a_reply_without_tags_stays_as_it_is_and_of_others_a_part_is_kept_in_its_order(text, tagged):
    assert without_reasoning(text) == text
    assert without_reasoning(f"<think>{text}</think>{text}") == text
    rest = iter(tagged)
    assert all(mark in rest for mark in without_reasoning(tagged))


def test_long_replies_take_linear_time():
    """A quadratic cut would take hours here, and the time limit of the suite would end it."""
    marks = ("<think>", "</think>", "<", "<think", "[", "<|channel|>", "analysis", "assistant")
    for piece in (*marks, "<think>x</think>y", "a<think>b</think"):
        without_reasoning(piece * 300_000)


@given(ANY)
def test_what_is_storable_can_be_encoded_stored_and_read_back(text):
    clean = storable(text)
    assert clean.encode("utf-8").decode("utf-8") == clean
    assert json.loads(json.dumps(clean, ensure_ascii=False).encode("utf-8")) == clean
    assert "\x00" not in clean
    assert storable(clean) == clean


def test_halves_of_characters_are_joined_or_replaced():
    texts = ("a\x00b", "a\ud800b", "b\ud800", "\ud83d\ude00", "\ufeffa\ud800")
    assert [storable(text) for text in texts] == ["a\ufffdb", "a\ufffdb", "b\ufffd", "😀", "\ufeffa\ufffd"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Naan, please!", ["the", "naan", "please"]),
        ("饺子和tea", ["饺", "子", "和", "tea"]),
        ("これはナンです。", list("これはナンです")),
        ("ﾅﾝ", ["ナ", "ン"]),
        ("佐々木", ["佐", "々", "木"]),
        ("ＮＡＡＮ１２", ["naan12"]),
        ("كَبْسَة", ["كبسة"]),
        ("हिन्दी में रोटी", ["हिन्दी", "में", "रोटी"]),
        ("क़लम", tokens("क\u093cलम")),
        ("çay Straße", ["çay", "strasse"]),
        ("Ngũgĩ wa Thiong'o", ["ngũgĩ", "wa", "thiong", "o"]),
        ("", []),
    ],
)
def test_tokens_of_many_scripts(text, expected):
    assert tokens(text) == expected


def test_two_spellings_of_one_character_are_the_same_token():
    spellings = (("é", "e\u0301"), ("\u0390", "\u03aa\u0301"), ("ﬁ", "FI"), ("ﷲ", "الله"), ("가", "\u1100\u1161"))
    typed = [
        ("İngilis dili", "ingilis DİLİ"),
        ("چای", "چاي"),
        ("ﮐﺘﺎﺏ", "كتاب"),
        ("ی\u0654", "ئ"),
        ("٤ ۴ ४ ๔", "4 4 4 4"),
    ]
    for one, other in (*spellings, *typed):
        assert tokens(one) == tokens(other) != []
        assert folded(folded(one)) == folded(one)
    for one, other in (("أكل", "اكل"), ("على", "علي"), ("ሰላም", "ሠላም"), ("τυρί", "τυρι"), ("qız", "qiz")):
        assert tokens(one) != tokens(other)


@given(st.text())
def test_tokens_do_not_depend_on_the_unicode_form_and_hold_no_space(text):
    found = tokens(unicodedata.normalize("NFC", text))
    assert found == tokens(unicodedata.normalize("NFD", text))
    assert all(token and not any(mark.isspace() for mark in token) for token in found)


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
