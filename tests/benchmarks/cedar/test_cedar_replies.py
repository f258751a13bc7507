"""The reader against tables of replies, hostile text, and properties that hold for any wrapping."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culture_tasks.benchmarks.cedar.folding import cut_reasoning, fold
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, MISSPELLINGS, OPTION_WORDS
from culture_tasks.benchmarks.cedar.lexicon import entries
from culture_tasks.benchmarks.cedar.mentions import find_mentions
from culture_tasks.benchmarks.cedar.prompts import render
from culture_tasks.benchmarks.cedar.replies import read_reply

TABLES = Path(__file__).parent / "replies"


def table(language: str) -> list[tuple[str, str]]:
    rows = (TABLES / f"{language}.tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(row.split("\t")) for row in rows]


ROWS = [(name, *row) for name in (*LANGUAGES, "choices") for row in table(name)]


@pytest.mark.parametrize(("expected", "reply"), [pytest.param(*row[1:], id=f"{row[0]}-{row[2][:30]}") for row in ROWS])
def test_reply_is_read_as_its_table_says(expected, reply):
    assert read_reply(reply.replace(r"\n", "\n")) == (None if expected == "-" else expected)


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables_have_forty_replies_and_every_label(language):
    rows = table(language)
    assert len(rows) >= 40
    assert {label for label, _ in rows} == {*EMOTIONS, "-"}


def test_no_word_belongs_to_two_labels_in_any_language():
    owners: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for word, emotion in entries(language):
            owners.setdefault(word, set()).add(emotion)
    assert {word: labels for word, labels in owners.items() if len(labels) > 1} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_the_lexicon_is_read_as_a_reply(language):
    for word, emotion in entries(language):
        found = [mention.emotion for mention in find_mentions(word)]
        assert found == [emotion], word


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("modality", ["text", "multimodal"])
def test_repeated_prompt_then_answer_is_read(language, modality):
    prompt = render(language, modality, "…", "…")
    for emotion, word in OPTION_WORDS[language].items():
        assert read_reply(f"{prompt} {word}") == emotion
    assert read_reply(prompt) is None


def test_misspelt_arabic_options_are_accepted_and_not_printed():
    for word, emotion in MISSPELLINGS["ar"].items():
        assert read_reply(word) == emotion
        assert word not in render("ar", "text", "", "") + render("ar", "multimodal", "", "")


WORDS = st.sampled_from([(emotion, word) for code in LANGUAGES for emotion, word in OPTION_WORDS[code].items()])
WRAPPINGS = st.sampled_from(
    [
        *(
            "{}",
            "**{}**",
            "*{}*",
            "__{}__",
            '"{}"',
            "'{}'",
            "「{}」",
            "«{}»",
            "({})",
            "[{}]",
            "`{}`",
            "# {}",
            "- {}",
            "> {}",
        ),
        *("{}.", "{}。", "{}!", "{}।", "1. {}", "Answer: {}", "Respuesta: {}", "答案：{}", "答え:{}", "الإجابة: {}"),
        *(
            "उत्तर: {}",
            "Jibu: {}",
            r"\boxed{{{}}}",
            r"$\boxed{{\text{{{}}}}}$",
            '{{"emotion": "{}"}}',
            "<answer>{}</answer>",
        ),
        *(
            "<think>anger, fear</think>{}",
            "<think>\n</think>\n\n{}\n",
            "```\n{}\n```",
            "Final answer: **{}**",
            "The answer is {}.",
        ),
    ]
)
BLANKS = st.text(alphabet=" \n\t\u200f\u200e\ufeff\x00", max_size=6)


@given(WORDS, WRAPPINGS, BLANKS, BLANKS)
def test_label_inside_any_wrapping_is_found(option, wrapping, before, after):
    emotion, word = option
    assert read_reply(before + wrapping.format(word) + after) == emotion


PLAIN = st.lists(
    st.sampled_from(
        [
            "the",
            "person",
            "painting",
            "Spain",
            "awesome",
            "fearless",
            "painkiller",
            "angering-free",
            "desired",
            "unhappy",
            "madness",
            "reliefless",
            "mi",
            "edo",
            "nuevo",
            "casa",
            "persona",
            "شخص",
            "كتاب",
            "مدرسة",
            "عالم",
            "आदमी",
            "घर",
            "किताब",
            "खुशबू",
            "mtu",
            "nyumba",
            "kitabu",
            "不同情绪",
            "怒涛",
            "今天",
            "图片",
            "学校",
            "人",
            "これは写真",
            "neutral",
            "nostalgia",
            "calm",
            "curious",
            "平静",
            "هدوء",
            "utulivu",
            "शांति",
        ]
    ),
    max_size=12,
)


@given(PLAIN, st.sampled_from([" ", "\n", ", ", " - ", ": ", "**"]))
def test_reply_without_a_label_never_yields_one(words, separator):
    assert read_reply(separator.join(words)) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Lo", "Ll", "Lu", "Lm", "Lt", "So", "Nl", "No", "Mn", "Mc"])))
def test_text_without_letters_never_yields_a_label(text):
    assert read_reply(text) is None


@given(st.text())
def test_any_text_gives_a_label_or_none(text):
    assert read_reply(text) in {*EMOTIONS, None}


@given(WORDS, WORDS, st.sampled_from([" / ", ", ", " or ", " and ", "\n", " y ", " أو ", " या ", " au ", "と", "或"]))
def test_two_joined_labels_are_unparsed(one, other, joint):
    expected = one[0] if one[0] == other[0] else None
    assert read_reply(one[1] + joint + other[1]) == expected


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("b<think>a", "b"),
        ("<think><think>a</think>b", "b"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ('<Reasoning effort="high">a</Reasoning>b', "b"),
        ("[THINK]a[/THINK]b", "b"),
        ("◁think▷a◁/think▷b", "b"),
        ("<|channel|>analysis<|message|>a<|channel|>final<|message|>b", "b"),
        ("<thinker>a</thinker>", "<thinker>a</thinker>"),
    ],
)
def test_reasoning_is_cut(reply, kept):
    assert cut_reasoning(reply) == kept


def test_folding_makes_spellings_alike():
    assert fold("ख़ुशी") == fold("खुशी")
    assert fold("शर्मिन्दगी") == fold("शर्मिंदगी")
    assert fold("إِحْرَاجٌ") == fold("احراج")
    assert fold("Vergüenza") == "verguenza"
    assert fold("がぎパ") == "がぎパ"


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "x",
            "*",
            '"',
            "'",
            "(",
            "\n",
            "\x00",
            "\ud800",
            "の",
            "怒",
            "ﷺ",
            "a\u0301",
            "न्",
            "ال",
            "\u202e",
            "a-",
            "-a'",
        ),
        *("<think>", "</think>", "<think ", "\\boxed{", "\\u006", "answer ", "answer: ", "the answer is ", '"a":"'),
        *(
            "anger ",
            "not anger or ",
            "**fear** ",
            "怒り",
            "悲しみではなく",
            "emotion: ",
            "[a]:\n",
            "<answer>",
            "anger\n",
        ),
    ],
)
def test_megabyte_of_anything_is_read(unit):
    reply = unit * (MEGABYTE // len(unit.encode("utf-8", "surrogatepass")))
    assert read_reply(reply) in {*EMOTIONS, None}


def test_label_at_either_end_of_a_megabyte_is_found():
    filler = "lorem ipsum " * (MEGABYTE // 12)
    assert read_reply(f"Answer: relief\n{filler}") == "relief"
    assert read_reply(f"{filler}\nAnswer: relief") == "relief"
    assert read_reply(f"{filler}relief {filler}") == "relief"
