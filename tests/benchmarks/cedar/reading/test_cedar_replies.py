"""The reader against tables of replies, hostile text, and properties that hold for any wrapping.

``replies/README.md`` says how many labels each rule adds, and how many wrong ones it prevents.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.steps import steps

from culture_tasks.benchmarks.cedar.documents import prompt_file
from culture_tasks.benchmarks.cedar.labels import EMOTIONS, LANGUAGES, OPTION_WORDS
from culture_tasks.benchmarks.cedar.reading.reader import entries, find_mentions, language_file, read_reply

TABLES = Path(__file__).parent / "replies"


def table(name: str) -> list[tuple[str, ...]]:
    rows = (TABLES / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(row.split("\t")) for row in rows]


def right_or_unread(expected: str, read: str | None) -> bool:
    """A label behind a question mark may be left unread, and a dash must be."""
    if expected.startswith("?"):
        return read in {expected[1:], None}
    return read == (None if expected == "-" else expected)


@pytest.mark.parametrize("name", [*LANGUAGES, "choices", "background", "turns"])
def test_replies_are_read_as_their_table_says(name):
    read = {reply: (expected, read_reply(reply.replace(r"\n", "\n"))) for expected, reply in table(name)}
    assert {reply: pair for reply, pair in read.items() if not right_or_unread(*pair)} == {}


def test_ordinary_replies_are_read_and_none_wrongly():
    rows = [json.loads(row) for row in (TABLES / "ordinary.jsonl").read_text(encoding="utf-8").splitlines()]
    read = [(row["emotion"], read_reply(row["reply"]), row["reply"]) for row in rows]
    assert [row for row in read if row[1] not in {row[0], None}] == []
    labelled = [row for row in read if row[0] is not None]
    assert len([row for row in labelled if row[1]]) >= 0.972 * len(labelled)


def fill(language: str, frame: str, one: str, other: str) -> str:
    words = OPTION_WORDS[language]
    return frame.replace(r"\n", "\n").format(a=words[one], b=words[other])


@pytest.mark.parametrize("language", LANGUAGES)
def test_frames_are_read_alike_for_every_label(language):
    wrong = [
        (frame, one, other)
        for frame_language, expected, frame in table("frames")
        for one, other in zip(EMOTIONS, (*EMOTIONS[5:], *EMOTIONS[:5]), strict=True)
        if frame_language == language
        and not right_or_unread(expected.replace("a", one), read_reply(fill(language, frame, one, other)))
    ]
    assert wrong == []


def test_every_word_of_the_lexicon_is_found_and_belongs_to_one_label_in_all_languages():
    owners: dict[str, set[str]] = {}
    for language in LANGUAGES:
        for word, emotion in entries(language):
            owners.setdefault(word, set()).add(emotion)
    found = {word: {mention.emotion for mention in find_mentions(word)} for word in owners}
    assert [word for word, labels in owners.items() if len(labels) > 1 or found[word] != labels] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_concept_has_words_in_all_languages_or_in_none(language):
    english, words = (
        {emotion: set(of) for emotion, of in language_file(code)["words"].items()} for code in ("en", language)
    )
    assert list(english) == list(EMOTIONS)
    assert words == english


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("modality", ["text", "multimodal"])
def test_repeated_prompt_then_answer_is_read(language, modality):
    prompt = prompt_file(language, modality).text.replace("{narrative}", "…").replace("{question}", "…")
    for emotion, word in OPTION_WORDS[language].items():
        assert read_reply(f"{prompt} {word}") == emotion
    assert read_reply(prompt) is None


WORDS = st.sampled_from([(emotion, word) for code in LANGUAGES for emotion, word in OPTION_WORDS[code].items()])
WRAPPINGS = st.sampled_from(
    (
        *("{}", "**{}**", "*{}*", "__{}__", '"{}"', "'{}'", "「{}」", "«{}»", "({})", "[{}]", "`{}`", "# {}", "- {}"),
        *("{}.", "{}。", "{}!", "{}।", "1. {}", "> {}", "Answer: {}", "Respuesta: {}", "答案：{}", "答え:{}"),
        *("الإجابة: {}", "उत्तर: {}", "Jibu: {}", "Final answer: **{}**", "The answer is {}.", "```\n{}\n```"),
        *(r"\boxed{{{}}}", r"$\boxed{{\text{{{}}}}}$", '{{"emotion": "{}"}}', "<answer>{}</answer>"),
        *("<think>anger, fear</think>{}", "<think>\n</think>\n\n{}\n"),
    )
)
BLANKS = st.text(alphabet=" \n\t\u200f\u200e\ufeff\x00", max_size=6)


@given(WORDS, WRAPPINGS, BLANKS, BLANKS)
def test_label_inside_any_wrapping_is_found(option, wrapping, before, after):
    emotion, word = option
    assert read_reply(before + wrapping.format(word) + after) == emotion


def test_reasoning_is_cut():
    for reply in (
        "<think>anger</think>fear",
        "fear<think>anger",
        "<|channel|>analysis<|message|>anger<|channel|>final<|message|>fear",
    ):
        assert read_reply(reply) == "fear"
    assert read_reply("<thinker>anger</thinker>") == "anger"


UNITS = (
    *("x", "*", '"', "'", "(", "\n", "\x00", "\ud800", "の", "怒", "ﷺ", "a\u0301", "न्", "ال", "\u202e", "a-", "-a'"),
    *("<think>", "</think>", "<think ", "\\boxed{", "\\u006", "answer ", "answer: ", "the answer is ", '"a":"'),
    *("anger ", "not anger or ", "**fear** ", "怒り", "悲しみではなく", "emotion: ", "[a]:\n", "<answer>", "anger\n"),
    *("anger? ", "anger; ", "I can't anger ", "anger but I can't ", "less anger than ", "from anger to ", "so anger, "),
    *("since the anger, she feels ", "怒りので", "从愤怒到", "siwezi hasira ", "anger but now ", "怒りですが今は"),
    *("at first anger or rather fear, ", "between anger and fear, fear, ", "if you anger, fear "),
)


@pytest.mark.parametrize("unit", UNITS)
def test_long_text_of_anything_is_read_and_twice_as_much_in_no_more_than_twice_the_work(unit):
    size = len(unit.encode("utf-8", "surrogatepass"))
    once, twice = (unit * (length // size) for length in (2_000, 4_000))
    assert read_reply(twice) in {*EMOTIONS, None}
    assert steps(read_reply, twice) <= 2.1 * steps(read_reply, once)
