"""The words of seven languages, read from ``lexicon/<language>.json``.

Each file holds, for each label, the concepts that count as it, with a language's words for each concept: inflections,
spellings, dictionary equivalents. The concepts are the same in all languages, so that a label is as easy to name in one
as in another. ``not_in``, ``not_before`` and ``not_after`` keep a word from being an emotion word (a set phrase, a
longer compound). The other lists are the phrases that the rules of ``choice`` look for; Japanese and Chinese have
regular expressions where others have lists of words.

A word that could be an inflection of two labels is left out: ``contento``, ``pena`` and ``disgusto`` (es), ``आनंद``
(hi), ``راحة`` (ar), ``raha`` and ``uchungu`` (sw), ``惊喜`` and ``欣慰`` (zh), ``畏怖`` (ja), ``amazement`` (en); and
so is a concept that could be two labels: shock, enjoyment, mirth, awkwardness.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from culture_tasks.benchmarks.cedar.labels import LANGUAGES, Emotion, Language
from culture_tasks.benchmarks.cedar.reading.folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SPACED: Final[tuple[Language, ...]] = ("en", "es", "sw", "ar", "hi")
UNSPACED: Final[tuple[Language, ...]] = ("ja", "zh")
HAN_OR_KANA: Final = "々〆〇ぁ-ゖゝ-ゟァ-ヺー-ヿ㐀-䶿一-鿿豈-﫿"
# Letters and digits of any script but Han and kana; Devanagari by range, as its vowel signs are no letters to "\w".
# A hyphen or an apostrophe may join two of them: "didn't", "pain-free".
WORD: Final = re.compile(rf"(?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+(?:['-](?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+)*")
# A run of Han characters and kana, which have no spaces between their words.
RUN: Final = re.compile(f"[{HAN_OR_KANA}]+")
# Where a spaced word begins and ends.
_BEGINS: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"


class Entry(NamedTuple):
    """An emotion word's label and language."""

    emotion: Emotion
    language: Language


@cache
def language_file(language: Language) -> Mapping[str, Any]:
    """Returns the content of one language's file."""
    file = resources.files(__package__) / "lexicon" / f"{language}.json"
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def phrases(languages: Iterable[Language], *keys: str) -> list[str]:
    """Returns the folded phrases that the languages' files list under the keys."""
    lists = (language_file(language).get(key, ()) for language in languages for key in keys)
    return [fold(phrase) for phrases_of_one in lists for phrase in phrases_of_one]


def alternation(languages: Iterable[Language], *keys: str) -> str:
    """Returns a regular expression for the phrases of the languages, longest first; spaced ones as whole words."""
    spaced = phrases([language for language in languages if language in SPACED], *keys)
    unspaced = phrases([language for language in languages if language in UNSPACED], *keys)
    parts = []
    for found, begins, ends in ((spaced, _BEGINS, _ENDS), (unspaced, "", "")):
        if found:
            ordered = sorted(set(found), key=lambda phrase: (-len(phrase), phrase))
            parts.append(f"{begins}(?:{'|'.join(map(re.escape, ordered))}){ends}")
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


@cache
def pattern(*keys: str) -> re.Pattern[str]:
    """Matches what any language lists under one of the keys."""
    return re.compile(alternation(LANGUAGES, *keys))


def entries(language: Language) -> Iterator[tuple[str, Emotion]]:
    """Yields every folded word of a language with its label, Swahili stems aside."""
    for emotion, words in language_file(language)["words"].items():
        for forms in words.values():
            for form in forms.split():
                yield fold(form), emotion


@cache
def words(languages: tuple[Language, ...]) -> Mapping[str, Entry]:
    """Returns the emotion words of the languages; of two languages with the same word the first has it."""
    return {form: Entry(emotion, language) for language in reversed(languages) for form, emotion in entries(language)}


@cache
def swahili_verbs() -> Mapping[str, Emotion]:
    """Returns the label of each Swahili stem that takes subject and tense prefixes."""
    return {fold(stem): emotion for emotion, stems in language_file("sw")["verbs"].items() for stem in stems.split()}


@cache
def other_words(key: str) -> Mapping[str, tuple[str, ...]]:
    """Returns, for an unspaced word, what makes another word of it behind it (``not_before``) or before it."""
    tables = [language_file(language).get(key, {}) for language in UNSPACED]
    return {fold(word): tuple(map(fold, others)) for table in tables for word, others in table.items()}
