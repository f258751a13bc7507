"""The emotion words of all seven languages, read from ``lexicon/<language>.json``.

Each file holds, for each label, the concepts that count as it, with a language's words for each concept: inflections,
spellings, dictionary equivalents. The concepts are the same in all languages, so that a label is as easy to name in one
as in another. Beside them stand what keeps a word from being an emotion word (a set phrase, a longer compound) and the
small grammar that the reader needs: what denies (``negators``, ``after``), joins, contrasts and explains; what leads to
an answer (``answer``, ``choice``, ``choose``, ``conclusions``); what adds nothing to a label (``hedges``, ``plain``);
what declines to answer (``unable``, ``refusal``); ``constructions`` with a slot for each emotion word (read in
``candidates``); and what tells the feeling that is meant from one that is past, expected, lesser or another person's
(read in ``turning_away``).

A word that could be an inflection of two labels is left out: ``contento``, ``pena`` and ``disgusto`` (es), ``आनंद``
(hi), ``راحة`` (ar), ``raha`` and ``uchungu`` (sw), ``惊喜`` and ``欣慰`` (zh), ``畏怖`` (ja), ``amazement`` (en); and
so is a concept that could be two labels: shock, enjoyment, mirth, awkwardness.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from culture_tasks.benchmarks.cedar.labels import EMOTIONS, Emotion, Language
from culture_tasks.benchmarks.cedar.reading.folding import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SPACED: Final[tuple[Language, ...]] = ("en", "es", "sw", "ar", "hi")
UNSPACED: Final[tuple[Language, ...]] = ("ja", "zh")
HAN_OR_KANA: Final = "々〆〇ぁ-ゖゝ-ゟァ-ヺー-ヿ㐀-䶿一-鿿豈-﫿"
# Letters and digits of any script but Han and kana; Devanagari by range, as its vowel signs are no letters to "\w".
# A hyphen or an apostrophe may join two of them: "didn't", "pain-free".
WORD: Final = re.compile(rf"(?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+(?:['-](?:[^\W_ऀ-ॿ{HAN_OR_KANA}]|[ऀ-ॣ०-९ॱ-ॿ])+)*")
# Where such a word begins and ends.
WORD_BEGINS: Final = r"(?<![^\W_])(?<![ऀ-ॣ])"
WORD_ENDS: Final = r"(?![^\W_])(?![ऀ-ॣ])"
# A run of Han characters and kana, which have no spaces between their words.
RUN: Final = re.compile(f"[{HAN_OR_KANA}]+")


class Entry(NamedTuple):
    """An emotion word's label and language."""

    emotion: Emotion
    language: Language


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Emotion words of all languages, folded.

    Attributes:
        words: Words of the languages that put spaces between words.
        verbs: Swahili stems, which take subject and tense prefixes.
        runs: Japanese and Chinese words, found inside unspaced text.
        set_phrases: For a word, the phrases in which it names no emotion: the word's place in it, and its words.
        only_after: Words that name an emotion only after one of these, or standing alone.
        not_before: For an unspaced word, continuations that make it another word.
        not_after: For an unspaced word, what may not stand before it.
    """

    words: Mapping[str, Entry]
    verbs: Mapping[str, Emotion]
    runs: Mapping[str, Entry]
    set_phrases: Mapping[str, list[tuple[int, list[str]]]]
    only_after: Mapping[str, frozenset[str]]
    not_before: Mapping[str, tuple[str, ...]]
    not_after: Mapping[str, tuple[str, ...]]


@cache
def language_file(language: Language) -> Mapping[str, object]:
    """Returns the content of one language's file."""
    file = resources.files(__package__) / "lexicon" / f"{language}.json"
    return cast("dict[str, object]", json.loads(file.read_text(encoding="utf-8")))


def phrases(language: Language, key: str) -> list[str]:
    """Returns a list of folded phrases of one language's file; empty where the file has none."""
    return [fold(phrase) for phrase in cast("list[str]", language_file(language).get(key, []))]


def concepts(language: Language) -> Mapping[Emotion, Mapping[str, str]]:
    """Returns, for each label, the concepts that count as it, and a language's words for each."""
    return cast("dict[Emotion, dict[str, str]]", language_file(language)["words"])


def _verbs() -> Iterator[tuple[str, Emotion]]:
    table = cast("dict[Emotion, str]", language_file("sw")["verbs"])
    for emotion in EMOTIONS:
        for stem in table.get(emotion, "").split():
            yield fold(stem), emotion


def entries(language: Language) -> Iterator[tuple[str, Emotion]]:
    """Yields every folded word of a language with its label, Swahili stems aside."""
    for emotion, words in concepts(language).items():
        for forms in words.values():
            for form in forms.split():
                yield fold(form), emotion


def _merged(languages: Iterable[Language]) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    for language in languages:
        for form, emotion in entries(language):
            merged.setdefault(form, Entry(emotion, language))
    return merged


def _set_phrases() -> dict[str, list[tuple[int, list[str]]]]:
    table: dict[str, list[tuple[int, list[str]]]] = {}
    for language in SPACED:
        for phrase in phrases(language, "not_in"):
            parts = phrase.split()
            for place, word in enumerate(parts):
                table.setdefault(word, []).append((place, parts))
    return table


def _tables(key: str, languages: Iterable[Language]) -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for language in languages:
        for word, others in cast("dict[str, list[str]]", language_file(language).get(key, {})).items():
            table[fold(word)] = (*table.get(fold(word), ()), *(fold(other) for other in others))
    return table


@cache
def lexicon() -> Lexicon:
    """Returns the words of all languages; read from the package's files on the first call."""
    return Lexicon(
        words=_merged(SPACED),
        verbs=dict(_verbs()),
        runs=_merged(UNSPACED),
        set_phrases=_set_phrases(),
        only_after={word: frozenset(others) for word, others in _tables("only_after", SPACED).items()},
        not_before=_tables("not_before", UNSPACED),
        not_after=_tables("not_after", UNSPACED),
    )
