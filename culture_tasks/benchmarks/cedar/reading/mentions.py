"""Where a folded text names an emotion: words, clitics, verb prefixes, words inside unspaced runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from culture_tasks.benchmarks.cedar.reading.lexicon import RUN, WORD, Entry, Lexicon, lexicon

if TYPE_CHECKING:
    from collections.abc import Iterator

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
# Behind a word that is often no emotion, what shows that it is one: nothing more in its line, a mark, "with", "that".
_STANDS_ALONE: Final = re.compile(r"[\s\"'*_}).!,]*(?:\Z|\n)|\s*[\"'*_}).!,]| (?:with|because|that|to|now)\b")


def _arabic(word: str, words: Lexicon) -> Entry | None:
    """Looks a word up without its article, conjunction or preposition and without a pronoun or accusative ending."""
    for prefix in _ARABIC_PREFIXES:
        if not word.startswith(prefix):
            continue
        for suffix in _ARABIC_SUFFIXES:
            stem = word[len(prefix) : len(word) - len(suffix)]
            if len(stem) < _SHORTEST_STEM or not word.endswith(suffix):
                continue
            entry = words.words.get(stem)
            if entry is None and suffix and stem.endswith("ت"):
                entry = words.words.get(stem[:-1] + "ه")
            if entry is not None:
                return entry
    return None


def _swahili(word: str, words: Lexicon) -> Entry | None:
    """Looks a verb up behind its subject, tense, relative and object prefixes; negative verbs have none of these."""
    for place in range(1, len(word) - 2):
        emotion = words.verbs.get(word[place:])
        if emotion is not None:
            return Entry(emotion, "sw") if _SWAHILI_PREFIX.fullmatch(word[:place]) else None
    return None


@lru_cache(maxsize=4096)
def _look_up(word: str) -> Entry | None:
    words = lexicon()
    if len(word) > _LONGEST_WORD:
        return None
    entry = words.words.get(word)
    if entry is not None:
        return entry
    first, hyphen, rest = word.partition("-")
    if hyphen:
        # A compound such as "pain-free" is another word; "b-anger" is an enumerated option.
        return _look_up(rest) if len(first) == 1 or first.isdigit() else None
    if word.endswith("'s"):
        return words.words.get(word[:-2])
    if _ARABIC.fullmatch(word):
        return _arabic(word, words)
    return _swahili(word, words) if word.isascii() else None


def _in_set_phrase(text: str, found: list[re.Match[str]], place: int, words: Lexicon) -> bool:
    for offset, phrase in words.set_phrases.get(found[place].group(), ()):
        first = place - offset
        if first < 0 or [match.group() for match in found[first : first + len(phrase)]] != phrase:
            continue
        if text[found[first].start() : found[first + len(phrase) - 1].end()].split() == phrase:
            return True
    return False


def _allowed_here(text: str, found: list[re.Match[str]], place: int, words: Lexicon) -> bool:
    """Whether a word that is often no emotion (English "content") is one here."""
    needed = words.only_after.get(found[place].group())
    if needed is None:
        return True
    if not _STANDS_ALONE.match(text, found[place].end()):
        return False
    line = text.rfind("\n", 0, found[place].start()) + 1
    if place == 0 or found[place - 1].end() <= line:
        return True
    between = text[found[place - 1].end() : found[place].start()]
    return found[place - 1].group() in needed or bool(set(between) & set(':"*{'))


def _spaced(text: str, words: Lexicon) -> Iterator[Mention]:
    found = list(WORD.finditer(text))
    for place, match in enumerate(found):
        entry = _look_up(match.group())
        if entry is None or _in_set_phrase(text, found, place, words) or not _allowed_here(text, found, place, words):
            continue
        yield Mention(match.start(), match.end(), entry.emotion, entry.language)


def _ends_cleanly(text: str, start: int, end: int) -> bool:
    """Whether a word in kana, or of one character, stands by itself: particles may follow, and precede a long one."""
    word = text[start:end]
    kana = _KANA.fullmatch(word) is not None
    if len(word) > 1 and not kana:
        return True
    before, after = text[max(0, start - 1) : start], text[end : end + 2]
    follows_particle = len(word) >= _LONG_KANA and before in _PARTICLES
    if (_KANA if kana else RUN).match(before) and not follows_particle:
        return False
    return not RUN.match(after) or after.startswith(_PARTICLES)


def _another_word(text: str, start: int, end: int, words: Lexicon) -> bool:
    word = text[start:end]
    return text.startswith(words.not_before.get(word, ()), end) or text[max(0, start - 4) : start].endswith(
        words.not_after.get(word, ())
    )


def _unspaced(text: str, words: Lexicon) -> Iterator[Mention]:
    longest: dict[str, int] = {}
    for word in words.runs:
        longest[word[0]] = max(longest.get(word[0], 0), len(word))
    for run in RUN.finditer(text):
        place = run.start()
        while place < run.end():
            for size in range(min(longest.get(text[place], 0), run.end() - place), 0, -1):
                entry = words.runs.get(text[place : place + size])
                if entry is not None and _ends_cleanly(text, place, place + size):
                    if not _another_word(text, place, place + size, words):
                        yield Mention(place, place + size, entry.emotion, entry.language)
                    place += size
                    break
            else:
                place += 1


def find_mentions(text: str) -> list[Mention]:
    """Returns the emotion words of a folded text, in order.

    Only whole words count in languages that put spaces between words; in Japanese and Chinese the longest word does,
    unless it is part of a known other word.
    """
    words = lexicon()
    return sorted([*_spaced(text, words), *_unspaced(text, words)], key=lambda mention: mention.start)
