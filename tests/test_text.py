"""Pure functions over text in any script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.text import (
    NO_RESPONSE,
    answer_in,
    best_token_f1,
    failure_in,
    folded,
    opening_mark,
    token_f1,
    tokens,
    without_reasoning,
)

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
        ("<think>never ends", ""),
        ("naan <think>never ends", "naan <think>never ends"),
        ("opened by the template</think>naan", "naan"),
        ("<Thinking>x</THINKING>naan", "naan"),
        ("<thought>x</thought><reasoning>y</reasoning>naan", "naan"),
        ("[THINK]x[/THINK]naan", "naan"),
        ("◁think▷x◁/think▷naan", "naan"),
        ("<|begin_of_thought|>x<|end_of_thought|>naan", "naan"),
        ("<unused94>x<unused95>naan", "naan"),
        ("<|channel|>analysis<|message|>x<|channel|>final<|message|>naan", "naan"),
        ("analysisThe user asks.assistantfinalnaan", "naan"),
        ("assistantfinalnaan", "naan"),
        ("analysisThe user asks and", ""),
        ("<|channel>thought\n<channel|>naan", "naan"),
        ("thought\nnaan", "naan"),
        ("<seed:think>x<seed:cot_budget_reflect>y</seed:cot_budget_reflect></seed:think>naan", "naan"),
        ("<mm:think>x</mm:think>naan", "naan"),
        ("<|inner_prefix|>x<|inner_suffix|>naan", "naan"),
        ("<|think:start|>x<|think:end|>naan", "naan"),
        ("[unused16]x[unused17]naan", "naan"),
        ("<reflection>x</reflection>naan", "naan"),
        ("naan. <reflection>x</reflection>", "naan. <reflection>x</reflection>"),
        ("naan</reflection>", "naan</reflection>"),
        ("naan, as the tag </think> closes a block", "naan, as the tag </think> closes a block"),
        ("naan. `</think>` is a tag", "naan. `</think>` is a tag"),
        ("Here is my thought process: x Here is my response:naan", "naan"),
    ],
)
def test_reasoning_is_cut_out(reply, kept):
    assert without_reasoning(reply) == kept
    assert answer_in(reply) == (kept if kept == reply else kept.strip())


@pytest.mark.parametrize(
    "reply",
    [
        "<|channel>thought\nx<channel|>naan<turn|>",
        "<|START_THINKING|>x<|END_THINKING|><|START_RESPONSE|>naan<|END_RESPONSE|>",
        "<thinking>x<reflection>y</reflection>z</thinking><output>naan</output>",
        "<think>x</think>\n<answer> naan </answer></s>",
    ],
)
def test_the_tags_around_an_answer_behind_reasoning_go_with_it(reply):
    assert answer_in(reply) == "naan"
    assert answer_in("<answer>naan</answer>") == "<answer>naan</answer>"
    assert answer_in("<summary>naan</summary>") == "naan"


@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("<ponder>x</ponder>naan", "<ponder>"),
        ("\n<|plan|> x <|done|>naan", "<|plan|>"),
        ("[PLANNING]\nx", "[PLANNING]"),
        ("<think>x</think><ponder>y</ponder>naan", "<ponder>"),
        *(
            (reply, "")
            for reply in ("naan", "<b>naan</b>", "[naan]", "(B) naan", "<answer>naan", "<strong>A</strong> b")
        ),
        *((reply, "") for reply in ("[1] naan", '{"a": 1}', "</ponder>naan", "<>", "[B] naan")),
    ],
)
def test_an_unknown_mark_that_begins_a_reply_is_found(reply, mark):
    assert opening_mark(reply) == mark


@pytest.mark.parametrize(
    ("response", "failure"),
    [
        (
            "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Error code: 500",
            "LMMS_EVAL_REQUEST_FAILED after 3 retries: Error code: 500",
        ),
        ("[LMMS_EVAL_BUDGET_EXCEEDED]", "LMMS_EVAL_BUDGET_EXCEEDED"),
        ("[SAFETY_BLOCKED:finish_reason=3]\n", "SAFETY_BLOCKED:finish_reason=3"),
        (NO_RESPONSE, "no response"),
        *((text, "") for text in ("", "B", "[B]", "[ERROR] naan", "B\n[LMMS_EVAL_BUDGET_EXCEEDED]")),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x\nB", ""),
    ],
)
def test_what_a_model_hands_over_in_place_of_a_response_is_no_response(response, failure):
    assert failure_in(response) == failure


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
