"""Where a folded text names an emotion: words, clitics, verb prefixes, words inside unspaced runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.reading.lexicon import (
    RUN,
    SPACED,
    UNSPACED,
    WORD,
    Entry,
    language_file,
    other_words,
    phrases,
    swahili_verbs,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from culture_tasks.benchmarks.cedar.labels import Emotion, Language


@dataclass(frozen=True, slots=True)
class Mention:
    """An emotion word in a folded text.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        emotion: Its label.
        language: The language whose word it is.
    """

    start: int
    end: int
    emotion: Emotion
    language: Language


_LONGEST_WORD = 40
# A word in Arabic letters, diacritics aside.
_ARABIC: Final = re.compile("[ء-ي]+")
_ARABIC_PREFIXES: Final = (
    *("", "وبال", "فبال", "وكال", "ولل", "وال", "فال", "بال", "كال", "لل", "ال"),
    *("وب", "ول", "فب", "و", "ف", "ب", "ك", "ل"),
)
_ARABIC_SUFFIXES: Final = ("", "ا", "ه", "ها", "هم", "ي", "نا", "ك", "كم", "هما")
_SHORTEST_STEM = 3
# What stands before the stem of a Swahili verb: subject, tense and relative prefix, or a prefix of the infinitive,
# the habitual or the present without tense, and then that of the object.
_SWAHILI_PREFIX: Final = re.compile(
    r"(?:(?:ni|n|u|a|tu|m|wa|i|ya|li|ki|vi|zi)?(?:na|me|li|ta|ki|nge|ngali|mesha|ka)(?:ye|o|cho|yo|vyo|lo)?"
    r"|ku|hu|ni|u|a|tu|m|wa)?(?:m|mw|ku|wa|ni|tu|ji|ki|i)?"
)
_KANA: Final = re.compile("[ぁ-ゖァ-ヺー]+")
_LONG_KANA: Final = 4
_PARTICLES: Final = ("です", "でし", "だ", "を", "が", "の", "と", "で", "な", "に", "は", "も", "よ", "ね")


def _arabic(word: str) -> Entry | None:
    """Looks a word up without its article, conjunction or preposition and without a pronoun or accusative ending."""
    known = words(SPACED)
    for prefix in filter(word.startswith, _ARABIC_PREFIXES):
        for suffix in filter(word.endswith, _ARABIC_SUFFIXES):
            stem = word[len(prefix) : len(word) - len(suffix)]
            if len(stem) < _SHORTEST_STEM:
                continue
            entry = known.get(stem)
            if entry is None and suffix and stem.endswith("ت"):
                entry = known.get(stem[:-1] + "ه")
            if entry is not None:
                return entry
    return None


def _swahili(word: str) -> Entry | None:
    """Looks a verb up behind its subject, tense, relative and object prefixes; negative verbs have none of these."""
    for place in range(1, len(word) - 2):
        emotion = swahili_verbs().get(word[place:])
        if emotion is not None:
            return Entry(emotion, "sw") if _SWAHILI_PREFIX.fullmatch(word[:place]) else None
    return None


@lru_cache(maxsize=4096)
def _look_up(word: str) -> Entry | None:
    if len(word) > _LONGEST_WORD:
        return None
    known = words(SPACED).get(word)
    if known is not None:
        return known
    first, hyphen, rest = word.partition("-")
    if hyphen:
        # A compound such as "pain-free" is another word; "b-anger" is an enumerated option.
        return _look_up(rest) if len(first) == 1 or first.isdigit() else None
    if _ARABIC.fullmatch(word):
        return _arabic(word)
    return _swahili(word) if word.isascii() else None


@cache
def _set_phrases() -> Mapping[str, list[tuple[int, list[str]]]]:
    """For a word, the phrases in which it names no emotion: the word's place in it, and its words."""
    table: dict[str, list[tuple[int, list[str]]]] = {}
    for phrase in phrases(SPACED, "not_in"):
        for place, word in enumerate(phrase.split()):
            table.setdefault(word, []).append((place, phrase.split()))
    return table


def _names_emotion(text: str, found: list[re.Match[str]], place: int) -> bool:
    """Whether an emotion word is no part of a set phrase, and one that is often none ("content") follows "feels"."""
    word = found[place].group()
    for offset, phrase in _set_phrases().get(word, ()):
        first, last = place - offset, place - offset + len(phrase)
        if first >= 0 and text[found[first].start() : found[min(last, len(found)) - 1].end()].split() == phrase:
            return False
    needed = language_file("en")["only_after"].get(word)
    alone = text[text.rfind("\n", 0, found[place].start()) + 1 :].partition("\n")[0].strip(" \"'*_`.!:") == word
    return needed is None or alone or (place > 0 and found[place - 1].group() in needed)


def _spaced(text: str) -> Iterator[Mention]:
    found = list(WORD.finditer(text))
    for place, match in enumerate(found):
        entry = _look_up(match.group())
        if entry is not None and _names_emotion(text, found, place):
            yield Mention(match.start(), match.end(), entry.emotion, entry.language)


def _stands_by_itself(text: str, start: int, end: int) -> bool:
    """Whether an unspaced word is no part of a known other word.

    Of words in kana, or of one character, particles alone may follow, and precede a long one.
    """
    word, after = text[start:end], text[end : end + 2]
    if text.startswith(other_words("not_before").get(word, ()), end):
        return False
    if text[max(0, start - 4) : start].endswith(other_words("not_after").get(word, ())):
        return False
    kana = _KANA.fullmatch(word) is not None
    if len(word) > 1 and not kana:
        return True
    before = text[max(0, start - 1) : start]
    follows_particle = len(word) >= _LONG_KANA and before in _PARTICLES
    if (_KANA if kana else RUN).match(before) and not follows_particle:
        return False
    return not RUN.match(after) or after.startswith(_PARTICLES)


def _unspaced(text: str) -> Iterator[Mention]:
    known = words(UNSPACED)
    longest = max(map(len, known))
    for run in RUN.finditer(text):
        place = run.start()
        while place < run.end():
            sizes = range(min(longest, run.end() - place), 0, -1)
            size = next((size for size in sizes if text[place : place + size] in known), 0)
            if size and _stands_by_itself(text, place, place + size):
                entry = known[text[place : place + size]]
                yield Mention(place, place + size, entry.emotion, entry.language)
            place += size or 1


def find_mentions(text: str) -> list[Mention]:
    """Returns the emotion words of a folded text, in order.

    Only whole words count in languages that put spaces between words; in Japanese and Chinese the longest word does,
    unless it is part of a known other word.
    """
    return sorted([*_spaced(text), *_unspaced(text)], key=lambda mention: mention.start)
