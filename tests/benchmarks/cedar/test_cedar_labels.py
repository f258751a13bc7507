from __future__ import annotations

import re
import unicodedata

import pytest
from support.papers import printed

from culture_tasks.benchmarks.cedar.documents import english_label
from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    LANGUAGES,
    OPTION_WORDS,
    QUADRANTS,
)
from culture_tasks.benchmarks.cedar.reading.choice import read_reply
from culture_tasks.errors import DataError

ORDER = ("ar", "zh", "en", "hi", "ja", "es", "sw")  # of the prompts in Figures 9 and 10


def test_quadrants_hold_each_emotion_once():
    members = [emotion for emotions in QUADRANTS.values() for emotion in emotions]
    assert sorted(members) == sorted(EMOTIONS)
    assert [len(emotions) for emotions in QUADRANTS.values()] == [3, 4, 2, 5]


@pytest.mark.parametrize("language", LANGUAGES)
def test_option_words_map_to_their_label_in_any_unicode_form(language):
    for emotion, word in OPTION_WORDS[language].items():
        for form in ("NFC", "NFD", "NFKC"):
            assert english_label(f" {unicodedata.normalize(form, word)} ", language, "row 1") == emotion


def test_hindi_label_without_nukta_and_misspelt_arabic_are_labels():
    for word, language, label in (
        ("मजा", "hi", "amusement"),
        ("تسليية", "ar", "amusement"),
        ("اشمزاز", "ar", "disgust"),
    ):
        assert english_label(word, language, "row 1") == label


def test_unknown_label_names_what_came_what_is_allowed_and_the_nearest():
    with pytest.raises(
        DataError, match=r"^row 1: cedar: 'enojos' is no gold label of spanish data\. Did you mean 'enojo'\?"
    ) as e:
        english_label("enojos", "es", "row 1")
    assert "asco" in str(e.value)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("figure", ["figure_9", "figure_10"])
def test_options_as_printed_map_to_the_english_ones(figure, language):
    # Below the question stands a line "[options]: anger, disgust, ...", with the commas of the language.
    lines = re.findall(r"\{question\}\\n\n\n\[.+\]: (.+)\n", printed("cedar", figure))
    options = dict(zip(ORDER, (re.split("[,、،] ?", line) for line in lines), strict=True))
    for word, english in zip(options[language], options["en"], strict=True):
        assert english_label(word, language, "row 1") == english
        assert read_reply(word) == english
