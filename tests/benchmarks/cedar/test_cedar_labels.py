from __future__ import annotations

import json
import unicodedata

import pytest

from culture_tasks.benchmarks.cedar.labels import (
    EMOTIONS,
    FILE_NAMES,
    LANGUAGES,
    OPTION_WORDS,
    QUADRANTS,
    english_label,
)
from culture_tasks.benchmarks.cedar.reading.choice import read_reply
from culture_tasks.errors import DataError


def test_quadrants_hold_each_emotion_once():
    members = [emotion for emotions in QUADRANTS.values() for emotion in emotions]
    assert sorted(members) == sorted(EMOTIONS)
    assert [len(emotions) for emotions in QUADRANTS.values()] == [3, 4, 2, 5]


@pytest.mark.parametrize("language", LANGUAGES)
def test_option_words_map_to_their_label_in_any_unicode_form(language):
    for emotion, word in OPTION_WORDS[language].items():
        for form in ("NFC", "NFD", "NFKC"):
            assert english_label(f" {unicodedata.normalize(form, word)} ", language) == emotion


def test_hindi_label_without_nukta_and_misspelt_arabic_are_labels():
    assert english_label("मजा", "hi") == "amusement"
    assert english_label("تسليية", "ar") == "amusement"
    assert english_label("اشمزاز", "ar") == "disgust"


def test_unknown_label_names_what_came_what_is_allowed_and_the_nearest():
    with pytest.raises(
        DataError, match=r"^cedar: 'enojos' is no gold label of spanish data\. Did you mean 'enojo'\?"
    ) as e:
        english_label("enojos", "es")
    assert "asco" in str(e.value)


@pytest.mark.parametrize("language", LANGUAGES)
def test_gold_labels_of_the_excerpts_map_to_their_english_version(cedar_excerpts, language):
    [path] = (cedar_excerpts / "multilingual").glob(f"{FILE_NAMES[language]}_*.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert len(rows) == 10
    for row in rows:
        assert english_label(row["answer"], language) == row["english_ver_answer"]
        assert read_reply(row["answer"]) == row["english_ver_answer"]
